/* Tests of the rotation in src/format/writer.c: which kinds of blocks are dropped with age and size, which are kept.
 * One thread.
 * Must not know what is in the blocks. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/format.h"
#include "tare.h"

#define KINDS 16u

typedef struct rig {
    char folder[64], path[96];
    tare__writer writer;
} rig;

static int setup(void **state)
{
    rig *rig = calloc(1, sizeof *rig);
    snprintf(rig->folder, sizeof rig->folder, "%.40s/tare-writer-XXXXXX", tare__temporary_folder());
    if (!mkdtemp(rig->folder))
        return -1;
    snprintf(rig->path, sizeof rig->path, "%s/a.tare", rig->folder);
    rig->writer.rotates = true;
    *state = rig;
    return tare__writer_create(&rig->writer, rig->path, false, false, NULL);
}

static int teardown(void **state)
{
    rig *rig = *state;
    tare__writer_close(&rig->writer);
    unlink(rig->path);
    int status = rmdir(rig->folder); /* nothing else was left there */
    free(rig);
    return status;
}

static void append(rig *rig, uint16_t kind, uint64_t ticks, size_t bytes)
{
    tare__text block = {0};
    tare__block_header header = {.kind = kind, .count = 1, .first_ticks = ticks, .last_ticks = ticks};
    char *payload = calloc(1, bytes + 1);
    size_t at = tare__block_begin(&block);
    tare__text_append(&block, payload, bytes);
    assert_int_equal(tare__block_end(&block, at, &header, 0), 0);
    assert_int_equal(tare__writer_append(&rig->writer, &block), 0);
    tare__text_free(&block);
    free(payload);
}

/* How many blocks of each kind the file has, and the time of the oldest. */
static void count(const rig *rig, unsigned counts[KINDS], uint64_t oldest[KINDS])
{
    tare__block_header header;
    size_t got;
    memset(counts, 0, KINDS * sizeof *counts);
    for (uint64_t at = sizeof(tare__file_header);; at += sizeof header + header.payload_bytes) {
        assert_int_equal(tare__pread_all(rig->writer.fd, &header, sizeof header, at, &got), 0);
        if (got == 0)
            break;
        assert_int_equal(got, sizeof header);
        assert_null(tare__block_header_check(&header));
        assert_true(header.kind < KINDS);
        if (counts[header.kind]++ == 0)
            oldest[header.kind] = header.first_ticks;
    }
}

static void old_samples_go_and_tables_stay(void **state)
{
    rig *rig = *state;
    unsigned counts[KINDS];
    uint64_t oldest[KINDS];
    for (uint64_t ticks = 1; ticks <= 10; ticks++) {
        append(rig, TARE__BLOCK_STACKS, 0, 10);
        append(rig, TARE__BLOCK_STACK_SAMPLES, ticks * 100, 10);
        append(rig, TARE__BLOCK_SAMPLES, ticks * 100, 10);
        append(rig, TARE__BLOCK_FACTS, ticks * 100, 10);
    }
    assert_int_equal(tare__writer_compact(&rig->writer, 701, 0), 0);
    count(rig, counts, oldest);
    assert_int_equal(counts[TARE__BLOCK_STACKS], 10);
    assert_int_equal(counts[TARE__BLOCK_FACTS], 10);
    assert_int_equal(counts[TARE__BLOCK_STACK_SAMPLES], 3);
    assert_int_equal(counts[TARE__BLOCK_SAMPLES], 3);
    assert_int_equal(oldest[TARE__BLOCK_STACK_SAMPLES], 800);
    assert_int_equal(rig->writer.rotated_before, 700);
}

static void a_limit_of_the_size_drops_the_oldest_samples(void **state)
{
    rig *rig = *state;
    unsigned counts[KINDS];
    uint64_t oldest[KINDS];
    rig->writer.max_bytes = 60000;
    for (uint64_t ticks = 1; ticks <= 200; ticks++) {
        append(rig, TARE__BLOCK_STACKS, 0, 6);
        append(rig, TARE__BLOCK_STACK_SAMPLES, ticks, 936);
        assert_true(rig->writer.bytes <= rig->writer.max_bytes);
    }
    count(rig, counts, oldest);
    assert_int_equal(counts[TARE__BLOCK_STACKS], 200);
    assert_true(counts[TARE__BLOCK_STACK_SAMPLES] >= 10 && counts[TARE__BLOCK_STACK_SAMPLES] < 60);
    assert_int_equal(oldest[TARE__BLOCK_STACK_SAMPLES], 201 - counts[TARE__BLOCK_STACK_SAMPLES]);
}

static ino_t inode(const rig *rig)
{
    struct stat about;
    assert_int_equal(fstat(rig->writer.fd, &about), 0);
    return about.st_ino;
}

/* Tables that are larger than the limit: the file cannot stay below it, but is not copied for every block. */
static void large_tables_leave_less_space_for_samples(void **state)
{
    rig *rig = *state;
    unsigned counts[KINDS], copies = 0;
    uint64_t oldest[KINDS], max = rig->writer.max_bytes = 64000;
    append(rig, TARE__BLOCK_STACKS, 0, max / 4);
    for (uint64_t ticks = 1; ticks <= 200; ticks++) {
        append(rig, TARE__BLOCK_STACK_SAMPLES, ticks, 436);
        assert_true(rig->writer.bytes <= max / 3 * 2);
    }
    append(rig, TARE__BLOCK_STACKS, 0, max);
    for (uint64_t ticks = 201; ticks <= 400; ticks++) {
        ino_t before = inode(rig);
        append(rig, TARE__BLOCK_STACK_SAMPLES, ticks, 436);
        assert_true(rig->writer.bytes <= max / 4 + max + max / 8 + 1000);
        copies += inode(rig) != before;
    }
    count(rig, counts, oldest);
    assert_int_equal(counts[TARE__BLOCK_STACKS], 2);
    assert_true(counts[TARE__BLOCK_STACK_SAMPLES] >= max / 16 / 500 - 1);
    assert_int_equal(oldest[TARE__BLOCK_STACK_SAMPLES], 401 - counts[TARE__BLOCK_STACK_SAMPLES]);
    assert_true(copies > 5 && copies < 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(old_samples_go_and_tables_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(a_limit_of_the_size_drops_the_oldest_samples, setup, teardown),
        cmocka_unit_test_setup_teardown(large_tables_leave_less_space_for_samples, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
