/* fuzz_salvage: any bytes as the session page, the ring and the trace that a killed collector left: salvaged and shown.
 * Nothing may crash, hang or leak, nothing in the session folder may change, and the trace is only appended to.
 * One thread.
 * Must not know what a right answer is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "collect/collect.h"
#include "format/format.h"
#include "trace/trace.h"

/* The input is a list of patches: 1 byte which file, 3 bytes where (little-endian), 1 byte how many, the bytes. They
 * are applied to a session that makes sense, so that a fuzzer need not guess one. */
#define CHUNKS 2u
#define NAMES_OFFSET ((uint64_t)(sizeof(tare__ring) + 4095) & ~(uint64_t)4095)
#define CHUNKS_OFFSET ((NAMES_OFFSET + TARE__NAMES_BYTES + TARE__CHUNK_BYTES - 1) & ~(uint64_t)(TARE__CHUNK_BYTES - 1))
#define RING_BYTES (CHUNKS_OFFSET + CHUNKS * (uint64_t)TARE__CHUNK_BYTES)
#define TRACE_MAX 65536u

static char folder[64], page_path[96], ring_path[128], trace_path[96];
static tare__session_page page;
static uint8_t *ring_bytes;
static uint8_t trace_bytes[TRACE_MAX];
static size_t trace_length;

static void remove_all(void)
{
    char saved[96];
    snprintf(saved, sizeof saved, "%s/saved", folder);
    unlink(saved);
    unlink(page_path);
    unlink(ring_path);
    unlink(trace_path);
    rmdir(folder);
}

static void make_ring(void)
{
    memset(ring_bytes, 0, RING_BYTES);
    tare__ring *ring = (void *)ring_bytes;
    *ring = (tare__ring){.magic = TARE__RING_MAGIC, .abi = TARE__RING_ABI, .header_bytes = sizeof *ring,
                         .names_offset = NAMES_OFFSET, .chunks_offset = CHUNKS_OFFSET, .pid = 0x7fffffff,
                         .joined = 2000, .chunk_count = CHUNKS};
    memset(ring->id, 7, sizeof ring->id);
    tare__name *name = (void *)(ring_bytes + NAMES_OFFSET + TARE__NAME_UNIT);
    *name = (tare__name){.ready = 1, .kind = 1, .text_bytes = 4, .units = 2};
    memcpy(name->text, "work", 4);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        tare__chunk *chunk = (void *)(ring_bytes + CHUNKS_OFFSET + i * (uint64_t)TARE__CHUNK_BYTES);
        *chunk = (tare__chunk){.stream = 1, .sequence = i, .generation = 3, .tid = 5, .cpu = -1,
                               .main_used = i ? 0 : TARE__CHUNK_SLOTS};
        tare__slot *slots = (void *)((uint8_t *)chunk + TARE__CHUNK_MAIN);
        for (uint32_t k = 0; k < (i ? 40 : TARE__CHUNK_SLOTS); k++)
            slots[k] = (tare__slot){3000 + 10 * k, TARE__WORD(k % 2 ? TARE__RECORD_END : TARE__RECORD_BEGIN, 1) | 3};
        ring->chunk_state[i] = i ? TARE__CHUNK_EVENTS : TARE__CHUNK_RETIRED;
    }
}

static void make_page(void)
{
    page = (tare__session_page){.magic = TARE__SESSION_MAGIC, .abi = TARE__RING_ABI, .bytes = sizeof page,
                                .clock = TARE__CLOCK_MONOTONIC, .sync_count = 2,
                                .syncs = {{1000, 1000, 1000000}, {2000, 2000, 1001000}}};
    memset(page.id, 9, sizeof page.id);
    snprintf(page.trace, sizeof page.trace, "%s", trace_path);
}

/* The last blocks of a trace may be sampled stacks. */
static void add_stacks(tare__text *file)
{
    tare__squeezer *squeezer = tare__squeezer_new();
    tare__stacks *stacks = tare__stacks_new();
    const tare__stack_thread thread = {.pid = 5, .tid = 5, .name = "main", .name_bytes = 4, .main = true};
    if (squeezer && stacks) {
        tare__stack_sample sample = {.ticks = 2500, .thread = tare__stacks_thread(stacks, &thread)};
        sample.stack = tare__stacks_push(stacks, 0, 0, 7);
        tare__stacks_sample(stacks, &sample);
        tare__stacks_seal(stacks, squeezer, file);
    }
    tare__stacks_free(stacks);
    tare__squeezer_free(squeezer);
}

static void make_trace(void)
{
    tare__text file = {0}, fields = {0};
    tare__file_header header;
    tare__file_header_make(&header);
    tare__text_append(&file, (const char *)&header, sizeof header);
    tare__field_bytes(&fields, TARE__FIELD_SESSION_ID, page.id, sizeof page.id);
    tare__field_number(&fields, TARE__FIELD_START_TICKS, 1000);
    tare__field_number(&fields, TARE__FIELD_CLOCK_KIND, TARE__CLOCK_MONOTONIC);
    tare__fields_seal(TARE__BLOCK_RUN, 0, &fields, &file);
    tare__clock_seal(page.syncs, 2, &file);
    add_stacks(&file);
    trace_length = file.length < TRACE_MAX ? file.length : TRACE_MAX;
    memcpy(trace_bytes, file.data, trace_length);
    tare__text_free(&fields);
    tare__text_free(&file);
}

static void patch(const uint8_t *data, size_t bytes)
{
    while (bytes >= 5) {
        size_t at = (size_t)data[1] | (size_t)data[2] << 8 | (size_t)data[3] << 16, n = data[4];
        unsigned which = data[0] % 3;
        data += 5;
        bytes -= 5;
        n = n < bytes ? n : bytes;
        if (which == 0 && at + n <= sizeof page)
            memcpy((uint8_t *)&page + at, data, n);
        if (which == 1 && at + n <= RING_BYTES)
            memcpy(ring_bytes + at, data, n);
        if (which == 2 && at + n <= TRACE_MAX) {
            if (at + n > trace_length) {
                at = trace_length; /* no holes */
                n = at + n <= TRACE_MAX ? n : 0;
                trace_length += n;
            }
            memcpy(trace_bytes + at, data, n);
        }
        data += n;
        bytes -= n;
    }
    /* Only what a page of this user can say: the file that is written to is ours. */
    memset(page.fallback, 0, sizeof page.fallback);
    snprintf(page.trace, sizeof page.trace, "%s", trace_path);
}

static bool put(const char *path, const void *data, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool done = fd >= 0 && tare__write_all(fd, data, bytes) == 0;
    if (fd >= 0)
        close(fd);
    return done;
}

static void check_same(const char *path, const uint8_t *expected, size_t bytes, bool may_be_longer)
{
    static uint8_t now[RING_BYTES];
    size_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0 || tare__pread_all(fd, now, bytes, 0, &got) != 0)
        abort();
    close(fd);
    /* A block that the end of the file cuts off goes (here: less than a header, whose checksum is not guessed); nothing
     * before it does. */
    if (may_be_longer && bytes >= sizeof(tare__block_header))
        got = bytes - (sizeof(tare__block_header) - 1) < got ? bytes - (sizeof(tare__block_header) - 1) : got;
    if (may_be_longer ? memcmp(now, expected, got) != 0 : got != bytes || (size_t)about.st_size != bytes ||
                                                              memcmp(now, expected, bytes) != 0)
        abort();
}

static void show(void)
{
    tare__error error;
    tare__trace *trace;
    tare__analysis *analysis;
    if (tare__trace_open(trace_path, &trace, &error))
        return;
    if (tare__analyze(trace, &(tare__analyze_options){.by = TARE__BY_THREAD}, &analysis, &error) == 0)
        tare__analysis_free(analysis);
    tare__trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static tare__salvaged saved;
    tare__error error;
    if (!ring_bytes) {
        snprintf(folder, sizeof folder, "/tmp/tare-%u-fuzz%d", (unsigned)geteuid(), (int)getpid());
        ring_bytes = malloc(RING_BYTES);
        if (!ring_bytes || mkdir(folder, 0700) != 0)
            abort();
        snprintf(page_path, sizeof page_path, "%s/session", folder);
        snprintf(trace_path, sizeof trace_path, "%s.tare", folder);
        snprintf(ring_path, sizeof ring_path, "%s/07070707070707070707070707070707.ring", folder);
        atexit(remove_all);
    }
    make_page();
    make_ring();
    make_trace();
    patch(data, bytes);
    if (!put(page_path, &page, sizeof page) || !put(ring_path, ring_bytes, RING_BYTES) ||
        !put(trace_path, trace_bytes, trace_length))
        return 0;
    for (int again = 0; again < 2; again++)
        if (tare__salvage(folder, again ? trace_path : NULL, &saved, &error) == 0 && bytes % 8 == 0)
            show();
    check_same(page_path, (const uint8_t *)&page, sizeof page, false);
    check_same(ring_path, ring_bytes, RING_BYTES, false);
    check_same(trace_path, trace_bytes, trace_length, true);
    return 0;
}
