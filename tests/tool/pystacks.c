/* pystacks: samples the Python stacks of a process: `pystacks PID [HZ [SECONDS]]`, or `pystacks PID once`.
 * Prints the stacks of the last sample and the cost of all; `once` prints one sample without figures.
 * One thread. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sample/python.h"
#include "tare.h"

static int64_t now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return INT64_C(1000000000) * time.tv_sec + time.tv_nsec;
}

static void print_threads(const tare__python *python, const tare__python_thread *threads, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const tare__python_thread *thread = &threads[i];
        printf("thread %d%s%s%s%s%s depth %u\n", (int)thread->tid, thread->main ? " main" : "",
               thread->has_gil ? " gil" : "", thread->in_gc ? " gc" : "", thread->torn ? " torn" : "",
               thread->cut ? " cut" : "", (unsigned)thread->depth);
        for (uint32_t k = 0; k < thread->n; k++) {
            const tare__python_code *code = tare__python_code_at(python, thread->frames[k].code);
            printf("    %s (%s:%d, from %u)\n", code->name, code->file, (int)thread->frames[k].line,
                   (unsigned)code->first_line);
        }
    }
}

int main(int n_args, char **args)
{
    if (n_args < 2) {
        fputs("usage: pystacks PID [HZ [SECONDS] | once]\n", stderr);
        return 2;
    }
    bool once = n_args > 2 && strcmp(args[2], "once") == 0;
    double hz = n_args > 2 && !once ? strtod(args[2], NULL) : 100, seconds = n_args > 3 ? strtod(args[3], NULL) : 1;
    tare__error error;
    tare__python *python;
    const tare__python_thread *threads = NULL;
    uint32_t n = 0;
    int status;
    int64_t opening = now_ns(CLOCK_THREAD_CPUTIME_ID);
    pid_t pid = (pid_t)atoi(args[1]);
    for (int tries = 0; (status = tare__python_open(pid, &python, &error)) == TARE_E_BUSY && tries < 500; tries++)
        usleep(10000);
    if (status != 0) {
        fprintf(stderr, "pystacks: %s (%d)\n", error.text, status);
        return 1;
    }
    opening = now_ns(CLOCK_THREAD_CPUTIME_ID) - opening;
    int64_t end = now_ns(CLOCK_MONOTONIC) + (int64_t)(1e9 * seconds), next = now_ns(CLOCK_MONOTONIC), worst = 0;
    int64_t cpu = 0;
    uint64_t samples = 0;
    do {
        int64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);
        status = tare__python_sample(python, &threads, &n, &error);
        if (status != 0 && status != TARE_E_BUSY)
            break;
        int64_t spent = now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
        if (samples++) {
            cpu += spent;
            worst = spent > worst ? spent : worst;
        }
        next += (int64_t)(1e9 / hz);
        struct timespec until = {next / 1000000000, next % 1000000000};
        if (!once && hz < 1e5)
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    } while (!once && now_ns(CLOCK_MONOTONIC) < end);
    if (status != 0)
        fprintf(stderr, "pystacks: %s (%d)\n", error.text, status);
    else
        print_threads(python, threads, n);
    if (!once) {
        tare__python_cost cost = tare__python_cost_of(python);
        printf("Python %s in %s: opened in %.0f us; %" PRIu64 " samples, %.1f us CPU each (worst %.0f), %.2f calls "
               "each, %" PRIu64 " of %" PRIu64 " threads torn, %u functions\n",
               tare__python_version(python), tare__python_object(python), 1e-3 * (double)opening, samples,
               samples > 1 ? 1e-3 * (double)cpu / (double)(samples - 1) : 0, 1e-3 * (double)worst,
               (double)cost.calls / (double)samples, cost.torn, cost.samples,
               (unsigned)tare__python_code_count(python));
    }
    tare__python_close(python);
    return status != 0;
}
