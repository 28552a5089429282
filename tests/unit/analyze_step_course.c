/* Tests of src/analyze/tables/step_course.c: parts of steps bin by bin, phases first, bounds, steps without an end.
 * One thread.
 * Must not know how the course is drawn. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

enum { LOAD = 20, FORWARD, MODULE, SYNC, MANY = 100 };

static builder *build_phased(void)
{
    builder *b = build_single();
    build_name(b, LOAD, TARE_KIND_PHASE, "data");
    build_name(b, FORWARD, TARE_KIND_PHASE, "forward");
    build_name(b, MODULE, TARE_KIND_MODULE, "encoder");
    build_name(b, SYNC, TARE_KIND_SPAN, "sync: .item() at train.py:16");
    return b;
}

/* 200 ticks: 60 of inner (20 of other in it), 40 of other. */
static void plain_step(builder *b, uint64_t t, uint64_t more)
{
    BEGIN(STEP, t);
    BEGIN(INNER, t);
    BEGIN(OTHER, t + 10);
    END(t + 30);
    END(t + 60);
    BEGIN(OTHER, t + 60);
    END(t + 100);
    END(t + 200 + more);
}

static const tare__step_course *course_of(const tare__analysis *a)
{
    assert_int_equal(a->n_steps, 1);
    return &a->steps[0].course;
}

static double sum_of(const tare__step_course *course, size_t part)
{
    double sum = 0;
    for (size_t i = 0; i < course->n_bins; i++)
        sum += course->bins[i].parts_ns[part];
    return sum;
}

static void a_step_is_a_bin_while_there_are_few(void **state)
{
    (void)state;
    builder *b = build_single();
    for (uint64_t i = 0; i < 3; i++)
        plain_step(b, 2000 + 1000 * i, 100 * i);
    build_seal(b);
    tare__analysis *a = analyze(b);
    const tare__step_course *course = course_of(a);
    assert_false(course->phases);
    assert_int_equal(course->n_parts, 2);
    assert_string_equal(course->parts[0], "inner");
    assert_string_equal(course->parts[1], "other"); /* the one directly inside the step alone */
    assert_int_equal(course->n_bins, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(course->bins[i].steps, 1);
        NEAR(course->bins[i].from_ns, 500 + 500 * (double)i);
        NEAR(course->bins[i].total_ns, 100 + 50 * (double)i);
        NEAR(course->bins[i].to_ns - course->bins[i].from_ns, course->bins[i].total_ns);
        NEAR(course->bins[i].parts_ns[0], 30);
        NEAR(course->bins[i].parts_ns[1], 20);
    }
    done(b, a);
}

static void many_steps_share_bins(void **state)
{
    (void)state;
    enum { N = 1001 };
    builder *b = build_single();
    for (uint64_t i = 0; i < N; i++)
        plain_step(b, 2000 + 1000 * i, 0);
    build_seal(b);
    tare__analysis *a = analyze(b);
    const tare__step_course *course = course_of(a);
    uint64_t steps = 0;
    assert_in_range(course->n_bins, TARE__COURSE_BINS / 2, TARE__COURSE_BINS);
    for (size_t i = 0; i < course->n_bins; i++) {
        if (i > 0 && i + 1 < course->n_bins)
            assert_int_equal(course->bins[i].steps, course->bins[0].steps);
        NEAR(course->bins[i].total_ns, 100 * (double)course->bins[i].steps);
        NEAR(course->bins[i].parts_ns[0], 30 * (double)course->bins[i].steps);
        NEAR(course->bins[i].from_ns, 500 + 500 * (double)steps);
        steps += course->bins[i].steps;
    }
    assert_int_equal(steps, N);
    done(b, a);
}

static void phases_come_first(void **state)
{
    (void)state;
    builder *b = build_phased();
    BEGIN(STEP, 2000);
    BEGIN(LOAD, 2000);
    END(2100);
    BEGIN(MODULE, 2100);
    BEGIN(FORWARD, 2120);
    BEGIN(LOAD, 2130); /* inside another phase: part of it */
    END(2140);
    END(2320);
    END(2350);
    BEGIN(INNER, 2350);
    END(2400);
    END(2400);
    build_seal(b);
    tare__analysis *a = analyze(b);
    const tare__step_course *course = course_of(a);
    assert_true(course->phases);
    assert_int_equal(course->n_parts, 2);
    assert_string_equal(course->parts[0], "forward");
    assert_string_equal(course->parts[1], "data");
    NEAR(sum_of(course, 0), 100);
    NEAR(sum_of(course, 1), 50);
    NEAR(course->bins[0].total_ns, 200);
    done(b, a);
}

/* 400 ticks: 100 of forward, with 20 of a wait in it; 150 of waits, of which 50 in another span. */
static void waiting_step(builder *b, bool phases)
{
    BEGIN(STEP, 2000);
    BEGIN(phases ? FORWARD : INNER, 2000);
    BEGIN(SYNC, 2010);
    END(2030);
    END(2100);
    BEGIN(SYNC, 2100);
    END(2200);
    BEGIN(OTHER, 2200);
    BEGIN(SYNC, 2210);
    END(2260);
    END(2300);
    END(2400);
    build_seal(b);
}

/* The GPU works meanwhile on what the phases launched: such time is not outside the model. */
static void waits_for_a_gpu_stand_beside_phases(void **state)
{
    (void)state;
    builder *b = build_phased();
    waiting_step(b, true);
    tare__analysis *a = analyze(b);
    const tare__step_course *course = course_of(a);
    double waits = 0, all = 0;
    assert_true(course->phases);
    for (size_t i = 0; i < course->n_parts; i++) {
        bool sync = strncmp(course->parts[i], TARE__SYNC, strlen(TARE__SYNC)) == 0;
        assert_true(sync || strcmp(course->parts[i], "forward") == 0);
        waits += sync ? sum_of(course, i) : 0;
        all += sum_of(course, i);
    }
    NEAR(waits, 75);
    NEAR(all, 125);
    done(b, a);
}

static void waits_without_phases_are_parts_like_others(void **state)
{
    (void)state;
    builder *b = build_phased();
    waiting_step(b, false);
    tare__analysis *a = analyze(b);
    const tare__step_course *course = course_of(a);
    double all = 0;
    assert_false(course->phases);
    assert_int_equal(course->n_parts, 3);
    for (size_t i = 0; i < course->n_parts; i++)
        all += sum_of(course, i);
    NEAR(all, 150); /* those inside others are not counted twice */
    done(b, a);
}

static void steps_inside_steps_keep_theirs(void **state)
{
    (void)state;
    builder *b = build_single();
    build_name(b, LOAD, TARE_KIND_STEP, "micro");
    BEGIN(STEP, 2000);
    BEGIN(OTHER, 2000);
    END(2020);
    for (uint64_t i = 0; i < 2; i++) {
        BEGIN(LOAD, 2100 + 100 * i);
        BEGIN(INNER, 2100 + 100 * i);
        END(2150 + 100 * i);
        END(2160 + 100 * i);
    }
    END(2400);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_steps, 2);
    const tare__step_row *outer = strcmp(a->steps[0].name, "step") == 0 ? &a->steps[0] : &a->steps[1];
    const tare__step_row *inner = outer == a->steps ? &a->steps[1] : &a->steps[0];
    assert_int_equal(outer->course.n_parts, 2);
    assert_string_equal(outer->course.parts[0], "micro");
    NEAR(sum_of(&outer->course, 0), 60);
    NEAR(sum_of(&outer->course, 1), 10);
    assert_int_equal(inner->course.n_bins, 2);
    assert_int_equal(inner->course.n_parts, 1);
    NEAR(sum_of(&inner->course, 0), 50);
    done(b, a);
}

static void what_never_ended_stays_out(void **state)
{
    (void)state;
    builder *b = build_single();
    plain_step(b, 2000, 0);
    BEGIN(STEP, 3000);
    BEGIN(INNER, 3000);
    END(3500);
    build_seal(b);
    tare__analysis *a = analyze(b);
    const tare__step_course *course = course_of(a);
    assert_int_equal(a->steps[0].unfinished, 1);
    assert_int_equal(course->n_bins, 1);
    NEAR(sum_of(course, 0), 30);
    done(b, a);
}

static void very_many_parts_are_others(void **state)
{
    (void)state;
    enum { N = 60 };
    builder *b = build_single();
    for (uint32_t i = 0; i < N; i++) {
        char name[32];
        snprintf(name, sizeof name, "part %u", i);
        build_name(b, MANY + i, TARE_KIND_SPAN, name);
    }
    BEGIN(STEP, 2000);
    for (uint32_t i = 0; i < N; i++) {
        BEGIN(MANY + i, 2000 + 10 * i);
        END(2010 + 10 * i);
    }
    END(3000);
    build_seal(b);
    tare__analysis *a = analyze(b);
    const tare__step_course *course = course_of(a);
    double sum = 0;
    size_t unnamed = 0;
    assert_true(course->n_parts <= TARE__COURSE_PARTS);
    for (size_t i = 0; i < course->n_parts; i++) {
        sum += sum_of(course, i);
        unnamed += course->parts[i] == NULL;
    }
    NEAR(sum, 5.0 * N);
    assert_int_equal(unnamed, 1);
    done(b, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_a_bin_while_there_are_few),
        cmocka_unit_test(many_steps_share_bins),
        cmocka_unit_test(phases_come_first),
        cmocka_unit_test(waits_for_a_gpu_stand_beside_phases),
        cmocka_unit_test(waits_without_phases_are_parts_like_others),
        cmocka_unit_test(steps_inside_steps_keep_theirs),
        cmocka_unit_test(what_never_ended_stays_out),
        cmocka_unit_test(very_many_parts_are_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
