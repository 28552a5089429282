/* sheet: a table of the schema as HTML: titles, units, bars and tags as its columns specify.
 * Owned by the calling thread.
 * Must not know what the tables contain. */
#include "sheet.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"

#define HASH_DIGITS 8
#define TALL_FROM   40u /* rows */

/* ---- values as text ---------------------------------------------------------------------------------------------- */
/* A column, its table, and the row it is read from. */
typedef struct place {
    const tare__table *table;
    const tare__schema_column *column;
    const void *row;
    size_t index;
} place;

static place place_of(tare__sheet *sheet, const tare__flat *flat, const void *row, size_t index)
{
    place at = {sheet->table, flat->column, row, index};
    sheet->cells.parent = sheet->parent;
    for (size_t i = 0; i < TARE__FLAT_DEPTH && flat->parts[i]; i++)
        at.table = flat->parts[i]->table;
    at.row = tare__flat_row(&sheet->cells, flat, row, index);
    return at;
}

static tare__value read(tare__sheet *sheet, const place *at)
{
    if (!at->row)
        return (tare__value){.type = TARE__TYPE_ABSENT};
    tare__value value = tare__schema_cell(&sheet->cells, at->column, at->row, at->index);
    sheet->out->failed |= sheet->cells.failed;
    return value;
}

static tare__value read_beside(tare__sheet *sheet, const place *at, const char *name)
{
    place other = *at;
    other.column = tare__schema_find_column(at->table, name, strlen(name));
    return other.column ? read(sheet, &other) : tare__value_text(sheet->unit);
}

static double number_of(const tare__value *value)
{
    switch (value->type) {
    case TARE__TYPE_NUMBER: return value->number;
    case TARE__TYPE_SIGNED: return (double)value->whole;
    case TARE__TYPE_COUNT:
    case TARE__TYPE_ROW:
    case TARE__TYPE_ROWS: return (double)value->count;
    case TARE__TYPE_FLAG: return value->flag;
    default: return NAN;
    }
}

static bool is_number(const tare__schema_column *column)
{
    tare__type type = tare__schema_type(column);
    return type == TARE__TYPE_NUMBER || type == TARE__TYPE_SIGNED || type == TARE__TYPE_COUNT ||
           type == TARE__TYPE_ROWS;
}

static bool is_flag(const tare__schema_column *column)
{
    return tare__schema_type(column) == TARE__TYPE_FLAG;
}

static void put_number(tare__sheet *sheet, tare__text *to, const place *at, const tare__value *value)
{
    const tare__schema_column *column = at->column;
    char text[TARE__VALUE_BYTES];
    double number = number_of(value);
    if (column->prefix) {
        bool inverted = *column->prefix_by == '!';
        if (read_beside(sheet, at, column->prefix_by + inverted).flag != inverted)
            tare__text_string(to, column->prefix);
    }
    if (column->unit_by) {
        const char *unit = read_beside(sheet, at, column->unit_by).text;
        tare__text_string(to, column->unit == TARE__SHOW_CHANGE && number > 0 ? "+" : "");
        tare__text_string(to, tare__unit_value(text, unit ? unit : "", number));
    } else if (column->unit == TARE__SHOW_NOTHING && value->type != TARE__TYPE_NUMBER) {
        tare__text_format(to, "%.0f", number); /* a number that identifies something */
    } else {
        tare__text_string(to, tare__schema_show(text, number, tare__schema_unit(column, at->row)));
    }
}

/* "same=no significant change|significant=" */
static void put_word(tare__text *to, const tare__schema_column *column, const char *text)
{
    size_t length = strlen(text);
    bool cut = column->unit == TARE__SHOW_HASH && strcspn(text, " ") > HASH_DIGITS;
    for (const char *at = column->words; at && *at; at += strcspn(at, "|"), at += *at == '|') {
        if (strncmp(at, text, length) == 0 && at[length] == '=') {
            at += length + 1;
            tare__text_append(to, at, strcspn(at, "|"));
            return;
        }
    }
    tare__text_append(to, text, cut ? HASH_DIGITS : length);
}

static void put_list(tare__text *to, const tare__value *value, const char *between)
{
    char digits[32];
    for (uint64_t i = 0, n = 0; i < value->count; i++) {
        const char *text = digits;
        if (value->type == TARE__TYPE_TEXTS)
            text = value->texts[i];
        else if (isfinite(value->numbers[i]))
            tare__text_double(digits, sizeof digits, 'g', 9, value->numbers[i]);
        else
            text = "?";
        if (text)
            tare__text_format(to, "%s%s", n++ ? between : "", text);
    }
}

static void put_value(tare__sheet *sheet, tare__text *to, const place *at);

/* For a few rows in a cell the first one, which is the most informative; for many, their number. */
static void put_inner(tare__sheet *sheet, tare__text *to, const place *at, const tare__value *value)
{
    const tare__table *table = at->column->table;
    if (at->column->stored != TARE__STORED_HERE) {
        put_number(sheet, to, at, value);
        return;
    }
    for (size_t i = 0; i < table->n_columns && value->count; i++) {
        place inside = {table, &table->columns[i], value->rows, 0};
        if (inside.column->page == TARE__PAGE_SHOWN)
            put_value(sheet, to, &inside);
    }
}

static void put_value(tare__sheet *sheet, tare__text *to, const place *at)
{
    tare__value value = read(sheet, at);
    switch (value.type) {
    case TARE__TYPE_TEXT: put_word(to, at->column, value.text); break;
    case TARE__TYPE_TEXTS:
    case TARE__TYPE_NUMBERS: put_list(to, &value, at->column->between); break;
    case TARE__TYPE_ROWS: put_inner(sheet, to, at, &value); break;
    case TARE__TYPE_NUMBER:
    case TARE__TYPE_SIGNED:
    case TARE__TYPE_ROW:
    case TARE__TYPE_COUNT: put_number(sheet, to, at, &value); break;
    default: break;
    }
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */
static bool is_under(const tare__sheet *sheet, size_t i)
{
    return i < sheet->n && sheet->columns[i].column->page == TARE__PAGE_UNDER;
}

/* The class of a row: the text of the column that classifies it. */
static const char *mark_of(tare__sheet *sheet, const void *row, size_t index)
{
    for (size_t i = 0; i < sheet->n; i++) {
        place at = place_of(sheet, &sheet->columns[i], row, index);
        tare__value value = at.column->mark ? read(sheet, &at) : (tare__value){.type = TARE__TYPE_ABSENT};
        if (value.type == TARE__TYPE_TEXT)
            return value.text;
    }
    return NULL;
}

/* The class of a column's title and cells. */
static const char *kind_of(const tare__sheet *sheet, size_t i)
{
    const tare__schema_column *column = sheet->columns[i].column;
    bool mark = column->mark, first = i == 0;
    while (is_under(sheet, ++i))
        mark = mark || sheet->columns[i].column->mark;
    return first               ? "name"
           : !is_number(column) ? (mark ? "verdict" : "words")
           : mark              ? "verdict figure"
                               : "figure";
}

static void put_small(tare__text *out, tare__text *text, bool *small)
{
    if (!text->length)
        return;
    tare__text_string(out, *small ? "<small>" : "");
    tare__plain_text(out, text->data);
    tare__text_string(out, *small ? "</small>" : "");
    tare__text_clear(text);
    *small = true;
}

/* The value with those grouped under it: one with a `between` text is joined to the text before. */
static void put_values(tare__sheet *sheet, size_t i, const void *row, size_t index)
{
    tare__text text = {0};
    bool small = false;
    place first = place_of(sheet, &sheet->columns[i], row, index);
    put_value(sheet, &text, &first);
    if (!text.length) {
        const char *why = first.row ? tare__schema_absent(first.column, first.row) : first.column->absent;
        if (why) {
            tare__text_string(sheet->out, "<span title=\"");
            tare__plain_text(sheet->out, why);
            tare__text_string(sheet->out, "\">n/a</span>");
            small = true;
        }
    }
    while (is_under(sheet, ++i)) {
        place at = place_of(sheet, &sheet->columns[i], row, index);
        size_t before = text.length;
        if (!at.column->between)
            put_small(sheet->out, &text, &small);
        else if (before && read(sheet, &at).type != TARE__TYPE_ABSENT)
            tare__text_string(&text, at.column->between);
        small = small || !at.column->between;
        put_value(sheet, &text, &at);
    }
    put_small(sheet->out, &text, &small);
    tare__text_end(&text, sheet->out);
}

/* As `title`, without Markdown markup. */
static void put_meaning(tare__text *out, const tare__schema_column *column)
{
    tare__text plain = {0};
    tare__text_string(&plain, column->meaning);
    size_t length = 0;
    for (size_t i = 0; i < plain.length; i++)
        if (plain.data[i] != '`')
            plain.data[length++] = plain.data[i];
    if (plain.data)
        plain.data[length] = '\0';
    tare__text_string(out, " title=\"");
    tare__plain_text(out, plain.data ? plain.data : "");
    tare__text_string(out, "\"");
    tare__text_end(&plain, out);
}

static bool is_rounded(const tare__value *value, tare__metric_unit unit)
{
    return value->type == TARE__TYPE_COUNT && unit != TARE__SHOW_NOTHING &&
           value->count >= (unit == TARE__SHOW_BYTES ? 1024 : 100000);
}

/* As `title`, if the text is rounded or truncated. */
static void put_exactly(tare__sheet *sheet, size_t i, const void *row, size_t index)
{
    place at = place_of(sheet, &sheet->columns[i], row, index);
    tare__value value = read(sheet, &at);
    if (is_rounded(&value, at.column->unit))
        tare__text_format(sheet->out, " title=\"%" PRIu64 "\"", value.count);
    if (value.type == TARE__TYPE_TEXT && at.column->unit == TARE__SHOW_HASH) {
        tare__text_string(sheet->out, " title=\"");
        tare__plain_text(sheet->out, value.text);
        tare__text_string(sheet->out, "\"");
    }
}

/* Flags that are set become tags next to the row's name. */
static void put_tags(tare__sheet *sheet, const void *row, size_t index)
{
    char label[TARE__LABEL_BYTES];
    for (size_t i = 0; i < sheet->n; i++) {
        place at = place_of(sheet, &sheet->columns[i], row, index);
        tare__value value = read(sheet, &at);
        if (value.type != TARE__TYPE_FLAG || !value.flag)
            continue;
        tare__flat_label(label, &sheet->columns[i]);
        tare__text_string(sheet->out, " <span class=\"tag\"");
        put_meaning(sheet->out, at.column);
        tare__text_format(sheet->out, ">%s</span>", label);
    }
}

static void put_name(tare__sheet *sheet, const void *row, size_t index)
{
    tare__text_string(sheet->out, "<th scope=\"row\" class=\"name\">");
    if (sheet->link)
        tare__text_format(sheet->out, "<a href=\"#%s%zu\">", sheet->link, index);
    put_values(sheet, 0, row, index);
    tare__text_string(sheet->out, sheet->link ? "</a>" : "");
    put_tags(sheet, row, index);
    tare__text_string(sheet->out, "</th>");
}

static void put_cell(tare__sheet *sheet, size_t i, const void *row, size_t index)
{
    const tare__schema_column *column = sheet->columns[i].column;
    char label[TARE__LABEL_BYTES];
    tare__flat_label(label, &sheet->columns[i]);
    if (label[0] >= 'A' && label[0] <= 'Z' && label[1] >= 'a' && label[1] <= 'z')
        label[0] = (char)(label[0] - 'A' + 'a');
    tare__text_format(sheet->out, "<td class=\"%s\"", kind_of(sheet, i));
    if (!column->mark)
        tare__text_format(sheet->out, " data-of=\"%s\"", label);
    put_exactly(sheet, i, row, index);
    tare__text_string(sheet->out, ">");
    if (column->bar) {
        place at = place_of(sheet, &sheet->columns[i], row, index);
        tare__value value = read(sheet, &at);
        if (value.type == TARE__TYPE_NUMBER)
            tare__plain_share(sheet->out, value.number);
    }
    put_values(sheet, i, row, index);
    tare__text_string(sheet->out, "</td>");
}

static bool is_drawn_behind(const tare__sheet *sheet, size_t i)
{
    return sheet->drawing && strcmp(sheet->drawing->behind, sheet->columns[i].name) == 0;
}

static bool is_cell(const tare__sheet *sheet, size_t i)
{
    return !is_under(sheet, i) && !is_flag(sheet->columns[i].column);
}

void tare__sheet_row(tare__sheet *sheet, const void *row, size_t index)
{
    const char *kind = mark_of(sheet, row, index);
    tare__text_string(sheet->out, "<tr");
    if (kind) {
        tare__text_string(sheet->out, " class=\"");
        tare__plain_text(sheet->out, kind);
        tare__text_string(sheet->out, "\"");
    }
    tare__text_string(sheet->out, ">");
    put_name(sheet, row, index);
    for (size_t i = 1; i < sheet->n; i++) {
        if (is_cell(sheet, i))
            put_cell(sheet, i, row, index);
        if (is_drawn_behind(sheet, i))
            sheet->drawing->put(sheet->out, sheet->drawing->context, row);
    }
    tare__text_string(sheet->out, "</tr>\n");
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */
static const void *row_at(const tare__sheet *sheet, const void *rows, size_t i)
{
    return (const char *)rows + i * sheet->table->row_bytes;
}

static bool has_values(tare__sheet *sheet, const tare__flat *flat, const void *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        place at = place_of(sheet, flat, row_at(sheet, rows, i), i);
        tare__value value = read(sheet, &at);
        if (value.type != TARE__TYPE_ABSENT && (value.type != TARE__TYPE_TEXT || *value.text) &&
            (value.type != TARE__TYPE_FLAG || value.flag))
            return true;
    }
    return false;
}

/* The first column has the names of the rows. A column without values is omitted together with those under it. */
static void choose_columns(tare__sheet *sheet, const void *rows, size_t n)
{
    size_t all = tare__flat_columns(sheet->table, sheet->columns), kept = 0;
    bool left_out = false;
    for (size_t i = 0; i < all; i++) {
        tare__flat *flat = &sheet->columns[i];
        bool under = flat->column->page == TARE__PAGE_UNDER;
        if (!tare__flat_is_shown(flat))
            continue;
        left_out = under ? left_out : kept && !has_values(sheet, flat, rows, n);
        if (!left_out)
            sheet->columns[kept++] = *flat;
    }
    sheet->n = kept;
}

static void put_titles(tare__sheet *sheet)
{
    char label[TARE__LABEL_BYTES];
    for (size_t i = 0; i < sheet->n; i++) {
        const tare__schema_column *column = sheet->columns[i].column;
        if (is_cell(sheet, i)) {
            tare__text_format(sheet->out, "<th scope=\"col\" class=\"%s\"", kind_of(sheet, i));
            put_meaning(sheet->out, column);
            tare__text_format(sheet->out, ">%s</th>", tare__flat_label(label, &sheet->columns[i]));
        }
        if (is_drawn_behind(sheet, i))
            sheet->drawing->put_title(sheet->out, sheet->drawing->context);
    }
}

void tare__sheet_open(tare__sheet *sheet, const char *label, const void *rows, size_t n)
{
    tare__cells_begin(&sheet->cells, sheet->of);
    choose_columns(sheet, rows, n);
    tare__plain_table(sheet->out, label, n > TALL_FROM, true);
    put_titles(sheet);
    tare__text_string(sheet->out, "</tr></thead>\n<tbody>\n");
}

void tare__sheet_close(tare__sheet *sheet)
{
    tare__plain_table_end(sheet->out);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */
typedef struct ranked {
    size_t row;
    double value; /* NaN: absent */
} ranked;

static int largest_first(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    if (isnan(a->value) || isnan(b->value))
        return isnan(a->value) != isnan(b->value) ? (isnan(a->value) ? 1 : -1) : (a->row > b->row) - (a->row < b->row);
    return a->value != b->value ? (a->value < b->value) - (a->value > b->value) : (a->row > b->row) - (a->row < b->row);
}

/* NULL: out of memory. The caller frees it. */
static ranked *rank_rows(tare__sheet *sheet, const void *rows, size_t n)
{
    ranked *order = malloc((n + 1) * sizeof *order);
    for (size_t i = 0; order && i < n; i++) {
        order[i] = (ranked){i, NAN};
        if (sheet->table->by) {
            place at = {sheet->table, sheet->table->columns, row_at(sheet, rows, i), i};
            tare__value value = read_beside(sheet, &at, sheet->table->by);
            order[i].value = number_of(&value);
        }
    }
    if (order && sheet->table->by)
        qsort(order, n, sizeof *order, largest_first);
    return order;
}

void tare__sheet_rows(tare__sheet *sheet, const char *label, const void *rows, size_t n)
{
    size_t shown = n < TARE__SHEET_ROWS ? n : TARE__SHEET_ROWS;
    tare__sheet_open(sheet, label, rows, n);
    ranked *order = rank_rows(sheet, rows, n);
    sheet->out->failed |= !order;
    for (size_t i = 0; order && i < shown; i++)
        tare__sheet_row(sheet, row_at(sheet, rows, order[i].row), order[i].row);
    free(order);
    tare__sheet_close(sheet);
    if (shown < n)
        tare__text_format(sheet->out, "<p class=\"note\">%zu more rows are in --json.</p>\n", n - shown);
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */
static void put_sentences(tare__text *out, const char *const *sentences, size_t n, const char *before,
                          const char *after)
{
    for (size_t i = 0; i < n; i++) {
        tare__text_string(out, before);
        tare__plain_text(out, sentences[i]);
        tare__text_string(out, after);
    }
}

/* `parent`: for a table nested in rows. */
static void put_section(tare__text *out, const void *of, const tare__table *table, const void *parent, const void *rows,
                        size_t n)
{
    char title[TARE__LABEL_BYTES];
    if (!n || table->page != TARE__PAGE_SHOWN)
        return;
    tare__text_format(out, "<section id=\"%s\"><h2>%s</h2>\n", table->name, tare__table_title(title, table));
    if (table->shape == TARE__SHAPE_VALUES) {
        tare__text_string(out, "<ul class=\"care\">\n");
        put_sentences(out, rows, n, "<li>", "</li>\n");
        tare__text_string(out, "</ul>\n");
    } else {
        tare__sheet sheet = {.out = out, .of = of, .parent = parent, .table = table};
        tare__sheet_rows(&sheet, title, rows, n);
    }
    tare__text_string(out, "</section>\n");
}

void tare__sheet_table(tare__text *out, const void *of, const tare__table *table)
{
    size_t n = tare__table_rows(of, table);
    if (n)
        put_section(out, of, table, NULL, tare__table_row(of, table, 0), n);
}

void tare__sheet_inside(tare__text *out, const void *of, const tare__table *table)
{
    tare__sheet sheet = {.out = out, .of = of, .table = table};
    if (!tare__table_rows(of, table) || table->page != TARE__PAGE_SHOWN)
        return;
    tare__cells_begin(&sheet.cells, of);
    sheet.n = tare__flat_columns(table, sheet.columns);
    for (size_t i = 0; i < sheet.n; i++) {
        place at = place_of(&sheet, &sheet.columns[i], tare__table_row(of, table, 0), 0);
        tare__value value = read(&sheet, &at);
        if (value.type != TARE__TYPE_ROWS || !tare__flat_is_shown(&sheet.columns[i]))
            continue;
        if (at.column->table->shape == TARE__SHAPE_VALUES)
            put_sentences(out, value.rows, value.count, "<p class=\"note\">", "</p>\n");
        else
            put_section(out, of, at.column->table, at.row, value.rows, value.count);
    }
}

void tare__sheet_tiles(tare__text *out, const void *of, const tare__table *table)
{
    char label[TARE__LABEL_BYTES];
    tare__sheet sheet = {.out = out, .of = of, .table = table};
    if (!tare__table_rows(of, table) || table->page != TARE__PAGE_SHOWN)
        return;
    const void *row = tare__table_row(of, table, 0);
    tare__cells_begin(&sheet.cells, of);
    choose_columns(&sheet, row, 1);
    for (size_t i = 0; i < sheet.n; i++) {
        const tare__schema_column *column = sheet.columns[i].column;
        if (!is_cell(&sheet, i) || tare__schema_type(column) == TARE__TYPE_ROWS)
            continue;
        tare__text_string(out, "<div><dt");
        put_meaning(out, column);
        place at = place_of(&sheet, &sheet.columns[i], row, 0);
        tare__value value = read(&sheet, &at);
        tare__text_format(out, ">%s</dt><dd class=\"big %s\"", tare__flat_label(label, &sheet.columns[i]),
                          number_of(&value) > 0 ? column->name : "");
        tare__text_string(out, ">");
        put_values(&sheet, i, row, 0);
        tare__text_string(out, "</dd>");
        if (is_rounded(&value, column->unit))
            tare__text_format(out, "<dd class=\"sub\">%" PRIu64 "%s</dd>", value.count,
                              column->unit == TARE__SHOW_BYTES ? " bytes" : "");
        tare__text_string(out, "</div>");
    }
}

void tare__sheet_key(tare__text *out, const tare__table *table)
{
    char label[TARE__LABEL_BYTES];
    tare__flat columns[TARE__FLAT_MAX];
    size_t n = tare__flat_columns(table, columns);
    tare__text_string(out, "<dl>\n");
    for (size_t i = 0; i < n; i++) {
        if (!tare__flat_is_shown(&columns[i]) || columns[i].column->page == TARE__PAGE_UNDER)
            continue;
        tare__text_format(out, "<dt>%s</dt><dd>", tare__flat_label(label, &columns[i]));
        tare__plain_words(out, columns[i].column->meaning);
        tare__text_string(out, "</dd>\n");
    }
    tare__text_string(out, "</dl>\n");
}
