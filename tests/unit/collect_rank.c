/* Tests of src/collect/rank.c: what launchers tell of a rank in a process's environment.
 * One thread.
 * Must not know how processes are found. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "collect/collector.h"

#define RANK_IN(text) ((int)tare__rank_in(text, sizeof text)) /* with the last NUL */

static void launchers(void **state)
{
    (void)state;
    assert_int_equal(RANK_IN("PATH=/bin\0RANK=3\0WORLD_SIZE=8"), 3);
    assert_int_equal(RANK_IN("WORLD_SIZE=2\0LOCAL_RANK=1\0RANK=0"), 0);
    assert_int_equal(RANK_IN("OMPI_COMM_WORLD_SIZE=4\0OMPI_COMM_WORLD_RANK=2"), 2);
    assert_int_equal(RANK_IN("PMI_RANK=5\0PMI_SIZE=6"), 5);
    assert_int_equal(RANK_IN("SLURM_PROCID=1\0SLURM_NTASKS=2"), 1);
    assert_int_equal(RANK_IN("SLURM_PROCID=1\0SLURM_NTASKS=2\0RANK=7\0WORLD_SIZE=8"), 7); /* the inner one */
}

static void no_rank(void **state)
{
    (void)state;
    assert_int_equal(RANK_IN(""), -1);
    assert_int_equal(RANK_IN("RANK=3"), -1);
    assert_int_equal(RANK_IN("RANK=0\0WORLD_SIZE=1"), -1); /* alone */
    assert_int_equal(RANK_IN("RANK=-1\0WORLD_SIZE=2"), -1);
    assert_int_equal(RANK_IN("RANK=\0WORLD_SIZE=2"), -1);
    assert_int_equal(RANK_IN("RANK=1x\0WORLD_SIZE=2"), -1);
    assert_int_equal(RANK_IN("MY_RANK=1\0WORLD_SIZE=2"), -1);
    assert_int_equal((int)tare__rank_in("RANK=1", 4), -1); /* cut off */
    assert_int_equal((int)tare__rank_of(0), -1); /* no such process */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers),
        cmocka_unit_test(no_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
