/* dump: the stack of every Python thread of a process, once. One thread.
 * Must not know how stacks are read. */
#ifndef TARE_CLI_DUMP_H
#define TARE_CLI_DUMP_H

#include <sys/types.h>

#include "base/base.h"

/* 0, TARE_E_INPUT (no such process, not Python), TARE_E_PERMISSION or another status, with a message. */
int tare__cli_dump(pid_t pid, tare__text *out, tare__error *error);

#endif
