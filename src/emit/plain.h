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

/* Made by tools/embed-style. */
extern const char tare__plain_style[];
extern const char tare__plain_style_hash[];

#endif
