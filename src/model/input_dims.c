/* input_dims: default sizes of dimensions that neither the file nor the user sets: by names and types.
 * Pure; any thread.
 * Must not know the user's options. */
#define _GNU_SOURCE
#include "inputs.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SAMPLES      16000 /* a second of audio */
#define SAMPLES_STEP 512   /* input size of a stateful voice detector */
#define PAST         128
#define FRAMES       16
#define LINE_HEIGHT  64  /* images that are not higher contain a line of text … */
#define LINE_WIDTH   320 /* … of this width */

/* The usual one first. */
const int64_t tare__input_sequences[] = {128, 64, 77, 32, 16, 8, 4, 2, 1, 256, 512, 1024, 1500, 3000};
const size_t tare__input_sequences_count = TARE__COUNT_OF(tare__input_sequences);
const int64_t tare__input_sides[] = {224, 256, 320, 384, 512, 640, 1024, 128, 112, 96, 64, 32, 28};
const size_t tare__input_sides_count = TARE__COUNT_OF(tare__input_sides);

static bool says(tare__slice text, const char *word)
{
    char copy[128];
    snprintf(copy, sizeof copy, "%.*s", (int)(text.length < 120 ? text.length : 120), (const char *)text.data);
    return text.length && strcasestr(copy, word);
}

static bool says_any(tare__slice text, const char *const *words, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || says(text, words[i]);
    return any;
}

static bool is_long(tare__slice symbol)
{
    static const char *const words[] = {"seq", "len", "time", "token", "frame", "word", "phon", "text", "step"};
    return says_any(symbol, words, TARE__COUNT_OF(words));
}

static bool is_sound(tare__slice name)
{
    static const char *const words[] = {"audio", "wav", "speech", "signal", "input_values", "pcm", "sample"};
    return says_any(name, words, TARE__COUNT_OF(words));
}

static bool is_past(tare__slice name)
{
    static const char *const words[] = {"past", "cache"};
    return says_any(name, words, TARE__COUNT_OF(words));
}

static bool is_channels(int64_t size)
{
    return size == 1 || size == 3 || size == 4;
}

static bool has_input(const tare__onnx_graph *graph, const char *const *names, size_t n)
{
    for (size_t i = 0; i < graph->n_inputs; i++)
        for (size_t k = 0; k < n; k++)
            if (tare__slice_is(graph->inputs[i].name, names[k]))
                return true;
    return false;
}

/* A step of a decoder: one token at a time, with a past. */
static int64_t past_of(const tare__onnx_graph *graph)
{
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const tare__onnx_info *info = &graph->inputs[i];
        if (!tare__onnx_type_is_float(info->type) && info->rank == 2 && says(info->name, "id") &&
            info->dims[1].value == 1)
            return PAST;
    }
    return 0;
}

static int64_t samples_of(const tare__onnx_graph *graph)
{
    static const char *const states[] = {"state", "h", "h0"};
    return has_input(graph, states, TARE__COUNT_OF(states)) ? SAMPLES_STEP : SAMPLES;
}

static int64_t of_image(const tare__onnx_info *info, int at, tare__input_sizes sizes, bool *side)
{
    bool last = is_channels(info->dims[3].value) && !is_channels(info->dims[1].value);
    int height = last ? 1 : 2, width = height + 1;
    int64_t other = at == height  ? info->dims[width].value
                    : at == width ? info->dims[height].value
                                  : TARE__MODEL_UNKNOWN;
    if (at != height && at != width)
        return 3;
    if (other > 0)
        return at == width && other <= LINE_HEIGHT ? LINE_WIDTH : other;
    *side = true;
    return sizes.side;
}

int64_t tare__input_dimension(const tare__onnx_graph *graph, size_t input, int dimension, tare__input_sizes sizes,
                              bool *sequence, bool *side)
{
    static const char *const rates[] = {"sr", "sample_rate"};
    const tare__onnx_info *info = &graph->inputs[input];
    tare__slice symbol = info->dims[dimension].symbol;
    bool real = tare__onnx_type_is_float(info->type);
    if (is_past(symbol) || (is_past(info->name) && info->rank >= 3 && dimension == info->rank - 2))
        return past_of(graph);
    if (says(symbol, "batch") || (dimension == 0 && info->rank > 1))
        return 1;
    if (real && info->rank <= 2 && (is_sound(info->name) || says(symbol, "sample") || has_input(graph, rates, 2)))
        return samples_of(graph);
    if (real && info->rank == 3 && info->dims[1].value == 1 && dimension == 2 && is_sound(info->name))
        return SAMPLES;
    if (info->rank == 4 && (real || info->type == TARE__ONNX_UINT8) && !is_past(info->name) && !says(info->name, "att"))
        return of_image(info, dimension, sizes, side);
    if (info->rank == 5 && dimension >= 3) {
        *side = true;
        return sizes.side;
    }
    if (info->rank == 5)
        return dimension == 1 && info->dims[2].value != 3 ? 3 : FRAMES;
    if (dimension == 0 && !is_long(symbol))
        return 1;
    *sequence = true;
    return sizes.sequence;
}
