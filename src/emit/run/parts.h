/* parts: the parts of the text report, each a table or two, in the order in which they are shown.
 * Owned by the calling thread; used inside emit only.
 * Must not know where the text goes. */
#ifndef TARE_EMIT_PARTS_H
#define TARE_EMIT_PARTS_H

#include "emit/layout.h"

/* Resource usage of the run, and what of it is unknown. */
void tare__part_usage(tare__page *page, const tare__analysis *analysis);
/* Findings, worst first. */
void tare__part_findings(tare__page *page, const tare__analysis *analysis);
/* By sampled stacks: lines of the leading thread and packages; functions of all threads. */
void tare__part_hot_lines(tare__page *page, const tare__analysis *analysis);
void tare__part_hot_functions(tare__page *page, const tare__analysis *analysis);
/* Processes as sampled, with the CPU time of their threads. */
void tare__part_sampled(tare__page *page, const tare__analysis *analysis);
/* Sets the columns of names, the same for all tables; returns the columns of the tree's bars. */
unsigned tare__part_lay_out(tare__page *page, const tare__analysis *analysis);
/* Where time is spent: the span tree, or one for each process or thread. */
void tare__part_tree(tare__page *page, const tare__analysis *analysis);
/* Operators by self time, and the modules they belong to. */
void tare__part_operators(tare__page *page, const tare__analysis *analysis);
void tare__part_roofline(tare__page *page, const tare__analysis *analysis); /* achieved FLOP/s and bytes/s */
void tare__part_modules(tare__page *page, const tare__analysis *analysis);
/* Steps and epochs with their distribution. */
void tare__part_steps(tare__page *page, const tare__analysis *analysis);
/* Numbers attached to spans, as sums and rates. */
void tare__part_numbers(tare__page *page, const tare__analysis *analysis);
/* "38.4k samples, 16.6k samples/s" */
void tare__part_rate(tare__text *out, const tare__number_row *number);
void tare__part_aggregates(tare__page *page, const tare__analysis *analysis);
void tare__part_tracks(tare__page *page, const tare__analysis *analysis);
void tare__part_counters(tare__page *page, const tare__analysis *analysis);
void tare__part_marks(tare__page *page, const tare__analysis *analysis);
void tare__part_threads(tare__page *page, const tare__analysis *analysis);
void tare__part_processes(tare__page *page, const tare__analysis *analysis);

#endif
