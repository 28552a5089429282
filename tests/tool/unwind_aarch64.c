/* Unwinds its own stacks and compares with backtrace() of the C library, for a processor that is emulated: calls,
 * frames of variable size, a callback of libc, a signal frame. Prints a line per stack: "NAME equal|different".
 * One thread. Built by tests/e2e/test_unwind_aarch64.py. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "sample/unwind.h"

#define NOINLINE __attribute__((noinline))
static tare__unwind_process *process;
static volatile int sink;
extern char **environ; /* above all frames */

/* The emulator does not have this call. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local, const struct iovec *remote,
                         unsigned long n_remote, unsigned long flags)
{
    (void)pid, (void)n_local, (void)n_remote, (void)flags;
    memcpy(local->iov_base, remote->iov_base, local->iov_len);
    return (ssize_t)local->iov_len;
}

static void read_registers(const ucontext_t *context, tare__unwind_regs *out)
{
    for (unsigned i = 0; i < 31; i++)
        out->value[i] = context->uc_mcontext.regs[i];
    out->value[31] = context->uc_mcontext.sp;
    out->value[32] = context->uc_mcontext.pc;
    out->known = (UINT64_C(1) << 33) - 1;
}

/* The frames from expected[first] on. Of the innermost one only `exact` says that the address is the same. */
static void compare(const char *name, const tare__unwind_regs *regs, void *const *expected, int n, int first,
                    bool exact)
{
    tare__unwind_frame frames[64];
    bool whole;
    uint64_t sp = regs->value[31];
    size_t got = tare__unwind_stack(process, regs, (const unsigned char *)(uintptr_t)sp, sp,
                                    (uint64_t)(uintptr_t)environ - sp, frames, 64, &whole);
    bool same = whole && (int)got == n - first;
    for (size_t i = exact ? 0 : 1; same && i < got; i++)
        same = frames[i].ip == (uint64_t)(uintptr_t)expected[first + (int)i];
    printf("%s %s\n", name, same ? "equal" : "different");
}

static NOINLINE void capture(const char *name)
{
    ucontext_t context;
    void *expected[64];
    tare__unwind_regs regs;
    getcontext(&context);
    int n = backtrace(expected, 64);
    read_registers(&context, &regs);
    compare(name, &regs, expected, n, 0, false);
    sink++;
}

static NOINLINE void deep(int depth)
{
    if (depth)
        deep(depth - 1);
    else
        capture("calls");
    sink++;
}

static NOINLINE void sized(size_t n)
{
    volatile char *space = __builtin_alloca(n);
    space[0] = 1;
    capture("alloca");
    sink += space[0];
}

static int by_value(const void *a, const void *b)
{
    if (!sink++)
        capture("qsort");
    return *(const int *)a - *(const int *)b;
}

static void on_signal(int number, siginfo_t *info, void *data)
{
    void *expected[64];
    tare__unwind_regs regs;
    int n = backtrace(expected, 64), first = 0;
    (void)number, (void)info;
    capture("signal");
    read_registers(data, &regs);
    while (first < n && (uint64_t)(uintptr_t)expected[first] != regs.value[32])
        first++;
    compare("interrupted", &regs, expected, n, first, true);
}

static NOINLINE void raises(int depth)
{
    if (depth)
        raises(depth - 1);
    else
        raise(SIGUSR1);
    sink++;
}

int main(void)
{
    int values[] = {3, 1, 2};
    void *warm[4];
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    process = tare__unwind_process_new(tare__unwind_new(), getpid());
    backtrace(warm, 4); /* loads libgcc_s */
    qsort(values, 3, sizeof(*values), by_value);
    deep(5);
    sized(3000);
    sigaction(SIGUSR1, &action, NULL);
    raises(3);
    return 0;
}
