/* blocks: reads the blocks of a trace that is to be continued, in file order; damage is skipped and counted.
 * One thread. Changes nothing.
 * Must not know the content of the blocks. */
#define _GNU_SOURCE /* memmem */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collector.h"

#define HEADER_BYTES sizeof(tare__block_header)
#define SCAN_BYTES ((size_t)64 << 10)
#define NOT_FOUND UINT64_MAX
#define WASTE_FACTOR 4 /* multiple of the file's size: after this much repeated searching, lengths are trusted */

/* A read error is not damage: nothing is known about the rest. */
static bool read_at(tare__blocks *walk, void *into, size_t bytes, uint64_t at, size_t *got)
{
    int failure = walk->failure ? walk->failure : tare__pread_all(walk->fd, into, bytes, at, got);
    walk->failure = failure;
    return failure == 0;
}

static bool header_at(tare__blocks *walk, uint64_t at, tare__block_header *header)
{
    size_t got = 0;
    return at < walk->size && read_at(walk, header, HEADER_BYTES, at, &got) && got == HEADER_BYTES &&
           !tare__block_header_check(header);
}

/* The first valid header at or after `from`. */
static uint64_t find_header(tare__blocks *walk, uint64_t from)
{
    static const uint32_t magic = TARE__BLOCK_MAGIC;
    while (from < walk->size && walk->size - from >= HEADER_BYTES) {
        size_t got = 0;
        from = tare__file_data(walk->fd, from); /* no header begins in a hole, which may be terabytes long */
        if (from >= walk->size)
            break;
        if (!read_at(walk, walk->room, SCAN_BYTES, from, &got) || got < HEADER_BYTES)
            return NOT_FOUND;
        walk->searched += got;
        const uint8_t *at = walk->room, *end = walk->room + got;
        while ((at = memmem(at, (size_t)(end - at), &magic, sizeof magic)) != NULL) {
            tare__block_header header;
            if ((size_t)(end - at) < HEADER_BYTES)
                break;
            memcpy(&header, at, HEADER_BYTES);
            if (!tare__block_header_check(&header))
                return from + (uint64_t)(at - walk->room);
            at++;
        }
        from += got - (HEADER_BYTES - 1); /* a header may cross the boundary */
    }
    return NOT_FOUND;
}

static void skip(tare__blocks *walk, uint64_t to)
{
    walk->damaged_blocks++;
    walk->damaged_bytes += to - walk->at;
    walk->at = to;
}

static void skip_headless(tare__blocks *walk)
{
    uint64_t found = find_header(walk, walk->at + 1);
    skip(walk, found == NOT_FOUND ? walk->size : found);
}

/* A block truncated by the end of the file was being written when its writer was killed. */
static bool skip_too_long(tare__blocks *walk)
{
    uint64_t found = find_header(walk, walk->at + HEADER_BYTES);
    if (found == NOT_FOUND)
        return false;
    skip(walk, found);
    return true;
}

static void skip_bad_payload(tare__blocks *walk, uint32_t payload_bytes)
{
    uint64_t next = walk->at + HEADER_BYTES + payload_bytes;
    tare__block_header header;
    if (next != walk->size && !header_at(walk, next, &header) && walk->searched < walk->size * WASTE_FACTOR) {
        uint64_t found = find_header(walk, walk->at + HEADER_BYTES);
        if (found < next)
            next = found;
    }
    skip(walk, next);
}

int tare__blocks_open(tare__blocks *walk, int fd)
{
    struct stat about;
    *walk = (tare__blocks){.fd = fd, .at = sizeof(tare__file_header)};
    if (fstat(fd, &about) != 0)
        return TARE_E_SYSTEM;
    walk->size = (uint64_t)about.st_size;
    walk->room = malloc(TARE__BLOCK_PAYLOAD_MAX > SCAN_BYTES ? TARE__BLOCK_PAYLOAD_MAX : SCAN_BYTES);
    return walk->room ? 0 : TARE_E_MEMORY;
}

bool tare__blocks_next(tare__blocks *walk, tare__block_header *header)
{
    while (walk->at < walk->size && !walk->failure) {
        size_t got = 0;
        if (walk->size - walk->at < HEADER_BYTES)
            break;
        if (!header_at(walk, walk->at, header)) {
            skip_headless(walk);
            continue;
        }
        if (header->payload_bytes > walk->size - walk->at - HEADER_BYTES) {
            if (!skip_too_long(walk))
                break;
            continue;
        }
        if (!read_at(walk, walk->room, header->payload_bytes, walk->at + HEADER_BYTES, &got) ||
            got != header->payload_bytes ||
            tare__crc32c(0, walk->room, header->payload_bytes) != header->payload_crc) {
            skip_bad_payload(walk, header->payload_bytes);
            continue;
        }
        walk->at += HEADER_BYTES + header->payload_bytes;
        return true;
    }
    return false;
}

void tare__blocks_close(tare__blocks *walk)
{
    free(walk->room);
    walk->room = NULL;
}
