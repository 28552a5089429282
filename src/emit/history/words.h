/* history words: text shared by the files that show the history. Owned by the calling thread; inside emit only.
 * Must not know the formats. */
#ifndef TARE_EMIT_HISTORY_WORDS_H
#define TARE_EMIT_HISTORY_WORDS_H

#include "emit/emit.h"

#define TARE__HISTORY_WORD 64

/* "2026-11-15 12:39" in local time; with seconds if requested; "not known". */
const char *tare__history_when(char out[TARE__HISTORY_WORD], uint64_t ns, bool seconds);
/* "f41d3fb*": the commit, and whether files differed from it; "". */
const char *tare__history_revision(char out[TARE__HISTORY_WORD], const char *revision, int dirty);
/* "+12.3 %" for a level that changed. */
const char *tare__history_change(char out[TARE__UNIT_BYTES], double before, double after);

#endif
