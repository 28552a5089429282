/* cli: the tare command. One subcommand a file, declared in one const table; options are declared in one
 * const table a command, from which parsing and --help are both made. One thread.
 * The only room that prints to the user or exits; must not know how anything is measured. */
#ifndef TARE_CLI_H
#define TARE_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/base.h"

/* What PRODUCT promises of every command; `tare run` has the program's own status, and EXIT_OWN,
 * EXIT_NOT_EXECUTABLE or EXIT_NOT_FOUND when there is none. */
enum {
    TARE__EXIT_OK = 0,
    TARE__EXIT_FAILED = 1,
    TARE__EXIT_USAGE = 2,
    TARE__EXIT_INPUT = 3,
    TARE__EXIT_OWN = 125
};

/* ---- options ------------------------------------------------------------------------------------- */
typedef struct tare__cli_option {
    const char *name;     /* without the dashes */
    char letter;          /* 0: none */
    const char *argument; /* as help shows it; NULL: takes none */
    const char *help;     /* one sentence without its full stop; broken into lines by itself */
    int key;              /* what the command's `take` gets */
} tare__cli_option;

typedef struct tare__cli_words {
    char **words; /* before --; as many as `count` */
    int count;
    char **rest; /* after --, NULL terminated; NULL when there was no -- */
    bool help;   /* --help was asked for: nothing else matters */
} tare__cli_words;

/* Settings that may stand in variables and files, by what they are for. */
enum { TARE__SETTINGS_RECORDING = 1, TARE__SETTINGS_SHOWING = 2 };

typedef struct tare__cli_command {
    const char *name;
    const char *summary;  /* half a line */
    const char *usage;    /* what follows "tare NAME " */
    const char *details;  /* lines after the options; NULL: none */
    const char *examples; /* lines, each indented */
    const tare__cli_option *options;
    size_t option_count;
    unsigned settings;    /* which of the settings it takes, besides its own words: TARE__SETTINGS_… */
    bool command_follows; /* words are another program's: the first one and all after it are left alone */
    /* Takes one option into the command's settings. 0, or a status with a sentence. */
    int (*take)(void *settings, int key, const char *argument, tare__error *error);
    int (*main)(int argc, char **argv); /* argv[0] is the command; returns the exit status */
} tare__cli_command;

/* What options take. Each returns 0, or TARE_E_USAGE with a sentence. */
int tare__cli_take_text(const char *option, const char *argument, const char **into, tare__error *error);
int tare__cli_take_count(const char *option, const char *argument, uint64_t least, uint64_t most, uint64_t *into,
                         tare__error *error);
int tare__cli_take_width(const char *argument, unsigned *columns, tare__error *error);
/* One output format a call; *into is the earlier one or NULL. */
int tare__cli_take_format(const char *format, const char **into, tare__error *error);

extern const tare__cli_command tare__cli_run;
extern const tare__cli_command tare__cli_attach;
extern const tare__cli_command tare__cli_report;
extern const tare__cli_command tare__cli_import;
extern const tare__cli_command tare__cli_model_command;
extern const tare__cli_command tare__cli_compare;
extern const tare__cli_command tare__cli_check;
extern const tare__cli_command tare__cli_baseline;
extern const tare__cli_command tare__cli_history;
extern const tare__cli_command tare__cli_doctor;
extern const tare__cli_command tare__cli_clean;
extern const tare__cli_command tare__cli_collect; /* not for people: what tare_start launches */

/* Reads argv[1..] by the command's table; words are gathered at the front of argv. --help, -h set
 * words->help. 0, or TARE_E_USAGE with a sentence (and a suggestion when a name is near). */
int tare__cli_parse(const tare__cli_command *command, int argc, char **argv, void *settings,
                    tare__cli_words *words, tare__error *error);
/* The same after the settings that stand in TARE_* variables, ./tare.toml and [tool.tare] of ./pyproject.toml, each
 * of which goes before those that follow; the command line goes before all. */
int tare__cli_read(const tare__cli_command *command, int argc, char **argv, void *settings, tare__cli_words *words,
                   tare__error *error);
/* The whole --help of a command. */
void tare__cli_help(const tare__cli_command *command, tare__text *out);
/* The nearest of `names` when it is near enough to be meant; else NULL. */
const char *tare__cli_nearest(const char *word, const char *const *names, size_t count);

/* ---- output -------------------------------------------------------------------------------------- */
typedef struct tare__cli_output {
    int fd;
    bool terminal;
    int failure;     /* the first write's that failed: an errno; 0 */
    char *path;      /* NULL: standard output */
    char *temporary; /* what becomes `path` when all is written; NULL: written in place */
    bool in_folder;  /* that is open: `path` is shown, `name` is what the file is called in it */
    int folder;      /* the caller's */
    const char *name;
    bool lines, colours; /* text for people: made harmless, line by line; data: on a terminal */
    tare__text line;     /* the one that is not whole yet */
} tare__cli_output;

/* Standard output when path is NULL. A regular file appears under its name only when closed whole; what
 * is no regular file (a device, a pipe) is written in place. 0, or a status with a sentence. */
/* Where the view of a file goes that is no text for a terminal: beside it, NAME.tare as NAME.html. *place is the
 * caller's to free, also where something of that name is there: TARE_E_USAGE. */
int tare__cli_place_beside(const char *path, const char *ending, const char *becomes, char **place, tare__error *error);
/* A report over what it is made of would lose that. */
bool tare__cli_same_file(const char *a, const char *b);
int tare__cli_output_open(tare__cli_output *output, const char *path, tare__error *error);
/* A file in a folder that is open, which stays the caller's: whatever is there by that name is replaced. `name` is the
 * end of `path`. */
int tare__cli_output_open_in(tare__cli_output *output, int folder, const char *path, size_t name_bytes,
                             tare__error *error);
/* From here on it is text for people, with colours or without: see tare__harmless_lines. */
void tare__cli_output_lines(tare__cli_output *output, bool colours);
void tare__cli_output_readable(void); /* files made from now on may be read by others: --readable */
/* 0, or -errno, which it keeps in `failure`. `context` is the output. */
int tare__cli_output_write(void *context, const void *data, size_t bytes);
/* Puts the file in its place if `whole`, else removes what was written. Returns 0 as well when the reader
 * of a pipe went away; else a status with a sentence. */
int tare__cli_output_close(tare__cli_output *output, bool whole, tare__error *error);
/* All of it to standard output; the exit status. */
int tare__cli_print(const tare__text *text);
int tare__cli_print_help(const tare__cli_command *command);

/* ---- sentences to standard error ----------------------------------------------------------------- */
/* "NAME: sentence" and a line end; control characters are made harmless. */
void tare__cli_say(const char *name, const char *format, ...) TARE__PRINTF(2, 3);
/* The sentence of a wrong usage with where to read more; TARE__EXIT_USAGE. */
int tare__cli_usage(const char *name, const tare__error *error);

/* ---- Parquet files, by the Python package (parquet.c) --------------------------------------------- */
/* Becomes an interpreter that writes them; returns only with what went wrong. `rules` may be NULL. */
int tare__cli_parquet(const char *folder, const char *trace, const char *rules, tare__error *error);

#endif
