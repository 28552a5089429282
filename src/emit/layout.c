/* layout: cells, colors and line breaking of the text report.
 * Owned by the calling thread.
 * Must not know what the tables mean. */
#include "layout.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void tare__page_style_on(tare__page *page, tare__page_style style)
{
    static const char *const sequences[] = {"", "\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[36m", "\x1b[1;31m"};
    if (page->options->colour)
        tare__text_string(page->out, sequences[style]);
}

void tare__page_style_off(tare__page *page)
{
    if (page->options->colour)
        tare__text_string(page->out, "\x1b[0m");
}

void tare__page_put(tare__page *page, tare__page_style style, const char *text)
{
    if (style != TARE__PAGE_PLAIN)
        tare__page_style_on(page, style);
    tare__text_string(page->out, text);
    if (style != TARE__PAGE_PLAIN)
        tare__page_style_off(page);
}

void tare__page_name(tare__page *page, unsigned indent, const char *name, unsigned kept)
{
    char fitted[4 * TARE__EMIT_WIDTH_MAX];
    unsigned room = page->name_columns;
    /* Keeps part of the name readable at any depth. */
    unsigned deepest = room > 12 + kept ? room - 12 - kept : 0;
    indent = indent < deepest ? indent : deepest;
    tare__text_fit(fitted, sizeof fitted, name, room - indent - kept);
    tare__text_format(page->out, "%*s%s", (int)indent, "", fitted);
}

void tare__page_label(tare__page *page, unsigned indent, const char *name, const char *mark, tare__page_style style)
{
    tare__page_name(page, indent, name, (unsigned)tare__text_columns(mark, strlen(mark)));
    tare__page_put(page, style, mark);
    tare__text_pad_to(page->out, page->name_columns);
}

void tare__page_cell(tare__page *page, unsigned columns, const char *string)
{
    size_t taken = tare__text_columns(string, strlen(string));
    size_t blanks = taken + 1 < columns ? columns - taken : 1;
    tare__text_format(page->out, "%*s%s", (int)blanks, "", string);
}

void tare__page_cells(tare__page *page, const char *kinds, const double *values)
{
    char unit[TARE__UNIT_BYTES];
    for (; *kinds; kinds++, values++) {
        char kind = (char)tolower((unsigned char)*kinds);
        unsigned columns = kind == 'c' ? TARE__PAGE_COUNT : TARE__PAGE_CELL + (kind != *kinds);
        tare__page_cell(page, columns,
                        kind == 't'   ? tare__unit_time(unit, *values)
                        : kind == 'b' ? tare__unit_bytes(unit, *values)
                        : kind == '%' ? tare__unit_percent(unit, *values)
                                      : tare__unit_count(unit, *values));
    }
}

void tare__page_row(tare__page *page, unsigned indent, const char *name, const char *mark, const char *kinds,
                    const double *values)
{
    tare__page_label(page, indent, name, mark, TARE__PAGE_PLAIN);
    tare__page_cells(page, kinds, values);
    tare__page_line_end(page);
}

void tare__page_line_end(tare__page *page)
{
    tare__text_string(page->out, "\n");
}

void tare__page_heading(tare__page *page, const char *title)
{
    tare__page_line_end(page);
    tare__page_put(page, TARE__PAGE_STRONG, title);
    tare__page_line_end(page);
}

void tare__page_columns(tare__page *page, const char *title, const char *names, const unsigned *widths)
{
    tare__page_line_end(page);
    tare__page_put(page, TARE__PAGE_STRONG, title);
    tare__text_pad_to(page->out, page->name_columns);
    tare__page_style_on(page, TARE__PAGE_FAINT);
    for (size_t i = 0; *names; i++) {
        char cell[32];
        size_t length = strcspn(names, "|");
        snprintf(cell, sizeof cell, "%.*s", (int)length, names);
        tare__page_cell(page, widths ? widths[i] : i ? TARE__PAGE_CELL : TARE__PAGE_COUNT, cell);
        names += length + (names[length] == '|');
    }
    tare__page_style_off(page);
    tare__page_line_end(page);
}

void tare__page_title(tare__page *page, const char *title, const char *columns)
{
    tare__page_columns(page, title, columns, NULL);
}

void tare__page_more(tare__page *page, size_t more, const char *what)
{
    char count[TARE__UNIT_BYTES];
    size_t length = strlen(what);
    if (more == 0)
        return;
    if (more == 1 && length >= 4 && what[length - 1] == 's') /* singular: one row, one process */
        length -= strcmp(what + length - 4, "sses") == 0 ? 2 : 1;
    tare__page_style_on(page, TARE__PAGE_FAINT);
    tare__text_format(page->out, "… %s more %.*s; --all shows %s", tare__unit_count(count, (double)more),
                      (int)length, what, more == 1 ? "it" : "them");
    tare__page_style_off(page);
    tare__page_line_end(page);
}

size_t tare__page_rows(const tare__page *page, size_t n, size_t few)
{
    return page->options->all || n <= few + 1 ? n : few;
}

/* Whether a break between these words would separate a number from its unit. */
static bool belongs_together(const char *word, size_t length, const char *next)
{
    static const char *const units[] = {"ns",  "µs",  "ms", "s",   "B", "KiB", "MiB",
                                        "GiB", "TiB", "%",  "CPU", "W", "J"};
    size_t next_length = strcspn(next, " ,;)");
    if (word[0] == '#')
        return true;
    for (size_t i = 0; i < TARE__COUNT_OF(units) && length > 0; i++) {
        if (next_length == strlen(units[i]) && memcmp(next, units[i], next_length) == 0)
            return true;
    }
    return false;
}

/* Bytes up to the next position where the line may be broken. */
static size_t unbroken(const char *text)
{
    size_t length = strcspn(text, " ");
    for (size_t start = 0;
         text[length] == ' ' && belongs_together(text + start, length - start, text + length + 1);) {
        start = length + 1;
        length = start + strcspn(text + start, " ");
    }
    return length;
}

static size_t column_of(const tare__text *text)
{
    size_t start = text->length;
    while (start > 0 && text->data[start - 1] != '\n')
        start--;
    return start < text->length ? tare__text_columns(text->data + start, text->length - start) : 0;
}

void tare__page_sentence_in(tare__page *page, unsigned hang, const char *sentence, size_t lines)
{
    size_t width = page->options->width, column = column_of(page->out);
    for (bool first = true; *sentence; first = false) {
        char words[1024], shown[1024];
        size_t length = unbroken(sentence), after = length + strspn(sentence + length, " ");
        bool last_line = lines <= 1, more = sentence[after] != '\0';
        snprintf(words, sizeof words, "%.*s", (int)length, sentence);
        tare__text_fit(shown, sizeof shown, words, width - hang);
        size_t columns = tare__text_columns(shown, strlen(shown));
        /* On the last line, space is reserved for the truncation mark. */
        size_t needed = (first ? 0 : 1) + columns + (last_line && more ? 2 : 0);
        if (!first && column + needed > width && last_line) {
            tare__text_string(page->out, " …");
            return;
        }
        if (!first && column + 1 + columns > width) {
            tare__text_format(page->out, "\n%*s", (int)hang, "");
            column = hang;
            lines--;
        } else if (!first) {
            tare__text_string(page->out, " ");
            column++;
        }
        tare__text_string(page->out, shown);
        column += columns;
        sentence += after;
    }
}

void tare__page_sentence(tare__page *page, unsigned hang, const char *sentence)
{
    tare__page_sentence_in(page, hang, sentence, TARE__PAGE_ENDLESS);
}

static void say_in(tare__page *page, tare__page_style style, unsigned hang, const char *sentence, size_t lines)
{
    if (style != TARE__PAGE_PLAIN)
        tare__page_style_on(page, style);
    tare__page_sentence_in(page, hang, sentence, lines);
    if (style != TARE__PAGE_PLAIN)
        tare__page_style_off(page);
    tare__page_line_end(page);
}

void tare__page_say(tare__page *page, tare__page_style style, unsigned hang, const char *sentence)
{
    say_in(page, style, hang, sentence, TARE__PAGE_ENDLESS);
}

void tare__page_words(tare__page *page, tare__page_style style, unsigned hang, tare__text *words, size_t lines)
{
    say_in(page, style, hang, words->failed || !words->data ? "" : words->data, lines);
    tare__text_end(words, page->out);
}

static void put_page_label(tare__page *page, tare__page_style style, const char *label)
{
    tare__page_put(page, style, label);
    tare__text_pad_to(page->out, TARE__PAGE_LABEL);
}

void tare__page_labelled(tare__page *page, tare__page_style style, const char *label, const char *sentence)
{
    put_page_label(page, style, label);
    tare__page_say(page, TARE__PAGE_PLAIN, TARE__PAGE_LABEL, sentence);
}

void tare__page_labelled_words(tare__page *page, const char *label, tare__text *words)
{
    put_page_label(page, TARE__PAGE_STRONG, label);
    tare__page_words(page, TARE__PAGE_PLAIN, TARE__PAGE_LABEL, words, TARE__PAGE_ENDLESS);
}

const char *tare__page_spark(double share)
{
    static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    return heights[share >= 1 ? 7 : share > 0 ? (int)(share * 8) : 0];
}

size_t tare__page_lines_of(const tare__text *text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text->length; i++)
        lines += text->data[i] == '\n';
    return lines;
}
