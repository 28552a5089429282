/* dump: `tare attach --dump`: the stack of every Python thread of a process, once, also of one that hangs.
 * One thread. The process is only read, never paused.
 * Must not know how stacks are read. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "dump.h"
#include "sample/sample.h"
#include "tare.h"

#define TRIES 200        /* of a process that is starting, or whose stacks change all the time */
#define PAUSE_NS 5000000
#define WAIT_NS UINT64_C(5000000000) /* no further try after this */
#define TEXT_COLUMNS 4096u

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static int open_python(pid_t pid, tare__python **python, tare__error *error)
{
    int status = TARE_E_BUSY;
    for (int i = 0; i < TRIES && status == TARE_E_BUSY; i++) {
        if (i)
            pause_a_little();
        status = tare__python_open(pid, python, error);
    }
    return status == TARE_E_BUSY || status == TARE_E_SYSTEM ? TARE_E_INPUT : status;
}

static bool any_torn(const tare__python_thread *threads, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (threads[i].torn)
            return true;
    return false;
}

/* By a signal, or by a debugger; it shows the system call in which it was stopped. */
static bool is_stopped(pid_t pid, pid_t tid)
{
    char path[64], line[512], letter = '\0';
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file)
        fclose(file);
    line[got] = '\0';
    const char *after = strrchr(line, ')');
    return after && sscanf(after + 1, " %c", &letter) == 1 && (letter == 'T' || letter == 't');
}

static void put_state(pid_t pid, const tare__python *python, const tare__python_thread *thread, tare__text *out)
{
    tare__thread_reader *reader = thread->tid > 0 ? tare__thread_open(pid, thread->tid) : NULL;
    tare__thread_now now = {.system_call = -1};
    if (thread->tid > 0 && is_stopped(pid, thread->tid)) {
        tare__text_string(out, ": stopped (by a signal or a debugger)");
    } else if (reader && tare__thread_read(reader, &now)) {
        bool gil = now.state == TARE__STATE_LOCK && !thread->has_gil && tare__python_is_gil(python, now.lock);
        tare__text_format(out, ": %s", tare__thread_state_words(gil ? TARE__STATE_GIL : now.state));
        const char *call = tare__system_call_name(now.system_call);
        if (call)
            tare__text_format(out, " in %s", call);
    }
    tare__thread_close(reader);
}

/* Names and files come from the process: each stays on one line. */
static void put_frame(const tare__python_code *code, int line, tare__text *out)
{
    char name[4 * TEXT_COLUMNS], file[4 * TEXT_COLUMNS];
    tare__text_fit(name, sizeof name, code->name, TEXT_COLUMNS);
    tare__text_fit(file, sizeof file, code->file, TEXT_COLUMNS);
    tare__text_format(out, "    %s (%s:%d)\n", name, file, line);
}

static void put_thread(pid_t pid, const tare__python *python, const tare__python_thread *thread, tare__text *out)
{
    if (thread->tid)
        tare__text_format(out, "\nThread %d%s", (int)thread->tid, thread->main ? " (MainThread)" : "");
    else
        tare__text_string(out, "\nUnknown thread");
    put_state(pid, python, thread, out);
    tare__text_string(out, thread->has_gil ? ", holds the GIL" : "");
    tare__text_string(out, thread->in_gc ? ", collects garbage\n" : "\n");
    if (thread->torn)
        tare__text_string(out, "    (its stack changes too fast to be read)\n");
    else if (thread->n == 0)
        tare__text_string(out, "    (no Python frames)\n");
    for (uint32_t i = 0; i < thread->n; i++) {
        const tare__python_code *code = tare__python_code_at(python, thread->frames[i].code);
        if (code)
            put_frame(code, (int)thread->frames[i].line, out);
        if (thread->cut && i + 1 == TARE__PYTHON_DEPTH_MAX / 4 * 3)
            tare__text_format(out, "    (%u frames omitted)\n", thread->depth - thread->n);
    }
}

int tare__cli_dump(pid_t pid, tare__text *out, tare__error *error)
{
    tare__python *python = NULL;
    const tare__python_thread *threads = NULL;
    uint32_t n = 0;
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return tare__fail(error, TARE_E_INPUT, "no process %d", (int)pid);
    int status = open_python(pid, &python, error);
    if (status)
        return status;
    uint64_t until = tare__monotonic_ns() + WAIT_NS;
    for (int i = 0; i < TRIES && (!i || tare__monotonic_ns() < until); i++) {
        status = tare__python_sample(python, &threads, &n, error);
        if (status != TARE_E_BUSY && (status || !any_torn(threads, n)))
            break;
        pause_a_little();
    }
    if (status == 0) {
        tare__text_format(out, "Process %d: Python %s (%s)\n", (int)pid, tare__python_version(python),
                          tare__python_object(python));
        for (uint32_t i = 0; i < n; i++)
            put_thread(pid, python, &threads[i], out);
        if (n == 0)
            tare__text_string(out, "No Python thread\n");
    }
    tare__python_close(python);
    return status;
}
