/* rules_signal: Fourier transforms, and the losses of exported training graphs.
 * Owned by the calling thread.
 * Must not know how anything is run. */
#include "rules.h"

/* ---- transforms ---------------------------------------------------------------------------------------------- */
/* Of one fast transform: 5 n log2 n for complex numbers, half of that for real ones. */
static int64_t transform_cost(int64_t n, bool real)
{
    int64_t doublings = 0;
    if (n < 0 || n > INT32_MAX)
        return UNKNOWN;
    while ((int64_t)1 << doublings < n)
        doublings++;
    return 5 * n * doublings / (real ? 2 : 1);
}

typedef struct transform {
    int axis; /* UNKNOWN: unknown, or out of range */
    int64_t length; /* of the transform */
    bool real, onesided, inverse;
} transform;

static bool is_old(const tare__step *step)
{
    const tare__onnx *model = step->walk->model;
    for (size_t i = 0; i < model->n_opsets; i++)
        if (!*model->opsets[i].domain || strcmp(model->opsets[i].domain, "ai.onnx") == 0)
            return model->opsets[i].version < 20;
    return false;
}

/* The axis was an attribute up to opset 19, by default the second; then the last before the parts. */
static transform read_transform(const tare__step *step)
{
    const tare__value *x = input(step, 0);
    transform of = {.onesided = tare__attribute_int(step, "onesided", 0),
                    .inverse = tare__attribute_int(step, "inverse", 0)};
    int64_t axis = tare__attribute_int(step, "axis", is_old(step) ? 1 : -2);
    bool reported = !input(step, 2) || tare__content(input(step, 2), 0, &axis);
    of.axis = reported && is_ranked(x) ? axis_of(axis, x->rank) : UNKNOWN;
    of.length = of.axis == UNKNOWN ? UNKNOWN : x->dims[of.axis];
    if (of.onesided && of.inverse && of.length > 0 && of.length < INT32_MAX) /* both ends are the same */
        of.length = 2 * (of.length - 1);
    if (input(step, 1) && !tare__content(input(step, 1), 0, &of.length))
        of.length = UNKNOWN;
    of.real = dim(x, -1) == 1 || (of.onesided && of.inverse);
    return of;
}

static void shape_transform(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t dims[TARE__MODEL_RANK_MAX];
    transform of = read_transform(step);
    tare__set_type(step, 0, type_of(x));
    if (!is_ranked(x) || of.axis == UNKNOWN)
        return;
    if (x->rank < 2 || of.axis == x->rank - 1) {
        tare__misfit(step);
        return;
    }
    memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
    dims[of.axis] = of.length >= 0 && of.onesided && !of.inverse ? of.length / 2 + 1 : of.length;
    dims[x->rank - 1] = of.onesided && of.inverse ? 1 : 2;
    tare__set(step, 0, x->type, x->rank, dims);
}

static void cost_transform(tare__step *step)
{
    const tare__value *x = input(step, 0);
    transform of = read_transform(step);
    int64_t others[TARE__MODEL_RANK_MAX];
    int n = 0;
    for (int i = 0; is_ranked(x) && i < x->rank - 1; i++)
        if (i != of.axis)
            others[n++] = x->dims[i];
    ADD_OTHER(step, of.axis == UNKNOWN ? UNKNOWN : tare__product_of(step, n, others),
              transform_cost(of.length, of.real));
}

typedef struct frames {
    int64_t count, length, bins;
} frames;

static frames read_frames(const tare__step *step)
{
    int64_t pace = UNKNOWN, whole = dim(input(step, 0), 1);
    frames of = {UNKNOWN, dim(input(step, 2), 0), UNKNOWN};
    if (!tare__content(input(step, 1), 0, &pace) || pace < 1)
        pace = UNKNOWN;
    if (input(step, 3) && !tare__content(input(step, 3), 0, &of.length))
        of.length = UNKNOWN;
    if (of.length > 0)
        of.bins = tare__attribute_int(step, "onesided", 1) ? of.length / 2 + 1 : of.length;
    if (of.length > 0 && pace > 0 && whole >= 0)
        of.count = whole < of.length ? 0 : (whole - of.length) / pace + 1;
    return of;
}

static void shape_frames(tare__step *step)
{
    frames of = read_frames(step);
    SET(step, 0, type_of(input(step, 0)), dim(input(step, 0), 0), of.count, of.bins, 2);
}

/* Each frame is multiplied by the window and transformed. */
static void cost_frames(tare__step *step)
{
    const tare__value *x = input(step, 0);
    frames of = read_frames(step);
    ADD_OTHER(step, dim(x, 0), of.count, transform_cost(of.length, has_rank(x, 2) || dim(x, -1) == 1));
    if (input(step, 2))
        ADD_OTHER(step, dim(x, 0), of.count, of.length);
}

static void shape_mel(tare__step *step)
{
    int64_t bins, length;
    bool known = tare__content(input(step, 1), 0, &length) && length >= 0;
    SET(step, 0, tare__attribute_type(step, "output_datatype", TARE__ONNX_FLOAT),
        known ? length / 2 + 1 : UNKNOWN, tare__content(input(step, 0), 0, &bins) ? bins : UNKNOWN);
}

/* ---- losses -------------------------------------------------------------------------------------------------- */
/* A number per label, or one for all. */
static void shape_loss(tare__step *step)
{
    const tare__value *scores = input(step, 0), *labels = input(step, 1);
    if (tare__attribute_is(step, "reduction", "none"))
        tare__set(step, 0, type_of(scores), is_ranked(labels) ? labels->rank : UNKNOWN,
                  is_ranked(labels) ? labels->dims : NULL);
    else
        tare__set(step, 0, type_of(scores), 0, NULL);
    tare__set_like(step, 1, scores); /* the logarithms, if requested */
}

static void cost_loss(tare__step *step)
{
    ADD_OTHER(step, tare__elements(input(step, 1)));
}

static void cost_softmax_loss(tare__step *step)
{
    ADD_OTHER(step, tare__elements(input(step, 0)), 5);
    cost_loss(step);
}

const tare__rule tare__rules_signal[] = {
    {"DFT", shape_transform, cost_transform, 0},
    {"STFT", shape_frames, cost_frames, 0},
    {"MelWeightMatrix", shape_mel, tare__cost_output, 1},
    {"NegativeLogLikelihoodLoss", shape_loss, cost_loss, 0},
    {"SoftmaxCrossEntropyLoss", shape_loss, cost_softmax_loss, 0},
    {NULL, NULL, NULL, 0},
};
