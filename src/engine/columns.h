/* columns: a table of the schema as Arrow arrays.
 * Owned by the caller, who releases the result.
 * Must not know traces. */
#ifndef TARE_ENGINE_COLUMNS_H
#define TARE_ENGINE_COLUMNS_H

#include "analyze/analyze.h"
#include "arrow.h"

/* 0 or TARE_E_MEMORY, with nothing to release. */
int tare__arrow_schema(const tare__table *table, struct ArrowSchema *schema);
int tare__arrow_table(tare__cells *cells, const tare__table *table, struct ArrowArray *array);

#endif
