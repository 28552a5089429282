/* Loaded into a program (ctypes): at a signal of the CPU timer keeps registers, a copy of the stack, and backtrace() of
 * the C library; later compares Tare's unwinder with that.
 * The handler runs in any thread; all else in the caller's. Must not allocate in the handler. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "sample/unwind_inner.h"

#define PAGES 16u /* of a stack: as many as perf_event_open copies */
#define SAMPLES 1000u
#define FRAMES 128

typedef struct sample {
    tare__unwind_regs regs;
    size_t bytes;
    int n;
    void *expected[FRAMES];
    unsigned char stack[PAGES * 4096];
} sample;

static sample *samples;
static atomic_uint n_taken;

/* What perf_event_open copies: as many bytes as there are, from the stack pointer on. */
static size_t copy_stack(uint64_t sp, unsigned char *out)
{
    struct iovec local = {out, PAGES * 4096}, remote[PAGES + 1];
    uint64_t at = sp, end = sp + PAGES * 4096;
    unsigned n = 0;
    for (; at < end; n++) {
        uint64_t next = (at | 4095) + 1;
        next = next < end ? next : end;
        remote[n] = (struct iovec){(void *)(uintptr_t)at, next - at};
        at = next;
    }
    ssize_t got = process_vm_readv(getpid(), &local, 1, remote, n, 0);
    return got > 0 ? (size_t)got : 0;
}

static void on_timer(int number, siginfo_t *info, void *data)
{
    const ucontext_t *context = data;
    (void)number;
    (void)info;
    unsigned i = atomic_fetch_add(&n_taken, 1);
    if (i >= SAMPLES)
        return;
    sample *to = &samples[i];
    uint64_t sp;
#ifdef __x86_64__
    static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (unsigned k = 0; k < TARE__COUNT_OF(order); k++)
        to->regs.value[k] = (uint64_t)context->uc_mcontext.gregs[order[k]];
    to->regs.known = (UINT64_C(1) << 17) - 1;
    sp = to->regs.value[7];
#else
    memcpy(to->regs.value, context->uc_mcontext.regs, 31 * sizeof(uint64_t));
    to->regs.value[31] = sp = context->uc_mcontext.sp;
    to->regs.value[32] = context->uc_mcontext.pc;
    to->regs.known = (UINT64_C(1) << 33) - 1;
#endif
    to->bytes = copy_stack(sp, to->stack);
    to->n = backtrace(to->expected, FRAMES);
}

__attribute__((visibility("default"))) int check_start(int microseconds);
__attribute__((visibility("default"))) int check_start(int microseconds)
{
    void *warm[4];
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct itimerval every = {{0, microseconds}, {0, microseconds}};
    backtrace(warm, 4); /* loads libgcc_s */
    samples = samples ? samples : mmap(NULL, SAMPLES * sizeof(*samples), PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return samples != MAP_FAILED && sigaction(SIGPROF, &action, NULL) == 0 &&
           setitimer(ITIMER_PROF, &every, NULL) == 0;
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void show(const tare__unwind *unwind, const char *what, const sample *of, int first,
                 const tare__unwind_frame *frames, size_t n)
{
    fprintf(stderr, "%s: %zu frames of %d\n", what, n, of->n - first);
    for (size_t i = 0; i < n || (int)i < of->n - first; i++) {
        const tare__unwind_object *object = i < n ? tare__unwind_object_at(unwind, frames[i].object) : NULL;
        fprintf(stderr, "  %#llx %#llx %s+%#llx\n",
                (int)i < of->n - first ? (unsigned long long)(uintptr_t)of->expected[first + (int)i] : 0,
                i < n ? (unsigned long long)frames[i].ip : 0, object ? object->path : "",
                i < n ? (unsigned long long)frames[i].offset : 0);
    }
}

/* Prints how many stacks are equal. short: all frames are equal, but not all there (the copy has no more); longer: more
 * than backtrace() has; wrong: a frame differs. */
__attribute__((visibility("default"))) void check_report(int details);
__attribute__((visibility("default"))) void check_report(int details)
{
    struct itimerval off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &off, NULL);
    signal(SIGPROF, SIG_IGN);
    unsigned taken = atomic_load(&n_taken), equal = 0, shorter = 0, longer = 0, wrong = 0, n_whole = 0;
    size_t n_frames = 0, equal_frames = 0, expected_frames = 0;
    tare__unwind *unwind = tare__unwind_new();
    tare__unwind_process *process = tare__unwind_process_new(unwind, getpid());
    tare__unwind_frame frames[FRAMES];
    bool whole;
    taken = taken < SAMPLES ? taken : SAMPLES;
    uint64_t first_start = cpu_ns();
    for (unsigned i = 0; i < taken; i++) {
        sample *of = &samples[i];
        uint64_t ip = of->regs.value[unwind->cpu->ip], sp = of->regs.value[unwind->cpu->sp];
        int first = 0; /* behind the handler and the signal frame */
        while (first < of->n && (uint64_t)(uintptr_t)of->expected[first] != ip)
            first++;
        size_t n = tare__unwind_stack(process, &of->regs, of->stack, sp, of->bytes, frames, FRAMES, &whole);
        size_t expected = (size_t)(of->n - first), same = 0;
        while (same < n && same < expected &&
               frames[same].ip == (uint64_t)(uintptr_t)of->expected[first + (int)same])
            same++;
        n_whole += whole;
        expected_frames += expected;
        equal_frames += same;
        if (same == expected && n == expected)
            equal++;
        else if (same == n)
            shorter++;
        else if (same == expected)
            longer++;
        else if (wrong++ < (unsigned)details)
            show(unwind, "wrong", of, first, frames, n);
        if (same != expected && same == n && shorter <= (unsigned)details)
            show(unwind, "short", of, first, frames, n);
    }
    uint64_t warm = cpu_ns();
    for (unsigned round = 0; round < 5; round++)
        for (unsigned i = 0; i < taken; i++)
            n_frames += tare__unwind_stack(process, &samples[i].regs, samples[i].stack,
                                           samples[i].regs.value[unwind->cpu->sp], samples[i].bytes, frames, FRAMES,
                                           &whole);
    uint64_t end = cpu_ns();
    printf("stacks %u\nwhole %u\nequal %u\nshort %u\nlonger %u\nwrong %u\nframes %zu\nequal_frames %zu\nfirst_us %llu\n"
           "warm_ns_per_frame %llu\nrows %zu\n",
           taken, n_whole, equal, shorter, longer, wrong, expected_frames, equal_frames,
           (unsigned long long)(warm - first_start) / 1000,
           (unsigned long long)((end - warm) / (n_frames ? n_frames : 1)), unwind->rows.n);
    fflush(stdout);
    tare__unwind_process_free(process);
    tare__unwind_free(unwind);
}
