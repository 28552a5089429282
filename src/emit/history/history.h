/* history: formats for runs of the history and trends of their figures. Owned by the calling thread.
 * Must not know where runs are kept, nor where the bytes go. */
#ifndef TARE_EMIT_HISTORY_H
#define TARE_EMIT_HISTORY_H

/* A format supports what it has a function for. Each returns 0; TARE_E_SYSTEM if the sink refused, TARE_E_MEMORY. */
typedef struct tare__history_emitter {
    const char *name;
    int (*list)(const tare__kept_list *list, const tare__emit_options *options, const tare__emit_sink *sink,
                tare__error *error);
    int (*show)(const tare__kept *run, const tare__figures *figures, const tare__emit_options *options,
                const tare__emit_sink *sink, tare__error *error);
    int (*trend)(const tare__kept_trends *trends, const tare__emit_options *options,
                 const tare__emit_sink *sink, tare__error *error);
} tare__history_emitter;

extern const tare__history_emitter tare__history_text, tare__history_json, tare__history_csv,
    tare__history_html;
const tare__history_emitter *tare__history_find(const char *name); /* NULL: no such format */

/* A run on one line, as `tare history export` writes it and import reads it. */
void tare__history_put_line(tare__text *out, const tare__kept *run, const tare__figures *figures);

#endif
