/* Tests of src/analyze/findings/rules_disk.c, the rules on disks and networks, over tables made by hand: each fires
 * where it should, and keeps silent where it should not and where the figures are absent.
 * One thread. Must not know how tables are made from a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_world.h"

static double waiting(double t)
{
    return t < 2 ? 0 : 1;
}

static double running(double t)
{
    return t < 2 ? 1 : 0;
}

static void waiting_for_disks(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.disk_read_bytes = GB;
    w->of.usage.disk_write_bytes = MB;
    add_row(w, TARE__M_THREADS_RUNNING, TREE, 0, "", running);
    tare__metric_row *row = add_row(w, TARE__M_THREADS_DISK_WAIT, TREE, 0, "", waiting);
    evaluate(w);
    const tare__finding *finding = must_find(w, "disk-bound");
    assert_int_equal(finding->severity, TARE__CRITICAL);
    ABOUT(finding->gain, 0.8);
    ABOUT(finding->from_ns, 2 * SECOND);
    assert_non_null(strstr(finding->advice, "Read ahead"));
    w->of.usage.disk_write_bytes = 2 * GB;
    evaluate(w);
    assert_non_null(strstr(must_find(w, "disk-bound")->advice, "fsync"));
    for (size_t i = 30; i < WORLD_POINTS; i++) /* only a second of it */
        ((tare__metric_point *)row->points)[i].mean = 0;
    must_be_silent(w);
    world_free(w);
}

static void waiting_while_others_compute_is_no_loss(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_THREADS_RUNNING, TREE, 0, "", eight);
    add_row(w, TARE__M_THREADS_DISK_WAIT, TREE, 0, "", waiting);
    must_be_silent(w);
    world_free(w);
}

static void pressure_tells_where_ticks_do_not(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_PRESSURE_IO, CONTAINER, 0, "", half);
    must_be_silent(w); /* whose it is nobody knows */
    w->of.usage.disk_read_bytes = GB;
    w->of.usage.disk_write_bytes = 0;
    evaluate(w);
    ABOUT(must_find(w, "disk-bound")->gain, 0.5);
    world_free(w);
}

static void idle_for_disks(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_CPU_USER, SYSTEM, 0, "", half);
    add_row(w, TARE__M_CPU_IDLE, SYSTEM, 0, "", half);
    tare__metric_row *row = add_row(w, TARE__M_CPU_IOWAIT, SYSTEM, 0, "", half);
    evaluate(w);
    ABOUT(figure_of(must_find(w, "iowait"), "iowait"), 1 / 3.0);
    row->total = 1;
    must_be_silent(w);
    world_free(w);
}

static double nearly_one(double t)
{
    return 0.97 + t * 0;
}

static double ninety_megabytes(double t)
{
    return 90 * MB + t * 0;
}

static void a_disk_that_can_do_no_more(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.disk_read_bytes = 900 * MB;
    w->of.usage.disk_write_bytes = 0;
    add_row(w, TARE__M_DISK_READ, TARE__SUBJECT_DISK, 1, "nvme0n1", ninety_megabytes);
    add_row(w, TARE__M_DISK_WRITE, TARE__SUBJECT_DISK, 1, "nvme0n1", zero);
    add_row(w, TARE__M_DISK_BUSY, TARE__SUBJECT_DISK, 1, "nvme0n1", nearly_one);
    add_row(w, TARE__M_DISK_QUEUE, TARE__SUBJECT_DISK, 1, "nvme0n1", eight);
    evaluate(w);
    const tare__finding *finding = must_find(w, "disk-busy");
    assert_int_equal(finding->severity, TARE__WARNING);
    assert_non_null(strstr(finding->title, "nvme0n1"));
    ABOUT(figure_of(finding, "queue"), 8);
    w->of.usage.disk_read_bytes = 0; /* not our doing */
    evaluate(w);
    assert_int_equal(must_find(w, "disk-busy")->severity, TARE__INFO);
    assert_non_null(strstr(must_find(w, "disk-busy")->title, "other processes"));
    world_free(w);
    w = world_new();
    add_row(w, TARE__M_DISK_BUSY, TARE__SUBJECT_DISK, 1, "nvme0n1", half);
    must_be_silent(w);
    world_free(w);
}

static void lost_packets(void **state)
{
    (void)state;
    world *w = world_new();
    tare__metric_row *row = add_row(w, TARE__M_NET_ERRORS, TARE__SUBJECT_NETWORK, 0, "eth0", ninety_megabytes);
    row->total = 400;
    row->mean = 40;
    evaluate(w);
    assert_non_null(strstr(must_find(w, "network-errors")->title, "eth0"));
    row->total = 3;
    row->mean = 0.3;
    must_be_silent(w);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_for_disks),
        cmocka_unit_test(waiting_while_others_compute_is_no_loss),
        cmocka_unit_test(pressure_tells_where_ticks_do_not),
        cmocka_unit_test(idle_for_disks),
        cmocka_unit_test(a_disk_that_can_do_no_more),
        cmocka_unit_test(lost_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
