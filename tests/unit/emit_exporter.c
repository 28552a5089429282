/* Tests of src/emit/export/exporter.c with a format made for them: who is told of before what is theirs, categories,
 * steps with their numbers, lanes, what a refusing format does. One thread.
 * Must not know the real formats. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"
#include "emit/export/exporter.h"

enum { PHASE = 20, OPERATOR, STRANGE };

typedef struct heard {
    tare__exporter out;
    char text[8192];
    size_t length;
    uint64_t ends, begins;
    int refuse_after; /* calls; 0: never */
    int calls;
} heard;

static int hear(heard *to, const char *form, ...) __attribute__((format(printf, 2, 3)));
static int hear(heard *to, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    int n = vsnprintf(to->text + to->length, sizeof to->text - to->length, form, list);
    va_end(list);
    to->length += (size_t)n;
    assert_true(to->length < sizeof to->text);
    return ++to->calls == to->refuse_after ? TARE_E_SYSTEM : 0;
}

static int hear_process(void *to, int64_t pid, const tare__text *name, int64_t order)
{
    (void)order;
    return hear(to, "process %lld %.*s\n", (long long)pid, (int)name->length, name->data);
}

static int hear_thread(void *to, const tare__export_place *place, const tare__text *name, int64_t order)
{
    (void)order;
    return hear(to, "%s %lld %.*s\n", place->lane ? "lane" : "thread", (long long)place->pid,
                (int)name->length, name->data);
}

static int hear_begin(void *to, const tare__export_span *span)
{
    (void)span;
    ((heard *)to)->begins++;
    return 0;
}

static int hear_end(void *context, const tare__export_span *span)
{
    heard *to = context;
    char index[32] = "";
    if (span->has_index)
        snprintf(index, sizeof index, " #%llu", (unsigned long long)span->index);
    to->ends++;
    return hear(to, "%s %s %llu%s%s%s\n", tare__export_category(span->category),
                tare__trace_name_at(to->out.trace, span->name)->text,
                (unsigned long long)(span->end - span->begin), index, span->numbers ? " numbers" : "",
                span->how ? " how" : "");
}

static int hear_complete(void *context, const tare__export_span *span)
{
    assert_non_null(span->complete);
    assert_true(span->place.lane > 0);
    return hear_end(context, span);
}

static int hear_mark(void *to, const tare__export_place *place, uint32_t name, uint64_t ticks)
{
    (void)ticks;
    return hear(to, "mark %u in %lld\n", name, (long long)place->pid);
}

static const tare__export_format all_of_it = {.process = hear_process,
                                              .thread = hear_thread,
                                              .begin = hear_begin,
                                              .end = hear_end,
                                              .complete = hear_complete,
                                              .mark = hear_mark};
static const tare__export_format ends_only = {
    .process = hear_process, .thread = hear_thread, .end = hear_end};

static int keep_nothing(void *context, const void *data, size_t bytes)
{
    (void)context;
    (void)data;
    (void)bytes;
    return 0;
}

static int export_to(heard *to, builder *b, const tare__export_format *format)
{
    const tare__emit_sink sink = {.write = keep_nothing};
    tare__trace *trace;
    tare__error error = {""};
    assert_int_equal(tare__trace_open(build_file(b), &trace, &error), 0);
    int status = tare__export(&to->out, format, to, trace, &sink, &error);
    tare__trace_close(trace);
    return status;
}

static builder *build_kinds(void)
{
    builder *b = build_single();
    build_name(b, PHASE, TARE_KIND_PHASE, "forward");
    build_name(b, OPERATOR, TARE_KIND_OPERATOR, "aten::mm");
    build_name(b, STRANGE, 31, "of a later version");
    BEGIN(EPOCH, 2000);
    BEGIN(STEP, 2010);
    NUMBER(INDEX, 7);
    NUMBER(SAMPLES, 7);
    BEGIN(PHASE, 2020);
    BEGIN(OPERATOR, 2030);
    END(2040);
    BEGIN(STRANGE, 2040);
    END(2041);
    END(2050);
    MARK(SAVED, 2055);
    END(2060);
    build_seal(b); /* and nothing ends the epoch */
    const tare__complete_span spans[] = {{.name = OPERATOR, .track = GPU, .start = 2030, .end = 2040},
                                         {.name = INNER, .track = GPU, .start = 2035, .end = 2045}};
    tare__block_header header = {.stream = 1};
    builder_check(tare__complete_seal(spans, 2, b->squeezer, &header, &b->file));
    build_seal(b);
    return b;
}

static void everything_is_told_in_order(void **state)
{
    (void)state;
    heard to = {.length = 0};
    builder *b = build_kinds();
    assert_int_equal(export_to(&to, b, &all_of_it), 0);
    const char *wanted = "process 77 process 1\n"
                         "thread 77 main\n"
                         "operator aten::mm 10\n"
                         "span of a later version 1\n"
                         "phase forward 30\n"
                         "mark 9 in 77\n"
                         "step step 50 #7 numbers\n"
                         "lane 77 stream 7\n"
                         "operator aten::mm 10\n"
                         "lane 77 stream 7 (2)\n"
                         "complete inner 10\n"
                         "epoch epoch 60 how\n";
    assert_string_equal(to.text, wanted);
    assert_int_equal(to.begins, 5);
    assert_int_equal(to.out.spans, 7);
    builder_free(b);
}

static void what_is_not_wanted_is_not_told(void **state)
{
    (void)state;
    heard to = {.length = 0};
    builder *b = build_kinds();
    assert_int_equal(export_to(&to, b, &ends_only), 0);
    assert_int_equal(to.ends, 5);
    assert_null(strstr(to.text, "lane"));
    assert_null(strstr(to.text, "mark"));
    builder_free(b);
}

static void a_refusal_ends_it(void **state)
{
    (void)state;
    for (int after = 1; after <= 12; after++) {
        heard to = {.refuse_after = after};
        builder *b = build_kinds();
        assert_int_equal(export_to(&to, b, &all_of_it), TARE_E_SYSTEM);
        assert_int_equal(to.calls, after);
        builder_free(b);
    }
}

static void categories_have_words(void **state)
{
    (void)state;
    assert_string_equal(tare__export_category(TARE_KIND_SPAN), "span");
    assert_string_equal(tare__export_category(TARE_KIND_MODULE), "module");
    assert_string_equal(tare__export_category(TARE__EXPORT_RESTORED), "restored");
    assert_null(tare__export_category(0));
    assert_null(tare__export_category(TARE__EXPORT_CATEGORIES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_told_in_order),
        cmocka_unit_test(what_is_not_wanted_is_not_told),
        cmocka_unit_test(a_refusal_ends_it),
        cmocka_unit_test(categories_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
