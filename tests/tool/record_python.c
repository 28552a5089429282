/* record_python: stores the memory of a Python process that a sample of its stacks reads, and what the program said
 * about them: `record_python PID TRUTH OUTPUT`. The program must stand still. tests/fixture/README.md has the use.
 * One thread. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../python_image.h"

#define SAMPLES 4 /* the first ones are read in another way than later ones */

typedef struct range {
    uint64_t address, bytes;
    unsigned char *data;
} range;

static range *ranges;
static size_t n_ranges, ranges_room;
static tare__python_read_function *read_really;

static void keep(uint64_t address, const unsigned char *data, size_t bytes)
{
    if (!tare__array_fit(&ranges, &ranges_room, n_ranges + 1, sizeof *ranges))
        abort();
    unsigned char *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        abort();
    memcpy(copy, data, bytes);
    ranges[n_ranges++] = (range){address, bytes, copy};
}

static ssize_t read_recorded(pid_t pid, const struct iovec *local, unsigned long n_local, const struct iovec *remote,
                             unsigned long n_remote)
{
    ssize_t got = read_really(pid, local, n_local, remote, n_remote);
    const unsigned char *at = local[0].iov_base;
    size_t left = got > 0 ? (size_t)got : 0;
    for (unsigned long i = 0; i < n_remote && left; i++) {
        size_t bytes = remote[i].iov_len < left ? remote[i].iov_len : left;
        keep((uintptr_t)remote[i].iov_base, at, bytes);
        at += bytes;
        left -= bytes;
    }
    return got;
}

static int by_address(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void put_extent(tare__text *places, uint64_t begin, uint64_t end, uint64_t *last)
{
    if (end == begin)
        return;
    tare__varint_put(places, begin - *last);
    tare__varint_put(places, end - begin);
    *last = end;
}

/* Ranges overlap: extents do not. */
static void put_ranges(tare__text *places, tare__text *bytes)
{
    uint64_t begin = 0, end = 0, last = 0; /* of the extent that grows; the end of the one before */
    qsort(ranges, n_ranges, sizeof *ranges, by_address);
    for (size_t i = 0; i < n_ranges; i++) {
        const range *at = &ranges[i];
        if (i == 0 || at->address > end) {
            put_extent(places, begin, end, &last);
            begin = end = at->address;
        }
        uint64_t skip = end - at->address;
        if (at->bytes > skip) {
            tare__text_append(bytes, (const char *)at->data + skip, at->bytes - skip);
            end = at->address + at->bytes;
        }
    }
    put_extent(places, begin, end, &last);
}

static uint64_t base_of(pid_t pid, const char *object)
{
    char path[64], line[4096];
    uint64_t base = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    while (maps && !base && fgets(line, sizeof line, maps))
        if (strstr(line, object))
            base = strtoull(line, NULL, 16);
    if (maps)
        fclose(maps);
    return base;
}

static int sample(pid_t pid, tare__text *about)
{
    tare__python *python;
    const tare__python_thread *threads;
    tare__error error = {""};
    uint32_t n = 0;
    tare__python_read_memory = read_really;
    int status = tare__python_open(pid, &python, &error); /* what it reads to search is not wanted, … */
    if (status == 0) {
        python_image_now = (python_image){.pid = pid, .base = base_of(pid, tare__python_object(python))};
        tare__text_format(about, "%s %d %llx", tare__python_version(python), (int)pid,
                          (unsigned long long)python_image_now.base);
        tare__python_close(python);
        tare__python_read_memory = read_recorded; /* … only what it reads where it is right */
        status = python_image_python(&python, &error);
    }
    if (status != 0) {
        fprintf(stderr, "record_python: %s\n", error.text);
        return 1;
    }
    tare__python_want_evaluations(python);
    for (int i = 0; i < SAMPLES && !status; i++) {
        status = tare__python_sample(python, &threads, &n, &error);
        for (uint32_t k = 0; k < n && !status; k++)
            if (threads[k].torn)
                status = tare__fail(&error, TARE_E_BUSY, "it does not stand still");
    }
    if (status)
        fprintf(stderr, "record_python: %s\n", error.text);
    tare__python_close(python);
    return status != 0;
}

static int write_image(const char *truth_path, const char *path, const tare__text *about)
{
    tare__text truth = {0}, places = {0}, bytes = {0}, out = {0};
    char part[4096];
    size_t got;
    FILE *from = fopen(truth_path, "rb"), *to = fopen(path, "wb");
    while (from && (got = fread(part, 1, sizeof part, from)) > 0)
        tare__text_append(&truth, part, got);
    put_ranges(&places, &bytes);
    const tare__column parts[PYTHON_IMAGE_PARTS] = {
        [PYTHON_IMAGE_ABOUT] = {(const uint8_t *)about->data, about->length},
        [PYTHON_IMAGE_TRUTH] = {(const uint8_t *)truth.data, truth.length},
        [PYTHON_IMAGE_PLACES] = {(const uint8_t *)places.data, places.length},
        [PYTHON_IMAGE_BYTES] = {(const uint8_t *)bytes.data, bytes.length},
    };
    tare__squeezer *squeezer = tare__squeezer_new();
    tare__squeezer_level(squeezer, 19);
    bool written = truth.length && to && tare__columns_put(squeezer, parts, PYTHON_IMAGE_PARTS, &out) == 0 &&
                   fwrite(out.data, 1, out.length, to) == out.length && fclose(to) == 0;
    printf("%s: %zu bytes of memory in %zu\n", about->data, bytes.length, out.length);
    return !written;
}

int main(int n_args, char **args)
{
    tare__text about = {0};
    if (n_args != 4) {
        fputs("usage: record_python PID TRUTH OUTPUT\n", stderr);
        return 2;
    }
    read_really = tare__python_read_memory;
    return sample((pid_t)atoi(args[1]), &about) || write_image(args[2], args[3], &about);
}
