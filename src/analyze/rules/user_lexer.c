/* user_lexer: splits a rules file into words, numbers with units, texts and signs, each with its position.
 * Owned by the thread that parses.
 * Must not know what they mean. */
#include <math.h>
#include <string.h>

#include "user_rules.h"

/* ASCII in every locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Columns count characters: UTF-8 continuation bytes are skipped. */
static void step(lexer *lexer)
{
    unsigned char c = (unsigned char)*lexer->at++;
    if (c == '\n') {
        lexer->line++;
        lexer->column = 1;
    } else if ((c & 0xC0) != 0x80) {
        lexer->column++;
    }
}

static void skip_blanks(lexer *lexer)
{
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == '#')
            while (lexer->at < lexer->end && *lexer->at != '\n')
                step(lexer);
        else if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
            step(lexer);
        else
            return;
    }
}

static token start(const lexer *lexer, token_kind kind)
{
    return (token){.kind = kind, .at = lexer->at, .line = lexer->line, .column = lexer->column};
}

/* The message continues after the token as read: "'5parsecs' is not …". */
static token wrong(token token, const char *what)
{
    token.kind = TOKEN_WRONG;
    token.wrong = what;
    return token;
}

/* ---- numbers --------------------------------------------------------------------------------- */
static const struct {
    const char *name;
    double scale;
    value_unit unit;
} units[] = {
    {"%", 0.01, UNIT_SHARE},
    {"ns", 1, UNIT_TIME},
    {"us", 1e3, UNIT_TIME},
    {"µs", 1e3, UNIT_TIME},
    {"ms", 1e6, UNIT_TIME},
    {"s", 1e9, UNIT_TIME},
    {"min", 60e9, UNIT_TIME},
    {"h", 3600e9, UNIT_TIME},
    {"d", 86400e9, UNIT_TIME},
    {"B", 1, UNIT_BYTES},
    {"KB", 1e3, UNIT_BYTES},
    {"MB", 1e6, UNIT_BYTES},
    {"GB", 1e9, UNIT_BYTES},
    {"TB", 1e12, UNIT_BYTES},
    {"KiB", 1024.0, UNIT_BYTES},
    {"MiB", 1048576.0, UNIT_BYTES},
    {"GiB", 1073741824.0, UNIT_BYTES},
    {"TiB", 1099511627776.0, UNIT_BYTES},
};

static bool find_unit(const char *name, size_t length, token *token)
{
    for (size_t i = 0; i < TARE__COUNT_OF(units); i++)
        if (strlen(units[i].name) == length && memcmp(units[i].name, name, length) == 0) {
            token->number *= units[i].scale;
            token->unit = units[i].unit;
            return true;
        }
    return false;
}

/* Parsed by hand: strtod depends on the locale and accepts more than a rule needs. */
static double read_decimal(lexer *lexer)
{
    double number = 0, scale = 1;
    for (; lexer->at < lexer->end && is_digit(*lexer->at); step(lexer))
        number = number * 10 + (*lexer->at - '0');
    if (lexer->at + 1 < lexer->end && *lexer->at == '.' && is_digit(lexer->at[1]))
        for (step(lexer); lexer->at < lexer->end && is_digit(*lexer->at); step(lexer))
            number += (*lexer->at - '0') * (scale /= 10);
    return number;
}

static token read_number(lexer *lexer)
{
    token token = start(lexer, TOKEN_NUMBER);
    token.unit = UNIT_COUNT;
    token.number = read_decimal(lexer);
    const char *unit = lexer->at;
    if (lexer->at < lexer->end && *lexer->at == '%')
        step(lexer);
    else
        while (lexer->at < lexer->end && (is_letter(*lexer->at) || (unsigned char)*lexer->at >= 0x80))
            step(lexer);
    token.length = (size_t)(lexer->at - token.at);
    if (lexer->at > unit && !find_unit(unit, (size_t)(lexer->at - unit), &token))
        return wrong(token, "is not a number with a unit: write it as 30%, 100ms, 2min, 16GB or 512MiB");
    if (!isfinite(token.number))
        return wrong(token, "is too large a number");
    return token;
}

/* ---- the rest -------------------------------------------------------------------------------- */
/* The text itself is not repeated in the message. */
static token wrong_text(token token, const char *what)
{
    token.length = 0;
    return wrong(token, what);
}

static token read_text(lexer *lexer)
{
    token token = start(lexer, TOKEN_TEXT);
    step(lexer);
    token.at = lexer->at;
    while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n') {
        if (*lexer->at == '\\' && lexer->at + 1 < lexer->end && lexer->at[1] != '\n')
            step(lexer);
        step(lexer);
    }
    token.length = (size_t)(lexer->at - token.at);
    if (lexer->at == lexer->end || *lexer->at != '"')
        return wrong_text(token, "a string must end with a quote on the line where it begins");
    step(lexer);
    if (token.length > USER_TEXT_MAX)
        return wrong_text(token, "the text is too long; the most is 1000 bytes");
    if (memchr(token.at, '\0', token.length))
        return wrong_text(token, "there is a zero byte in the text");
    return token;
}

static token read_sign(lexer *lexer)
{
    static const char *const signs[] = {"<=", ">=", "!=", "!~", "<", ">", "=",
                                        "~",  "+",  "-",  "*",  "/", "(", ")"};
    token token = start(lexer, TOKEN_SIGN);
    size_t left = (size_t)(lexer->end - lexer->at);
    for (size_t i = 0; i < TARE__COUNT_OF(signs); i++) {
        token.length = strlen(signs[i]);
        if (token.length > left || memcmp(token.at, signs[i], token.length) != 0)
            continue;
        for (size_t n = token.length; n > 0; n--)
            step(lexer);
        return token;
    }
    step(lexer);
    token.length = 1;
    return wrong(token, "is not part of a rule");
}

token tare__user_next(lexer *lexer)
{
    skip_blanks(lexer);
    if (lexer->at == lexer->end)
        return start(lexer, TOKEN_END);
    char c = *lexer->at;
    if (is_digit(c))
        return read_number(lexer);
    if (c == '"')
        return read_text(lexer);
    if (!is_letter(c))
        return read_sign(lexer);
    token token = start(lexer, TOKEN_NAME);
    while (lexer->at < lexer->end && (is_letter(*lexer->at) || is_digit(*lexer->at)))
        step(lexer);
    token.length = (size_t)(lexer->at - token.at);
    return token;
}

token tare__user_next_word(lexer *lexer)
{
    skip_blanks(lexer);
    token token = start(lexer, TOKEN_NAME);
    while (lexer->at < lexer->end &&
           (is_letter(*lexer->at) || is_digit(*lexer->at) || *lexer->at == '-' || *lexer->at == '.'))
        step(lexer);
    token.length = (size_t)(lexer->at - token.at);
    if (token.length == 0)
        return wrong(token, "a rule needs a name of letters, digits, '-', '_' and '.'");
    if (token.length > 64)
        return wrong(token, "is too long a name; the most is 64 characters");
    return token;
}
