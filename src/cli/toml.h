/* toml: reads the one table of a TOML file that is ours. One thread.
 * Must not know what the settings mean. */
#ifndef TARE_CLI_TOML_H
#define TARE_CLI_TOML_H

#include "base/base.h"

typedef enum tare__toml_kind { TARE__TOML_STRING, TARE__TOML_NUMBER, TARE__TOML_SWITCH } tare__toml_kind;

typedef struct tare__toml_pair {
    const char *key, *value; /* NUL terminated, live during the call; of a switch "true" or "false" */
    tare__toml_kind kind;
    unsigned line;
} tare__toml_pair;

/* 0, or a status with a sentence. */
typedef int tare__toml_sink(void *context, const tare__toml_pair *pair, tare__error *error);

/* Hands out the pairs of `table` ("tool.tare", "check"; "": those above all tables, where there must be none but those
 * of commands). What is in other tables is passed over, whatever it is; of those below `table` only a command's may
 * be. `file` is for sentences. 0; TARE_E_USAGE with file, line and what is not understood; what the sink returned. */
int tare__toml_read(const char *text, size_t bytes, const char *file, const char *table, tare__toml_sink *sink,
                    void *context, tare__error *error);

#endif
