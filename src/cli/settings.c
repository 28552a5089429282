/* settings: options that were not given on the command line: from TARE_* variables, tare.toml, pyproject.toml.
 * One thread. Values are kept until the process ends: options point into them.
 * Must not know what the options do. */
#define _GNU_SOURCE
#include "cli.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

#define RECORDING TARE__SETTINGS_RECORDING
#define SHOWING   TARE__SETTINGS_SHOWING

/* Options that may be set permanently: not those that name a file of one run, such as --output, nor --force. */
static const struct {
    const char *name;
    bool is_switch;
    unsigned of; /* commands that accept it if they have an option of that name */
} known[] = {
    {"quiet", true, RECORDING},     {"max-size", false, RECORDING}, {"last", false, RECORDING},
    {"buffer-size", false, RECORDING}, {"readable", true, RECORDING},  {"no-wait", true, RECORDING},
    {"interval", false, RECORDING}, {"no-sampling", true, RECORDING}, {"disable", false, RECORDING},
    {"stacks", false, RECORDING},   {"no-stacks", true, RECORDING}, {"native", true, RECORDING},
    {"carbon", false, RECORDING},   {"live", true, RECORDING},      {"rules", false, RECORDING | SHOWING},
    {"html", false, RECORDING},     {"json", false, RECORDING},     {"csv", false, RECORDING},
    {"chrome", false, RECORDING},   {"perfetto", false, RECORDING}, {"tensorboard", false, RECORDING},
    {"flamegraph", false, RECORDING}, {"folded", false, RECORDING},  {"speedscope", false, RECORDING},
    {"pprof", false, RECORDING},
    {"width", false, SHOWING},
    {"by", false, SHOWING},         {"lines", false, RECORDING},
    {"ops", true, RECORDING},       {"shapes", true, RECORDING},
    {"steps", false, RECORDING},    {"every-epochs", false, RECORDING},
    {"tag", false, RECORDING},      {"no-history", true, RECORDING | SHOWING},
    {"store", false, RECORDING | SHOWING},
};

#define KNOWN TARE__COUNT_OF(known)

/* Variables with another purpose: not misspelled settings. */
static const char *const others[] = {"clock", "helper",    "session", "nvml",    "build",      "golden",
                                     "seeds", "lines-pid", "torch",   "verbose", "python-hook"};

typedef struct value {
    const char *text;  /* NULL: not set */
    char where[300];   /* "tare.toml:3", "TARE_QUIET" */
} value;

typedef struct settings {
    value values[KNOWN];
    const char *file; /* being read */
    bool replaces;    /* values of an earlier file */
} settings;

static tare__arena *kept; /* texts of values */

/* ---- names ---------------------------------------------------------------------------------------- */
static size_t find_known(const char *name)
{
    for (size_t i = 0; i < KNOWN; i++) {
        const char *a = known[i].name, *b = name;
        while (*a && (*a == *b || (*a == '-' && *b == '_'))) /* both spellings are common */
            a++, b++;
        if (*a == '\0' && *b == '\0')
            return i;
    }
    return KNOWN;
}

static const char *near_known(const char *name)
{
    const char *names[KNOWN];
    for (size_t i = 0; i < KNOWN; i++)
        names[i] = known[i].name;
    return tare__cli_nearest(name, names, KNOWN);
}

static void variable_of(const char *name, char out[64])
{
    size_t length = (size_t)snprintf(out, 64, "TARE_%s", name);
    for (size_t i = 5; i < length && i < 63; i++)
        out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
}

static const char *keep(const char *text)
{
    if (!kept)
        kept = tare__arena_new();
    return kept ? tare__arena_copy(kept, text, strlen(text)) : NULL;
}

/* ---- files ---------------------------------------------------------------------------------------- */
/* The same files contain the Python package's settings: fields of ProfilingConfig and a monitor's switches. */
static bool is_the_packages(const char *name)
{
    static const char *const foreign[] = {
        "use_torch_profiler", "profiler_schedule", "record_shapes", "profile_memory", "with_stack",
        "profile_data_loading", "profile_preprocessing", "profile_model_forward", "monitor_memory", "monitor_gpu",
        "monitor_cpu", "enable_optimizations", "use_mixed_precision", "use_compile", "use_channels_last",
        "save_profiles", "output_dir", "enable_memory_monitoring", "memory_monitor_batches",
    };
    return TARE__IS_ONE_OF(name, foreign);
}

/* Settings of a project may be untrusted: files they name must be inside its folder, and nothing is sent to a server
 * that they name. */
static bool is_inside(const char *path)
{
    char here[PATH_MAX], there[PATH_MAX], folder[PATH_MAX];
    struct stat about;
    if (path[0] == '/' || path[0] == '~' || strcmp(path, "..") == 0 || strncmp(path, "../", 3) == 0 ||
        strstr(path, "/../") || (strlen(path) > 2 && strcmp(path + strlen(path) - 3, "/..") == 0))
        return false;
    /* The nearest existing folder or link: a link may lead outside, also to a path that does not exist yet. */
    snprintf(folder, sizeof folder, "%s", path);
    for (;;) {
        char *slash = strrchr(folder, '/');
        if (lstat(folder, &about) == 0 || !slash)
            break;
        *slash = '\0';
    }
    if (lstat(folder, &about) != 0)
        return true;
    if (!realpath(".", here) || !realpath(folder, there))
        return false;
    size_t length = strlen(here);
    return strncmp(here, there, length) == 0 && (length == 1 || there[length] == '/' || there[length] == '\0');
}

static int stays_inside(size_t i, const tare__toml_pair *pair, const char *where, tare__error *error)
{
    static const char *const outputs[] = {"html",       "json",       "csv",    "chrome",     "perfetto", "tensorboard",
                                          "flamegraph", "folded",     "speedscope", "pprof", "store"};
    static const char *const no_places[] = {"off", "no", "none", "false", "0"};
    bool writes = false, is_store = strcmp(known[i].name, "store") == 0, none = false;
    for (size_t j = 0; j < TARE__COUNT_OF(outputs); j++)
        writes = writes || strcmp(known[i].name, outputs[j]) == 0;
    for (size_t j = 0; j < TARE__COUNT_OF(no_places); j++)
        none = none || (is_store && strcasecmp(pair->value, no_places[j]) == 0);
    if (!writes || none || is_inside(pair->value))
        return is_store && strstr(pair->value, "://")
                   ? tare__fail(
                         error, TARE_E_USAGE,
                         "%s: store: a server can only be set with --store or TARE_STORE, not in a settings file",
                         where)
                   : 0;
    return tare__setting_fail(error, TARE__SETTING_OUTSIDE, where, known[i].name, pair->value);
}

static int take_pair(void *context, const tare__toml_pair *pair, tare__error *error)
{
    settings *to = context;
    size_t i = find_known(pair->key);
    char where[sizeof to->values->where];
    snprintf(where, sizeof where, "%s:%u", to->file, pair->line);
    if (i == KNOWN && is_the_packages(pair->key))
        return 0;
    if (i == KNOWN)
        return tare__setting_fail(error, TARE__SETTING_UNKNOWN, where, pair->key, near_known(pair->key));
    if (known[i].is_switch != (pair->kind == TARE__TOML_SWITCH))
        return tare__setting_fail(error, TARE__SETTING_TYPE, where, known[i].name,
                                  known[i].is_switch ? "true or false" : "a string or a number");
    value *value = &to->values[i];
    if (value->text && !to->replaces)
        return tare__setting_fail(error, TARE__SETTING_TWICE, where, known[i].name, NULL);
    int status = stays_inside(i, pair, where, error);
    if (status)
        return status;
    value->text = keep(pair->value);
    memcpy(value->where, where, sizeof where);
    return value->text ? 0 : tare__no_memory(error);
}

/* [history]: enabled, store and tag, each an option with another name. */
static int take_history_pair(void *context, const tare__toml_pair *pair, tare__error *error)
{
    settings *to = context;
    tare__toml_pair same = *pair;
    if (strcmp(pair->key, "enabled") == 0 && pair->kind == TARE__TOML_SWITCH) {
        same.key = "no-history";
        same.value = strcmp(pair->value, "true") == 0 ? "false" : "true";
    } else if (strcmp(pair->key, "enabled") == 0) {
        return tare__fail(error, TARE_E_USAGE, "%s:%u: enabled must be true or false", to->file, pair->line);
    } else if (strcmp(pair->key, "store") != 0 && strcmp(pair->key, "tag") != 0) {
        return tare__fail(error, TARE_E_USAGE,
                          "%s:%u: unknown setting '%s' in [history]; available: enabled, store, tag", to->file,
                          pair->line, pair->key);
    }
    return take_pair(context, &same, error);
}

static int read_file(settings *to, const char *file, const char *table, tare__error *error)
{
    char *text;
    size_t bytes;
    const char *refused;
    int status = tare__toml_file(file, &text, &bytes, &refused, error);
    if (refused) {
        tare__error ignored;
        tare__setting_fail(&ignored, TARE__SETTING_IGNORED, file, NULL, refused);
        tare__cli_say("tare", "%s", ignored.text);
    }
    if (status || !text)
        return status;
    to->file = file;
    status = tare__toml_read(text, bytes, file, table, take_pair, to, error);
    if (!status)
        status = tare__toml_read(text, bytes, file, table[0] ? "tool.tare.history" : "history", take_history_pair, to,
                                 error);
    free(text);
    return status;
}

/* The later file takes precedence; within one file a name may occur once. */
static int read_files(settings *to, tare__error *error)
{
    settings other = {.replaces = false};
    int status = read_file(to, "pyproject.toml", "tool.tare", error);
    if (!status)
        status = read_file(&other, "tare.toml", "", error);
    for (size_t i = 0; i < KNOWN; i++)
        if (other.values[i].text)
            to->values[i] = other.values[i];
    return status;
}

/* ---- environment ---------------------------------------------------------------------------------- */
static int take_variable(settings *to, size_t i, const char *variable, const char *text, tare__error *error)
{
    static const char *const yes[] = {"1", "true", "yes", "on"}, *const no[] = {"0", "false", "no", "off", ""};
    value *value = &to->values[i];
    if (!known[i].is_switch && !*text)
        return 0; /* an empty variable counts as unset */
    snprintf(value->where, sizeof value->where, "%s", variable);
    value->text = text;
    if (!known[i].is_switch)
        return 0;
    for (size_t j = 0; j < TARE__COUNT_OF(yes); j++)
        if (strcasecmp(text, yes[j]) == 0) {
            value->text = "true";
            return 0;
        }
    for (size_t j = 0; j < TARE__COUNT_OF(no); j++)
        if (strcasecmp(text, no[j]) == 0) {
            value->text = "false";
            return 0;
        }
    return tare__setting_fail(error, TARE__SETTING_SWITCH, variable, NULL, text);
}

static int read_variables(settings *to, tare__error *error)
{
    int status = 0;
    for (size_t i = 0; i < KNOWN && !status; i++) {
        char variable[64];
        variable_of(known[i].name, variable);
        const char *text = getenv(variable);
        if (text)
            status = take_variable(to, i, variable, text, error);
    }
    return status;
}

/* Variables of other programs may have the same prefix; one that is very similar to a setting is reported as
 * misspelled. */
static int find_misspelt(tare__error *error)
{
    for (char **entry = environ; entry && *entry; entry++) {
        char name[64], variable[64];
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "TARE_", 5) != 0 || length >= sizeof name)
            continue;
        for (size_t i = 5; i <= length; i++)
            name[i - 5] = i == length ? '\0' : (*entry)[i] == '_' ? '-' : (char)tolower((unsigned char)(*entry)[i]);
        bool other = find_known(name) < KNOWN;
        for (size_t i = 0; i < TARE__COUNT_OF(others); i++)
            other = other || strcmp(name, others[i]) == 0;
        const char *near = other ? NULL : near_known(name);
        if (!near)
            continue;
        variable_of(near, variable);
        snprintf(name, sizeof name, "%.*s", (int)length, *entry);
        return tare__setting_fail(error, TARE__SETTING_MISSPELT, NULL, name, variable);
    }
    return 0;
}

/* ---- into the command ----------------------------------------------------------------------------- */
static int hand_over(const tare__cli_command *command, const settings *from, void *to, tare__error *error)
{
    for (size_t i = 0; i < KNOWN; i++) {
        const value *value = &from->values[i];
        bool meant = value->text && (known[i].of & command->settings);
        for (size_t j = 0; meant && j < command->option_count; j++) {
            const tare__cli_option *option = &command->options[j];
            if (strcmp(option->name, known[i].name) != 0)
                continue;
            tare__error inner = {""};
            if (known[i].is_switch && strcmp(value->text, "true") != 0)
                continue;
            int status = tare__cli_take(command, option, to, known[i].is_switch ? NULL : value->text, &inner);
            if (status)
                return tare__fail(error, status, "%.200s: %s", value->where, inner.text);
        }
    }
    return 0;
}

static int load(const tare__cli_command *command, void *to, tare__error *error)
{
    settings from = {.file = ""};
    int status = read_files(&from, error);
    if (!status)
        status = read_variables(&from, error);
    if (!status)
        status = find_misspelt(error);
    return status ? status : hand_over(command, &from, to, error);
}

int tare__cli_read(const tare__cli_command *command, int argc, char **argv, void *settings, tare__cli_words *words,
                   tare__error *error)
{
    tare__error of_settings = {""};
    int loaded = load(command, settings, &of_settings);
    int status = tare__cli_parse(command, argc, argv, settings, words, error);
    if (status || words->help || !loaded)
        return status;
    return tare__fail(error, loaded, "%s", of_settings.text);
}
