/* base_dl: libraries that may be missing or old, on look-alikes of a real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../fake/path.h"
#include "base/base.h"
#include "tare.h"

typedef struct slots {
    const char *(*words)(int);
    int (*count)(unsigned *);
    int (*newer)(void *, void *);
    int (*never)(void);
} slots;

#define SLOT(member) offsetof(slots, member)
static const tare__dl_symbol table[] = {
    {"nvmlErrorString", SLOT(words), true},
    {"nvmlDeviceGetCount_v2", SLOT(count), true},
    {"nvmlDeviceGetCount", SLOT(count), true},
    {"nvmlDeviceGetMemoryInfo_v2", SLOT(newer), false},
    {"thereIsNone_v2", SLOT(never), false},
    {"thereIsNone", SLOT(never), false},
};
#define TABLE table, TARE__COUNT_OF(table)

static void fills_what_is_there(void **state)
{
    (void)state;
    tare__dl dl = {0};
    slots found;
    memset(&found, 0xff, sizeof found);
    tare__text missing = {0};
    unsigned n = 0;
    assert_int_equal(tare__dl_open(&dl, fake_path("nvml"), TABLE, &found, NULL), 0);
    assert_non_null(strstr(dl.path, "/fake/nvml.so"));
    assert_non_null(found.newer);
    assert_null(found.never);
    assert_string_equal(found.words(999), "Unknown Error");
    assert_int_equal(found.count(&n), 0);
    assert_int_equal(n, 1);
    tare__dl_missing(TABLE, &found, &missing);
    assert_string_equal(missing.data, "thereIsNone_v2");
    tare__text_free(&missing);
    tare__dl_close(&dl);
    assert_null(dl.handle);
    tare__dl_close(&dl);
}

static void an_older_name_fills_the_slot(void **state)
{
    (void)state;
    tare__dl dl = {0};
    slots found;
    tare__text missing = {0};
    assert_int_equal(tare__dl_open(&dl, fake_path("nvml_old"), TABLE, &found, NULL), 0);
    assert_non_null(found.count);
    assert_null(found.newer);
    tare__dl_missing(TABLE, &found, &missing);
    assert_string_equal(missing.data, "nvmlDeviceGetMemoryInfo_v2, thereIsNone_v2");
    tare__text_free(&missing);
    tare__dl_close(&dl);
}

static void what_is_required_is_named(void **state)
{
    (void)state;
    tare__dl dl = {0};
    slots found;
    tare__error error;
    assert_int_equal(tare__dl_open(&dl, fake_path("nvml_bare"), TABLE, &found, &error), TARE_E_VERSION);
    assert_non_null(strstr(error.text, "nvml_bare.so has no nvmlDeviceGetCount_v2"));
    assert_null(dl.handle);
}

static void what_is_not_there_is_said(void **state)
{
    (void)state;
    tare__dl dl = {0};
    slots found;
    tare__error error;
    assert_int_equal(tare__dl_open(&dl, "libtare-none-such.so.1", TABLE, &found, &error), TARE_E_SYSTEM);
    assert_non_null(strstr(error.text, "libtare-none-such.so.1"));
    assert_null(dl.handle);
    /* No library at all. */
    assert_int_equal(tare__dl_open(&dl, "/etc/passwd", TABLE, &found, &error), TARE_E_SYSTEM);
    assert_non_null(strstr(error.text, "/etc/passwd"));
    tare__dl_close(&dl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_what_is_there),
        cmocka_unit_test(an_older_name_fills_the_slot),
        cmocka_unit_test(what_is_required_is_named),
        cmocka_unit_test(what_is_not_there_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
