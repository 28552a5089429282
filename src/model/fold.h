/* fold: shared by the files that evaluate small tensors.
 * Owned by the calling thread.
 * Must not know what anything costs. */
#ifndef TARE_MODEL_FOLD_H
#define TARE_MODEL_FOLD_H

#include "rules.h"

/* Number of elements of the first output, if small and its shape is known; else UNKNOWN. */
int64_t tare__fold_count(const tare__step *step);
/* Whether all dimensions are known, and there is a value, or NaN, for every element. */
bool tare__folds(const tare__value *value);
/* Operators that move, join, slice, select or sum elements, of any rank. */
void tare__fold_moved(tare__step *step);

#endif
