/* Tests of the exports of sampled stacks: every nanosecond is in them, hostile names stay in their place, functions
 * are merged where boxes are drawn, traces without stacks, failing sinks and memory. That other programs read them is
 * tested in tests/e2e and tests/browser.
 * One thread.
 * Must not know traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit/export/flamegraph.h"
#include "emit_golden.h"
#include "emit_sample.h"
#include "emit_stack_tree.h"
#include "tare.h"

static const tare__emitter *const emitters[] = {&tare__emit_folded, &tare__emit_speedscope, &tare__emit_pprof,
                                                &tare__emit_flamegraph};
static stack_sample sample;

static tare__analysis made_of(const stack_made *made, size_t n)
{
    tare__analysis analysis = {.run = train.run};
    analysis.run.command = "python train.py";
    analysis.run.directory = "/home/ada/vision";
    add_stacks(&analysis, &sample, made, n);
    return analysis;
}

static int emit(const tare__emitter *emitter, const tare__analysis *analysis, kept *kept, tare__error *error)
{
    const tare__emit_options options = {0};
    tare__emit_input input = {.analysis = analysis};
    tare__emit_sink sink = sink_of(kept);
    return emitter->emit(&input, &options, &sink, error);
}

static tare__text emitted(const tare__emitter *emitter, const tare__analysis *analysis)
{
    kept kept = {0};
    tare__error error = {""};
    assert_int_equal(emit(emitter, analysis, &kept, &error), 0);
    assert_true(kept.text.length > 0);
    return kept.text;
}

/* ---- folded ----------------------------------------------------------------------------------------------- */
static void folded_lines_have_all_time(void **state)
{
    (void)state;
    tare__analysis analysis = made_of(stacks_made, COUNT(stacks_made));
    tare__text text = emitted(&tare__emit_folded, &analysis);
    long long sum_us = 0;
    size_t lines = 0;
    for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        char *space = strrchr(line, ' '), *end;
        assert_non_null(space);
        sum_us += strtoll(space + 1, &end, 10);
        assert_int_equal(*end, '\0');
        assert_memory_equal(line, "train.py (41", 12);
    }
    assert_true(lines > COUNT(stacks_made));
    assert_int_equal(sum_us, (long long)(analysis.stacks.wall_ns / 1e3 + 0.5));
    tare__text_free(&text);
}

static void folded_frames_name_function_file_line_and_state(void **state)
{
    (void)state;
    tare__analysis analysis = made_of(stacks_made, COUNT(stacks_made));
    tare__text text = emitted(&tare__emit_folded, &analysis);
    assert_non_null(strstr(text.data, "train.py (4120);MainThread (4120);<module> (train.py:88);main (train.py:74);"
                                      "upload (storage.py:31);Session.request (requests/sessions.py:589);"
                                      "SSLSocket.read (ssl.py:1104);[waiting for the network] 520000\n"));
    assert_non_null(strstr(text.data, "train.py (4120);MainThread (4120);(no stack) 8000\n"));
    tare__text_free(&text);
}

static void folded_names_stay_in_their_line(void **state)
{
    (void)state;
    tare__analysis analysis = made_of(stacks_hostile, COUNT(stacks_hostile));
    tare__text text = emitted(&tare__emit_folded, &analysis);
    size_t lines = 0, separators = 0;
    for (size_t i = 0; i < text.length; i++) {
        lines += text.data[i] == '\n';
        separators += text.data[i] == ';';
        assert_true((unsigned char)text.data[i] >= ' ' || text.data[i] == '\n');
    }
    assert_int_equal(lines, 4);
    assert_int_equal(separators, 2 + 3 + 4 + 3); /* the depths, and a state */
    tare__text_free(&text);
}

/* ---- boxes -------------------------------------------------------------------------------------------------- */
static const tare__flame_box *find_box(const tare__flame *flame, const char *name, unsigned of, const char *parent)
{
    for (size_t i = 0; i < flame->n; i++) {
        const tare__flame_box *box = &flame->boxes[i];
        const char *above = box->parent == TARE__FLAME_NONE ? "" : flame->boxes[box->parent].node->name;
        if (strcmp(box->node->name, name) == 0 && box->state == of && (!parent || strcmp(above, parent) == 0))
            return box;
    }
    fail_msg("no box of %s", name);
    return NULL;
}

static void boxes_merge_the_lines_of_a_function(void **state)
{
    (void)state;
    tare__analysis analysis = made_of(stacks_made, COUNT(stacks_made));
    tare__error error = {""};
    tare__flame flame;
    assert_int_equal(tare__flame_make(&analysis, &flame, &error), 0);
    const tare__flame_box *item = find_box(&flame, "Photos.__getitem__", TARE__STATE_RUNNING, "_worker_loop");
    assert_float_equal(item->self_ns, 338e6, 1);
    assert_float_equal(item->total_ns, (22 + 255 + 2250 + 6 + 3215 + 310) * 1e6, 1);
    assert_int_equal(item->node->line, 31); /* with the most self time */
    size_t items = 0;
    for (size_t i = 0; i < flame.n; i++)
        items += strcmp(flame.boxes[i].node->name, "Photos.__getitem__") == 0;
    assert_int_equal(items, 1);
    tare__flame_free(&flame);
}

static void boxes_have_active_time(void **state)
{
    (void)state;
    tare__analysis analysis = made_of(stacks_made, COUNT(stacks_made));
    tare__error error = {""};
    tare__flame flame;
    assert_int_equal(tare__flame_make(&analysis, &flame, &error), 0);
    const tare__flame_box *pipe = find_box(&flame, "Connection._poll", TARE__STATE_PIPE, NULL);
    assert_float_equal(pipe->total_ns, 1580e6, 1); /* of the leading thread */
    assert_float_equal(pipe->waits_ns, 1580e6, 1);
    /* Another thread that waits for work is not active. */
    assert_float_equal(find_box(&flame, "_pin_memory_loop", TARE__STATE_RUNNING, NULL)->total_ns, 210e6, 1);
    assert_float_equal(find_box(&flame, "Queue.get", TARE__STATE_RUNNING, "_worker_loop")->total_ns, 2e6, 1);
    assert_float_equal(find_box(&flame, "ImageFile.load", TARE__STATE_RUNNABLE, NULL)->total_ns, 95e6, 1);
    assert_float_equal(flame.total_ns, analysis.stacks.wall_ns - 8100e6 - 1900e6, 1);
    tare__flame_free(&flame);
}

static void boxes_are_linked_by_size(void **state)
{
    (void)state;
    tare__analysis analysis = made_of(stacks_made, COUNT(stacks_made));
    tare__error error = {""};
    tare__flame flame;
    assert_int_equal(tare__flame_make(&analysis, &flame, &error), 0);
    for (size_t i = 0; i < flame.n; i++) {
        double sum = flame.boxes[i].self_ns, last = 1e18;
        for (uint32_t at = flame.boxes[i].first; at != TARE__FLAME_NONE; at = flame.boxes[at].next) {
            assert_true(flame.boxes[at].total_ns <= last);
            assert_int_equal(flame.boxes[at].parent, i);
            last = flame.boxes[at].total_ns;
            sum += last;
        }
        assert_float_equal(sum, flame.boxes[i].total_ns, 1);
    }
    tare__flame_free(&flame);
}

/* ---- SVG ------------------------------------------------------------------------------------------------------ */
static void svg_names_are_escaped(void **state)
{
    (void)state;
    tare__analysis analysis = made_of(stacks_hostile, COUNT(stacks_hostile));
    analysis.run.command = analysis.run.host = STACK_ATTACK;
    tare__text text = emitted(&tare__emit_flamegraph, &analysis);
    const char *script = strstr(text.data, "<script>");
    assert_non_null(script);
    assert_null(strstr(script + 1, "<script>"));
    assert_null(strstr(text.data, "<img"));
    assert_null(strchr(text.data, '\x1b'));
    assert_non_null(strstr(text.data, "&lt;/script&gt;]]&gt;&lt;/svg&gt;&lt;img src=x"));
    size_t sections = 0;
    for (const char *at = text.data; (at = strstr(at, "]]>")); at++)
        sections++;
    assert_int_equal(sections, 2); /* the ends of style and script */
    tare__text_free(&text);
}

static void svg_refers_to_nothing_outside(void **state)
{
    (void)state;
    static const char *const forbidden[] = {"href", "url(", "@import", "src=\"", "fetch(", "innerHTML", "eval("};
    tare__analysis analysis = made_of(stacks_made, COUNT(stacks_made));
    tare__text text = emitted(&tare__emit_flamegraph, &analysis);
    for (size_t i = 0; i < COUNT(forbidden); i++)
        assert_null(strstr(text.data, forbidden[i]));
    tare__text_free(&text);
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */
static void without_stacks_there_is_nothing_to_write(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(emitters); i++) {
        tare__error error = {""};
        kept kept = {0};
        assert_int_equal(emit(emitters[i], &train, &kept, &error), TARE_E_INPUT);
        assert_non_null(strstr(error.text, "no stack samples"));
        assert_int_equal(kept.writes, 0);
    }
}

static void they_are_found_by_name(void **state)
{
    (void)state;
    static const char *const names[] = {"folded", "speedscope", "pprof", "flamegraph"};
    for (size_t i = 0; i < COUNT(names); i++)
        assert_ptr_equal(tare__emit_find(names[i]), emitters[i]);
}

static void a_sink_that_refuses_ends_them(void **state)
{
    (void)state;
    tare__analysis analysis = made_of(stacks_made, COUNT(stacks_made));
    for (size_t i = 0; i < COUNT(emitters); i++) {
        tare__error error = {""};
        kept kept = {.refuse = 1};
        assert_int_equal(emit(emitters[i], &analysis, &kept, &error), TARE_E_SYSTEM);
        assert_string_equal(error.text, "");
        assert_int_equal(kept.writes, 1);
        tare__text_free(&kept.text);
    }
}

static int discard(void *context, const void *data, size_t bytes)
{
    (void)context, (void)data, (void)bytes;
    return 0;
}

static void memory_that_fails_is_reported(void **state)
{
    (void)state;
    tare__analysis analysis = made_of(stacks_made, COUNT(stacks_made));
    const tare__emit_options options = {0};
    const tare__emit_sink sink = {.write = discard};
    tare__emit_input input = {.analysis = &analysis};
    for (size_t i = 0; i < COUNT(emitters); i++) {
        int status = TARE_E_MEMORY;
        long n = 0;
        for (; status == TARE_E_MEMORY && n < 10000; n++) {
            tare__error error = {""};
            allocations_left = n;
            status = emitters[i]->emit(&input, &options, &sink, &error);
            allocations_left = -1;
            if (status)
                assert_string_equal(error.text, "out of memory");
        }
        assert_int_equal(status, 0);
        assert_true(n > 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_lines_have_all_time),
        cmocka_unit_test(folded_frames_name_function_file_line_and_state),
        cmocka_unit_test(folded_names_stay_in_their_line),
        cmocka_unit_test(boxes_merge_the_lines_of_a_function),
        cmocka_unit_test(boxes_have_active_time),
        cmocka_unit_test(boxes_are_linked_by_size),
        cmocka_unit_test(svg_names_are_escaped),
        cmocka_unit_test(svg_refers_to_nothing_outside),
        cmocka_unit_test(without_stacks_there_is_nothing_to_write),
        cmocka_unit_test(they_are_found_by_name),
        cmocka_unit_test(a_sink_that_refuses_ends_them),
        cmocka_unit_test(memory_that_fails_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
