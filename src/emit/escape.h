/* escape: makes untrusted text safe for the format it is put into. Owned by the calling thread.
 * Bytes that are not UTF-8 become U+FFFD everywhere.
 * Must not know the meaning of the text. */
#ifndef TARE_EMIT_ESCAPE_H
#define TARE_EMIT_ESCAPE_H

#include "base/base.h"

/* XML and HTML, in text and in quoted attributes: characters that XML 1.0 does not allow become U+FFFD. */
void tare__escape_xml(tare__text *out, const char *text);
/* A cell of a Markdown table: one line, nothing in it is markup. */
void tare__escape_markdown(tare__text *out, const char *text);
/* A workflow command of GitHub Actions: its message, or with `property` the value of a property. */
void tare__escape_github(tare__text *out, const char *text, bool property);

#endif
