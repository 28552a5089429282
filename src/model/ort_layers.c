/* ort_layers: a model's layers as executed by the runtime: time relative to multiply-accumulates and the machine's
 * peak performance; and the types actually used. One thread.
 * Must not know how a profile is written. */
#define _GNU_SOURCE
#include "ort_inner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one layer ------------------------------------------------------------------------------------------------ */
static double median_of(const double *values, size_t n)
{
    double sorted[TARE__PROFILE_RUNS_MAX];
    memcpy(sorted, values, n * sizeof *sorted);
    tare__sort(sorted, n);
    return tare__quantile_sorted(sorted, n, 0.5);
}

/* A node that the runtime derives from one of the file keeps its name and, except for fused operators, its kind. */
static bool same_kind(const char *file, const char *ran)
{
    return strcmp(file, ran) == 0 || strstr(ran, file) || (strcmp(file, "MatMul") == 0 && strstr(ran, "Gemm"));
}

/* The file's layers by the names of nodes and of their outputs. */
typedef struct file_layers {
    const tare__model_report *report;
    tare__intern *nodes, *outputs;
    bool *taken; /* by a node of the profile */
} file_layers;

static const char *made_by(const tare__model_layer *layer)
{
    return layer->output && layer->output->name ? layer->output->name : "";
}

static tare__intern *names_of(const tare__model_report *report, bool outputs)
{
    tare__intern *names = tare__intern_new();
    for (size_t i = 0; names && i < report->n_layers; i++) {
        char unnamed[32];
        const char *name = outputs ? made_by(&report->layers[i]) : report->layers[i].node;
        size_t length = name ? strlen(name) : 0;
        uint32_t id = length ? tare__intern_add(names, name, length) : TARE__INTERN_NONE;
        /* One entry per layer, so that ids are indices: a repeated or missing name gets a unique one that is never
         * looked up. */
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

static void free_file(file_layers *file)
{
    tare__intern_free(file->nodes);
    tare__intern_free(file->outputs);
    free(file->taken);
}

static bool read_file(file_layers *file, const tare__model_report *report)
{
    *file = (file_layers){report, names_of(report, false), names_of(report, true),
                          calloc(report->n_layers + 1, sizeof *file->taken)};
    return file->nodes && file->outputs && file->taken;
}

static const tare__model_layer *layer_of(const file_layers *file, const tare__intern *names, const char *name,
                                         size_t length)
{
    uint32_t at = length ? tare__intern_find(names, name, length) : TARE__INTERN_NONE;
    return at == TARE__INTERN_NONE ? NULL : &file->report->layers[at];
}

/* Channels in blocks, the last of them padded with zeros: such a node is named after its output with a suffix, and
 * its shapes are larger than the model's. */
#define IN_BLOCKS "_nchwc"
#define MOST_CHANNELS_ADDED 15
#define MOST_FUSED 4 /* consecutive nodes after a convolution */

static size_t in_blocks(const tare__profile_node *node)
{
    size_t length = strlen(node->name), ending = strlen(IN_BLOCKS);
    return length > ending && strcmp(node->name + length - ending, IN_BLOCKS) == 0 ? length - ending : 0;
}

static bool fits_in_blocks(const tare__model_layer *layer, const tare__profile_node *node)
{
    const tare__model_tensor *whole = layer->output;
    const tare__profile_end *ran = &node->outputs[0];
    if (!node->n_outputs || !whole || whole->rank < 2 || ran->rank != (size_t)whole->rank ||
        ran->rank > TARE__COUNT_OF(ran->dims) || !same_kind(layer->op, node->op))
        return false;
    for (size_t i = 0; i < ran->rank; i++)
        if (ran->dims[i] < whole->dims[i] || ran->dims[i] > whole->dims[i] + (i == 1 ? MOST_CHANNELS_ADDED : 0))
            return false;
    return true;
}

/* The layer of this kind that leads to `layer` through layers without multiplications; *n: how many there are. */
static const tare__model_layer *before(const file_layers *file, const tare__model_layer *layer,
                                       const tare__profile_node *node, unsigned depth, unsigned *n)
{
    const tare__model_layer *found = NULL;
    if (!layer || depth > MOST_FUSED)
        return NULL;
    if (layer->cost.macs || same_kind(layer->op, node->op)) {
        bool free_one = !file->taken[layer - file->report->layers] && fits_in_blocks(layer, node);
        *n += free_one;
        return free_one ? layer : NULL;
    }
    for (size_t i = 0; i < TARE__COUNT_OF(layer->inputs); i++) {
        const char *name = layer->inputs[i];
        const tare__model_layer *one =
            before(file, layer_of(file, file->outputs, name, strlen(name)), node, depth + 1, n);
        *n -= one && one == found; /* twice the same */
        found = one ? one : found;
    }
    return found;
}

/* Its output under the file's name: without the suffixes of casts that the runtime, if it has no half-precision
 * kernel, and Tare's own conversion add. */
static const tare__model_layer *maker_of(const file_layers *file, const char *name, size_t length)
{
    static const char cast[] = "InsertedPrecisionFreeCast_", half[] = "_tare_half";
    const tare__model_layer *layer = layer_of(file, file->outputs, name, length);
    if (!layer && length > strlen(cast) && strncmp(name, cast, strlen(cast)) == 0) {
        name += strlen(cast);
        length -= strlen(cast);
        layer = layer_of(file, file->outputs, name, length);
    }
    if (!layer && length > strlen(half) && strncmp(name + length - strlen(half), half, strlen(half)) == 0)
        layer = layer_of(file, file->outputs, name, length - strlen(half));
    return layer;
}

/* `fused`: whether to search before the operators fused into it. First all others, which are then taken. */
static const tare__model_layer *find_layer(const file_layers *file, const tare__profile_node *node, bool fused)
{
    size_t blocks = in_blocks(node);
    const tare__model_layer *layer = layer_of(file, file->nodes, node->name, strlen(node->name));
    if (blocks) {
        unsigned n = 0;
        layer = maker_of(file, node->name, blocks);
        if (layer && !(fits_in_blocks(layer, node) && same_kind(layer->op, node->op)))
            layer = fused ? before(file, layer, node, 0, &n) : NULL;
        if (n > 1)
            layer = NULL; /* one of them */
    } else if (layer && !same_kind(layer->op, node->op)) {
        layer = NULL;
    }
    return layer && layer->state == TARE__MODEL_COUNTED ? layer : NULL;
}

static bool multiplies_nothing(const tare__model_report *report, const char *op)
{
    bool none = !tare__model_multiplies(op);
    for (size_t i = 0; i < report->n_operators && !none; i++) {
        const tare__model_operator *row = &report->operators[i];
        none = strcmp(row->op, op) == 0 && !row->cost.macs && !row->not_counted;
    }
    return none;
}

static void count(tare__runner_layer *layer, const tare__profile_node *node, const tare__model_layer *in_file,
                  const tare__model_report *report)
{
    uint64_t macs = 0;
    if (in_file && in_file->cost.macs) {
        layer->counted = true;
        layer->macs = in_file->cost.macs;
    } else if (!in_blocks(node) && tare__profile_macs(node, &macs)) {
        layer->counted = !__builtin_mul_overflow(macs, (uint64_t)llround(layer->calls), &layer->macs);
    } else {
        layer->counted = in_file || multiplies_nothing(report, node->op);
    }
}

/* Layers cannot multiply more than the model: if they would, those known only by the runtime's shapes are not
 * counted. False: the file's own are more. */
static bool keep_below_whole(tare__runner_layer *layers, size_t n, const bool *from_file,
                             const tare__model_report *report)
{
    double sum = 0, whole = (double)report->total.macs;
    for (size_t i = 0; i < n; i++)
        sum += layers[i].counted ? (double)layers[i].macs : 0;
    if (report->macs_at_least || sum <= whole)
        return true;
    for (size_t i = 0; i < n; i++) {
        if (from_file[i] || !layers[i].macs)
            continue;
        sum -= layers[i].counted ? (double)layers[i].macs : 0;
        layers[i].counted = false;
    }
    return sum <= whole;
}

static const char *types_of(const tare__profile_node *node)
{
    const char *in = node->n_inputs ? node->inputs[0].type : NULL,
               *out = node->n_outputs ? node->outputs[0].type : NULL;
    return in ? in : out ? out : "";
}

/* Shorter times are mostly rounding of a clock with a resolution of 1 µs. */
#define LEAST_CALL_NS 5000.0

/* If storage and multiplication have different types, the peak of the latter applies. */
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
        return "the peak performance of the machine could not be measured";
    if (!(peak > 0))
        return "no peak is measured for its type";
    if (layer->time_ns < LEAST_CALL_NS * fmax(layer->calls, 1))
        return "it is too short for the clock of the profile";
    double compute_s = operations / peak,
           move_s = layer->bytes > 0 ? layer->calls * tare__peaks_move_s(peaks, layer->bytes) : 0;
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

TARE__ORDER(longest_first, tare__runner_layer, TARE__FALLING(time_ns))

/* The layer of the file for each node. False: out of memory. */
static bool find_layers(const tare__model_report *report, const tare__profile *profile, const tare__model_layer **found)
{
    file_layers file;
    bool ok = read_file(&file, report);
    for (int fused = 0; fused < 2 && ok; fused++) {
        for (size_t i = 0; i < profile->n_nodes; i++) {
            if (!found[i])
                found[i] = find_layer(&file, profile->nodes[i], fused);
            if (found[i])
                file.taken[found[i] - report->layers] = true;
        }
    }
    free_file(&file);
    return ok;
}

static const char *const too_many_operations =
    "the operations of the timed layers add up to more than those of the model, and are not shown: this is a bug in "
    "Tare";

static int fill_layers(tare__measuring *measuring, const tare__model_report *report, const tare__profile *profile,
                       const tare__model_layer **found, bool *from_file, tare__runner_layer *layers)
{
    if (!find_layers(report, profile, found))
        return tare__no_memory(measuring->error);
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
        if (!has_memory(&layers[i]))
            return tare__no_memory(measuring->error);
        count(&layers[i], node, found[i], report);
        from_file[i] = found[i] && found[i]->cost.macs;
        measuring->measured->layers_ns += layers[i].time_ns;
    }
    if (!keep_below_whole(layers, profile->n_nodes, from_file, report)) {
        for (size_t i = 0; i < profile->n_nodes; i++)
            layers[i].counted = layers[i].counted && !layers[i].macs;
        measuring->measured->notes = &too_many_operations;
        measuring->measured->n_notes = 1;
    }
    return 0;
}

int tare__layers_of(tare__measuring *measuring, const tare__model_report *report, const tare__profile *profile,
                    const tare__runner_result *result)
{
    tare__model_measured *measured = measuring->measured;
    size_t room = profile->n_nodes + 1;
    tare__runner_layer *layers = tare__arena_alloc(measured->arena, room * sizeof *layers);
    const tare__model_layer **found = calloc(room, sizeof *found);
    bool *from_file = calloc(room, sizeof *from_file);
    tare__sample_roofline(result->threads, &measured->peaks);
    int status = layers && found && from_file ? fill_layers(measuring, report, profile, found, from_file, layers)
                                              : tare__no_memory(measuring->error);
    free(found);
    free(from_file);
    if (status)
        return status;
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

/* ---- what was computed with ----------------------------------------------------------------------------------- */
typedef struct tally {
    const char *type;
    double ns;
} tally;

TARE__ORDER(most_first, tally, TARE__FALLING(ns))

/* Numeric types used for computation, by their time; shapes and indices are excluded. */
void tare__executed_of(tare__measuring *measuring, const tare__profile *profile, tare__runner_result *result)
{
    tally tallies[] = {{"float32", 0}, {"float16", 0}, {"bfloat16", 0}, {"float64", 0}, {"int8", 0}, {"uint8", 0}};
    double all = 0, casts = 0;
    tare__text text = {0};
    result->casts = 0;
    for (size_t i = 0; i < profile->n_nodes; i++) {
        const tare__profile_node *node = profile->nodes[i];
        /* At least a thousandth of the profile clock's resolution, so that fast models have a type. */
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
