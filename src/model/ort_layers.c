/* ort_layers: a model's layers as the runtime ran them: time against multiply-accumulates, against what this machine can
 * do; and the types that were really computed with. One thread.
 * Must not know how a profile is written. */
#define _GNU_SOURCE
#include "ort_inner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tare.h"

/* ---- one layer ----------------------------------------------------------------------------------------------------- */
static double median_of(const double *values, size_t n)
{
    double sorted[TARE__PROFILE_RUNS_MAX];
    memcpy(sorted, values, n * sizeof *sorted);
    tare__sort(sorted, n);
    return tare__quantile_sorted(sorted, n, 0.5);
}

/* A node that the runtime made of the file's keeps its name and, but for what was fused into it, its kind. */
static bool same_kind(const char *file, const char *ran)
{
    return strcmp(file, ran) == 0 || strstr(ran, file) || (strcmp(file, "MatMul") == 0 && strstr(ran, "Gemm"));
}

static const tare__model_layer *find_layer(const tare__model_report *report, const tare__intern *names,
                                           const tare__profile_node *node)
{
    uint32_t at = tare__intern_find(names, node->name, strlen(node->name));
    const tare__model_layer *layer = at == TARE__INTERN_NONE || !*node->name ? NULL : &report->layers[at];
    return layer && layer->state == TARE__MODEL_COUNTED && same_kind(layer->op, node->op) ? layer : NULL;
}

static void count(tare__runner_layer *layer, const tare__profile_node *node, const tare__model_layer *in_file)
{
    uint64_t macs = 0;
    if (in_file && in_file->cost.macs) {
        layer->counted = true;
        layer->macs = in_file->cost.macs;
    } else if (tare__profile_macs(node, &macs)) {
        layer->counted = !__builtin_mul_overflow(macs, (uint64_t)llround(layer->calls), &layer->macs);
    } else if (in_file) {
        layer->counted = true; /* none are multiplied */
    }
}

static const char *types_of(const tare__profile_node *node)
{
    const char *in = node->n_inputs ? node->inputs[0].type : NULL, *out = node->n_outputs ? node->outputs[0].type : NULL;
    return in ? in : out ? out : "";
}

/* Shorter ones are mostly the rounding of a clock that shows whole microseconds. */
#define LEAST_CALL_NS 5000.0

/* What is stored in one type and multiplied in another has the peak of the other. */
static int type_of(const tare__runner_layer *layer)
{
    const char *const in_int8[] = {"Quant", "Integer", "QLinear", "QGemm", "NBits", "QAttention"};
    for (size_t i = 0; i < TARE__COUNT_OF(in_int8); i++)
        if (strstr(layer->op, in_int8[i]))
            return TARE__PEAK_INT8;
    return tare__peak_find(layer->types, strlen(layer->types));
}

static const char *find_roof(tare__runner_layer *layer, const tare__peaks *peaks)
{
    double operations = 2.0 * (double)layer->macs;
    int type = type_of(layer);
    double peak = type < 0 ? NAN : peaks->flops[type];
    if (!(peaks->level_per_s[TARE__PEAK_LEVELS - 1] > 0))
        return "the peaks of the machine could not be measured";
    if (!(peak > 0))
        return "no peak is measured for its type";
    if (layer->time_ns < LEAST_CALL_NS * fmax(layer->calls, 1))
        return "it is too short for the clock of the profile";
    double compute_s = operations / peak, move_s = layer->bytes > 0 ? layer->calls * tare__peaks_move_s(peaks, layer->bytes) : 0;
    if (fmax(compute_s, move_s) * 1e9 > layer->time_ns)
        return "it is faster than its roof: fewer operations are executed, or bytes moved, than are counted";
    layer->memory_bound = move_s > compute_s;
    layer->roof_flops = operations / fmax(compute_s, move_s);
    return NULL;
}

static void set_against_roof(tare__runner_layer *layer, const tare__model_measured *measured)
{
    layer->flops = layer->roof_flops = NAN;
    if (!layer->counted || !layer->macs)
        return;
    if (measured->layers_slowdown > TARE__PROFILE_SLOWDOWN) {
        layer->roof_absent = "profiling took longer than the layers themselves";
        return;
    }
    if (layer->time_ns > 0)
        layer->flops = 2.0 * (double)layer->macs / layer->time_ns * 1e9;
    layer->roof_absent = find_roof(layer, &measured->peaks);
}

static const double *samples_of(tare__measuring *measuring, const tare__profile_node *node, size_t runs)
{
    double *samples = tare__arena_alloc(measuring->measured->arena, runs * sizeof *samples);
    return samples ? memcpy(samples, node->run_ns, runs * sizeof *samples) : NULL;
}

static bool has_memory(const tare__runner_layer *layer)
{
    return layer->name && layer->op && layer->provider && layer->samples_ns;
}

static int longest_first(const void *a, const void *b)
{
    const tare__runner_layer *of_a = a, *of_b = b;
    return (of_a->time_ns < of_b->time_ns) - (of_a->time_ns > of_b->time_ns);
}

static tare__intern *names_of(const tare__model_report *report)
{
    tare__intern *names = tare__intern_new();
    for (size_t i = 0; names && i < report->n_layers; i++) {
        char unnamed[32];
        size_t length = report->layers[i].node ? strlen(report->layers[i].node) : 0;
        uint32_t id = length ? tare__intern_add(names, report->layers[i].node, length) : TARE__INTERN_NONE;
        /* One entry a layer, so that ids are places: a name seen before, or none, gets one that nobody asks for. */
        if (length && id == (uint32_t)i)
            continue;
        unnamed[0] = '\1';
        memcpy(unnamed + 1, &i, sizeof i);
        if (tare__intern_add(names, unnamed, 1 + sizeof i) == TARE__INTERN_NONE) {
            tare__intern_free(names);
            return NULL;
        }
    }
    return names;
}

int tare__layers_of(tare__measuring *measuring, const tare__model_report *report, const tare__profile *profile,
                    const tare__runner_result *result)
{
    tare__model_measured *measured = measuring->measured;
    tare__intern *names = names_of(report);
    tare__runner_layer *layers = tare__arena_alloc(measured->arena, (profile->n_nodes + 1) * sizeof *layers);
    if (!layers || !names) {
        tare__intern_free(names);
        return tare__fail(measuring->error, TARE_E_MEMORY, "out of memory");
    }
    tare__sample_roofline(result->threads, &measured->peaks);
    for (size_t i = 0; i < profile->n_nodes; i++) {
        const tare__profile_node *node = profile->nodes[i];
        layers[i] = (tare__runner_layer){.name = tare__measuring_text(measuring, *node->name ? node->name : node->op),
                                         .op = tare__measuring_text(measuring, node->op),
                                         .provider = tare__measuring_text(measuring, node->provider),
                                         .types = types_of(node),
                                         .calls = (double)node->calls / (double)profile->runs,
                                         .time_ns = median_of(node->run_ns, profile->runs),
                                         .samples_ns = samples_of(measuring, node, profile->runs),
                                         .n_samples = profile->runs,
                                         .bytes = node->bytes,
                                         .cast = tare__profile_cast(node)};
        if (!has_memory(&layers[i])) {
            tare__intern_free(names);
            return tare__fail(measuring->error, TARE_E_MEMORY, "out of memory");
        }
        count(&layers[i], node, find_layer(report, names, node));
        measured->layers_ns += layers[i].time_ns;
    }
    tare__intern_free(names);
    double latency_ns = result->ran ? result->latency.quantile_ns[TARE__RUNNER_P50] : NAN;
    measured->layers_slowdown = latency_ns > 0 ? measured->layers_ns / latency_ns : NAN;
    for (size_t i = 0; i < profile->n_nodes; i++) {
        layers[i].share = measured->layers_ns > 0 ? layers[i].time_ns / measured->layers_ns : NAN;
        set_against_roof(&layers[i], measured);
    }
    qsort(layers, profile->n_nodes, sizeof *layers, longest_first);
    measured->layers = layers;
    measured->n_layers = profile->n_nodes;
    measured->layer_runs = profile->runs;
    return 0;
}

/* ---- what was computed with ---------------------------------------------------------------------------------------- */
typedef struct tally {
    const char *type;
    double ns;
} tally;

static int most_first(const void *a, const void *b)
{
    const tally *of_a = a, *of_b = b;
    return (of_a->ns < of_b->ns) - (of_a->ns > of_b->ns);
}

/* Types of numbers that are computed with, by the time they took; shapes and indices are not among them. */
void tare__executed_of(tare__measuring *measuring, const tare__profile *profile, tare__runner_result *result)
{
    tally tallies[] = {{"float32", 0}, {"float16", 0}, {"bfloat16", 0}, {"float64", 0}, {"int8", 0}, {"uint8", 0}};
    double all = 0, casts = 0;
    tare__text text = {0};
    result->casts = 0;
    for (size_t i = 0; i < profile->n_nodes; i++) {
        const tare__profile_node *node = profile->nodes[i];
        /* At least a thousandth of what the clock of a profile shows, so that quick models are not without a type. */
        double ns = median_of(node->run_ns, profile->runs) + 1;
        all += ns;
        if (tare__profile_cast(node)) {
            result->casts++;
            casts += ns;
            continue;
        }
        for (size_t k = 0; k < TARE__COUNT_OF(tallies); k++)
            if (strcmp(types_of(node), tallies[k].type) == 0)
                tallies[k].ns += ns;
    }
    qsort(tallies, TARE__COUNT_OF(tallies), sizeof *tallies, most_first);
    for (size_t k = 0; k < TARE__COUNT_OF(tallies) && all > 0; k++)
        if (tallies[k].ns > 0.01 * all)
            tare__text_format(&text, "%s%s", text.length ? ", " : "", tallies[k].type);
    result->casts_share = all > 0 ? casts / all : NAN;
    result->executed = text.length ? tare__measuring_text(measuring, text.data) : NULL;
    if (!result->executed)
        result->executed_reason = "the model computes with no floating-point numbers";
    tare__text_free(&text);
}
