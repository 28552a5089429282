/* Tests of src/analyze/tables/steps.c: steps and epochs, their distribution, the slowest, numbers inside.
 * One thread.
 * Must not know how rows are shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

/* Steps of 2,000 ticks (1 µs) and more, back to back, the first one slow. */
static uint64_t build_steps(builder *b, uint64_t t, int n)
{
    for (int i = 0; i < n; i++) {
        BEGIN(STEP, t);
        NUMBER(INDEX, i);
        BEGIN(INNER, t + 10);
        NUMBER(SAMPLES, 4);
        END(t + 20);
        t += i == 0 ? 20000 : 2000 + 10 * (uint64_t)i;
        END(t);
    }
    return t;
}

static void steps_have_a_distribution(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(EPOCH, 2000);
    NUMBER(INDEX, 3);
    uint64_t end = build_steps(b, 2000, 101);
    END(end);
    build_seal(b);
    build_end(b, end + 1000);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_steps, 1);
    const tare__step_row *steps = &a->steps[0];
    assert_string_equal(steps->name, "step");
    assert_int_equal(steps->count, 101);
    assert_int_equal(steps->unfinished, 0);
    assert_true(steps->exact);
    double total = 10000 + 100 * 1000 + 5 * 5050;
    NEAR(steps->total_ns, total);
    NEAR(steps->each.min_ns, 1005);
    NEAR(steps->each.max_ns, 10000);
    NEAR(steps->each.mean_ns, total / 101);
    NEAR(steps->each.p50_ns, 1255);          /* the 51st of 101 */
    NEAR(steps->each.p95_ns, 1000 + 96 * 5); /* the 96th */
    NEAR(steps->first_ns, 10000);
    NEAR(steps->rest_p50_ns, 1252.5);
    NEAR(steps->per_second, 101 / (total / 1e9));
    assert_int_equal(steps->p50.needed, 0);
    assert_true(steps->p50.low_ns < 1255 && steps->p50.high_ns > 1255);
    assert_true(steps->p95.low_ns < steps->each.p95_ns && steps->p95.high_ns >= steps->each.p95_ns);
    assert_int_equal(steps->n_slowest, 5);
    NEAR(steps->slowest[0].duration_ns, 10000);
    NEAR(steps->slowest[0].start_at_ns, 500);
    assert_int_equal(steps->slowest[0].index, 0);
    for (uint64_t i = 1; i < 5; i++) {
        assert_true(steps->slowest[i].has_index);
        assert_int_equal(steps->slowest[i].index, 101 - i);
        NEAR(steps->slowest[i].duration_ns, 1000 + 5 * (double)(101 - i));
    }
    assert_int_equal(steps->n_numbers, 1); /* index is not one of them */
    assert_string_equal(steps->numbers[0].name, "samples");
    assert_int_equal(steps->numbers[0].n, 101);
    NEAR(steps->numbers[0].sum, 404);
    NEAR(steps->numbers[0].rate, 404 / (total / 1e9));

    assert_int_equal(a->n_epochs, 1);
    assert_int_equal(a->epochs[0].count, 1);
    assert_int_equal(a->epochs[0].slowest[0].index, 3);
    assert_true(isnan(a->epochs[0].p50.low_ns));
    assert_int_equal(a->epochs[0].p50.needed, 6);
    assert_int_equal(a->epochs[0].p95.needed, 72);
    assert_true(isnan(a->epochs[0].rest_p50_ns));
    NEAR(a->epochs[0].numbers[0].sum, 404);
    done(b, a);
}

static uint64_t binned(const tare__step_row *row)
{
    uint64_t sum = row->bins.over;
    for (size_t i = 0; i < TARE__STEP_BINS; i++)
        sum += row->bins.counts[i];
    return sum;
}

/* 1,000 ns to 1,500 ns and one of 10,000: bins show the many, the one is counted apart. */
static void bins_leave_the_tail_out(void **state)
{
    (void)state;
    builder *b = build_single();
    uint64_t end = build_steps(b, 2000, 101);
    build_seal(b);
    build_end(b, end + 1000);
    tare__analysis *a = analyze(b);
    const tare__step_bins *bins = &a->steps[0].bins;
    assert_int_equal(binned(&a->steps[0]), 101);
    assert_int_equal(bins->over, 1);
    NEAR(bins->from_ns, 1005);
    NEAR(bins->width_ns, (1255 + 4 * (1480 - 1255) - 1005) / (double)TARE__STEP_BINS);
    assert_int_equal(bins->counts[0], (uint64_t)(bins->width_ns / 5) + 1);
    assert_int_equal(bins->counts[TARE__STEP_BINS - 1], 0);
    done(b, a);
}

static void steps_that_are_taken_back(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(EPOCH, 2000);
    NUMBER(INDEX, 0);
    uint64_t end = build_steps(b, 2000, 3);
    BEGIN(STEP, end);
    NUMBER(INDEX, 3);
    NUMBER(SAMPLES, 4);
    NUMBER(INDEX, -1); /* its batch was never trained on */
    END(end + 500000);
    END(end + 500000);
    BEGIN(EPOCH, end + 600000);
    NUMBER(INDEX, 1);
    NUMBER(INDEX, -1);
    END(end + 700000);
    build_seal(b);
    build_end(b, end + 800000);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_steps, 1);
    assert_int_equal(a->steps[0].count, 3);
    assert_int_equal(a->steps[0].unfinished, 0);
    NEAR(a->steps[0].each.max_ns, 10000);
    assert_int_equal(a->epochs[0].count, 1);
    assert_int_equal(a->processes[0].steps, 3);
    NEAR(a->steps[0].numbers[0].sum, 12); /* without the four of the batch that was never trained on */
    NEAR(a->steps[0].numbers[0].rate, 12 / (a->steps[0].total_ns / 1e9));
    assert_int_equal(span_at(a, "epoch/step")->calls, 3); /* nor in the tree */
    NEAR(span_at(a, "epoch/step")->total_ns, a->steps[0].total_ns);
    NEAR(span_at(a, "epoch/(outside steps)")->total_ns, 250000);
    assert_int_equal(span_at(a, "epoch")->calls, 1);
    NEAR(span_at(a, "(outside steps)")->total_ns, 50000);
    done(b, a);
}

/* Nobody knew that they would be steps: each is none until the number says so, from inside an operator. */
static void steps_that_are_told_later(void **state)
{
    (void)state;
    enum { LATER = 20 };
    builder *b = build_single();
    build_name(b, LATER, TARE_KIND_NUMBER, "(index)");
    uint64_t t = 2000;
    for (int i = 0; i < 4; i++, t += 1000) {
        BEGIN(STEP, t);
        NUMBER(INDEX, -1);
        BEGIN(OUTER, t + 10);
        BEGIN(INNER, t + 20);
        if (i < 2)
            NUMBER(LATER, i);
        END(t + 30);
        END_OF(STEP, t + 1000); /* what is open inside ends with it */
    }
    BEGIN(STEP, t);
    NUMBER(INDEX, -1);
    build_seal(b); /* killed */
    tare__analysis *a = analyze(b);
    assert_int_equal(a->steps[0].count, 2);
    assert_int_equal(a->steps[0].unfinished, 0);
    assert_int_equal(a->steps[0].slowest[0].index + a->steps[0].slowest[1].index, 1);
    assert_int_equal(a->steps[0].n_numbers, 0);
    done(b, a);
}

/* A range of the program that ends in the middle of a step takes its span with it; the step is told later, and
 * lasted. */
static void a_step_cut_by_the_end_of_a_range(void **state)
{
    (void)state;
    enum { LATER = 20 };
    builder *b = build_single();
    build_name(b, LATER, TARE_KIND_NUMBER, "(index)");
    BEGIN(OUTER, 2000);
    BEGIN(STEP, 3000);
    NUMBER(INDEX, -1);
    BEGIN(INNER, 3100);
    END(3200);
    END_OF(OUTER, 4000);
    NUMBER(LATER, 7);
    END_OF(STEP, 5000); /* ends nothing */
    NUMBER(LATER, 8);   /* and there is no further step */
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->steps[0].count, 1);
    assert_int_equal(a->steps[0].slowest[0].index, 7);
    NEAR(a->steps[0].slowest[0].start_at_ns, (3000 - (double)BUILD_START) / 2);
    assert_true(a->steps[0].total_ns >= 500);
    done(b, a);
}

/* Of ten steps of 1 µs, two carry samples, as where a loader reads ahead: their rate is over all ten, as that of
 * steps is. */
static void a_rate_is_of_the_time_in_steps(void **state)
{
    (void)state;
    builder *b = build_single();
    uint64_t t = 2000;
    for (int i = 0; i < 10; i++, t += 2000) {
        BEGIN(STEP, t);
        BEGIN(INNER, t + 100);
        if (i % 5 == 0)
            NUMBER(SAMPLES, 8);
        END(t + 900);
        END(t + 2000);
    }
    build_seal(b);
    tare__analysis *a = analyze(b);
    NEAR(a->steps[0].numbers[0].sum, 16);
    NEAR(a->steps[0].numbers[0].rate, 16 / 10e-6);
    NEAR(a->steps[0].numbers[0].rate, a->steps[0].per_second * 16 / 10);
    assert_false(a->steps[0].numbers[0].estimated);
    NEAR(span_at(a, "step/inner")->numbers[0].rate, 16 / 0.8e-6); /* nor of calls of the span without it */
    done(b, a);
}

/* Of ten steps of 1 µs, the third is inspected and takes 50 µs: what it did, in as long as the others take. */
static void an_inspected_step_stands_for_the_others(void **state)
{
    (void)state;
    enum { SHAPES = 20, FLOPS };
    builder *b = build_single();
    build_name(b, SHAPES, TARE_KIND_SPAN, "shapes: aten::mm");
    build_name(b, FLOPS, TARE_KIND_NUMBER, "flops");
    uint64_t t = 2000;
    BEGIN(EPOCH, t);
    for (int i = 0; i < 10; i++) {
        BEGIN(STEP, t);
        for (int k = 0; i == 2 && k < 3; k++) {
            BEGIN(SHAPES, t + 10 + (uint64_t)k * 10);
            NUMBER(FLOPS, 1000);
            END(t + 12 + (uint64_t)k * 10);
        }
        t += i == 2 ? 100000 : 2000;
        END(t);
    }
    END(t);
    build_seal(b);
    tare__analysis *a = analyze(b);
    const tare__number_row *flops = &a->steps[0].numbers[0];
    NEAR(flops->sum, 3000);
    NEAR(flops->rate, 3000 / 1e-6);
    assert_true(flops->estimated);
    assert_int_equal(flops->inspected, 1);
    assert_true(isnan(span_at(a, "epoch/step/shapes: aten::mm")->numbers[0].rate));
    assert_int_equal(a->epochs[0].n_numbers, 0); /* one step's is not an epoch's */
    done(b, a);
}

/* Two processes, twenty steps of 1 µs each, at the same time or one after the other; with ranks or without. */
static void rates_are_of_the_job(void **state)
{
    (void)state;
    enum { RANK = 20 };
    for (int ranks = 0; ranks < 2; ranks++) {
        for (int later = 0; later < 2; later++) {
            builder *b = build_start();
            build_name(b, RANK, TARE__NAME_FACT, "torch.rank");
            for (uint32_t process = 1; process <= 2; process++) {
                build_process(b, process, (int)process + 70);
                build_stream(b, process, process, (int)process + 70, "main");
                b->stream = process;
                uint64_t t = 2000 + (later && process == 2 ? 40000 : 0);
                if (ranks)
                    build_fact(b, (tare__fact){.key = RANK, .ticks = t, .value = process - 1});
                for (int i = 0; i < 20; i++, t += 2000) {
                    BEGIN(STEP, t);
                    NUMBER(SAMPLES, 4);
                    END(t + 2000);
                }
                build_seal(b);
            }
            tare__analysis *a = analyze(b);
            const tare__step_row *row = &a->steps[0];
            double wall = later ? 40e-6 : 20e-6;
            assert_int_equal(row->count, 40);
            assert_int_equal(row->ranks, ranks ? 2 : 0);
            assert_int_equal(row->job_count, ranks ? 20 : 40);
            NEAR(row->per_second, (ranks ? 20 : 40) / wall);
            NEAR(row->numbers[0].rate, 160 / wall);
            assert_int_equal(a->processes[1].has_rank, ranks);
            assert_int_equal(a->n_counters, 0);
            done(b, a);
        }
    }
}

/* Two ranks, twenty steps of 10 ms each. In those of rank 1, `data` ms of a step are spent waiting for data and
 * `outside` ms in no phase; in those of rank 0 they are, when it is not `alike`, waited for in the backward pass. */
static tare__analysis *analyze_ranks(builder *b, double data, double outside, bool alike, bool later, tare__by by)
{
    enum { RANK = 20, DATA, FORWARD, BACKWARD };
    const uint64_t ms = 2000000; /* ticks */
    build_name(b, RANK, TARE__NAME_FACT, "torch.rank");
    build_name(b, DATA, TARE_KIND_PHASE, "data");
    build_name(b, FORWARD, TARE_KIND_PHASE, "forward");
    build_name(b, BACKWARD, TARE_KIND_PHASE, "backward");
    for (uint32_t process = 1; process <= 2; process++) {
        build_process(b, process, (int)process + 70);
        build_stream(b, process, process, (int)process + 70, "main");
        b->stream = process;
        bool costs = process == 2 || alike;
        uint64_t loads = costs ? (uint64_t)(data * (double)ms) : 0,
                 other = costs ? (uint64_t)(outside * (double)ms) : 0;
        uint64_t t = 2000 + (later && process == 2 ? 200 * ms : 0);
        build_fact(b, (tare__fact){.key = RANK, .ticks = t, .value = process - 1});
        for (int i = 0; i < 20; i++, t += 10 * ms) {
            BEGIN(STEP, t);
            BEGIN(DATA, t);
            END(t + loads);
            BEGIN(FORWARD, t + loads);
            END(t + loads + ms);
            BEGIN(BACKWARD, t + loads + ms);
            END(t + 10 * ms - other);
            END(t + 10 * ms);
        }
        build_seal(b);
    }
    return analyze_by(b, by);
}

static const tare__finding *finding_of(const tare__analysis *a, const char *id)
{
    for (size_t i = 0; i < a->n_findings; i++)
        if (strcmp(a->findings[i].id, id) == 0)
            return &a->findings[i];
    fail_msg("no finding %s", id);
    return NULL;
}

/* All ranks wait for the slowest: without its cost, all are as fast as it is then. */
static void gains_are_of_the_slowest_rank(void **state)
{
    (void)state;
    static const tare__by bys[] = {TARE__BY_RUN, TARE__BY_PROCESS, TARE__BY_THREAD};
    for (size_t i = 0; i < 3; i++) {
        builder *b = build_start();
        tare__analysis *a = analyze_ranks(b, 6, 0, false, false, bys[i]);
        const tare__finding *finding = finding_of(a, "loader-bound");
        assert_non_null(strstr(finding->title, "for 30.0 %")); /* 120 ms of 400 ms, of both */
        assert_true(fabs(finding->gain - 0.6) < 1e-3);                        /* 6 ms of 10 ms: two workers load in 3
                                                                               * ms, behind 4 ms */
        assert_non_null(strstr(finding->gain_how, "rank 1"));
        assert_non_null(strstr(finding->evidence, "Rank 1 waits longest, for 120 ms of 200 ms"));
        assert_null(a->ranks); /* for rules only */
        /* Of 9 ms in rank 0 six are waiting for rank 1, whose backward pass takes 3 ms. */
        assert_true(fabs(finding_of(a, "backward")->gain - 0.3) < 1e-3);
        done(b, a);

        b = build_start();
        a = analyze_ranks(b, 0, 8, false, false, bys[i]);
        assert_true(fabs(finding_of(a, "outside-model")->gain - 0.8) < 1e-3);
        assert_non_null(strstr(finding_of(a, "outside-model")->gain_how, "rank 1"));
        done(b, a);
    }
}

static void gains_of_equal_ranks_and_of_jobs_in_turn(void **state)
{
    (void)state;
    for (int later = 0; later < 2; later++) {
        builder *b = build_start();
        tare__analysis *a = analyze_ranks(b, 6, 0, true, later, TARE__BY_RUN);
        assert_true(fabs(finding_of(a, "loader-bound")->gain - 0.6) < 1e-3);
        assert_null(strstr(finding_of(a, "loader-bound")->evidence, "waits longest"));
        done(b, a);
        b = build_start();
        a = analyze_ranks(b, 0, 8, true, later, TARE__BY_RUN);
        assert_true(fabs(finding_of(a, "outside-model")->gain - 0.8) < 1e-3);
        done(b, a);
    }
    builder *b = build_start(); /* half of the time costs nothing */
    tare__analysis *a = analyze_ranks(b, 0, 8, false, true, TARE__BY_RUN);
    assert_true(fabs(finding_of(a, "outside-model")->gain - 0.4) < 1e-3);
    done(b, a);
}

static void chained_steps_keep_their_indexes(void **state)
{
    (void)state;
    builder *b = build_single();
    uint64_t t = 2000;
    BEGIN(STEP, t);
    NUMBER(INDEX, 10);
    for (int i = 11; i < 14; i++) {
        NEXT(STEP, t += 100 * (uint64_t)i);
        NUMBER(INDEX, i);
    }
    END(t += 100);
    BEGIN(STEP, t += 50); /* without an index */
    END(t += 5000);
    build_seal(b);
    tare__analysis *a = analyze(b);
    const tare__step_row *steps = &a->steps[0];
    const uint64_t order[] = {0, 12, 11, 10, 13};
    assert_int_equal(steps->count, 5);
    assert_false(steps->slowest[0].has_index);
    for (size_t i = 1; i < 5; i++) {
        assert_true(steps->slowest[i].has_index);
        assert_int_equal(steps->slowest[i].index, order[i]);
    }
    done(b, a);
}

static void steps_without_an_end_stay_out_of_the_figures(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(STEP, 2000);
    END(2100);
    BEGIN(STEP, 3000);
    MARK(SAVED, 90000);
    LOST(1);
    BEGIN(STEP, 100000);
    MARK(SAVED, 200000);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->steps[0].count, 1);
    assert_int_equal(a->steps[0].unfinished, 2);
    NEAR(a->steps[0].each.max_ns, 50);
    assert_int_equal(a->steps[0].bins.counts[0], 1); /* all equal: no width, one bin */
    NEAR(a->steps[0].bins.width_ns, 0);
    assert_int_equal(a->steps[0].n_slowest, 1);
    done(b, a);
}

static void very_many_steps_become_a_histogram(void **state)
{
    (void)state;
    enum { STEPS = 70000, A_BLOCK = 15000 };
    builder *b = build_single();
    uint64_t t = 2000;
    for (int i = 0; i < STEPS; i++) {
        BEGIN(STEP, t);
        END(t += 20000 + (uint64_t)(i % 1000) * 20); /* 10 to 20 µs */
        if (i % A_BLOCK == A_BLOCK - 1)
            build_seal(b);
    }
    build_seal(b);
    tare__analysis *a = analyze(b);
    const tare__step_row *steps = &a->steps[0];
    assert_int_equal(steps->count, STEPS);
    assert_false(steps->exact);
    NEAR(steps->each.min_ns, 10000);
    NEAR(steps->each.max_ns, 19990);
    assert_true(fabs(steps->each.p50_ns - 15000) <= 15000 / 250.0);
    assert_true(fabs(steps->each.p99_ns - 19900) <= 19900 / 250.0);
    assert_true(isnan(steps->p50.low_ns));
    assert_int_equal(steps->p50.needed, 0);
    assert_int_equal(steps->n_slowest, 5);
    NEAR(steps->slowest[4].duration_ns, 19990);
    assert_int_equal(binned(steps), STEPS);
    assert_int_equal(steps->bins.over, 0);
    for (size_t i = 0; i < TARE__STEP_BINS; i++)
        assert_true(steps->bins.counts[i] > STEPS / TARE__STEP_BINS / 2);
    done(b, a);
}

/* A step inside a step: numbers of the inner one are not added twice. */
static void steps_inside_steps_count_numbers_once(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(STEP, 2000);
    BEGIN(OUTER, 2100);
    BEGIN(STEP, 2200);
    NUMBER(INDEX, 1);
    NUMBER(SAMPLES, 5);
    END(2300);
    END(2400);
    END(2500);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->steps[0].count, 2);
    NEAR(a->steps[0].numbers[0].sum, 5);
    NEAR(a->steps[0].numbers[0].rate, 5 / 250e-9); /* of the outer one */
    done(b, a);
}

/* An epoch and its steps, told as they turn out: the first pass over a loader trains on nothing; of the second, the
 * first step is one and the second is none. What the others did is beside the steps, with its numbers, least and
 * largest. */
static void what_is_in_a_step_that_was_none_is_in_no_step(void **state)
{
    enum { TOLD = GPU + 1 };
    (void)state;
    builder *b = build_single();
    build_name(b, TOLD, TARE_KIND_NUMBER, TARE__NAME_OUTER_INDEX);
    for (int pass = 0; pass < 2; pass++) {
        uint64_t t = 10000 + 100000 * (uint64_t)pass;
        BEGIN(EPOCH, t);
        NUMBER(INDEX, -1);
        for (int i = 0; i < 2; i++, t += 20000) {
            BEGIN(STEP, t);
            NUMBER(INDEX, -1);
            BEGIN(INNER, t + 1000);
            NUMBER(SAMPLES, 8);
            BEGIN(OTHER, t + 1100);
            END(t + 1200 + 100 * (uint64_t)(2 * pass + i));
            END(t + (pass == 1 && i == 0 ? 4000 : 2000)); /* the step's is the longest */
            if (pass == 1 && i == 0)
                NUMBER(TOLD, 0);
            END(t + 10000);
            if (pass == 1 && i == 0)
                NUMBER(TOLD, 0); /* so it is an epoch */
        }
        END(t);
    }
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->steps[0].count, 1);
    assert_int_equal(a->epochs[0].count, 1);
    NEAR(a->steps[0].numbers[0].sum, 8);
    assert_int_equal(span_at(a, "epoch")->calls, 1);
    const tare__span_row *step = span_at(a, "epoch/step"), *inner = span_at(a, "epoch/step/inner");
    assert_int_equal(step->calls, 1);
    NEAR(step->total_ns, 5000);
    assert_int_equal(inner->calls, 1);
    NEAR(inner->each.min_ns, 1500);
    NEAR(inner->each.max_ns, 1500);
    NEAR(inner->numbers[0].sum, 8);
    NEAR(inner->numbers[0].rate, 8 / 1.5e-6);
    assert_int_equal(span_at(a, "epoch/step/inner/other")->calls, 1);
    const tare__span_row *none = span_at(a, "epoch/(outside steps)/inner");
    assert_int_equal(span_at(a, "epoch/(outside steps)")->calls, 1);
    assert_int_equal(none->calls, 1);
    NEAR(none->total_ns, 500);
    const tare__span_row *pass = span_at(a, "(outside steps)"),
                         *both = span_at(a, "(outside steps)/(outside steps)/inner");
    assert_int_equal(pass->calls, 1);
    NEAR(pass->total_ns, 20000);
    NEAR(pass->self_ns, 10000);
    assert_int_equal(both->calls, 2);
    NEAR(both->total_ns, 1000);
    NEAR(both->numbers[0].sum, 16);
    done(b, a);
}

/* One that was none and never ended: it ends with what was last in it, however long the process goes on. */
static void a_rest_ends_with_its_last_span(void **state)
{
    (void)state;
    for (int inside = 0; inside < 3; inside++) {
        builder *b = build_single();
        uint64_t end = build_steps(b, 2000, 3);
        BEGIN(STEP, end);
        NUMBER(INDEX, inside == 2 ? 3 : -1);
        if (inside) {
            BEGIN(INNER, end + 1000);
            END(end + 3000);
        }
        if (inside == 2)
            NUMBER(INDEX, -1);
        build_seal(b);
        build_end(b, end + 1000000);
        tare__analysis *a = analyze(b);
        assert_int_equal(a->steps[0].count, 3);
        assert_int_equal(a->steps[0].unfinished, 0);
        assert_int_equal(span_at(a, "step")->still_open, 0);
        bool told = false;
        for (size_t i = 0; i < a->n_spans; i++)
            told |= strcmp(a->spans[i].name, "(outside steps)") == 0;
        assert_int_equal(told, inside == 1);
        double rest = told ? span_at(a, "(outside steps)")->total_ns
                           : span_at(a, "step")->total_ns - a->steps[0].total_ns; /* told, and withdrawn too late */
        NEAR(rest, inside ? 1500 : 0);
        done(b, a);
    }
}

/* Steps that were none and nothing else: no row of a step is left. */
static void a_loop_without_training_has_no_steps(void **state)
{
    (void)state;
    builder *b = build_single();
    for (uint64_t t = 2000; t < 20000; t += 2000) {
        BEGIN(STEP, t);
        NUMBER(INDEX, -1);
        BEGIN(INNER, t + 100);
        END(t + 900);
        END(t + 2000);
    }
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_steps, 0);
    assert_int_equal(a->n_spans, 2);
    assert_int_equal(span_at(a, "(outside steps)")->calls, 9);
    assert_int_equal(span_at(a, "(outside steps)/inner")->calls, 9);
    done(b, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_have_a_distribution),
        cmocka_unit_test(bins_leave_the_tail_out),
        cmocka_unit_test(steps_that_are_taken_back),
        cmocka_unit_test(a_rest_ends_with_its_last_span),
        cmocka_unit_test(steps_that_are_told_later),
        cmocka_unit_test(a_step_cut_by_the_end_of_a_range),
        cmocka_unit_test(a_rate_is_of_the_time_in_steps),
        cmocka_unit_test(an_inspected_step_stands_for_the_others),
        cmocka_unit_test(rates_are_of_the_job),
        cmocka_unit_test(gains_are_of_the_slowest_rank),
        cmocka_unit_test(gains_of_equal_ranks_and_of_jobs_in_turn),
        cmocka_unit_test(chained_steps_keep_their_indexes),
        cmocka_unit_test(steps_without_an_end_stay_out_of_the_figures),
        cmocka_unit_test(very_many_steps_become_a_histogram),
        cmocka_unit_test(steps_inside_steps_count_numbers_once),
        cmocka_unit_test(what_is_in_a_step_that_was_none_is_in_no_step),
        cmocka_unit_test(a_loop_without_training_has_no_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
