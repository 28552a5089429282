/* fold_moved: evaluates small tensors that are moved, joined, sliced, selected or summed, of any rank.
 * Owned by the calling thread.
 * Must not know what anything costs. */
#include "fold.h"

#define MAX      TARE__CONTENT_MAX
#define RANK_MAX ((int)TARE__MODEL_RANK_MAX)

/* ---- places -------------------------------------------------------------------------------------------------- */
/* The indices of element `i`. No dimension may be 0, which holds if there is an element. */
static void indices_of(const tare__value *value, int64_t i, int64_t *at)
{
    for (int d = value->rank - 1; d >= 0; d--) {
        at[d] = i % value->dims[d];
        i /= value->dims[d];
    }
}

/* The element at these indices; UNKNOWN: outside. */
static int64_t place_of(const tare__value *value, const int64_t *at)
{
    int64_t place = 0;
    for (int d = 0; d < value->rank; d++) {
        if (at[d] < 0 || at[d] >= value->dims[d])
            return UNKNOWN;
        place = place * value->dims[d] + at[d];
    }
    return place;
}

static double value_at(const tare__value *value, const int64_t *at)
{
    int64_t place = place_of(value, at);
    return place >= 0 && place < (int64_t)value->n_content ? value->content[place] : NAN;
}

/* An index, counted from the end if negative; UNKNOWN: unknown, or outside. */
static int64_t index_in(const tare__value *indices, size_t i, int64_t length)
{
    int64_t index;
    if (!tare__content(indices, i, &index))
        return UNKNOWN;
    index = index < 0 ? index + length : index;
    return index >= 0 && index < length ? index : UNKNOWN;
}

/* ---- moved --------------------------------------------------------------------------------------------------- */
/* Converts indices of the output to those of the input; false: unknown. */
typedef bool mapping(const tare__step *step, const int64_t *to, int64_t *from);

static void fold_mapped(tare__step *step, mapping *map)
{
    double values[MAX];
    const tare__value *x = input(step, 0), *out = output(step, 0);
    int64_t n = tare__fold_count(step), to[RANK_MAX], from[RANK_MAX];
    if (n < 0 || !tare__folds(x))
        return;
    for (int64_t i = 0; i < n; i++) {
        indices_of(out, i, to);
        if (!map(step, to, from))
            return;
        values[i] = value_at(x, from);
    }
    tare__set_content(step, 0, values, (size_t)n);
}

static bool map_transpose(const tare__step *step, const int64_t *to, int64_t *from)
{
    const tare__value *x = input(step, 0);
    int64_t order[RANK_MAX];
    int n = tare__attribute_ints(step, "perm", order, RANK_MAX);
    if (output(step, 0)->rank != x->rank || (n != UNKNOWN && n != x->rank))
        return false;
    for (int i = 0; i < x->rank; i++) {
        int axis = n == UNKNOWN ? x->rank - 1 - i : axis_of(order[i], x->rank);
        if (axis < 0)
            return false;
        from[axis] = to[i];
    }
    return true;
}

static bool map_slice(const tare__step *step, const int64_t *to, int64_t *from)
{
    const tare__value *x = input(step, 0);
    int64_t starts[RANK_MAX], axes[RANK_MAX], steps[RANK_MAX];
    bool there, has_axes, has_steps;
    int n = tare__numbers(step, "starts", 1, starts, RANK_MAX, &there);
    int n_axes = tare__numbers(step, "axes", 3, axes, RANK_MAX, &has_axes);
    int n_steps = tare__numbers(step, NULL, 4, steps, RANK_MAX, &has_steps);
    if (n < 0 || (has_axes && n_axes != n) || (has_steps && n_steps != n) || output(step, 0)->rank != x->rank)
        return false;
    memcpy(from, to, (size_t)x->rank * sizeof *from);
    for (int i = 0; i < n; i++) {
        int axis = axis_of(has_axes ? axes[i] : i, x->rank);
        if (axis < 0)
            return false;
        int64_t length = x->dims[axis], by = has_steps ? steps[i] : 1;
        int64_t at = starts[i] < 0 ? starts[i] + length : starts[i];
        at = at < 0 ? (by < 0 ? -1 : 0) : at >= length ? (by < 0 ? length - 1 : length) : at;
        if (__builtin_mul_overflow(to[axis], by, &from[axis]) || __builtin_add_overflow(from[axis], at, &from[axis]))
            return false;
    }
    return true;
}

static bool map_expand(const tare__step *step, const int64_t *to, int64_t *from)
{
    const tare__value *x = input(step, 0);
    int more = output(step, 0)->rank - x->rank;
    for (int d = 0; more >= 0 && d < x->rank; d++)
        from[d] = x->dims[d] == 1 ? 0 : to[d + more];
    return more >= 0;
}

static bool map_tile(const tare__step *step, const int64_t *to, int64_t *from)
{
    const tare__value *x = input(step, 0);
    for (int d = 0; d < x->rank; d++) {
        if (x->dims[d] <= 0 || output(step, 0)->rank != x->rank)
            return false;
        from[d] = to[d] % x->dims[d];
    }
    return true;
}

static bool map_gather(const tare__step *step, const int64_t *to, int64_t *from)
{
    const tare__value *x = input(step, 0), *which = input(step, 1);
    int axis = axis_of(tare__attribute_int(step, "axis", 0), x->rank);
    if (axis < 0 || !tare__folds(which) || output(step, 0)->rank != x->rank + which->rank - 1)
        return false;
    int64_t place = place_of(which, to + axis);
    for (int d = 0; d < axis; d++)
        from[d] = to[d];
    from[axis] = place < 0 ? UNKNOWN : index_in(which, (size_t)place, x->dims[axis]);
    for (int d = axis + 1; d < x->rank; d++)
        from[d] = to[d + which->rank - 1];
    return true;
}

static bool map_gather_elements(const tare__step *step, const int64_t *to, int64_t *from)
{
    const tare__value *x = input(step, 0), *which = input(step, 1);
    int axis = axis_of(tare__attribute_int(step, "axis", 0), x->rank);
    if (axis < 0 || !tare__folds(which) || which->rank != x->rank || output(step, 0)->rank != x->rank)
        return false;
    memcpy(from, to, (size_t)x->rank * sizeof *from);
    int64_t place = place_of(which, to);
    from[axis] = place < 0 ? UNKNOWN : index_in(which, (size_t)place, x->dims[axis]);
    return true;
}

static bool map_gather_nd(const tare__step *step, const int64_t *to, int64_t *from)
{
    const tare__value *x = input(step, 0), *which = input(step, 1);
    int64_t at[RANK_MAX];
    int depth = tare__folds(which) && which->rank > 0 ? (int)dim(which, -1) : UNKNOWN;
    if (depth < 0 || depth > x->rank || tare__attribute_int(step, "batch_dims", 0) ||
        output(step, 0)->rank != which->rank - 1 + x->rank - depth)
        return false;
    memcpy(at, to, (size_t)(which->rank - 1) * sizeof *at);
    for (int d = 0; d < depth; d++) {
        at[which->rank - 1] = d;
        int64_t place = place_of(which, at);
        from[d] = place < 0 ? UNKNOWN : index_in(which, (size_t)place, x->dims[d]);
    }
    for (int d = depth; d < x->rank; d++)
        from[d] = to[which->rank - 1 + d - depth];
    return true;
}

/* The position that an index beyond an edge refers to; UNKNOWN: to the fill value. */
static int64_t beyond(int64_t at, int64_t length, tare__slice mode)
{
    if (at >= 0 && at < length)
        return at;
    if (tare__slice_is(mode, "edge"))
        return at < 0 ? 0 : length - 1;
    if (tare__slice_is(mode, "wrap"))
        return (at % length + length) % length;
    if (!tare__slice_is(mode, "reflect"))
        return UNKNOWN;
    int64_t period = length > 1 ? 2 * (length - 1) : 1;
    at = (at % period + period) % period;
    return at < length ? at : period - at;
}

static void fold_pad(tare__step *step)
{
    double values[MAX];
    const tare__value *x = input(step, 0), *out = output(step, 0), *filling = input(step, 2);
    int64_t pads[2 * RANK_MAX], axes[RANK_MAX], at[RANK_MAX], n = tare__fold_count(step);
    bool there, has_axes;
    int n_pads = tare__numbers(step, "pads", 1, pads, 2 * RANK_MAX, &there);
    int n_axes = tare__numbers(step, NULL, 3, axes, RANK_MAX, &has_axes);
    tare__slice mode = tare__attribute_text(step, "mode");
    if (n < 0 || !tare__folds(x) || x->n_content == 0 || n_pads < 0 || out->rank != x->rank)
        return;
    int many = has_axes ? n_axes : x->rank;
    double with = filling ? (filling->content && filling->n_content ? filling->content[0] : NAN)
                          : tare__attribute_float(step, "value", 0);
    if (many < 0 || n_pads != 2 * many)
        return;
    for (int64_t i = 0; i < n; i++) {
        indices_of(out, i, at);
        for (int k = 0; k < many; k++) {
            int axis = axis_of(has_axes ? axes[k] : k, x->rank);
            if (axis < 0)
                return;
            at[axis] = beyond(at[axis] - pads[k], x->dims[axis], mode);
        }
        values[i] = place_of(x, at) == UNKNOWN ? with : value_at(x, at);
    }
    tare__set_content(step, 0, values, (size_t)n);
}

/* ---- joined and cut ------------------------------------------------------------------------------------------ */
/* Parts with unknown values are unknown in the result. */
static void fold_concat(tare__step *step)
{
    double values[MAX];
    const tare__value *out = output(step, 0);
    int64_t n = tare__fold_count(step), before = 0, at[RANK_MAX];
    int axis = n >= 0 ? axis_of(tare__attribute_int(step, "axis", 0), out->rank) : UNKNOWN;
    if (axis < 0)
        return;
    for (int64_t i = 0; i < n; i++)
        values[i] = NAN;
    for (size_t k = 0; k < step->n_in; k++) {
        const tare__value *part = input(step, k);
        int64_t length = tare__elements(part);
        if (length < 0 || length > (int64_t)MAX || part->rank != out->rank)
            return;
        for (int64_t i = 0; i < length && tare__folds(part); i++) {
            indices_of(part, i, at);
            at[axis] += before;
            int64_t place = place_of(out, at);
            if (place < 0 || place >= n)
                return;
            values[place] = part->content[i];
        }
        before += part->dims[axis];
    }
    tare__set_content(step, 0, values, (size_t)n);
}

static void fold_split(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int axis = tare__folds(x) ? axis_of(tare__attribute_int(step, "axis", 0), x->rank) : UNKNOWN;
    int64_t before = 0, at[RANK_MAX];
    for (size_t k = 0; axis >= 0 && k < step->n_out; k++) {
        double values[MAX];
        const tare__value *part = output(step, k);
        int64_t n = tare__elements(part);
        if (n < 0 || n > (int64_t)MAX || part->rank != x->rank)
            return;
        for (int64_t i = 0; i < n; i++) {
            indices_of(part, i, at);
            at[axis] += before;
            values[i] = value_at(x, at);
        }
        tare__set_content(step, k, values, (size_t)n);
        before += part->dims[axis];
    }
}

/* ---- picked and put ------------------------------------------------------------------------------------------ */
/* Positions of nonzero values: known if all values are known. */
static void fold_non_zero(tare__step *step)
{
    double values[MAX];
    const tare__value *x = input(step, 0);
    int64_t found[MAX], at[RANK_MAX], n = 0;
    if (!tare__folds(x))
        return;
    for (size_t i = 0; i < x->n_content; i++) {
        if (isnan(x->content[i]))
            return;
        if (x->content[i] != 0)
            found[n++] = (int64_t)i;
    }
    SET(step, 0, TARE__ONNX_INT64, x->rank, n);
    if (x->rank * n > (int64_t)MAX)
        return;
    for (int64_t k = 0; k < n; k++) {
        indices_of(x, found[k], at);
        for (int d = 0; d < x->rank; d++)
            values[d * n + k] = (double)at[d];
    }
    tare__set_content(step, 0, values, (size_t)(x->rank * n));
}

static void fold_compress(tare__step *step)
{
    const tare__value *x = input(step, 0), *condition = input(step, 1);
    int64_t dims[RANK_MAX], axis = tare__attribute_int(step, "axis", INT64_MAX), n = 0;
    if (!is_ranked(x) || !tare__folds(condition))
        return;
    for (size_t i = 0; i < condition->n_content; i++) {
        if (isnan(condition->content[i]))
            return;
        n += condition->content[i] != 0;
    }
    int at = axis == INT64_MAX ? UNKNOWN : axis_of(axis, x->rank);
    if (axis != INT64_MAX && at < 0)
        return;
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    if (at >= 0)
        dims[at] = n;
    tare__set(step, 0, x->type, at >= 0 ? x->rank : 1, at >= 0 ? dims : &n);
}

static bool no_reduction(const tare__step *step)
{
    tare__slice reduction = tare__attribute_text(step, "reduction");
    return !reduction.data || tare__slice_is(reduction, "none");
}

/* Used by torch for `shape[i] = n`, and for padding by index. */
static void fold_scatter_nd(tare__step *step)
{
    double values[MAX];
    const tare__value *x = input(step, 0), *which = input(step, 1), *with = input(step, 2);
    int depth = tare__folds(which) && which->rank > 0 ? (int)dim(which, -1) : UNKNOWN;
    if (!tare__folds(x) || !tare__folds(with) || depth < 1 || depth > x->rank || !no_reduction(step))
        return;
    int64_t inner = tare__product_of(step, x->rank - depth, x->dims + depth);
    size_t n = which->n_content / (size_t)depth;
    if (inner < 0 || with->n_content != n * (size_t)inner)
        return;
    memcpy(values, x->content, x->n_content * sizeof *values);
    for (size_t i = 0; i < n; i++) {
        int64_t place = 0;
        for (int d = 0; d < depth; d++) {
            int64_t index = index_in(which, i * (size_t)depth + (size_t)d, x->dims[d]);
            if (index < 0)
                return;
            place = place * x->dims[d] + index;
        }
        memcpy(values + place * inner, with->content + i * (size_t)inner, (size_t)inner * sizeof *values);
    }
    tare__set_content(step, 0, values, x->n_content);
}

static void fold_scatter_elements(tare__step *step)
{
    double values[MAX];
    const tare__value *x = input(step, 0), *which = input(step, 1), *with = input(step, 2);
    int64_t at[RANK_MAX];
    int axis = tare__folds(x) ? axis_of(tare__attribute_int(step, "axis", 0), x->rank) : UNKNOWN;
    if (axis < 0 || !tare__folds(which) || !tare__folds(with) || which->n_content != with->n_content ||
        which->rank != x->rank || !no_reduction(step))
        return;
    memcpy(values, x->content, x->n_content * sizeof *values);
    for (size_t i = 0; i < which->n_content; i++) {
        indices_of(which, (int64_t)i, at);
        at[axis] = index_in(which, i, x->dims[axis]);
        int64_t place = place_of(x, at);
        if (place < 0)
            return;
        values[place] = with->content[i];
    }
    tare__set_content(step, 0, values, x->n_content);
}

static void fold_trilu(tare__step *step)
{
    double values[MAX];
    const tare__value *x = input(step, 0);
    int64_t at[RANK_MAX], k = 0;
    bool upper = tare__attribute_int(step, "upper", 1);
    if (!tare__folds(x) || x->rank < 2 || (input(step, 1) && !tare__content(input(step, 1), 0, &k)) ||
        k < -(int64_t)MAX || k > (int64_t)MAX)
        return;
    for (size_t i = 0; i < x->n_content; i++) {
        indices_of(x, (int64_t)i, at);
        int64_t over = at[x->rank - 1] - at[x->rank - 2] - k;
        values[i] = (upper ? over >= 0 : over <= 0) ? x->content[i] : 0;
    }
    tare__set_content(step, 0, values, x->n_content);
}

/* ---- counted together ---------------------------------------------------------------------------------------- */
static void fold_reduce(tare__step *step, tare__fold_binary *of, double from, bool mean)
{
    double values[MAX];
    const tare__value *x = input(step, 0), *out = output(step, 0);
    int64_t n = tare__fold_count(step), at[RANK_MAX], to[RANK_MAX] = {0};
    bool keep = tare__attribute_int(step, "keepdims", 1);
    uint64_t gone;
    if (n <= 0 || !tare__folds(x) || x->n_content == 0 || !tare__reduced_axes(step, x->rank, &gone))
        return;
    for (int64_t i = 0; i < n; i++)
        values[i] = from;
    for (size_t i = 0; i < x->n_content; i++) {
        int rank = 0;
        indices_of(x, (int64_t)i, at);
        for (int d = 0; d < x->rank; d++) {
            if (!(gone >> d & 1))
                to[rank++] = at[d];
            else if (keep)
                to[rank++] = 0;
        }
        int64_t place = rank == out->rank ? place_of(out, to) : UNKNOWN;
        if (place < 0 || place >= n)
            return;
        values[place] = of(values[place], x->content[i]);
    }
    for (int64_t i = 0; i < n && mean; i++)
        values[i] /= (double)x->n_content / (double)n;
    tare__set_content(step, 0, values, (size_t)n);
}

static void fold_cumulated(tare__step *step)
{
    double values[MAX];
    const tare__value *x = input(step, 0);
    int64_t wanted = 0;
    bool exclusive = tare__attribute_int(step, "exclusive", 0), reverse = tare__attribute_int(step, "reverse", 0);
    if (!tare__folds(x) || !tare__content(input(step, 1), 0, &wanted) || axis_of(wanted, x->rank) < 0)
        return;
    int axis = axis_of(wanted, x->rank);
    int64_t inner = tare__product_of(step, x->rank - axis - 1, x->dims + axis + 1), length = x->dims[axis];
    int64_t n = (int64_t)x->n_content;
    for (int64_t row = 0; inner > 0 && length > 0 && row < n / length; row++) {
        int64_t first = row / inner * inner * length + row % inner;
        double sum = 0;
        for (int64_t i = 0; i < length; i++) {
            int64_t place = first + (reverse ? length - 1 - i : i) * inner;
            values[place] = exclusive ? sum : sum + x->content[place];
            sum += x->content[place];
        }
    }
    tare__set_content(step, 0, values, (size_t)n);
}

static const struct {
    const char *op;
    void (*fold)(tare__step *step);
} moved[] = {
    {"Pad", fold_pad},
    {"Concat", fold_concat},
    {"Split", fold_split},
    {"NonZero", fold_non_zero},
    {"Compress", fold_compress},
    {"ScatterND", fold_scatter_nd},
    {"ScatterElements", fold_scatter_elements},
    {"Scatter", fold_scatter_elements},
    {"Trilu", fold_trilu},
    {"CumSum", fold_cumulated},
};

static const struct {
    const char *op;
    mapping *map;
} mapped[] = {
    {"Transpose", map_transpose}, {"Slice", map_slice},   {"Expand", map_expand},
    {"Tile", map_tile},           {"Gather", map_gather}, {"GatherElements", map_gather_elements},
    {"GatherND", map_gather_nd},
};

static const struct {
    const char *op;
    tare__fold_binary *of;
    double from;
    bool mean;
} reduced[] = {
    {"ReduceProd", tare__fold_multiply, 1, false},
    {"ReduceSum", tare__fold_add, 0, false},
    {"ReduceMean", tare__fold_add, 0, true},
    {"ReduceMax", tare__fold_larger, -INFINITY, false},
    {"ReduceMin", tare__fold_smaller, INFINITY, false},
};

void tare__fold_moved(tare__step *step)
{
    tare__slice op = step->node->op;
    for (size_t i = 0; i < TARE__COUNT_OF(moved); i++)
        if (tare__slice_is(op, moved[i].op))
            moved[i].fold(step);
    for (size_t i = 0; i < TARE__COUNT_OF(mapped); i++)
        if (tare__slice_is(op, mapped[i].op))
            fold_mapped(step, mapped[i].map);
    for (size_t i = 0; i < TARE__COUNT_OF(reduced); i++)
        if (tare__slice_is(op, reduced[i].op))
            fold_reduce(step, reduced[i].of, reduced[i].from, reduced[i].mean);
}

bool tare__fold_moves(tare__slice op)
{
    for (size_t i = 0; i < TARE__COUNT_OF(moved); i++)
        if (tare__slice_is(op, moved[i].op))
            return true;
    for (size_t i = 0; i < TARE__COUNT_OF(mapped); i++)
        if (tare__slice_is(op, mapped[i].op))
            return true;
    for (size_t i = 0; i < TARE__COUNT_OF(reduced); i++)
        if (tare__slice_is(op, reduced[i].op))
            return true;
    return false;
}
