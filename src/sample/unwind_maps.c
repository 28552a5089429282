/* unwind_maps: the executable mappings of a process, and the object of each.
 * One thread owns them.
 * Must not use a file for a mapping of another file: names are reused by upgrades, and numbers by containers. */
#define _GNU_SOURCE
#include "unwind_inner.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TEXT_MAX (64u << 20)
#define MAPPINGS_MAX (1u << 17)

/* ---- /proc/PID/maps --------------------------------------------------------------------------------------- */
static char *read_all(int fd, size_t *bytes)
{
    char *text = NULL;
    size_t room = 0;
    *bytes = 0;
    for (;;) {
        if (*bytes >= TEXT_MAX || !tare__array_fit(&text, &room, *bytes + (64u << 10), 1))
            break;
        ssize_t got = read(fd, text + *bytes, room - *bytes - 1);
        if (got <= 0) {
            text[*bytes] = '\0';
            if (got == 0 && *bytes)
                return text;
            break;
        }
        *bytes += (size_t)got;
    }
    free(text);
    return NULL;
}

static uint64_t number(char **at, int base)
{
    char *end;
    uint64_t value = strtoull(*at, &end, base);
    *at = end + (*end != '\0');
    return value;
}

/* "start-end perms offset major:minor inode   path"; ends the path in place. False: it is not executable. */
static bool parse(char *line, tare__unwind_mapping *out)
{
    char *at = line;
    *out = (tare__unwind_mapping){0};
    out->start = number(&at, 16);
    out->end = number(&at, 16);
    if (strlen(at) < 5 || at[2] != 'x' || out->end <= out->start)
        return false;
    at += 5;
    out->offset = number(&at, 16);
    out->major = (uint32_t)number(&at, 16);
    out->minor = (uint32_t)number(&at, 16);
    out->inode = number(&at, 10);
    out->path = at + strspn(at, " ");
    out->vdso = strcmp(out->path, TARE__UNWIND_VDSO) == 0;
    return true;
}

static uint64_t hash_of(const tare__unwind_mapping *mapping, uint64_t hash)
{
    hash = tare__hash_mix(tare__hash_mix(hash, mapping->start), mapping->end);
    hash = tare__hash_mix(tare__hash_mix(hash, mapping->offset), mapping->inode);
    return tare__hash_mix(hash, (uint64_t)mapping->major << 32 | mapping->minor);
}

static bool add_lines(tare__unwind_maps *maps)
{
    size_t room = 0;
    for (char *line = maps->text, *end; *line; line = end) {
        end = strchrnul(line, '\n');
        if (*end)
            *end++ = '\0';
        if (maps->n >= MAPPINGS_MAX || !tare__array_fit(&maps->at, &room, maps->n + 1, sizeof(*maps->at)))
            return false;
        tare__unwind_mapping *next = &maps->at[maps->n];
        if (!parse(line, next) || (maps->n && next->start < maps->at[maps->n - 1].end))
            continue;
        maps->hash = hash_of(next, maps->hash);
        maps->n++;
    }
    return true;
}

/* What is known about mappings that are still there. */
static void carry_over(const tare__unwind_maps *old, tare__unwind_maps *fresh)
{
    for (size_t i = 0; i < fresh->n; i++) {
        tare__unwind_mapping *mapping = &fresh->at[i];
        const tare__unwind_mapping *before = tare__unwind_maps_find(old, mapping->start);
        if (!before || before->start != mapping->start || before->offset != mapping->offset ||
            before->inode != mapping->inode || before->major != mapping->major || before->minor != mapping->minor)
            continue;
        mapping->object = before->object;
        mapping->opened = before->opened;
    }
}

int tare__unwind_maps_read(pid_t pid, tare__unwind_maps *maps)
{
    char path[64];
    size_t bytes;
    tare__unwind_maps fresh = {.hash = 1};
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    fresh.text = read_all(fd, &bytes);
    close(fd);
    if (!fresh.text || !add_lines(&fresh)) {
        tare__unwind_maps_free(&fresh);
        return -1;
    }
    if (fresh.hash == maps->hash && fresh.n == maps->n) {
        tare__unwind_maps_free(&fresh);
        return 0;
    }
    carry_over(maps, &fresh);
    tare__unwind_maps_free(maps);
    *maps = fresh;
    return 1;
}

void tare__unwind_maps_free(tare__unwind_maps *maps)
{
    free(maps->at);
    free(maps->text);
    *maps = (tare__unwind_maps){0};
}

tare__unwind_mapping *tare__unwind_maps_find(const tare__unwind_maps *maps, uint64_t address)
{
    size_t low = 0, n = maps->n;
    if (!n)
        return NULL;
    while (n > 1) {
        size_t half = n / 2;
        low += maps->at[low + half].start <= address ? half : 0;
        n -= half;
    }
    tare__unwind_mapping *found = &maps->at[low];
    return address >= found->start && address < found->end ? found : NULL;
}

/* ---- the object of a mapping ------------------------------------------------------------------------------ */
/* Regular files only: the name may be one of anything by now. */
static int open_regular(const char *path)
{
    const char *is;
    int fd = tare__input_open(path, false, &is);
    return fd < 0 ? -1 : fd;
}

static bool is_numbered(int fd, const tare__unwind_mapping *mapping)
{
    struct stat about;
    return fstat(fd, &about) == 0 && about.st_ino == mapping->inode && major(about.st_dev) == mapping->major &&
           minor(about.st_dev) == mapping->minor;
}

/* The image in memory, where the first byte of a file with these parts would be. */
static bool image_at(pid_t pid, const tare__unwind_mapping *mapping, uint64_t base, tare__elf *out)
{
    uint64_t address;
    return tare__elf_memory(out, pid, base) && tare__elf_address_of(out, mapping->offset, &address) &&
           out->bias + address == mapping->start;
}

/* `file` NULL: it cannot be opened. */
static bool image_of(pid_t pid, const tare__unwind_mapping *mapping, const tare__elf *file, tare__elf *out)
{
    uint64_t address;
    if (file && tare__elf_address_of(file, mapping->offset, &address)) {
        for (size_t i = 0; i < file->n_parts; i++)
            if (file->parts[i].p_type == PT_LOAD && file->parts[i].p_offset == 0)
                return image_at(pid, mapping, mapping->start - address + file->parts[i].p_vaddr, out);
        return false;
    }
    /* Parts usually are as far from each other as in the file, or up to a few pages further. */
    for (uint64_t extra = 0; extra <= 16384; extra += 4096)
        if (mapping->start > mapping->offset + extra &&
            image_at(pid, mapping, mapping->start - mapping->offset - extra, out))
            return true;
    return false;
}

/* Whether the file is the one that is mapped. Its numbers say so, except on some file systems, where those in `maps`
 * are of a lower layer; what is in memory decides if it can be read. */
static bool is_same(pid_t pid, const tare__unwind_mapping *mapping, int fd, const tare__elf *file)
{
    tare__elf image;
    char in_file[TARE__ELF_ID_BYTES], in_memory[TARE__ELF_ID_BYTES];
    tare__elf_build_id(file, in_file);
    if (!*in_file || !image_of(pid, mapping, file, &image))
        return is_numbered(fd, mapping);
    tare__elf_build_id(&image, in_memory);
    return strcmp(in_file, in_memory) == 0;
}

/* Without the note of the kernel behind the name. */
static uint32_t object_of(tare__unwind *unwind, const tare__elf *elf, const tare__unwind_mapping *mapping)
{
    static const char note[] = " (deleted)";
    char path[PATH_MAX];
    int bytes = snprintf(path, sizeof(path), "%s", mapping->path);
    size_t n = bytes > 0 && (size_t)bytes < sizeof(path) ? (size_t)bytes : sizeof(path) - 1;
    if (n >= sizeof(note) && strcmp(path + n - (sizeof(note) - 1), note) == 0)
        path[n - (sizeof(note) - 1)] = '\0';
    return tare__unwind_object_of(unwind, elf, path);
}

static uint32_t try_file(tare__unwind *unwind, pid_t pid, const tare__unwind_mapping *mapping, const char *path)
{
    tare__elf elf;
    uint32_t object = 0;
    int fd = open_regular(path);
    if (fd < 0)
        return 0;
    if (tare__elf_file(&elf, fd) && is_same(pid, mapping, fd, &elf))
        object = object_of(unwind, &elf, mapping);
    close(fd);
    return object;
}

void tare__unwind_mapping_open(tare__unwind *unwind, pid_t pid, tare__unwind_mapping *mapping)
{
    char path[PATH_MAX + 64];
    tare__elf image;
    mapping->opened = true;
    if (mapping->path[0] != '/')
        return;
    /* By its addresses: also a file that was deleted or is in another mount namespace. Needs a capability. */
    snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, mapping->start, mapping->end);
    mapping->object = try_file(unwind, pid, mapping, path);
    if (!mapping->object) {
        snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, mapping->path);
        mapping->object = try_file(unwind, pid, mapping, path);
    }
    if (!mapping->object) { /* the program itself may be deleted and without a capability for map_files */
        snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
        mapping->object = try_file(unwind, pid, mapping, path);
    }
    /* A deleted library: its tables are in the memory of the process, and never change there. */
    if (!mapping->object && image_of(pid, mapping, NULL, &image))
        mapping->object = object_of(unwind, &image, mapping);
}
