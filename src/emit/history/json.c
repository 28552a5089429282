/* history json: runs, a run and trends as JSON and CSV, generated from their schema, and the lines that export writes.
 * Owned by the calling thread.
 * Must not know where runs are kept, nor where the bytes go. */
#include "emit/emit.h"

void tare__history_put_line(tare__text *out, const tare__kept *run, const tare__figures *figures)
{
    tare__put_document(out, &tare__document_history_show, &(tare__kept_run){run, figures}, false);
}

static int list_json(const void *list, const tare__emit_options *options, const tare__emit_sink *sink,
                     tare__error *error)
{
    return tare__emit_document(&tare__document_history_list, list, options, sink, error);
}

static int show_json(const void *run, const tare__emit_options *options, const tare__emit_sink *sink,
                     tare__error *error)
{
    return tare__emit_document(&tare__document_history_show, run, options, sink, error);
}

static int trend_json(const void *trends, const tare__emit_options *options, const tare__emit_sink *sink,
                      tare__error *error)
{
    return tare__emit_document(&tare__document_history_trend, trends, options, sink, error);
}

/* One table of each: all runs, a run's figures, the points of all trends. */
static int list_csv(const void *list, const tare__emit_options *options, const tare__emit_sink *sink,
                    tare__error *error)
{
    (void)options;
    return tare__emit_csv_table(&tare__document_history_list, list, "runs", sink, error);
}

static int show_csv(const void *run, const tare__emit_options *options, const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    return tare__emit_csv_table(&tare__document_baseline, ((const tare__kept_run *)run)->figures, "figures", sink,
                                error);
}

static int trend_csv(const void *trends, const tare__emit_options *options, const tare__emit_sink *sink,
                     tare__error *error)
{
    (void)options;
    return tare__emit_csv_table(&tare__document_history_trend, trends, "trends_points", sink, error);
}

const tare__history_emitter tare__history_json = {"json", list_json, show_json, trend_json};
const tare__history_emitter tare__history_csv = {"csv", list_csv, show_csv, trend_csv};
