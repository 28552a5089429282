/* history: formats for runs of the history and trends of their figures. Owned by the calling thread.
 * Must not know where runs are kept, nor where the bytes go. */
#ifndef TARE_EMIT_HISTORY_H
#define TARE_EMIT_HISTORY_H

/* A format supports what it has a function for. */
typedef struct tare__history_emitter {
    const char *name;
    tare__emit_writer *list, *show, *trend; /* of a tare__kept_list, a tare__kept_run, a tare__kept_trends */
} tare__history_emitter;

extern const tare__history_emitter tare__history_text, tare__history_json, tare__history_csv,
    tare__history_html;
const tare__history_emitter *tare__history_find(const char *name); /* NULL: no such format */

/* A run on one line, as `tare history export` writes it and import reads it. */
void tare__history_put_line(tare__text *out, const tare__kept *run, const tare__figures *figures);

#endif
