/* model measured: the measured half of a model's report, in each format; called by the emitters of the other half.
 * Owned by the calling thread; used inside emit only.
 * Must not know how anything was measured. */
#ifndef TARE_EMIT_MODEL_MEASURED_H
#define TARE_EMIT_MODEL_MEASURED_H

#include "emit/emit.h"
#include "model/model.h"
#include "emit/layout.h"

/* Text tables, after the static ones. */
void tare__measured_text(tare__page *page, const tare__model_measured *measured);
/* Sections of a page; every name is escaped. */
void tare__measured_html(tare__text *out, const tare__model_view *view);

/* ", opset 17, made by …": what an ONNX file says of its origin. */
void tare__model_put_origin(tare__text *out, const tare__model_report *report);
/* A note that profiling slowed layers down, so that their rates are not shown. False: it did not. */
bool tare__measured_slowdown(const tare__model_measured *measured, char *out, size_t room);
/* "batch 4, fp16, 2 threads": a configuration, for display. */
const char *tare__measured_name(const tare__runner_result *result, char *out, size_t room);

#endif
