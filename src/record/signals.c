/* signals: blocks signals while a change must be completed, since a handler may leave by siglongjmp and never
 * return.
 * Runs in the recording thread; two system calls, so only where chunks, names and rings are created.
 * Must not know what is changed. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record.h"

#define BIT(number) (UINT64_C(1) << ((number) - 1))
/* Faults and traps are not blocked: if blocked, they would kill the program instead of reaching its handler. Neither
 * are the two signals that libc reserves. */
#define NOT_HELD                                                                                                    \
    (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGSYS) | BIT(SIGABRT) | BIT(32) | \
     BIT(33))

/* The kernel's set of 8 bytes: libc's 128 bytes are too much for a handler on a small stack. */
void tare__signals_hold(uint64_t *before)
{
    uint64_t held = ~NOT_HELD;
    *before = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &held, before, sizeof held);
}

void tare__signals_release(const uint64_t *before)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof *before);
}

bool tare__signals_frame_left(uintptr_t frame, uintptr_t here)
{
    stack_t alternate;
    uintptr_t bottom = 0, top = 0;
    if (sigaltstack(NULL, &alternate) == 0 && !(alternate.ss_flags & SS_DISABLE)) {
        bottom = (uintptr_t)alternate.ss_sp;
        top = bottom + alternate.ss_size;
    }
    bool frame_inside = frame >= bottom && frame < top, here_inside = here >= bottom && here < top;
    if (here_inside != frame_inside)
        return frame_inside; /* a handler on the alternate stack was left, or interrupts the code below */
    return here >= frame;
}

size_t tare__signals_stack_left(void)
{
    stack_t alternate;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (sigaltstack(NULL, &alternate) != 0 || (alternate.ss_flags & SS_DISABLE))
        return SIZE_MAX;
    uintptr_t bottom = (uintptr_t)alternate.ss_sp;
    return here >= bottom && here < bottom + alternate.ss_size ? here - bottom : SIZE_MAX;
}
