/* model json: a model as JSON and CSV, generated from its schema.
 * Owned by the calling thread.
 * Must not know how the model was analyzed. */
#include <stdlib.h>

#include "emit/emit.h"
#include "model/model.h"

/* Lists the nodes that are missing from the totals; the caller frees the list. False: out of memory. */
static bool list_not_counted(tare__model_view *view)
{
    const tare__model_report *report = view->report;
    view->not_counted = calloc(report->n_layers + 1, sizeof *view->not_counted);
    view->n_not_counted = 0;
    for (size_t i = 0; view->not_counted && i < report->n_layers; i++)
        if (report->layers[i].reason)
            view->not_counted[view->n_not_counted++] = &report->layers[i];
    return view->not_counted;
}

int tare__emit_model_json(const void *view, const tare__emit_options *options, const tare__emit_sink *sink,
                          tare__error *error)
{
    tare__model_view whole = *(const tare__model_view *)view;
    int status = list_not_counted(&whole) ? tare__emit_document(&tare__document_model, &whole, options, sink, error)
                                          : tare__no_memory(error);
    free(whole.not_counted);
    return status;
}

int tare__emit_model_csv(const void *view, const tare__emit_files *files, tare__error *error)
{
    tare__model_view whole = *(const tare__model_view *)view;
    int status = list_not_counted(&whole) ? tare__emit_csv(&tare__document_model, &whole, files, error)
                                          : tare__no_memory(error);
    free(whole.not_counted);
    return status;
}
