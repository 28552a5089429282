/* figures_json: reads lists of figures: the baseline file, or a report that contains one. Validates all input.
 * Owned by the calling thread.
 * Must not know where the text comes from. */
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "figures.h"
#include "stat/stat.h"

#define FIGURES_MAX ((size_t)200000)
#define NAME_MAX_BYTES ((size_t)4096)
#define NOTES_MAX ((size_t)1000)

typedef struct parser {
    tare__json_reader json;
    const char *name;
    tare__figures *into;
    tare__error *error;
    bool has_figures;
    double version; /* NaN: none yet */
    double *samples;
    size_t samples_room;
    tare__text key;
} parser;

static int wrong(parser *parser, const char *what)
{
    return tare__fail(parser->error, TARE_E_INPUT, "%.200s: byte %llu: %s", parser->name,
                      (unsigned long long)parser->json.offset, what);
}

static int broken(parser *parser)
{
    return wrong(parser, parser->json.wrong ? parser->json.wrong : "this is not JSON");
}

static int other_than(parser *parser, tare__json_token token, const char *due)
{
    return token == TARE__JSON_BROKEN ? broken(parser) : wrong(parser, due);
}

static int no_memory(parser *parser)
{
    return tare__fail(parser->error, TARE_E_MEMORY, "out of memory while reading %.200s", parser->name);
}

/* Reads the next key of an object into parser->key: 1; 0 at its end. */
static int next_key(parser *parser)
{
    tare__json_token token = tare__json_next(&parser->json);
    if (token == TARE__JSON_END_OBJECT)
        return 0;
    if (token != TARE__JSON_KEY)
        return broken(parser);
    tare__text_clear(&parser->key);
    tare__text_append(&parser->key, parser->json.text, parser->json.length);
    return parser->key.failed ? no_memory(parser) : 1;
}

static bool key_is(const parser *parser, const char *word)
{
    return parser->key.length == strlen(word) &&
           memcmp(parser->key.data ? parser->key.data : "", word, strlen(word)) == 0;
}

static int skip(parser *parser, tare__json_token token)
{
    return tare__json_skip(&parser->json, token) == TARE__JSON_BROKEN ? broken(parser) : 0;
}

/* A text, or null. */
static int take_text(parser *parser, const char **into)
{
    tare__json_token token = tare__json_next(&parser->json);
    if (token == TARE__JSON_NULL)
        return 0;
    if (token != TARE__JSON_STRING || parser->json.length > NAME_MAX_BYTES)
        return other_than(parser, token, "expected a string of at most 4,096 bytes");
    if (memchr(parser->json.text, '\0', parser->json.length))
        return wrong(parser, "a string contains a NUL");
    *into = tare__arena_copy(parser->into->arena, parser->json.text, parser->json.length);
    return *into ? 0 : no_memory(parser);
}

/* A number, or null, which is NaN. */
static int take_number(parser *parser, double *into)
{
    tare__json_token token = tare__json_next(&parser->json);
    if (token != TARE__JSON_NUMBER && token != TARE__JSON_NULL)
        return other_than(parser, token, "expected a number");
    *into = token == TARE__JSON_NULL ? NAN : tare__json_double_of(parser->json.text, parser->json.length);
    return 0;
}

static int take_count(parser *parser, uint64_t *into)
{
    int64_t value = 0;
    tare__json_token token = tare__json_next(&parser->json);
    bool whole = token == TARE__JSON_NUMBER && tare__json_scaled(parser->json.text, parser->json.length, 1, &value);
    if (token != TARE__JSON_NULL && (!whole || value < 0))
        return other_than(parser, token, "expected an integer of at least 0");
    *into = (uint64_t)value;
    return 0;
}

static int take_bool(parser *parser, bool *into)
{
    tare__json_token token = tare__json_next(&parser->json);
    if (token != TARE__JSON_TRUE && token != TARE__JSON_FALSE)
        return other_than(parser, token, "expected true or false");
    *into = token == TARE__JSON_TRUE;
    return 0;
}

static int take_better(parser *parser, tare__better *into)
{
    const char *word = NULL;
    int status = take_text(parser, &word);
    for (tare__better better = TARE__NEITHER; !status && better <= TARE__HIGHER; better++)
        if (word && strcmp(word, tare__better_word(better)) == 0) {
            *into = better;
            return 0;
        }
    return status ? status : wrong(parser, "\"better\" is not lower, higher or neither");
}

static int take_samples(parser *parser, tare__figure *figure)
{
    tare__json_token token = tare__json_next(&parser->json);
    figure->n_samples = 0;
    if (token == TARE__JSON_NULL)
        return 0;
    if (token != TARE__JSON_ARRAY)
        return other_than(parser, token, "expected an array of numbers");
    while ((token = tare__json_next(&parser->json)) == TARE__JSON_NUMBER) {
        double value = tare__json_double_of(parser->json.text, parser->json.length);
        if (figure->n_samples == TARE__FIGURE_SAMPLES_MAX)
            return wrong(parser, "a figure has more than 1,000 samples");
        if (!isfinite(value))
            return wrong(parser, "a sample is too large");
        if (!tare__array_fit(&parser->samples, &parser->samples_room, figure->n_samples + 1, sizeof(double)))
            return no_memory(parser);
        parser->samples[figure->n_samples++] = value;
    }
    return token == TARE__JSON_END_ARRAY ? 0 : other_than(parser, token, "a sample is not a number");
}

/* Reads the value of a column stored directly in the row; computed columns are handled separately. Unknown keys are
 * skipped. */
static int take_column(parser *parser, const tare__table *table, void *row)
{
    const tare__schema_column *column =
        tare__schema_find_column(table, parser->key.data ? parser->key.data : "", parser->key.length);
    void *at = (char *)row + (column ? column->at : 0);
    switch (column ? (int)column->stored : -1) {
    case TARE__STORED_TEXT: return take_text(parser, at);
    case TARE__STORED_DOUBLE: return take_number(parser, at);
    case TARE__STORED_U64:
    case TARE__STORED_U64_OR_0: return take_count(parser, at);
    case TARE__STORED_BOOL: return take_bool(parser, at);
    default: return skip(parser, tare__json_next(&parser->json));
    }
}

static int take_figure_key(parser *parser, tare__figure *figure)
{
    if (key_is(parser, "better"))
        return take_better(parser, &figure->better);
    if (key_is(parser, "samples"))
        return take_samples(parser, figure);
    return take_column(parser, &tare__table_figures, figure);
}

static int check_figure(parser *parser, const tare__figure *figure)
{
    if (!figure->name || !*figure->name)
        return wrong(parser, "a figure has no name");
    if (isinf(figure->value) || isinf(figure->total))
        return wrong(parser, "a value is too large");
    if (figure->n_samples && (!figure->each || figure->each & (figure->each - 1)))
        return wrong(parser, "\"each\" is not a power of two");
    if (parser->into->n >= FIGURES_MAX)
        return wrong(parser, "there are more than 200,000 figures");
    return 0;
}

static int take_figure(parser *parser)
{
    tare__figure figure = {.unit = "", .value = NAN, .total = NAN, .each = 1};
    int status;
    while ((status = next_key(parser)) == 1) {
        status = take_figure_key(parser, &figure);
        if (status)
            return status;
    }
    if (!status)
        status = check_figure(parser, &figure);
    if (status)
        return status;
    figure.samples = parser->samples;
    if (!figure.unit)
        figure.unit = "";
    return tare__figures_add(parser->into, &figure) ? no_memory(parser) : 0;
}

static int take_notes(parser *parser)
{
    tare__json_token token = tare__json_next(&parser->json);
    if (token != TARE__JSON_ARRAY)
        return skip(parser, token);
    while ((token = tare__json_next(&parser->json)) == TARE__JSON_STRING) {
        if (parser->into->n_notes == NOTES_MAX || memchr(parser->json.text, '\0', parser->json.length))
            continue;
        const char *copy = tare__arena_copy(parser->into->arena, parser->json.text, parser->json.length);
        if (!copy || !tare__array_fit(&parser->into->notes, &parser->into->notes_room, parser->into->n_notes + 1,
                                      sizeof(char *)))
            return no_memory(parser);
        parser->into->notes[parser->into->n_notes++] = copy;
    }
    return token == TARE__JSON_END_ARRAY ? 0 : other_than(parser, token, "a note is not a string");
}

static int take_object(parser *parser, bool inner);

/* A list contains the figures; an object, in a report, contains them together with their metadata. */
static int take_figures(parser *parser, bool inner)
{
    tare__json_token token = tare__json_next(&parser->json);
    if (token == TARE__JSON_OBJECT && !inner)
        return take_object(parser, true);
    if (token != TARE__JSON_ARRAY)
        return other_than(parser, token, "expected an array of figures");
    if (parser->has_figures)
        return wrong(parser, "\"figures\" appears twice");
    parser->has_figures = true;
    while ((token = tare__json_next(&parser->json)) == TARE__JSON_OBJECT) {
        int status = take_figure(parser);
        if (status)
            return status;
    }
    return token == TARE__JSON_END_ARRAY ? 0 : other_than(parser, token, "a figure is not an object");
}

/* The version comes first, so that a newer format is rejected as such and not as malformed. */
static int take_version(parser *parser)
{
    int status = take_number(parser, &parser->version);
    if (!status && parser->version > TARE__BASELINE_VERSION)
        return tare__fail(parser->error, TARE_E_VERSION,
                          "%.200s: a baseline of version %.0f; this Tare reads version %d", parser->name,
                          parser->version, TARE__BASELINE_VERSION);
    return status;
}

/* Keys of the object that contains the figures. At the top of a report the same keys may have other meanings. */
static int take_key(parser *parser, bool inner)
{
    if (key_is(parser, "tare_baseline"))
        return take_version(parser);
    if (key_is(parser, "figures"))
        return take_figures(parser, inner);
    if (isnan(parser->version)) /* a baseline begins with its version */
        return skip(parser, tare__json_next(&parser->json));
    if (key_is(parser, "notes"))
        return take_notes(parser);
    return take_column(parser, tare__document_baseline.tables[0], parser->into);
}

static int take_object(parser *parser, bool inner)
{
    int status;
    while ((status = next_key(parser)) == 1) {
        status = take_key(parser, inner);
        if (status)
            return status;
    }
    return status;
}

static int take_document(parser *parser)
{
    tare__json_token token = tare__json_next(&parser->json);
    if (token != TARE__JSON_OBJECT)
        return other_than(parser, token, "a baseline must be an object");
    int status = take_object(parser, false);
    if (status)
        return status;
    if (tare__json_next(&parser->json) != TARE__JSON_END)
        return broken(parser);
    if (isnan(parser->version) || !parser->has_figures)
        return tare__fail(parser->error, TARE_E_INPUT,
                          "%.200s: no figures in it: neither a baseline of `tare baseline save` nor a report of `tare "
                          "model --json`", parser->name);
    if (parser->version != TARE__BASELINE_VERSION)
        return tare__fail(parser->error, TARE_E_INPUT, "%.200s: \"tare_baseline\" is not %d", parser->name,
                          TARE__BASELINE_VERSION);
    return 0;
}

int tare__figures_read_json(const char *text, size_t length, const char *name, tare__figures **figures,
                            tare__error *error)
{
    tare__memory_source source = {text, length};
    parser parser = {.name = name, .error = error, .version = NAN, .into = tare__figures_new("baseline")};
    *figures = NULL;
    if (!parser.into)
        return no_memory(&parser);
    if (!tare__json_reader_open(&parser.json, tare__memory_read, &source)) {
        tare__figures_free(parser.into);
        return no_memory(&parser);
    }
    int status = take_document(&parser);
    tare__json_reader_close(&parser.json);
    tare__text_free(&parser.key);
    free(parser.samples);
    if (!status && !parser.into->kind)
        parser.into->kind = "baseline";
    if (!status && !parser.into->runs)
        parser.into->runs = 1;
    if (!status && parser.into->runs == 1)
        tare__figures_are_of_one_run(parser.into);
    if (status)
        tare__figures_free(parser.into);
    *figures = status ? NULL : parser.into;
    return status;
}
