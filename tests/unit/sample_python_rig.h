/* The interpreters of this machine, and programs that run in them, for the tests of Python stacks. */
#ifndef TARE_SAMPLE_PYTHON_RIG_H
#define TARE_SAMPLE_PYTHON_RIG_H

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sample/python_inner.h"
#include "sample_python_truth.h"

static char folder[] = "/tmp/tare-python-XXXXXX";
static char *interpreters[32];
static size_t n_interpreters;

/* ---- interpreters ---------------------------------------------------------------------------- */
static inline void add_interpreters(const char *pattern)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc && n_interpreters < TARE__COUNT_OF(interpreters); i++) {
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;
        char *end;
        long minor = strncmp(name, "python3.", 8) == 0 ? strtol(name + 8, &end, 10) : 0;
        if (minor >= 9 && minor <= 14 && (*end == '\0' || strcmp(end, "t") == 0 || strcmp(end, "d") == 0))
            interpreters[n_interpreters++] = strdup(found.gl_pathv[i]);
    }
    globfree(&found);
}

static inline int set_up(void **state)
{
    static const char *const folders[] = {"/usr/bin/python3.*", "/usr/local/bin/python3.*"};
    char pattern[512];
    (void)state;
    const char *home = getenv("HOME");
    const char *chosen = getenv("TARE_TEST_PYTHONS"); /* a pattern: those instead of all */
    assert_non_null(mkdtemp(folder));
    snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/3.*/bin/python3.*", home ? home : "");
    add_interpreters(chosen ? chosen : pattern);
    for (size_t i = 0; !chosen && i < TARE__COUNT_OF(folders); i++)
        add_interpreters(folders[i]);
    for (size_t i = 0; i < n_interpreters; i++)
        print_message("interpreter: %s\n", interpreters[i]);
    if (!n_interpreters)
        print_message("no CPython 3.9 to 3.14 on this machine: nothing is tested\n");
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    for (size_t i = 0; i < n_interpreters; i++)
        free(interpreters[i]);
    return system(command) == 0 ? 0 : -1;
}

/* ---- programs -------------------------------------------------------------------------------- */
typedef struct program {
    pid_t pid;
    FILE *output;
    int input;
} program;

static inline program start(const char *interpreter, const char *text, const char *a, const char *b)
{
    char path[64];
    int from[2], to[2];
    snprintf(path, sizeof(path), "%s/program.py", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(pipe(from) | pipe(to), 0);
    program program = {.pid = fork()};
    if (program.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(to[0], 0);
        dup2(from[1], 1);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
        execl(interpreter, interpreter, "-S", path, a, b, (char *)NULL);
        _exit(127);
    }
    close(from[1]);
    close(to[0]);
    program.output = fdopen(from[0], "r");
    program.input = to[1];
    return program;
}

static inline void finish(program *program)
{
    kill(program->pid, SIGKILL);
    waitpid(program->pid, NULL, 0);
    fclose(program->output);
    close(program->input);
}

static inline void wait_ready(program *program)
{
    while (strcmp(line_of(program->output), "ready") != 0)
        continue;
}

static inline tare__python *open_python(pid_t pid)
{
    tare__error error = {{0}};
    tare__python *python = NULL;
    int status = tare__python_open(pid, &python, &error);
    if (status != 0)
        fail_msg("open: %s (%d)", error.text, status);
    return python;
}

static inline uint32_t take(tare__python *python, const tare__python_thread **threads)
{
    tare__error error = {{0}};
    uint32_t n;
    int status;
    while ((status = tare__python_sample(python, threads, &n, &error)) == TARE_E_BUSY)
        continue;
    if (status != 0)
        fail_msg("sample: %s", error.text);
    return n;
}

#endif
