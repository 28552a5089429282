/* Tests of the JSON report: golden output, strict grammar, promised keys, failing sinks and memory.
 * One thread.
 * Must not know traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>

#include "analyze/analyze.h"
#include "base_failing.h"
#include "emit_golden.h"
#include "emit_sample.h"

static tare__text render(const tare__analysis *analysis, bool pretty)
{
    kept kept = {0};
    tare__error error = {""};
    tare__emit_sink sink = sink_of(&kept);
    tare__emit_input input = {.analysis = analysis};
    tare__emit_options options = {.pretty = pretty};
    assert_int_equal(tare__emit_json.emit(&input, &options, &sink, &error), 0);
    return kept.text;
}

/* ---- a strict reader that only says yes or no: RFC 8259, ASCII control characters refused -------- */
static const char *skip_value(const char *at, int depth);

/* Not strspn and strncmp: under ASan's strict_string_checks each call walks to the text's end. */
static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\n')
        at++;
    return at;
}

static const char *skip_digits(const char *at)
{
    while (isdigit((unsigned char)*at))
        at++;
    return at;
}

static const char *skip_word(const char *at, const char *word)
{
    while (*word && *at == *word)
        at++, word++;
    return *word ? NULL : at;
}

static const char *skip_string(const char *at)
{
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20)
            return NULL;
        if (*at == '\\' && !strchr("\"\\/bfnrtu", *++at))
            return NULL;
    }
    return at + 1;
}

static const char *skip_number(const char *at)
{
    at += *at == '-';
    if (!isdigit((unsigned char)*at) || (*at == '0' && isdigit((unsigned char)at[1])))
        return NULL;
    at = skip_digits(at);
    if (*at == '.') {
        const char *digits = skip_digits(at + 1);
        if (digits == at + 1)
            return NULL;
        at = digits;
    }
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+' || at[1] == '-');
        if (!isdigit((unsigned char)*at))
            return NULL;
        at = skip_digits(at);
    }
    return at;
}

static const char *skip_members(const char *at, char closing, int depth)
{
    at = skip_blanks(at + 1);
    if (*at == closing)
        return at + 1;
    for (;;) {
        if (closing == '}') {
            at = skip_string(skip_blanks(at));
            if (!at || *(at = skip_blanks(at)) != ':')
                return NULL;
            at++;
        }
        at = skip_value(at, depth + 1);
        if (!at)
            return NULL;
        at = skip_blanks(at);
        if (*at == closing)
            return at + 1;
        if (*at++ != ',')
            return NULL;
    }
}

static const char *skip_value(const char *at, int depth)
{
    static const char *const words[] = {"true", "false", "null"};
    at = skip_blanks(at);
    if (depth > 100)
        return NULL;
    if (*at == '{' || *at == '[')
        return skip_members(at, *at == '{' ? '}' : ']', depth);
    if (*at == '"')
        return skip_string(at);
    for (size_t i = 0; i < COUNT(words); i++) {
        const char *after = skip_word(at, words[i]);
        if (after)
            return after;
    }
    return skip_number(at);
}

static bool is_json(const char *text)
{
    const char *end = skip_value(text, 0);
    return end && *skip_blanks(end) == '\0';
}

static void the_reader_is_strict(void **state)
{
    (void)state;
    assert_true(is_json("{\"a\":[1,-2.5e3,\"x\\n\",true,null,{}]}\n"));
    static const char *const wrong[] = {"",      "{",    "[1,]",   "{\"a\"}",   "{a:1}", "[01]",
                                        "[nan]", "[1.]", "\"\t\"", "[\"\\x\"]", "{} {}", "[1 2]"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(is_json(wrong[i]));
}

/* ---- the report ---------------------------------------------------------------------------------- */
static void reports_are_as_they_were(void **state)
{
    (void)state;
    tare__text text = render(&train, true);
    assert_true(is_json(text.data));
    assert_golden("train.json", &text);
    tare__text_free(&text);
    text = render(&damaged, true);
    assert_true(is_json(text.data));
    assert_golden("damaged.json", &text);
    tare__text_free(&text);
}

static void one_line_says_the_same(void **state)
{
    (void)state;
    tare__text pretty = render(&train, true), plain = render(&train, false), squeezed = {0};
    bool quoted = false;
    for (const char *at = pretty.data; *at; at++) {
        if (*at == '"' && at[-1] != '\\')
            quoted = !quoted;
        if (quoted || (*at != ' ' && *at != '\n'))
            tare__text_append(&squeezed, at, 1);
    }
    tare__text_string(&squeezed, "\n");
    assert_string_equal(plain.data, squeezed.data);
    assert_int_equal(strchr(plain.data, '\n') - plain.data, plain.length - 1);
    tare__text_free(&pretty);
    tare__text_free(&plain);
    tare__text_free(&squeezed);
}

/* What docs/JSON.md promises; a key that goes away is a new version of the schema. */
static void promised_keys_are_there(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "{\"schema\":{\"name\":\"tare-report\",\"version\":1,\"minor\":7}",
        "\"run\":{\"command\":\"./train --epochs 3\"",
        "\"arguments\":[\"./train\",\"--epochs\",\"3\"]",
        "\"exit_status\":0",
        "\"notes\":[\"41 spans",
        "\"tare\":{",
        "\"groups\":[]",
        "\"spans\":[{\"name\":\"train\",\"calls\":1,\"total_ns\":2460000000,",
        "\"self_ns\":1200000,\"raw_self_ns\":1250000",
        "\"path\":[\"train\",\"epoch\",\"step\",\"forward\",\"matmul\"]",
        "\"depth\":0,\"parent\":null",
        "\"depth\":4,\"parent\":3",
        "\"kind\":\"others\"",
        "\\u001b[31m\\tred\"",
        "\"steps\":[{",
        "\"epochs\":[{",
        "\"operators\":[",
        "\"modules\":[",
        "\"needed\":6,\"reason\":\"too few steps\"",
        "\"aggregates\":[{",
        "\"counters\":[{",
        "\"marks\":[{",
        "\"tracks\":[{",
        "\"threads\":[{",
        "\"processes\":[{",
    };
    tare__text text = render(&train, false);
    for (size_t i = 0; i < COUNT(keys); i++) {
        if (!strstr(text.data, keys[i]))
            fail_msg("not there: %s", keys[i]);
    }
    tare__text_free(&text);
}

/* ---- docs/JSON.md --------------------------------------------------------------------------------- */
static const char *type_words[] = {
    [TARE__TYPE_TEXT] = "string",  [TARE__TYPE_NUMBER] = "number", [TARE__TYPE_SIGNED] = "integer",
    [TARE__TYPE_COUNT] = "integer", [TARE__TYPE_FLAG] = "boolean", [TARE__TYPE_TEXTS] = "array of strings",
    [TARE__TYPE_NUMBERS] = "array of numbers",
};

static void tell_type(tare__text *to, const tare__schema_column *column)
{
    tare__type type = tare__schema_type(column);
    switch (type) {
    case TARE__TYPE_ROW: tare__text_format(to, "row in `%s`", column->table->name); break;
    case TARE__TYPE_PART: tare__text_format(to, "object: `%s`, below", column->table->name); break;
    case TARE__TYPE_ROWS:
        if (column->table->shape == TARE__SHAPE_VALUES)
            tare__text_format(to, "array of %s", tare__schema_type(column->table->columns) == TARE__TYPE_TEXT
                                                     ? "strings" : "numbers");
        else
            tare__text_format(to, "array of `%s`, below", column->table->name);
        break;
    default: tare__text_string(to, type_words[type]);
    }
}

static void tell_columns(tare__text *to, const tare__table *table, const tare__table **told, size_t *n_told)
{
    tare__text_string(to, "| key | type | unit | |\n|---|---|---|---|\n");
    for (size_t i = 0; i < table->n_columns; i++) {
        const tare__schema_column *column = &table->columns[i];
        const char *unit = column->unit == TARE__SHOW_VARIES ? "`unit`" : tare__unit_word(column->unit);
        bool plain = !unit || column->unit == TARE__SHOW_COUNT;
        tare__text_format(to, "| `%s` | ", column->name);
        tell_type(to, column);
        tare__text_format(to, " | %s | %s |\n", plain ? "" : unit, column->meaning);
    }
    for (size_t i = 0; i < table->n_columns; i++) {
        const tare__schema_column *column = &table->columns[i];
        tare__type type = tare__schema_type(column);
        bool known = (type != TARE__TYPE_PART && type != TARE__TYPE_ROWS) || column->table->shape == TARE__SHAPE_VALUES;
        for (size_t k = 0; k < *n_told; k++)
            known |= told[k] == column->table;
        if (known)
            continue;
        told[(*n_told)++] = column->table;
        tare__text_format(to, "\n`%s`: %s%s\n\n", column->table->name, column->table->meaning,
                          column->table->shape == TARE__SHAPE_TUPLES ? "; an array of the values in this order" : "");
        tell_columns(to, column->table, told, n_told);
    }
}

static void tell_table(tare__text *to, const tare__table *table, const tare__table **told, size_t *n_told)
{
    static const char *const shapes[] = {
        [TARE__SHAPE_ROWS] = "An array; a row is", [TARE__SHAPE_TUPLES] = "An array; a row is",
        [TARE__SHAPE_SINGLE] = "One object", [TARE__SHAPE_VALUES] = "An array of strings"};
    if (table->shape == TARE__SHAPE_TOP)
        tare__text_string(to, "At the top of the object:\n\n");
    else
        tare__text_format(to, "### `%s`\n\n%s: %s.\n\n", table->name, shapes[table->shape], table->meaning);
    if (table->shape != TARE__SHAPE_VALUES)
        tell_columns(to, table, told, n_told);
    tare__text_string(to, "\n");
}

/* Parts of docs/JSON.md between marks are made from the schema; with TARE_GOLDEN=write they are written anew. */
static void the_documentation_is_of_the_schema(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const tare__document *of;
    } documents[] = {{"report", &tare__document_report},
                     {"check", &tare__document_check},
                     {"compare", &tare__document_compare},
                     {"history list", &tare__document_history_list},
                     {"history show", &tare__document_history_show},
                     {"history trend", &tare__document_history_trend},
                     {"baseline", &tare__document_baseline},
                     {"doctor", &tare__document_doctor},
                     {"model", &tare__document_model}};
    for (size_t i = 0; i < COUNT(documents); i++) {
        const tare__table *told[64];
        size_t n_told = 0;
        tare__text part = {0};
        for (size_t k = 0; k < documents[i].of->n_tables; k++)
            tell_table(&part, documents[i].of->tables[k], told, &n_told);
        assert_part_of_document("JSON.md", documents[i].name, "emit_json", &part);
        tare__text_free(&part);
    }
}

static void deep_trees_stay_small(void **state)
{
    (void)state;
    enum { DEPTH = 20000 };
    tare__span_row *rows = calloc(DEPTH, sizeof *rows);
    assert_non_null(rows);
    for (uint32_t i = 0; i < DEPTH; i++)
        rows[i] = (tare__span_row){.name = "recurse",
                                   .kind = TARE_KIND_SPAN,
                                   .group = TARE__NO_ROW,
                                   .depth = i,
                                   .parent = i ? i - 1 : TARE__NO_ROW,
                                   .n_rows = DEPTH - 1 - i,
                                   .calls = 1};
    tare__analysis deep = damaged;
    deep.spans = rows;
    deep.n_spans = DEPTH;
    tare__text text = render(&deep, false);
    assert_true(is_json(text.data));
    assert_true(text.length < DEPTH * 600u + 256u * 256u * 12u);
    assert_non_null(strstr(text.data, "\"depth\":256,\"parent\":255,\"path\":null"));
    tare__text_free(&text);
    free(rows);
}

static void a_refusing_sink_ends_it(void **state)
{
    (void)state;
    crowd *crowd = make_crowd(true);
    tare__emit_input input = {.analysis = &crowd->tables};
    tare__emit_options options = {0};
    unsigned writes = 1;
    for (;; writes++) {
        kept kept = {.refuse = writes};
        tare__error error = {""};
        tare__emit_sink sink = sink_of(&kept);
        int status = tare__emit_json.emit(&input, &options, &sink, &error);
        bool refused = kept.writes == writes;
        assert_true(kept.writes <= writes);
        tare__text_free(&kept.text);
        assert_int_equal(status, refused ? TARE_E_SYSTEM : 0);
        assert_string_equal(error.text, "");
        if (!refused)
            break;
    }
    assert_true(writes > 2);
    free_crowd(crowd);
}

static int drop(void *context, const void *data, size_t bytes)
{
    (void)context, (void)data, (void)bytes;
    return 0;
}

static void out_of_memory_is_said(void **state)
{
    (void)state;
    tare__emit_sink sink = {.write = drop};
    tare__emit_input input = {.analysis = &train};
    tare__emit_options options = {0};
    int failures = 0;
    for (;; failures++) {
        tare__error error = {""};
        allocations_left = failures;
        int status = tare__emit_json.emit(&input, &options, &sink, &error);
        allocations_left = -1;
        if (status == 0)
            break;
        assert_int_equal(status, TARE_E_MEMORY);
        assert_string_equal(error.text, "out of memory");
    }
    assert_true(failures > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reader_is_strict),    cmocka_unit_test(reports_are_as_they_were),
        cmocka_unit_test(one_line_says_the_same),  cmocka_unit_test(promised_keys_are_there),
        cmocka_unit_test(the_documentation_is_of_the_schema), cmocka_unit_test(deep_trees_stay_small),
        cmocka_unit_test(a_refusing_sink_ends_it), cmocka_unit_test(out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
