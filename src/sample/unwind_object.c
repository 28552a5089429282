/* unwind_object: objects with their unwind tables. Only the search table is read when an object is first used; a
 * function is compiled when an address in it is first looked for, since a stack has few of the functions of a library.
 * One thread owns them.
 * Must not trust any file; must not map it (a file that is truncated while it is mapped is a SIGBUS). */
#define _GNU_SOURCE
#include "unwind_inner.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_SMALL (1u << 20)  /* .eh_frame up to this size is copied; of larger ones the file stays open */
#define COPY_MAX (64u << 20)
#define ENTRIES_MAX (8u << 20)
#define OBJECTS_MAX (1u << 16)
#define FUNCTIONS_MAX (4u << 20) /* compiled, of an object */
#define ROWS_MAX (16u << 20)     /* of all objects */
#define OPEN_MAX 64u

/* ---- bytes of .eh_frame ----------------------------------------------------------------------------------- */
static bool is_unchanged(const tare__unwind_table *table)
{
    struct stat about;
    return fstat(table->fd, &about) == 0 && (uint64_t)about.st_size == table->elf->bytes &&
           about.st_mtim.tv_sec == table->changed_s && about.st_mtim.tv_nsec == table->changed_ns;
}

static size_t table_bytes(void *context, uint64_t address, void *out, size_t bytes)
{
    const tare__unwind_table *table = context;
    if (!table->frames)
        return table->elf ? tare__elf_read_some(table->elf, address, out, bytes) : 0;
    if (address < table->frames_at || address - table->frames_at >= table->frames_bytes)
        return 0;
    uint64_t at = address - table->frames_at, left = table->frames_bytes - at;
    size_t take = bytes < left ? bytes : (size_t)left;
    memcpy(out, table->frames + at, take);
    return take;
}

static bool copy_frames(tare__unwind_table *table, const tare__elf *elf, uint64_t address, uint64_t bytes)
{
    size_t take = bytes < COPY_MAX ? (size_t)bytes : COPY_MAX;
    table->frames = take ? malloc(take) : NULL;
    table->frames_at = address;
    table->frames_bytes = table->frames ? tare__elf_read_some(elf, address, table->frames, take) : 0;
    return table->frames_bytes > 0;
}

static bool keep_file(tare__unwind_table *table, const tare__elf *elf)
{
    struct stat about;
    table->elf = malloc(sizeof(*table->elf));
    table->fd = table->elf ? fcntl(elf->fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (table->fd < 0 || fstat(table->fd, &about) != 0)
        return false;
    *table->elf = *elf;
    table->elf->fd = table->fd;
    table->changed_s = about.st_mtim.tv_sec;
    table->changed_ns = about.st_mtim.tv_nsec;
    return true;
}

/* ---- the search table ------------------------------------------------------------------------------------- */
typedef struct search { /* what .eh_frame_hdr says */
    uint64_t frames, n, entries; /* addresses; n 0: no table that can be used */
} search;

static bool read_search(const tare__elf *elf, uint64_t address, search *out)
{
    unsigned char start[64];
    size_t got = tare__elf_read_some(elf, address, start, sizeof(start));
    *out = (search){0};
    if (got < 4 || start[0] != 1)
        return false;
    tare__unwind_bytes bytes = {start + 4, start + got, address + 4};
    if (start[1] == TARE__UNWIND_ENCODING_NONE || !tare__unwind_pointer(&bytes, start[1], address, &out->frames))
        return false;
    /* Nearly always 4 bytes relative to the section: then the table can be used as it is. */
    if (start[2] != TARE__UNWIND_ENCODING_NONE && tare__unwind_pointer(&bytes, start[2], address, &out->n) &&
        start[3] == 0x3b && out->n <= ENTRIES_MAX &&
        out->n <= tare__elf_left(elf, bytes.address) / sizeof(tare__unwind_entry))
        out->entries = bytes.address;
    else
        out->n = 0;
    return true;
}

static bool use_search(tare__unwind_table *table, const tare__elf *elf, uint64_t address, const search *search)
{
    if (!search->n)
        return false;
    size_t n = search->n;
    table->entries = malloc(n * sizeof(*table->entries));
    bool sorted = table->entries && tare__elf_read(elf, search->entries, table->entries, n * sizeof(*table->entries));
    for (size_t i = 1; sorted && i < n; i++)
        sorted = table->entries[i - 1].start <= table->entries[i].start;
    table->base = address;
    table->n_entries = sorted ? n : 0;
    if (sorted)
        return true;
    free(table->entries);
    table->entries = NULL;
    return false;
}

TARE__ORDER(by_start, tare__unwind_entry, TARE__RISING(start) TARE__RISING(fde))

/* All FDEs in `frames`, one after another. */
static bool make_entries(tare__unwind_table *table)
{
    size_t room = 0;
    uint64_t start, length, next;
    table->base = table->frames_at;
    for (uint64_t at = table->frames_at; at - table->frames_at < table->frames_bytes; at = next) {
        bool is = tare__unwind_range(table_bytes, table, at, &start, &length, &next);
        int64_t from = (int64_t)(start - table->base), fde = (int64_t)(at - table->base);
        if (is && from == (int32_t)from && fde == (int32_t)fde) {
            if (table->n_entries >= ENTRIES_MAX ||
                !tare__array_fit(&table->entries, &room, table->n_entries + 1, sizeof(*table->entries)))
                return false;
            table->entries[table->n_entries++] = (tare__unwind_entry){(int32_t)from, (int32_t)fde};
        }
        if (next <= at)
            break;
    }
    if (table->n_entries)
        qsort(table->entries, table->n_entries, sizeof(*table->entries), by_start);
    return table->n_entries > 0;
}

/* For files without .eh_frame_hdr (static programs of some linkers). */
static bool find_section(const tare__elf *elf, uint64_t *address, uint64_t *bytes)
{
    tare__elf_sections sections;
    if (!tare__elf_sections_read(elf, &sections))
        return false;
    const Elf64_Shdr *section = tare__elf_section(&sections, ".eh_frame");
    if (section) {
        *address = section->sh_addr;
        *bytes = section->sh_size;
    }
    tare__elf_sections_free(&sections);
    return section != NULL;
}

static bool open_table(tare__unwind_table *table, const tare__elf *elf, bool keep)
{
    const Elf64_Phdr *part = tare__elf_part(elf, PT_GNU_EH_FRAME);
    search search;
    uint64_t address, bytes;
    if (part && read_search(elf, part->p_vaddr, &search)) {
        bytes = tare__elf_left(elf, search.frames);
        if (use_search(table, elf, part->p_vaddr, &search))
            return (keep && bytes > COPY_SMALL && keep_file(table, elf)) ||
                   copy_frames(table, elf, search.frames, bytes);
        return copy_frames(table, elf, search.frames, bytes) && make_entries(table);
    }
    return find_section(elf, &address, &bytes) && copy_frames(table, elf, address, bytes) && make_entries(table);
}

bool tare__unwind_table_open(tare__unwind_table *table, const tare__elf *elf, bool keep)
{
    *table = (tare__unwind_table){.fd = -1};
    if (open_table(table, elf, keep && elf->fd >= 0))
        return true;
    tare__unwind_table_close(table);
    return false;
}

void tare__unwind_table_close(tare__unwind_table *table)
{
    if (table->fd >= 0)
        close(table->fd);
    free(table->elf);
    free(table->frames);
    free(table->entries);
    free(table->functions);
    tare__index_free(&table->by_fde);
    *table = (tare__unwind_table){.fd = -1};
}

/* ---- rows ------------------------------------------------------------------------------------------------- */
TARE__KEYED(is_fde, tare__unwind_function, uint64_t, a->fde == *b)

const tare__unwind_function *tare__unwind_table_compile(tare__unwind *unwind, tare__unwind_table *table, size_t entry)
{
    uint64_t fde = table->base + (uint64_t)(int64_t)table->entries[entry].fde;
    uint32_t hash = (uint32_t)tare__hash_mix(0, fde);
    uint32_t known = tare__index_find(&table->by_fde, hash, is_fde, table->functions, &fde);
    if (known == TARE__INDEX_NONE) {
        if (table->n_functions >= FUNCTIONS_MAX || unwind->rows.n >= ROWS_MAX ||
            (table->fd >= 0 && !is_unchanged(table)) ||
            !tare__array_fit(&table->functions, &table->functions_room, table->n_functions + 1,
                             sizeof(*table->functions)))
            return NULL;
        tare__unwind_function *made = &table->functions[table->n_functions];
        if (!tare__unwind_compile(table_bytes, table, fde, &unwind->rules, &unwind->rows, made))
            made->n_rows = 0; /* is not tried again */
        if (!tare__index_add(&table->by_fde, hash, (uint32_t)table->n_functions))
            return NULL;
        known = (uint32_t)table->n_functions++;
    }
    const tare__unwind_function *function = &table->functions[known];
    return function->n_rows ? function : NULL;
}

/* The last row that starts at `at` or before. The first one starts at 0. */
static uint32_t rule_in(const tare__unwind_row *rows, uint32_t n, uint32_t at)
{
    uint32_t low = 0;
    while (n > 1) {
        uint32_t half = n / 2;
        low += rows[low + half].start <= at ? half : 0;
        n -= half;
    }
    return rows[low].rule;
}

/* The last entry that starts at the address or before. False: there is none. */
static bool find_entry(const tare__unwind_table *table, uint64_t address, size_t *entry)
{
    int64_t wanted = (int64_t)(address - table->base);
    size_t low = 0, n = table->n_entries;
    if (!n || wanted != (int32_t)wanted || table->entries[0].start > wanted)
        return false;
    while (n > 1) {
        size_t half = n / 2;
        low += table->entries[low + half].start <= wanted ? half : 0;
        n -= half;
    }
    *entry = low;
    return true;
}

static bool is_in(const tare__unwind_function *function, uint64_t address)
{
    return address >= function->start && address - function->start < function->length;
}

const tare__unwind_rule *tare__unwind_table_find(tare__unwind *unwind, tare__unwind_table *table, uint64_t address,
                                                 bool *has)
{
    size_t entry;
    *has = false;
    if (!find_entry(table, address, &entry))
        return NULL;
    const tare__unwind_function *function = tare__unwind_table_compile(unwind, table, entry);
    *has = !function || is_in(function, address);
    if (!function || !*has)
        return NULL;
    return tare__unwind_rule_at(&unwind->rules, rule_in(unwind->rows.at + function->first_row, function->n_rows,
                                                        (uint32_t)(address - function->start)));
}

bool tare__unwind_table_begin(tare__unwind *unwind, tare__unwind_table *table, uint64_t address, uint64_t *start)
{
    size_t entry;
    *start = 0;
    const tare__unwind_function *function =
        find_entry(table, address, &entry) ? tare__unwind_table_compile(unwind, table, entry) : NULL;
    if (!function)
        return false;
    *start = is_in(function, address) ? function->start : function->start + function->length;
    return is_in(function, address);
}

/* ---- objects ---------------------------------------------------------------------------------------------- */
tare__unwind *tare__unwind_new(void)
{
    tare__unwind *unwind = calloc(1, sizeof(*unwind));
    if (!unwind)
        return NULL;
#ifdef __aarch64__
    unwind->cpu = &tare__unwind_aarch64;
#else
    unwind->cpu = &tare__unwind_x86_64;
#endif
    unwind->texts = tare__arena_new();
    if (tare__unwind_rules_new(&unwind->rules) && unwind->texts)
        return unwind;
    tare__unwind_free(unwind);
    return NULL;
}

void tare__unwind_free(tare__unwind *unwind)
{
    if (!unwind)
        return;
    for (size_t i = 0; i < unwind->n_files; i++) {
        tare__unwind_table_close(&unwind->files[i]->table);
        free(unwind->files[i]->parts);
        free(unwind->files[i]);
    }
    free(unwind->files);
    free(unwind->aliases);
    tare__index_free(&unwind->by_file);
    tare__index_free(&unwind->by_id);
    free(unwind->rows.at);
    tare__unwind_rules_free(&unwind->rules);
    tare__arena_free(unwind->texts);
    free(unwind);
}

tare__unwind_file *tare__unwind_file_at(const tare__unwind *unwind, uint32_t object)
{
    return object && object <= unwind->n_files ? unwind->files[object - 1] : NULL;
}

const tare__unwind_object *tare__unwind_object_at(const tare__unwind *unwind, uint32_t object)
{
    const tare__unwind_file *file = tare__unwind_file_at(unwind, object);
    return file ? &file->shown : NULL;
}

static bool keep_parts(tare__unwind_file *file, const tare__elf *elf)
{
    file->parts = malloc(elf->n_parts * sizeof(*file->parts));
    for (size_t i = 0; file->parts && i < elf->n_parts; i++)
        if (elf->parts[i].p_type == PT_LOAD && elf->parts[i].p_flags & PF_X)
            file->parts[file->n_parts++] = elf->parts[i];
    return file->parts != NULL;
}

static uint32_t hash_text(const char *text)
{
    uint64_t hash = 0;
    for (; *text; text++)
        hash = tare__hash_mix(hash, (unsigned char)*text);
    return (uint32_t)hash;
}

static bool has_id(const void *rows, uint32_t row, const void *key)
{
    return strcmp(((tare__unwind_file *const *)rows)[row]->shown.build_id, key) == 0;
}

static uint32_t add_file(tare__unwind *unwind, const tare__elf *elf, const char *path, const char *id)
{
    if (unwind->n_files >= OBJECTS_MAX ||
        !tare__array_fit(&unwind->files, &unwind->files_room, unwind->n_files + 1, sizeof(*unwind->files)))
        return 0;
    tare__unwind_file *file = calloc(1, sizeof(*file));
    if (!file)
        return 0;
    file->shown.path = tare__arena_copy(unwind->texts, path, strlen(path));
    file->shown.build_id = tare__arena_copy(unwind->texts, id, strlen(id));
    file->machine = elf->header.e_machine;
    file->table.fd = -1;
    if (!file->shown.path || !file->shown.build_id || !keep_parts(file, elf) ||
        (*id && !tare__index_add(&unwind->by_id, hash_text(id), (uint32_t)unwind->n_files))) {
        free(file->parts);
        free(file);
        return 0;
    }
    file->usable = file->machine == unwind->cpu->machine &&
                   tare__unwind_table_open(&file->table, elf, unwind->open_files < OPEN_MAX);
    unwind->open_files += file->usable && file->table.fd >= 0;
    unwind->files[unwind->n_files] = file;
    return (uint32_t)++unwind->n_files;
}

TARE__SAME(is_file, tare__unwind_alias, TARE__EQUAL(device) && TARE__EQUAL(inode) && TARE__EQUAL(bytes) &&
                                            TARE__EQUAL(changed_s) && TARE__EQUAL(changed_ns))

static uint32_t object_by_id(tare__unwind *unwind, const tare__elf *elf, const char *path)
{
    char id[TARE__ELF_ID_BYTES];
    tare__elf_build_id(elf, id);
    uint32_t known = *id ? tare__index_find(&unwind->by_id, hash_text(id), has_id, unwind->files, id)
                         : TARE__INDEX_NONE;
    return known != TARE__INDEX_NONE ? known + 1 : add_file(unwind, elf, path, id);
}

uint32_t tare__unwind_object_of(tare__unwind *unwind, const tare__elf *elf, const char *path)
{
    struct stat about;
    if (elf->fd < 0)
        return object_by_id(unwind, elf, path);
    if (fstat(elf->fd, &about) != 0)
        return 0;
    tare__unwind_alias wanted = {.device = about.st_dev, .inode = about.st_ino, .bytes = (uint64_t)about.st_size,
                                 .changed_s = about.st_mtim.tv_sec, .changed_ns = about.st_mtim.tv_nsec};
    uint64_t hash = tare__hash_mix(tare__hash_mix(wanted.inode, wanted.device), (uint64_t)wanted.changed_ns);
    uint32_t known = tare__index_find(&unwind->by_file, (uint32_t)hash, is_file, unwind->aliases, &wanted);
    if (known != TARE__INDEX_NONE)
        return unwind->aliases[known].object;
    wanted.object = object_by_id(unwind, elf, path);
    if (wanted.object && unwind->n_aliases < UINT32_MAX - 1 &&
        tare__array_fit(&unwind->aliases, &unwind->aliases_room, unwind->n_aliases + 1, sizeof(*unwind->aliases)) &&
        tare__index_add(&unwind->by_file, (uint32_t)hash, (uint32_t)unwind->n_aliases))
        unwind->aliases[unwind->n_aliases++] = wanted;
    return wanted.object;
}
