/* analyze_helper: opens what a builder made, analyzes it, finds rows, compares figures.
 * Owned by the test's one thread. Included after cmocka.h.
 * Must not know how the analysis works. */
#ifndef TARE_TEST_ANALYZE_HELPER_H
#define TARE_TEST_ANALYZE_HELPER_H

#include <math.h>

#include "analyze/analyze.h"
#include "analyze/consistent.h"
#include "trace/trace.h"
#include "trace_builder.h"

/* Names every test may use. A tick is half a nanosecond (build_clock). */
enum { OUTER = 1, INNER, OTHER, STEP, EPOCH, INDEX, SAMPLES, LOSS, SAVED, GPU };

static inline builder *build_start(void)
{
    builder *b = builder_new();
    build_run(b);
    build_clock(b);
    build_name(b, OUTER, TARE_KIND_SPAN, "outer");
    build_name(b, INNER, TARE_KIND_SPAN, "inner");
    build_name(b, OTHER, TARE_KIND_SPAN, "other");
    build_name(b, STEP, TARE_KIND_STEP, "step");
    build_name(b, EPOCH, TARE_KIND_EPOCH, "epoch");
    build_name(b, INDEX, TARE_KIND_NUMBER, "index");
    build_name(b, SAMPLES, TARE_KIND_NUMBER, "samples");
    build_name(b, LOSS, TARE_KIND_COUNTER, "loss");
    build_name(b, SAVED, TARE_KIND_MARK, "saved");
    build_name(b, GPU, TARE__NAME_TRACK + TARE_TRACK_GPU, "stream 7");
    return b;
}

/* One process, its main thread. */
static inline builder *build_single(void)
{
    builder *b = build_start();
    build_process(b, 1, 77);
    build_stream(b, 1, 1, 77, "main");
    return b;
}

/* A complete span on the GPU's track and an aggregate one, each a block. */
static inline void build_complete_and_aggregate(builder *b)
{
    const tare__complete_span span = {.name = INNER, .track = GPU, .start = 5000, .end = 5400};
    tare__block_header header = {.stream = 1};
    builder_check(tare__complete_seal(&span, 1, b->squeezer, &header, &b->file));
    uint32_t buckets[TARE__CELL_BUCKETS] = {[20] = 1};
    tare__aggregate cell = {OTHER, 1, 1, 1, 44, 44, 44, buckets};
    builder_check(tare__aggregates_seal(&cell, 1, b->squeezer, &header, &b->file));
}

/* Of a file whose figures cannot be true, for whatever reason the test has. */
static inline tare__analysis *analyze_unchecked(builder *b, tare__by by)
{
    tare__trace *trace;
    tare__analysis *analysis;
    tare__error error = {""};
    tare__analyze_options options = {.by = by};
    assert_int_equal(tare__trace_open(build_file(b), &trace, &error), 0);
    assert_int_equal(tare__analyze(trace, &options, &analysis, &error), 0);
    tare__trace_close(trace); /* the tables live on without it */
    return analysis;
}

static inline tare__analysis *analyze_by(builder *b, tare__by by)
{
    tare__analysis *analysis = analyze_unchecked(b, by);
    tare__contradictions found;
    tare__analyze_consistent(analysis, &found);
    if (found.n)
        print_error("%s\n", found.first);
    assert_int_equal(found.n, 0);
    return analysis;
}

static inline tare__analysis *analyze(builder *b)
{
    return analyze_by(b, TARE__BY_RUN);
}

static inline void done(builder *b, tare__analysis *analysis)
{
    tare__analysis_free(analysis);
    builder_free(b);
}

/* The row of a path "outer/inner". */
static inline const tare__span_row *span_at(const tare__analysis *analysis, const char *path)
{
    for (size_t i = 0; i < analysis->n_spans; i++) {
        char names[1024] = "";
        const tare__span_row *row = &analysis->spans[i];
        for (uint32_t at = (uint32_t)i;; at = analysis->spans[at].parent) {
            char longer[sizeof names];
            const char *name = analysis->spans[at].name;
            snprintf(longer, sizeof longer, "%.500s%s%.500s", name, *names ? "/" : "", names);
            memcpy(names, longer, sizeof names);
            if (analysis->spans[at].parent == TARE__NO_ROW)
                break;
        }
        if (strcmp(names, path) == 0)
            return row;
    }
    fail_msg("no row %s", path);
    return NULL;
}

static inline bool has_note(const tare__analysis *analysis, const char *words)
{
    for (size_t i = 0; i < analysis->run.n_notes; i++)
        if (strstr(analysis->run.notes[i], words))
            return true;
    return false;
}

#define NEAR(value, expected) expect_near(value, expected, #value, __LINE__)
static inline void expect_near(double value, double expected, const char *what, int line)
{
    double tolerance = 1e-9 * fabs(expected) + 1e-9;
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("line %d: %s is %.9f, not %.9f", line, what, value, expected);
}

#endif
