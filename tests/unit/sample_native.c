/* Tests of src/sample/native_merge.c, native_events.c and stacks_native.c: where native frames go, what does not belong
 * together, kernels without performance events, and the time for which a sample stands.
 * One thread.
 * Must not need the permission to sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "sample/native.h"
#include "sample/stacks_inner.h"
#include "tare.h"

#define MAX 32

typedef struct merged {
    char text[256]; /* innermost first: 0, 1, … native, a, b, … Python, ? a gap */
    size_t n;
} merged;

static const char letters[] = "oscE"; /* tare__code_class: other, system, interpreter (c: CPython), evaluation */

/* `python`: the evaluation of each Python frame. */
static merged merge(const char *native, bool whole, const char *python, uint32_t evaluations)
{
    uint8_t classes[MAX];
    tare__python_frame frames[MAX];
    int32_t order[2 * MAX + 1];
    merged out = {.n = 0};
    size_t n = strlen(native), n_python = strlen(python), at = 0;
    for (size_t i = 0; i < n; i++)
        classes[i] = (uint8_t)(strchr(letters, native[i]) - letters);
    for (size_t i = 0; i < n_python; i++)
        frames[i] = (tare__python_frame){.code = 1, .evaluation = (uint32_t)(python[i] - '0')};
    const tare__merging merging = {classes, n, whole, frames, (uint32_t)n_python, evaluations};
    out.n = tare__native_merge(&merging, order);
    assert_true(out.n <= n + n_python + 1);
    for (size_t i = 0; i < out.n; i++)
        out.text[at++] = order[i] == TARE__NATIVE_GAP ? '?'
                         : order[i] >= 0              ? (char)('0' + order[i])
                                                      : (char)('a' + (-1 - order[i]));
    out.text[at] = '\0';
    return out;
}

static void is(const char *native, bool whole, const char *python, uint32_t evaluations, const char *expected)
{
    merged got = merge(native, whole, python, evaluations);
    if (strcmp(got.text, expected) != 0)
        fail_msg("%s with %s: %s instead of %s", native, python, got.text, expected);
}

static void native_frames_go_below_their_caller(void **state)
{
    (void)state;
    is("ooEcs", true, "0", 1, "01a");            /* a library, called by a line */
    is("oocccEcs", true, "0", 1, "01a");         /* what leads there is not shown */
    is("cccEcs", true, "0", 1, "012a");          /* a function of the interpreter itself */
    is("sccEcs", true, "0", 1, "012a");
    is("Ecs", true, "0", 1, "a");
    is("EccEcs", true, "01", 2, "ab");           /* sorted(key=): nothing between */
    is("EcosoEcs", true, "01", 2, "a234b");      /* a callback through a library, and through the C library */
    is("oEcs", true, "000", 1, "0abc");          /* since 3.11: one evaluation for three functions */
    is("oEccEcs", true, "0011", 2, "0abcd");
    is("oEcoo", true, "0", 1, "0a34");           /* a program that embeds Python */
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    is("oEEs", true, "0", 1, "");
    is("oEs", true, "01", 2, "");
    is("oos", true, "0", 1, "");
    is("oEE", false, "0", 1, "");
    is("c", false, "0", 1, "");
    is("", false, "0", 1, "");
    is("o", false, "", 0, "");
}

static void a_stack_that_ends_early(void **state)
{
    (void)state;
    is("oEcE", false, "012", 3, "0abc"); /* the copy was too short: the callers are known */
    is("oo", false, "00", 1, "01?ab");   /* code without tables */
}

/* ---- one moment ---------------------------------------------------------------------------------- */
#define FRAME 0x7000u
#define CODE  0x9000u

static bool matches(const uint64_t *stack, size_t n, uint64_t in_register, uint64_t instruction, uint64_t end)
{
    tare__native_copy copy = {.stack = (const unsigned char *)stack, .bytes = n * sizeof *stack};
    const tare__python_frame frame = {.code = 0};
    const tare__python_thread thread = {.frames = &frame, .current = FRAME, .code = CODE, .code_end = CODE + 200,
                                        .instruction = instruction};
    int32_t line;
    copy.regs.value[TARE__NATIVE_SP] = 0x1000;
    copy.regs.value[3] = in_register;
    copy.regs.known = UINT64_C(1) << TARE__NATIVE_SP | UINT64_C(1) << 3;
    return tare__native_matches(&copy, end, NULL, &thread, &line);
}

static void frame_and_instruction_must_be_there(void **state)
{
    (void)state;
    const uint64_t both[] = {1, FRAME, CODE + 12}, frame_only[] = {1, FRAME, 3}, code_only[] = {1, 2, CODE + 12},
                   start[] = {FRAME, CODE}, several[] = {FRAME, CODE + 100, CODE + 180};
    assert_true(matches(both, 3, 0, CODE + 10, 0x1018));
    assert_false(matches(frame_only, 3, 0, CODE + 10, 0x1018));
    assert_false(matches(code_only, 3, 0, CODE + 10, 0x1018));
    assert_true(matches(code_only, 3, FRAME, CODE + 10, 0x1018));
    assert_false(matches(both, 3, 0, CODE + 10, 0x1010)); /* above the stack of the loop */
    assert_false(matches(start, 2, 0, CODE, 0x1010));     /* the start is there for other reasons */
    assert_false(matches(several, 3, 0, CODE + 10, 0x1018));
    assert_true(matches(several, 3, 0, CODE + 98, 0x1018));
    assert_true(matches(both, 3, 0, CODE + 10, 0));
    assert_false(matches(both, 3, 0, CODE + 60, 0)); /* which instruction it was is not certain */
}

/* ---- events -------------------------------------------------------------------------------------- */
static int failure;

static long refuse(struct perf_event_attr *attributes, pid_t pid, int cpu, int group, unsigned long flags)
{
    (void)attributes, (void)pid, (void)cpu, (void)group, (void)flags;
    errno = failure;
    return -1;
}

static void without_events_there_is_a_reason(void **state)
{
    static const struct {
        int failure, status;
        const char *words;
    } cases[] = {{EACCES, TARE_E_PERMISSION, "perf_event_"},
                 {EPERM, TARE_E_PERMISSION, "perf_event_"},
                 {ENOSYS, TARE_E_SYSTEM, "CONFIG_PERF_EVENTS"},
                 {EMFILE, TARE_E_SYSTEM, "perf_event_open: "}};
    tare__native_open_function *before = tare__native_open;
    (void)state;
    tare__native_open = refuse;
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        tare__native_events *events = (void *)1;
        tare__error error = {""};
        failure = cases[i].failure;
        assert_int_equal(tare__native_events_open(1000000, &events, &error), cases[i].status);
        assert_null(events);
        assert_non_null(strstr(error.text, cases[i].words));
    }
    tare__native_open = before;
}

#define MS UINT64_C(1000000)

static void a_thread_that_got_its_cpu_back_is_left_to_its_event(void **state)
{
    const sampled_thread thread = {.sampled = true, .known = true, .cpu_ns = 1000 * MS, .events_known = true,
                                   .events_cpu_ns = 1000 * MS};
    tare__thread_now now = {.state = TARE__STATE_RUNNING, .cpu_ns = 1000 * MS, .known = true};
    (void)state;
    assert_true(tare__sampler_is_early(&thread, &now, MS, 17 * MS, true)); /* it waited for a CPU */
    now.cpu_ns += 11 * MS;
    assert_true(tare__sampler_is_early(&thread, &now, MS, 28 * MS, true));
    now.cpu_ns += MS;
    assert_false(tare__sampler_is_early(&thread, &now, MS, 29 * MS, true)); /* it has no events */
    assert_false(tare__sampler_is_early(&thread, &now, MS, 29 * MS, false));
    now.cpu_ns = 1000 * MS;
    assert_false(tare__sampler_is_early(&thread, &now, MS, 5000 * MS, true));
    now.known = false; /* without counters: by all time */
    assert_true(tare__sampler_is_early(&thread, &now, MS, 11 * MS, true));
    assert_false(tare__sampler_is_early(&thread, &now, MS, 12 * MS, true));
    now.state = TARE__STATE_RUNNABLE;
    assert_true(tare__sampler_is_early(&thread, &now, MS, 4999 * MS, true));
    now.state = TARE__STATE_SLEEP;
    assert_false(tare__sampler_is_early(&thread, &now, MS, 0, true));
}

static void late_samples_share_the_time_they_stand_for(void **state)
{
    sampled_thread thread = {.known = true, .cpu_ns = 100 * MS, .queue_ns = 50 * MS, .seen_ns = 1000 * MS};
    uint64_t cpu = 0;
    (void)state;
    for (uint64_t i = 1; i <= 5; i++) { /* five samples, one per millisecond, read 20 ms after the first */
        tare__thread_now now = {.cpu_ns = 105 * MS, .queue_ns = 50 * MS, .known = true};
        tare__sampler_totals_at(&thread, MS, (1000 + i) * MS, 1020 * MS, &now);
        assert_int_equal(now.cpu_ns - thread.cpu_ns, MS);
        assert_int_equal(now.queue_ns, thread.queue_ns);
        cpu += now.cpu_ns - thread.cpu_ns;
        thread.cpu_ns = now.cpu_ns;
        thread.seen_ns = (1000 + i) * MS;
    }
    assert_int_equal(cpu, 5 * MS);
    thread.seen_ns = 1005 * MS; /* read at once: a wait of 8 ms, then 2 ms on a CPU */
    tare__thread_now now = {.cpu_ns = 107 * MS, .queue_ns = 58 * MS, .known = true};
    tare__sampler_totals_at(&thread, MS, 1015 * MS, 1015 * MS, &now);
    assert_int_equal(now.cpu_ns, 107 * MS);
    assert_int_equal(now.queue_ns, 58 * MS);
    now = (tare__thread_now){.cpu_ns = 130 * MS, .queue_ns = 90 * MS, .known = true}; /* never more than its time */
    tare__sampler_totals_at(&thread, MS, 1015 * MS, 1016 * MS, &now);
    assert_int_equal(now.cpu_ns - thread.cpu_ns + now.queue_ns - thread.queue_ns, 10 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(native_frames_go_below_their_caller),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_stack_that_ends_early),
        cmocka_unit_test(frame_and_instruction_must_be_there),
        cmocka_unit_test(without_events_there_is_a_reason),
        cmocka_unit_test(a_thread_that_got_its_cpu_back_is_left_to_its_event),
        cmocka_unit_test(late_samples_share_the_time_they_stand_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
