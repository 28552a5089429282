/* signals: holds signals back while a change must be completed: a handler may leave by siglongjmp and never return.
 * Runs in the recording thread; two system calls, so only where chunks, names and rings are made.
 * Must not know what is changed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>

#include "record.h"

/* Faults and traps are not held: blocked, they would end the program instead of reaching its handler. */
void tare__signals_hold(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < TARE__COUNT_OF(faults); i++)
        sigdelset(&held, faults[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

void tare__signals_release(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
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
        return frame_inside; /* a handler on the alternate stack was left; or is on top of what runs below */
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
