/* ort_measure: measures a model in every requested configuration, each in a separate process, and once more with the
 * runtime's profiler for its layers. One thread.
 * Must not know how anything is shown. */
#define _GNU_SOURCE
#include "half.h"
#include "ort_inner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tare.h"

#define SECONDS     3.0
#define RUNS_LEAST  30u
#define RUNS_MOST   1000u
#define BESIDE_RUNS 100u

/* ---- texts ---------------------------------------------------------------------------------------------------- */
const char *tare__measuring_text(tare__measuring *measuring, const char *text)
{
    return text ? tare__arena_copy(measuring->measured->arena, text, strlen(text)) : NULL;
}

/* ---- precision ------------------------------------------------------------------------------------------------ */
static const char *const precision_names[][2] = {{"float32", "fp32"}, {"float16", "fp16"}, {"bfloat16", "bf16"},
                                                 {"float64", "fp64"}, {"int8", "int8"},    {"uint8", "int8"}};

static const char *precision_of(const char *type)
{
    for (size_t i = 0; type && i < TARE__COUNT_OF(precision_names); i++)
        if (strcmp(type, precision_names[i][0]) == 0)
            return precision_names[i][1];
    return NULL;
}

/* Of the weights that take the most space; for a model without weights, of its first input. */
static const char *stored_precision(const tare__model_report *report)
{
    for (size_t i = 0; i < report->n_types; i++)
        if (precision_of(report->types[i].what))
            return precision_of(report->types[i].what);
    return report->n_inputs ? precision_of(report->inputs[0].type) : NULL;
}

/* Once for all configurations. */
static void make_half(tare__measuring *measuring)
{
    tare__error error = {""};
    if (measuring->half[0] || measuring->no_half)
        return;
    if (!tare__ort_folder_make(&measuring->folder)) {
        measuring->no_half = "no temporary directory for the fp16 model";
        return;
    }
    snprintf(measuring->half, sizeof measuring->half, "%s/model.onnx", measuring->folder.path);
    if (tare__half_convert(measuring->options->model, measuring->half, &error) == 0)
        return;
    measuring->half[0] = '\0';
    const char *why = tare__measuring_text(measuring, error.text);
    measuring->no_half = why ? why : "out of memory";
}

/* Whether the result is unavailable in the requested precision; else *model is the file to run. */
static bool refuse_precision(tare__measuring *measuring, tare__runner_result *result, const char **model)
{
    const char *stored = measuring->measured->stored_precision;
    char text[256];
    *model = measuring->options->model;
    if (!result->precision || (stored && strcmp(result->precision, stored) == 0))
        return false;
    if (stored && strcmp(stored, "fp32") == 0 && strcmp(result->precision, "fp16") == 0) {
        make_half(measuring);
        result->failure = measuring->no_half;
        result->converted = !measuring->no_half;
        *model = measuring->half;
        return measuring->no_half != NULL;
    }
    snprintf(text, sizeof text, "the model is stored as %s and cannot be converted; export it as %s and analyze "
                                "that file",
             stored ? stored : "something else", result->precision);
    result->failure = tare__measuring_text(measuring, text);
    return true;
}

/* ---- one configuration ---------------------------------------------------------------------------------------- */
static int reanalyze(tare__measuring *measuring, int64_t batch, tare__model_report **own, tare__error *error)
{
    tare__model_options options = *measuring->analyzed;
    *own = NULL;
    if (!batch || batch == options.batch)
        return 0;
    options.batch = batch;
    return tare__model_analyze(measuring->options->model, &options, own, error);
}

static tare__job job_of(const tare__measuring *measuring, const tare__runner_result *result, const char *model,
                        tare__ort_tensor *tensors, size_t n)
{
    const tare__runner_options *options = measuring->options;
    return (tare__job){.library = measuring->library,
                       .model = model,
                       .threads = result->threads,
                       .tensors = tensors,
                       .n_tensors = n,
                       .runs = options->runs ? options->runs : RUNS_MOST,
                       .least = options->runs ? options->runs : RUNS_LEAST,
                       .seconds = options->seconds > 0 ? options->seconds : SECONDS,
                       .warmup = options->warmup,
                       .warmup_is_fixed = options->warmup_is_fixed,
                       .pre = options->pre,
                       .post = options->post,
                       .beside_runs = options->runs && options->runs < BESIDE_RUNS ? options->runs : BESIDE_RUNS};
}

static int run_job(tare__measuring *measuring, const tare__job *job, tare__runner_result *result)
{
    tare__child_seen seen;
    tare__board *board = tare__board_new(job->runs);
    if (!board)
        return tare__no_memory(measuring->error);
    int status = tare__child_run(job, board, &seen, measuring->error);
    if (!status)
        status = tare__result_fill(result, board, &seen, job->tensors, job->n_tensors, measuring->measured->arena);
    tare__board_free(board);
    return status;
}

/* What a run of a configuration needs; freed by unprepare. */
typedef struct prepared {
    tare__arena *arena;
    tare__model_report *own; /* of this batch size; NULL: the one of all */
    const tare__model_report *report;
    tare__job job;
} prepared;

static int prepare(tare__measuring *measuring, const tare__runner_result *result, int64_t requested, const char *model,
                   prepared *to, int64_t *batch, tare__error *error)
{
    tare__ort_tensor *tensors = NULL;
    size_t n = 0;
    *to = (prepared){.arena = tare__arena_new()};
    int status = to->arena ? reanalyze(measuring, requested, &to->own, error) : tare__no_memory(error);
    to->report = to->own ? to->own : measuring->report;
    if (!status)
        status = tare__inputs_make(measuring, to->report, requested, to->arena, &tensors, &n, batch, error);
    to->job = job_of(measuring, result, model, tensors, n);
    return status;
}

static void unprepare(prepared *from)
{
    if (from->own)
        tare__model_free(from->own);
    tare__arena_free(from->arena);
}

static int measure_one(tare__measuring *measuring, tare__runner_result *result)
{
    tare__error error = {""};
    prepared run;
    const char *model;
    if (refuse_precision(measuring, result, &model))
        return 0;
    int status = prepare(measuring, result, result->batch, model, &run, &result->batch, &error);
    if (status == TARE_E_USAGE) {
        result->failure = tare__measuring_text(measuring, error.text);
        status = 0;
    } else if (status) {
        *measuring->error = error;
    } else {
        status = run_job(measuring, &run.job, result);
    }
    unprepare(&run);
    return status;
}

/* ---- profiled ------------------------------------------------------------------------------------------------- */
static int read_profile(tare__measuring *measuring, const tare__board *board, const tare__model_report *report,
                        tare__runner_result *result, bool layers)
{
    tare__error error = {""};
    tare__profile profile;
    tare__arena *arena = tare__arena_new();
    int status = arena ? tare__profile_read(board->profile, arena, &profile, &error)
                       : tare__no_memory(measuring->error);
    if (!status) {
        tare__executed_of(measuring, &profile, result);
        if (layers)
            status = tare__layers_of(measuring, report, &profile, result);
    } else if (status != TARE_E_MEMORY) {
        result->executed_reason = tare__measuring_text(measuring, error.text);
        status = 0;
    }
    tare__arena_free(arena);
    return status;
}

static int profile_job(tare__measuring *measuring, tare__job *job, const tare__model_report *report,
                       tare__runner_result *result, bool layers)
{
    tare__ort_folder folder;
    char prefix[sizeof folder.path + 8];
    tare__child_seen seen;
    if (!tare__ort_folder_make(&folder)) {
        result->executed_reason = "no temporary directory for the runtime's profile";
        return 0;
    }
    snprintf(prefix, sizeof prefix, "%s/run", folder.path);
    job->profile = prefix;
    job->pre = job->post = NULL;
    tare__board *board = tare__board_new(1);
    int status = board ? tare__child_run(job, board, &seen, measuring->error) : tare__no_memory(measuring->error);
    if (!status && (board->status || seen.death[0]))
        result->executed_reason = tare__measuring_text(measuring, board->status ? board->error.text : seen.death);
    else if (!status)
        status = read_profile(measuring, board, report, result, layers);
    tare__ort_folder_remove(&folder);
    tare__board_free(board);
    return status;
}

static int profile_one(tare__measuring *measuring, int64_t requested, tare__runner_result *result, bool layers)
{
    prepared run;
    int64_t batch = 0;
    const char *model = result->converted ? measuring->half : measuring->options->model;
    int status = prepare(measuring, result, requested, model, &run, &batch, measuring->error);
    if (!status)
        status = profile_job(measuring, &run.job, run.report, result, layers);
    unprepare(&run);
    return status;
}

/* ---- all of them ---------------------------------------------------------------------------------------------- */
static const char *name_of(tare__measuring *measuring, const tare__runner_result *result)
{
    const tare__runner_options *options = measuring->options;
    char text[96];
    int at = 0;
    text[0] = '\0';
    if (options->n_batches)
        at += snprintf(text + at, sizeof text - (size_t)at, "batch=%lld", (long long)result->batch);
    if (options->n_precisions)
        at += snprintf(text + at, sizeof text - (size_t)at, "%sprecision=%s", at ? "," : "", result->precision);
    if (options->n_threads)
        snprintf(text + at, sizeof text - (size_t)at, "%sthreads=%u", at ? "," : "", result->threads);
    return tare__measuring_text(measuring, text);
}

static void clear(tare__runner_result *result)
{
    double *figures[] = {&result->runtime_ns, &result->load_ns, &result->first_ns, &result->warm_cv,
                         &result->memory_before_bytes, &result->memory_loaded_bytes, &result->memory_load_peak_bytes,
                         &result->memory_peak_bytes, &result->memory_average_bytes, &result->memory_per_sample_bytes,
                         &result->casts_share};
    for (size_t i = 0; i < TARE__COUNT_OF(figures); i++)
        *figures[i] = NAN;
}

static int make_results(tare__measuring *measuring)
{
    const tare__runner_options *options = measuring->options;
    tare__model_measured *measured = measuring->measured;
    size_t batches = options->n_batches ? options->n_batches : 1, threads = options->n_threads ? options->n_threads : 1;
    size_t precisions = options->n_precisions ? options->n_precisions : 1;
    measured->results = tare__arena_alloc(measured->arena, batches * threads * precisions * sizeof *measured->results);
    if (!measured->results)
        return TARE_E_MEMORY;
    for (size_t p = 0; p < precisions; p++)
        for (size_t t = 0; t < threads; t++)
            for (size_t b = 0; b < batches; b++) {
                tare__runner_result *result = &measured->results[measured->n_results++];
                clear(result);
                result->batch = options->n_batches ? options->batches[b] : 0;
                result->precision = options->n_precisions ? options->precisions[p] : measured->stored_precision;
                result->threads = options->n_threads ? options->threads[t] : 0;
                result->name = name_of(measuring, result);
                if (!result->name)
                    return TARE_E_MEMORY;
            }
    return 0;
}

static void tell(const tare__measuring *measuring, const char *what, size_t done)
{
    if (measuring->options->progress)
        measuring->options->progress(measuring->options->context, what, done, measuring->measured->n_results + 1);
}

static int measure_all(tare__measuring *measuring)
{
    tare__model_measured *measured = measuring->measured;
    int status = 0;
    for (size_t i = 0; i < measured->n_results && !status; i++) {
        tell(measuring, measured->results[i].name, i);
        status = measure_one(measuring, &measured->results[i]);
    }
    return status;
}

/* The first of each precision that ran; the executed types are the same for the others. */
static int profile_all(tare__measuring *measuring)
{
    tare__model_measured *measured = measuring->measured;
    const tare__runner_options *options = measuring->options;
    size_t of_one = measured->n_results / (options->n_precisions ? options->n_precisions : 1);
    bool any = false;
    for (size_t i = 0; i < measured->n_results; i += of_one) {
        tare__runner_result *first = NULL;
        int64_t requested = 0;
        for (size_t k = i; k < i + of_one && !first; k++)
            if (measured->results[k].ran && !measured->results[k].failure) {
                first = &measured->results[k];
                requested = options->n_batches ? options->batches[k % options->n_batches] : 0;
            }
        if (!first)
            continue;
        tell(measuring, "its layers", measured->n_results);
        int status = profile_one(measuring, requested, first, !any);
        if (status)
            return status;
        if (!any && !measured->n_layers)
            measured->layers_absent = first->executed_reason;
        any = true;
        for (size_t k = i; k < i + of_one; k++) {
            measured->results[k].executed = first->executed;
            measured->results[k].executed_reason = first->executed_reason;
            measured->results[k].casts = first->casts;
            measured->results[k].casts_share = first->casts_share;
        }
    }
    return 0;
}

static int find_runtime(tare__measuring *measuring)
{
    tare__text path = {0};
    tare__error error = {""};
    int status = tare__runner_find(measuring->options->runtime, &path, &error);
    if (!status)
        measuring->library = tare__measuring_text(measuring, path.data);
    else if (status != TARE_E_MEMORY)
        measuring->measured->absent = tare__measuring_text(measuring, error.text);
    tare__text_free(&path);
    return measuring->library || measuring->measured->absent ? 0 : TARE_E_MEMORY;
}

/* First of all: without a runtime there is nothing to report about the model. */
static int try_runtime(tare__measuring *measuring)
{
    tare__model_measured *measured = measuring->measured;
    tare__job job = {.library = measuring->library};
    tare__child_seen seen;
    tare__board *board = tare__board_new(1);
    int status = board ? tare__child_run(&job, board, &seen, measuring->error) : TARE_E_MEMORY;
    if (!status && (board->status || seen.death[0])) {
        measured->absent = tare__measuring_text(measuring, board->status ? board->error.text : seen.death);
        status = measured->absent ? 0 : TARE_E_MEMORY;
    } else if (!status) {
        measured->runtime = tare__measuring_text(measuring, board->library);
        measured->runtime_version = tare__measuring_text(measuring, board->version);
        status = measured->runtime && measured->runtime_version ? 0 : TARE_E_MEMORY;
    }
    tare__board_free(board);
    return status;
}

/* The loader's message alone does not help if it was never installed. */
static void say_how_to_get_it(tare__measuring *measuring)
{
    tare__model_measured *measured = measuring->measured;
    char text[700];
    if (!measured->absent || measured->runtime || measuring->options->runtime || getenv("TARE_ONNXRUNTIME"))
        return;
    if (!strstr(measured->absent, "cannot open shared object"))
        return;
    snprintf(text, sizeof text, "no ONNX Runtime was found: pip install onnxruntime, or --runtime PATH");
    measured->absent = tare__measuring_text(measuring, text);
}

static int measure(tare__measuring *measuring)
{
    tare__model_measured *measured = measuring->measured;
    measured->stored_precision = stored_precision(measuring->report);
    int status = find_runtime(measuring);
    if (!status && !measured->absent)
        status = try_runtime(measuring);
    say_how_to_get_it(measuring);
    if (status || measured->absent)
        return status;
    status = make_results(measuring);
    if (!status)
        status = measure_all(measuring);
    if (status)
        return status;
    tare__results_mark_best(measured->results, measured->n_results);
    if (measuring->options->no_layers)
        measured->layers_absent = "disabled (--no-layers)";
    else
        status = profile_all(measuring);
    return status;
}

int tare__model_measure(const tare__model_report *report, const tare__model_options *analyzed,
                        const tare__runner_options *options, tare__model_measured **measured, tare__error *error)
{
    tare__arena *arena = tare__arena_new();
    *measured = arena ? tare__arena_alloc(arena, sizeof **measured) : NULL;
    if (!*measured) {
        tare__arena_free(arena);
        return tare__no_memory(error);
    }
    **measured = (tare__model_measured){.arena = arena};
    tare__peaks_clear(&(*measured)->peaks);
    tare__measuring measuring = {.report = report, .analyzed = analyzed, .options = options, .measured = *measured,
                                 .error = error};
    tare__ort_folder_sweep();
    int status = measure(&measuring);
    tare__ort_folder_remove(&measuring.folder);
    if (options->progress)
        options->progress(options->context, NULL, 0, 0);
    if (status) {
        if (status == TARE_E_MEMORY)
            tare__fail(error, status, "out of memory");
        tare__model_measured_free(*measured);
        *measured = NULL;
    }
    return status;
}

void tare__model_measured_free(tare__model_measured *measured)
{
    if (measured)
        tare__arena_free(measured->arena);
}
