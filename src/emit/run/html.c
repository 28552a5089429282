/* html: the run as one self-contained page: its data as JSON between the two parts that the build makes of page/.
 * Owned by the calling thread.
 * Must not know how the page draws, nor where the bytes go. */
#include "html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "html_page.h"

const tare__html_limits tare__html_limits_of_a_page = {
    .spans = 6000,
    .rows = 4000,
    .points = 100000,
};

/* ---- JSON escaped for use inside <script> ------------------------------------------------------- */
/* In JSON these characters occur only in strings, where a \u escape is equivalent. Without them no text can end the
 * element, begin another one or a comment, or (U+2028, U+2029) end a line for JavaScript parsers. */
static size_t unsafe_at(const char *at, size_t left, const char **instead)
{
    static const struct {
        const char *text, *instead;
    } all[] = {
        {"<", "\\u003c"},
        {">", "\\u003e"},
        {"&", "\\u0026"},
        {"\xe2\x80\xa8", "\\u2028"},
        {"\xe2\x80\xa9", "\\u2029"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(all); i++) {
        size_t length = strlen(all[i].text);
        if (length <= left && memcmp(at, all[i].text, length) == 0) {
            *instead = all[i].instead;
            return length;
        }
    }
    return 0;
}

static void make_safe(const tare__text *text, tare__text *safe)
{
    size_t clean = 0;
    for (size_t at = 0; at < text->length;) {
        const char *instead;
        char byte = text->data[at];
        bool maybe = byte == '<' || byte == '>' || byte == '&' || byte == '\xe2';
        size_t length = maybe ? unsafe_at(text->data + at, text->length - at, &instead) : 0;
        if (length == 0) {
            at++;
            continue;
        }
        tare__text_append(safe, text->data + clean, at - clean);
        tare__text_string(safe, instead);
        clean = at += length;
    }
    tare__text_append(safe, text->data + clean, text->length - clean);
}

static void hand_on(tare__html *page)
{
    if (page->status)
        return;
    if (page->text.failed) {
        page->status = tare__emit_flush(&page->text, page->sink, page->error);
        return;
    }
    if (page->text.length > 0)
        make_safe(&page->text, &page->safe);
    tare__text_clear(&page->text);
    page->status = tare__emit_flush(&page->safe, page->sink, page->error);
}

/* ---- values ------------------------------------------------------------------------------------- */
void tare__html_ns(tare__html *page, double ns)
{
    if (isfinite(ns) && fabs(ns) < 9e15)
        tare__json_signed(&page->json, (int64_t)llround(ns));
    else
        tare__json_double(&page->json, ns);
}

void tare__html_known(tare__html *page, int64_t value)
{
    if (value == 0)
        tare__json_null(&page->json);
    else
        tare__json_signed(&page->json, value);
}

void tare__html_figure(tare__html *page, double value)
{
    if (isfinite(value) && value == floor(value) && fabs(value) < 9e15) {
        tare__json_signed(&page->json, (int64_t)value);
        return;
    }
    char text[32];
    tare__text_double(text, sizeof text, 'g', 9, value);
    tare__json_double(&page->json, isfinite(value) ? strtod(text, NULL) : value);
}

void tare__html_key_ns(tare__html *page, const char *key, double ns)
{
    tare__json_key(&page->json, key);
    tare__html_ns(page, ns);
}

void tare__html_key_figure(tare__html *page, const char *key, double value)
{
    tare__json_key(&page->json, key);
    tare__html_figure(page, value);
}

/* ---- tables ------------------------------------------------------------------------------------- */
void tare__html_open_table(tare__html *page, const char *key, const char *columns)
{
    tare__json_key(&page->json, key);
    tare__json_object(&page->json);
    tare__json_key(&page->json, "columns");
    tare__json_array(&page->json);
    for (const char *at = columns; *at;) {
        size_t length = strcspn(at, " ");
        tare__json_text(&page->json, at, length);
        at += length + (at[length] == ' ');
    }
    tare__json_end_array(&page->json);
    tare__json_key(&page->json, "rows");
    tare__json_array(&page->json);
}

void tare__html_open_row(tare__html *page)
{
    tare__json_array(&page->json);
}

void tare__html_close_row(tare__html *page)
{
    tare__json_end_array(&page->json);
    if (page->text.length >= TARE__EMIT_PIECE || page->text.failed)
        hand_on(page);
}

void tare__html_close_table(tare__html *page, size_t left_out)
{
    tare__json_end_array(&page->json);
    tare__json_put_unsigned(&page->json, "left_out", left_out);
    tare__json_end_object(&page->json);
}

void tare__html_table(tare__html *page, const char *key, const char *columns, size_t n, size_t left_out,
                      tare__html_put_row *put)
{
    tare__html_open_table(page, key, columns);
    for (size_t i = 0; i < n && !page->status; i++) {
        tare__html_open_row(page);
        put(page, i);
        tare__html_close_row(page);
    }
    tare__html_close_table(page, left_out);
}

/* ---- the output --------------------------------------------------------------------------------- */
static void put_part(tare__html *page, const char *data, size_t bytes)
{
    if (!page->status && page->sink->write(page->sink->context, data, bytes) != 0)
        page->status = TARE_E_SYSTEM;
}

static void put_data(tare__html *page)
{
    tare__json_begin(&page->json, &page->text, false);
    tare__json_object(&page->json);
    tare__html_tables(page);
    tare__html_heat(page);
    tare__html_stacks(page);
    tare__html_timeline(page);
    tare__json_end_object(&page->json);
    hand_on(page);
}

int tare__html_write(const tare__emit_input *input, const tare__html_limits *limits, const tare__emit_sink *sink,
                     tare__error *error)
{
    tare__html page = {.analysis = input->analysis,
                       .timeline = input->timeline,
                       .sources = input->sources,
                       .n_sources = input->n_sources,
                       .limits = limits,
                       .sink = sink,
                       .error = error};
    tare__cells_begin(&page.cells, input->analysis);
    put_part(&page, tare__html_before_data, tare__html_before_data_bytes);
    put_data(&page);
    put_part(&page, tare__html_after_data, tare__html_after_data_bytes);
    tare__text_free(&page.text);
    tare__text_free(&page.safe);
    return page.status;
}

static int emit_html(const tare__emit_input *input, const tare__emit_options *options,
                     const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    return tare__html_write(input, &tare__html_limits_of_a_page, sink, error);
}

const tare__emitter tare__emit_html = {
    .name = "html",
    .needs = TARE__EMIT_TABLES | TARE__EMIT_TIMELINE,
    .emit = emit_html,
};
