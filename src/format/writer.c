/* writer: a trace file that grows by whole blocks, is readable at any time, and can drop its oldest part.
 * One thread. Must not know the content of blocks beyond their headers. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format.h"
#include "tare.h"

#define RESERVE_BYTES ((uint64_t)256 << 10)
#define RESERVE_LEAST ((uint64_t)64 << 10) /* minimum */

/* train.tare, train.2.tare, train.3.tare, … */
static void numbered(const char *path, unsigned number, char out[TARE__PATH_BYTES])
{
    size_t length = strlen(path);
    size_t stem = length > 5 && strcmp(path + length - 5, ".tare") == 0 ? length - 5 : length;
    snprintf(out, TARE__PATH_BYTES, "%.*s.%u%s", (int)stem, path, number, path + stem);
}

/* A name that does not exist yet, and the new file of that name; or -1 with errno. */
static int claim_name(const char *path, mode_t mode, char out[TARE__PATH_BYTES])
{
    for (unsigned number = 1; number < 100000; number++) {
        if (number == 1)
            snprintf(out, TARE__PATH_BYTES, "%s", path);
        else
            numbered(path, number, out);
        int fd = open(out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static int claim(tare__writer *writer, const char *path, tare__error *error)
{
    writer->fd = claim_name(path, writer->mode, writer->path);
    if (writer->fd >= 0)
        return 0;
    if (errno == EEXIST)
        return tare__fail(error, TARE_E_SYSTEM, "%s and 99,999 numbered ones are there already", path);
    return tare__fail(error, errno == ENOSPC ? TARE_E_SPACE : TARE_E_PERMISSION, "cannot write %s: %s", writer->path,
                      strerror(errno));
}

/* A new file, next to an existing one until tare__writer_settle replaces it: neither mode nor owner of the old file
 * is kept, and a link is not followed. */
static int take_over(tare__writer *writer, const char *path, tare__error *error)
{
    struct stat about;
    snprintf(writer->path, sizeof writer->path, "%s", path);
    if (lstat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISLNK(about.st_mode))
        return tare__fail(error, TARE_E_USAGE, "%s is not a regular file", path);
    writer->fd = tare__file_make(path, writer->mode, &writer->temporary);
    if (writer->fd < 0)
        return tare__fail(error, writer->fd == -ENOSPC ? TARE_E_SPACE : TARE_E_PERMISSION, "cannot write %s: %s",
                          path, strerror(-writer->fd));
    return 0;
}

int tare__writer_settle(tare__writer *writer)
{
    int failure = writer->temporary ? tare__file_put(writer->fd, writer->temporary, writer->path, false) : 0;
    free(writer->temporary);
    writer->temporary = NULL;
    if (failure && writer->problem[0] == '\0')
        snprintf(writer->problem, sizeof writer->problem, "cannot replace %.400s: %.80s", writer->path,
                 strerror(-failure));
    return failure ? TARE_E_SYSTEM : 0;
}

static bool same_file(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static bool has_name(int fd, const char *path)
{
    struct stat open_file, named;
    return fstat(fd, &open_file) == 0 && lstat(path, &named) == 0 && same_file(&open_file, &named);
}

void tare__writer_abandon(tare__writer *writer)
{
    if (writer->temporary)
        unlink(writer->temporary);
    else if (writer->fd >= 0 && has_name(writer->fd, writer->path))
        unlink(writer->path);
    free(writer->temporary);
    writer->temporary = NULL;
}

/* ---- a file whose name was taken while it was written ------------------------------------------------------ */

/* The current path of the open file, if it was only renamed. */
static bool find_renamed(int fd, char path[TARE__PATH_BYTES])
{
    char link[64], now[TARE__PATH_BYTES];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, now, sizeof now - 1);
    now[length > 0 ? length : 0] = '\0';
    if (length <= 0 || !has_name(fd, now))
        return false;
    strcpy(path, now);
    return true;
}

static int copy_file(int from, int to)
{
    char piece[8192];
    uint64_t offset = 0;
    for (size_t got = sizeof piece; got == sizeof piece; offset += got) {
        int failed = tare__pread_all(from, piece, sizeof piece, offset, &got);
        if (!failed)
            failed = tare__pwrite_all(to, piece, got, offset);
        if (failed)
            return failed;
    }
    return 0;
}

bool tare__file_keep(int *fd, char path[TARE__PATH_BYTES], mode_t mode, char *note, size_t room)
{
    char name[TARE__PATH_BYTES];
    struct stat there;
    if (has_name(*fd, path))
        return true;
    bool replaced = lstat(path, &there) == 0;
    const char *what = replaced ? "was replaced by another file" : "was removed";
    if (find_renamed(*fd, name)) {
        snprintf(note, room, "%.150s was renamed during the run: the trace of this run is %.150s", path, name);
        strcpy(path, name);
        return true;
    }
    int to = claim_name(path, mode, name), failed = to < 0 ? -errno : copy_file(*fd, to);
    if (failed) {
        if (to >= 0) {
            unlink(name);
            close(to);
        }
        snprintf(note, room, "%.200s %s during the run, and the trace could not be saved again: %.80s", path, what,
                 strerror(-failed));
        return false;
    }
    snprintf(note, room, "%.150s %s during the run: the trace of this run is saved as %.150s", path, what, name);
    strcpy(path, name);
    close(*fd);
    *fd = to;
    return true;
}

int tare__writer_create(tare__writer *writer, const char *path, bool overwrite, bool readable, tare__error *error)
{
    writer->fd = -1;
    writer->mode = readable ? 0666 : 0600;
    if (strlen(path) >= TARE__PATH_BYTES - 16)
        return tare__fail(error, TARE_E_USAGE, "the output's name is too long");
    int status = overwrite ? take_over(writer, path, error) : claim(writer, path, error);
    if (status)
        return status;
    tare__file_header header;
    tare__file_header_make(&header);
    int failed = tare__pwrite_all(writer->fd, &header, sizeof header, 0);
    if (failed) {
        tare__writer_abandon(writer);
        return tare__fail(error, TARE_E_SPACE, "cannot write %s: %s", writer->path, strerror(-failed));
    }
    writer->bytes = sizeof header;
    return 0;
}

int tare__writer_open(tare__writer *writer, const char *path, uint64_t bytes, tare__error *error)
{
    *writer = (tare__writer){.fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY), .bytes = bytes};
    if (writer->fd < 0)
        return tare__fail(error, TARE_E_PERMISSION, "cannot write %s: %s", path, strerror(errno));
    snprintf(writer->path, sizeof writer->path, "%s", path);
    return 0;
}

void tare__writer_cut(tare__writer *writer, uint64_t bytes)
{
    if (ftruncate(writer->fd, (off_t)bytes) == 0)
        writer->bytes = bytes;
    writer->reserved = 0;
}

static void note_entry(tare__writer *writer, const tare__block_header *header, uint64_t offset)
{
    if (!tare__array_fit(&writer->entries, &writer->entry_room, writer->entry_count + 1, sizeof *writer->entries))
        return; /* the block stays in the file permanently */
    writer->entries[writer->entry_count++] = (tare__block_entry){
        .offset = offset,
        .last_ticks = header->last_ticks,
        .bytes = (uint32_t)sizeof *header + header->payload_bytes,
        .spans = header->spans,
        .key = header->stream,
        .kind = header->kind,
    };
}

static bool is_events(uint16_t kind)
{
    return kind == TARE__BLOCK_EVENTS || kind == TARE__BLOCK_COMPLETE;
}

bool tare__writer_drops(uint16_t kind)
{
    return is_events(kind) || kind == TARE__BLOCK_SAMPLES || kind == TARE__BLOCK_STACK_SAMPLES;
}

static void account(tare__writer *writer, const tare__text *blocks, bool written)
{
    for (size_t at = 0; at + sizeof(tare__block_header) <= blocks->length;) {
        tare__block_header header;
        memcpy(&header, blocks->data + at, sizeof header);
        if (is_events(header.kind)) {
            if (written) {
                writer->spans += header.spans;
                writer->last_block = writer->bytes + at;
            } else {
                writer->lost_spans += header.spans;
            }
        }
        if (written && writer->rotates)
            note_entry(writer, &header, writer->bytes + at);
        at += sizeof header + header.payload_bytes;
    }
}

/* The file stays below its limit at all times, including the copy of what is kept: it grows to two thirds and is cut
 * to one. Tables of stacks cannot be dropped, and may become large: what they take is taken from the rest. If that is
 * too little, the file is longer than its limit, but is not copied for every block. */
static void make_room(tare__writer *writer, size_t bytes)
{
    uint64_t max = writer->max_bytes, tables = 0, dropped = 0;
    if (!max || writer->bytes + bytes <= max / 3 * 2)
        return;
    for (size_t i = 0; i < writer->entry_count; i++) {
        const tare__block_entry *entry = &writer->entries[i];
        tables += entry->kind == TARE__BLOCK_STACKS || entry->kind == TARE__BLOCK_SYMBOLS ? entry->bytes : 0;
        dropped += tare__writer_drops(entry->kind) ? entry->bytes : 0;
    }
    uint64_t keep = max / 3 - max / 64; /* the rest: what cannot be dropped */
    uint64_t least = max / 16;
    keep = tables < keep - least ? keep - tables : least;
    if (keep > least || dropped > 2 * least)
        tare__writer_compact(writer, 0, keep);
}

static bool any_dropped(const tare__text *blocks)
{
    for (size_t at = 0; at + sizeof(tare__block_header) <= blocks->length;) {
        tare__block_header header;
        memcpy(&header, blocks->data + at, sizeof header);
        if (tare__writer_drops(header.kind))
            return true;
        at += sizeof header + header.payload_bytes;
    }
    return false;
}

static bool reserve(tare__writer *writer, uint64_t bytes)
{
    if (fallocate(writer->fd, FALLOC_FL_KEEP_SIZE, (off_t)writer->bytes, (off_t)bytes) != 0)
        return false;
    writer->reserved = writer->bytes + bytes;
    return true;
}

/* Space for the last blocks is reserved after the end of the file, so that they can be written when the disk fills
 * up: events and samples stop before it is used. 0, or -ENOSPC or the like; if space cannot be reserved, nothing is. */
static int keep_reserve(tare__writer *writer, const tare__text *blocks)
{
    if (writer->reserved >= writer->bytes + blocks->length + RESERVE_LEAST ||
        reserve(writer, blocks->length + RESERVE_BYTES) || reserve(writer, blocks->length + RESERVE_LEAST) ||
        !any_dropped(blocks))
        return 0;
    return errno == ENOSPC || errno == EDQUOT ? -errno : 0;
}

int tare__writer_append(tare__writer *writer, const tare__text *blocks)
{
    if (blocks->failed && writer->problem[0] == '\0')
        snprintf(writer->problem, sizeof writer->problem, "%.400s: out of memory", writer->path);
    if (blocks->failed || blocks->length == 0)
        return blocks->failed ? TARE_E_MEMORY : 0;
    make_room(writer, blocks->length);
    int failed = writer->last_words ? 0 : keep_reserve(writer, blocks);
    bool touched = !failed;
    if (!failed)
        failed = tare__pwrite_all(writer->fd, blocks->data, blocks->length, writer->bytes);
    if (failed) {
        /* A partial block would be a damaged end. This also releases the reserved space. */
        if (touched && ftruncate(writer->fd, (off_t)writer->bytes) != 0)
            failed = -errno;
        account(writer, blocks, false);
        if (writer->problem[0] == '\0')
            snprintf(writer->problem, sizeof writer->problem, "%.400s: %.100s", writer->path, strerror(-failed));
        return failed == -ENOSPC || failed == -EDQUOT ? TARE_E_SPACE : TARE_E_SYSTEM;
    }
    account(writer, blocks, true);
    writer->bytes += blocks->length;
    return 0;
}

void tare__writer_drop_last(tare__writer *writer)
{
    tare__block_header header;
    size_t got = 0;
    if (tare__pread_all(writer->fd, &header, sizeof header, writer->last_block, &got) != 0 || got != sizeof header ||
        ftruncate(writer->fd, (off_t)writer->last_block) != 0)
        return;
    writer->bytes = writer->last_block;
    writer->last_block = 0;
    writer->lost_spans += header.spans;
    writer->spans -= header.spans < writer->spans ? header.spans : writer->spans;
}

/* ---- dropping the oldest ----------------------------------------------------------------------------------- */

static int copy_block(tare__writer *writer, int to, const tare__block_entry *entry, uint64_t offset)
{
    char piece[65536];
    for (uint32_t done = 0; done < entry->bytes;) {
        uint32_t bytes = entry->bytes - done < sizeof piece ? entry->bytes - done : (uint32_t)sizeof piece;
        size_t got = 0;
        int failed = tare__pread_all(writer->fd, piece, bytes, entry->offset + done, &got);
        if (failed || got != bytes)
            return failed ? failed : -EIO;
        failed = tare__pwrite_all(to, piece, bytes, offset + done);
        if (failed)
            return failed;
        done += bytes;
    }
    return 0;
}

static bool can_be_replaced(uint16_t kind)
{
    return kind == TARE__BLOCK_PROCESS || kind == TARE__BLOCK_STREAM || kind == TARE__BLOCK_AGGREGATES;
}

TARE__SAME(is_of, tare__block_entry, TARE__EQUAL(kind) && TARE__EQUAL(key))

/* Marks blocks that a later one of the same kind and key replaces: from the end, by those already seen. If memory
 * for that is unavailable, fewer are marked, and the file is only longer. */
static bool *find_replaced(const tare__writer *writer)
{
    tare__index seen = {0};
    bool *replaced = calloc(writer->entry_count + 1, sizeof *replaced);
    for (size_t i = writer->entry_count; i-- > 0 && replaced;) {
        const tare__block_entry *entry = &writer->entries[i];
        if (!can_be_replaced(entry->kind))
            continue;
        uint32_t hash = (uint32_t)tare__hash_mix(entry->kind, entry->key);
        replaced[i] = tare__index_find(&seen, hash, is_of, writer->entries, entry) != TARE__INDEX_NONE;
        if (!replaced[i] && !tare__index_add(&seen, hash, (uint32_t)i))
            break;
    }
    tare__index_free(&seen);
    return replaced;
}

/* The index from which on events and samples fit into `keep_bytes`. */
static size_t first_that_fits(const tare__writer *writer, uint64_t keep_bytes)
{
    if (keep_bytes == 0)
        return 0;
    uint64_t sum = 0;
    for (size_t i = writer->entry_count; i > 0; i--) {
        if (!tare__writer_drops(writer->entries[i - 1].kind))
            continue;
        sum += writer->entries[i - 1].bytes;
        if (sum > keep_bytes)
            return i;
    }
    return 0;
}

int tare__writer_compact(tare__writer *writer, uint64_t before_ticks, uint64_t keep_bytes)
{
    size_t first = first_that_fits(writer, keep_bytes);
    uint64_t taken_out = 0;
    for (size_t i = 0; i < writer->entry_count; i++)
        taken_out += tare__writer_drops(writer->entries[i].kind) &&
                     (i < first || writer->entries[i].last_ticks < before_ticks);
    if (taken_out == 0)
        return 0;
    char *name = NULL;
    if (writer->temporary ||
        !tare__file_keep(&writer->fd, writer->path, writer->mode, writer->moved, sizeof writer->moved))
        return TARE_E_SYSTEM; /* no file of another run is moved */
    int to = tare__file_make(writer->path, writer->mode, &name);
    if (to < 0)
        return TARE_E_SYSTEM;
    tare__file_header header;
    tare__file_header_make(&header);
    int failed = tare__pwrite_all(to, &header, sizeof header, 0);
    uint64_t offset = sizeof header, rotated = 0, before = writer->rotated_before;
    size_t kept = 0;
    bool *replaced = find_replaced(writer);
    tare__block_entry *entries = malloc((writer->entry_count + 1) * sizeof *entries);
    for (size_t i = 0; i < writer->entry_count && !failed && entries; i++) {
        const tare__block_entry *entry = &writer->entries[i];
        if (tare__writer_drops(entry->kind) && (i < first || entry->last_ticks < before_ticks)) {
            rotated += entry->spans;
            if (entry->last_ticks > before)
                before = entry->last_ticks;
            continue;
        }
        if (replaced && replaced[i])
            continue;
        failed = copy_block(writer, to, entry, offset);
        entries[kept] = *entry;
        entries[kept++].offset = offset;
        offset += entry->bytes;
    }
    free(replaced);
    bool written = !failed && entries;
    if (!written)
        unlink(name);
    if (!written || tare__file_put(to, name, writer->path, false) != 0) {
        close(to);
        free(name);
        free(entries);
        return TARE_E_SYSTEM;
    }
    free(name);
    close(writer->fd);
    free(writer->entries);
    writer->fd = to;
    writer->reserved = 0;
    writer->entries = entries;
    writer->entry_room = writer->entry_count + 1;
    writer->entry_count = kept;
    writer->bytes = offset;
    writer->last_block = 0;
    writer->spans -= rotated < writer->spans ? rotated : writer->spans;
    writer->rotated_spans += rotated;
    writer->rotated_before = before;
    return 0;
}

void tare__writer_close(tare__writer *writer)
{
    if (writer->fd >= 0) {
        if (writer->reserved && ftruncate(writer->fd, (off_t)writer->bytes) != 0)
            writer->reserved = 0; /* the file is only larger than needed */
        close(writer->fd);
    }
    writer->fd = -1;
    free(writer->temporary);
    writer->temporary = NULL;
    free(writer->entries);
    writer->entries = NULL;
}
