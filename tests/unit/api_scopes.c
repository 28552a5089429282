/* Tests of include/tare.h as C: what each macro calls, and that scopes end however they are left.
 * One process, one thread, a recorder that only writes calls down.
 * Must not know how anything is recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_fake.h"

static int leave_by_return(int early)
{
    TARE_SPAN("outer");
    TARE_SPAN("inner");
    if (early)
        return 1;
    TARE_MARK("late");
    return 0;
}

static void return_ends_inner_first(void **state)
{
    (void)state;
    fake_reset(1);
    assert_int_equal(leave_by_return(1), 1);
    assert_string_equal(fake_log, "begin outer|begin inner|end inner|end outer|");
    fake_reset(1);
    assert_int_equal(leave_by_return(0), 0);
    assert_string_equal(fake_log, "begin outer|begin inner|mark late|end inner|end outer|");
}

static void break_and_continue_end_a_scope(void **state)
{
    (void)state;
    fake_reset(1);
    for (int i = 0; i < 9; i++) {
        TARE_SPAN("turn");
        if (i == 0)
            continue;
        TARE_MARK("after");
        if (i == 1)
            break;
    }
    TARE_MARK("done");
    assert_string_equal(fake_log, "begin turn|end turn|begin turn|mark after|end turn|mark done|");
}

static void goto_ends_what_it_leaves(void **state)
{
    (void)state;
    int again = 1;
    fake_reset(1);
back:
    {
        TARE_STEP(again + 1);
        {
            TARE_SPAN_NAME("named");
            if (again--)
                goto back;
            goto out;
        }
    }
out:
    assert_string_equal(fake_log, "step - 2|begin named|end -|step end -|"
                                  "step - 1|begin named|end -|step end -|");
}

static void switch_cases_are_scopes(void **state)
{
    (void)state;
    fake_reset(1);
    for (int i = 0; i < 2; i++) {
        switch (i) {
        case 0: {
            TARE_SPAN("zero");
            break;
        }
        default: {
            TARE_SPAN("other");
        }
        }
    }
    assert_string_equal(fake_log, "begin zero|end zero|begin other|end other|");
}

static void every_scope_has_its_end(void **state)
{
    (void)state;
    fake_reset(1);
    {
        TARE_EPOCH(3);
        TARE_STEP(4);
        TARE_AGGREGATE("hot");
        TARE_SAMPLED("hotter", 16);
        TARE_SPAN("a"); TARE_SPAN("b"); /* two on a line */
    }
    assert_string_equal(fake_log, "epoch - 3|step - 4|sampled begin hotter 16|begin a|begin b|"
                                  "end b|end a|sampled end hotter 7|aggregate hot|step end -|epoch end -|");
}

static void recursion_shares_a_site(int depth)
{
    TARE_SPAN("r");
    if (depth > 1)
        recursion_shares_a_site(depth - 1);
}

static void recursive_scopes_nest(void **state)
{
    (void)state;
    fake_reset(1);
    recursion_shares_a_site(3);
    assert_string_equal(fake_log, "begin r|begin r|begin r|end r|end r|end r|");
}

static void chained_phases(void **state)
{
    (void)state;
    fake_reset(1);
    TARE_BEGIN("load");
    TARE_NEXT("forward");
    tare_next_name("backward");
    TARE_END();
    tare_begin_name("x");
    tare_end(NULL);
    assert_string_equal(fake_log, "begin load|next forward|next backward|end -|begin x|end -|");
}

static void statements_stand_in_bare_ifs(void **state)
{
    (void)state;
    fake_reset(1);
    for (int i = 1; i <= 2; i++)
        if (i == 1)
            TARE_BEGIN("one");
        else
            TARE_END();
    for (int i = 1; i <= 2; i++)
        if (i == 1)
            TARE_COUNTER("c", i);
        else
            TARE_NUMBER("n", i);
    assert_string_equal(fake_log, "begin one|end -|counter c 1|number n 2|");
}

static void values_and_names(void **state)
{
    (void)state;
    fake_reset(1);
    TARE_SAMPLES(32);
    TARE_TOKENS(33);
    TARE_BYTES(34u);
    TARE_FLOPS(1.5);
    tare_mark_name("m");
    tare_counter_name("c", 2);
    tare_complete_span span = {.start = 10, .end = 15};
    static tare_site site = TARE_SITE("whole");
    tare_complete(&site, &span);
    tare_complete_name("named", &span);
    tare_step_next(8);
    tare_epoch_next(9);
    assert_string_equal(fake_log, "number samples 32|number tokens 33|number bytes 34|number flops 1.5|"
                                  "mark m|counter c 2|complete whole 5|complete named 5|"
                                  "step next - 8|epoch next - 9|");
}

static void the_slow_gate_takes_the_slow_calls(void **state)
{
    (void)state;
    fake_reset(2);
    {
        TARE_SPAN("s");
        TARE_BEGIN("b");
        TARE_NEXT("n");
        TARE_END();
        TARE_AGGREGATE("a");
    }
    assert_string_equal(fake_log, "slow begin s|slow begin b|slow next n|slow end -|aggregate a|slow end s|");
}

static void a_closed_gate_calls_nothing(void **state)
{
    (void)state;
    fake_reset(0);
    tare_complete_span span = {.start = 10, .end = 15};
    static tare_site site = TARE_SITE("whole");
    {
        TARE_EPOCH(1);
        TARE_STEP(2);
        TARE_SPAN("a");
        TARE_SPAN_NAME("b");
        TARE_AGGREGATE("c");
        TARE_SAMPLED("d", 2);
        TARE_BEGIN("e");
        TARE_NEXT("f");
        TARE_END();
        TARE_MARK("g");
        TARE_COUNTER("h", 1);
        TARE_SAMPLES(1);
        tare_begin_name("i");
        tare_next_name("j");
        tare_mark_name("k");
        tare_counter_name("l", 1);
        tare_complete(&site, &span);
        tare_complete_name("m", &span);
        tare_begin(&site);
        tare_next(&site);
        tare_end(&site);
        tare_mark(&site);
        tare_counter(&site, 1);
        tare_number(&site, 1);
        assert_int_equal(tare_aggregate_begin(), 0);
        assert_int_equal(tare_sampled_begin(&site), 0);
    }
    assert_string_equal(fake_log, "");
}

/* A session may come and go while a scope is open: what was begun is ended, what was not is not. */
static void a_gate_that_moves_inside_a_scope(void **state)
{
    (void)state;
    fake_reset(0);
    {
        TARE_STEP(1);
        TARE_SPAN("unseen");
        TARE_AGGREGATE("unseen too");
        TARE_SAMPLED("nor this", 4);
        fake_gate = 1;
    }
    assert_string_equal(fake_log, "");
    fake_reset(1);
    {
        TARE_SPAN("seen");
        fake_gate = 0;
    }
    assert_string_equal(fake_log, "begin seen|end seen|");
    fake_reset(2); /* begun the slow way, it ends that way: the clock may be another */
    {
        TARE_SPAN("seen");
        fake_gate = 1;
    }
    assert_string_equal(fake_log, "slow begin seen|slow end seen|");
    fake_reset(1);
    {
        TARE_STEP(5);
        TARE_AGGREGATE("timed");
        fake_gate = 0;
    }
    assert_string_equal(fake_log, "step - 5|aggregate timed|step end -|");
}

static void an_untimed_sample_has_no_end(void **state)
{
    (void)state;
    fake_reset(1);
    fake_start = 0;
    {
        TARE_SAMPLED("s", 8);
    }
    assert_string_equal(fake_log, "sampled begin s 8|");
}

static void arguments_are_evaluated_once(void **state)
{
    (void)state;
    for (int gate = 0; gate <= 2; gate++) {
        int n = 0;
        fake_reset(gate);
        {
            TARE_STEP(n++);
            TARE_EPOCH(n++);
            TARE_SPAN_NAME((n++, "name"));
            TARE_COUNTER("c", n++);
            TARE_NUMBER("n", n++);
            TARE_SAMPLES(n++);
            TARE_TOKENS(n++);
            TARE_BYTES(n++);
            TARE_FLOPS(n++);
        }
        assert_int_equal(n, 9);
    }
}

static void a_site_says_where_it_stands(void **state)
{
    (void)state;
    static tare_site site = TARE_SITE("here"); int line = __LINE__;
    static tare_site sampled = TARE_SITE_OF("often", TARE_KIND_AGGREGATE, 65535);
    assert_int_equal(site.line, line);
    assert_string_equal(site.file, __FILE__);
    assert_int_equal(site.kind, TARE_KIND_SPAN);
    assert_int_equal(site.every, 1);
    assert_int_equal(sampled.every, 65535);
    assert_true(site.word == 0 && site.slot == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(return_ends_inner_first),
        cmocka_unit_test(break_and_continue_end_a_scope),
        cmocka_unit_test(goto_ends_what_it_leaves),
        cmocka_unit_test(switch_cases_are_scopes),
        cmocka_unit_test(every_scope_has_its_end),
        cmocka_unit_test(recursive_scopes_nest),
        cmocka_unit_test(chained_phases),
        cmocka_unit_test(statements_stand_in_bare_ifs),
        cmocka_unit_test(values_and_names),
        cmocka_unit_test(the_slow_gate_takes_the_slow_calls),
        cmocka_unit_test(a_closed_gate_calls_nothing),
        cmocka_unit_test(a_gate_that_moves_inside_a_scope),
        cmocka_unit_test(an_untimed_sample_has_no_end),
        cmocka_unit_test(arguments_are_evaluated_once),
        cmocka_unit_test(a_site_says_where_it_stands),
    };
    return cmocka_run_group_tests_name("api_scopes", tests, NULL, NULL);
}
