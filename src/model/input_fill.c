/* input_fill: generates values for an input by its name, type and shape, so that the model computes something
 * realistic. Pure; any thread.
 * Must not know the runtime. */
#define _GNU_SOURCE
#include "inputs.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#define IDS_UNKNOWN 100 /* limit of ids if the vocabulary size is unknown: every vocabulary is at least this large */
#define SAMPLE_RATE 16000
#define FEW_VALUES  8 /* that are named */

static bool has(const char *name, const char *part)
{
    return strcasestr(name, part) != NULL;
}

static bool is_real(int type)
{
    return tare__onnx_type_is_float(type);
}

static bool is_whole(int type)
{
    return type != TARE__ONNX_BOOL && type != TARE__ONNX_STRING && tare__onnx_type_bits(type) && !is_real(type);
}

static int64_t elements(const tare__input *input)
{
    uint64_t n = 0;
    for (int i = 0; i < input->rank; i++)
        if (input->dims[i] < 0)
            return TARE__MODEL_UNKNOWN;
    return input->rank >= 0 && tare__onnx_elements_of(input->rank, input->dims, &n) ? (int64_t)n : TARE__MODEL_UNKNOWN;
}

static tare__model_fill all_of(double value, const char *what)
{
    return (tare__model_fill){.kind = TARE__FILL_VALUES, .values = {value}, .n_values = 1, .what = what};
}

/* ---- by name alone ----------------------------------------------------------------------------------------------- */
/* The first match counts. `whole`: the whole name must match; `real`: floating point only. */
static const struct {
    const char *name;
    bool whole, real;
    double value;
    const char *what;
} named[] = {
    {"sr", true, false, SAMPLE_RATE, "sample rate"},
    {"sample_rate", false, false, SAMPLE_RATE, "sample rate"},
    {"samplerate", false, false, SAMPLE_RATE, "sample rate"},
    {"sampling_rate", false, false, SAMPLE_RATE, "sample rate"},
    {"noise_scale_w", false, true, 0.8, "noise scale of durations"},
    {"noise_scale_dp", false, true, 0.8, "noise scale of durations"},
    {"noise_w", false, true, 0.8, "noise scale of durations"},
    {"noise_scale", false, true, 0.667, "noise scale"},
    {"length_scale", false, true, 1, "length scale"},
    {"scale_factor", false, true, 1, "scale factor"},
    {"speed", false, true, 1, "speed"},
    {"temperature", false, true, 1, "temperature"},
    {"length_penalty", false, true, 1, "penalty"},
    {"repetition_penalty", false, true, 1, "penalty"},
    {"top_p", false, true, 1, "top-p"},
    {"top_k", false, false, 50, "top-k"},
    {"max_length", false, false, 32, "most tokens"},
    {"max_new_tokens", false, false, 32, "most tokens"},
    {"min_length", false, false, 1, "fewest tokens"},
    {"num_beams", false, false, 1, "beams"},
    {"num_return", false, false, 1, "sequences to return"},
    {"max_output", false, false, 100, "most boxes"},
    {"threshold", false, true, 0.5, "threshold"},
    {"timestep", false, false, 500, "time step"},
    {"has_mask", false, false, 0, "flag"},
    {"mask_input", false, false, 0, "no earlier mask"},
    {"speaker", false, false, 0, "speaker"},
    {"sid", true, false, 0, "speaker"},
    {"spk", false, false, 0, "speaker"},
    {"lang", false, false, 0, "language"},
    {"past_key", false, false, 0, "past keys and values"},
    {"past_value", false, false, 0, "past keys and values"},
    {"past.", false, false, 0, "past keys and values"},
    {"cache", false, true, 0, "cache"},
    {"h", true, true, 0, "state"},
    {"c", true, true, 0, "state"},
    {"h0", true, true, 0, "state"},
    {"c0", true, true, 0, "state"},
    {"hidden_states", false, true, NAN, NULL}, /* of an encoder: activations, not a state */
    {"state", false, true, 0, "state"},
};

static bool by_name(const tare__input *input, tare__model_fill *fill)
{
    for (size_t i = 0; i < TARE__COUNT_OF(named); i++) {
        bool fits = named[i].whole ? strcasecmp(input->name, named[i].name) == 0 : has(input->name, named[i].name);
        if (!fits || (named[i].real && !is_real(input->type)) || input->type == TARE__ONNX_BOOL)
            continue;
        /* A speaker or a language may be an embedding: then it is not an id. */
        if (strcmp(named[i].what ? named[i].what : "", "speaker") == 0 && is_real(input->type))
            continue;
        *fill = all_of(named[i].value, named[i].what);
        return !isnan(named[i].value);
    }
    if (is_real(input->type) && strcasecmp(input->name, "scales") == 0 && elements(input) == 3) {
        *fill = (tare__model_fill){.kind = TARE__FILL_VALUES, .values = {0.667, 1.0, 0.8}, .n_values = 3,
                                   .what = "scales of noise, length and noise of durations"};
        return true;
    }
    return false;
}

/* ---- lengths and sizes ------------------------------------------------------------------------------------------- */
/* Whether a name, or a part of it, means the length of a sequence. */
static bool is_length(const char *name)
{
    size_t length = strlen(name);
    bool ends = length >= 3 && (strcasecmp(name + length - 3, "len") == 0 ||
                                (length >= 4 && strcasecmp(name + length - 4, "lens") == 0));
    return has(name, "length") || ends || has(name, "num_frames") || has(name, "n_frames") || has(name, "seqlen");
}

/* The length of the data of this input: the dimension that the file leaves open, or the most likely one. */
static int64_t length_of(const tare__input *input)
{
    int at = input->rank - 1;
    if (input->rank == 2 || input->rank < 2)
        return input->rank > 0 ? input->dims[at] : 1;
    for (int i = input->rank - 1; i > 0; i--)
        if (input->open >> i & 1)
            return input->dims[i];
    if (input->rank == 3)
        return input->dims[1] > input->dims[2] ? input->dims[1] : input->dims[2];
    return input->dims[at];
}

static bool is_sequence(const tare__input *input)
{
    return input->rank > 0 && !is_length(input->name) && input->type != TARE__ONNX_BOOL &&
           elements(input) > 1;
}

/* "audio_lengths" is that of "audio", or of "audio_signal"; "length" of the first that has one. */
static const tare__input *measured_by(const tare__input *all, size_t n, size_t at)
{
    const char *name = all[at].name, *end = strcasestr(name, "len");
    size_t length = end ? (size_t)(end - name) : 0;
    while (length && (name[length - 1] == '_' || name[length - 1] == '.'))
        length--;
    for (int exact = 1; exact >= 0 && length; exact--)
        for (size_t i = 0; i < n; i++)
            if (i != at && is_sequence(&all[i]) && strncasecmp(all[i].name, name, length) == 0 &&
                (!exact || strlen(all[i].name) == length))
                return &all[i];
    for (int ranks = 2; ranks > 0; ranks--)
        for (size_t i = 0; i < n; i++)
            if (i != at && is_sequence(&all[i]) && all[i].rank >= ranks)
                return &all[i];
    return NULL;
}

/* Length of the past: keys and values of [samples, heads, length, depth]. */
static int64_t past_length(const tare__input *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (has(all[i].name, "past") && all[i].rank == 4 && all[i].dims[2] >= 0)
            return all[i].dims[2];
    return 0;
}

static bool by_length(const tare__input *all, size_t n, size_t at, tare__model_fill *fill)
{
    bool total = has(all[at].name, "total"), last = has(all[at].name, "seqlens_k"); /* of the last key */
    if (!is_whole(all[at].type) || !(is_length(all[at].name) || total || last))
        return false;
    const tare__input *of = measured_by(all, n, at);
    int64_t length = of ? length_of(of) : 0;
    if (of && (total || last))
        length = (of->rank > 1 ? of->dims[1] : length) + past_length(all, n) - last;
    if (of)
        *fill = all_of((double)length, total || last ? "length with the past" : "length of a sibling input");
    return of != NULL;
}

static bool is_image(const tare__input *input)
{
    if (input->rank != 4 || has(input->name, "mask") || has(input->name, "past") ||
        !(is_real(input->type) || input->type == TARE__ONNX_UINT8))
        return false;
    for (int i = 1; i < 4; i += 2)
        if (input->dims[i] == 1 || input->dims[i] == 3 || input->dims[i] == 4)
            return true;
    return false;
}

/* Height and width of the accompanying image. */
static bool by_size(const tare__input *all, size_t n, size_t at, tare__model_fill *fill)
{
    static const char *const names[] = {"im_shape",    "im_size",    "orig_size", "original_size", "target_size",
                                        "orig_target", "image_size", "img_size",  "image_shape",   "img_shape"};
    bool fits = false;
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++)
        fits = fits || has(all[at].name, names[i]);
    for (size_t i = 0; fits && i < n; i++) {
        if (i == at || !is_image(&all[i]))
            continue;
        bool last = all[i].dims[3] <= 4 && all[i].dims[1] > 4; /* channels come last */
        *fill = (tare__model_fill){.kind = TARE__FILL_VALUES, .n_values = 2, .what = "size of the image",
                                   .values = {(double)all[i].dims[last ? 1 : 2], (double)all[i].dims[last ? 2 : 3]}};
        return true;
    }
    return false;
}

/* ---- the others -------------------------------------------------------------------------------------------------- */
static bool by_meaning(const tare__input *input, tare__model_fill *fill)
{
    bool whole = is_whole(input->type), flag = input->type == TARE__ONNX_BOOL;
    bool single = elements(input) == 1 && !(input->rank >= 2 && input->open);
    if (has(input->name, "mask")) {
        /* A mask that is added to scores, or that marks padding, masks nothing if it is 0. */
        bool added = is_real(input->type) && input->rank == 4 && has(input->name, "att");
        bool padding = flag && has(input->name, "pad");
        *fill = all_of(added || padding ? 0 : 1, "mask: nothing is masked");
    } else if (flag && single) {
        *fill = all_of(0, "flag");
    } else if (flag) {
        *fill = all_of(1, "all true");
    } else if (whole && (has(input->name, "token_type") || has(input->name, "segment"))) {
        *fill = all_of(0, "token types");
    } else if (whole && has(input->name, "position")) {
        *fill = (tare__model_fill){.kind = TARE__FILL_RANGE, .what = "positions"};
    } else if (whole && (input->rows > 0 || has(input->name, "ids") || has(input->name, "token"))) {
        *fill = (tare__model_fill){.kind = TARE__FILL_WHOLE, .what = input->rows > 0 ? "ids" : "ids; table not found",
                                   .high = input->rows > 0 ? (double)input->rows : IDS_UNKNOWN};
    } else if (single && is_real(input->type)) {
        *fill = all_of(1, NULL);
    } else if (single && whole) {
        *fill = all_of(1, NULL);
    } else {
        return false;
    }
    return true;
}

tare__model_fill tare__input_fill(const tare__input *all, size_t n, size_t at)
{
    const tare__input *input = &all[at];
    tare__model_fill fill = {.kind = TARE__FILL_NORMAL};
    if (input->rank < 0 || by_name(input, &fill) || by_length(all, n, at, &fill) || by_size(all, n, at, &fill) ||
        by_meaning(input, &fill))
        return fill;
    fill = (tare__model_fill){.kind = TARE__FILL_NORMAL};
    if (is_image(input) && is_real(input->type))
        fill = (tare__model_fill){.kind = TARE__FILL_UNIFORM, .high = 1, .what = "image"};
    else if (input->type == TARE__ONNX_UINT8)
        fill = (tare__model_fill){.kind = TARE__FILL_WHOLE, .high = 256, .what = is_image(input) ? "image" : "bytes"};
    else if (input->type == TARE__ONNX_INT8)
        fill = (tare__model_fill){.kind = TARE__FILL_WHOLE, .high = 128, .what = "bytes"};
    else if (is_whole(input->type))
        fill = (tare__model_fill){.kind = TARE__FILL_WHOLE, .high = 2};
    return fill;
}

/* ---- words ---------------------------------------------------------------------------------- */
const char *tare__model_fill_name(tare__fill_kind kind)
{
    static const char *const names[] = {
        [TARE__FILL_NORMAL] = "normal", [TARE__FILL_UNIFORM] = "uniform", [TARE__FILL_WHOLE] = "integers",
        [TARE__FILL_RANGE] = "range",   [TARE__FILL_VALUES] = "values",   [TARE__FILL_FILE] = "file"};
    return names[kind];
}

void tare__model_put_fill(tare__text *out, const tare__model_fill *fill)
{
    switch (fill->kind) {
    case TARE__FILL_NORMAL: tare__text_string(out, "random, normal"); break;
    case TARE__FILL_UNIFORM: tare__text_format(out, "random, %g to %g", fill->low, fill->high); break;
    case TARE__FILL_WHOLE: tare__text_format(out, "random, 0 to %.0f", fill->high - 1); break;
    case TARE__FILL_RANGE: tare__text_string(out, "0, 1, 2, …"); break;
    case TARE__FILL_FILE: tare__text_format(out, "from %s", fill->what); return;
    case TARE__FILL_VALUES:
        for (size_t i = 0; i < fill->n_values && i < FEW_VALUES; i++)
            tare__text_format(out, "%s%.10g", i ? ", " : "", fill->values[i]);
        tare__text_string(out, fill->n_values > FEW_VALUES ? ", …" : "");
        break;
    }
    if (fill->what && !fill->given)
        tare__text_format(out, " (%s)", fill->what);
}
