/* fuzz_rules: any bytes as a file of the user's rules: parsed, and what parses is looked at over a few rows. Nothing
 * may crash, hang or leak.
 * One thread. Must not know what a right answer is. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/findings/rules.h"

static const tare__span_row spans[] = {
    {.name = "main", .kind = TARE_KIND_SPAN, .parent = TARE__NO_ROW, .calls = 1, .total_ns = 1e9, .self_ns = 4e8,
     .share = 1},
    {.name = "load_batch", .file = "train.py", .line = 12, .kind = TARE_KIND_SPAN, .depth = 1, .calls = 900,
     .total_ns = 6e8, .self_ns = 6e8, .share = 0.6},
};

static const tare__metric_row metrics[] = {
    {.metric = "memory.rss", .subject = TARE__SUBJECT_TREE, .label = "", .kind = TARE__METRIC_GAUGE,
     .known = TARE__M_RSS, .unit = TARE__SHOW_BYTES, .n = 9, .min = 1e6, .mean = 2e6, .max = 3e6, .first = 1e6,
     .last = 3e6, .total = NAN, .to_ns = 1e9},
    {.metric = "memory.pss", .subject = 99, .label = "", .known = TARE__METRIC_COUNT, .absent = "not here",
     .min = NAN, .mean = NAN, .max = NAN, .first = NAN, .last = NAN, .total = NAN},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tare__rules *rules;
    tare__error error;
    if (tare__rules_parse((const char *)data, bytes, "fuzz", &rules, &error))
        return 0;
    tare__analysis of = {.arena = tare__arena_new(), .spans = spans, .n_spans = TARE__COUNT_OF(spans),
                         .metrics = metrics, .n_metrics = TARE__COUNT_OF(metrics)};
    of.run.elapsed_ns = 1e9;
    of.usage.gpu_busy_mean = NAN;
    if (of.arena)
        (void)tare__analyze_findings(&of, NULL, rules);
    tare__arena_free(of.arena);
    tare__rules_free(rules);
    return 0;
}
