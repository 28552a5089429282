/* cli: the tare command. One subcommand per file, declared in one const table; the options of a command are declared in
 * one const table, from which both parsing and --help are derived. One thread.
 * The only module that prints to the user or exits; must not know how anything is measured. */
#ifndef TARE_CLI_H
#define TARE_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "analyze/analyze.h"
#include "base/base.h"

/* Exit statuses as documented for every command; `tare run` returns the program's own status, and EXIT_OWN,
 * EXIT_NOT_EXECUTABLE or EXIT_NOT_FOUND if there is none. */
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
    const char *argument; /* as shown in help; NULL: takes none */
    const char *help;     /* one sentence without its full stop; wrapped automatically */
    int key;              /* passed to the command's `take`, or where the value is stored: TARE__CLI_SETS, … */
} tare__cli_option;

/* Keys of options that are only stored in a member of the command's settings: the kind, and the member's place. */
typedef enum tare__cli_kind {
    TARE__CLI_KIND_SWITCH = 1,
    TARE__CLI_KIND_TEXT,
    TARE__CLI_KIND_FORMAT,
    TARE__CLI_KIND_WIDTH,
    TARE__CLI_KIND_BYTES,
    TARE__CLI_KIND_TIME,
    TARE__CLI_KIND_COUNT
} tare__cli_kind;
#define TARE__CLI_KIND_AT 24 /* the bit where the kind begins */
/* The comparison is a check of the member's type by the compiler. */
#define TARE__CLI_STORES(kind, type, settings, member)                            \
    ((int)((unsigned)(kind) << TARE__CLI_KIND_AT | offsetof(settings, member)) + \
     0 * (int)sizeof(&((settings *)0)->member == (type *)0))
#define TARE__CLI_SETS(settings, member)   TARE__CLI_STORES(TARE__CLI_KIND_SWITCH, bool, settings, member)
#define TARE__CLI_TEXT(settings, member)   TARE__CLI_STORES(TARE__CLI_KIND_TEXT, const char *, settings, member)
#define TARE__CLI_FORMAT(settings, member) TARE__CLI_STORES(TARE__CLI_KIND_FORMAT, const char *, settings, member)
#define TARE__CLI_WIDTH(settings, member)  TARE__CLI_STORES(TARE__CLI_KIND_WIDTH, unsigned, settings, member)
#define TARE__CLI_BYTES(settings, member)  TARE__CLI_STORES(TARE__CLI_KIND_BYTES, uint64_t, settings, member)
#define TARE__CLI_TIME(settings, member)   TARE__CLI_STORES(TARE__CLI_KIND_TIME, uint64_t, settings, member)
#define TARE__CLI_COUNT(settings, member)  TARE__CLI_STORES(TARE__CLI_KIND_COUNT, uint64_t, settings, member)
#define TARE__CLI_COUNT_MAX                1000000000000000000u

typedef struct tare__cli_words {
    char **words; /* before --; `count` of them */
    int count;
    char **rest; /* after --, NULL terminated; NULL if there was no -- */
    bool help;   /* --help was given: everything else is ignored */
    uint64_t given; /* bit i: option i of the command's table was on the command line */
} tare__cli_words;

/* Groups of settings that may be given in variables and files. */
enum { TARE__SETTINGS_RECORDING = 1, TARE__SETTINGS_SHOWING = 2 };

typedef struct tare__cli_command {
    const char *name;
    const char *summary;  /* half a line */
    const char *usage;    /* the text after "tare NAME " */
    const char *details;  /* lines after the options; NULL: none */
    const char *examples; /* lines, each indented */
    const tare__cli_option *options;
    size_t option_count;
    unsigned settings;    /* groups of settings it accepts in addition to its own options: TARE__SETTINGS_… */
    bool command_follows; /* the words belong to another program: parsing stops at the first one */
    /* Stores one option in the command's settings, of those that are not simply stored. 0, or a status with a
     * message. */
    int (*take)(void *settings, int key, const char *argument, tare__error *error);
    int (*main)(int argc, char **argv); /* argv[0] is the command; returns the exit status */
} tare__cli_command;

/* Parsers of option arguments. Each returns 0, or TARE_E_USAGE with a message. */
int tare__cli_take_text(const char *option, const char *argument, const char **into, tare__error *error);
int tare__cli_take_count(const char *option, const char *argument, uint64_t least, uint64_t most, uint64_t *into,
                         tare__error *error);
/* The one process id among the words, for the command `me`. */
int tare__cli_read_pid(const char *me, const tare__cli_words *words, pid_t *pid, tare__error *error);
/* One output format per invocation; *into is the earlier one or NULL. */
int tare__cli_take_format(const char *format, const char **into, tare__error *error);

extern const tare__cli_command tare__cli_run;
extern const tare__cli_command tare__cli_attach;
extern const tare__cli_command tare__cli_top;
extern const tare__cli_command tare__cli_report;
extern const tare__cli_command tare__cli_import;
extern const tare__cli_command tare__cli_model_command;
extern const tare__cli_command tare__cli_compare;
extern const tare__cli_command tare__cli_check;
extern const tare__cli_command tare__cli_baseline;
extern const tare__cli_command tare__cli_history;
extern const tare__cli_command tare__cli_doctor;
extern const tare__cli_command tare__cli_clean;
extern const tare__cli_command tare__cli_collect; /* internal: launched by tare_start */

/* Parses argv[1..] by the command's table; words are moved to the front of argv. --help and -h set words->help. 0, or
 * TARE_E_USAGE with a message (and a suggestion if a similar name exists). */
int tare__cli_parse(const tare__cli_command *command, int argc, char **argv, void *settings,
                    tare__cli_words *words, tare__error *error);
/* The same after the settings in TARE_* variables, ./tare.toml and [tool.tare] of ./pyproject.toml, in this order of
 * precedence; the command line takes precedence over all. */
int tare__cli_read(const tare__cli_command *command, int argc, char **argv, void *settings, tare__cli_words *words,
                   tare__error *error);
/* The first option on the command line that is in a list of names separated by spaces, or with `among` false in none of
 * them; NULL: there is no such option. */
const char *tare__cli_given(const tare__cli_command *command, const tare__cli_words *words, const char *names,
                            bool among);
/* Stores one option by its key. 0, or a status with a message. */
int tare__cli_take(const tare__cli_command *command, const tare__cli_option *option, void *settings,
                   const char *argument, tare__error *error);
/* The only word of the command line, which names a `what`: "trace". 0, or TARE_E_USAGE with a message. */
int tare__cli_one_word(const tare__cli_words *words, const char *what, const char *usage, const char **word,
                       tare__error *error);
/* Words and a line end, wrapped to the width. They begin at `column`, which is the current position; a word that is too
 * long for a line (a path) is not broken, so that it can be copied. */
void tare__cli_wrap(tare__text *out, const char *text, size_t column, size_t width);
/* The complete --help of a command. */
void tare__cli_help(const tare__cli_command *command, tare__text *out);
/* The most similar of `names` if it is similar enough to be meant; else NULL. */
const char *tare__cli_nearest(const char *word, const char *const *names, size_t count);

/* ---- output -------------------------------------------------------------------------------------- */
typedef struct tare__cli_output {
    int fd;
    bool terminal;
    int failure;     /* errno of the first failed write; 0: none */
    char *path;      /* NULL: standard output */
    char *temporary; /* renamed to `path` when everything is written; NULL: written in place */
    bool in_folder;  /* the folder is open: `path` is for display, `name` is the file's name in it */
    int folder;      /* owned by the caller */
    const char *name;
    bool lines, colours; /* text: sanitized line by line; data: sanitized on a terminal */
    tare__text line;     /* the line that is not complete yet */
} tare__cli_output;

/* The default output file of a format that is not text: next to the input, NAME.tare as NAME.html. *place is freed by
 * the caller, also if a file of that name exists: TARE_E_USAGE. */
int tare__cli_place_beside(const char *path, const char *ending, const char *becomes, char **place, tare__error *error);
/* Used to refuse a report that would overwrite its own input. */
bool tare__cli_same_file(const char *a, const char *b);
/* Standard output if path is NULL. A regular file gets its name only once it is completely written; anything else (a
 * device, a pipe) is written in place. 0, or a status with a message. */
int tare__cli_output_open(tare__cli_output *output, const char *path, tare__error *error);
/* A file in an open folder, which the caller keeps open: an existing file of that name is replaced. `name` is the end
 * of `path`. */
int tare__cli_output_open_in(tare__cli_output *output, int folder, const char *path, size_t name_bytes,
                             tare__error *error);
/* The following output is text, with or without colors: see tare__harmless_lines. */
void tare__cli_output_lines(tare__cli_output *output, bool colours);
void tare__cli_output_readable(void); /* files created from now on may be read by other users: --readable */
/* 0, or -errno, which is stored in `failure`. `context` is the output. */
int tare__cli_output_write(void *context, const void *data, size_t bytes);
/* Renames the file to its final name if `whole`, else removes it. Also returns 0 if the reader of a pipe closed it;
 * else a status with a message. */
int tare__cli_output_close(tare__cli_output *output, bool whole, tare__error *error);
/* Writes a text to a file, as a whole or not at all; path NULL: standard output. 0, or a status with a message. */
int tare__cli_write_text(const tare__text *text, bool lines, bool colours, const char *path, tare__error *error);
/* Writes all of it to standard output; returns the exit status. */
int tare__cli_print(const tare__text *text);
int tare__cli_print_help(const tare__cli_command *command);

/* ---- messages to standard error ------------------------------------------------------------------- */
/* "NAME: message" and a line end; control characters are replaced. */
void tare__cli_say(const char *name, const char *format, ...) TARE__PRINTF(2, 3);
/* Prints the message of a usage error and where to read more; returns TARE__EXIT_USAGE. */
int tare__cli_usage(const char *name, const tare__error *error);

/* ---- Parquet files, written by the Python package (parquet.c) ------------------------------------- */
/* Replaces the process by an interpreter that writes them; returns only on a failure. `rules` may be NULL. */
int tare__cli_parquet(const char *folder, const char *trace, const char *rules, const tare__stack_filter *filter,
                      tare__error *error);

#endif
