/* import_sort: sorts any number of records: in memory, and beyond that in sorted runs on disk.
 * One thread.
 * Must not know what the records mean. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import_inner.h"

#define RECORDS_MAX   (1u << 19) /* 20 MiB */
#define MERGE_RECORDS (1u << 18) /* of all runs together while they are merged … */
#define MERGE_LEAST   256u       /* … but at least this many of each */

TARE__ORDER(by_order, tare__import_record,
            TARE__RISING(place) TARE__RISING(start) TARE__FALLING(duration) TARE__RISING(order))

int tare__sorter_open(tare__import_sorter *sorter, uint32_t records_max, const char *beside)
{
    *sorter =
        (tare__import_sorter){.fd = -1, .beside = beside, .room = records_max ? records_max : RECORDS_MAX};
    sorter->records = malloc((size_t)sorter->room * sizeof *sorter->records);
    return sorter->records ? 0 : TARE_E_MEMORY;
}

static int fail_spill(int failure, tare__error *error)
{
    return tare__fail(error, failure == ENOSPC || failure == EDQUOT ? TARE_E_SPACE : TARE_E_SYSTEM,
                      "cannot write temporary data to disk: %s", strerror(failure));
}

/* Next to the output, which needs space there as well; the temporary directory may be in memory. Unlinked at once, so
 * that it disappears when the descriptor is closed. */
static int open_spill(tare__import_sorter *sorter, tare__error *error)
{
    char *path = NULL;
    if (asprintf(&path, "%s.XXXXXX", sorter->beside) < 0)
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    sorter->fd = mkostemp(path, O_CLOEXEC);
    int failure = errno;
    if (sorter->fd >= 0)
        unlink(path);
    free(path);
    return sorter->fd >= 0 ? 0 : fail_spill(failure, error);
}

static void sort_records(tare__import_sorter *sorter)
{
    for (uint32_t i = 0; i < sorter->count; i++)
        sorter->records[i].order = i;
    qsort(sorter->records, sorter->count, sizeof *sorter->records, by_order);
}

static int spill(tare__import_sorter *sorter, tare__error *error)
{
    int status = sorter->fd < 0 ? open_spill(sorter, error) : 0;
    if (status)
        return status;
    if (!tare__array_fit(&sorter->runs, &sorter->run_room, sorter->run_count + 2, sizeof *sorter->runs))
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    sort_records(sorter);
    size_t bytes = sorter->count * sizeof *sorter->records;
    int failed = tare__pwrite_all(sorter->fd, sorter->records, bytes, sorter->bytes);
    if (failed)
        return fail_spill(-failed, error);
    sorter->runs[sorter->run_count++] = (tare__import_run){.offset = sorter->bytes, .left = sorter->count};
    sorter->bytes += bytes;
    sorter->count = 0;
    return 0;
}

int tare__sorter_add(tare__import_sorter *sorter, const tare__import_record *record, tare__error *error)
{
    if (sorter->count == sorter->room) {
        int status = spill(sorter, error);
        if (status)
            return status;
    }
    sorter->records[sorter->count++] = *record;
    return 0;
}

/* ---- merging --------------------------------------------------------------------------------------- */
static bool less(const tare__import_sorter *sorter, size_t a, size_t b)
{
    const tare__import_run *left = &sorter->runs[a], *right = &sorter->runs[b];
    tare__import_record of_left = left->buffer[left->at], of_right = right->buffer[right->at];
    of_left.order = of_right.order =
        0; /* numbers of one run mean nothing in another; runs are in order themselves */
    int order = by_order(&of_left, &of_right);
    return order ? order < 0 : a < b;
}

static void sift(tare__import_sorter *sorter, size_t at)
{
    size_t *heap = sorter->heap;
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < sorter->heap_count; child++)
            if (less(sorter, heap[child], heap[least]))
                least = child;
        if (least == at)
            return;
        size_t moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

/* The next records of a run; false: no more, or *status is set. */
static bool fill(tare__import_sorter *sorter, tare__import_run *run, uint32_t room, int *status,
                 tare__error *error)
{
    uint32_t count = run->left < room ? (uint32_t)run->left : room;
    size_t bytes = count * sizeof *run->buffer, got = 0;
    run->at = run->count = 0;
    if (count == 0)
        return false;
    int failed = tare__pread_all(sorter->fd, run->buffer, bytes, run->offset, &got);
    if (failed || got != bytes) {
        *status = fail_spill(failed ? -failed : EIO, error);
        return false;
    }
    run->count = count;
    run->left -= count;
    run->offset += bytes;
    return true;
}

static uint32_t merge_room(const tare__import_sorter *sorter)
{
    size_t each = MERGE_RECORDS / (sorter->run_count ? sorter->run_count : 1);
    return each < MERGE_LEAST ? MERGE_LEAST : (uint32_t)each;
}

int tare__sorter_rewind(tare__import_sorter *sorter, tare__error *error)
{
    int status = 0;
    if (sorter->fd < 0) {
        sort_records(sorter);
        return 0;
    }
    if (sorter->count)
        status = spill(sorter, error);
    free(sorter->records);
    sorter->records = NULL;
    sorter->heap = malloc(sorter->run_count * sizeof *sorter->heap);
    if (!status && !sorter->heap)
        status = tare__fail(error, TARE_E_MEMORY, "out of memory");
    for (size_t i = 0; i < sorter->run_count && !status; i++) {
        tare__import_run *run = &sorter->runs[i];
        run->buffer = malloc(merge_room(sorter) * sizeof *run->buffer);
        if (!run->buffer)
            status = tare__fail(error, TARE_E_MEMORY, "out of memory");
        else if (fill(sorter, run, merge_room(sorter), &status, error))
            sorter->heap[sorter->heap_count++] = i;
    }
    for (size_t i = sorter->heap_count / 2; i-- > 0 && !status;)
        sift(sorter, i);
    return status;
}

/* Without runs, `bytes` counts the records returned so far. */
static int next_in_memory(tare__import_sorter *sorter, tare__import_record *record)
{
    if (sorter->bytes == sorter->count)
        return 0;
    *record = sorter->records[sorter->bytes++];
    return 1;
}

int tare__sorter_next(tare__import_sorter *sorter, tare__import_record *record, tare__error *error)
{
    int status = 0;
    if (sorter->fd < 0)
        return next_in_memory(sorter, record);
    if (sorter->heap_count == 0)
        return 0;
    tare__import_run *run = &sorter->runs[sorter->heap[0]];
    *record = run->buffer[run->at++];
    if (run->at == run->count && !fill(sorter, run, merge_room(sorter), &status, error))
        sorter->heap[0] = sorter->heap[--sorter->heap_count];
    if (status)
        return status;
    sift(sorter, 0);
    return 1;
}

void tare__sorter_close(tare__import_sorter *sorter)
{
    for (size_t i = 0; i < sorter->run_count; i++)
        free(sorter->runs[i].buffer);
    if (sorter->fd >= 0)
        close(sorter->fd);
    free(sorter->runs);
    free(sorter->heap);
    free(sorter->records);
    *sorter = (tare__import_sorter){.fd = -1};
}
