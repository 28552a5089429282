/* consistent: detects contradictory figures of an analysis.
 * Pure; owned by the calling thread.
 * Must not know how tables are made. */
#ifndef TARE_ANALYZE_CONSISTENT_H
#define TARE_ANALYZE_CONSISTENT_H

#include "analyze.h"

typedef struct tare__contradictions {
    size_t n;
    char first[320]; /* the first one, half a sentence */
} tare__contradictions;

/* Counts contradictions: a part larger than its whole, a share above 1, a rate above the machine's peak, … */
void tare__analyze_consistent(const tare__analysis *analysis, tare__contradictions *out);

#endif
