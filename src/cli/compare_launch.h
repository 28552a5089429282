/* compare_launch: one command run to its end and measured from outside. One thread.
 * Must not know what is compared. */
#ifndef TARE_CLI_COMPARE_LAUNCH_H
#define TARE_CLI_COMPARE_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

typedef struct tare__ab_ran {
    int status;  /* as of wait() */
    double elapsed_ns, cpu_ns, peak_bytes; /* by the kernel's account of it and what it waited for */
    bool wanted_terminal; /* it was ended for that */
} tare__ab_ran;

/* From here on SIGINT, SIGTERM and SIGHUP go to the command that runs, the second one as SIGKILL. */
void tare__ab_watch(void);
void tare__ab_unwatch(void);
bool tare__ab_interrupted(void);

/* Runs it with nothing to read, writing into `log`, or to standard error where that is negative. 0; with a sentence
 * TARE_E_SYSTEM when it could not be launched, TARE_E_INPUT when it asked for a terminal. */
int tare__ab_run(char *const *argv, int log, tare__ab_ran *result, tare__error *error);

#endif
