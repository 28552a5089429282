/* cli_rig: a folder of its own with a trace in it, current while a test of a recording command runs.
 * Owned by the test's one thread. Included after cmocka.h.
 * Must not know the commands, nor the collectors that pretend to record. */
#ifndef TARE_TEST_CLI_RIG_H
#define TARE_TEST_CLI_RIG_H

#include <stdlib.h>

#include "cli_capture.h"
#include "cli_trace.h"

static char folder[64], trace[128];

/* 0, or -1 when there is no place for it. */
static int make_folder(const char *name)
{
    snprintf(folder, sizeof folder, "/tmp/tare-%s.XXXXXX", name);
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return -1;
    snprintf(trace, sizeof trace, "%s/train.tare", folder);
    write_trace_to(trace, true, NULL);
    return setenv("TARE_STORE", "off", 1); /* never the user's own history */
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return chdir("/") != 0 || system(command) != 0;
}

#endif
