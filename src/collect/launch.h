/* launch: how the run command starts a program. */
#ifndef TARE_COLLECT_LAUNCH_H
#define TARE_COLLECT_LAUNCH_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "collector.h"

typedef struct tare__launched {
    pid_t pid;
    int error; /* errno of exec; 0: it runs */
} tare__launched;

/* State of this command at its start that it changes for itself; the program gets the original. */
typedef struct tare__inherited {
    sigset_t mask;
    struct sigaction child; /* SIGCHLD */
    struct rlimit files;    /* RLIMIT_NOFILE */
} tare__inherited;

/* Saves all of it, ensures that children can be waited for, and raises the descriptor limit. The caller changes the
 * signal mask. */
void tare__inherited_take(tare__inherited *inherited);

/* Starts the command in the session of `folder`. 0 or -errno. */
int tare__launch(char *const *command, const char *folder, const tare__inherited *inherited, tare__launched *launched);

/* python.c: the folder with the startup hook of Python interpreters; false: none, or it is disabled
 * (TARE_PYTHON_HOOK names it, or is empty). Then: "PYTHONPATH=…" with it first, to be freed; NULL: already set, or
 * out of memory. */
bool tare__python_hook(char out[TARE__PATH_BYTES]);
bool tare__own_folder(char out[TARE__PATH_BYTES]); /* of this program, without the last slash */
char *tare__python_path(const char *hook);

/* The arguments of a running process from the kernel, NULL terminated; returns their number. */
size_t tare__arguments_of(pid_t pid, char *text, size_t room, char **words, size_t word_room);

/* run.c: shared by run, attach and serve. Creates the trace and the session folder; on failure
 * neither stays. */
int tare__record_prepare(tare__collector *collector, const tare__record_options *options, uint64_t pool_bytes,
                         const tare__run_about *about, tare__error *error);
void tare__record_abandon(tare__collector *collector);
/* Starts sampling a process. */
void tare__record_samples(tare__collector *collector, const tare__record_options *options, pid_t pid);
/* One tick of everything while the process runs. */
void tare__record_tick(tare__collector *collector, const tare__record_options *options, uint64_t since_ns);
void tare__run_fill_totals(const tare__collector *collector, tare__run_result *result);
void tare__run_hand_over(tare__collector *collector, tare__run_result *result); /* the open trace and its name */

#endif
