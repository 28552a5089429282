/* rough: programs that treat their own process badly, and one that watches what recording does to errno.
 * One thread.
 * Must not know anything of Tare but tare.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "victim.h"

static void record(const char *name, int n)
{
    for (int i = 0; i < n; i++) {
        tare_begin_name(name);
        tare_end(NULL);
    }
}

#define KEEPS_ERRNO(call)                                                                              \
    do {                                                                                               \
        errno = 7777;                                                                                  \
        call;                                                                                          \
        if (errno != 7777)                                                                             \
            printf("changed %s\n", #call);                                                             \
    } while (0)

static void watch_errno(void)
{
    static tare_site site = TARE_SITE("site"), mark = TARE_SITE_OF("mark", TARE_KIND_MARK, 1);
    static tare_site cell = TARE_SITE_OF("cell", TARE_KIND_AGGREGATE, 1);
    tare_complete_span span = {0, 1, 2, 0, 0, 0};
    KEEPS_ERRNO(tare_begin(&site)); /* joins */
    KEEPS_ERRNO(tare_next(&site));
    KEEPS_ERRNO(tare_end(&site));
    KEEPS_ERRNO(tare_begin_name("name"));
    KEEPS_ERRNO(tare_end(NULL));
    KEEPS_ERRNO(tare_mark(&mark));
    KEEPS_ERRNO(tare_counter(&mark, 1));
    KEEPS_ERRNO(tare_number(&mark, 1));
    KEEPS_ERRNO(tare_step_begin(1));
    KEEPS_ERRNO(tare_step_end());
    KEEPS_ERRNO(tare_aggregate_end(&cell, tare_aggregate_begin()));
    KEEPS_ERRNO(tare_sampled_end(&cell, tare_sampled_begin(&cell)));
    KEEPS_ERRNO(tare_complete(&site, &span));
    KEEPS_ERRNO((void)tare_track("track", TARE_TRACK_GPU));
    KEEPS_ERRNO(tare_thread_name("thread"));
    KEEPS_ERRNO(tare_pause());
    KEEPS_ERRNO(tare_resume());
    KEEPS_ERRNO((void)tare_start(NULL));
    KEEPS_ERRNO((void)tare_stop());
    KEEPS_ERRNO((void)tare_resume());
    for (int i = 0; i < 20000; i++) /* over the ends of chunks */
        KEEPS_ERRNO(tare_mark(&mark));
}

static void crash(const char *how)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    record("before the crash", 100);
    tare_begin_name("crashing");
    if (strcmp(how, "segv") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    } else if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    else
        abort();
}

int main(int argc, char **argv)
{
    const char *mode = mode_of(argc, argv);
    tell_session();
    if (strcmp(mode, "errno") == 0) {
        watch_errno();
    } else if (strcmp(mode, "close") == 0 || strcmp(mode, "close-first") == 0) {
        if (strcmp(mode, "close") == 0)
            record("before", 50);
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
        record("after", 50);
    } else if (strcmp(mode, "chdir") == 0) {
        if (chdir("/") != 0)
            return 98;
        record("elsewhere", 50);
    } else if (strcmp(mode, "no-files") == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_NOFILE, &none); /* it cannot join any more, and must not mind */
        record("unseen", 50);
        tell("done", 1);
    } else if (strcmp(mode, "crash") == 0) {
        crash(argc > 2 ? argv[2] : "");
    } else if (strcmp(mode, "exit") == 0) {
        record("exits", 1);
        return (int)number_of(argc, argv, 2, 0);
    } else if (strcmp(mode, "sleep") == 0) {
        record("sleeps", 1);
        tell("ready", 1);
        wait_ms((unsigned)number_of(argc, argv, 2, 1000));
        record("woke", 1);
    } else {
        return unknown_mode(mode);
    }
    return 0;
}
