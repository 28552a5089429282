/* doctor: which files of /proc/PID are readable on this machine, tested on this process.
 * Any thread: no state.
 * Must not know how results are shown. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "native_events.h"
#include "watch.h"

typedef struct source {
    const char *name;    /* as shown */
    const char *path;    /* file of this process that is tested */
    const char *gives;   /* if it works */
    const char *without; /* if the kernel has no such file */
    tare__sample_state missing;
} source;

static const source sources[] = {
    {"/proc/PID/stat", "/proc/self/stat", "CPU time, page faults, threads and their states", "/proc is not mounted",
     TARE__SAMPLE_FAILS},
    {"/proc/PID/status", "/proc/self/status", "resident memory, its peak, swap, context switches",
     "/proc is not mounted", TARE__SAMPLE_FAILS},
    {"/proc/PID/io", "/proc/self/io", "bytes read and written", "the kernel does not count them "
     "(CONFIG_TASK_IO_ACCOUNTING)", TARE__SAMPLE_FAILS},
    {"/proc/PID/smaps_rollup", "/proc/self/smaps_rollup", "proportional set size (PSS)",
     "the kernel has no such file (before 4.14)", TARE__SAMPLE_FAILS},
    {"/proc/PID/task/TID/children", "/proc/thread-self/children", "child processes without delay",
     "the kernel has no such file (CONFIG_PROC_CHILDREN): all of /proc is searched once a second",
     TARE__SAMPLE_PARTLY},
};

static void check(const char *root, const source *source, tare__sample_check *out)
{
    char text[8192];
    int got = tare__sample_read(root, source->path, text, sizeof text);
    out->source = source->name;
    if (got >= 0) {
        out->state = TARE__SAMPLE_WORKS;
        snprintf(out->detail, sizeof out->detail, "%s", source->gives);
    } else if (got == -ENOENT) {
        out->state = source->missing;
        snprintf(out->detail, sizeof out->detail, "%s", source->without);
        if (strcmp(source->without, "/proc is not mounted") == 0)
            snprintf(out->fix, sizeof out->fix, "mount -t proc proc /proc");
    } else {
        out->state = TARE__SAMPLE_FAILS;
        tare__sample_why(got, source->path, out->detail);
    }
}

/* Processes of other users: root sees all, otherwise it depends on how /proc is mounted. */
static void check_others(const char *root, tare__sample_check *out)
{
    char text[1024];
    out->source = "processes of other users";
    bool seen = tare__sample_read(root, "/proc/1/stat", text, sizeof text) > 0;
    if (!seen) {
        out->state = TARE__SAMPLE_FAILS;
        snprintf(out->detail, sizeof out->detail, "hidden (/proc is mounted with hidepid)");
        snprintf(out->fix, sizeof out->fix, "sudo mount -o remount,hidepid=0 /proc");
    } else if (geteuid() != 0) {
        out->state = TARE__SAMPLE_PARTLY;
        snprintf(out->detail, sizeof out->detail,
                 "CPU time and resident memory are seen; bytes read and written, open files and shared memory are "
                 "not");
        snprintf(out->fix, sizeof out->fix, "run tare as root, or as the user whose processes these are");
    } else {
        out->state = TARE__SAMPLE_WORKS;
        snprintf(out->detail, sizeof out->detail, "root can read all processes");
    }
}

static void check_clock(tare__sample_check *out)
{
    struct timespec time;
    clockid_t clock;
    out->source = "CPU clocks of processes";
    if (clock_getcpuclockid(getppid() > 0 ? getppid() : getpid(), &clock) == 0 && clock_gettime(clock, &time) == 0) {
        out->state = TARE__SAMPLE_WORKS;
        snprintf(out->detail, sizeof out->detail, "CPU time in nanoseconds");
    } else {
        out->state = TARE__SAMPLE_PARTLY;
        snprintf(out->detail, sizeof out->detail, "unavailable: resolution of CPU time is %ld ms",
                 1000 / sysconf(_SC_CLK_TCK));
    }
}

/* "what is wrong: what to do" */
static void check_native(tare__sample_check *out)
{
    tare__native_events *events;
    tare__error error = {""};
    out->source = "native stacks (--native)";
    if (tare__native_events_open(10000000, &events, &error) == 0) {
        out->state = TARE__SAMPLE_WORKS;
        snprintf(out->detail, sizeof out->detail, "of all threads%s",
                 tare__native_events_has_kernel(events) ? ", with functions of the kernel" : "");
        tare__native_events_close(events);
        return;
    }
    const char *fix = strstr(error.text, ": ");
    out->state = TARE__SAMPLE_PARTLY;
    snprintf(out->detail, sizeof out->detail, "only of threads that wait: %.*s",
             (int)(fix ? (size_t)(fix - error.text) : strlen(error.text)), error.text);
    if (fix)
        snprintf(out->fix, sizeof out->fix, "%s", fix + 2);
}

void tare__process_doctor(const char *root, tare__sample_check_sink *sink, void *context)
{
    for (size_t i = 0; i < TARE__COUNT_OF(sources); i++) {
        tare__sample_check answer = {.sampler = "process"};
        check(root, &sources[i], &answer);
        sink(context, &answer);
    }
    tare__sample_check others = {.sampler = "process"}, clock = {.sampler = "process"};
    tare__sample_check native = {.sampler = "process"};
    check_others(root, &others);
    sink(context, &others);
    check_clock(&clock);
    sink(context, &clock);
    check_native(&native);
    sink(context, &native);
}
