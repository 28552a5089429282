/* Tests of the names of injected libraries: many threads put in and look up the same ones and others, and more than
 * there is room for. Threads of its own.
 * Must not know which library asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/inject.h"

#define THREADS 8u
#define SHARED  2000u /* names that all threads use … */
#define ROUNDS  3u
#define OWN     1600u /* … and of one alone: with 2,000 more than 12,000 together */
#define ROOM    12000u

static tare__inject_name *lookup(const char *text)
{
    return tare__inject_name_of(text, strlen(text));
}

#define READ(field) __atomic_load_n(&name->field, __ATOMIC_RELAXED) /* threads that meet write the same once more */

static bool is_whole(const tare__inject_name *name, const char *text)
{
    return strcmp(READ(as_operator.name), text) == 0 && READ(as_operator.name) == READ(as_span.name) &&
           READ(as_operator.kind) == TARE_KIND_OPERATOR && READ(as_span.kind) == TARE_KIND_SPAN &&
           READ(as_operator.every) == 1 && READ(as_span.every) == 1 && !READ(as_operator.file);
}

typedef struct user {
    unsigned number;
    unsigned wrong, refused;
    tare__inject_name *shared[SHARED];
} user;

static pthread_barrier_t start;

/* Each begins at another place, so that they meet at some names and are alone at others. */
static void use_shared(user *user)
{
    for (unsigned i = 0; i < SHARED; i++) {
        char text[32];
        unsigned which = (i + user->number / 2 * 17) % SHARED;
        snprintf(text, sizeof text, "aten::shared_%u", which);
        tare__inject_name *found = lookup(text);
        user->wrong += !is_whole(found, text) || (user->shared[which] && user->shared[which] != found);
        user->shared[which] = found;
    }
}

static void use_own(user *user)
{
    for (unsigned i = 0; i < OWN; i++) {
        char text[48];
        snprintf(text, sizeof text, "aten::of_thread_%u_%u", user->number, i);
        tare__inject_name *found = lookup(text);
        bool refused = strcmp(__atomic_load_n(&found->as_operator.name, __ATOMIC_RELAXED), "(more names)") == 0;
        user->refused += refused;
        user->wrong += !refused && !is_whole(found, text);
    }
}

static void *thread_main(void *context)
{
    user *user = context;
    pthread_barrier_wait(&start);
    for (unsigned round = 0; round < ROUNDS; round++)
        use_shared(user);
    use_own(user);
    use_shared(user);
    return NULL;
}

static void many_threads_and_more_names_than_there_is_room_for(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    user *users = calloc(THREADS, sizeof *users);
    unsigned refused = 0;
    assert_non_null(users);
    pthread_barrier_init(&start, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        users[i].number = i;
        assert_int_equal(pthread_create(&threads[i], NULL, thread_main, &users[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(users[i].wrong, 0);
        assert_memory_equal(users[i].shared, users[0].shared, sizeof users[i].shared);
        refused += users[i].refused;
    }
    /* Two that make the same text at one time count it twice for a moment: a few less may find room, and as many
     * more as there are threads. */
    unsigned taken = SHARED + THREADS * OWN - refused;
    assert_in_range(taken, ROOM - THREADS, ROOM + THREADS);
    pthread_barrier_destroy(&start);
    free(users);
}

static void those_that_are_in_are_found_and_others_are_not(void **state)
{
    (void)state;
    errno = 77;
    assert_true(is_whole(lookup("aten::shared_7"), "aten::shared_7"));
    assert_ptr_equal(lookup("aten::shared_7"), lookup("aten::shared_7"));
    const tare__inject_name *more = lookup("one too many");
    assert_string_equal(more->as_operator.name, "(more names)");
    assert_string_equal(more->as_span.name, "(more names)");
    assert_int_equal(more->as_operator.kind, TARE_KIND_OPERATOR);
    assert_ptr_equal(lookup("another one"), more);
    assert_ptr_not_equal(tare__inject_name_of("aten::shared_77", 14), lookup("aten::shared_77")); /* by its length */
    assert_ptr_equal(tare__inject_name_of("aten::shared_77", 14), lookup("aten::shared_7"));
    assert_int_equal(errno, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_and_more_names_than_there_is_room_for),
        cmocka_unit_test(those_that_are_in_are_found_and_others_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
