/* rules_window: operators that slide a window: convolutions, pools; and those that resample.
 * Pure but for the step; any thread.
 * Must not know what calls them. */
#include "rules.h"

#define RANK_MAX    ((int)TARE__MODEL_RANK_MAX)
#define SPATIAL_MAX (RANK_MAX - 2)

typedef struct window {
    int n; /* spatial dimensions */
    int64_t kernel[SPATIAL_MAX], strides[SPATIAL_MAX], dilations[SPATIAL_MAX], before[SPATIAL_MAX],
        after[SPATIAL_MAX];
    bool same, same_lower, valid, up; /* up: the last window may extend beyond the input */
} window;

static void fill(int64_t *list, int n, int got, int64_t otherwise)
{
    for (int i = 0; i < n; i++)
        list[i] = i < got ? list[i] : otherwise;
}

/* False: no window is possible. */
static bool read_window(const tare__step *step, int n, const tare__value *weight, window *of)
{
    int64_t pads[2 * SPATIAL_MAX];
    of->n = n;
    if (n < 0 || n > SPATIAL_MAX)
        return false;
    int got = tare__attribute_ints(step, "kernel_shape", of->kernel, n);
    for (int i = 0; got == UNKNOWN && i < n; i++)
        of->kernel[i] = dim(weight, i + 2);
    if (got != UNKNOWN && got != n)
        return false;
    fill(of->strides, n, tare__attribute_ints(step, "strides", of->strides, n), 1);
    fill(of->dilations, n, tare__attribute_ints(step, "dilations", of->dilations, n), 1);
    fill(pads, 2 * n, tare__attribute_ints(step, "pads", pads, 2 * n), 0);
    memcpy(of->before, pads, sizeof *pads * (size_t)n);
    memcpy(of->after, pads + n, sizeof *pads * (size_t)n);
    of->same_lower = tare__attribute_is(step, "auto_pad", "SAME_LOWER");
    of->same = of->same_lower || tare__attribute_is(step, "auto_pad", "SAME_UPPER");
    of->valid = tare__attribute_is(step, "auto_pad", "VALID");
    of->up = tare__attribute_int(step, "ceil_mode", 0);
    for (int i = 0; i < n; i++) {
        /* Far beyond any real value, and products of them fit in 64 bits. */
        if (of->strides[i] < 1 || of->dilations[i] < 1 || of->strides[i] > INT32_MAX ||
            of->dilations[i] > INT32_MAX || of->kernel[i] > INT32_MAX ||
            (of->kernel[i] < 1 && of->kernel[i] != UNKNOWN) || of->before[i] > INT32_MAX ||
            of->after[i] > INT32_MAX || of->before[i] < -INT32_MAX || of->after[i] < -INT32_MAX)
            return false;
    }
    return true;
}

/* How often the window fits; UNKNOWN; -2: never. */
static int64_t slides(const window *of, int i, int64_t length)
{
    if (length < 0 || length > INT64_MAX / 4 || of->kernel[i] == UNKNOWN)
        return UNKNOWN;
    if (of->same)
        return (length + of->strides[i] - 1) / of->strides[i];
    int64_t before = of->valid ? 0 : of->before[i], after = of->valid ? 0 : of->after[i];
    int64_t room = length + before + after - ((of->kernel[i] - 1) * of->dilations[i] + 1);
    if (room < 0)
        return -2;
    int64_t many = (of->up ? room + of->strides[i] - 1 : room) / of->strides[i] + 1;
    /* The last window must begin inside the input or the padding before it. */
    return of->up && (many - 1) * of->strides[i] >= length + before ? many - 1 : many;
}

static void set_windows(tare__step *step, size_t out, const tare__value *x, const window *of, int64_t channels,
                        int type)
{
    int64_t dims[RANK_MAX] = {0};
    dims[0] = dim(x, 0);
    dims[1] = channels;
    for (int i = 0; i < of->n; i++) {
        dims[i + 2] = slides(of, i, dim(x, i + 2));
        if (dims[i + 2] == -2) {
            tare__misfit(step);
            return;
        }
    }
    tare__set(step, out, type, of->n + 2, dims);
}

/* ---- convolutions -------------------------------------------------------------------------------------------- */
void tare__shape_conv_of(tare__step *step, const tare__value *x, const tare__value *w, int type)
{
    window of;
    tare__set_type(step, 0, type);
    if (!is_ranked(x) && !is_ranked(w))
        return;
    int n = (is_ranked(x) ? x->rank : w->rank) - 2;
    int64_t groups = tare__attribute_int(step, "group", 1), in = dim(x, 1), each = dim(w, 1);
    bool fit = in < 0 || each < 0 || groups < 1 || (in % groups == 0 && in / groups == each);
    if (!read_window(step, n, w, &of) || !fit || (is_ranked(x) && is_ranked(w) && x->rank != w->rank))
        tare__misfit(step);
    else
        set_windows(step, 0, x, &of, dim(w, 0), type);
}

/* Each weight once per sample and output position: Cout · Cin/group · kernel is the number of weights. */
void tare__cost_conv_of(tare__step *step, const tare__value *w)
{
    const tare__value *y = output(step, 0);
    int64_t places = is_ranked(y) && y->rank > 2 ? tare__product_of(step, y->rank - 2, y->dims + 2) : UNKNOWN;
    ADD_MACS(step, dim(y, 0), places, tare__elements(w));
}

static void shape_conv(tare__step *step)
{
    tare__shape_conv_of(step, input(step, 0), input(step, 1), type_of(input(step, 0)));
}

static void shape_conv_integer(tare__step *step)
{
    tare__shape_conv_of(step, input(step, 0), input(step, 1), TARE__ONNX_INT32);
}

static void cost_conv(tare__step *step)
{
    tare__cost_conv_of(step, input(step, 1));
    if (input(step, 2))
        ADD_OTHER(step, tare__elements(output(step, 0)));
}

static void cost_conv_bare(tare__step *step)
{
    tare__cost_conv_of(step, input(step, 1));
}

static void shape_conv_transpose(tare__step *step)
{
    const tare__value *x = input(step, 0), *w = input(step, 1);
    int64_t dims[RANK_MAX], extra[SPATIAL_MAX], wanted[SPATIAL_MAX];
    window of;
    tare__set_type(step, 0, type_of(x));
    if (!is_ranked(x))
        return;
    if (!read_window(step, x->rank - 2, w, &of)) {
        tare__misfit(step);
        return;
    }
    fill(extra, of.n, tare__attribute_ints(step, "output_padding", extra, of.n), 0);
    int reported = tare__attribute_ints(step, "output_shape", wanted, SPATIAL_MAX);
    int64_t groups = tare__attribute_int(step, "group", 1), each = dim(w, 1);
    dims[0] = dim(x, 0);
    dims[1] = each < 0 || groups < 1 || groups > INT32_MAX || each > INT32_MAX ? UNKNOWN : each * groups;
    for (int i = 0; i < of.n; i++) {
        int64_t length = dim(x, i + 2), reach = of.kernel[i] < 0 ? UNKNOWN : (of.kernel[i] - 1) * of.dilations[i] + 1;
        if (reported >= of.n)
            dims[i + 2] = wanted[reported - of.n + i];
        else if (length < 0 || reach < 0 || length > INT32_MAX)
            dims[i + 2] = UNKNOWN;
        else if (of.same)
            dims[i + 2] = length * of.strides[i];
        else
            dims[i + 2] = of.strides[i] * (length - 1) + extra[i] % INT32_MAX + reach -
                          (of.valid ? 0 : of.before[i] + of.after[i]);
    }
    tare__set(step, 0, x->type, x->rank, dims);
}

/* Each weight once per sample and input position. */
static void cost_conv_transpose(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t places = is_ranked(x) && x->rank > 2 ? tare__product_of(step, x->rank - 2, x->dims + 2) : UNKNOWN;
    ADD_MACS(step, dim(x, 0), places, tare__elements(input(step, 1)));
    if (input(step, 2))
        ADD_OTHER(step, tare__elements(output(step, 0)));
}

/* ---- pools --------------------------------------------------------------------------------------------------- */
void tare__shape_pool(tare__step *step)
{
    const tare__value *x = input(step, 0);
    window of;
    tare__set_type(step, 0, type_of(x));
    if (!is_ranked(x))
        return;
    if (!read_window(step, x->rank - 2, NULL, &of)) {
        tare__misfit(step);
        return;
    }
    set_windows(step, 0, x, &of, dim(x, 1), type_of(x));
    set_windows(step, 1, x, &of, dim(x, 1), TARE__ONNX_INT64);
}

void tare__cost_pool(tare__step *step)
{
    int64_t kernel[SPATIAL_MAX];
    int n = tare__attribute_ints(step, "kernel_shape", kernel, SPATIAL_MAX);
    ADD_OTHER(step, tare__elements(output(step, 0)),
              n < 0 || n > SPATIAL_MAX ? UNKNOWN : tare__product_of(step, n, kernel));
}

void tare__shape_global_pool(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t dims[RANK_MAX] = {0};
    bool channels_last = tare__attribute_int(step, "channels_last", 0); /* of quantized ones */
    for (int i = 0; is_ranked(x) && i < x->rank; i++)
        dims[i] = i == 0 || i == (channels_last ? x->rank - 1 : 1) ? x->dims[i] : 1;
    tare__set(step, 0, type_of(x), is_ranked(x) ? x->rank : UNKNOWN, dims);
}

static void shape_unpool(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t dims[RANK_MAX] = {0};
    window of;
    bool there;
    int n = tare__numbers(step, NULL, 2, dims, RANK_MAX, &there);
    if (!is_ranked(x) || !read_window(step, x->rank - 2, NULL, &of)) {
        tare__set_type(step, 0, type_of(x));
        return;
    }
    for (int i = 0; n == UNKNOWN && i < x->rank; i++) {
        int64_t length = dim(x, i);
        bool known = !there && length >= 0 && length < INT32_MAX;
        dims[i] = i < 2   ? length
                  : known ? (length - 1) * of.strides[i - 2] + of.kernel[i - 2] - of.before[i - 2] - of.after[i - 2]
                          : UNKNOWN;
    }
    tare__set(step, 0, x->type, x->rank, dims);
}

static void shape_regions(tare__step *step)
{
    const tare__value *x = input(step, 0), *regions = input(step, 1);
    int64_t pooled[2] = {1, 1};
    int n = tare__attribute_ints(step, "pooled_shape", pooled, 2);
    SET(step, 0, type_of(x), dim(regions, 0), dim(x, 1),
        n == 2 ? pooled[0] : tare__attribute_int(step, "output_height", 1),
        n == 2 ? pooled[1] : tare__attribute_int(step, "output_width", 1));
}

/* ---- resampled ----------------------------------------------------------------------------------------------- */
/* The inputs with sizes and with scales: they moved between versions. */
static const tare__value *scales_of(const tare__step *step)
{
    bool old = step->n_in <= 2;
    const tare__value *scales = input(step, old ? 1 : 2);
    return scales && scales->content && scales->n_content ? scales : NULL;
}

static int64_t scaled(int64_t length, double by)
{
    double size = floor((double)length * by);
    return length < 0 || !(size >= 0 && size < 4e18) ? UNKNOWN : (int64_t)size;
}

static void shape_resize(tare__step *step)
{
    const tare__value *x = input(step, 0), *sizes = input(step, 3), *scales = scales_of(step);
    int64_t dims[RANK_MAX], axes[RANK_MAX];
    double by[RANK_MAX];
    if (!tare__set_unless_ranked(step, x))
        return;
    int n = tare__attribute_ints(step, "axes", axes, RANK_MAX);
    bool some = n != UNKNOWN && n <= RANK_MAX;
    bool reported = !scales && !sizes && tare__attribute_floats(step, "scales", by, x->rank) >= x->rank;
    bool stretched = !tare__attribute_text(step, "keep_aspect_ratio_policy").data ||
                     tare__attribute_is(step, "keep_aspect_ratio_policy", "stretch");
    memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
    for (int i = 0; i < (some ? n : x->rank); i++) {
        int axis = some ? axis_of(axes[i], x->rank) : i;
        int64_t size;
        if (axis < 0) {
            tare__misfit(step);
            return;
        }
        if (reported)
            dims[axis] = scaled(dims[axis], by[i]);
        else if (scales)
            dims[axis] = (size_t)i < scales->n_content ? scaled(dims[axis], scales->content[i]) : UNKNOWN;
        else
            dims[axis] = stretched && tare__content(sizes, (size_t)i, &size) ? size : UNKNOWN;
    }
    tare__set(step, 0, x->type, x->rank, dims);
}

/* This many elements of the input contribute to one of the output, in each dimension that changes. */
static void cost_resize(tare__step *step)
{
    const tare__value *x = input(step, 0), *y = output(step, 0);
    bool linear = tare__attribute_is(step, "mode", "linear") || tare__attribute_is(step, "mode", "bilinear");
    bool cubic = tare__attribute_is(step, "mode", "cubic");
    int64_t taps = linear ? 2 : cubic ? 4 : 0, each = 1;
    for (int i = 0; taps && is_ranked(x) && is_ranked(y) && i < x->rank && i < y->rank; i++)
        each *= x->dims[i] != y->dims[i] && each < 1 << 20 ? taps : 1;
    ADD_OTHER(step, tare__elements(y), taps ? each : 0);
}

static void shape_grid_sample(tare__step *step)
{
    const tare__value *x = input(step, 0), *grid = input(step, 1);
    int64_t dims[RANK_MAX] = {0};
    for (int i = 0; is_ranked(x) && i < x->rank; i++)
        dims[i] = i < 2 ? x->dims[i] : dim(grid, i - 1);
    tare__set(step, 0, type_of(x), is_ranked(x) ? x->rank : UNKNOWN, dims);
}

static void shape_affine_grid(tare__step *step)
{
    const tare__value *size = input(step, 1);
    int64_t dims[RANK_MAX] = {0};
    int rank = size && size->content && size->n_content <= 5 ? (int)size->n_content : UNKNOWN;
    for (int i = 0; i < rank - 1; i++)
        dims[i] = tare__content(size, i ? (size_t)i + 1 : 0, &dims[i]) ? dims[i] : UNKNOWN;
    if (rank > 1)
        dims[rank - 1] = rank - 2;
    tare__set(step, 0, type_of(input(step, 0)), rank > 1 ? rank : UNKNOWN, dims);
}

static void shape_col_to_im(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t image[SPATIAL_MAX], block[SPATIAL_MAX], dims[RANK_MAX];
    bool there;
    int n = tare__numbers(step, NULL, 1, image, SPATIAL_MAX, &there);
    int m = tare__numbers(step, NULL, 2, block, SPATIAL_MAX, &there);
    if (n < 0 || m != n) {
        tare__set_type(step, 0, type_of(x));
        return;
    }
    int64_t each = tare__product_of(step, n, block);
    dims[0] = dim(x, 0);
    dims[1] = each > 0 && dim(x, 1) >= 0 ? dim(x, 1) / each : UNKNOWN;
    memcpy(dims + 2, image, sizeof *dims * (size_t)n);
    tare__set(step, 0, type_of(x), n + 2, dims);
}

static void shape_crop(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t dims[RANK_MAX], axes[RANK_MAX], size;
    if (!tare__set_unless_ranked(step, x))
        return;
    int n = tare__attribute_ints(step, "axes", axes, RANK_MAX);
    memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
    for (int i = 0; i < (n == UNKNOWN || n > RANK_MAX ? x->rank : n); i++) {
        int axis = n == UNKNOWN || n > RANK_MAX ? i : axis_of(axes[i], x->rank);
        if (axis >= 0)
            dims[axis] = tare__content(input(step, 1), (size_t)i, &size) ? size : UNKNOWN;
    }
    tare__set(step, 0, x->type, x->rank, dims);
}

#define MS "com.microsoft:"

const tare__rule tare__rules_window[] = {
    {"Conv", shape_conv, cost_conv, 0},
    {MS "FusedConv", shape_conv, cost_conv, 0},
    {"ConvInteger", shape_conv_integer, cost_conv_bare, 0},
    {"DeformConv", shape_conv, cost_conv_bare, 0},
    {"ConvTranspose", shape_conv_transpose, cost_conv_transpose, 0},
    {"MaxPool", tare__shape_pool, tare__cost_pool, 0},
    {"AveragePool", tare__shape_pool, tare__cost_pool, 0},
    {"LpPool", tare__shape_pool, tare__cost_pool, 0},
    {"GlobalAveragePool", tare__shape_global_pool, tare__cost_input, 1},
    {"GlobalMaxPool", tare__shape_global_pool, tare__cost_input, 1},
    {"GlobalLpPool", tare__shape_global_pool, tare__cost_input, 1},
    {"MaxUnpool", shape_unpool, tare__cost_none, 0},
    {"RoiAlign", shape_regions, tare__cost_output, 16},
    {"MaxRoiPool", shape_regions, tare__cost_output, 1},
    {"Resize", shape_resize, cost_resize, 0},
    {"Upsample", shape_resize, cost_resize, 0},
    {"GridSample", shape_grid_sample, tare__cost_output, 8},
    {"AffineGrid", shape_affine_grid, tare__cost_output, 3},
    {"Col2Im", shape_col_to_im, tare__cost_input, 1},
    {"CenterCropPad", shape_crop, tare__cost_none, 0},
    {NULL, NULL, NULL, 0},
};
