/* Tests of src/base/file.c: short counts, EINTR, the end of the file, errors as -errno.
 * Two threads in one test: the reader of a pipe and the interrupted writer.
 * Must not know other modules. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"

static int open_scratch(void)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    int fd = dup(fileno(file));
    fclose(file);
    assert_true(fd >= 0);
    return fd;
}

static void writes_and_reads_at_offsets(void **state)
{
    (void)state;
    int fd = open_scratch();
    assert_int_equal(tare__write_all(fd, "hello world", 11), 0);
    assert_int_equal(tare__pwrite_all(fd, "WORLD", 5, 6), 0);
    assert_int_equal(tare__pwrite_all(fd, "", 0, 1000), 0);
    char read[32] = {0};
    size_t got = 99;
    assert_int_equal(tare__pread_all(fd, read, 11, 0, &got), 0);
    assert_int_equal(got, 11);
    assert_string_equal(read, "hello WORLD");
    close(fd);
}

static void the_end_of_the_file_is_no_failure(void **state)
{
    (void)state;
    int fd = open_scratch();
    assert_int_equal(tare__write_all(fd, "0123456789", 10), 0);
    char read[32];
    size_t got = 99;
    assert_int_equal(tare__pread_all(fd, read, sizeof read, 4, &got), 0);
    assert_int_equal(got, 6);
    assert_memory_equal(read, "456789", 6);
    assert_int_equal(tare__pread_all(fd, read, sizeof read, 10, &got), 0);
    assert_int_equal(got, 0);
    close(fd);
}

static void works_beyond_four_gib(void **state)
{
    (void)state;
    int fd = open_scratch();
    uint64_t far = (UINT64_C(5) << 30) + 3; /* sparse */
    char read[4];
    size_t got = 0;
    assert_int_equal(tare__pwrite_all(fd, "far", 3, far), 0);
    assert_int_equal(tare__pread_all(fd, read, sizeof read, far, &got), 0);
    assert_int_equal(got, 3);
    assert_memory_equal(read, "far", 3);
    close(fd);
}

static void failures_are_negative_errno(void **state)
{
    (void)state;
    char read[4];
    size_t got = 99;
    assert_int_equal(tare__write_all(-1, "x", 1), -EBADF);
    assert_int_equal(tare__pwrite_all(-1, "x", 1, 0), -EBADF);
    assert_int_equal(tare__pread_all(-1, read, 4, 0, &got), -EBADF);
    assert_int_equal(got, 0);

    int fd = open_scratch();
    assert_int_equal(tare__pwrite_all(fd, "x", 1, UINT64_MAX - 1), -EINVAL);
    assert_int_equal(tare__pread_all(fd, read, 4, UINT64_MAX - 1, &got), -EINVAL);
    close(fd);

    int full = open("/dev/full", O_WRONLY);
    if (full >= 0)
        assert_int_equal(tare__write_all(full, "x", 1), -ENOSPC);
    close(full);
}

/* A pipe gives short counts, and a signal without SA_RESTART interrupts the blocked write. */
enum { PIPED_BYTES = 4 << 20 };
static atomic_int interruptions;
static int pipe_ends[2];
static pthread_t writer;

static void count_interruption(int number)
{
    (void)number;
    atomic_fetch_add(&interruptions, 1);
}

static void *drain_pipe(void *received)
{
    size_t got = 0;
    for (int seen = 0; seen < 3;) { /* the writer is stuck on the full pipe: interrupt it there */
        pthread_kill(writer, SIGUSR1);
        usleep(1000);
        seen = atomic_load(&interruptions);
    }
    while (got < PIPED_BYTES) {
        ssize_t some = read(pipe_ends[0], (char *)received + got, PIPED_BYTES - got);
        if (some <= 0)
            break;
        got += (size_t)some;
        pthread_kill(writer, SIGUSR1);
    }
    return (void *)got;
}

static void short_counts_and_signals_lose_nothing(void **state)
{
    (void)state;
    struct sigaction interrupt = {.sa_handler = count_interruption}, before;
    assert_int_equal(sigaction(SIGUSR1, &interrupt, &before), 0);
    assert_int_equal(pipe(pipe_ends), 0);
    unsigned char *sent = malloc(PIPED_BYTES), *received = malloc(PIPED_BYTES);
    assert_true(sent && received);
    for (size_t i = 0; i < PIPED_BYTES; i++)
        sent[i] = (unsigned char)(i * 2654435761u >> 13);

    writer = pthread_self();
    pthread_t reader;
    void *got;
    assert_int_equal(pthread_create(&reader, NULL, drain_pipe, received), 0);
    int result = tare__write_all(pipe_ends[1], sent, PIPED_BYTES);
    close(pipe_ends[1]);
    pthread_join(reader, &got);
    assert_int_equal(result, 0);
    assert_int_equal((size_t)got, PIPED_BYTES);
    assert_memory_equal(sent, received, PIPED_BYTES);

    close(pipe_ends[0]);
    sigaction(SIGUSR1, &before, NULL);
    free(sent);
    free(received);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_and_reads_at_offsets),
        cmocka_unit_test(the_end_of_the_file_is_no_failure),
        cmocka_unit_test(works_beyond_four_gib),
        cmocka_unit_test(failures_are_negative_errno),
        cmocka_unit_test(short_counts_and_signals_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
