/* user_columns: schema values as user rules see them: a number with its unit, a text, or a Boolean.
 * A reference to a row of another table becomes the text that names it. Constant; any thread.
 * Must not know rules. */
#include <math.h>
#include <string.h>

#include "user_rules.h"

static value_unit unit_shown(tare__metric_unit unit)
{
    static const value_unit units[] = {
        [TARE__SHOW_BYTES] = UNIT_BYTES, [TARE__SHOW_SHARE] = UNIT_SHARE,         [TARE__SHOW_CORES] = UNIT_CORES,
        [TARE__SHOW_SECONDS] = UNIT_TIME, [TARE__SHOW_BYTES_PER_S] = UNIT_BYTES, [TARE__SHOW_PER_S] = UNIT_RATE,
        [TARE__SHOW_NS] = UNIT_TIME,     [TARE__SHOW_DATE] = UNIT_TIME,
        [TARE__SHOW_VARIES] = UNIT_ANY,         [TARE__SHOW_NOTHING] = UNIT_COUNT,
    };
    value_unit shown = unit < TARE__COUNT_OF(units) ? units[unit] : UNIT_ANY;
    return shown || unit == TARE__SHOW_VARIES ? shown : UNIT_COUNT;
}

value_unit tare__user_unit(const tare__schema_column *column)
{
    return unit_shown(column->unit);
}

value_type tare__user_type(const tare__schema_column *column)
{
    switch (tare__schema_type(column)) {
    case TARE__TYPE_TEXT:
    case TARE__TYPE_ROW: return VALUE_TEXT;
    case TARE__TYPE_FLAG: return VALUE_TRUTH;
    case TARE__TYPE_NUMBER:
    case TARE__TYPE_SIGNED:
    case TARE__TYPE_COUNT: return VALUE_NUMBER;
    default: return VALUE_NONE;
    }
}

const tare__table *tare__user_table(size_t index)
{
    const tare__table *table;
    for (size_t i = 0; (table = tare__schema_table(i)); i++) {
        bool own = strcmp(table->name, "findings") == 0 || strcmp(table->name, "notes") == 0; /* output of rules */
        if (!own && index-- == 0)
            return table;
    }
    return NULL;
}

const tare__table *tare__user_table_find(const char *name, size_t length)
{
    const tare__table *table, *found = tare__schema_find(name, length);
    for (size_t i = 0; (table = tare__user_table(i)); i++)
        if (table == found)
            return table;
    return NULL;
}

const tare__schema_column *tare__user_column_find(const tare__table *table, const char *name, size_t length)
{
    const tare__schema_column *column = tare__schema_find_column(table, name, length);
    return column && tare__user_type(column) != VALUE_NONE ? column : NULL;
}

/* The text that names a row; absent for a top-level row, which has no parent. */
static const char *label_of(tare__cells *cells, const tare__schema_column *column, const tare__value *value)
{
    const tare__schema_column *label = tare__table_label(column->table);
    if (value->type == TARE__TYPE_ABSENT)
        return "";
    if (!label || value->count >= tare__table_rows(cells->of, column->table))
        return NULL;
    const void *row = tare__table_row(cells->of, column->table, value->count);
    tare__value named = tare__schema_cell(cells, label, row, value->count);
    return named.type == TARE__TYPE_TEXT ? named.text : NULL;
}

value tare__user_cell(tare__cells *cells, const tare__schema_column *column, const void *row, size_t index)
{
    tare__value from = tare__schema_cell(cells, column, row, index);
    tare__metric_unit unit = tare__schema_unit(column, row);
    value to = {.type = tare__user_type(column), .unit = unit_shown(unit), .number = NAN, .truth = UNKNOWN};
    if (tare__schema_type(column) == TARE__TYPE_ROW) {
        to.text = label_of(cells, column, &from);
        return to;
    }
    switch (from.type) {
    case TARE__TYPE_TEXT: to.text = from.text; break;
    case TARE__TYPE_FLAG: to.truth = from.flag ? YES : NO; break;
    case TARE__TYPE_NUMBER: to.number = from.number; break;
    case TARE__TYPE_SIGNED: to.number = (double)from.whole; break;
    case TARE__TYPE_COUNT: to.number = (double)from.count; break;
    default: break;
    }
    if (unit == TARE__SHOW_SECONDS) /* times are ns, whatever the unit of the table */
        to.number *= 1e9;
    return to;
}
