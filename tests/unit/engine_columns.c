/* Tests of src/engine/columns.c: every table of a report as Arrow arrays whose shape is that of their schema, null
 * where the table has no value, released once; every allocation fails in turn. One thread.
 * Must not know who reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit_golden.h"
#include "emit_sample.h"
#include "engine/columns.h"
#include "tare.h"

/* An array has the children and buffers of its format, and nulls as its bits say. */
static void check_shape(const struct ArrowSchema *schema, const struct ArrowArray *array)
{
    bool list = strcmp(schema->format, "+l") == 0, part = strcmp(schema->format, "+s") == 0;
    int64_t nulls = 0;
    assert_int_equal(array->n_children, schema->n_children);
    assert_int_equal(array->n_buffers, part ? 1 : strcmp(schema->format, "u") == 0 ? 3 : 2);
    for (int64_t i = 0; i < array->length; i++)
        nulls += !(((const uint8_t *)array->buffers[0])[i / 8] >> (i % 8) & 1);
    assert_int_equal(array->null_count, nulls);
    for (int64_t i = 0; i < schema->n_children; i++) {
        const struct ArrowArray *child = array->children[i];
        assert_int_equal(child->length, list ? ((const int32_t *)array->buffers[1])[array->length] : array->length);
        check_shape(schema->children[i], child);
    }
}

static void every_table_has_its_schema(void **state)
{
    (void)state;
    const tare__analysis *const samples[] = {&train, &damaged};
    const tare__table *table;
    for (size_t k = 0; k < COUNT(samples); k++) {
        tare__cells cells;
        tare__cells_begin(&cells, samples[k]);
        for (size_t i = 0; (table = tare__schema_table(i)); i++) {
            struct ArrowSchema schema;
            struct ArrowArray array;
            assert_int_equal(tare__arrow_schema(table, &schema), 0);
            assert_int_equal(tare__arrow_table(&cells, table, &array), 0);
            assert_int_equal(array.length, tare__table_rows(samples[k], table));
            assert_string_equal(schema.children[0]->name, table->columns[0].name);
            check_shape(&schema, &array);
            array.release(&array);
            schema.release(&schema);
            assert_null(array.release);
            assert_null(schema.release);
        }
    }
}

static void values_and_nulls(void **state)
{
    (void)state;
    static const tare__mark_row marks[] = {{"\xff\xc3\xa9", 3, 5, NAN}, {"", 0, 1e19, 7.6}};
    tare__analysis one = {.marks = marks, .n_marks = 2};
    tare__cells cells;
    struct ArrowArray array;
    tare__cells_begin(&cells, &one);
    assert_int_equal(tare__arrow_table(&cells, tare__schema_find("marks", 5), &array), 0);
    const struct ArrowArray *name = array.children[0], *first = array.children[2], *last = array.children[3];
    assert_int_equal(name->null_count, 0);
    assert_int_equal(((const int32_t *)name->buffers[1])[1], 5); /* a byte that is not UTF-8 became three */
    assert_memory_equal(name->buffers[2], "\xef\xbf\xbd\xc3\xa9", 5);
    assert_int_equal(((const uint64_t *)array.children[1]->buffers[1])[0], 3);
    assert_int_equal(((const int64_t *)first->buffers[1])[0], 5);
    assert_int_equal(first->null_count, 1); /* no integer holds it */
    assert_int_equal(last->null_count, 1);
    assert_int_equal(((const int64_t *)last->buffers[1])[1], 8);
    array.release(&array);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const tare__table *table;
    tare__cells cells;
    int failures = 0;
    tare__cells_begin(&cells, &train);
    for (size_t i = 0; (table = tare__schema_table(i)); i++) {
        for (int left = 0;; left++, failures++) {
            struct ArrowArray array;
            struct ArrowSchema schema;
            allocations_left = left;
            int status = tare__arrow_table(&cells, table, &array);
            if (!status)
                array.release(&array);
            if (!status && !(status = tare__arrow_schema(table, &schema)))
                schema.release(&schema);
            allocations_left = -1;
            if (!status)
                break;
            assert_int_equal(status, TARE_E_MEMORY);
        }
    }
    assert_true(failures > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_has_its_schema),
        cmocka_unit_test(values_and_nulls),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
