/* symbols: names, files and lines of addresses in an object: debug information first, else symbol tables.
 * One thread owns a handle.
 * Must not use a file that is not the recorded one: another build has other functions at the same addresses. */
#define _GNU_SOURCE
#include "symbols.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols_inner.h"
#include "tare.h"
#include "unwind.h"

#define DEBUG_FILES "/usr/lib/debug/.build-id"

struct tare__symbols {
    bool own;
    tare__dw dw;
    tare__demangler demangler;
};

tare__symbols *tare__symbols_new(bool own)
{
    tare__symbols *symbols = calloc(1, sizeof(*symbols));
    if (symbols)
        symbols->own = own;
    return symbols;
}

void tare__symbols_free(tare__symbols *symbols)
{
    if (!symbols)
        return;
    tare__dw_close(&symbols->dw);
    tare__demangler_close(&symbols->demangler);
    free(symbols);
}

bool tare__symbols_lines(tare__symbols *symbols, const char **version, tare__error *error)
{
    *version = "";
    if (!tare__dw_open(&symbols->dw)) {
        if (error)
            *error = symbols->dw.error;
        return false;
    }
    if (symbols->dw.api.version)
        *version = symbols->dw.api.version(NULL);
    return true;
}

/* ---- files ------------------------------------------------------------------------------------------------ */
typedef struct file {
    int fd; /* -1: none */
    tare__elf elf;
    char id[TARE__ELF_ID_BYTES];
} file;

static void close_file(file *file)
{
    if (file->fd >= 0)
        close(file->fd);
}

/* The kernel's code in each process: that in this process, as a file. */
static int open_vdso(void)
{
    unsigned long at = getauxval(AT_SYSINFO_EHDR);
    FILE *maps = at ? fopen("/proc/self/maps", "re") : NULL;
    char line[512];
    unsigned long start, end, bytes = 0;
    while (maps && !bytes && fgets(line, sizeof(line), maps))
        bytes = sscanf(line, "%lx-%lx", &start, &end) == 2 && start == at ? end - start : 0;
    if (maps)
        fclose(maps);
    int fd = bytes ? memfd_create("vdso", MFD_CLOEXEC) : -1;
    if (fd >= 0 && write(fd, (const void *)at, bytes) == (ssize_t)bytes) // NOLINT: an address
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int open_object(const tare__symbols *symbols, const char *path, const char *id, file *out, tare__error *error)
{
    int status = 0;
    if (strcmp(path, TARE__UNWIND_VDSO) == 0 && (out->fd = open_vdso()) < 0)
        return tare__fail(error, TARE_E_SYSTEM, "the vdso of this process cannot be read");
    if (out->fd < 0 && (status = tare__input_file(path, &out->fd, error)) != 0)
        return status;
    if (!tare__elf_file(&out->elf, out->fd))
        return tare__fail(error, TARE_E_INPUT, "%.200s: not an ELF file of 64 bits", path);
    tare__elf_build_id(&out->elf, out->id);
    if (strcmp(id, out->id) != 0)
        return tare__fail(error, TARE_E_INPUT, "%.200s was replaced: its build ID is %.40s, the recorded one %.40s",
                          path, out->id[0] ? out->id : "missing", *id ? id : "missing");
    if (!*id && !symbols->own)
        return tare__fail(error, TARE_E_PERMISSION,
                          "%.200s has no build ID, so it may be another file than the recorded one", path);
    return 0;
}

/* A separate file with symbol table and debug information, as distributions install them. */
static void open_debug(const char *id, file *out)
{
    char path[sizeof(DEBUG_FILES) + TARE__ELF_ID_BYTES + 16];
    const char *is;
    out->fd = -1;
    if (strlen(id) < 4)
        return;
    snprintf(path, sizeof(path), "%s/%.2s/%s.debug", DEBUG_FILES, id, id + 2);
    out->fd = tare__input_open(path, false, &is);
    if (out->fd < 0)
        return;
    if (tare__elf_file(&out->elf, out->fd)) {
        tare__elf_build_id(&out->elf, out->id);
        if (strcmp(out->id, id) == 0)
            return;
    }
    close(out->fd);
    out->fd = -1;
}

static bool has_lines(const file *file)
{
    tare__elf_sections sections;
    if (file->fd < 0 || !tare__elf_sections_read(&file->elf, &sections))
        return false;
    const Elf64_Shdr *found = tare__elf_section(&sections, ".debug_info");
    bool has = found && found->sh_type != SHT_NOBITS;
    tare__elf_sections_free(&sections);
    return has;
}

/* ---- offsets ---------------------------------------------------------------------------------------------- */
typedef struct wanted {
    uint64_t offset;
    size_t i;
} wanted;

TARE__ORDER(by_offset, wanted, TARE__RISING(offset) TARE__RISING(i))

typedef struct work {
    tare__symbols *symbols;
    tare__arena *texts;
    wanted *order;
    uint64_t *offsets; /* sorted */
    tare__symbols_entry *entries;
    size_t n;
    tare__dw_file lines;
    bool has_lines;
    const char *mangled, *demangled; /* the last one: neighbours are often in the same function */
} work;

static bool begin(work *work, tare__symbols *symbols, const uint64_t *offsets, size_t n)
{
    *work = (struct work){.symbols = symbols, .texts = tare__arena_new(), .n = n};
    work->order = malloc(n * sizeof(*work->order));
    work->offsets = malloc(n * sizeof(*work->offsets));
    work->entries = calloc(n, sizeof(*work->entries));
    if (!work->texts || !work->order || !work->offsets || !work->entries)
        return false;
    for (size_t i = 0; i < n; i++)
        work->order[i] = (wanted){offsets[i], i};
    qsort(work->order, n, sizeof(*work->order), by_offset);
    for (size_t i = 0; i < n; i++)
        work->offsets[i] = work->order[i].offset;
    return true;
}

static void end(work *work)
{
    if (work->has_lines)
        tare__dw_file_close(&work->lines);
    free(work->entries);
    free(work->offsets);
    free(work->order);
    tare__arena_free(work->texts);
}

static const char *shown(work *work, const char *name)
{
    if (work->mangled && strcmp(work->mangled, name) == 0)
        return work->demangled;
    work->mangled = name;
    work->demangled = tare__symbols_whole(work->texts, name);
    if (work->symbols->own)
        work->demangled = tare__symbols_demangle(&work->symbols->demangler, work->texts, work->demangled);
    return work->demangled;
}

/* Debug information of a C library has internal names (`__GI___qsort_r`), its symbol table the public one. That of C++
 * has no namespace in the names of what is local to a file; those of the symbol table are whole. */
static bool is_better_name(const tare__symbols_entry *entry, const char *than)
{
    if (!entry->found || !entry->sized || strncmp(than, "_Z", 2) == 0)
        return !*than && entry->found;
    return !*than || strncmp(entry->name, "_Z", 2) == 0 || strspn(entry->name, "_") < strspn(than, "_");
}

static void tell(work *work, size_t at, tare__symbols_sink *sink, void *context)
{
    tare__symbol chain[TARE__DW_CHAIN], line = {"", "", 0, false};
    const tare__symbols_entry *entry = &work->entries[at];
    size_t n = work->has_lines ? tare__dw_find(&work->lines, work->offsets[at], chain, &line) : 0;
    if (n && is_better_name(entry, chain[n - 1].name))
        chain[n - 1].name = entry->name;
    for (size_t i = 0; i < n; i++)
        chain[i].name = shown(work, chain[i].name);
    if (!n && (entry->found || line.line)) {
        chain[0] = line;
        chain[0].name = entry->found ? shown(work, entry->name) : "";
        n = 1;
    }
    sink(context, work->order[at].i, chain, n);
}

static int find_all(work *work, const file *object, const file *debug, tare__symbols_sink *sink, void *context)
{
    tare__symbols_table(&object->elf, work->texts, work->offsets, work->n, work->entries);
    if (debug->fd >= 0)
        tare__symbols_table(&debug->elf, work->texts, work->offsets, work->n, work->entries);
    const file *with_lines = has_lines(object) ? object : has_lines(debug) ? debug : NULL;
    if (with_lines && work->symbols->own && !tare__trust_file(with_lines->fd) && tare__dw_open(&work->symbols->dw))
        work->has_lines = tare__dw_file_open(&work->lines, &work->symbols->dw, with_lines->fd);
    for (size_t at = 0; at < work->n; at++)
        tell(work, at, sink, context);
    return 0;
}

int tare__symbols_find(tare__symbols *symbols, const char *path, const char *build_id, const uint64_t *offsets,
                       size_t n, tare__symbols_sink *sink, void *context, tare__error *error)
{
    file object = {.fd = -1}, debug = {.fd = -1};
    work work = {0};
    int status = open_object(symbols, path, build_id, &object, error);
    if (!status && n) {
        open_debug(build_id, &debug);
        status = begin(&work, symbols, offsets, n) ? find_all(&work, &object, &debug, sink, context)
                                                   : tare__no_memory(error);
        end(&work);
    }
    close_file(&debug);
    close_file(&object);
    return status;
}
