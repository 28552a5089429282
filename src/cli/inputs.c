/* inputs: reads figures from runs, reports of models and baselines, distinguished by their first bytes.
 * One thread.
 * Must not know what they are used for. */
#define _GNU_SOURCE
#include "inputs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/trace.h"

#define JSON_MAX_BYTES ((size_t)1 << 30)
#define FILES_MAX ((size_t)10000)

/* ---- one file ------------------------------------------------------------------------------------------- */
static int cannot_read(const char *path, tare__error *error)
{
    return tare__fail(error, TARE_E_INPUT, "cannot read '%.200s': %s", path, strerror(errno));
}

static int read_text(FILE *file, const char *path, tare__text *text, tare__error *error)
{
    char piece[1 << 16];
    size_t got;
    while ((got = fread(piece, 1, sizeof piece, file)) > 0 && !text->failed) {
        if (text->length > JSON_MAX_BYTES)
            return tare__fail(error, TARE_E_INPUT, "'%.200s' is larger than 1 GiB", path);
        tare__text_append(text, piece, got);
    }
    if (ferror(file))
        return cannot_read(path, error);
    return text->failed ? tare__fail(error, TARE_E_MEMORY, "out of memory while reading '%.200s'", path) : 0;
}

static int load_json(FILE *file, const char *path, tare__figures **figures, tare__error *error)
{
    tare__text text = {0};
    int status = read_text(file, path, &text, error);
    if (!status)
        status = tare__figures_read_json(text.data ? text.data : "", text.length, path, figures, error);
    tare__text_free(&text);
    return status;
}

static int load_trace(const char *path, tare__figures **figures, tare__error *error)
{
    tare__trace *trace = NULL;
    tare__analysis *analysis = NULL;
    tare__analyze_options options = {.samples = true};
    int status = tare__trace_open(path, &trace, error);
    if (!status)
        status = tare__analyze(trace, &options, &analysis, error);
    if (!status && tare__figures_of_analysis(analysis, figures))
        status = tare__fail(error, TARE_E_MEMORY, "out of memory while reading '%.200s'", path);
    tare__analysis_free(analysis);
    tare__trace_close(trace);
    return status;
}

/* JSON begins with a bracket, after spaces; a trace never does. The file may be a pipe, for which only one byte can be
 * pushed back. */
static bool is_json(FILE *file)
{
    int byte = getc(file);
    if (byte == 0xef && getc(file) == 0xbb && getc(file) == 0xbf) /* a byte-order mark */
        byte = getc(file);
    while (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t')
        byte = getc(file);
    ungetc(byte, file);
    return byte == '{' || byte == '[';
}

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), end = strlen(ending);
    return length > end && strcmp(name + length - end, ending) == 0;
}

/* If a model is given, the message suggests its report. */
static int load_no_json(const char *path, tare__figures **figures, tare__error *error)
{
    int status = load_trace(path, figures, error);
    if (status == TARE_E_INPUT && ends_with(path, ".onnx"))
        return tare__fail(error, status,
                          "'%.200s' is not a trace; compare reports of models: tare model --json %.200s -o FILE.json",
                          path, path);
    return status;
}

int tare__cli_load_figures(const char *path, tare__figures **figures, tare__error *error)
{
    *figures = NULL;
    int fd, status = tare__input_stream(path, &fd, error);
    if (status)
        return status;
    FILE *file = fdopen(fd, "r");
    if (!file) {
        close(fd);
        return tare__fail(error, TARE_E_MEMORY, "out of memory while reading '%.200s'", path);
    }
    status = is_json(file) ? load_json(file, path, figures, error) : load_no_json(path, figures, error);
    fclose(file);
    return status;
}

/* ---- many ------------------------------------------------------------------------------------------------ */
typedef struct side {
    tare__figures **rows;
    size_t n, room;
} side;

static int is_run(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (ends_with(entry->d_name, ".tare") || ends_with(entry->d_name, ".json"));
}

static int add_file(side *to, const char *path, tare__error *error)
{
    tare__figures *figures;
    if (to->n == FILES_MAX)
        return tare__fail(error, TARE_E_USAGE, "more than %zu runs on one side", FILES_MAX);
    int status = tare__cli_load_figures(path, &figures, error);
    if (status)
        return status;
    if (!tare__array_fit(&to->rows, &to->room, to->n + 1, sizeof(tare__figures *))) {
        tare__figures_free(figures);
        return tare__no_memory(error);
    }
    to->rows[to->n++] = figures;
    return 0;
}

static int add_folder(side *to, const char *path, tare__error *error)
{
    struct dirent **entries = NULL;
    int found = scandir(path, &entries, is_run, alphasort), status = 0;
    if (found < 0)
        return cannot_read(path, error);
    if (found == 0)
        status = tare__fail(error, TARE_E_INPUT, "no .tare or .json file in the folder '%.200s'", path);
    for (int i = 0; i < found; i++) {
        char *name = NULL;
        if (!status && asprintf(&name, "%s/%s", path, entries[i]->d_name) < 0)
            status = tare__no_memory(error);
        if (!status)
            status = add_file(to, name, error);
        free(name);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static int join(side *of, tare__figures **figures, tare__error *error)
{
    if (of->n == 1) {
        *figures = of->rows[0];
        of->n = 0;
        return 0;
    }
    return tare__figures_join((const tare__figures *const *)of->rows, of->n, figures)
               ? tare__no_memory(error)
               : 0;
}

int tare__cli_load_side(char *const *paths, size_t n, tare__figures **figures, tare__error *error)
{
    side all = {0};
    int status = 0;
    *figures = NULL;
    for (size_t i = 0; i < n && !status; i++) {
        struct stat about;
        if (stat(paths[i], &about) != 0)
            status = cannot_read(paths[i], error);
        else
            status = S_ISDIR(about.st_mode) ? add_folder(&all, paths[i], error) : add_file(&all, paths[i], error);
    }
    if (!status)
        status = join(&all, figures, error);
    for (size_t i = 0; i < all.n; i++)
        tare__figures_free(all.rows[i]);
    free(all.rows);
    return status;
}

int tare__cli_load_joined(size_t n, tare__cli_load_one *load, const void *context, tare__figures **figures,
                          tare__error *error)
{
    tare__figures **each = calloc(n + 1, sizeof *each);
    int status = each ? 0 : tare__no_memory(error);
    for (size_t i = 0; i < n && !status; i++)
        status = load(context, i, &each[i], error);
    if (!status && tare__figures_join((const tare__figures *const *)each, n, figures) != 0)
        status = tare__no_memory(error);
    for (size_t i = 0; each && i < n; i++)
        tare__figures_free(each[i]);
    free(each);
    return status;
}

int tare__cli_load_exit(int status)
{
    if (status == TARE_E_USAGE)
        return TARE__EXIT_USAGE;
    return status == TARE_E_MEMORY ? TARE__EXIT_FAILED : TARE__EXIT_INPUT;
}
