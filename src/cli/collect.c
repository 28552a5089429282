/* collect: the helper behind tare_start: serves one process at the other end of a socket.
 * One thread, a process of its own beside the program.
 * Must not print to standard output, which is the program's; a failure goes to standard error. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include "collect/collect.h"
#include "tare.h"

static int take(void *settings, int key, const char *argument, tare__error *error)
{
    (void)key;
    char *end;
    long fd = strtol(argument, &end, 10);
    if (end == argument || *end || fd < 0 || fd > 1 << 20)
        return tare__fail(error, TARE_E_USAGE, "--socket: '%.64s' is not a file descriptor", argument);
    *(int *)settings = (int)fd;
    return 0;
}

static const tare__cli_option options[] = {
    {"socket", 0, "FD", "the socket that was inherited", 1},
};

static int collect_main(int argc, char **argv)
{
    tare__error error = {""};
    tare__cli_words words;
    int socket = -1;
    int status = tare__cli_parse(&tare__cli_collect, argc, argv, &socket, &words, &error);
    if (!status && (socket < 0 || words.count > 0 || words.rest))
        status = tare__fail(&error, TARE_E_USAGE, "started by programs, not by people; see tare run");
    if (!status)
        status = tare__serve_process(socket, &error);
    if (!status)
        return TARE__EXIT_OK;
    if (error.text[0])
        tare__cli_say("tare collect", "%s", error.text);
    return status == TARE_E_USAGE ? TARE__EXIT_USAGE : TARE__EXIT_FAILED;
}

const tare__cli_command tare__cli_collect = {
    .name = "collect",
    .summary = "serves a program that records without tare run",
    .usage = "--socket FD",
    .examples = "  (started by tare_start)\n",
    .options = options,
    .option_count = TARE__COUNT_OF(options),
    .take = take,
    .main = collect_main,
};
