/* launch: the program's start, the name of its trace, and its signals.
 * One thread. Must not know what is recorded. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "launch.h"

/* ---- the trace's name -------------------------------------------------------------------------------------- */

/* Programs that run another one, and their options that take an argument. */
static const struct {
    const char *name;
    const char *options_with_word;
    int words; /* arguments before the command: timeout 10 …, taskset 3 … */
} wrappers[] = {
    {"env", "uSC", 0},      {"nice", "n", 0},     {"nohup", "", 0},    {"time", "fo", 0},  {"timeout", "ks", 1},
    {"taskset", "", 1},     {"numactl", "NmCpi", 0}, {"stdbuf", "ioe", 0}, {"setsid", "", 0}, {"ionice", "cnp", 0},
    {"chrt", "TPD", 1},     {"sudo", "ugCDhprtT", 0}, {"xvfb-run", "nsef", 0}, {"catchsegv", "", 0}, {"exec", "", 0},
};

static const char *const interpreters[] = {"python", "pypy",  "bash", "sh",   "dash", "zsh",  "perl", "ruby",
                                           "node",   "lua",   "Rscript", "julia", "php", "torchrun", "accelerate",
                                           "deepspeed", "java", "mpirun", "mpiexec"};

/* After an interpreter's name: version and build suffix (python3.14t, python3.14d, python3.14-dbg). */
static bool is_version(const char *text)
{
    static const char *const builds[] = {"", "d", "t", "td", "-dbg", "-debug", "-nogil"};
    text += strspn(text, "0123456789.");
    return TARE__IS_ONE_OF(text, builds);
}

static bool is_interpreter(const char *word)
{
    const char *base = tare__base_name(word);
    for (size_t i = 0; i < TARE__COUNT_OF(interpreters); i++) {
        size_t length = strlen(interpreters[i]);
        if (strncmp(base, interpreters[i], length) == 0 && is_version(base + length))
            return true;
    }
    return false;
}

static bool is_script(const char *word)
{
    static const char *const endings[] = {".py", ".sh", ".pl", ".rb", ".js", ".mjs", ".lua", ".R", ".jl", ".php"};
    size_t length = strlen(word);
    for (size_t i = 0; i < TARE__COUNT_OF(endings); i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(word + length - ending, endings[i]) == 0)
            return true;
    }
    return false;
}

/* Skips "env A=1", "timeout 10", "nice -n 5", … to the actual program. */
static char *const *skip_wrappers(char *const *word)
{
    for (bool again = true; again && word[0] && word[1];) {
        again = false;
        for (size_t i = 0; i < TARE__COUNT_OF(wrappers); i++) {
            if (strcmp(tare__base_name(word[0]), wrappers[i].name) != 0)
                continue;
            char *const *at = word + 1;
            int own = wrappers[i].words;
            while (*at && (**at == '-' || strchr(*at, '=') || own > 0)) {
                if (strcmp(*at, "--") == 0) {
                    at++;
                    break;
                }
                bool takes = **at == '-' && (*at)[1] != '-' && strlen(*at) == 2 &&
                             strchr(wrappers[i].options_with_word, (*at)[1]);
                own -= **at != '-' && !strchr(*at, '=');
                at += takes && at[1] ? 2 : 1;
            }
            if (*at) {
                word = at;
                again = true;
            }
            break;
        }
    }
    return word;
}

static const char *naming_word(char *const *command)
{
    char *const *word = skip_wrappers(command);
    if (!is_interpreter(word[0]))
        return word[0];
    for (char *const *at = word + 1; *at; at++)
        if (is_script(*at))
            return *at;
    for (char *const *at = word + 1; *at; at++) {
        if (strcmp(*at, "-m") == 0 && at[1])
            return at[1];
        if (strcmp(*at, "-c") == 0 || strcmp(*at, "-e") == 0)
            break; /* code on the command line has no name */
        if (**at != '-' && access(*at, F_OK) == 0)
            return *at;
    }
    return word[0];
}

void tare__run_name(char *const *command, char out[TARE__PATH_BYTES])
{
    const char *name = tare__base_name(naming_word(command));
    size_t length = strnlen(name, 200);
    if (is_script(name))
        length = (size_t)(strrchr(name, '.') - name);
    if (length == 0) {
        name = "run";
        length = 3;
    }
    snprintf(out, TARE__PATH_BYTES, "%.*s.tare", (int)length, name);
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = '_';
}

size_t tare__arguments_of(pid_t pid, char *text, size_t room, char **words, size_t word_room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, room - 1);
    if (fd >= 0)
        close(fd);
    size_t n = 0;
    text[got > 0 ? got : 0] = '\0';
    for (ssize_t at = 0; at < got && n + 1 < word_room; at += (ssize_t)strlen(text + at) + 1)
        words[n++] = text + at;
    if (n == 0)
        words[n++] = (char *)(uintptr_t) "run";
    words[n] = NULL;
    return n;
}

/* ---- launching --------------------------------------------------------------------------------------------- */

/* This process's environment with `entry` ("NAME=…") replacing a variable of that name. */
static void replace(char **list, size_t *n, char *entry)
{
    size_t name = (size_t)(strchr(entry, '=') - entry) + 1;
    size_t at = 0;
    while (at < *n && strncmp(list[at], entry, name) != 0)
        at++;
    list[at] = entry;
    if (at == *n)
        list[++*n] = NULL;
}

static char **environment_with(char *session, char *path)
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **list = malloc((n + 3) * sizeof *list);
    if (!list)
        return NULL;
    memcpy(list, environ, (n + 1) * sizeof *list);
    replace(list, &n, session);
    if (path)
        replace(list, &n, path);
    return list;
}

/* By vfork: copying this process's page tables would take longer than everything else. The child runs on this
 * process's memory until exec, which is also how its errno is returned. */
static pid_t start(char *const *command, char *const *environment, const tare__inherited *inherited,
                   volatile int *failed)
{
    *failed = 0;
    pid_t pid = vfork();
    if (pid == 0) {
        sigaction(SIGCHLD, &inherited->child, NULL);
        setrlimit(RLIMIT_NOFILE, &inherited->files);
        sigprocmask(SIG_SETMASK, &inherited->mask, NULL); /* no handler of this process has an effect */
        execvpe(command[0], command, environment);
        *failed = errno;
        _exit(127);
    }
    return pid;
}

void tare__inherited_take(tare__inherited *inherited)
{
    sigprocmask(SIG_SETMASK, NULL, &inherited->mask);
    sigaction(SIGCHLD, NULL, &inherited->child);
    signal(SIGCHLD, SIG_DFL); /* if ignored, the status of a child would be lost */
    if (getrlimit(RLIMIT_NOFILE, &inherited->files) == 0) {
        struct rlimit all = {inherited->files.rlim_max, inherited->files.rlim_max};
        setrlimit(RLIMIT_NOFILE, &all);
    }
}

int tare__launch(char *const *command, const char *folder, const tare__inherited *inherited, tare__launched *launched)
{
    char hook[TARE__PATH_BYTES], session[sizeof TARE__ENV_SESSION + 1 + TARE__PATH_BYTES];
    snprintf(session, sizeof session, TARE__ENV_SESSION "=%s", folder);
    char *path = tare__python_hook(hook) ? tare__python_path(hook) : NULL;
    char **environment = environment_with(session, path);
    /* Orphaned grandchildren become children of this process, so that the tree stays connected. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    volatile int failed = 0;
    int status = environment ? 0 : -ENOMEM;
    if (!status && (launched->pid = start(command, environment, inherited, &failed)) < 0)
        status = -errno;
    launched->error = failed;
    free(environment);
    free(path);
    return status;
}
