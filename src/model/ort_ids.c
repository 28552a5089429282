/* ort_ids: how many ids a model knows: the rows of the table that an input is looked up in.
 * One thread.
 * Must not know how inputs are made. */
#include "ort_inner.h"

int64_t tare__inputs_bound(const char *model, const char *input)
{
    (void)model, (void)input;
    return 0;
}
