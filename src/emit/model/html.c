/* model html: a model as one self-contained page: totals, measurements, and the tables of its document.
 * Owned by the calling thread.
 * Must not know how the model was analyzed, nor where the bytes go. */
#include <inttypes.h>

#include "emit/flush.h"
#include "emit/plain.h"
#include "emit/sheet.h"
#include "measured.h"
#include "model/model.h"

static void put_head(tare__text *out, const tare__model_report *report)
{
    const char *name = tare__base_name(report->path);
    tare__text lead = {0};
    tare__text_format(&lead, "ONNX, IR version %" PRId64, report->ir_version);
    tare__model_put_origin(&lead, report);
    tare__plain_begin(out, name, name, lead.data);
    tare__text_end(&lead, out);
}

/* All tables that have a single row. */
static void put_tiles(tare__text *out, const tare__model_view *view)
{
    const tare__document *document = &tare__document_model;
    tare__text_string(out, "<section><h2>Size and cost</h2><dl class=\"tiles apart\">");
    for (size_t i = document->n_tables; i-- > 0;) /* the file comes first and is the least informative */
        if (tare__table_is_single(document->tables[i]))
            tare__sheet_tiles(out, view, document->tables[i]);
    tare__text_string(out, "</dl></section>\n");
}

int tare__emit_model_html(const void *what, const tare__emit_options *options, const tare__emit_sink *sink,
                          tare__error *error)
{
    const tare__model_view *view = what;
    const tare__document *document = &tare__document_model;
    tare__text out = {0};
    int status = 0;
    (void)options;
    put_head(&out, view->report);
    put_tiles(&out, view);
    for (size_t i = 0; i < document->n_tables && !status; i++) {
        if (document->tables[i] == &tare__table_measured)
            tare__measured_html(&out, view);
        else if (!tare__table_is_single(document->tables[i]))
            tare__sheet_table(&out, view, document->tables[i]);
        else
            tare__sheet_inside(&out, view, document->tables[i]);
        status = tare__emit_flush_piece(&out, sink, error);
    }
    tare__plain_end(&out);
    return tare__emit_end(&out, status, sink, error);
}
