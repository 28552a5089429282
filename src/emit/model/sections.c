/* model sections: a page of tiles, tables and charts with text supplied by the caller, without a script.
 * Owned by the calling thread.
 * Must not know the meaning of the text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "charts.h"
#include "emit/emit.h"
#include "emit/flush.h"
#include "emit/plain.h"

#define COLUMNS_MAX 16u

static bool is_chart(const tare__page_section *section)
{
    return section->kind >= TARE__PAGE_DISTRIBUTION;
}

/* ---- text ----------------------------------------------------------------------------------------------------- */
static void put_element(tare__text *out, const char *open, const char *text, const char *close)
{
    tare__text_string(out, open);
    tare__plain_text(out, text);
    tare__text_string(out, close);
}

static void put_tiles(tare__text *out, const tare__page_section *section)
{
    tare__text_string(out, "<dl class=\"tiles apart\">");
    for (size_t i = 0; i + 2 < section->n_cells; i += 3) {
        put_element(out, "<div><dt>", section->cells[i], "</dt>");
        put_element(out, "<dd class=\"big\">", section->cells[i + 1], "</dd>");
        put_element(out, "<dd class=\"sub\">", section->cells[i + 2], "</dd></div>");
    }
    tare__text_string(out, "</dl>\n");
}

static void put_list(tare__text *out, const tare__page_section *section)
{
    bool notes = section->kind == TARE__PAGE_NOTES;
    if (!section->n_cells)
        return;
    tare__text_string(out, notes ? "<ul class=\"care\">" : "<ol class=\"actions\">");
    for (size_t i = 0; i < section->n_cells; i++)
        put_element(out, "<li>", section->cells[i], "</li>\n");
    tare__text_string(out, notes ? "</ul>\n" : "</ol>\n");
}

/* ---- tables --------------------------------------------------------------------------------------------------- */
static size_t kinds_of(const char *columns, char kinds[COLUMNS_MAX])
{
    size_t n = 0;
    for (const char *at = columns; *at && n < COLUMNS_MAX; at += strcspn(at, "|"), at += *at == '|')
        kinds[n++] = *at;
    return n;
}

static void put_percent(tare__text *out, const char *text)
{
    char *end;
    double percent = strtod(text, &end);
    tare__text_string(out, "<td>");
    if (end != text && isfinite(percent))
        tare__plain_share(out, percent / 100);
    put_element(out, "", text, "</td>");
}

static void put_table(tare__text *out, const tare__page_section *section)
{
    char kinds[COLUMNS_MAX];
    size_t n = kinds_of(section->columns, kinds);
    tare__text titles = {0};
    tare__plain_text(&titles, section->columns);
    tare__plain_table(out, section->title, true, false);
    for (const char *at = titles.data; at && *at; at += *at == '|') {
        bool figures = *at == '#' || *at == '%';
        size_t length = strcspn(at, "|");
        tare__text_format(out, "<th scope=\"col\"%s>%.*s</th>",
                          at == titles.data ? " class=\"name\"" : figures ? "" : " class=\"words\"",
                          (int)(length - figures), at + figures);
        at += length;
    }
    tare__text_string(out, "</tr></thead>\n<tbody>\n");
    tare__text_end(&titles, out);
    for (size_t i = 0; n && i + n <= section->n_cells; i += n) {
        put_element(out, "<tr><th scope=\"row\" class=\"name\">", section->cells[i], "</th>");
        for (size_t j = 1; j < n; j++) {
            const char *cell = section->cells[i + j];
            if (kinds[j] == '%')
                put_percent(out, cell);
            else
                put_element(out, kinds[j] == '#' ? "<td>" : "<td class=\"words\">", cell, "</td>");
        }
        tare__text_string(out, "</tr>\n");
    }
    tare__plain_table_end(out);
}

/* ---- charts --------------------------------------------------------------------------------------------------- */
static int put_trade_off(tare__text *out, const tare__page_section *section, tare__error *error)
{
    size_t n = section->n_x;
    tare__model_dot *dots = calloc(n + 1, sizeof *dots);
    if (!dots)
        return tare__no_memory(error);
    for (size_t i = 0; i < n; i++)
        dots[i] = (tare__model_dot){section->x[i], section->y[i], section->cells[i], section->z[i] != 0};
    tare__model_trade_off(out, section->columns, dots, n);
    free(dots);
    return 0;
}

static int put_chart(tare__text *out, const tare__page_section *section, tare__error *error)
{
    bool whole = section->kind == TARE__PAGE_DISTRIBUTION ? section->n_x == 2
                 : section->kind == TARE__PAGE_COURSE
                     ? section->n_x == section->n_y && section->n_cells == 3
                     : section->n_x == section->n_y && section->n_x == section->n_z && section->n_x == section->n_cells;
    if (!whole)
        return tare__fail(error, TARE_E_USAGE, "a chart does not have the values it needs");
    switch (section->kind) {
    case TARE__PAGE_DISTRIBUTION:
        tare__model_distribution(out, section->title, section->y, section->n_y, section->x[0], section->x[1]);
        return 0;
    case TARE__PAGE_COURSE:
        tare__model_course(out, section->title, section->columns, section->x, section->y, section->n_x, section->cells);
        return 0;
    default: return put_trade_off(out, section, error);
    }
}

/* ---- the page ------------------------------------------------------------------------------------------------- */
static int put_section(tare__text *out, const tare__page_section *section, tare__error *error)
{
    if (is_chart(section))
        return put_chart(out, section, error);
    tare__text_string(out, "<section>");
    if (*section->title)
        put_element(out, "<h2>", section->title, "</h2>\n");
    if (*section->note)
        put_element(out, "<p class=\"lead\">", section->note, "</p>\n");
    switch (section->kind) {
    case TARE__PAGE_TILES: put_tiles(out, section); break;
    case TARE__PAGE_TABLE: put_table(out, section); break;
    default: put_list(out, section);
    }
    tare__text_string(out, "</section>\n");
    return 0;
}

int tare__emit_sections(const char *title, const char *lead, const tare__page_section *sections, size_t n,
                        const tare__emit_sink *sink, tare__error *error)
{
    tare__text text = {0};
    int status = 0;
    bool charts = false;
    tare__plain_begin(&text, title, title, lead);
    for (size_t i = 0; i < n && !status; i++) {
        if (is_chart(&sections[i]) != charts) {
            charts = !charts;
            tare__text_string(&text, charts ? "<div class=\"plots\">\n" : "</div>\n");
        }
        status = put_section(&text, &sections[i], error);
    }
    if (charts)
        tare__text_string(&text, "</div>\n");
    tare__plain_end(&text);
    return tare__emit_end(&text, status, sink, error);
}
