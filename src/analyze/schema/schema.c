/* schema: reads values by their columns.
 * Constant; any thread.
 * Must not know output formats. */
#include "define.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ABSENT ((tare__value){.type = TARE__TYPE_ABSENT})

tare__type tare__schema_type(const tare__schema_column *column)
{
    switch (column->stored) {
    case TARE__STORED_TEXT:
    case TARE__STORED_MADE_TEXT: return TARE__TYPE_TEXT;
    case TARE__STORED_DOUBLE:
    case TARE__STORED_DOUBLE_OR_0:
    case TARE__STORED_MADE_NUMBER: return TARE__TYPE_NUMBER;
    case TARE__STORED_U64:
    case TARE__STORED_U64_OR_0:
    case TARE__STORED_U32:
    case TARE__STORED_U32_OR_0:
    case TARE__STORED_MADE_COUNT: return TARE__TYPE_COUNT;
    case TARE__STORED_BOOL:
    case TARE__STORED_MADE_FLAG: return TARE__TYPE_FLAG;
    case TARE__STORED_ROW: return TARE__TYPE_ROW;
    case TARE__STORED_PART:
    case TARE__STORED_MADE_PART: return TARE__TYPE_PART;
    case TARE__STORED_HERE:
    case TARE__STORED_ROWS:
    case TARE__STORED_MADE_ROWS: return TARE__TYPE_ROWS;
    case TARE__STORED_MADE_TEXTS: return TARE__TYPE_TEXTS;
    case TARE__STORED_MADE_NUMBERS: return TARE__TYPE_NUMBERS;
    case TARE__STORED_NS:
    case TARE__STORED_WHOLE:
    case TARE__STORED_I64_OR_0:
    case TARE__STORED_INT_OR_0:
    case TARE__STORED_INT_OR_LESS:
    case TARE__STORED_I64_OR_LESS:
    case TARE__STORED_MADE_SIGNED: break;
    }
    return TARE__TYPE_SIGNED;
}

/* ---- values ------------------------------------------------------------------------------------ */
static tare__value ns(double ns)
{
    if (!isfinite(ns))
        return ABSENT;
    return fabs(ns) < 9e18 ? tare__value_whole((int64_t)llround(ns), true) : tare__value_number(ns);
}

static tare__value rows(const void *rows, size_t n)
{
    return (tare__value){.type = TARE__TYPE_ROWS, .count = n, .rows = rows};
}

/* The struct that a pointer in the row refers to. */
static const void *follow(const void *row, size_t through)
{
    return through ? *(const void *const *)((const char *)row + through - 1) : row;
}

tare__value tare__schema_cell(tare__cells *cells, const tare__schema_column *column, const void *row, size_t index)
{
    if (column->make)
        return column->make(cells, row, index);
    row = follow(row, column->through);
    if (!row)
        return ABSENT;
    const void *at = (const char *)row + column->at;
    const void *counted = (const char *)row + column->count_at;
    switch (column->stored) {
    case TARE__STORED_TEXT: return tare__value_text(*(const char *const *)at);
    case TARE__STORED_DOUBLE: return tare__value_number(*(const double *)at);
    case TARE__STORED_DOUBLE_OR_0: return tare__value_number(*(const double *)at > 0 ? *(const double *)at : NAN);
    case TARE__STORED_NS:
    case TARE__STORED_WHOLE: return ns(*(const double *)at);
    case TARE__STORED_U64: return tare__value_count(*(const uint64_t *)at, true);
    case TARE__STORED_U64_OR_0: return tare__value_count(*(const uint64_t *)at, *(const uint64_t *)at != 0);
    case TARE__STORED_U32: return tare__value_count(*(const uint32_t *)at, true);
    case TARE__STORED_U32_OR_0: return tare__value_count(*(const uint32_t *)at, *(const uint32_t *)at != 0);
    case TARE__STORED_I64_OR_0: return tare__value_whole(*(const int64_t *)at, *(const int64_t *)at != 0);
    case TARE__STORED_INT_OR_0: return tare__value_whole(*(const int *)at, *(const int *)at != 0);
    case TARE__STORED_INT_OR_LESS: return tare__value_whole(*(const int *)at, *(const int *)at >= 0);
    case TARE__STORED_I64_OR_LESS: return tare__value_whole(*(const int64_t *)at, *(const int64_t *)at >= 0);
    case TARE__STORED_BOOL: return tare__value_flag(*(const bool *)at);
    case TARE__STORED_ROW:
        return *(const uint32_t *)at == TARE__NO_ROW
                   ? ABSENT
                   : (tare__value){.type = TARE__TYPE_ROW, .count = *(const uint32_t *)at};
    case TARE__STORED_PART:
        return column->table->present && !column->table->present(at)
                   ? ABSENT
                   : (tare__value){.type = TARE__TYPE_PART, .rows = at};
    case TARE__STORED_HERE: return rows(at, *(const size_t *)counted);
    case TARE__STORED_ROWS: return rows(*(const void *const *)at, *(const size_t *)counted);
    default: return ABSENT; /* computed values use their function */
    }
}

const char *tare__schema_absent(const tare__schema_column *column, const void *row)
{
    const void *at = (const char *)row + column->absent_at;
    const char *reported = column->absent_at ? *(const char *const *)at : NULL;
    return reported ? reported : column->absent;
}

tare__metric_unit tare__schema_unit(const tare__schema_column *column, const void *row)
{
    const void *at = (const char *)row + column->unit_at;
    return column->unit == TARE__SHOW_VARIES ? *(const tare__metric_unit *)at : column->unit;
}

/* ---- tables ------------------------------------------------------------------------------------ */
#define LIST(name) &tare__table_##name,
static const tare__table *const report_tables[] = {TARE__REPORT_TABLES(LIST)};
const tare__document tare__document_report = {"tare-report", 1, 7, report_tables, TARE__COUNT_OF(report_tables)};

const tare__table *tare__schema_table(size_t index)
{
    return index < TARE__COUNT_OF(report_tables) ? report_tables[index] : NULL;
}

bool tare__table_is_single(const tare__table *table)
{
    return table->shape == TARE__SHAPE_SINGLE || table->shape == TARE__SHAPE_TOP;
}

void tare__cells_begin(tare__cells *cells, const void *of)
{
    cells->of = of;
    cells->parent = NULL;
    cells->self_ns = NAN;
    cells->failed = false;
}

size_t tare__table_rows(const void *of, const tare__table *table)
{
    of = follow(of, table->through);
    if (!of)
        return 0;
    const void *counted = (const char *)of + table->count_at;
    if (tare__table_is_single(table))
        return !table->present || table->present((const char *)of + table->at);
    return *(const size_t *)counted;
}

const void *tare__table_row(const void *of, const tare__table *table, size_t index)
{
    const void *at = (const char *)follow(of, table->through) + table->at;
    if (tare__table_is_single(table))
        return at;
    return *(const char *const *)at + index * table->row_bytes;
}

/* ---- names ------------------------------------------------------------------------------------- */
static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

const tare__table *tare__schema_find(const char *name, size_t length)
{
    const tare__table *table;
    for (size_t i = 0; (table = tare__schema_table(i)); i++)
        if (is_name(table->name, name, length))
            return table;
    return NULL;
}

const tare__schema_column *tare__schema_find_column(const tare__table *table, const char *name, size_t length)
{
    for (size_t i = 0; i < table->n_columns; i++)
        if (is_name(table->columns[i].name, name, length))
            return &table->columns[i];
    return NULL;
}

const tare__schema_column *tare__table_label(const tare__table *table)
{
    for (size_t i = 0; i < table->n_columns; i++)
        if (table->columns[i].key && tare__schema_type(&table->columns[i]) == TARE__TYPE_TEXT)
            return &table->columns[i];
    return NULL;
}

const char *tare__unit_word(tare__metric_unit unit)
{
    static const char *const words[] = {
        [TARE__SHOW_COUNT] = "count",         [TARE__SHOW_BYTES] = "bytes",
        [TARE__SHOW_SHARE] = "share",         [TARE__SHOW_CORES] = "cores",
        [TARE__SHOW_SECONDS] = "seconds",     [TARE__SHOW_CELSIUS] = "celsius",
        [TARE__SHOW_WATTS] = "watts",         [TARE__SHOW_JOULES] = "joules",
        [TARE__SHOW_HERTZ] = "hertz",         [TARE__SHOW_BITS] = "bits",
        [TARE__SHOW_BYTES_PER_S] = "bytes_per_s", [TARE__SHOW_PER_S] = "per_s",
        [TARE__SHOW_NS] = "ns",               [TARE__SHOW_GRAMS] = "grams_co2",
        [TARE__SHOW_GRAMS_PER_KWH] = "grams_co2_per_kwh", [TARE__SHOW_FLOPS] = "flops",
        [TARE__SHOW_FLOPS_PER_S] = "flops_per_s", [TARE__SHOW_CHANGE] = "share", [TARE__SHOW_DATE] = "ns"};
    return (size_t)unit < TARE__COUNT_OF(words) ? words[unit] : NULL;
}

/* ---- flat -------------------------------------------------------------------------------------- */
static size_t flatten(const tare__table *table, const tare__flat *inside, size_t depth, tare__flat *to, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < table->n_columns && n < room; i++) {
        const tare__schema_column *column = &table->columns[i];
        tare__flat flat = *inside;
        flat.column = column;
        size_t length = strlen(inside->name);
        snprintf(flat.name + length, sizeof flat.name - length, "%s%s", length ? "_" : "", column->name);
        if (tare__schema_type(column) == TARE__TYPE_PART && depth < TARE__FLAT_DEPTH) {
            flat.parts[depth] = column;
            n += flatten(column->table, &flat, depth + 1, to + n, room - n);
        } else {
            to[n++] = flat;
        }
    }
    return n;
}

size_t tare__flat_columns(const tare__table *table, tare__flat columns[TARE__FLAT_MAX])
{
    return flatten(table, &(tare__flat){.name = ""}, 0, columns, TARE__FLAT_MAX);
}

const void *tare__flat_row(tare__cells *cells, const tare__flat *flat, const void *row, size_t index)
{
    for (size_t i = 0; i < TARE__FLAT_DEPTH && flat->parts[i] && row; i++) {
        tare__value part = tare__schema_cell(cells, flat->parts[i], row, index);
        row = part.type == TARE__TYPE_PART ? part.rows : NULL;
    }
    return row;
}

/* ---- display ----------------------------------------------------------------------------------- */
/* A name without its unit, in words; "p50" and names with capitals are unchanged. */
static void put_label(char out[TARE__LABEL_BYTES], const char *label, const char *name)
{
    static const char *const units[] = {"_ns", "_bytes", "_seconds"};
    size_t from = strlen(out), length = strlen(name);
    if (!label) {
        for (size_t i = 0; i < TARE__COUNT_OF(units); i++) {
            size_t unit = strlen(units[i]);
            length -= length > unit && memcmp(name + length - unit, units[i], unit) == 0 ? unit : 0;
        }
    }
    snprintf(out + from, TARE__LABEL_BYTES - from, "%s%.*s", from && (!label || *label) ? " " : "",
             label ? (int)strlen(label) : (int)length, label ? label : name);
    for (char *c = out + from; !label && *c; c++)
        *c = *c == '_' ? ' ' : *c;
}

static const char *capitalize(char out[TARE__LABEL_BYTES])
{
    if (out[0] >= 'a' && out[0] <= 'z' && !(out[1] >= '0' && out[1] <= '9') && out[1])
        out[0] = (char)(out[0] - 'a' + 'A');
    return out;
}

const char *tare__table_title(char out[TARE__LABEL_BYTES], const tare__table *table)
{
    out[0] = '\0';
    put_label(out, table->label, table->name);
    return capitalize(out);
}

const char *tare__flat_label(char out[TARE__LABEL_BYTES], const tare__flat *flat)
{
    out[0] = '\0';
    for (size_t i = 0; i < TARE__FLAT_DEPTH && flat->parts[i]; i++)
        put_label(out, flat->parts[i]->label, flat->parts[i]->name);
    put_label(out, flat->column->label, flat->column->name);
    return capitalize(out);
}

bool tare__flat_is_shown(const tare__flat *flat)
{
    for (size_t i = 0; i < TARE__FLAT_DEPTH && flat->parts[i]; i++)
        if (flat->parts[i]->page >= TARE__PAGE_HIDDEN)
            return false;
    return flat->column->page < TARE__PAGE_HIDDEN;
}

static const char *show_p(char out[TARE__UNIT_BYTES], double p)
{
    if (p < 0.001)
        return strcpy(out, "<0.001");
    tare__text_double(out, TARE__UNIT_BYTES, 'f', 3, p);
    return out;
}

static const char *show_date(char out[TARE__UNIT_BYTES], double ns)
{
    time_t at = (time_t)(ns / 1e9);
    struct tm parts;
    if (!localtime_r(&at, &parts) || !strftime(out, TARE__UNIT_BYTES, "%Y-%m-%d %H:%M", &parts))
        strcpy(out, "n/a");
    return out;
}

const char *tare__schema_show(char out[TARE__VALUE_BYTES], double value, tare__metric_unit unit)
{
    static const struct {
        const char *(*write)(char out[TARE__UNIT_BYTES], double value);
        double scale;
        const char *behind;
    } units[] = {
        [TARE__SHOW_COUNT] = {tare__unit_count, 1, ""},
        [TARE__SHOW_BYTES] = {tare__unit_bytes, 1, ""},
        [TARE__SHOW_SHARE] = {tare__unit_percent, 1, ""},
        [TARE__SHOW_CORES] = {tare__unit_count, 1, " cores"},
        [TARE__SHOW_SECONDS] = {tare__unit_time, 1e9, ""},
        [TARE__SHOW_CELSIUS] = {tare__unit_count, 1, " °C"},
        [TARE__SHOW_WATTS] = {tare__unit_count, 1, " W"},
        [TARE__SHOW_JOULES] = {tare__unit_count, 1, " J"},
        [TARE__SHOW_HERTZ] = {tare__unit_count, 1, "Hz"},
        [TARE__SHOW_BITS] = {tare__unit_count, 1, ""},
        [TARE__SHOW_BYTES_PER_S] = {tare__unit_bytes, 1, "/s"},
        [TARE__SHOW_PER_S] = {tare__unit_count, 1, "/s"},
        [TARE__SHOW_NS] = {tare__unit_time, 1, ""},
        [TARE__SHOW_GRAMS] = {tare__unit_count, 1, " g"},
        [TARE__SHOW_GRAMS_PER_KWH] = {tare__unit_count, 1, " g/kWh"},
        [TARE__SHOW_FLOPS] = {tare__unit_count, 1, ""},
        [TARE__SHOW_FLOPS_PER_S] = {tare__unit_count, 1, "FLOP/s"},
        [TARE__SHOW_CHANGE] = {tare__unit_change, 1, ""},
        [TARE__SHOW_P] = {show_p, 1, ""},
        [TARE__SHOW_DATE] = {show_date, 1, ""},
    };
    bool known = (size_t)unit < TARE__COUNT_OF(units) && units[unit].write;
    if (!known || !isfinite(value))
        return tare__unit_count(out, value);
    units[unit].write(out, value * units[unit].scale);
    size_t length = strlen(out);
    snprintf(out + length, TARE__VALUE_BYTES - length, "%s", units[unit].behind);
    return out;
}
