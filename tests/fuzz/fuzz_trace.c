/* fuzz_trace: any bytes as a trace file: opened, analyzed, drawn, closed. Nothing may crash, hang or leak.
 * One thread.
 * Must not know what a right answer is. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "trace/trace.h"

#define INPUT_MAX ((size_t)1 << 20)

/* A fuzzer does not guess checksums: it is given right ones, for half of the inputs. */
static void mend(uint8_t *bytes, size_t n)
{
    if (n < sizeof(tare__file_header))
        return;
    tare__file_header_make((tare__file_header *)(void *)bytes);
    for (size_t at = sizeof(tare__file_header); n - at >= sizeof(tare__block_header);) {
        tare__block_header header;
        __builtin_memcpy(&header, bytes + at, sizeof header);
        size_t left = n - at - sizeof header;
        if (header.payload_bytes > left)
            header.payload_bytes = (uint32_t)left;
        tare__block_header_seal(&header, bytes + at + sizeof header);
        __builtin_memcpy(bytes + at, &header, sizeof header);
        at += sizeof header + header.payload_bytes;
    }
}

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Every stack ends, and stacks and samples refer to rows of the tables only. */
static void walk_stacks(tare__trace *trace)
{
    tare__trace_block block;
    const tare__stack_sample *samples;
    uint32_t n;
    tare__trace_rewind(trace);
    for (uint32_t number = 1; number <= tare__trace_stack_count(trace); number++) {
        const tare__trace_stack *stack = tare__trace_stack_at(trace, number);
        must(!stack || stack->caller < number);
        must(!stack || !stack->function || tare__trace_function_at(trace, stack->function));
    }
    while (tare__trace_next(trace, &block, NULL) > 0) {
        if (block.header.kind != TARE__BLOCK_STACK_SAMPLES || tare__trace_stack_samples(trace, &block, &samples, &n))
            continue;
        for (uint32_t i = 0; i < n; i++) {
            must(!samples[i].stack || tare__trace_stack_at(trace, samples[i].stack));
            must(!samples[i].thread || tare__trace_thread_at(trace, samples[i].thread));
        }
    }
}

static void analyze_file(const char *path, tare__by by)
{
    tare__error error;
    tare__trace *trace;
    tare__analysis *analysis;
    tare__timeline *timeline;
    tare__analyze_options options = {.by = by};
    if (tare__trace_open(path, &trace, &error))
        return;
    if (tare__analyze(trace, &options, &analysis, &error) == 0)
        tare__analysis_free(analysis);
    if (tare__analyze_timeline(trace, 100, &timeline, &error) == 0)
        tare__timeline_free(timeline);
    walk_stacks(trace);
    tare__trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t copy[INPUT_MAX];
    static int fd = -1;
    char path[64];
    if (bytes < 1 || bytes > INPUT_MAX)
        return 0;
    uint8_t choice = data[bytes - 1]; /* the last byte, so that a trace as it is makes a good seed */
    __builtin_memcpy(copy, data, bytes);
    if (choice & 1)
        mend(copy, bytes);
    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) || tare__pwrite_all(fd, copy, bytes, 0))
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    analyze_file(path, (tare__by)((choice >> 1) % 3));
    return 0;
}
