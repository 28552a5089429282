/* compare_launch: runs one command to its end and measures it from outside. One thread.
 * Must not know what is compared. */
#ifndef TARE_CLI_COMPARE_LAUNCH_H
#define TARE_CLI_COMPARE_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

typedef struct tare__ab_ran {
    int status;  /* as from wait() */
    double elapsed_ns, cpu_ns, peak_bytes; /* from the kernel, for the command and the children it waited for */
    bool wanted_terminal; /* it was ended because of that */
} tare__ab_ran;

/* From here on SIGINT, SIGTERM and SIGHUP are forwarded to the running command, a second one as SIGKILL. */
void tare__ab_watch(void);
void tare__ab_unwatch(void);
bool tare__ab_interrupted(void);

/* Runs a shell command without input, with its output to `log`, or to standard error if that is negative; recorded
 * by `tare run` into `trace`, unless that is NULL, and not added to the history. 0; with a message TARE_E_SYSTEM if it
 * could not be launched, TARE_E_INPUT if it needs a terminal. */
int tare__ab_run(const char *command, const char *trace, int log, tare__ab_ran *result, tare__error *error);

#endif
