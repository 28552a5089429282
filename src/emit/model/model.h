/* model: what the views of a model share.
 * Owned by the calling thread; used inside emit only.
 * Must not know how a model is weighed. */
#ifndef TARE_EMIT_MODEL_H
#define TARE_EMIT_MODEL_H

#include "emit/emit.h"
#include "model/model.h"

/* "[batch=1, 3, 224, 224]"; "?" for what is not known. */
void tare__model_put_shape(tare__text *out, const tare__model_tensor *tensor);
const char *tare__model_at_least(bool at_least); /* "at least ", or nothing */
double tare__model_share(uint64_t part, uint64_t whole); /* NaN of nothing */
/* "Conv", "com.microsoft.Attention" */
const char *tare__model_operator_name(char out[128], const char *op, const char *domain);
/* Layers, the heaviest first; the caller frees the list. NULL: no memory. */
const tare__model_layer **tare__model_heaviest(const tare__model_report *report);

#endif
