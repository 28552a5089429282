// What native stacks must survive: many threads, threads that end, processes that are forked or executed, generated code.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double cpu()
{
    timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return double(at.tv_sec) + 1e-9 * double(at.tv_nsec);
}

namespace parts {
template <typename T> struct Worker {
    __attribute__((noinline)) T spin(double seconds)
    {
        T x = 1;
        for (double end = cpu() + seconds; cpu() < end;)
            for (int i = 0; i < 20000; i++)
                x = x * 3 + (x >> 5);
        return x;
    }
};
} // namespace parts

static volatile uint64_t sink;

__attribute__((noinline)) static void in_thread(double seconds)
{
    sink = parts::Worker<uint64_t>().spin(seconds);
}

__attribute__((noinline)) static void in_child(double seconds)
{
    sink = parts::Worker<uint32_t>().spin(seconds);
}

__attribute__((noinline)) static void waits(double seconds)
{
    timespec time = {time_t(seconds), long((seconds - double(long(seconds))) * 1e9)};
    nanosleep(&time, nullptr);
}

static void *start(void *seconds)
{
    in_thread(*static_cast<double *>(seconds));
    return nullptr;
}

static void threads(int n, double seconds)
{
    pthread_t *all = new pthread_t[n];
    for (int i = 0; i < n; i++)
        if (pthread_create(&all[i], nullptr, start, &seconds) != 0)
            exit(1);
    for (int i = 0; i < n; i++)
        pthread_join(all[i], nullptr);
    delete[] all;
}

static void storm(int n)
{
    for (int i = 0; i < n; i++)
        threads(1, 0.0005);
}

static void child(double seconds)
{
    pid_t pid = fork();
    if (pid == 0) {
        in_child(seconds);
        _exit(0);
    }
    waitpid(pid, nullptr, 0);
}

// A loop that no object has.
static void generated(double seconds)
{
#if defined(__x86_64__)
    static const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
    void *at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(77);
    memcpy(at, code, sizeof code);
    for (double end = cpu() + seconds; cpu() < end;)
        reinterpret_cast<void (*)(uint64_t)>(at)(10000000);
#else
    exit(77);
#endif
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    double value = argc > 2 ? atof(argv[2]) : 1;
    if (strcmp(mode, "threads") == 0)
        threads(int(value), argc > 3 ? atof(argv[3]) : 0.1);
    else if (strcmp(mode, "storm") == 0)
        storm(int(value));
    else if (strcmp(mode, "fork") == 0)
        child(value);
    else if (strcmp(mode, "wait") == 0)
        waits(value);
    else if (strcmp(mode, "generated") == 0)
        generated(value);
    else if (strcmp(mode, "exec") == 0 && argc > 3) {
        in_thread(value);
        execv(argv[3], argv + 3);
        return 1;
    } else if (strcmp(mode, "gone") == 0) {
        unlink(argv[0]);
        in_thread(value);
    } else
        in_thread(value);
    return 0;
}
