/* Tests of include/tare.h as C++17: scopes left by exceptions, in templates, lambdas, inline functions.
 * One process, one thread, a recorder that only writes calls down; some calls to the library itself.
 * Must not know how anything is recorded. */
#include <cerrno>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#include "api_fake.h"

namespace {

void throw_from(int depth)
{
    TARE_SPAN("level");
    if (depth == 1)
        throw std::runtime_error("on purpose");
    throw_from(depth - 1);
}

void an_exception_ends_what_it_leaves(void **)
{
    fake_reset(1);
    bool caught = false;
    try {
        TARE_EPOCH(1);
        TARE_STEP(2);
        TARE_AGGREGATE("hot");
        TARE_SAMPLED("hotter", 16);
        TARE_SPAN_NAME(std::string("made").c_str());
        throw_from(2);
    } catch (const std::runtime_error &) {
        caught = true;
        TARE_MARK("caught");
    }
    assert_true(caught);
    assert_string_equal(fake_log, "epoch - 1|step - 2|sampled begin hotter 16|begin made|begin level|"
                                  "begin level|end level|end level|end -|sampled end hotter 7|"
                                  "aggregate hot|step end -|epoch end -|mark caught|");
}

void an_exception_with_no_session(void **)
{
    fake_reset(0);
    bool caught = false;
    try {
        TARE_STEP(1);
        throw_from(3);
    } catch (const std::runtime_error &) {
        caught = true;
    }
    assert_true(caught);
    assert_string_equal(fake_log, "");
}

struct object {
    object()
    {
        TARE_SPAN("constructor");
    }
    ~object()
    {
        TARE_SPAN("destructor");
    }
    object(const object &) = delete;
    object &operator=(const object &) = delete;
};

void scopes_and_destructors_unwind_in_order(void **)
{
    fake_reset(1);
    {
        TARE_SPAN("outer");
        object one;
        TARE_SPAN("inner");
    }
    assert_string_equal(fake_log, "begin outer|begin constructor|end constructor|begin inner|end inner|"
                                  "begin destructor|end destructor|end outer|");
}

template <typename T> T twice(T value)
{
    TARE_SPAN("twice");
    TARE_COUNTER("value", value);
    return value + value;
}

void templates_have_sites_of_their_own(void **)
{
    fake_reset(1);
    assert_int_equal(twice(2), 4);
    assert_true(twice(1.5) == 3.0);
    assert_string_equal(fake_log, "begin twice|counter value 2|end twice|"
                                  "begin twice|counter value 1.5|end twice|");
}

inline int inlined(int early)
{
    TARE_SPAN("inlined");
    if (early)
        return 1;
    TARE_MARK("late");
    return 0;
}

void inline_functions_and_lambdas(void **)
{
    fake_reset(1);
    assert_int_equal(inlined(1), 1);
    auto lambda = [](int n) {
        TARE_SPAN("lambda");
        return n + 1;
    };
    assert_int_equal(lambda(1), 2);
    for (int n : std::vector<int>{1, 2, 3}) {
        TARE_SPAN("turn");
        if (n == 2)
            break;
    }
    assert_string_equal(fake_log, "begin inlined|end inlined|begin lambda|end lambda|"
                                  "begin turn|end turn|begin turn|end turn|");
}

void statements(void **)
{
    fake_reset(1);
    static tare_site site = TARE_SITE("whole");
    tare_complete_span span = {};
    span.start = 10;
    span.end = 15;
    TARE_BEGIN("load");
    TARE_NEXT("forward");
    TARE_END();
    TARE_SAMPLES(std::size_t{32});
    TARE_TOKENS(33L);
    TARE_BYTES(34u);
    TARE_FLOPS(1.5f);
    tare_begin_name("x");
    tare_next_name("y");
    tare_end(nullptr);
    tare_mark_name("m");
    tare_counter_name("c", 2);
    tare_complete(&site, &span);
    tare_complete_name("named", &span);
    assert_string_equal(fake_log, "begin load|next forward|end -|number samples 32|number tokens 33|"
                                  "number bytes 34|number flops 1.5|begin x|next y|end -|mark m|counter c 2|"
                                  "complete whole 5|complete named 5|");
}

void a_closed_gate_calls_nothing(void **)
{
    fake_reset(0);
    int n = 0;
    {
        TARE_EPOCH(n++);
        TARE_STEP(n++);
        TARE_SPAN("a");
        TARE_SPAN_NAME((n++, "b"));
        TARE_AGGREGATE("c");
        TARE_SAMPLED("d", 2);
        TARE_COUNTER("e", n++);
        TARE_NUMBER("f", n++);
        TARE_MARK("g");
        object one;
    }
    assert_int_equal(n, 5); /* arguments are evaluated, once */
    assert_int_equal(twice(3), 6);
    assert_string_equal(fake_log, "");
}

/* These are not the fake's: the library, called from C++ with no session. */
void the_library_links_from_cpp(void **)
{
    errno = 4711;
    (void)tare_now();
    tare_thread_name("c++");
    tare_pause();
    tare_resume();
    assert_int_equal(tare_track("requests", TARE_TRACK_REQUEST), 0);
    assert_int_equal(tare_recording(), 0);
    assert_string_equal(tare_output(), "");
    int status = tare_stop();
    assert_int_equal(errno, 4711);
    assert_int_equal(status, TARE_E_NO_SESSION);
    assert_string_equal(tare_status_text(TARE_E_BUSY), "a session is already recording");
}

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exception_ends_what_it_leaves),
        cmocka_unit_test(an_exception_with_no_session),
        cmocka_unit_test(scopes_and_destructors_unwind_in_order),
        cmocka_unit_test(templates_have_sites_of_their_own),
        cmocka_unit_test(inline_functions_and_lambdas),
        cmocka_unit_test(statements),
        cmocka_unit_test(a_closed_gate_calls_nothing),
        cmocka_unit_test(the_library_links_from_cpp),
    };
    return cmocka_run_group_tests_name("api_cpp", tests, nullptr, nullptr);
}
