/* Tests of src/analyze/findings/rules_gpu.c, the rules on GPUs, over tables made by hand: each fires where
 * it should, and keeps silent where it should not and where the figures are absent.
 * One thread. Must not know how tables are made from a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_world.h"

static double gpu_at_work(double t)
{
    return t - floor(t) < 0.5 || t < 1 ? 0.95 : 0.05;
}

static double gpu_with_gaps(double t)
{
    return t >= 3 && t < 6 ? 0 : 0.97;
}

static double gigabytes_80(double t)
{
    return 80 * GB + t * 0;
}

static void a_gpu_that_waits(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_GPU_BUSY, GPU, 0, "H200", gpu_at_work);
    must_be_silent(w); /* somebody's, not ours */
    use_gpu(w);
    evaluate(w);
    const tare__finding *finding = must_find(w, "gpu-underused");
    ABOUT(finding->gain, 1 - figure_of(finding, "busy"));
    assert_true(figure_of(finding, "busy") < 0.7);
    world_free(w);
    w = world_new();
    add_row(w, TARE__M_GPU_BUSY, GPU, 0, "H200", gpu_full);
    use_gpu(w);
    must_be_silent(w);
    world_free(w);
}

static void gaps_of_a_gpu(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_GPU_BUSY, GPU, 0, "H200", gpu_with_gaps);
    must_be_silent(w);
    use_gpu(w);
    evaluate(w);
    const tare__finding *finding = must_find(w, "gpu-idle-gaps");
    assert_int_equal(figure_of(finding, "gaps"), 1);
    ABOUT(finding->from_ns, 3 * SECOND);
    ABOUT(finding->to_ns, 6 * SECOND);
    ABOUT(finding->gain, 0.3);
    assert_true(finding < must_find(w, "gpu-underused"));
    world_free(w);
}

static void a_gpu_nearly_full(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_MEMORY_TOTAL, GPU, 0, "H200", gigabytes_80);
    tare__metric_row *used = add_row(w, TARE__M_MEMORY_USED, GPU, 0, "H200", gigabytes_8);
    use_gpu(w);
    must_be_silent(w);
    used->max = 75 * GB;
    evaluate(w);
    ABOUT(figure_of(must_find(w, "gpu-memory-high"), "share"), 75 / 80.0);
    world_free(w);
}

static double thermal_bit(double t)
{
    return t < 8 ? 0 : 0x40;
}

static double power_bit(double t)
{
    return 4 + t * 0; /* capped by power: as it should be */
}

static void a_hot_gpu(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_GPU_THROTTLE, GPU, 0, "H200", thermal_bit);
    use_gpu(w);
    evaluate(w);
    ABOUT(figure_of(must_find(w, "gpu-hot"), "share"), 0.2);
    assert_true(isnan(must_find(w, "gpu-hot")->gain));
    world_free(w);
    w = world_new();
    add_row(w, TARE__M_GPU_THROTTLE, GPU, 0, "H200", power_bit);
    use_gpu(w);
    must_be_silent(w);
    world_free(w);
}

static void a_broken_gpu(void **state)
{
    (void)state;
    world *w = world_new();
    tare__metric_row *errors = add_row(w, TARE__M_GPU_ECC, GPU, 0, "H200", zero);
    use_gpu(w);
    must_be_silent(w);
    errors->total = 2;
    evaluate(w);
    assert_int_equal(must_find(w, "gpu-memory-errors")->severity, TARE__CRITICAL);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_that_waits),
        cmocka_unit_test(gaps_of_a_gpu),
        cmocka_unit_test(a_gpu_nearly_full),
        cmocka_unit_test(a_hot_gpu),
        cmocka_unit_test(a_broken_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
