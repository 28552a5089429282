/* stack_samples: encodes samples of threads as columns, and decodes them. Most samples differ from the previous one of
 * their thread in time only: a byte says which columns have a value.
 * Owned by the calling thread.
 * Must not know the tables that the numbers refer to. */
#include <string.h>

#include "stacks_inner.h"
#include "tare.h"

enum { PARTS, TIME, THREAD, STACK, STATE, FLAGS, WALL, CPU, QUEUE, COLUMNS };
/* Columns whose values are unordered. */
#define SCATTERED (1u << TIME | 1u << WALL | 1u << CPU | 1u << QUEUE)

/* Bits in PARTS: without it, the value is the one in brackets. */
#define HAS_STACK 1u /* [that of the thread's previous sample] */
#define HAS_STATE 2u /* state and flags [those of the thread's previous sample] */
#define HAS_WALL 4u  /* [as expected from the ticks] */
#define HAS_CPU 8u   /* [0] */
#define HAS_QUEUE 16u /* [0] */
#define HAS_ALL 31u

#define RATE_BITS 32u
#define RATE_MAX (UINT64_C(1) << 40)

__extension__ typedef unsigned __int128 uint128;

/* For each thread, the index of its last sample + 1; 0: none yet. */
typedef uint16_t last_of[TARE__STACK_THREADS_MAX + 1];
_Static_assert(TARE__STACK_SAMPLES_MAX < UINT16_MAX, "an index fits");

static const tare__stack_sample *previous(const tare__stack_sample *samples, const uint16_t *last, uint32_t thread)
{
    static const tare__stack_sample none;
    return last[thread] ? &samples[last[thread] - 1] : &none;
}

/* The wall time that is expected from the ticks since the thread's previous sample; 0 for the first. */
static uint64_t expected_ns(const tare__stack_sample *before, uint64_t ticks, uint64_t rate)
{
    return before->thread ? (uint64_t)((uint128)(ticks - before->ticks) * rate >> RATE_BITS) : 0;
}

/* ---- encoding ---------------------------------------------------------------------------------------------- */
/* Nanoseconds per tick times 2^RATE_BITS, over all samples. */
static uint64_t find_rate(const tare__stack_sample *samples, uint32_t n, uint16_t *last)
{
    double ns = 0, ticks = 0;
    for (uint32_t i = 0; i < n; i++) {
        const tare__stack_sample *sample = &samples[i], *before = previous(samples, last, sample->thread);
        last[sample->thread] = (uint16_t)(i + 1);
        if (before->thread) {
            ns += (double)sample->wall_ns;
            ticks += (double)(sample->ticks - before->ticks);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        last[samples[i].thread] = 0;
    double rate = ticks > 0 ? ns / ticks * (double)(UINT64_C(1) << RATE_BITS) + 0.5 : 0;
    return rate < (double)RATE_MAX ? (uint64_t)rate : 0;
}

static void put(uint8_t **at, uint64_t value)
{
    *at = tare__varint_write(*at, value);
}

static void put_difference(uint8_t **at, uint64_t value, uint64_t before)
{
    put(at, tare__zigzag((int64_t)(value - before)));
}

static void fill_sample(const tare__stack_sample *sample, const tare__stack_sample *before, uint64_t rate, uint8_t **at)
{
    uint64_t expected = expected_ns(before, sample->ticks, rate);
    unsigned parts = 0;
    if (sample->stack != before->stack) {
        parts |= HAS_STACK;
        put_difference(&at[STACK], sample->stack, before->stack);
    }
    if (sample->state != before->state || sample->flags != before->flags) {
        parts |= HAS_STATE;
        put(&at[STATE], sample->state);
        put(&at[FLAGS], sample->flags);
    }
    if (sample->wall_ns != expected) {
        parts |= HAS_WALL;
        put_difference(&at[WALL], sample->wall_ns, expected);
    }
    if (sample->cpu_ns) {
        parts |= HAS_CPU;
        put_difference(&at[CPU], sample->cpu_ns, sample->wall_ns - sample->queue_ns);
    }
    if (sample->queue_ns) {
        parts |= HAS_QUEUE;
        put(&at[QUEUE], sample->queue_ns);
    }
    *at[PARTS]++ = (uint8_t)parts;
}

static void fill_columns(const tare__stack_sample *samples, uint32_t n, uint64_t rate, uint16_t *last, uint8_t **at)
{
    uint64_t ticks = samples[0].ticks;
    uint32_t thread = 0;
    for (uint32_t i = 0; i < n; i++) {
        const tare__stack_sample *sample = &samples[i];
        put(&at[TIME], sample->ticks - ticks);
        put_difference(&at[THREAD], sample->thread, thread);
        fill_sample(sample, previous(samples, last, sample->thread), rate, at);
        last[sample->thread] = (uint16_t)(i + 1);
        ticks = sample->ticks;
        thread = sample->thread;
    }
}

int tare__stack_samples_seal(const tare__stack_sample *samples, uint32_t n, tare__squeezer *squeezer, tare__text *out)
{
    size_t each = (size_t)n * TARE__VARINT_BYTES;
    uint8_t *room = tare__squeezer_room(squeezer, sizeof(last_of) + each * COLUMNS), *ends[COLUMNS];
    if (!room)
        return TARE_E_MEMORY;
    uint16_t *last = (uint16_t *)(void *)room;
    memset(last, 0, sizeof(last_of));
    room += sizeof(last_of);
    for (unsigned i = 0; i < COLUMNS; i++)
        ends[i] = room + i * each;
    uint64_t rate = find_rate(samples, n, last);
    fill_columns(samples, n, rate, last, ends);
    tare__column columns[COLUMNS];
    for (unsigned i = 0; i < COLUMNS; i++)
        columns[i] = (tare__column){.data = room + i * each, .bytes = (size_t)(ends[i] - (room + i * each))};
    tare__block_header header = {
        .kind = TARE__BLOCK_STACK_SAMPLES,
        .count = n,
        .first_ticks = samples[0].ticks,
        .last_ticks = samples[n - 1].ticks,
    };
    size_t at = tare__block_begin(out);
    tare__varint_put(out, rate);
    return tare__block_end(out, at, &header, tare__columns_put_scattered(squeezer, columns, COLUMNS, SCATTERED, out));
}

/* ---- decoding ---------------------------------------------------------------------------------------------- */
static uint64_t read_difference(tare__reader *reader, uint64_t before)
{
    return before + (uint64_t)tare__unzigzag(tare__read_varint(reader));
}

/* Everything but time and thread, which are already set. */
static bool read_parts(tare__reader *readers, const tare__stack_sample *before, uint64_t rate,
                       tare__stack_sample *sample)
{
    uint64_t parts = tare__read_varint(&readers[PARTS]);
    uint64_t stack = before->stack, state = before->state, flags = before->flags;
    if (parts > HAS_ALL)
        return false;
    if (parts & HAS_STACK)
        stack = read_difference(&readers[STACK], stack);
    if (parts & HAS_STATE) {
        state = tare__read_varint(&readers[STATE]);
        flags = tare__read_varint(&readers[FLAGS]);
    }
    sample->wall_ns = expected_ns(before, sample->ticks, rate);
    if (parts & HAS_WALL)
        sample->wall_ns = read_difference(&readers[WALL], sample->wall_ns);
    sample->queue_ns = parts & HAS_QUEUE ? tare__read_varint(&readers[QUEUE]) : 0;
    sample->cpu_ns = parts & HAS_CPU ? read_difference(&readers[CPU], sample->wall_ns - sample->queue_ns) : 0;
    sample->stack = (uint32_t)stack;
    sample->state = (uint32_t)state;
    sample->flags = (uint32_t)flags;
    return stack <= TARE__STACKS_MAX && state <= UINT32_MAX && flags <= UINT32_MAX;
}

static bool read_all(tare__reader *readers, const tare__block_header *header, uint64_t rate, uint16_t *last,
                     tare__stack_sample *samples)
{
    uint64_t ticks = header->first_ticks, thread = 0;
    for (uint32_t i = 0; i < header->count; i++) {
        uint64_t since = tare__read_varint(&readers[TIME]);
        thread = read_difference(&readers[THREAD], thread);
        if (since > header->last_ticks - ticks || thread == 0 || thread > TARE__STACK_THREADS_MAX)
            return false;
        ticks += since;
        samples[i] = (tare__stack_sample){.ticks = ticks, .thread = (uint32_t)thread};
        if (!read_parts(readers, previous(samples, last, (uint32_t)thread), rate, &samples[i]))
            return false;
        last[thread] = (uint16_t)(i + 1);
    }
    return ticks == header->last_ticks && samples[0].ticks == header->first_ticks;
}

int tare__stack_samples_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                             tare__stack_sample *samples, uint32_t *n)
{
    tare__reader reader = {payload, payload + header->payload_bytes, false}, readers[COLUMNS];
    *n = 0;
    if (header->kind != TARE__BLOCK_STACK_SAMPLES || header->flags || !header->count ||
        header->count > TARE__STACK_SAMPLES_MAX || header->last_ticks < header->first_ticks)
        return TARE_E_INPUT;
    uint64_t rate = tare__read_varint(&reader);
    if (reader.failed || rate >= RATE_MAX)
        return TARE_E_INPUT;
    int status = tare__columns_open(squeezer, &reader, readers, COLUMNS,
                                    (size_t)TARE__STACK_SAMPLES_MAX * TARE__VARINT_BYTES);
    if (status)
        return status;
    uint16_t *last = (uint16_t *)(void *)tare__squeezer_room(squeezer, sizeof(last_of));
    if (!last)
        return TARE_E_MEMORY;
    memset(last, 0, sizeof(last_of));
    if (!read_all(readers, header, rate, last, samples) || !tare__columns_done(readers, COLUMNS))
        return TARE_E_INPUT;
    *n = header->count;
    return 0;
}
