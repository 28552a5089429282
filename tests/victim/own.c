/* own: sessions of the program's own, without `tare run`: twice, with a fork inside, ended by SIGKILL.
 * One thread a process, but where scopes outlive a session.
 * Must not know anything of Tare but tare.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "victim.h"

static void record(const char *name, int n)
{
    for (int i = 0; i < n; i++) {
        tare_begin_name(name);
        tare_end(NULL);
    }
}

static int start(const char *output)
{
    tare_options options = {.size = sizeof options, .output = output};
    errno = 1234;
    int status = tare_start(&options);
    if (errno != 1234)
        tell("errno_changed", 1);
    return status;
}

static void twice(void)
{
    tell("idle", (uint64_t)(tare_stop() == TARE_E_NO_SESSION));
    record("before", 7);
    for (int round = 0; round < 2; round++) {
        char name[32];
        snprintf(name, sizeof name, "own%d.tare", round);
        tell("started", (uint64_t)(start(name) == 0));
        tell("busy", (uint64_t)(tare_start(NULL) == TARE_E_BUSY));
        printf("output %s\n", tare_output());
        tell("recording", (uint64_t)tare_recording());
        record(round ? "second" : "first", 40);
        tare_begin_name("open over the end");
        pid_t pid = fork();
        if (pid == 0) {
            record("child", 25);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
        tell("stopped", (uint64_t)(tare_stop() == 0));
        tell("errno_kept", (uint64_t)(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD));
        tare_end(NULL);
        record("between", 7);
    }
}

static void killed(void)
{
    tell("started", (uint64_t)(start("killed.tare") == 0));
    record("doomed", 500);
    tare_begin_name("open at the kill");
    kill(getpid(), SIGKILL);
}

/* Scopes that outlive the session they were begun in, more of them than fit where a thread without one counts,
 * here and in another thread. `again`: the next session has begun when they end. */
static pthread_barrier_t bottom;

static void dive(int depth)
{
    TARE_SPAN("level");
    if (depth > 1)
        dive(depth - 1);
    else
        for (int i = 0; i < 2; i++) /* all are open; one session has ended, and the next may have begun */
            pthread_barrier_wait(&bottom);
}

static void *dive_beside(void *depth)
{
    dive(*(int *)depth);
    record("dived", 3);
    return NULL;
}

static void outlive(bool again)
{
    pthread_t threads[2];
    int depths[] = {600, 5000}; /* the second fills more than one chunk */
    pthread_barrier_init(&bottom, NULL, 3);
    tell("started", (uint64_t)(start("own0.tare") == 0));
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, dive_beside, &depths[i]);
    pthread_barrier_wait(&bottom);
    tell("stopped", (uint64_t)(tare_stop() == 0));
    if (again)
        tell("started", (uint64_t)(start("own1.tare") == 0));
    pthread_barrier_wait(&bottom);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    if (!again)
        tell("started", (uint64_t)(start("own1.tare") == 0));
    record("after", 5);
    tell("stopped", (uint64_t)(tare_stop() == 0));
}

/* Known work to be seen from outside: 64 MiB, and time on a CPU. */
static void busy(void)
{
    size_t bytes = (size_t)64 << 20;
    char *memory = malloc(bytes);
    tell("started", (uint64_t)(start("busy.tare") == 0));
    memset(memory, 1, bytes);
    tare_begin_name("work");
    struct timespec now;
    uint64_t spent = 0;
    do
        for (int i = 0; i < 1000000; i++)
            spent += (uint64_t)memory[(spent + (uint64_t)i * 4096) % bytes];
    while (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0 && now.tv_sec == 0 && now.tv_nsec < 700000000);
    tare_end(NULL);
    tell("cpu_ns", (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    tell("kept", spent > 0);
    tell("stopped", (uint64_t)(tare_stop() == 0));
    free(memory);
}

static void wrong(void)
{
    tare_options options = {.size = 3};
    tell("size", (uint64_t)-tare_start(&options));
    options = (tare_options){.size = sizeof options, .output = "/nonexistent/folder/x.tare"};
    tell("folder", (uint64_t)-tare_start(&options));
    options = (tare_options){.size = sizeof options, .helper = "/nonexistent/tare"};
    tell("helper", (uint64_t)-tare_start(&options));
    tell("children", (uint64_t)(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD));
    record("nowhere", 10);
}

int main(int argc, char **argv)
{
    const char *mode = mode_of(argc, argv);
    if (strcmp(mode, "twice") == 0)
        twice();
    else if (strcmp(mode, "killed") == 0)
        killed();
    else if (strcmp(mode, "outlive") == 0 || strcmp(mode, "outlive-again") == 0)
        outlive(mode[7] == '-');
    else if (strcmp(mode, "busy") == 0)
        busy();
    else if (strcmp(mode, "wrong") == 0)
        wrong();
    else if (strcmp(mode, "leave") == 0) { /* ends without tare_stop */
        start("left.tare");
        record("left", 30);
    } else
        return unknown_mode(mode);
    return 0;
}
