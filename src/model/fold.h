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
/* Of two elements; NaN if one of them is unknown. */
typedef double tare__fold_binary(double a, double b);
tare__fold_binary tare__fold_add, tare__fold_multiply, tare__fold_larger, tare__fold_smaller;
/* Operators that move, join, slice, select or sum elements, of any rank. */
void tare__fold_moved(tare__step *step);
bool tare__fold_moves(tare__slice op); /* whether it is one of these */

#endif
