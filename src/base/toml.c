/* toml: the part of TOML that settings need: key = string, number or boolean, in one table; the rest is skipped.
 * One thread.
 * Must not know what the settings mean. */
#include "base/base.h"

#include <ctype.h>
#include <string.h>

#include "tare.h"

#define KEY_BYTES   256
#define VALUE_BYTES 1024
#define NAME_BYTES  128

typedef struct reader {
    const char *at, *end;
    unsigned line;
    const char *file;
    tare__error *error;
} reader;

/* ---- helpers -------------------------------------------------------------------------------------- */
static int wrong(const reader *from, const char *what)
{
    return tare__fail(from->error, TARE_E_USAGE, "%.200s:%u: %s", from->file, from->line, what);
}

static char here(const reader *from)
{
    return from->at < from->end ? *from->at : '\0';
}

static void skip_blanks(reader *from)
{
    while (from->at < from->end && (*from->at == ' ' || *from->at == '\t'))
        from->at++;
}

static bool at_line_end(const reader *from)
{
    return from->at >= from->end || *from->at == '\n' ||
           (*from->at == '\r' && from->at + 1 < from->end && from->at[1] == '\n');
}

static void skip_line(reader *from)
{
    const char *line_end = from->at < from->end ? memchr(from->at, '\n', (size_t)(from->end - from->at)) : NULL;
    from->at = line_end ? line_end + 1 : from->end;
    from->line++;
}

static bool starts(const reader *from, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(from->end - from->at) >= length && memcmp(from->at, word, length) == 0;
}

/* ---- skipping ------------------------------------------------------------------------------------- */
/* A string of any kind, with any content. */
static void skip_string(reader *from)
{
    char quote = *from->at;
    char three[4] = {quote, quote, quote, '\0'};
    bool lines = starts(from, three);
    from->at += lines ? 3 : 1;
    while (from->at < from->end && !(lines ? starts(from, three) : *from->at == quote || *from->at == '\n')) {
        if (*from->at == '\\' && quote == '"' && from->at + 1 < from->end)
            from->at++;
        from->line += *from->at == '\n';
        from->at++;
    }
    if (from->at < from->end && *from->at != '\n')
        from->at += lines ? 3 : 1;
}

/* The rest of a statement: to the end of its line, or of the line in which its last bracket closes. */
static void skip_statement(reader *from)
{
    int depth = 0;
    while (from->at < from->end) {
        char c = *from->at;
        if (c == '"' || c == '\'') {
            skip_string(from);
            continue;
        }
        if (c == '#') {
            const char *line_end = memchr(from->at, '\n', (size_t)(from->end - from->at));
            from->at = line_end ? line_end : from->end;
            continue;
        }
        depth += c == '[' || c == '{';
        depth -= c == ']' || c == '}';
        if (c == '\n' && depth <= 0)
            break;
        from->line += c == '\n';
        from->at++;
    }
    if (from->at < from->end)
        skip_line(from);
}

/* ---- strings -------------------------------------------------------------------------------------- */
typedef struct buffer {
    char *data;
    size_t used, room;
} buffer;

static bool put(buffer *to, char c)
{
    if (to->used + 1 >= to->room)
        return false;
    to->data[to->used++] = c;
    to->data[to->used] = '\0';
    return true;
}

static bool put_code(buffer *to, uint32_t code)
{
    if (code < 0x80)
        return code != 0 && put(to, (char)code);
    if (code < 0x800)
        return put(to, (char)(0xC0 | code >> 6)) && put(to, (char)(0x80 | (code & 63)));
    if (code < 0x10000)
        return (code < 0xD800 || code > 0xDFFF) && put(to, (char)(0xE0 | code >> 12)) &&
               put(to, (char)(0x80 | (code >> 6 & 63))) && put(to, (char)(0x80 | (code & 63)));
    return code < 0x110000 && put(to, (char)(0xF0 | code >> 18)) && put(to, (char)(0x80 | (code >> 12 & 63))) &&
           put(to, (char)(0x80 | (code >> 6 & 63))) && put(to, (char)(0x80 | (code & 63)));
}

/* \uXXXX or \UXXXXXXXX; `at` points to the letter, and then after the last digit. */
static bool read_code(reader *from, buffer *to)
{
    int digits = *from->at++ == 'u' ? 4 : 8;
    uint32_t code = 0;
    for (int i = 0; i < digits; i++, from->at++) {
        static const char hex[] = "0123456789abcdef";
        char c = (char)tolower((unsigned char)here(from));
        const char *digit = c ? strchr(hex, c) : NULL;
        if (!digit)
            return false;
        code = code << 4 | (uint32_t)(digit - hex);
    }
    return put_code(to, code);
}

static bool read_escape(reader *from, buffer *to)
{
    static const char letters[] = "btnfr\"\\", meant[] = "\b\t\n\f\r\"\\";
    char c = here(from);
    const char *found = c ? strchr(letters, c) : NULL;
    if (c == 'u' || c == 'U')
        return read_code(from, to);
    if (!found)
        return false;
    from->at++;
    return put(to, meant[found - letters]);
}

static int read_string(reader *from, buffer *to)
{
    char quote = *from->at++;
    if (here(from) == quote && from->at + 1 < from->end && from->at[1] == quote)
        return wrong(from, "multi-line strings are not supported");
    while (!at_line_end(from) && *from->at != quote) {
        char c = *from->at++;
        bool escape = quote == '"' && c == '\\', plain = (unsigned char)c >= 0x20 || c == '\t';
        if (!(escape ? read_escape(from, to) : plain && put(to, c)))
            return wrong(from, to->used + 2 >= to->room ? "the string is too long"
                                                        : "invalid escape or byte in string");
    }
    if (here(from) != quote)
        return wrong(from, "unterminated string");
    from->at++;
    return 0;
}

/* ---- keys ----------------------------------------------------------------------------------------- */
static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static int read_key(reader *from, buffer *to)
{
    if (here(from) == '"' || here(from) == '\'')
        return read_string(from, to);
    while (is_bare(here(from))) {
        if (!put(to, *from->at++))
            return wrong(from, "the name is too long");
    }
    return to->used ? 0 : wrong(from, "expected name = value");
}

/* "[tool . "tare"]" as "tool.tare"; "" if it is not a table for these settings. */
static void read_header(reader *from, char name[NAME_BYTES])
{
    buffer whole = {name, 0, NAME_BYTES};
    name[0] = '\0';
    from->at++;
    for (;;) {
        tare__error ignored;
        reader part = *from;
        part.error = &ignored;
        skip_blanks(&part);
        if (read_key(&part, &whole) != 0)
            break;
        skip_blanks(&part);
        *from = (reader){part.at, part.end, part.line, from->file, from->error};
        if (here(from) == ']')
            return;
        if (here(from) != '.' || !put(&whole, '.'))
            break;
        from->at++;
    }
    name[0] = '\0';
}

/* ---- values --------------------------------------------------------------------------------------- */
/* Digits, with "_" only between them; returns their number, 0 also if there are too many. */
static size_t read_digits(reader *from, buffer *to)
{
    size_t n = 0;
    for (;; from->at++) {
        char c = here(from);
        if (c >= '0' && c <= '9' && !put(to, c))
            return 0;
        else if (c >= '0' && c <= '9')
            n++;
        else if (!(c == '_' && n > 0 && from->at + 1 < from->end && from->at[1] >= '0' && from->at[1] <= '9'))
            return n;
    }
}

static bool read_number(reader *from, buffer *to)
{
    if (here(from) == '-' || here(from) == '+')
        put(to, *from->at++);
    if (read_digits(from, to) == 0)
        return false;
    if (here(from) == '.') {
        put(to, *from->at++);
        if (read_digits(from, to) == 0)
            return false;
    }
    if (here(from) == 'e' || here(from) == 'E') {
        put(to, *from->at++);
        if (here(from) == '-' || here(from) == '+')
            put(to, *from->at++);
        return read_digits(from, to) > 0;
    }
    return true;
}

static int read_value(reader *from, buffer *to, tare__toml_kind *kind)
{
    static const char *const words[] = {"true", "false"};
    char c = here(from);
    if (c == '"' || c == '\'') {
        *kind = TARE__TOML_STRING;
        return read_string(from, to);
    }
    for (size_t i = 0; i < TARE__COUNT_OF(words); i++) {
        if (starts(from, words[i])) {
            *kind = TARE__TOML_SWITCH;
            for (const char *at = words[i]; *at; at++, from->at++)
                put(to, *at);
            return 0;
        }
    }
    *kind = TARE__TOML_NUMBER;
    return read_number(from, to) ? 0 : wrong(from, "a value must be a string, a number, true or false");
}

/* ---- the file ------------------------------------------------------------------------------------- */
static int read_pair(reader *from, tare__toml_sink *sink, void *context)
{
    char key_text[KEY_BYTES] = "", value_text[VALUE_BYTES] = "";
    buffer key = {key_text, 0, sizeof key_text}, value = {value_text, 0, sizeof value_text};
    tare__toml_pair pair = {.key = key_text, .value = value_text, .line = from->line};
    int status = read_key(from, &key);
    if (status)
        return status;
    skip_blanks(from);
    if (here(from) != '=')
        return wrong(from, here(from) == '.' ? "dotted names are not supported"
                                             : "expected = and a value after the name");
    from->at++;
    skip_blanks(from);
    status = read_value(from, &value, &pair.kind);
    if (status)
        return status;
    skip_blanks(from);
    if (here(from) != '#' && !at_line_end(from))
        return wrong(from, "unexpected text after the value");
    status = sink(context, &pair, from->error);
    skip_line(from);
    return status;
}

/* Tables next to the settings, which commands read themselves. */
static bool is_a_commands(const char *name)
{
    static const char *const names[] = {"check", "history"};
    return TARE__IS_ONE_OF(name, names);
}

/* `from` points to a '['. */
static int enter_table(reader *from, const char *table, bool *ours)
{
    char name[NAME_BYTES];
    reader at = *from;
    size_t length = strlen(table);
    read_header(from, name);
    *ours = length && strcmp(name, table) == 0;
    if (!length && !is_a_commands(name))
        return wrong(&at, "settings must be at the top of the file, outside any table");
    bool below = length && strncmp(name, table, length) == 0 && name[length] == '.';
    if (below && !is_a_commands(name + length + 1))
        return tare__fail(from->error, TARE_E_USAGE, "%.200s:%u: unknown table [%s]", from->file, at.line, name);
    skip_statement(from);
    return 0;
}

int tare__toml_read(const char *text, size_t bytes, const char *file, const char *table, tare__toml_sink *sink,
                    void *context, tare__error *error)
{
    reader from = {text, text + bytes, 1, file, error};
    bool ours = table[0] == '\0';
    int status = 0;
    if (starts(&from, "\xEF\xBB\xBF"))
        from.at += 3;
    while (from.at < from.end && !status) {
        skip_blanks(&from);
        if (at_line_end(&from) || here(&from) == '#') {
            skip_line(&from);
        } else if (here(&from) == '[') {
            status = enter_table(&from, table, &ours);
        } else if (ours) {
            status = read_pair(&from, sink, context);
        } else {
            skip_statement(&from);
        }
    }
    return status;
}
