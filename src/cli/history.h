/* history: declarations shared by the files of `tare history`. One thread.
 * Must not know how runs are stored or shown. */
#ifndef TARE_CLI_HISTORY_H
#define TARE_CLI_HISTORY_H

#include "cli.h"
#include "emit/emit.h"
#include "store/store.h"

#define TARE__HISTORY_ME   "tare history"
#define TARE__HISTORY_TAGS 8

typedef struct tare__history_call {
    const char *place_setting, *output, *format; /* format NULL: text */
    bool exports; /* machine-readable lines */
    char place[TARE__STORE_PLACE_BYTES];
    tare__store_filter filter;
    const char *tags[TARE__HISTORY_TAGS];
    tare__emit_options emit;
    tare__store_prune prune;
    uint64_t last; /* runs to compare with */
    bool last_given, any_machine, dry, remove;
    char **words;   /* after the subcommand */
    int n_words;
    tare__store *store; /* NULL: nothing is stored yet */
} tare__history_call;

/* Runs a subcommand once the store is open; returns the exit status. A message in `error` is printed. */
typedef int tare__history_verb(tare__history_call *history, tare__error *error);
tare__history_verb tare__history_do_list, tare__history_do_show, tare__history_do_trend,
    tare__history_do_compare, tare__history_do_tag, tare__history_do_prune, tare__history_do_export,
    tare__history_do_import, tare__history_do_add;

/* The exit status for a status of the store. */
int tare__history_exit(int status);

/* Shows something by one of the emitters, to standard output or --output, completely or not at all. Returns the exit
 * status. */
int tare__history_write(const tare__history_call *history, tare__emit_writer *show, const void *what,
                        tare__error *error);

#endif
