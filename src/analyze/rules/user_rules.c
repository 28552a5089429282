/* user_rules: parses a file of user rules into expressions over tables, and checks all of it: names, types, units.
 * Rules cannot execute, open or call anything.
 * Owned by the thread that parses. Must not know any row. */
#include "user_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    lexer lexer;
    token next;
    tare__rules *rules;
    tare__error *error;
    const tare__table *table; /* of the rule being parsed; NULL: not yet named */
    size_t first_node;       /* of the expression being parsed */
    unsigned depth;
    int status;
} parser;

/* ---- failing --------------------------------------------------------------------------------- */
static void fail_at(parser *parser, const token *at, const char *format, ...) TARE__PRINTF(3, 4);
static void fail_at(parser *parser, const token *at, const char *format, ...)
{
    char what[300];
    va_list args;
    if (parser->status)
        return;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    parser->status = tare__fail(parser->error, TARE_E_INPUT, "%.150s:%u:%u: %s", parser->rules->name,
                                at->line, at->column, what);
}

static void fail_memory(parser *parser)
{
    if (!parser->status)
        parser->status = tare__fail(parser->error, TARE_E_MEMORY, "out of memory while reading %.150s",
                                    parser->rules->name);
}

/* A token as shown in messages: short, on one line. */
typedef struct quoted {
    char text[64];
} quoted;

static quoted quote(const token *token)
{
    quoted result;
    char raw[128];
    snprintf(raw, sizeof raw, "%.*s", token->length < 100 ? (int)token->length : 100, token->at);
    if (token->kind == TOKEN_END)
        snprintf(result.text, sizeof result.text, "the end of the file");
    else
        tare__text_fit(result.text, sizeof result.text, raw, 40);
    return result;
}

/* ---- tokens ---------------------------------------------------------------------------------- */
static void set_next(parser *parser, token token)
{
    parser->next = token;
    if (token.kind != TOKEN_WRONG)
        return;
    if (token.length)
        fail_at(parser, &token, "'%s' %s", quote(&token).text, token.wrong);
    else
        fail_at(parser, &token, "%s", token.wrong);
    parser->next.kind = TOKEN_END;
}

static void advance(parser *parser)
{
    set_next(parser, tare__user_next(&parser->lexer));
}

static bool is(const parser *parser, token_kind kind, const char *text)
{
    return parser->next.kind == kind && parser->next.length == strlen(text) &&
           memcmp(parser->next.at, text, parser->next.length) == 0;
}

static bool take(parser *parser, token_kind kind, const char *text)
{
    bool there = is(parser, kind, text);
    if (there)
        advance(parser);
    return there;
}

/* ---- expressions ----------------------------------------------------------------------------- */
static const char *const type_names[] = {
    [VALUE_NUMBER] = "a number", [VALUE_TEXT] = "a string", [VALUE_TRUTH] = "a condition"};
static const char *const unit_names[] = {
    [UNIT_ANY] = "a value",   [UNIT_COUNT] = "a number", [UNIT_TIME] = "a time", [UNIT_BYTES] = "bytes",
    [UNIT_SHARE] = "a share", [UNIT_CORES] = "cores",    [UNIT_RATE] = "a rate",
};

static user_node *node_at(const parser *parser, uint32_t index)
{
    return &parser->rules->nodes[index];
}

static uint32_t add_node(parser *parser, user_node node, const token *at)
{
    tare__rules *rules = parser->rules;
    if (rules->n_nodes - parser->first_node >= USER_NODES_MAX)
        fail_at(parser, at, "the expression has more than %u parts", USER_NODES_MAX);
    else if (!tare__array_fit(&rules->nodes, &rules->nodes_room, rules->n_nodes + 1, sizeof *rules->nodes))
        fail_memory(parser);
    if (parser->status)
        return NO_NODE;
    rules->nodes[rules->n_nodes] = node;
    return (uint32_t)rules->n_nodes++;
}

static uint32_t parse_or(parser *parser);

/* Text between quotes with its escapes resolved. */
static const char *unescape(parser *parser, const token *token)
{
    char plain[USER_TEXT_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < token->length; i++) {
        char c = token->at[i];
        if (c == '\\' && i + 1 < token->length) {
            c = token->at[++i];
            if (c != '"' && c != '\\') {
                fail_at(parser, token, "invalid escape in a string: only \\\" and \\\\ are allowed");
                return "";
            }
        }
        plain[n++] = c;
    }
    const char *copy = tare__arena_copy(parser->rules->arena, plain, n);
    if (!copy)
        fail_memory(parser);
    return copy ? copy : "";
}

static uint32_t parse_column(parser *parser, node_op op)
{
    token at = parser->next;
    if (at.kind != TOKEN_NAME) {
        fail_at(parser, &at, "expected a value (a column, a number, a string or '('), found %s",
                quote(&at).text);
        return NO_NODE;
    }
    const tare__schema_column *column = tare__user_column_find(parser->table, at.at, at.length);
    if (!column) {
        fail_at(parser, &at, "the table %s has no column '%s'", parser->table->name, quote(&at).text);
        return NO_NODE;
    }
    advance(parser);
    value_type type = op == OP_KNOWN ? VALUE_TRUTH : tare__user_type(column);
    return add_node(parser, (user_node){.op = op, .type = type,
                                        .unit = tare__user_unit(column), .column = column}, &at);
}

static uint32_t parse_known(parser *parser)
{
    if (!take(parser, TOKEN_SIGN, "("))
        fail_at(parser, &parser->next, "syntax of known: known(column)");
    uint32_t node = parser->status ? NO_NODE : parse_column(parser, OP_KNOWN);
    if (!parser->status && !take(parser, TOKEN_SIGN, ")"))
        fail_at(parser, &parser->next, "expected ')'");
    return node;
}

static uint32_t parse_primary(parser *parser)
{
    token at = parser->next;
    if (take(parser, TOKEN_SIGN, "(")) {
        uint32_t inner = parse_or(parser);
        if (!parser->status && !take(parser, TOKEN_SIGN, ")"))
            fail_at(parser, &parser->next, "expected ')', found %s", quote(&parser->next).text);
        return inner;
    }
    if (at.kind == TOKEN_NUMBER) {
        advance(parser);
        user_node number = {.op = OP_NUMBER, .type = VALUE_NUMBER, .unit = at.unit, .number = at.number};
        return add_node(parser, number, &at);
    }
    if (at.kind == TOKEN_TEXT) {
        advance(parser);
        return add_node(parser, (user_node){.op = OP_TEXT, .type = VALUE_TEXT, .text = unescape(parser, &at)}, &at);
    }
    bool yes = is(parser, TOKEN_NAME, "true");
    if (yes || is(parser, TOKEN_NAME, "false")) {
        advance(parser);
        return add_node(parser, (user_node){.op = OP_TRUTH, .type = VALUE_TRUTH, .truth = yes ? YES : NO}, &at);
    }
    if (take(parser, TOKEN_NAME, "known"))
        return parse_known(parser);
    return parse_column(parser, OP_COLUMN);
}

static bool expect(parser *parser, const token *at, uint32_t node, value_type type)
{
    if (parser->status)
        return false;
    if (node_at(parser, node)->type != type)
        fail_at(parser, at, "'%.*s' requires %s, not %s", (int)at->length, at->at, type_names[type],
                type_names[node_at(parser, node)->type]);
    return !parser->status;
}

static bool same_unit(value_unit a, value_unit b)
{
    return a == b || a == UNIT_ANY || b == UNIT_ANY || a == UNIT_COUNT || b == UNIT_COUNT;
}

static void check_units(parser *parser, const token *at, value_unit a, value_unit b)
{
    if (!same_unit(a, b))
        fail_at(parser, at, "'%.*s' between %s and %s", (int)at->length, at->at, unit_names[a], unit_names[b]);
}

static value_unit unit_of(node_op op, value_unit a, value_unit b)
{
    if (op == OP_MULTIPLY)
        return a == UNIT_COUNT || a == UNIT_SHARE ? b : b == UNIT_COUNT || b == UNIT_SHARE ? a : UNIT_ANY;
    if (op == OP_DIVIDE)
        return a == b && a != UNIT_ANY ? UNIT_COUNT : b == UNIT_COUNT || b == UNIT_SHARE ? a : UNIT_ANY;
    return a == UNIT_COUNT ? b : a;
}

static uint32_t join_numbers(parser *parser, const token *at, node_op op, uint32_t left, uint32_t right)
{
    if (!expect(parser, at, left, VALUE_NUMBER) || !expect(parser, at, right, VALUE_NUMBER))
        return NO_NODE;
    value_unit a = node_at(parser, left)->unit, b = node_at(parser, right)->unit;
    if (op == OP_ADD || op == OP_SUBTRACT)
        check_units(parser, at, a, b);
    user_node joined = {.op = op, .type = VALUE_NUMBER, .unit = unit_of(op, a, b), .left = left, .right = right};
    return add_node(parser, joined, at);
}

static bool enter(parser *parser)
{
    if (++parser->depth > USER_DEPTH_MAX)
        fail_at(parser, &parser->next, "nested deeper than %u levels", USER_DEPTH_MAX);
    return !parser->status;
}

static uint32_t parse_signed(parser *parser)
{
    token at = parser->next;
    uint32_t node = NO_NODE;
    if (enter(parser)) {
        if (take(parser, TOKEN_SIGN, "-")) {
            uint32_t inner = parse_signed(parser);
            if (expect(parser, &at, inner, VALUE_NUMBER)) {
                value_unit unit = node_at(parser, inner)->unit;
                user_node negated = {.op = OP_NEGATE, .type = VALUE_NUMBER, .unit = unit, .left = inner};
                node = add_node(parser, negated, &at);
            }
        } else {
            node = parse_primary(parser);
        }
    }
    parser->depth--;
    return node;
}

/* Operators of equal precedence, left associative: operands are parsed by `inner`. */
static uint32_t parse_chain(parser *parser, uint32_t (*inner)(struct parser *), const char *signs, node_op first)
{
    uint32_t left = inner(parser);
    while (!parser->status) {
        token at = parser->next;
        char sign[2][2] = {{signs[0]}, {signs[1]}};
        node_op op = is(parser, TOKEN_SIGN, sign[0]) ? first : first + 1;
        if (op != first && !is(parser, TOKEN_SIGN, sign[1]))
            break;
        advance(parser);
        left = join_numbers(parser, &at, op, left, inner(parser));
    }
    return left;
}

static uint32_t parse_product(parser *parser)
{
    return parse_chain(parser, parse_signed, "*/", OP_MULTIPLY);
}

static uint32_t parse_sum(parser *parser)
{
    return parse_chain(parser, parse_product, "+-", OP_ADD);
}

static const struct {
    const char *sign;
    node_op op;
} comparisons[] = {
    {"<", OP_LESS},  {"<=", OP_LESS_EQUAL}, {">", OP_MORE}, {">=", OP_MORE_EQUAL},
    {"=", OP_EQUAL}, {"!=", OP_NOT_EQUAL},  {"~", OP_LIKE}, {"!~", OP_NOT_LIKE},
};

static void check_comparison(parser *parser, const token *at, node_op op, uint32_t left, uint32_t right)
{
    const user_node *a = node_at(parser, left), *b = node_at(parser, right);
    if (op == OP_LIKE || op == OP_NOT_LIKE) {
        if (a->type != VALUE_TEXT || b->op != OP_TEXT)
            fail_at(parser, at, "'%.*s' requires a string and a quoted pattern", (int)at->length, at->at);
    } else if (a->type != b->type) {
        fail_at(parser, at, "'%.*s' between %s and %s", (int)at->length, at->at, type_names[a->type],
                type_names[b->type]);
    } else if (a->type == VALUE_NUMBER) {
        check_units(parser, at, a->unit, b->unit);
    } else if (op != OP_EQUAL && op != OP_NOT_EQUAL) {
        fail_at(parser, at, "'%.*s' requires numbers, not %s", (int)at->length, at->at, type_names[a->type]);
    }
}

static uint32_t parse_comparison(parser *parser)
{
    uint32_t left = parse_sum(parser);
    for (size_t i = 0; !parser->status && i < TARE__COUNT_OF(comparisons); i++) {
        token at = parser->next;
        if (!take(parser, TOKEN_SIGN, comparisons[i].sign))
            continue;
        uint32_t right = parse_sum(parser);
        if (!parser->status)
            check_comparison(parser, &at, comparisons[i].op, left, right);
        user_node made = {.op = comparisons[i].op, .type = VALUE_TRUTH, .left = left, .right = right};
        return add_node(parser, made, &at);
    }
    return left;
}

static uint32_t parse_not(parser *parser)
{
    token at = parser->next;
    uint32_t node = NO_NODE;
    if (enter(parser)) {
        if (take(parser, TOKEN_NAME, "not")) {
            uint32_t inner = parse_not(parser);
            if (expect(parser, &at, inner, VALUE_TRUTH))
                node = add_node(parser, (user_node){.op = OP_NOT, .type = VALUE_TRUTH, .left = inner}, &at);
        } else {
            node = parse_comparison(parser);
        }
    }
    parser->depth--;
    return node;
}

static uint32_t join_truths(parser *parser, const token *at, node_op op, uint32_t left, uint32_t right)
{
    if (!expect(parser, at, left, VALUE_TRUTH) || !expect(parser, at, right, VALUE_TRUTH))
        return NO_NODE;
    return add_node(parser, (user_node){.op = op, .type = VALUE_TRUTH, .left = left, .right = right}, at);
}

static uint32_t parse_and(parser *parser)
{
    uint32_t left = parse_not(parser);
    for (token at = parser->next; !parser->status && take(parser, TOKEN_NAME, "and"); at = parser->next)
        left = join_truths(parser, &at, OP_AND, left, parse_not(parser));
    return left;
}

static uint32_t parse_or(parser *parser)
{
    uint32_t left = parse_and(parser);
    for (token at = parser->next; !parser->status && take(parser, TOKEN_NAME, "or"); at = parser->next)
        left = join_truths(parser, &at, OP_OR, left, parse_and(parser));
    return left;
}

static uint32_t parse_expression(parser *parser)
{
    parser->first_node = parser->rules->n_nodes;
    return parse_or(parser);
}

static uint32_t parse_condition(parser *parser)
{
    token at = parser->next;
    uint32_t node = parse_expression(parser);
    if (!parser->status && node_at(parser, node)->type != VALUE_TRUTH)
        fail_at(parser, &at, "this is %s, not a condition: compare it with something",
                type_names[node_at(parser, node)->type]);
    return node;
}

/* ---- sentences ------------------------------------------------------------------------------- */
static const struct {
    const char *name;
    piece_format format;
} formats[] = {
    {"percent", AS_PERCENT}, {"bytes", AS_BYTES},   {"time", AS_TIME},
    {"count", AS_COUNT},     {"number", AS_NUMBER},
};

static void add_piece(parser *parser, user_piece piece)
{
    tare__rules *rules = parser->rules;
    if (parser->status)
        return;
    if (!tare__array_fit(&rules->pieces, &rules->pieces_room, rules->n_pieces + 1, sizeof *rules->pieces))
        fail_memory(parser);
    else
        rules->pieces[rules->n_pieces++] = piece;
}

static void add_plain(parser *parser, const char *from, size_t length)
{
    const char *copy = tare__arena_copy(parser->rules->arena, from, length);
    if (!copy)
        fail_memory(parser);
    else if (length)
        add_piece(parser, (user_piece){.text = copy});
}

static piece_format parse_format(parser *parser, const token *at, const char *name, size_t length)
{
    for (size_t i = 0; i < TARE__COUNT_OF(formats); i++)
        if (strlen(formats[i].name) == length && memcmp(formats[i].name, name, length) == 0)
            return formats[i].format;
    fail_at(parser, at, "'%.*s' is not a format (percent, bytes, time, count, number)",
            length < 40 ? (int)length : 40, name);
    return AS_IT_IS;
}

/* The content of braces: an expression and, after a colon, its format. Errors are reported at the position of the
 * text. */
static void parse_value(parser *parser, const token *text, const char *from, const char *end)
{
    const char *colon = memchr(from, ':', (size_t)(end - from));
    piece_format format = AS_IT_IS;
    if (colon)
        format = parse_format(parser, text, colon + 1, (size_t)(end - colon - 1));
    lexer outer = parser->lexer;
    token next = parser->next;
    parser->lexer = (lexer){from, colon ? colon : end, text->line, text->column};
    advance(parser);
    uint32_t node = parse_expression(parser);
    if (!parser->status && parser->next.kind != TOKEN_END)
        fail_at(parser, &parser->next, "unexpected '%s' between braces", quote(&parser->next).text);
    if (!parser->status && format != AS_IT_IS && node_at(parser, node)->type != VALUE_NUMBER)
        fail_at(parser, text, "a format requires a number; this is %s", type_names[node_at(parser, node)->type]);
    parser->lexer = outer;
    parser->next = next;
    add_piece(parser, (user_piece){.node = node, .format = format});
}

static void parse_pieces(parser *parser, const token *at, const char *text)
{
    const char *end = text + strlen(text);
    while (text < end && !parser->status) {
        size_t plain = strcspn(text, "{}");
        add_plain(parser, text, plain);
        text += plain;
        if (text == end)
            break;
        if (text[0] == text[1]) { /* {{ and }} are escaped braces */
            add_plain(parser, text, 1);
            text += 2;
            continue;
        }
        const char *close = strchr(text, '}');
        if (*text == '}' || !close) {
            fail_at(parser, at, "unmatched brace in a string; write {{ or }} for a literal brace");
            break;
        }
        parse_value(parser, at, text + 1, close);
        text = close + 1;
    }
}

static user_sentence parse_sentence(parser *parser)
{
    token at = parser->next;
    user_sentence sentence = {(uint32_t)parser->rules->n_pieces, 0};
    if (at.kind != TOKEN_TEXT) {
        fail_at(parser, &at, "expected a quoted string, found %s", quote(&at).text);
        return sentence;
    }
    if (at.length == 0)
        fail_at(parser, &at, "the string is empty");
    parse_pieces(parser, &at, unescape(parser, &at));
    sentence.n = (uint32_t)(parser->rules->n_pieces - sentence.first);
    if (!parser->status)
        advance(parser);
    return sentence;
}

/* ---- rules ----------------------------------------------------------------------------------- */
static void fail_table(parser *parser, const token *at)
{
    const tare__table *table;
    tare__text names = {0};
    for (size_t i = 0; (table = tare__user_table(i)); i++)
        tare__text_format(&names, "%s%s", i ? ", " : "", table->name);
    fail_at(parser, at, "unknown table '%s'; the tables are %s", quote(at).text, names.data ? names.data : "");
    tare__text_free(&names);
}

static void parse_table(parser *parser, user_rule *rule)
{
    token at = parser->next;
    rule->table = at.kind == TOKEN_NAME ? tare__user_table_find(at.at, at.length) : NULL;
    if (!rule->table) {
        fail_table(parser, &at);
        return;
    }
    parser->table = rule->table;
    advance(parser);
    if (take(parser, TOKEN_NAME, "where"))
        rule->where = parse_condition(parser);
}

static void parse_when(parser *parser, user_rule *rule)
{
    rule->when = parse_condition(parser);
}

static void parse_say(parser *parser, user_rule *rule)
{
    rule->say = parse_sentence(parser);
}

static void parse_evidence(parser *parser, user_rule *rule)
{
    rule->evidence = parse_sentence(parser);
}

static void parse_advice(parser *parser, user_rule *rule)
{
    rule->advice = parse_sentence(parser);
}

static void parse_gain(parser *parser, user_rule *rule)
{
    token at = parser->next;
    rule->gain = parse_expression(parser);
    if (!parser->status && node_at(parser, rule->gain)->type != VALUE_NUMBER)
        fail_at(parser, &at, "a gain must be a number: the share of steady-state time that could be saved");
}

static void parse_severity(parser *parser, user_rule *rule)
{
    for (int i = TARE__INFO; i <= TARE__CRITICAL; i++)
        if (take(parser, TOKEN_NAME, tare__severity_word((tare__severity)i))) {
            rule->severity = (tare__severity)i;
            return;
        }
    fail_at(parser, &parser->next, "'%s' is not a severity (info, warning, critical)", quote(&parser->next).text);
}

enum { NEEDED = 1, FIRST = 2 };
static const struct {
    const char *word;
    void (*parse)(parser *parser, user_rule *rule);
    unsigned flags;
} clauses[] = {
    {"table", parse_table, NEEDED | FIRST}, {"when", parse_when, NEEDED}, {"say", parse_say, NEEDED},
    {"evidence", parse_evidence, 0},        {"advice", parse_advice, 0},  {"gain", parse_gain, 0},
    {"severity", parse_severity, 0},
};

/* Parses one clause; false: there is none here. */
static bool parse_clause(parser *parser, user_rule *rule, unsigned *seen)
{
    for (size_t i = 0; i < TARE__COUNT_OF(clauses); i++) {
        token at = parser->next;
        if (!is(parser, TOKEN_NAME, clauses[i].word))
            continue;
        if (*seen & 1u << i)
            fail_at(parser, &at, "the rule already has a '%s'", clauses[i].word);
        else if (!(clauses[i].flags & FIRST) && !rule->table)
            fail_at(parser, &at, "'table' must come before '%s' in a rule", clauses[i].word);
        if (parser->status)
            return false;
        *seen |= 1u << i;
        advance(parser);
        clauses[i].parse(parser, rule);
        return !parser->status;
    }
    return false;
}

static void check_name(parser *parser, const token *at, const char *name)
{
    for (size_t i = 0; i < parser->rules->n_rules; i++)
        if (strcmp(parser->rules->rules[i].name, name) == 0)
            fail_at(parser, at, "rule '%s' is already defined in line %u", name, parser->rules->rules[i].line);
}

static void parse_rule(parser *parser)
{
    tare__rules *rules = parser->rules;
    token keyword = parser->next;
    set_next(parser, tare__user_next_word(&parser->lexer));
    token at = parser->next;
    if (parser->status)
        return;
    user_rule rule = {
        .line = keyword.line, .where = NO_NODE, .when = NO_NODE, .gain = NO_NODE, .severity = TARE__WARNING};
    rule.name = tare__arena_copy(rules->arena, at.at, at.length);
    if (!rule.name || !tare__array_fit(&rules->rules, &rules->rules_room, rules->n_rules + 1, sizeof *rules->rules)) {
        fail_memory(parser);
        return;
    }
    check_name(parser, &at, rule.name);
    if (rules->n_rules == USER_RULES_MAX)
        fail_at(parser, &keyword, "more than %u rules", USER_RULES_MAX);
    unsigned seen = 0;
    parser->table = NULL;
    advance(parser);
    while (!parser->status && parse_clause(parser, &rule, &seen))
        ;
    for (size_t i = 0; i < TARE__COUNT_OF(clauses); i++)
        if ((clauses[i].flags & NEEDED) && !(seen & 1u << i) &&
            (parser->next.kind == TOKEN_END || is(parser, TOKEN_NAME, "rule")))
            fail_at(parser, &keyword, "the rule '%s' has no '%s'", rule.name, clauses[i].word);
    rules->rules[rules->n_rules++] = rule;
}

static void parse_all(parser *parser)
{
    advance(parser);
    while (!parser->status && parser->next.kind != TOKEN_END) {
        if (!is(parser, TOKEN_NAME, "rule"))
            fail_at(parser, &parser->next,
                    "expected 'rule', 'table', 'when', 'say', 'evidence', 'advice', 'gain' or 'severity', found '%s'",
                    quote(&parser->next).text);
        else
            parse_rule(parser);
    }
}

int tare__rules_parse(const char *text, size_t bytes, const char *name, tare__rules **rules, tare__error *error)
{
    *rules = NULL;
    if (bytes > USER_BYTES_MAX)
        return tare__fail(error, TARE_E_INPUT, "%.150s: the file of rules has %zu bytes; the most is %zu",
                          name, bytes, USER_BYTES_MAX);
    tare__rules *made = calloc(1, sizeof *made);
    if (made)
        made->arena = tare__arena_new();
    if (made && made->arena)
        made->name = tare__arena_copy(made->arena, name, strlen(name));
    if (!made || !made->name) {
        tare__rules_free(made);
        return tare__fail(error, TARE_E_MEMORY, "out of memory while reading %.150s", name);
    }
    parser parser = {.lexer = {text, text + bytes, 1, 1}, .rules = made, .error = error};
    parse_all(&parser);
    if (parser.status) {
        tare__rules_free(made);
        return parser.status;
    }
    *rules = made;
    return 0;
}

void tare__rules_free(tare__rules *rules)
{
    if (!rules)
        return;
    tare__arena_free(rules->arena);
    free(rules->rules);
    free(rules->nodes);
    free(rules->pieces);
    free(rules);
}
