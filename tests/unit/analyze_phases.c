/* Tests of src/analyze/tables/phases.c: startup, steady state and shutdown by steps, spans and imports, and that
 * rules read steady state only. One thread.
 * Must not know how rows are shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

#define SECOND UINT64_C(2000000000) /* ticks */
#define AT(seconds) (BUILD_START + (uint64_t)((seconds) * (double)SECOND))
#define MB INT64_C(1000000)

static builder *build_importing(const char *imports)
{
    builder *b = build_start();
    build_process_fields(b, 1, 77);
    if (imports)
        build_string(b, TARE__FIELD_IMPORTS, imports);
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_stream(b, 1, 1, 77, "main");
    return b;
}

static double seconds_of(const tare__phase *phase)
{
    return (phase->to_ns - phase->from_ns) / 1e9;
}

/* Steps back to back, the first of which takes longer. */
static void build_steps(builder *b, double from, int n, double first, double each)
{
    for (int i = 0; i < n; i++) {
        BEGIN(STEP, AT(from));
        from += i ? each : first;
        END(AT(from));
    }
}

static const tare__finding *finding_of(const tare__analysis *a, const char *id)
{
    for (size_t i = 0; i < a->n_findings; i++)
        if (strcmp(a->findings[i].id, id) == 0)
            return &a->findings[i];
    return NULL;
}

/* ---- bounds ---- */
static void steps_tell_phases(void **state)
{
    (void)state;
    builder *b = build_importing("python 100000\nimport 200000 1700000 torch\ninside 300000 400000 numpy\n");
    build_steps(b, 2, 10, 1, 0.5); /* 2 to 3, then to 7.5 */
    build_seal(b);
    build_end(b, AT(8));
    tare__analysis *a = analyze(b);
    const tare__phase_table *p = &a->phases;
    NEAR(p->startup.from_ns, 0);
    NEAR(p->startup.to_ns, 3e9);
    NEAR(p->steady.from_ns, 3e9);
    NEAR(p->steady.to_ns, 7.5e9);
    NEAR(p->shutdown.from_ns, 7.5e9);
    NEAR(p->shutdown.to_ns, 8e9);
    assert_int_equal(p->warm_up_steps, 1);
    NEAR(p->interpreter_ns, 0.1e9);
    NEAR(p->imports_ns, 1.5e9);
    NEAR(p->preparation_ns, 0.4e9);
    NEAR(p->warm_up_ns, 1e9);
    NEAR(p->interpreter_ns + p->imports_ns + p->preparation_ns + p->warm_up_ns, 3e9);
    assert_true(p->imports_known);
    assert_int_equal(p->n_imports, 2);
    assert_string_equal(p->imports[0].module, "torch");
    NEAR(p->imports[0].total_ns, 1.5e9);
    assert_string_equal(p->imports[1].module, "numpy");
    NEAR(p->imports[1].total_ns, 0);
    assert_null(finding_of(a, "startup")); /* under half of the run */
    done(b, a);
}

/* Four steps tell no warm-up; a first one that is as long as the others is steady. */
static void steps_without_warm_up(void **state)
{
    (void)state;
    static const struct {
        int n;
        double first;
    } cases[] = {{4, 3}, {10, 0.6}};
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        builder *b = build_importing(NULL);
        build_steps(b, 2, cases[i].n, cases[i].first, 0.5);
        build_seal(b);
        build_end(b, AT(10));
        tare__analysis *a = analyze(b);
        NEAR(a->phases.startup.to_ns, 2e9);
        assert_int_equal(a->phases.warm_up_steps, 0);
        assert_true(isnan(a->phases.imports_ns) && !a->phases.imports_known);
        NEAR(a->phases.preparation_ns, 2e9);
        done(b, a);
    }
}

static void imports_tell_phases(void **state)
{
    (void)state;
    /* The last one begins long after the others: it is not part of startup. */
    builder *b = build_importing("python 50000\nimport 100000 2000000 torch\nimport 2300000 3000000 pandas.core\n"
                                 "import 6000000 6500000 matplotlib\nexit 9000000\n");
    build_end(b, AT(10));
    tare__analysis *a = analyze(b);
    NEAR(a->phases.startup.to_ns, 3e9);
    NEAR(seconds_of(&a->phases.steady), 6);
    NEAR(seconds_of(&a->phases.shutdown), 1);
    NEAR(a->phases.imports_ns, 2.6e9);
    assert_string_equal(a->phases.imports[1].module, "pandas");
    assert_int_equal(a->phases.n_imports, 3);
    done(b, a);
}

/* Where the first program does not tell of its end, that of another one says nothing. */
static void an_end_that_is_not_told(void **state)
{
    (void)state;
    builder *b = build_importing("python 50000\nimport 100000 2000000 numpy\n");
    build_process_fields(b, 2, 78);
    build_string(b, TARE__FIELD_IMPORTS, "python 4000000\nexit 5000000\n");
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_end(b, AT(10));
    tare__analysis *a = analyze(b);
    NEAR(a->phases.steady.to_ns, 10e9);
    assert_true(isnan(a->phases.shutdown.from_ns));
    assert_non_null(strstr(a->phases.shutdown.how, "unknown"));
    done(b, a);
}

static void spans_tell_phases_where_they_cover_the_run(void **state)
{
    (void)state;
    for (int covers = 0; covers < 2; covers++) {
        builder *b = build_single();
        BEGIN(OUTER, AT(2));
        END(AT(covers ? 9 : 3));
        build_seal(b);
        build_end(b, AT(10));
        tare__analysis *a = analyze(b);
        NEAR(a->phases.steady.from_ns, covers ? 2e9 : 0);
        NEAR(a->phases.steady.to_ns, covers ? 9e9 : 10e9);
        assert_true(isnan(a->phases.startup.to_ns) == !covers);
        done(b, a);
    }
}

static void lines_that_make_no_sense(void **state)
{
    (void)state;
    builder *b =
        build_importing("import\nimport x y z\nimport 5 1 early\npython\n\nimport 1 99999999999999999999 a b\n");
    build_end(b, AT(10));
    tare__analysis *a = analyze(b);
    assert_true(!a->phases.imports_known);
    NEAR(a->phases.steady.from_ns, 0);
    assert_non_null(a->phases.steady.how);
    done(b, a);
}

/* ---- what rules read ---- */
/* Memory that grows by 50 MB a second between two instants. */
static void build_growth(builder *b, double from, double to)
{
    build_series(b, 1, TARE__M_RSS_ANON, TARE__SUBJECT_TREE, 0, "");
    for (int i = 0; i <= 100; i++) {
        double at = i / 10.0, grown = at < from ? 0 : at > to ? to - from : at - from;
        build_tick(b, AT(at));
        build_sample(b, 1, 100 * MB + (int64_t)(grown * 50e6));
    }
    build_samples_seal(b);
}

static void memory_that_grows_in_startup_is_no_growth(void **state)
{
    (void)state;
    static const struct {
        double from, to;
        bool found;
    } cases[] = {{0, 9, true}, {0, 4, false}, {4, 9.9, true}};
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        builder *b = build_importing("python 50000\nimport 100000 4000000 torch\n");
        build_growth(b, cases[i].from, cases[i].to);
        build_end(b, AT(10));
        tare__analysis *a = analyze(b);
        const tare__finding *growth = finding_of(a, "memory-growth");
        assert_true((growth != NULL) == cases[i].found);
        if (growth)
            assert_true(growth->from_ns >= 4e9);
        done(b, a);
    }
    builder *b = build_importing("python 50000\nimport 100000 8500000 torch\n"); /* all of it is startup */
    build_growth(b, 0, 9);
    build_end(b, AT(10));
    tare__analysis *a = analyze(b);
    assert_null(finding_of(a, "memory-growth"));
    const tare__finding *startup = finding_of(a, "startup");
    assert_non_null(startup);
    assert_non_null(strstr(startup->title, "85.0 %"));
    assert_non_null(strstr(startup->title, "imports"));
    assert_non_null(strstr(startup->evidence, "Importing torch took 8.40 s"));
    assert_true(isnan(startup->gain));
    done(b, a);
}

/* An operation of startup is none of steady state, and shares are of steady state. */
static void operations_are_of_steady_state(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(OUTER, AT(0));
    END(AT(6)); /* startup: no step */
    for (int i = 0; i < 8; i++) {
        BEGIN(STEP, AT(6 + 0.5 * i));
        BEGIN(INNER, AT(6 + 0.5 * i));
        END(AT(6 + 0.5 * i + 0.4));
        END(AT(6 + 0.5 * i + 0.5));
    }
    build_seal(b);
    build_end(b, AT(10));
    tare__analysis *a = analyze(b);
    NEAR(a->phases.steady.from_ns, 6e9);
    const tare__finding *operation = finding_of(a, "operation");
    assert_non_null(operation);
    assert_non_null(strstr(operation->title, "inner accounts for 80.0 %"));
    NEAR(operation->gain, 0.8);
    NEAR(span_at(a, "outer")->total_ns, 6e9); /* the tables that are shown are of the whole run */
    done(b, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_tell_phases),
        cmocka_unit_test(steps_without_warm_up),
        cmocka_unit_test(imports_tell_phases),
        cmocka_unit_test(an_end_that_is_not_told),
        cmocka_unit_test(spans_tell_phases_where_they_cover_the_run),
        cmocka_unit_test(lines_that_make_no_sense),
        cmocka_unit_test(memory_that_grows_in_startup_is_no_growth),
        cmocka_unit_test(operations_are_of_steady_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
