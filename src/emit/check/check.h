/* check: the result of a check in its formats. Owned by the calling thread.
 * A failed allocation sets `failed` of the text.
 * Must not know how a check is made, nor where the text goes. */
#ifndef TARE_EMIT_CHECK_H
#define TARE_EMIT_CHECK_H

#include "analyze/analyze.h"

struct tare__emit_options;

/* Names of the files on each side, for display. */
typedef struct tare__check_names {
    const char *head, *base; /* base: NULL if there is none */
} tare__check_names;

void tare__emit_check_text(const tare__check *check, const tare__check_names *names,
                           const struct tare__emit_options *options, tare__text *out);
void tare__emit_check_json(const tare__check *check, const tare__check_names *names, bool pretty, tare__text *out);
void tare__emit_check_junit(const tare__check *check, const tare__check_names *names, tare__text *out);
void tare__emit_check_github(const tare__check *check, const tare__check_names *names, tare__text *out);
void tare__emit_check_markdown(const tare__check *check, const tare__check_names *names, tare__text *out);

/* "3 of 12 figures failed", without full stop. */
void tare__check_summary(const tare__check *check, tare__text *out);
/* One sentence on a row: "step: 14.1 ms after 12.3 ms (+14.6 %; gate 5 %; significant)". */
void tare__check_sentence(const tare__check_row *row, tare__text *out);
/* What limits it, for a table: its gate ("5 %"), or its limit if it exceeded that or has no gate; "-": nothing. */
void tare__check_gate(const tare__check_row *row, tare__text *out);
/* Whether a row is listed if not all are: those that could fail, and the first few that changed, counted by
 * `others`. */
bool tare__check_tells(const tare__check_row *row, size_t *others);

#endif
