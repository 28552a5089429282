/* model_limits: checks measurements against the thresholds of `tare model`. One thread.
 * Must not know how thresholds are written or shown. */
#ifndef TARE_CLI_MODEL_LIMITS_H
#define TARE_CLI_MODEL_LIMITS_H

#include "model_measure.h"

/* Whether a model has a figure of this name, and the unit matches it. 0 or TARE_E_USAGE. */
int tare__limits_check(const tare__threshold *threshold, tare__error *error);
/* Fills the limits of `measured`. 0 or TARE_E_MEMORY. */
int tare__limits_hold(const tare__threshold *thresholds, size_t n, tare__model_measured *measured);

#endif
