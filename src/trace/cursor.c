/* cursor: returns the blocks of a trace in file order, each verified. Damage is skipped and counted.
 * Owned by the calling thread.
 * Must not know what blocks mean, except which of them fill the tables. */
#define _GNU_SOURCE /* memmem */
#include <string.h>

#include "inner.h"
#include "tare.h"

#define HEADER_BYTES sizeof(tare__block_header)
#define SCAN_BYTES ((size_t)64 << 10)
#define NOT_FOUND UINT64_MAX
/* A crafted file can overlap damaged blocks so that each is checksummed repeatedly. Beyond this multiple of the file's
 * size, the length of a damaged block is trusted. */
#define WASTE_FACTOR 4

/* ---- resynchronising ----------------------------------------------------------------------------- */
/* Offset of the first valid header at or after `offset`, or NOT_FOUND. */
static int scan(tare__trace *trace, uint64_t offset, uint64_t *found, tare__error *error)
{
    static const uint32_t magic = TARE__BLOCK_MAGIC;
    *found = NOT_FOUND;
    while (offset < trace->size && trace->size - offset >= HEADER_BYTES) {
        const uint8_t *data;
        size_t got;
        offset = tare__file_data(trace->fd, offset); /* no header begins in a hole, which may be terabytes long */
        if (offset >= trace->size)
            break;
        int status = tare__trace_window(trace, offset, SCAN_BYTES, &data, &got, error);
        if (status || got < HEADER_BYTES)
            return status;
        const uint8_t *at = data, *end = data + got;
        while ((at = memmem(at, (size_t)(end - at), &magic, sizeof magic)) != NULL) {
            tare__block_header header;
            if ((size_t)(end - at) < HEADER_BYTES)
                break;
            memcpy(&header, at, HEADER_BYTES);
            if (!tare__block_header_check(&header)) {
                *found = offset + (uint64_t)(at - data);
                return 0;
            }
            at++;
        }
        offset += got - (HEADER_BYTES - 1); /* a header may cross the edge */
    }
    return 0;
}

static int header_at(tare__trace *trace, uint64_t offset, bool *right, tare__error *error)
{
    const uint8_t *data;
    size_t got;
    tare__block_header header;
    *right = false;
    int status = tare__trace_window(trace, offset, HEADER_BYTES, &data, &got, error);
    if (status || got < HEADER_BYTES)
        return status;
    memcpy(&header, data, HEADER_BYTES);
    *right = !tare__block_header_check(&header);
    return 0;
}

/* ---- damage counts -------------------------------------------------------------------------------- */
static void note_damage(tare__trace_damage *damage, uint64_t offset, uint64_t bytes, uint64_t spans)
{
    if (damage->blocks == 0 || offset < damage->first_offset)
        damage->first_offset = offset;
    damage->blocks++;
    damage->bytes += bytes;
    damage->spans += spans;
}

static void note_torn(tare__trace *trace)
{
    trace->damage.torn = true;
    trace->damage.torn_offset = trace->offset;
    trace->offset = trace->size;
}

void tare__trace_refuse(tare__trace *trace, const tare__trace_block *block)
{
    uint64_t bytes = HEADER_BYTES + (uint64_t)block->header.payload_bytes;
    note_damage(&trace->damage, block->offset, bytes, block->header.spans);
}

/* ---- damage found by the cursor -------------------------------------------------------------------- */
/* There is no header at this offset. If the previous block was skipped unverified, its length may be the cause. */
static int skip_headless(tare__trace *trace, tare__error *error)
{
    uint64_t found, from = trace->offset + 1;
    if (trace->unverified && trace->wasted_bytes < trace->size * WASTE_FACTOR) {
        from = trace->unverified;
        trace->wasted_bytes += trace->offset - from;
    }
    int status = scan(trace, from, &found, error);
    if (status)
        return status;
    if (found == NOT_FOUND)
        found = trace->size;
    trace->damage.headless++;
    note_damage(&trace->damage, trace->offset, found > trace->offset ? found - trace->offset : 0, 0);
    trace->offset = found;
    trace->unverified = 0;
    return 0;
}

/* The header states more bytes than the file has: the file ends here, or bytes are missing in the middle. */
static int skip_too_long(tare__trace *trace, const tare__block_header *header, tare__error *error)
{
    uint64_t found;
    int status = scan(trace, trace->offset + HEADER_BYTES, &found, error);
    if (status)
        return status;
    if (found == NOT_FOUND) {
        note_torn(trace);
        return 0;
    }
    note_damage(&trace->damage, trace->offset, found - trace->offset, header->spans);
    trace->offset = found;
    return 0;
}

static int skip_bad_payload(tare__trace *trace, const tare__block_header *header, tare__error *error)
{
    uint64_t next = trace->offset + HEADER_BYTES + header->payload_bytes;
    bool right = next == trace->size;
    int status = right ? 0 : header_at(trace, next, &right, error);
    if (status)
        return status;
    if (!right && trace->wasted_bytes < trace->size * WASTE_FACTOR) {
        trace->wasted_bytes += header->payload_bytes;
        uint64_t found;
        status = scan(trace, trace->offset + HEADER_BYTES, &found, error);
        if (status)
            return status;
        /* No block follows: the rest after this block may be a truncated block, to be reported as such. */
        if (found != NOT_FOUND && found < next)
            next = found;
    }
    note_damage(&trace->damage, trace->offset, next - trace->offset, header->spans);
    trace->offset = next;
    return 0;
}

/* ---- stepping ------------------------------------------------------------------------------------ */
static bool is_known(const tare__block_header *header)
{
    return header->kind >= TARE__BLOCK_RUN && header->kind <= TARE__BLOCK_SYMBOLS && header->flags == 0;
}

/* Examines the block at the cursor and moves past it. 1: *block can be returned; 0: it was something else. */
static int step(tare__trace *trace, tare__trace_block *block, tare__error *error)
{
    const uint8_t *data;
    size_t got;
    tare__block_header *header = &block->header;
    int status = tare__trace_window(trace, trace->offset, HEADER_BYTES, &data, &got, error);
    if (status)
        return status;
    if (got < HEADER_BYTES) {
        note_torn(trace);
        return 0;
    }
    memcpy(header, data, HEADER_BYTES);
    if (tare__block_header_check(header))
        return skip_headless(trace, error);
    if (header->payload_bytes > trace->size - trace->offset - HEADER_BYTES)
        return skip_too_long(trace, header, error);

    block->offset = trace->offset;
    if (!is_known(header) || (trace->scanning && !tare__trace_is_meta(header->kind))) {
        trace->damage.unknown += !is_known(header);
        block->payload = NULL;
        trace->unverified = trace->offset + HEADER_BYTES;
        trace->offset += HEADER_BYTES + (uint64_t)header->payload_bytes;
        return is_known(header);
    }
    size_t bytes = HEADER_BYTES + header->payload_bytes;
    status = tare__trace_window(trace, trace->offset, bytes, &data, &got, error);
    if (status)
        return status;
    if (got < bytes)
        return 0; /* the file was truncated just now: try again */
    block->payload = data + HEADER_BYTES;
    if (tare__crc32c(0, block->payload, header->payload_bytes) != header->payload_crc)
        return skip_bad_payload(trace, header, error);
    trace->unverified = 0;
    trace->offset += HEADER_BYTES + (uint64_t)header->payload_bytes;
    return 1;
}

static void note_time(tare__trace *trace, const tare__block_header *header)
{
    if (header->kind != TARE__BLOCK_EVENTS && header->kind != TARE__BLOCK_COMPLETE &&
        header->kind != TARE__BLOCK_SAMPLES && header->kind != TARE__BLOCK_STACK_SAMPLES)
        return;
    if (header->last_ticks > trace->damage.last_ticks)
        trace->damage.last_ticks = header->last_ticks;
    if (header->first_ticks < trace->first_ticks)
        trace->first_ticks = header->first_ticks;
}

int tare__trace_next(tare__trace *trace, tare__trace_block *block, tare__error *error)
{
    while (trace->offset < trace->size) {
        int status = step(trace, block, error);
        if (status < 0)
            return status;
        if (status == 0)
            continue;
        note_time(trace, &block->header);
        if (trace->prescanned || !block->payload)
            return 1;
        status = tare__trace_digest(trace, block);
        if (status == 0)
            return 1;
        if (status != TARE_E_INPUT)
            return tare__fail(error, status, "out of memory while reading %s", trace->path);
        tare__trace_refuse(trace, block);
        if (trace->scanning)
            note_damage(&trace->meta_damage, block->offset, HEADER_BYTES + block->header.payload_bytes, 0);
    }
    return 0;
}

int tare__trace_prescan(tare__trace *trace, tare__error *error)
{
    if (trace->prescanned)
        return 0;
    tare__trace_rewind(trace);
    trace->meta_damage = (tare__trace_damage){0};
    trace->scanning = true;
    tare__trace_block block;
    int status;
    do
        status = tare__trace_next(trace, &block, error);
    while (status > 0);
    trace->scanning = false;
    trace->prescanned = status == 0;
    tare__trace_rewind(trace);
    return status;
}

void tare__trace_rewind(tare__trace *trace)
{
    trace->offset = sizeof(tare__file_header);
    trace->unverified = 0;
    trace->wasted_bytes = 0;
    trace->damage = trace->meta_damage;
    trace->damage.file_header = trace->header_damaged;
}

const tare__trace_damage *tare__trace_damage_of(const tare__trace *trace)
{
    return &trace->damage;
}
