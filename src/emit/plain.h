/* plain: pages without a script: one file, its own style, no network, light and dark. Used inside emit only.
 * Owned by the calling thread.
 * Must not know what is on the pages. */
#ifndef TARE_EMIT_PLAIN_H
#define TARE_EMIT_PLAIN_H

#include "base/base.h"

/* The page up to the end of its header; every text is escaped. `lead` may be NULL. */
void tare__plain_begin(tare__text *out, const char *title, const char *heading, const char *lead);
void tare__plain_end(tare__text *out);
/* Text as it may stand between tags and inside of quoted attributes. */
void tare__plain_text(tare__text *out, const char *text);

/* The same; what stands between backticks is code. */
void tare__plain_words(tare__text *out, const char *text);

/* A table that can be reached and moved by keys, up to its first title. A tall one scrolls by itself; on narrow screens
 * a row of one that folds becomes a block. */
void tare__plain_table(tare__text *out, const char *label, bool tall, bool folds);
void tare__plain_table_end(tare__text *out);
/* A bar as long as the share, from 0 to 1. */
void tare__plain_share(tare__text *out, double share);

/* Made by tools/embed-style. */
extern const char tare__plain_style[];
extern const char tare__plain_style_hash[];

#endif
