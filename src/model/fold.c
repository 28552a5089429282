/* fold: the values of small tensors, so that shapes that a model computes are known before it runs.
 * Owned by the calling thread.
 * Must not know what anything costs. */
#include "rules.h"

#define MAX TARE__CONTENT_MAX

/* All elements of the output, if they are few and its shape is known; else UNKNOWN. */
static int64_t few(const tare__step *step)
{
    int64_t n = tare__elements(output(step, 0));
    return n <= (int64_t)MAX ? n : UNKNOWN;
}

static bool is_whole_type(int type)
{
    return type && !tare__onnx_type_is_float(type);
}

/* ---- element by element -------------------------------------------------------------------------------------- */
typedef double binary(double a, double b);
typedef double unary(double a);

static double add(double a, double b) { return a + b; }
static double subtract(double a, double b) { return a - b; }
static double multiply(double a, double b) { return a * b; }
static double divide(double a, double b) { return b == 0 ? NAN : a / b; }
static double larger(double a, double b) { return isnan(a) || isnan(b) ? NAN : a > b ? a : b; }
static double smaller(double a, double b) { return isnan(a) || isnan(b) ? NAN : a < b ? a : b; }
static double either(double a, double b) { return isnan(a) || isnan(b) ? NAN : a || b; }
static double both(double a, double b) { return isnan(a) || isnan(b) ? NAN : a && b; }
static double differs(double a, double b) { return isnan(a) || isnan(b) ? NAN : !a != !b; }
static double equal(double a, double b) { return isnan(a) || isnan(b) ? NAN : a == b; }
static double less(double a, double b) { return isnan(a) || isnan(b) ? NAN : a < b; }
static double at_most(double a, double b) { return isnan(a) || isnan(b) ? NAN : a <= b; }
static double greater(double a, double b) { return less(b, a); }
static double at_least(double a, double b) { return at_most(b, a); }
/* The sign is the divisor's, as Python's; fmod's is the dividend's. */
static double modulo(double a, double b) { return b == 0 ? NAN : a - b * floor(a / b); }
static double negative(double a) { return -a; }
static double inverse(double a) { return isnan(a) ? NAN : !a; }
static double sign(double a) { return isnan(a) ? NAN : (a > 0) - (a < 0); }
static double positive(double a) { return isnan(a) ? NAN : a > 0 ? a : 0; }
static double reciprocal(double a) { return 1 / a; }
static double even(double a) { return nearbyint(a); }

static const struct {
    const char *op;
    binary *of;
} binaries[] = {{"Add", add},         {"Sub", subtract},
                {"Mul", multiply},    {"Div", divide},
                {"Max", larger},      {"Min", smaller},
                {"Or", either},       {"And", both},
                {"Xor", differs},     {"Equal", equal},
                {"Less", less},       {"LessOrEqual", at_most},
                {"Greater", greater}, {"GreaterOrEqual", at_least},
                {"Mod", modulo},      {"Pow", pow}};

static const struct {
    const char *op;
    unary *of;
} unaries[] = {{"Neg", negative}, {"Not", inverse}, {"Abs", fabs}, {"Ceil", ceil}, {"Floor", floor}, {"Sqrt", sqrt},
               {"Sign", sign}, {"Round", even}, {"Reciprocal", reciprocal}, {"Relu", positive}};

/* Where element `i` of the output comes from in an input that is broadcast. */
static size_t place_in(const tare__value *value, const tare__value *out, size_t i)
{
    size_t place = 0, stride = 1;
    for (int d = 1; d <= out->rank; d++) {
        size_t length = (size_t)out->dims[out->rank - d], at = length ? i % length : 0;
        i = length ? i / length : 0;
        if (d > value->rank)
            continue;
        size_t own = (size_t)value->dims[value->rank - d];
        place += own == 1 ? 0 : at * stride;
        stride *= own;
    }
    return place;
}

static double element(const tare__value *value, const tare__value *out, size_t i)
{
    size_t place = place_in(value, out, i);
    return place < value->n_content ? value->content[place] : NAN;
}

static bool all_known(const tare__step *step, size_t from)
{
    bool known = step->n_in > from;
    for (size_t i = from; i < step->n_in && known; i++)
        known = step->in[i] && step->in[i]->content && is_ranked(step->in[i]);
    return known;
}

static bool fold_binary(tare__step *step, binary *of, bool whole)
{
    double values[MAX];
    int64_t n = few(step);
    const tare__value *out = output(step, 0);
    if (n < 0 || !all_known(step, 0))
        return true;
    for (int64_t i = 0; i < n; i++) {
        values[i] = element(step->in[0], out, (size_t)i);
        for (size_t k = 1; k < step->n_in; k++)
            values[i] = of(values[i], element(step->in[k], out, (size_t)i));
        if (whole)
            values[i] = trunc(values[i]);
    }
    tare__set_content(step, 0, values, (size_t)n);
    return true;
}

static bool fold_unary(tare__step *step, unary *of)
{
    double values[MAX];
    const tare__value *x = input(step, 0);
    if (!x || !x->content)
        return true;
    for (size_t i = 0; i < x->n_content; i++)
        values[i] = of ? of(x->content[i]) : x->content[i];
    tare__set_content(step, 0, values, x->n_content);
    return true;
}

static bool fold_elements(tare__step *step)
{
    for (size_t i = 0; i < TARE__COUNT_OF(binaries); i++) {
        if (tare__slice_is(step->node->op, binaries[i].op))
            return fold_binary(step, binaries[i].of, is_whole_type(type_of(output(step, 0))));
    }
    for (size_t i = 0; i < TARE__COUNT_OF(unaries); i++) {
        if (tare__slice_is(step->node->op, unaries[i].op))
            return fold_unary(step, unaries[i].of);
    }
    return false;
}

/* ---- the others ---------------------------------------------------------------------------------------------- */
static void fold_copy(tare__step *step)
{
    fold_unary(step, NULL);
}

static void fold_cast(tare__step *step)
{
    bool truth = type_of(output(step, 0)) == TARE__ONNX_BOOL;
    fold_unary(step, truth ? NULL : is_whole_type(type_of(output(step, 0))) ? trunc : NULL);
    tare__value *out = output(step, 0);
    for (size_t i = 0; truth && out && out->content && i < out->n_content; i++)
        out->content[i] = isnan(out->content[i]) ? NAN : out->content[i] != 0;
}

static void fold_where(tare__step *step)
{
    double values[MAX];
    int64_t n = few(step);
    const tare__value *out = output(step, 0), *condition = input(step, 0), *x = input(step, 1), *y = input(step, 2);
    if (n < 0 || !condition || !condition->content || !x || !y)
        return;
    for (int64_t i = 0; i < n; i++) {
        double which = element(condition, out, (size_t)i);
        const tare__value *from = which != 0 ? x : y;
        values[i] = isnan(which) || !from->content ? NAN : element(from, out, (size_t)i);
    }
    tare__set_content(step, 0, values, (size_t)n);
}

/* Of lists and of tables; each index picks what follows its axis. */
static void fold_gather(tare__step *step)
{
    double values[MAX];
    const tare__value *x = input(step, 0), *at = input(step, 1);
    int64_t n = few(step), index;
    int axis = is_ranked(x) ? axis_of(tare__attribute_int(step, "axis", 0), x->rank) : UNKNOWN;
    if (n < 0 || axis < 0 || !x->content || !at || !at->content || tare__elements(x) < 0)
        return;
    int64_t inner = tare__product_of(step, x->rank - axis - 1, x->dims + axis + 1), length = x->dims[axis];
    int64_t many = (int64_t)at->n_content;
    for (int64_t i = 0; i < n && inner > 0 && many > 0; i++) {
        int64_t outer = i / (inner * many), which = i / inner % many, rest = i % inner;
        bool known = tare__content(at, (size_t)which, &index);
        index = known && index < 0 ? index + length : index;
        int64_t place = known && index >= 0 && index < length ? (outer * length + index) * inner + rest : -1;
        values[i] = place >= 0 && place < (int64_t)x->n_content ? x->content[place] : NAN;
    }
    if (inner > 0 && many > 0)
        tare__set_content(step, 0, values, (size_t)n);
}

/* Lists only, or what has one element in each of the other dimensions. */
static void fold_concat(tare__step *step)
{
    double values[MAX];
    size_t n = 0;
    if (few(step) < 0 || !output(step, 0) || output(step, 0)->rank != 1)
        return;
    for (size_t i = 0; i < step->n_in; i++) {
        const tare__value *part = input(step, i);
        int64_t length = tare__elements(part);
        if (length < 0 || n + (size_t)length > MAX)
            return;
        for (int64_t k = 0; k < length; k++)
            values[n++] = part->content && (size_t)k < part->n_content ? part->content[k] : NAN;
    }
    tare__set_content(step, 0, values, n);
}

static void fold_slice(tare__step *step)
{
    double values[MAX];
    const tare__value *x = input(step, 0);
    int64_t start[1], by[1] = {1}, n = few(step);
    bool there;
    if (n < 0 || !has_rank(x, 1) || !x->content || tare__numbers(step, "starts", 1, start, 1, &there) != 1)
        return;
    int n_steps = tare__numbers(step, NULL, 4, by, 1, &there);
    int64_t length = (int64_t)x->n_content;
    if (there && n_steps != 1)
        return;
    int64_t at = start[0] < 0 ? start[0] + length : start[0];
    at = at < 0 ? (by[0] < 0 ? -1 : 0) : at >= length ? (by[0] < 0 ? length - 1 : length) : at;
    for (int64_t i = 0; i < n; i++) {
        int64_t place;
        bool sound = !__builtin_mul_overflow(i, by[0], &place) && !__builtin_add_overflow(place, at, &place);
        values[i] = sound && place >= 0 && place < length ? x->content[place] : NAN;
    }
    tare__set_content(step, 0, values, (size_t)n);
}

static void fold_split(tare__step *step)
{
    const tare__value *x = input(step, 0);
    size_t from = 0;
    if (!has_rank(x, 1) || !x->content)
        return;
    for (size_t i = 0; i < step->n_out; i++) {
        int64_t n = tare__elements(output(step, i));
        if (n < 0 || from + (size_t)n > x->n_content)
            return;
        tare__set_content(step, i, x->content + from, (size_t)n);
        from += (size_t)n;
    }
}

static void fold_expand(tare__step *step)
{
    double values[MAX];
    int64_t n = few(step);
    const tare__value *x = input(step, 0);
    if (n < 0 || !x || !x->content || tare__elements(x) < 0)
        return;
    for (int64_t i = 0; i < n; i++)
        values[i] = element(x, output(step, 0), (size_t)i);
    tare__set_content(step, 0, values, (size_t)n);
}

static void fold_tile(tare__step *step)
{
    double values[MAX];
    int64_t n = few(step);
    const tare__value *x = input(step, 0);
    if (n < 0 || !has_rank(x, 1) || !x->content || x->n_content == 0)
        return;
    for (int64_t i = 0; i < n; i++)
        values[i] = x->content[(size_t)i % x->n_content];
    tare__set_content(step, 0, values, (size_t)n);
}

/* All elements into one. */
static void fold_reduce(tare__step *step, binary *of, double from)
{
    const tare__value *x = input(step, 0);
    if (!x || !x->content || few(step) != 1 || x->n_content == 0)
        return;
    double sum = from;
    for (size_t i = 0; i < x->n_content; i++)
        sum = of(sum, x->content[i]);
    tare__set_content(step, 0, &sum, 1);
}

static void fold_product(tare__step *step)
{
    fold_reduce(step, multiply, 1);
}

static void fold_sum(tare__step *step)
{
    fold_reduce(step, add, 0);
}

static void fold_largest(tare__step *step)
{
    fold_reduce(step, larger, -INFINITY);
}

static void fold_smallest(tare__step *step)
{
    fold_reduce(step, smaller, INFINITY);
}

/* Older exports of torch count what is true to know how long a list is. */
static void fold_non_zero(tare__step *step)
{
    double values[MAX];
    const tare__value *x = input(step, 0);
    size_t n = 0;
    if (!has_rank(x, 1) || !x->content || (int64_t)x->n_content != dim(x, 0))
        return;
    for (size_t i = 0; i < x->n_content; i++) {
        if (isnan(x->content[i]))
            return;
        if (x->content[i] != 0)
            values[n++] = (double)i;
    }
    SET(step, 0, TARE__ONNX_INT64, 1, (int64_t)n);
    tare__set_content(step, 0, values, n);
}

static void fold_cumulated(tare__step *step)
{
    double values[MAX], sum = 0;
    const tare__value *x = input(step, 0);
    if (!has_rank(x, 1) || !x->content || tare__attribute_int(step, "exclusive", 0) ||
        tare__attribute_int(step, "reverse", 0))
        return;
    for (size_t i = 0; i < x->n_content; i++)
        values[i] = sum += x->content[i];
    tare__set_content(step, 0, values, x->n_content);
}

/* Elements of a list put in place of others: how torch writes `shape[i] = n`. */
static void fold_scatter(tare__step *step)
{
    double values[MAX];
    const tare__value *x = input(step, 0), *at = input(step, 1), *with = input(step, 2);
    bool known = has_rank(x, 1) && x->content && at && at->content && with && with->content;
    if (!known || at->n_content != with->n_content)
        return;
    memcpy(values, x->content, x->n_content * sizeof *values);
    for (size_t i = 0; i < at->n_content; i++) {
        int64_t place;
        if (!tare__content(at, i, &place))
            return;
        place = place < 0 ? place + (int64_t)x->n_content : place;
        if (place < 0 || place >= (int64_t)x->n_content)
            return;
        values[place] = with->content[i];
    }
    tare__set_content(step, 0, values, x->n_content);
}

static const struct {
    const char *op;
    void (*fold)(tare__step *step);
} others[] = {
    {"Identity", fold_copy},
    {"Reshape", fold_copy},
    {"Squeeze", fold_copy},
    {"Unsqueeze", fold_copy},
    {"Flatten", fold_copy},
    {"Dropout", fold_copy},
    {"Cast", fold_cast},
    {"CastLike", fold_cast},
    {"Where", fold_where},
    {"Gather", fold_gather},
    {"Concat", fold_concat},
    {"Slice", fold_slice},
    {"Split", fold_split},
    {"Expand", fold_expand},
    {"Tile", fold_tile},
    {"ReduceProd", fold_product},
    {"ReduceSum", fold_sum},
    {"ReduceMax", fold_largest},
    {"ReduceMin", fold_smallest},
    {"NonZero", fold_non_zero},
    {"CumSum", fold_cumulated},
    {"ScatterND", fold_scatter},
    {"ScatterElements", fold_scatter},
};

void tare__fold(tare__step *step)
{
    bool some = false;
    for (size_t i = 0; i < step->n_in && !some; i++)
        some = step->in[i] && step->in[i]->content;
    if (!some || step->node->domain.length || step->state != TARE__MODEL_COUNTED || fold_elements(step))
        return;
    for (size_t i = 0; i < TARE__COUNT_OF(others); i++) {
        if (tare__slice_is(step->node->op, others[i].op)) {
            others[i].fold(step);
            return;
        }
    }
}
