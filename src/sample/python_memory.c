/* python_memory: reads of the memory of a Python process, many ranges in one system call.
 * One thread owns the reader.
 * Must not know what is in the memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "python_inner.h"

#define REGION_MAX (1u << 20)
#define REGIONS_FEW 400u
#define CALLS_MAX 65536u /* in a sample */

static ssize_t read_memory(pid_t pid, const struct iovec *local, unsigned long n_local, const struct iovec *remote,
                           unsigned long n_remote)
{
    return process_vm_readv(pid, local, n_local, remote, n_remote, 0);
}

tare__python_read_function *tare__python_read_memory = read_memory;

bool tare__python_get(pid_t pid, uint64_t address, void *out, size_t bytes)
{
    if (!address || !bytes || address + bytes < address)
        return false;
    struct iovec local = {out, bytes}, remote = {(void *)(uintptr_t)address, bytes};
    return tare__python_read_memory(pid, &local, 1, &remote, 1) == (ssize_t)bytes;
}

bool tare__python_read(tare__python *python, uint64_t address, void *out, size_t bytes)
{
    python->cost.calls++;
    return tare__python_get(python->pid, address, out, bytes);
}

bool tare__python_may_read(const tare__python *python)
{
    return python->cost.calls - python->calls_before < CALLS_MAX;
}

void tare__python_plan_clear(tare__python *python)
{
    python->n_vectors = 0;
    python->planned_bytes = python->valid_bytes = 0;
}

uint32_t tare__python_plan(tare__python *python, uint64_t address, size_t bytes)
{
    size_t at = python->planned_bytes;
    if (!address || address + bytes < address || bytes > TARE__PYTHON_BUFFER_MAX ||
        at + bytes > TARE__PYTHON_BUFFER_MAX || python->n_vectors >= TARE__COUNT_OF(python->vectors))
        return TARE__PYTHON_NO;
    python->vectors[python->n_vectors++] = (struct iovec){(void *)(uintptr_t)address, bytes};
    python->planned_bytes = at + bytes;
    return (uint32_t)at;
}

typedef struct planned_read {
    tare__python *python;
    ssize_t got;
    int failure;
} planned_read;

static void read_planned(void *context)
{
    planned_read *read = context;
    tare__python *python = read->python;
    struct iovec local = {python->buffer, python->planned_bytes};
    read->got = tare__python_read_memory(python->pid, &local, 1, python->vectors, python->n_vectors);
    read->failure = errno;
}

bool tare__python_plan_read(tare__python *python)
{
    python->valid_bytes = 0;
    if (!python->n_vectors)
        return true;
    if (!tare__array_fit(&python->buffer, &python->buffer_room, python->planned_bytes, 1)) {
        errno = ENOMEM;
        return false;
    }
    planned_read read = {.python = python};
    python->cost.calls++;
    int status = python->cpu < 0 ? TARE_E_SYSTEM : tare__python_cpu_run(python, python->cpu, read_planned, &read);
    if (status == TARE_E_BUSY && python->may_skip) {
        python->cpu = -1;
        errno = EAGAIN;
        return false;
    }
    if (status != 0) {
        python->cpu = -1;
        read_planned(&read);
    }
    errno = read.failure;
    if (read.got < 0)
        return false;
    python->valid_bytes = (size_t)read.got <= python->planned_bytes ? (size_t)read.got : 0;
    return true;
}

bool tare__python_add(tare__python_addresses *addresses, uint64_t address)
{
    if (!tare__array_fit(&addresses->at, &addresses->room, addresses->n + 1, sizeof(*addresses->at)))
        return false;
    addresses->at[addresses->n++] = address;
    return true;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Within a page, everything between two objects can be read; larger gaps are a risk that is taken for many objects. */
static bool merge(const tare__python_addresses *addresses, uint32_t bytes, uint64_t gap, tare__python_regions *out)
{
    out->n = 0;
    for (size_t i = 0; i < addresses->n; i++) {
        uint64_t address = addresses->at[i];
        tare__python_region *last = out->n ? &out->at[out->n - 1] : NULL;
        if (last && address - last->address < REGION_MAX && address <= last->address + last->bytes + gap) {
            uint32_t end = (uint32_t)(address - last->address) + bytes;
            last->bytes = last->next = last->size = end > last->bytes ? end : last->bytes;
            continue;
        }
        if (!tare__array_fit(&out->at, &out->room, out->n + 1, sizeof(*out->at)))
            return false;
        out->at[out->n++] = (tare__python_region){.address = address, .bytes = bytes, .next = bytes, .size = bytes};
    }
    return true;
}

bool tare__python_merge(tare__python_addresses *addresses, uint32_t bytes, tare__python_regions *out)
{
    if (addresses->n > 1)
        qsort(addresses->at, addresses->n, sizeof(*addresses->at), by_address);
    size_t unique = 0;
    for (size_t i = 0; i < addresses->n; i++)
        if (!i || addresses->at[i] != addresses->at[i - 1])
            addresses->at[unique++] = addresses->at[i];
    addresses->n = unique;
    for (uint64_t gap = 4095; gap <= 65535; gap = 4 * gap + 3) {
        if (!merge(addresses, bytes, gap, out))
            return false;
        if (out->n <= REGIONS_FEW)
            break;
    }
    return true;
}

const tare__python_region *tare__python_region_of(const tare__python_regions *regions, uint64_t address, size_t bytes)
{
    size_t low = 0, high = regions->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (regions->at[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const tare__python_region *region = low ? &regions->at[low - 1] : NULL;
    return region && address - region->address + bytes <= region->bytes ? region : NULL;
}

bool tare__python_alive(const tare__python *python)
{
    char byte;
    /* The descriptor belongs to the program that was opened: it reads nothing once that has ended or was replaced. */
    return python->memory_fd < 0 || pread(python->memory_fd, &byte, 1, (off_t)python->symbols.runtime) == 1;
}
