/* Preloaded: perf_event_open is not permitted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

long syscall(long number, ...)
{
    long (*next)(long, long, long, long, long, long, long) =
        (long (*)(long, long, long, long, long, long, long))dlsym(RTLD_NEXT, "syscall");
    long words[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_perf_event_open) {
        errno = EACCES;
        return -1;
    }
    return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
