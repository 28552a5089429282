/* hist: the slow part of the log-linear histogram: bucket bounds, growth, merging, coarsening, quantiles.
 * Owned by the calling thread; a histogram is never shared.
 * Must not know what is counted in it. */
#include "stat.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "tare.h"

static uint32_t bucket_count(unsigned bits)
{
    return (65 - bits) << bits;
}

static uint32_t coarser_bucket(uint32_t bucket, unsigned bits, unsigned to_bits)
{
    return tare__hist_bucket(tare__hist_low(bucket, bits), to_bits);
}

static uint32_t saturating_sum(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

uint64_t tare__hist_low(uint32_t bucket, unsigned bits)
{
    uint32_t group = bucket >> bits;
    if (!group)
        return bucket;
    if (bucket >= bucket_count(bits))
        return UINT64_MAX;
    uint64_t sub = bucket & ((1u << bits) - 1);
    return ((UINT64_C(1) << bits) + sub) << (group - 1);
}

uint64_t tare__hist_high(uint32_t bucket, unsigned bits)
{
    uint32_t group = bucket >> bits;
    if (!group)
        return bucket;
    if (bucket >= bucket_count(bits))
        return UINT64_MAX;
    return tare__hist_low(bucket, bits) + ((UINT64_C(1) << (group - 1)) - 1);
}

/* Makes the window contain first .. last. Only a side that has to move gets a margin, a sixteenth of the window:
 * drifting durations do not reallocate each time, and 100,000 windows stay small. */
static int cover(tare__hist *hist, uint32_t first, uint32_t last)
{
    uint32_t old_first = hist->length ? hist->first : last + 1;
    uint32_t old_end = hist->length ? hist->first + hist->length : first;
    uint32_t new_first = first < old_first ? first : old_first;
    uint32_t new_end = last >= old_end ? last + 1 : old_end;
    uint32_t margin = (new_end - new_first) / 16 + 2;
    if (new_first < old_first)
        new_first -= margin < new_first ? margin : new_first;
    if (new_end > old_end) {
        uint32_t above = bucket_count(hist->bits) - new_end;
        new_end += margin < above ? margin : above;
    }
    uint32_t new_length = new_end - new_first;
    if (new_length == hist->length)
        return 0;
    uint32_t *counts = realloc(hist->counts, new_length * sizeof(*counts));
    if (!counts)
        return TARE_E_MEMORY;
    uint32_t shift = hist->length ? old_first - new_first : 0;
    memmove(counts + shift, counts, hist->length * sizeof(*counts));
    memset(counts, 0, shift * sizeof(*counts));
    uint32_t used = shift + hist->length;
    memset(counts + used, 0, (new_length - used) * sizeof(*counts));
    hist->counts = counts;
    hist->first = new_first;
    hist->length = new_length;
    return 0;
}

int tare__hist_grow(tare__hist *hist, uint32_t bucket)
{
    /* No value has such a bucket; a number from a damaged file must not allocate gigabytes. */
    if (bucket >= bucket_count(hist->bits))
        return TARE_E_MEMORY;
    return cover(hist, bucket, bucket);
}

/* The part of the window, by index, that holds counts; false when there is none. */
static bool touched(const tare__hist *hist, uint32_t *begin, uint32_t *end)
{
    uint32_t from = 0;
    uint32_t to = hist->length;
    while (from < to && !hist->counts[from])
        from++;
    while (to > from && !hist->counts[to - 1])
        to--;
    *begin = from;
    *end = to;
    return from < to;
}

static void coarsen_to(tare__hist *hist, unsigned bits)
{
    uint32_t begin, end;
    unsigned old_bits = hist->bits;
    if (old_bits <= bits)
        return;
    hist->bits = (uint8_t)bits;
    if (!touched(hist, &begin, &end)) {
        free(hist->counts);
        hist->counts = NULL;
        hist->first = hist->length = 0;
        return;
    }
    uint32_t first = coarser_bucket(hist->first + begin, old_bits, bits);
    uint32_t length = 0;
    for (uint32_t i = begin; i < end; i++) {
        /* The mapping is monotone and never exceeds i, so overwritten values were already read. */
        uint32_t count = hist->counts[i];
        uint32_t to = coarser_bucket(hist->first + i, old_bits, bits) - first;
        if (to < length) {
            hist->counts[to] = saturating_sum(hist->counts[to], count);
        } else {
            hist->counts[to] = count;
            length = to + 1;
        }
    }
    hist->first = first;
    hist->length = length;
    uint32_t *counts = realloc(hist->counts, length * sizeof(*counts));
    if (counts)
        hist->counts = counts;
}

void tare__hist_coarsen(tare__hist *hist)
{
    if (hist->bits)
        coarsen_to(hist, hist->bits - 1u);
}

int tare__hist_merge(tare__hist *into, const tare__hist *from)
{
    uint32_t begin, end;
    coarsen_to(into, from->bits);
    if (!touched(from, &begin, &end))
        return 0;
    /* Allocates all memory first: a merge that fails has added nothing. */
    int status = cover(into, coarser_bucket(from->first + begin, from->bits, into->bits),
                       coarser_bucket(from->first + end - 1, from->bits, into->bits));
    if (status)
        return status;
    for (uint32_t i = begin; i < end; i++) {
        uint32_t at = coarser_bucket(from->first + i, from->bits, into->bits) - into->first;
        into->counts[at] = saturating_sum(into->counts[at], from->counts[i]);
    }
    into->total += from->total;
    return 0;
}

/* Distributes what saturated buckets lost equally: exact for the usual case of one full bucket. */
static double lost_per_full_bucket(const tare__hist *hist)
{
    uint64_t counted = 0;
    uint32_t full = 0;
    for (uint32_t i = 0; i < hist->length; i++) {
        counted += hist->counts[i];
        full += hist->counts[i] == UINT32_MAX;
    }
    return full && hist->total > counted ? (double)(hist->total - counted) / full : 0;
}

double tare__hist_quantile(const tare__hist *hist, double q)
{
    uint32_t begin, end;
    if (!touched(hist, &begin, &end) || isnan(q))
        return NAN;
    /* Slightly less, since 0.55 of 100 values is 55.00000000000001 in binary and would give the 56th. */
    double rank = ceil(q * (double)hist->total * (1 - DBL_EPSILON));
    if (rank < 1)
        rank = 1;
    double lost = lost_per_full_bucket(hist);
    double seen = 0;
    uint32_t at = begin;
    for (; at < end - 1; at++) {
        seen += hist->counts[at];
        if (hist->counts[at] == UINT32_MAX)
            seen += lost;
        if (seen >= rank)
            break;
    }
    uint64_t low = tare__hist_low(hist->first + at, hist->bits);
    uint64_t high = tare__hist_high(hist->first + at, hist->bits);
    return (double)low + (double)(high - low) / 2;
}

size_t tare__hist_bytes(const tare__hist *hist)
{
    return hist->length * sizeof(*hist->counts);
}

void tare__hist_free(tare__hist *hist)
{
    free(hist->counts);
    *hist = (tare__hist){.bits = hist->bits};
}
