/* launch: how the run command starts a program. */
#ifndef TARE_COLLECT_LAUNCH_H
#define TARE_COLLECT_LAUNCH_H

#include <signal.h>
#include <sys/types.h>

#include "collector.h"

typedef struct tare__launched {
    pid_t pid;
    int error; /* errno of exec; 0: it runs */
} tare__launched;

/* Starts the command in the session of `folder`, with this signal mask. 0 or -errno. */
int tare__launch(char *const *command, const char *folder, const sigset_t *mask, tare__launched *launched);

#endif
