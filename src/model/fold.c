/* fold: evaluates small tensors, so that shapes that a model computes are known before it runs.
 * Owned by the calling thread.
 * Must not know what anything costs. */
#include "fold.h"

#define MAX TARE__CONTENT_MAX

int64_t tare__fold_count(const tare__step *step)
{
    int64_t n = tare__elements(output(step, 0));
    return n <= (int64_t)MAX ? n : UNKNOWN;
}

bool tare__folds(const tare__value *value)
{
    return value && value->content && tare__elements(value) == (int64_t)value->n_content && value->n_content <= MAX;
}

static bool is_whole_type(int type)
{
    return type && !tare__onnx_type_is_float(type);
}

/* ---- element by element -------------------------------------------------------------------------------------- */
typedef double unary(double a);

double tare__fold_add(double a, double b) { return a + b; }
static double subtract(double a, double b) { return a - b; }
double tare__fold_multiply(double a, double b) { return a * b; }
static double divide(double a, double b) { return b == 0 ? NAN : a / b; }
double tare__fold_larger(double a, double b) { return isnan(a) || isnan(b) ? NAN : a > b ? a : b; }
double tare__fold_smaller(double a, double b) { return isnan(a) || isnan(b) ? NAN : a < b ? a : b; }
static double either(double a, double b) { return isnan(a) || isnan(b) ? NAN : a || b; }
static double both(double a, double b) { return isnan(a) || isnan(b) ? NAN : a && b; }
static double differs(double a, double b) { return isnan(a) || isnan(b) ? NAN : !a != !b; }
static double equal(double a, double b) { return isnan(a) || isnan(b) ? NAN : a == b; }
static double less(double a, double b) { return isnan(a) || isnan(b) ? NAN : a < b; }
static double at_most(double a, double b) { return isnan(a) || isnan(b) ? NAN : a <= b; }
static double greater(double a, double b) { return less(b, a); }
static double at_least(double a, double b) { return at_most(b, a); }
/* The sign is the divisor's, as in Python; fmod uses the dividend's. */
static double modulo(double a, double b) { return b == 0 ? NAN : a - b * floor(a / b); }
static double negative(double a) { return -a; }
static double inverse(double a) { return isnan(a) ? NAN : !a; }
static double sign(double a) { return isnan(a) ? NAN : (a > 0) - (a < 0); }
static double positive(double a) { return isnan(a) ? NAN : a > 0 ? a : 0; }
static double reciprocal(double a) { return 1 / a; }
static double even(double a) { return nearbyint(a); }

static const struct {
    const char *op;
    tare__fold_binary *of;
} binaries[] = {{"Add", tare__fold_add},         {"Sub", subtract},
                {"Mul", tare__fold_multiply},    {"Div", divide},
                {"Max", tare__fold_larger},      {"Min", tare__fold_smaller},
                {"Or", either},       {"And", both},
                {"Xor", differs},     {"Equal", equal},
                {"Less", less},       {"LessOrEqual", at_most},
                {"Greater", greater}, {"GreaterOrEqual", at_least},
                {"Mod", modulo},      {"Pow", pow}};

static const struct {
    const char *op;
    unary *of;
} unaries[] = {{"Neg", negative}, {"Not", inverse}, {"Abs", fabs}, {"Ceil", ceil}, {"Floor", floor}, {"Sqrt", sqrt},
               {"Sign", sign}, {"Round", even}, {"Reciprocal", reciprocal}, {"Relu", positive}, {"Exp", exp},
               {"Log", log}};

/* The element of a broadcast input that element `i` of the output comes from. */
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

static bool fold_binary(tare__step *step, tare__fold_binary *of, bool whole)
{
    double values[MAX];
    int64_t n = tare__fold_count(step);
    const tare__value *out = output(step, 0);
    if (n < 0 || !all_known(step, 0))
        return true;
    if (of == modulo && tare__attribute_int(step, "fmod", 0))
        of = fmod;
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
    int64_t n = tare__fold_count(step);
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

static void fold_clip(tare__step *step)
{
    double values[MAX];
    const tare__value *x = input(step, 0), *low = input(step, 1), *high = input(step, 2);
    double from = tare__attribute_float(step, "min", -INFINITY), to = tare__attribute_float(step, "max", INFINITY);
    if (!tare__folds(x) || (low && !tare__folds(low)) || (high && !tare__folds(high)))
        return;
    from = low && low->n_content == 1 ? low->content[0] : from;
    to = high && high->n_content == 1 ? high->content[0] : to;
    for (size_t i = 0; i < x->n_content; i++)
        values[i] = tare__fold_smaller(tare__fold_larger(x->content[i], from), to);
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
    {"Clip", fold_clip},
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
    tare__fold_moved(step);
}

bool tare__fold_evaluates(tare__slice op)
{
    for (size_t i = 0; i < TARE__COUNT_OF(binaries); i++)
        if (tare__slice_is(op, binaries[i].op))
            return true;
    for (size_t i = 0; i < TARE__COUNT_OF(unaries); i++)
        if (tare__slice_is(op, unaries[i].op))
            return true;
    for (size_t i = 0; i < TARE__COUNT_OF(others); i++)
        if (tare__slice_is(op, others[i].op))
            return true;
    return tare__fold_moves(op);
}
