/* options: parses a command line by the command's table, and generates the help from the same table.
 * Pure except for the argv that it reorders; any thread.
 * Must not know any command, nor print. */
#include "cli.h"

#include <string.h>

static const tare__cli_option help_option = {"help", 'h', NULL, "show this help and exit", -1};

/* ---- similar names ------------------------------------------------------------------------------- */
#define NAME_MAX_BYTES 32

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Insertions, deletions, replacements, and swaps of neighbors, each 1. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b), rows[3][NAME_MAX_BYTES + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    if (m > NAME_MAX_BYTES || n > NAME_MAX_BYTES)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        above[j] = j;
    for (size_t i = 1; i <= m; i++) {
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = smallest(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[n];
}

const char *tare__cli_nearest(const char *word, const char *const *names, size_t count)
{
    const char *found = NULL;
    size_t best = strlen(word) < 4 ? 1 : 2; /* for a short word everything would be similar */
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(word);
        size_t distance = edit_distance(word, names[i]);
        /* A prefix of three letters is accepted as well: --max for --max-size. */
        if (distance > best && length >= 3 && strncmp(word, names[i], length) == 0)
            distance = best;
        if (distance <= best && (!found || distance < best)) {
            best = distance;
            found = names[i];
        }
    }
    return found;
}

/* ---- parsing ------------------------------------------------------------------------------------- */
typedef struct parse {
    const tare__cli_command *command;
    char **argv;
    int argc, at;
    void *settings;
    bool help;
    uint64_t given;
    tare__error *error;
} parse;

static const tare__cli_option *option_at(const tare__cli_command *command, size_t i)
{
    return i < command->option_count ? &command->options[i] : &help_option;
}

static const tare__cli_option *find_long(const tare__cli_command *command, const char *name, size_t length)
{
    for (size_t i = 0; i <= command->option_count; i++) {
        const tare__cli_option *option = option_at(command, i);
        if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
            return option;
    }
    return NULL;
}

static const tare__cli_option *find_letter(const tare__cli_command *command, char letter)
{
    for (size_t i = 0; i <= command->option_count; i++) {
        if (option_at(command, i)->letter == letter)
            return option_at(command, i);
    }
    return NULL;
}

static int unknown_long(const parse *state, const char *name, size_t length)
{
    const char *names[64];
    size_t count = 0;
    char word[NAME_MAX_BYTES + 1] = "";
    for (; count <= state->command->option_count && count < TARE__COUNT_OF(names); count++)
        names[count] = option_at(state->command, count)->name;
    if (length <= NAME_MAX_BYTES)
        memcpy(word, name, length);
    const char *near = tare__cli_nearest(word, names, count);
    if (near)
        return tare__fail(state->error, TARE_E_USAGE, "unknown option --%.*s; did you mean --%s?",
                          (int)length, name, near);
    return tare__fail(state->error, TARE_E_USAGE, "unknown option --%.*s", (int)length, name);
}

/* `attached` is the text directly after the option (after = or the letter), or NULL. */
static int take_option(parse *state, const tare__cli_option *option, const char *attached)
{
    if (option == &help_option) {
        state->help = true;
        return 0;
    }
    if (option->argument && !attached) {
        if (state->at + 1 >= state->argc)
            return tare__fail(state->error, TARE_E_USAGE, "--%s requires a value: %s", option->name, option->argument);
        attached = state->argv[++state->at];
    }
    state->given |= (uint64_t)1 << (option - state->command->options);
    return tare__cli_take(state->command, option, state->settings, attached, state->error);
}

static int parse_long(parse *state, const char *word)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const tare__cli_option *option = find_long(state->command, word, length);
    if (!option)
        return unknown_long(state, word, length);
    if (equals && !option->argument)
        return tare__fail(state->error, TARE_E_USAGE, "--%s takes no value", option->name);
    return take_option(state, option, equals ? equals + 1 : NULL);
}

/* -q, -fq, -o FILE, -oFILE */
static int parse_letters(parse *state, const char *letters)
{
    for (; *letters; letters++) {
        const tare__cli_option *option = find_letter(state->command, *letters);
        if (!option && strlen(letters) > 2) {
            const tare__cli_option *meant = find_long(state->command, letters, strcspn(letters, "="));
            if (meant)
                return tare__fail(state->error, TARE_E_USAGE, "unknown option -%s; did you mean --%s?",
                                  letters, meant->name);
        }
        if (!option)
            return tare__fail(state->error, TARE_E_USAGE, "unknown option -%c", *letters);
        bool attached = option->argument && letters[1];
        int status = take_option(state, option, attached ? letters + 1 : NULL);
        if (status || option->argument)
            return status;
    }
    return 0;
}

int tare__cli_parse(const tare__cli_command *command, int argc, char **argv, void *settings,
                    tare__cli_words *words, tare__error *error)
{
    parse state = {
        .command = command, .argv = argv, .argc = argc, .at = 1, .settings = settings, .error = error};
    int status = 0;
    *words = (tare__cli_words){.words = argv + 1};
    for (; state.at < argc && !status && !state.help; state.at++) {
        char *word = argv[state.at];
        if (strcmp(word, "--") == 0) {
            words->rest = argv + state.at + 1;
            break;
        }
        if (word[0] == '-' && word[1] == '-') {
            status = parse_long(&state, word + 2);
        } else if (word[0] == '-' && word[1]) {
            status = parse_letters(&state, word + 1);
        } else if (command->command_follows) {
            words->words = argv + state.at;
            words->count = argc - state.at;
            break;
        } else {
            words->words[words->count++] = word; /* never ahead of the read position */
        }
    }
    words->help = state.help;
    words->given = state.given;
    return state.help ? 0 : status;
}

static bool is_listed(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strcspn(at, " ") == length && memcmp(at, name, length) == 0)
            return true;
    }
    return false;
}

const char *tare__cli_given(const tare__cli_command *command, const tare__cli_words *words, const char *names,
                            bool among)
{
    for (size_t i = 0; i < command->option_count; i++)
        if ((words->given >> i & 1) && is_listed(names, command->options[i].name) == among)
            return command->options[i].name;
    return NULL;
}

/* ---- help ---------------------------------------------------------------------------------------- */
#define HELP_COLUMNS 79
#define HELP_INDENT  24

void tare__cli_wrap(tare__text *out, const char *text, size_t column, size_t width)
{
    size_t at = column;
    while (*text) {
        size_t bytes = strcspn(text, " "), columns = tare__text_columns(text, bytes);
        if (at > column && at + 1 + columns > width) {
            tare__text_string(out, "\n");
            tare__text_pad_to(out, column);
            at = column;
        } else if (at > column) {
            tare__text_string(out, " ");
            at++;
        }
        tare__text_append(out, text, bytes);
        at += columns;
        text += bytes + strspn(text + bytes, " ");
    }
    tare__text_string(out, "\n");
}

static void put_option(tare__text *out, const tare__cli_option *option)
{
    size_t start = out->length;
    if (option->letter)
        tare__text_format(out, "  -%c, --%s", option->letter, option->name);
    else
        tare__text_format(out, "      --%s", option->name);
    if (option->argument)
        tare__text_format(out, " %s", option->argument);
    if (!out->failed && tare__text_columns(out->data + start, out->length - start) >= HELP_INDENT - 1)
        tare__text_string(out, "\n");
    tare__text_pad_to(out, HELP_INDENT);
    tare__cli_wrap(out, option->help, HELP_INDENT, HELP_COLUMNS);
}

void tare__cli_help(const tare__cli_command *command, tare__text *out)
{
    tare__text_format(out, "tare %s: %s\n\nusage: tare %s %s\n\nOptions:\n", command->name, command->summary,
                      command->name, command->usage);
    for (size_t i = 0; i <= command->option_count; i++)
        put_option(out, option_at(command, i));
    tare__text_format(out, "\nExamples:\n%s", command->examples);
    if (command->details)
        tare__text_format(out, "\n%s", command->details);
}
