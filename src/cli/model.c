/* model: `tare model`: the cost of a model file, computed from the file and measured.
 * One thread.
 * Must not know how a model is read, run or laid out. */
#define _GNU_SOURCE
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit/emit.h"
#include "inputs.h"
#include "keep.h"
#include "model/model.h"
#include "model_measure.h"
#include "views.h"

#define ME "tare model"
#define BATCHES_MAX 32u

typedef struct model_settings {
    const char *path; /* the model */
    const char *format, *output, *folder;
    int64_t batches[BATCHES_MAX]; /* the file is analyzed at the first, measured at each */
    size_t n_batches;                         /* 0: not given */
    tare__model_options options;              /* batch: the first of them */
    tare__cli_measure measure;
    tare__emit_options emit;
    tare__cli_keeping keeping;
    char *default_output; /* default name of a page */
    tare__arena *arena;   /* of the options */
} model_settings;

enum { MODEL_CSV, MODEL_DIM, MODEL_BATCH, MODEL_SHAPE, MODEL_TAG };

static const tare__cli_option model_options[] = {
    {"html", 0, NULL, "write an HTML report", TARE__CLI_FORMAT(model_settings, format)},
    {"json", 0, NULL, "print every table as JSON", TARE__CLI_FORMAT(model_settings, format)},
    {"csv", 0, "DIR", "write every table as a CSV file to this directory", MODEL_CSV},
    {"output", 'o', "FILE", "output file (written atomically)", TARE__CLI_TEXT(model_settings, output)},
    {"batch", 'b', "N[,N…]", "batch sizes: the first dimension of inputs where the model leaves it open",
     MODEL_BATCH},
    {"dim", 0, "NAME=N", "value of a symbolic dimension; can be repeated", MODEL_DIM},
    {"shape", 0, "INPUT=N,N,…", "shape of an input; can be repeated", MODEL_SHAPE},
    {"all", 0, NULL, "show every operator and layer", TARE__CLI_SETS(model_settings, emit.all)},
    {"width", 0, "N", "width of the text output (default: terminal width, from 80 to 120)",
     TARE__CLI_WIDTH(model_settings, emit.width)},
    {"tag", 0, "TAG", "tag the run in the history; can be repeated", MODEL_TAG},
    {"no-history", 0, NULL, "do not add the measurements to the history", TARE__CLI_SETS(model_settings, keeping.off)},
    {"store", 0, "PLACE", "history to use: a directory, a file, a postgres:// URL, or off",
     TARE__CLI_TEXT(model_settings, keeping.store)},
    TARE__MEASURE_OPTIONS(model_settings),
};

/* ---- settings ------------------------------------------------------------------------------------------------ */
/* Parses a dimension's value up to `end`; *after points to what follows it. False: invalid. */
static bool read_dimension(const char *text, int64_t *value, const char **after)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    *value = number;
    *after = end;
    return errno == 0 && number <= INT32_MAX;
}

static int take_batches(model_settings *settings, const char *argument, tare__error *error)
{
    const char *at = argument;
    settings->n_batches = 0;
    for (;; at++) {
        int64_t batch;
        if (!read_dimension(at, &batch, &at) || batch == 0 || (*at && *at != ','))
            return tare__fail(error, TARE_E_USAGE,
                              "--batch: '%.64s' is not a batch size or a comma-separated list of them", argument);
        if (settings->n_batches == BATCHES_MAX)
            return tare__fail(error, TARE_E_USAGE, "--batch: at most %u are allowed", BATCHES_MAX);
        settings->batches[settings->n_batches++] = batch;
        if (!*at)
            break;
    }
    settings->options.batch = settings->batches[0];
    return 0;
}

/* Appends an element to a list that the options point to. */
static void *add_to(model_settings *settings, const void **list, size_t *n, size_t bytes)
{
    char *longer = settings->arena ? tare__arena_alloc(settings->arena, (*n + 1) * bytes) : NULL;
    if (!longer)
        return NULL;
    if (*n)
        memcpy(longer, *list, *n * bytes);
    *list = longer;
    return longer + bytes * (*n)++;
}

/* The last '=': names of inputs may contain others. */
static const char *name_before(model_settings *settings, const char *argument, const char **value)
{
    const char *equals = strrchr(argument, '=');
    if (!equals || equals == argument)
        return NULL;
    *value = equals + 1;
    return settings->arena ? tare__arena_copy(settings->arena, argument, (size_t)(equals - argument)) : NULL;
}

static int take_dimension(model_settings *settings, const char *argument, tare__error *error)
{
    const char *value = NULL, *name = name_before(settings, argument, &value);
    int64_t number;
    if (!name || !read_dimension(value, &number, &value) || *value)
        return tare__fail(error, TARE_E_USAGE, "--dim: '%.64s' is not NAME=N, such as sequence=128", argument);
    const void *list = settings->options.dimensions;
    tare__model_dimension *one = add_to(settings, &list, &settings->options.n_dimensions, sizeof *one);
    if (!one)
        return tare__no_memory(error);
    settings->options.dimensions = list;
    *one = (tare__model_dimension){.name = name, .value = number};
    return 0;
}

static int take_shape(model_settings *settings, const char *argument, tare__error *error)
{
    const char *at = NULL, *name = name_before(settings, argument, &at);
    int64_t dims[TARE__MODEL_RANK_MAX];
    size_t rank = 0;
    bool sound = name != NULL;
    for (; sound && *at; at += *at == ',') {
        sound = rank < TARE__MODEL_RANK_MAX && read_dimension(at, &dims[rank], &at) && (!*at || (*at == ',' && at[1]));
        rank++;
    }
    if (!sound)
        return tare__fail(error, TARE_E_USAGE, "--shape: '%.64s' is not INPUT=N,N,…, such as image=1,3,224,224",
                          argument);
    const void *list = settings->options.shapes;
    tare__model_shape *one = add_to(settings, &list, &settings->options.n_shapes, sizeof *one);
    int64_t *kept = one ? tare__arena_alloc(settings->arena, rank * sizeof *kept + 1) : NULL;
    if (!kept)
        return tare__no_memory(error);
    memcpy(kept, dims, rank * sizeof *kept);
    settings->options.shapes = list;
    *one = (tare__model_shape){.input = name, .rank = rank, .dims = kept};
    return 0;
}

static int take_model_option(void *context, int key, const char *argument, tare__error *error)
{
    model_settings *settings = context;
    int status;
    if (key >= TARE__MEASURE_RUNS)
        return tare__measure_take(&settings->measure, key, argument, settings->arena, error);
    switch (key) {
    case MODEL_CSV:
        status = tare__cli_take_format(TARE__VIEW_CSV, &settings->format, error);
        return status ? status : tare__cli_take_text("csv", argument, &settings->folder, error);
    case MODEL_BATCH: return take_batches(settings, argument, error);
    case MODEL_DIM: return take_dimension(settings, argument, error);
    case MODEL_SHAPE: return take_shape(settings, argument, error);
    default: return tare__cli_keep_take_tags(&settings->keeping, argument, error);
    }
}

/* Words that are not a model may be further thresholds. */
static int take_word(model_settings *settings, const char *word, tare__error *error)
{
    bool taken = false;
    int status = tare__measure_take_word(&settings->measure, word, &taken, error);
    if (status || taken)
        return status;
    if (settings->path)
        return tare__fail(error, TARE_E_USAGE, "only one model is allowed; unexpected argument '%.64s'", word);
    settings->path = word;
    return 0;
}

static int find_input(const tare__cli_words *words, model_settings *settings, tare__error *error)
{
    int status = 0;
    for (int i = 0; i < words->count && !status; i++)
        status = take_word(settings, words->words[i], error);
    for (int i = 0; words->rest && words->rest[i] && !status; i++)
        status = take_word(settings, words->rest[i], error);
    if (!status && !settings->path)
        status = tare__fail(error, TARE_E_USAGE, "missing model: tare model FILE.onnx");
    return status ? status : tare__measure_check(&settings->measure, words, error);
}

/* ---- output file --------------------------------------------------------------------------------------------- */
/* An HTML page is not written to a terminal: it is placed next to the model, unless a file of that name exists. */
static int find_place(model_settings *settings, tare__error *error)
{
    if (!settings->format || strcmp(settings->format, "html") != 0 || settings->output || !isatty(STDOUT_FILENO))
        return 0;
    int status = tare__cli_place_beside(settings->path, ".onnx", ".html", &settings->default_output, error);
    settings->output = settings->default_output;
    return status;
}

static int check_outputs(model_settings *settings, tare__error *error)
{
    if (settings->output && settings->folder)
        return tare__fail(error, TARE_E_USAGE, "--csv and --output are mutually exclusive");
    if (settings->output && tare__cli_same_file(settings->path, settings->output))
        return tare__fail(error, TARE_E_USAGE, "--output is the model itself; choose another file");
    return find_place(settings, error);
}

/* ---- the report ---------------------------------------------------------------------------------------------- */
static int show(const model_settings *settings, const tare__model_view *view, bool *unwritten, tare__error *error)
{
    const char *format = settings->format;
    tare__emit_writer *write = !format                        ? tare__emit_model_text
                               : strcmp(format, "json") == 0 ? tare__emit_model_json
                                                             : tare__emit_model_html;
    if (settings->folder)
        return tare__view_folder(settings->folder, tare__emit_model_csv, view, unwritten, error);
    return tare__view_one(settings->output, &settings->emit, !format, write, view, unwritten, error);
}

static int analyze_and_show(model_settings *settings, tare__error *error)
{
    tare__model_report *report = NULL;
    bool unwritten = false;
    settings->options.files = settings->measure.files;
    settings->options.n_files = settings->measure.options.n_files;
    int status = tare__model_analyze(settings->path, &settings->options, &report, error);
    tare__model_measured *measured = NULL;
    tare__figures *figures = NULL;
    if (!status)
        status = tare__measure_run(&settings->measure, settings->path, settings->batches, settings->n_batches, report,
                                   &settings->options, &measured, error);
    bool keeps = measured && tare__cli_keeps(&settings->keeping);
    if (!status && (keeps || (settings->format && strcmp(settings->format, "json") == 0)))
        status = tare__measure_figures(settings->path, &settings->options, report, measured, &figures);
    tare__model_view view = {.report = report, .measured = measured, .figures = figures};
    if (!status)
        status = show(settings, &view, &unwritten, error);
    if (!status && settings->default_output)
        tare__cli_say(ME, "wrote %s", settings->default_output);
    int exit_status = unwritten && status != TARE_E_USAGE ? TARE__EXIT_FAILED
                      : status                             ? tare__cli_load_exit(status)
                                                           : TARE__EXIT_OK;
    if (exit_status)
        tare__cli_say(ME, "%s", error->text[0] ? error->text : "cannot write the report");
    else
        exit_status = tare__measure_exit(&settings->measure, measured);
    if (!status && keeps)
        tare__cli_keep_figures(&settings->keeping, &(tare__cli_keep_what){.figures = figures,
                                                                          .path = settings->path,
                                                                          .elapsed_ns = NAN,
                                                                          .status = exit_status});
    tare__figures_free(figures);
    tare__model_measured_free(measured);
    tare__model_free(report);
    return exit_status;
}

static int model_main(int argc, char **argv)
{
    tare__error error = {""};
    tare__cli_words words;
    model_settings settings = {.arena = tare__arena_new()};
    int status = tare__cli_read(&tare__cli_model_command, argc, argv, &settings, &words, &error);
    bool help = !status && words.help;
    if (!status && !help)
        status = find_input(&words, &settings, &error);
    if (!status && !help)
        status = check_outputs(&settings, &error);
    signal(SIGPIPE, SIG_IGN); /* a reader that closes the pipe early is not a failure */
    int exit_status = help     ? tare__cli_print_help(&tare__cli_model_command)
                      : status ? tare__cli_usage(ME, &error)
                               : analyze_and_show(&settings, &error);
    free(settings.default_output);
    tare__arena_free(settings.arena);
    return exit_status;
}

const tare__cli_command tare__cli_model_command = {
    .name = "model",
    .summary = "Analyze and benchmark an ONNX model: FLOPs, memory, latency, throughput",
    .usage = "[options] FILE.onnx",
    .details = "FLOPs are twice the multiply-accumulates of convolutions, matrix products, attention\n"
               "and recurrent layers (docs/MODELS.md). If ONNX Runtime is installed, the model is\n"
               "then run in every requested configuration. Exit status: 0 success; 1 a threshold is\n"
               "exceeded, or the report could not be written; 2 invalid command line; 3 the model\n"
               "could not be read or run.\n",
    .examples = "  tare model resnet50.onnx\n"
                "  tare model --batch 8 --dim sequence=128 bert.onnx\n"
                "  tare model --json gpt2.onnx | jq .total.macs\n"
                "  tare model --batch 1,4,8 --threads 1,4 --threshold p99:120ms resnet50.onnx\n",
    .options = model_options,
    .option_count = TARE__COUNT_OF(model_options),
    .settings = TARE__SETTINGS_SHOWING,
    .take = take_model_option,
    .main = model_main,
};
