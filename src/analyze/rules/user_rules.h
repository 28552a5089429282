/* user_rules: the parsed form of a file of user rules; shared by its parser and its evaluation.
 * Owned by the caller that parsed it; then read-only, from any thread.
 * Must not know findings. */
#ifndef TARE_ANALYZE_USER_RULES_H
#define TARE_ANALYZE_USER_RULES_H

#include "analyze/schema/schema.h"

/* Limits of a file; beyond them it is rejected with a sentence. */
#define USER_BYTES_MAX ((size_t)256 << 10)
#define USER_RULES_MAX 256u
#define USER_NODES_MAX 512u  /* of one expression */
#define USER_DEPTH_MAX 64u   /* of parentheses, not and signs */
#define USER_TEXT_MAX 1000u  /* bytes between quotes */
#define USER_PER_RULE 10u    /* findings per rule; further rows are only counted */

/* ---- values ---------------------------------------------------------------------------------- */
typedef enum value_type { VALUE_NONE, VALUE_NUMBER, VALUE_TEXT, VALUE_TRUTH } value_type;

/* The unit of a number. Times are ns, whatever the unit of the table. */
typedef enum value_unit {
    UNIT_ANY,   /* given by the row: for metrics */
    UNIT_COUNT, /* or a plain number, compatible with all */
    UNIT_TIME,
    UNIT_BYTES,
    UNIT_SHARE,
    UNIT_CORES,
    UNIT_RATE   /* per second */
} value_unit;

typedef enum truth { UNKNOWN = -1, NO = 0, YES = 1 } truth;

typedef struct value {
    value_type type;
    value_unit unit;
    double number;    /* NaN: absent */
    const char *text; /* NULL: absent */
    truth truth;
} value;

/* ---- tables and columns (user_columns.c) ----------------------------------------------------- */
const tare__table *tare__user_table(size_t index); /* those that rules may use; NULL: past the last */
const tare__table *tare__user_table_find(const char *name, size_t length);
/* NULL: not found, or its values are lists. */
const tare__schema_column *tare__user_column_find(const tare__table *table, const char *name, size_t length);
value_type tare__user_type(const tare__schema_column *column);
value_unit tare__user_unit(const tare__schema_column *column);
value tare__user_cell(tare__cells *cells, const tare__schema_column *column, const void *row, size_t index);

/* ---- expressions ----------------------------------------------------------------------------- */
typedef enum node_op {
    OP_NUMBER, OP_TEXT, OP_TRUTH, OP_COLUMN, OP_KNOWN,
    OP_NEGATE, OP_ADD, OP_SUBTRACT, OP_MULTIPLY, OP_DIVIDE,
    OP_LESS, OP_LESS_EQUAL, OP_MORE, OP_MORE_EQUAL, OP_EQUAL, OP_NOT_EQUAL, OP_LIKE, OP_NOT_LIKE,
    OP_NOT, OP_AND, OP_OR
} node_op;

#define NO_NODE UINT32_MAX

typedef struct user_node {
    node_op op;
    value_type type;
    value_unit unit;
    uint32_t left, right;
    const tare__schema_column *column;
    double number;
    const char *text;
    truth truth;
} user_node;

/* ---- sentences with values in them: "{name} takes {self_share:percent}" ---------------------- */
typedef enum piece_format { AS_IT_IS, AS_PERCENT, AS_BYTES, AS_TIME, AS_COUNT, AS_NUMBER } piece_format;

typedef struct user_piece {
    const char *text; /* of a plain piece; NULL: a value */
    uint32_t node;
    piece_format format;
} user_piece;

typedef struct user_sentence {
    uint32_t first, n; /* pieces; 0: not given */
} user_sentence;

typedef struct user_rule {
    const char *name;
    uint32_t line;
    const tare__table *table;
    uint32_t where, when, gain; /* nodes; NO_NODE: not given */
    user_sentence say, evidence, advice;
    tare__severity severity;
} user_rule;

struct tare__rules {
    tare__arena *arena;
    const char *name; /* of the file, for sentences */
    user_rule *rules;
    size_t n_rules, rules_room;
    user_node *nodes;
    size_t n_nodes, nodes_room;
    user_piece *pieces;
    size_t n_pieces, pieces_room;
};

/* ---- reading (user_lexer.c) ------------------------------------------------------------------ */
typedef enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_SIGN, TOKEN_WRONG } token_kind;

typedef struct token {
    token_kind kind;
    const char *at; /* of a text: the content of the quotes, escapes as written */
    size_t length;
    uint32_t line, column;
    double number;
    value_unit unit;
    const char *wrong; /* what is wrong with it */
} token;

typedef struct lexer {
    const char *at, *end;
    uint32_t line, column;
} lexer;

token tare__user_next(lexer *lexer);
/* A word of letters, digits, '_', '-' and '.': the name of a rule. */
token tare__user_next_word(lexer *lexer);

#endif
