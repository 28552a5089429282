/* busy: programs that know nothing of tare, for what it costs to be looked at from outside: work on CPUs,
 * processes that come and go, memory that is there for a moment, threads that sleep. Threads share nothing.
 * Must not know tare. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long number(char **argv, int at)
{
    for (int i = 1; i <= at; i++)
        if (!argv[i])
            exit(2);
    return strtol(argv[at], NULL, 10);
}

static void rest_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* ---- cpu MILLIONS THREADS: each step needs the one before ------------------------------------------------ */
static void *work(void *millions)
{
    uint64_t value = 1;
    for (long i = 0; i < *(long *)millions * 1000000; i++)
        value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (void *)(uintptr_t)(value & 1);
}

static void run_threads(void *(*body)(void *), void *argument, long n)
{
    pthread_t threads[1000];
    for (long i = 1; i < n && i < 1000; i++)
        if (pthread_create(&threads[i], NULL, body, argument) != 0)
            exit(3);
    body(argument);
    for (long i = 1; i < n && i < 1000; i++)
        pthread_join(threads[i], NULL);
}

/* ---- forks N: so many processes, one after the other, each with a program of its own --------------------- */
static void fork_many(char *self, long n)
{
    for (long i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            execl(self, self, "nothing", (char *)NULL);
            _exit(4);
        }
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            exit(4);
    }
}

/* ---- spike MIB MS: prints the largest resident set, in bytes, as the kernel counts it --------------------- */
static void spike(long mib, long ms)
{
    size_t bytes = (size_t)mib << 20;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(5);
    memset(memory, 1, bytes);
    rest_ms(ms);
    munmap(memory, bytes);
    rest_ms(350);
}

static void print_peak(const struct rusage *usage)
{
    printf("%ld\n", usage->ru_maxrss * 1024);
}

static void descendant(char *self, char **argv)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl(self, self, "hold", argv[2], argv[3], (char *)NULL);
        _exit(4);
    }
    struct rusage usage;
    int status;
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0)
        exit(4);
    print_peak(&usage);
}

static void *sleep_long(void *seconds)
{
    rest_ms(1000 * *(long *)seconds);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    struct rusage usage;
    if (strcmp(mode, "nothing") == 0)
        return 0;
    if (strcmp(mode, "cpu") == 0) {
        long millions = number(argv, 2);
        run_threads(work, &millions, number(argv, 3));
    } else if (strcmp(mode, "forks") == 0) {
        fork_many(argv[0], number(argv, 2));
    } else if (strcmp(mode, "spike") == 0) {
        spike(number(argv, 2), number(argv, 3));
        getrusage(RUSAGE_SELF, &usage);
        print_peak(&usage);
    } else if (strcmp(mode, "hold") == 0) {
        spike(number(argv, 2), number(argv, 3));
    } else if (strcmp(mode, "descendant") == 0) {
        number(argv, 3);
        descendant(argv[0], argv);
    } else if (strcmp(mode, "sleepers") == 0) {
        long seconds = number(argv, 3);
        run_threads(sleep_long, &seconds, number(argv, 2));
    } else {
        fprintf(stderr, "busy: cpu MILLIONS THREADS | forks N | spike MIB MS | descendant MIB MS | "
                        "sleepers N SECONDS\n");
        return 2;
    }
    return 0;
}
