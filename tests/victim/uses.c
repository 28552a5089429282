/* uses: uses a known amount of something, and says what the kernel made of it.
 * Modes: spin MS (CPU time of one thread) · threads N MS · spike MB MS (memory for a moment, then 300 ms without)
 * · burst MB (memory, and the end) · child MB MS (a spike in a child, that stays) · many N MS (children one after
 * the other) · orphan MS · ignored N MS (children nobody waits for) · write MB · sleep MS. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void spin(long ms)
{
    uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)ms * 1000000u;
    for (volatile uint64_t i = 0; (i & 1023) || clock_ns(CLOCK_THREAD_CPUTIME_ID) < until; i++)
        ;
}

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0)
        ;
}

static long peak_kb(void)
{
    char line[256];
    long peak = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &peak) == 1)
            break;
    if (file)
        fclose(file);
    return peak;
}

static void say_usage(void)
{
    struct rusage own, waited;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &waited);
    printf("cpu_us %ld\n", (own.ru_utime.tv_sec + own.ru_stime.tv_sec + waited.ru_utime.tv_sec +
                            waited.ru_stime.tv_sec) * 1000000 + own.ru_utime.tv_usec + own.ru_stime.tv_usec +
                               waited.ru_utime.tv_usec + waited.ru_stime.tv_usec);
    printf("peak_kb %ld\n", peak_kb());
    fflush(stdout);
}

static void spike(long mb, long ms)
{
    size_t bytes = (size_t)mb << 20;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    pause_ms(ms);
    munmap(memory, bytes);
}

static void *spin_thread(void *argument)
{
    pthread_setname_np(pthread_self(), "spinner");
    spin((long)(intptr_t)argument);
    return NULL;
}

static void spin_threads(long n, long ms)
{
    pthread_t threads[256];
    for (long i = 0; i < n && i < 256; i++)
        pthread_create(&threads[i], NULL, spin_thread, (void *)(intptr_t)ms);
    for (long i = 0; i < n && i < 256; i++)
        pthread_join(threads[i], NULL);
}

static pid_t child_that(void (*work)(long, long), long a, long b)
{
    pid_t pid = fork();
    if (pid == 0) {
        work(a, b);
        _exit(0);
    }
    return pid;
}

static void spin_work(long ms, long unused)
{
    (void)unused;
    spin(ms);
}

static void spike_and_stay(long mb, long ms)
{
    spike(mb, 5);
    printf("child %d\nchild_peak_kb %ld\n", (int)getpid(), peak_kb());
    fflush(stdout);
    pause_ms(ms);
}

static void orphan(long ms)
{
    int told[2];
    char byte;
    if (pipe(told) != 0)
        exit(1);
    if (fork() == 0) {
        if (fork() == 0) {
            spin(ms);
            _exit(0); /* which closes the pipe */
        }
        _exit(0);
    }
    close(told[1]);
    wait(NULL);
    if (read(told[0], &byte, 1) != 0)
        exit(1);
}

static void write_file(long mb)
{
    static char piece[1 << 20];
    int fd = open("written", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    for (long i = 0; i < mb; i++)
        if (write(fd, piece, sizeof piece) != (ssize_t)sizeof piece)
            exit(1);
    fsync(fd);
    close(fd);
    pause_ms(300);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    long a = argc > 2 ? atol(argv[2]) : 0, b = argc > 3 ? atol(argv[3]) : 0;
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    if (strcmp(mode, "spin") == 0)
        spin(a);
    else if (strcmp(mode, "threads") == 0)
        spin_threads(a, b);
    else if (strcmp(mode, "spike") == 0)
        spike(a, b), pause_ms(300);
    else if (strcmp(mode, "burst") == 0)
        spike(a, 0);
    else if (strcmp(mode, "child") == 0)
        waitpid(child_that(spike_and_stay, a, b), NULL, 0);
    else if (strcmp(mode, "many") == 0)
        for (long i = 0; i < a; i++)
            waitpid(child_that(spin_work, b, 0), NULL, 0);
    else if (strcmp(mode, "ignored") == 0) {
        signal(SIGCHLD, SIG_IGN);
        for (long i = 0; i < a; i++)
            child_that(spin_work, b, 0);
        wait(NULL); /* returns when the last is gone */
    } else if (strcmp(mode, "orphan") == 0)
        orphan(a);
    else if (strcmp(mode, "write") == 0)
        write_file(a);
    else if (strcmp(mode, "sleep") == 0)
        pause_ms(a);
    else
        return 2;
    say_usage();
    return 0;
}
