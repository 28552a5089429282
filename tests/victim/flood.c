/* flood: more than the memory holds. Each thread records a known pattern and tells how many spans that was;
 * with `stop`, the collector is halted meanwhile, so that drops are certain.
 * A thread each.
 * Must not know anything of Tare but tare.h. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "victim.h"

static tare_site outer = TARE_SITE("outer"), middle = TARE_SITE("middle"), inner = TARE_SITE("inner");
static tare_site mark = TARE_SITE_OF("mark", TARE_KIND_MARK, 1);
static uint64_t rounds, depth;

/* In each round: an outer span, a chain of two in it, `depth` levels below, and a mark. */
static void *pattern(void *argument)
{
    uint64_t spans = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        tare_begin(&outer);
        tare_begin(&middle);
        tare_next(&middle);
        for (uint64_t level = 0; level < depth; level++)
            tare_begin(&inner);
        tare_mark(&mark);
        for (uint64_t level = 0; level < depth; level++)
            tare_end(&inner);
        tare_end(&middle);
        tare_end(&outer);
        spans += 3 + depth;
    }
    printf("thread %d %llu %llu\n", (int)syscall(SYS_gettid), (unsigned long long)spans,
           (unsigned long long)rounds);
    return argument;
}

static void *pairs(void *argument)
{
    for (uint64_t i = 0; i < rounds; i++) {
        tare_begin(&outer);
        tare_end(&outer);
    }
    printf("thread %d %llu 0\n", (int)syscall(SYS_gettid), (unsigned long long)rounds);
    return argument;
}

int main(int argc, char **argv)
{
    const char *mode = mode_of(argc, argv);
    void *(*body)(void *) = strstr(mode, "pairs") ? pairs : pattern;
    rounds = number_of(argc, argv, 2, 1000);
    depth = number_of(argc, argv, 3, 2);
    uint64_t threads = number_of(argc, argv, 4, 1);
    int stop = strstr(mode, "stop") != NULL;
    pthread_t ids[64];
    if (threads > 64)
        return 98;
    sigset_t cont;
    sigemptyset(&cont);
    sigaddset(&cont, SIGCONT);
    sigprocmask(SIG_BLOCK, &cont, NULL);
    if (stop)
        kill(getppid(), SIGSTOP);
    for (uint64_t i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, body, NULL);
    for (uint64_t i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    if (stop) { /* it is passed on to us, too: taken here, or it would undo a sanitizer's stop at the end */
        kill(getppid(), SIGCONT);
        sigtimedwait(&cont, NULL, &(struct timespec){10, 0});
    }
    return 0;
}
