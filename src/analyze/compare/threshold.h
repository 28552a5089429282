/* threshold: "step:5%", "latency:100ms", "throughput:1000samples/s": limits that users set for figures.
 * Pure functions; any thread.
 * Must not know where thresholds are written. */
#ifndef TARE_ANALYZE_THRESHOLD_H
#define TARE_ANALYZE_THRESHOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"

#define TARE__THRESHOLD_NAME_MAX 255u
#define TARE__THRESHOLD_UNIT_MAX 31u

typedef enum tare__threshold_kind {
    TARE__THRESHOLD_CHANGE, /* the share by which the figure may get worse */
    TARE__THRESHOLD_LIMIT   /* an absolute bound: upper where lower is better, else lower */
} tare__threshold_kind;

typedef struct tare__threshold {
    char name[TARE__THRESHOLD_NAME_MAX + 1]; /* of the figure; '*' stands for any text */
    tare__threshold_kind kind;
    double value;                            /* change: 0.05 is 5 %; limit: in `unit` */
    char unit[TARE__THRESHOLD_UNIT_MAX + 1]; /* of a limit: "ns", "bytes", "samples/s" as written; "": a plain number */
    double floor;                            /* change: smaller absolute changes are allowed; NaN: not given */
    char floor_unit[TARE__THRESHOLD_UNIT_MAX + 1];
} tare__threshold;

/* Reads NAME:LIMIT, where LIMIT is 5% (a change), 5%,1ms (one of more than 1 ms), 100ms, 2GB, 64MiB, 1000samples/s,
 * 1000/s or 0.25. A name may have colons: the last one counts. `what` is for sentences ("--threshold"). 0, or
 * TARE_E_USAGE with a sentence; *threshold is then untouched. */
int tare__threshold_parse(const char *word, const char *what, tare__threshold *threshold, tare__error *error);
/* The same with separate name and limit. */
int tare__threshold_parse_limit(const char *name, const char *limit, const char *what, tare__threshold *threshold,
                                tare__error *error);
/* The same for a limit of a figure in `unit`: "ns", "bytes", "/s" (a rate of samples, images, tokens or requests) or
 * "" (a count, in which K, M, G and T are powers of 1000). A change is rejected. */
int tare__threshold_parse_of(const char *word, const char *unit, const char *what, tare__threshold *threshold,
                             tare__error *error);
/* Checks that a parsed limit suits a figure in `unit`, as above. 0, or TARE_E_USAGE with a sentence. */
int tare__threshold_check(const tare__threshold *threshold, const char *unit, const char *what, tare__error *error);
bool tare__threshold_names(const tare__threshold *threshold, const char *figure);
/* Whether a limit in this unit can apply to a figure in that one: the same unit, a rate without its noun ("1000/s"),
 * or a plain number, except for times and bytes, where it would mean nanoseconds or bytes. */
bool tare__threshold_fits(const char *limit_unit, const char *figure_unit);

#endif
