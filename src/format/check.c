/* check: creates and validates headers. Pure functions; any thread.
 * Must not know where the bytes come from. */
#include <stddef.h>
#include <string.h>

#include "format.h"

void tare__file_header_make(tare__file_header *header)
{
    memset(header, 0, sizeof *header);
    memcpy(header->magic, TARE__FILE_MAGIC, sizeof header->magic);
    header->major = TARE__FILE_MAJOR;
    header->minor = TARE__FILE_MINOR;
    header->crc = tare__crc32c(0, header, offsetof(tare__file_header, crc));
}

void tare__block_header_seal(tare__block_header *header, const void *payload)
{
    header->magic = TARE__BLOCK_MAGIC;
    header->payload_crc = tare__crc32c(0, payload, header->payload_bytes);
    header->header_crc = tare__crc32c(0, header, offsetof(tare__block_header, header_crc));
}

const char *tare__block_header_check(const tare__block_header *header)
{
    if (header->magic != TARE__BLOCK_MAGIC)
        return "no block starts here";
    if (header->header_crc != tare__crc32c(0, header, offsetof(tare__block_header, header_crc)))
        return "the block's header is damaged";
    if (header->payload_bytes > TARE__BLOCK_PAYLOAD_MAX)
        return "the block is larger than any writer makes one";
    return NULL;
}

const char *tare__session_check(const tare__session_page *page, uint64_t file_bytes)
{
    if (file_bytes < sizeof *page || memcmp(page->magic, TARE__SESSION_MAGIC, sizeof page->magic) != 0)
        return "not a session of Tare";
    if (page->abi != TARE__RING_ABI || page->bytes != sizeof *page)
        return "a session of another version of Tare";
    if (page->clock != TARE__CLOCK_TSC && page->clock != TARE__CLOCK_MONOTONIC)
        return "a session with an unknown clock";
    return NULL;
}

const char *tare__ring_check(const tare__ring *ring, uint64_t file_bytes)
{
    if (file_bytes < sizeof *ring || memcmp(ring->magic, TARE__RING_MAGIC, sizeof ring->magic) != 0)
        return "not a ring of Tare";
    if (ring->abi != TARE__RING_ABI || ring->header_bytes != sizeof *ring)
        return "its libtare is of another version";
    uint32_t chunks = ring->chunk_count;
    if (ring->chunks_offset % TARE__CHUNK_BYTES || ring->names_offset < sizeof *ring ||
        ring->names_offset > ring->chunks_offset ||
        ring->chunks_offset - ring->names_offset < TARE__NAMES_BYTES || ring->chunks_offset > file_bytes ||
        chunks > TARE__RING_CHUNKS_MAX ||
        (uint64_t)chunks * TARE__CHUNK_BYTES > file_bytes - ring->chunks_offset)
        return "its ring does not hold what it says";
    return NULL;
}
