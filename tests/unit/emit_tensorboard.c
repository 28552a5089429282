/* Tests of the files for TensorBoard: counts equal to the span table's in every kind of trace, files that refuse, out
 * of memory at every place. One thread.
 * Must not know how the emitters work. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit_export.h"

#define FILES_MAX 32

typedef struct shelf {
    tare__text files[FILES_MAX];
    char names[FILES_MAX][256];
    size_t n;
    long writes_left; /* until one is refused; negative: none is */
    bool refuse_open;
    tare__emit_sink sink;
} shelf;

static int put(void *context, const void *data, size_t bytes)
{
    shelf *to = context;
    if (to->writes_left == 0)
        return -1;
    to->writes_left -= to->writes_left > 0;
    tare__text_append(&to->files[to->n - 1], data, bytes);
    return to->files[to->n - 1].failed ? -1 : 0;
}

static const tare__emit_sink *open_file(void *context, const char *name)
{
    shelf *to = context;
    if (to->refuse_open || to->n == FILES_MAX)
        return NULL;
    snprintf(to->names[to->n++], sizeof to->names[0], "%s", name);
    to->sink = (tare__emit_sink){put, to};
    return &to->sink;
}

static int close_file(void *context)
{
    (void)context;
    return 0;
}

static int emit(const char *path, shelf *to)
{
    tare__trace *trace;
    tare__error error = {""};
    const tare__emit_files files = {open_file, close_file, to};
    int status = tare__trace_open(path, &trace, &error);
    if (status)
        return status;
    status = tare__emit_tensorboard(trace, &files, &error);
    tare__trace_close(trace);
    return status;
}

static void clear(shelf *of)
{
    for (size_t i = 0; i < of->n; i++)
        tare__text_free(&of->files[i]);
    *of = (shelf){.writes_left = -1};
}

static uint64_t count_of(const tare__text *text, const char *words)
{
    uint64_t n = 0;
    for (const char *at = text->data; at && (at = strstr(at, words)) != NULL; at++)
        n++;
    return n;
}

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), last = strlen(ending);
    return length >= last && strcmp(name + length - last, ending) == 0;
}

/* Every span is in the file of its process, once for each reader. */
static void counts_are_equal(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(export_cases); i++) {
        const export_case *one = &export_cases[i];
        shelf to = {.writes_left = -1};
        builder *b = build_single();
        one->build(b);
        assert_int_equal(emit(build_file(b), &to), 0);
        uint64_t seen[2] = {0, 0}, planes = 0;
        for (size_t k = 0; k < to.n; k++) {
            bool hta = strncmp(to.names[k], "hta/", 4) == 0;
            if (ends_with(to.names[k], ".json"))
                seen[hta] += count_of(&to.files[k], "{\"ph\":\"X\"");
            planes += ends_with(to.names[k], ".xplane.pb");
        }
        assert_int_equal(planes, 1);
        if (seen[0] != one->spans + one->restored || seen[1] != seen[0])
            fail_msg("%s: %llu and %llu spans", one->name, (unsigned long long)seen[0],
                     (unsigned long long)seen[1]);
        clear(&to);
        builder_free(b);
    }
}

static void files_that_refuse(void **state)
{
    (void)state;
    builder *b = build_single();
    nested(b);
    const char *path = build_file(b);
    shelf to = {.writes_left = -1, .refuse_open = true};
    assert_int_equal(emit(path, &to), TARE_E_SYSTEM);
    clear(&to);
    for (long n = 0; n < 3; n++) {
        to.writes_left = n;
        assert_int_equal(emit(path, &to), TARE_E_SYSTEM);
        clear(&to);
    }
    assert_int_equal(emit(path, &to), 0);
    clear(&to);
    builder_free(b);
}

static void memory_fails(void **state)
{
    (void)state;
    static shelf to;
    int status = TARE_E_MEMORY;
    builder *b = build_single();
    two_processes(b);
    const char *path = build_file(b);
    for (long n = 0; status != 0 && n < 10000; n++) {
        to.writes_left = -1;
        allocations_left = n;
        status = emit(path, &to);
        allocations_left = -1;
        assert_true(status == 0 || status == TARE_E_MEMORY || status == TARE_E_SYSTEM);
        clear(&to);
    }
    assert_int_equal(status, 0);
    builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_equal),
        cmocka_unit_test(files_that_refuse),
        cmocka_unit_test(memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
