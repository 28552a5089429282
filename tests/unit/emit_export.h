/* Traces that exporters must get right: nested, chained, left open, with lost ends, gaps, unknown streams,
 * overlapping spans; and how many spans the span table counts in each. Owned by the test's one thread. Included
 * after cmocka.h.
 * Must not know the formats. */
#ifndef TARE_TEST_EMIT_EXPORT_H
#define TARE_TEST_EMIT_EXPORT_H

#include "analyze_helper.h"
#include "emit_golden.h"

static void complete(builder *b, uint32_t stream, const tare__complete_span *spans, uint32_t n)
{
    tare__block_header header = {.stream = stream};
    builder_check(tare__complete_seal(spans, n, b->squeezer, &header, &b->file));
}

/* ---- the cases ------------------------------------------------------------------------------------------ */
static void nested(builder *b)
{
    for (uint64_t i = 0; i < 50; i++) {
        BEGIN(OUTER, 2000 + 100 * i);
        NUMBER(SAMPLES, 32);
        BEGIN(INNER, 2000 + 100 * i);
        END(2010 + 100 * i);
        BEGIN(STEP, 2020 + 100 * i);
        NUMBER(INDEX, (double)i);
        END(2050 + 100 * i);
        END(2050 + 100 * i);
    }
    build_seal(b);
}

static void chained(builder *b)
{
    NEXT(OUTER, 2000); /* nothing to end */
    for (uint64_t i = 0; i < 20; i++)
        NEXT(i % 2 ? INNER : OTHER, 2010 + 10 * i);
    END(2300);
    END(2310); /* nothing to end */
    build_seal(b);
}

static void over_blocks(builder *b)
{
    BEGIN(EPOCH, 2000);
    build_seal(b);
    BEGIN(STEP, 2100);
    NUMBER(SAMPLES, 7);
    build_seal(b);
    NUMBER(SAMPLES, 8);
    build_seal(b); /* numbers only: no time */
    END(2200);
    build_seal(b);
    END(2300);
    build_seal(b);
}

static void left_open(builder *b)
{
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2010);
    BEGIN(OTHER, 2020);
    END_OF(OUTER, 2030);
    END_OF(OUTER, 2040); /* is not open any more */
    BEGIN(EPOCH, 2050);
    BEGIN(STEP, 2060);
    build_seal(b); /* and nothing ends these two */
}

static void ends_lost(builder *b)
{
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2010);
    BEGIN(OTHER, 2020);
    MARK(SAVED, 2030);
    LOST(2);
    END(2040);
    LOST(5);
    BEGIN(OUTER, 2050);
    END(2060);
    build_seal(b);
}

static void gap(builder *b)
{
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2010);
    build_seal(b);
    END(2020);
    BEGIN(OTHER, 2030);
    BEGIN(STEP, 2040);
    build_lose(b, build_seal(b));
    BEGIN(INNER, 2050);
    END(2060);
    END(2070); /* STEP, which began in the block that is gone */
    END(2080);
    END(2090);
    build_seal(b);
}

static void start_is_gone(builder *b)
{
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2010);
    build_lose(b, build_seal(b));
    BEGIN(OTHER, 2100);
    build_seal(b);
}

/* Deeper than a block lists. */
static void deep_gap(builder *b)
{
    for (uint64_t i = 0; i < TARE__STACK_LISTED + 10; i++)
        BEGIN(OUTER, 2000 + i);
    build_lose(b, build_seal(b));
    for (uint64_t i = 0; i < 20; i++)
        BEGIN(INNER, 9000 + i);
    for (uint64_t i = 0; i < 40; i++)
        END(9100 + i);
    NEXT(OTHER, 9200);
    build_seal(b);
}

static void two_processes(builder *b)
{
    build_process(b, 2, 77); /* the pid again */
    build_stream(b, 2, 2, 77, "main");
    build_stream(b, 3, 1, 77, "a later thread with the same id");
    for (uint32_t stream = 1; stream <= 3; stream++) {
        b->stream = stream;
        BEGIN(OUTER, 3000);
        BEGIN(INNER, 3100);
        END(3200);
        END(3300);
        COUNTER(LOSS, 3300, 0.25);
        build_seal(b);
    }
}

/* A stream and a name that the file does not describe. */
static void unknown_people(builder *b)
{
    b->stream = 5;
    BEGIN(99, 2000);
    COUNTER(98, 2010, NAN);
    COUNTER(98, 2011, -1.5);
    END(2020);
    MARK(97, 2030);
    build_seal(b);
    const tare__complete_span span = {.name = 96, .track = 95, .start = 2000, .end = 2100};
    complete(b, 6, &span, 1);
}

static void overlapping(builder *b)
{
    tare__complete_span spans[400];
    for (uint32_t i = 0; i < 400; i++)
        spans[i] = (tare__complete_span){.name = i % 2 ? INNER : OTHER,
                                         .track = i % 4 ? GPU : 0,
                                         .start = 3000 + 7 * (399 - i),
                                         .end = 3000 + 7 * (399 - i) + (i < 150 ? 2000 : i % 9),
                                         .id = i + 1,
                                         .parent = i,
                                         .flow = i % 3 ? 1 + i / 10 : 0};
    spans[20].end = spans[20].start - 5; /* ends before it starts */
    complete(b, 1, spans, 200);
    complete(b, 1, spans + 200, 200);
    BEGIN(OUTER, 2000);
    END(9000);
    build_seal(b);
}

static void sampled(builder *b)
{
    static const int64_t rss[] = {1 << 20, 3 << 20, 2 << 20}, cpu[] = {0, 250000, 200000, 700000};
    build_series(b, 1, TARE__M_RSS, TARE__SUBJECT_PROCESS, 77, "train");
    build_series(b, 2, TARE__M_CPU_USER, TARE__SUBJECT_CPU, 3, "");
    build_series(b, 3, TARE__M_RSS, TARE__SUBJECT_PROCESS, 4711, "helper \"quoted\"");
    build_series_absent(b, 4, TARE__M_POWER, TARE__SUBJECT_SENSOR, 0, 0, "package", "no permission");
    build_samples(b, 1, 2000, 1000, rss, 3);
    build_samples(b, 2, 2000, 1000000, cpu, 4); /* a tick is half a nanosecond */
    build_samples(b, 3, 2000, 1000, rss, 1);
    nested(b);
}

typedef struct export_case {
    const char *name;
    void (*build)(builder *);
    uint64_t spans, restored; /* as they were built */
} export_case;

static const export_case export_cases[] = {
    {"nested", nested, 150, 0},
    {"chained", chained, 21, 0},
    {"over blocks", over_blocks, 2, 0},
    {"left open", left_open, 5, 0},
    {"ends lost", ends_lost, 4, 0},
    {"gap", gap, 3, 2},
    {"start is gone", start_is_gone, 1, 2},
    {"deep gap", deep_gap, 21, TARE__STACK_LISTED},
    {"two processes", two_processes, 6, 0},
    {"unknown people", unknown_people, 2, 0},
    {"overlapping", overlapping, 401, 0},
    {"sampled", sampled, 150, 0},
};

/* ---- exporting ------------------------------------------------------------------------------------------- */
static tare__text export_path(const tare__emitter *emitter, const char *path)
{
    kept kept = {0};
    tare__error error = {""};
    tare__emit_sink sink = sink_of(&kept);
    tare__emit_options options = {0};
    tare__emit_input input = {0};
    assert_int_equal(tare__trace_open(path, &input.trace, &error), 0);
    assert_int_equal(emitter->emit(&input, &options, &sink, &error), 0);
    tare__trace_close(input.trace);
    return kept.text;
}

static inline tare__text export_case_of(const tare__emitter *emitter, const export_case *one)
{
    builder *b = build_single();
    one->build(b);
    tare__analysis *analysis = analyze_unchecked(b, TARE__BY_RUN);
    assert_int_equal(analysis->run.spans, one->spans);
    tare__text text = export_path(emitter, build_file(b));
    done(b, analysis);
    return text;
}

static inline const export_case *case_named(const char *name)
{
    for (size_t i = 0; i < TARE__COUNT_OF(export_cases); i++)
        if (strcmp(export_cases[i].name, name) == 0)
            return &export_cases[i];
    fail_msg("no case %s", name);
    return NULL;
}

/* Any bit of a trace flipped in turn: what comes out is counted by `spans_of` and must be what the table says. */
static inline void flip_bits(const tare__emitter *emitter, uint64_t (*spans_of)(const tare__text *))
{
    builder *b = build_single();
    gap(b);
    overlapping(b);
    sampled(b);
    build_end(b, 20000);
    for (size_t at = sizeof(tare__file_header); at < b->file.length; at += 13) {
        tare__trace *trace;
        tare__analysis *analysis;
        tare__error error = {""};
        b->file.data[at] ^= (char)(1 << at % 8);
        const char *path = build_file(b);
        assert_int_equal(tare__trace_open(path, &trace, &error), 0);
        assert_int_equal(tare__analyze(trace, &(tare__analyze_options){0}, &analysis, &error), 0);
        tare__text text = export_path(emitter, path);
        if (spans_of(&text) != analysis->run.spans)
            fail_msg("byte %zu: %llu spans, the table has %llu", at, (unsigned long long)spans_of(&text),
                     (unsigned long long)analysis->run.spans);
        tare__text_free(&text);
        tare__analysis_free(analysis);
        tare__trace_close(trace);
        b->file.data[at] ^= (char)(1 << at % 8);
    }
    builder_free(b);
}

/* Of every kind, with this many rounds of nested spans. */
static inline builder *build_rounds(int rounds)
{
    builder *b = build_single();
    for (int i = 0; i < rounds; i++)
        nested(b);
    two_processes(b);
    unknown_people(b);
    overlapping(b);
    sampled(b);
    return b;
}

/* 0, or the status with which the emitter stopped when this write, or this and all further allocations, failed. */
static inline int stopped(const tare__emitter *emitter, const char *path, unsigned write, long allocation,
                          void (*limit)(long))
{
    kept kept = {.refuse = write};
    tare__error error = {""};
    tare__emit_sink sink = sink_of(&kept);
    tare__emit_input input = {0};
    assert_int_equal(tare__trace_open(path, &input.trace, &error), 0);
    limit(allocation);
    int status = emitter->emit(&input, &(tare__emit_options){0}, &sink, &error);
    limit(-1);
    assert_int_equal(error.text[0] != 0, status && allocation >= 0);
    tare__trace_close(input.trace);
    tare__text_free(&kept.text);
    return status;
}

/* Each write refused in turn, of a trace long enough for some; each allocation failed in turn, of a short one: the
 * tries are as many as its allocations. */
static inline void refuse_and_fail(const tare__emitter *emitter, void (*limit)(long))
{
    int status;
    unsigned write = 1;
    builder *b = build_rounds(30);
    for (const char *path = build_file(b); (status = stopped(emitter, path, write, -1, limit)) != 0; write++)
        assert_int_equal(status, TARE_E_SYSTEM);
    assert_true(write > 2);
    builder_free(b);
    long allocation = 0;
    b = build_rounds(1);
    for (const char *path = build_file(b); (status = stopped(emitter, path, 0, allocation, limit)) != 0; allocation++)
        assert_int_equal(status, TARE_E_MEMORY);
    assert_true(allocation > 2);
    builder_free(b);
}

static inline const char *fixture_path(char out[512], const char *name)
{
    const char *here = __FILE__, *slash = strrchr(here, '/');
    snprintf(out, 512, "%.*s../fixture/%s", (int)(slash + 1 - here), here, name);
    return out;
}

#endif
