/* clock: selects and reads the clock. Depends only on files of the kernel; any thread.
 * Must not know sessions. */
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "record.h"

/* A virtual machine may hide the bit; it is sufficient that the kernel itself uses the counter as clock source. */
static bool kernel_trusts_tsc(void)
{
    char name[16] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, name, sizeof name - 1);
    close(fd);
    return got >= 4 && memcmp(name, "tsc\n", 4) == 0;
}

bool tare__clock_tsc_forbidden(void)
{
#if defined(__x86_64__)
    int may = PR_TSC_ENABLE;
    if (prctl(PR_GET_TSC, &may) != 0 || may != PR_TSC_SIGSEGV)
        return false;
    tare__time_by_system_call = true;
    return true;
#else
    return false;
#endif
}

tare__clock_kind tare__clock_choose(void)
{
    return tare__cpu_has_steady_counter() || kernel_trusts_tsc() ? TARE__CLOCK_TSC : TARE__CLOCK_MONOTONIC;
}

uint64_t tare__clock_ticks(tare__clock_kind kind)
{
    return kind == TARE__CLOCK_TSC ? tare__tsc() : tare__monotonic_ns();
}
