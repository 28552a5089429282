/* rules_layout: operators that move, join, slice, select or count elements, and those that create constants.
 * Pure but for the step; any thread.
 * Must not know what calls them. */
#include "rules.h"

#define RANK_MAX ((int)TARE__MODEL_RANK_MAX)

/* ---- the same elements under another shape --------------------------------------------------------------------- */
static void view(tare__step *step, int rank, const int64_t *dims)
{
    tare__set(step, 0, type_of(input(step, 0)), rank, dims);
    tare__set_view(step, 0, input(step, 0));
}

static void shape_identity(tare__step *step)
{
    tare__value *from = input(step, 0);
    tare__shape_like_first(step);
    tare__set_view(step, 0, from);
    if (from && from->tensor && output(step, 0))
        output(step, 0)->source = from->source ? from->source : from;
}

/* The one dimension that is not given follows from the number of elements. */
static void complete(tare__step *step, const tare__value *x, int rank, int64_t *dims)
{
    int64_t whole = tare__elements(x), given = 1;
    int open = UNKNOWN, n_open = 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) {
            open = i;
            n_open++;
        } else if (__builtin_mul_overflow(given, dims[i], &given)) {
            return;
        }
    }
    if (whole < 0 || n_open > 1)
        return;
    if (n_open == 0 && whole != given)
        tare__misfit(step);
    if (n_open == 1 && given > 0 && whole % given == 0)
        dims[open] = whole / given;
    else if (n_open == 1 && given > 0)
        tare__misfit(step);
}

static void shape_reshape(tare__step *step)
{
    const tare__value *x = input(step, 0), *to = input(step, 1);
    int64_t dims[RANK_MAX] = {0};
    int n = tare__attribute_ints(step, "shape", dims, RANK_MAX);
    bool zero_is_zero = tare__attribute_int(step, "allowzero", 0);
    if (n == UNKNOWN && to && to->content) {
        n = (int)to->n_content;
        for (int i = 0; i < n && i < RANK_MAX; i++)
            dims[i] = tare__content(to, (size_t)i, &dims[i]) ? dims[i] : -2;
    } else if (n == UNKNOWN && to && to->rank == 1 && dim(to, 0) >= 0 && dim(to, 0) <= RANK_MAX) {
        n = (int)dim(to, 0);
        for (int i = 0; i < n; i++)
            dims[i] = -2;
    }
    for (int i = 0; i < n && n <= RANK_MAX; i++) {
        if (dims[i] == 0 && !zero_is_zero)
            dims[i] = dim(x, i);
    }
    if (n >= 0 && n <= RANK_MAX)
        complete(step, x, n, dims);
    view(step, n <= RANK_MAX ? n : UNKNOWN, dims);
}

static void shape_flatten(tare__step *step)
{
    const tare__value *x = input(step, 0);
    if (!is_ranked(x)) {
        view(step, 2, (int64_t[]){UNKNOWN, UNKNOWN});
        return;
    }
    int64_t axis = tare__attribute_int(step, "axis", 1);
    axis = axis < 0 ? axis + x->rank : axis;
    if (axis < 0 || axis > x->rank) {
        tare__misfit(step);
        return;
    }
    view(step, 2, (int64_t[]){tare__product_of(step, (int)axis, x->dims),
                              tare__product_of(step, x->rank - (int)axis, x->dims + axis)});
}

/* Axes as a set of bits; false: not known. */
static bool axes_of(tare__step *step, size_t at, int rank, bool *there, uint64_t *set)
{
    int64_t axes[RANK_MAX];
    int n = tare__numbers(step, "axes", at, axes, RANK_MAX, there);
    *set = 0;
    for (int i = 0; i < n; i++) {
        int axis = axis_of(axes[i], rank);
        if (axis < 0) {
            tare__misfit(step);
            return false;
        }
        *set |= (uint64_t)1 << axis;
    }
    return n != UNKNOWN || !*there;
}

static void shape_squeeze(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t dims[RANK_MAX] = {0};
    uint64_t axes;
    bool there;
    int rank = 0;
    if (!is_ranked(x) || !axes_of(step, 1, x->rank, &there, &axes)) {
        view(step, UNKNOWN, NULL);
        return;
    }
    for (int i = 0; i < x->rank; i++) {
        bool gone = there ? axes >> i & 1 : x->dims[i] == 1;
        if (!there && x->dims[i] < 0) { /* whether it is 1 determines the rank */
            view(step, UNKNOWN, NULL);
            return;
        }
        if (!gone)
            dims[rank++] = x->dims[i];
    }
    view(step, rank, dims);
}

static void shape_unsqueeze(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t axes[RANK_MAX], dims[RANK_MAX];
    bool there;
    int n = tare__numbers(step, "axes", 1, axes, RANK_MAX, &there), rank = is_ranked(x) ? x->rank + n : UNKNOWN;
    if (n < 0 || !is_ranked(x) || rank > RANK_MAX) {
        view(step, UNKNOWN, NULL);
        return;
    }
    uint64_t set = 0;
    for (int i = 0; i < n; i++) {
        int axis = axis_of(axes[i], rank);
        if (axis < 0 || set >> axis & 1) {
            tare__misfit(step);
            return;
        }
        set |= (uint64_t)1 << axis;
    }
    for (int i = 0, from = 0; i < rank; i++)
        dims[i] = set >> i & 1 ? 1 : x->dims[from++];
    view(step, rank, dims);
}

/* ---- moved --------------------------------------------------------------------------------------------------- */
static void shape_transpose(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t order[RANK_MAX], dims[RANK_MAX];
    if (!tare__set_unless_ranked(step, x))
        return;
    int n = tare__attribute_ints(step, "perm", order, RANK_MAX);
    for (int i = 0; i < x->rank; i++)
        dims[i] = n == UNKNOWN ? x->dims[x->rank - 1 - i] : i < n ? dim(x, axis_of(order[i], x->rank)) : UNKNOWN;
    if (n != UNKNOWN && n != x->rank)
        tare__misfit(step);
    else
        tare__set(step, 0, x->type, x->rank, dims);
}

static void shape_depth_to_space(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t block = tare__attribute_int(step, "blocksize", 1), c = dim(x, 1), h = dim(x, 2), w = dim(x, 3);
    bool sound = block > 0 && block < 1 << 15 && has_rank(x, 4) && h < INT32_MAX && w < INT32_MAX;
    SET(step, 0, type_of(x), dim(x, 0), c < 0 || !sound ? UNKNOWN : c / (block * block),
        h < 0 || !sound ? UNKNOWN : h * block, w < 0 || !sound ? UNKNOWN : w * block);
}

static void shape_space_to_depth(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t block = tare__attribute_int(step, "blocksize", 1), c = dim(x, 1), h = dim(x, 2), w = dim(x, 3);
    bool sound = block > 0 && block < 1 << 15 && has_rank(x, 4) && c < INT32_MAX;
    SET(step, 0, type_of(x), dim(x, 0), c < 0 || !sound ? UNKNOWN : c * block * block,
        h < 0 || !sound ? UNKNOWN : h / block, w < 0 || !sound ? UNKNOWN : w / block);
}

/* ---- joined and cut ------------------------------------------------------------------------------------------ */
void tare__shape_concat_of(tare__step *step, size_t from, size_t stride, int type)
{
    const tare__value *first = input(step, from);
    int64_t dims[RANK_MAX], sum = 0;
    int axis = axis_in(step, first, 0);
    if (axis < 0) {
        tare__set_type(step, 0, type);
        return;
    }
    memcpy(dims, first->dims, sizeof *dims * (size_t)first->rank);
    for (size_t i = from; i < step->n_in; i += stride) {
        const tare__value *part = input(step, i);
        if (!has_rank(part, first->rank)) {
            if (is_ranked(part))
                tare__misfit(step);
            sum = UNKNOWN;
            continue;
        }
        for (int d = 0; d < first->rank; d++) {
            if (d != axis && dims[d] >= 0 && part->dims[d] >= 0 && dims[d] != part->dims[d])
                tare__misfit(step);
            dims[d] = dims[d] < 0 ? part->dims[d] : dims[d];
        }
        if (sum >= 0 && (part->dims[axis] < 0 || __builtin_add_overflow(sum, part->dims[axis], &sum)))
            sum = UNKNOWN;
    }
    dims[axis] = sum;
    tare__set(step, 0, type, first->rank, dims);
}

static void shape_concat(tare__step *step)
{
    tare__shape_concat_of(step, 0, 1, type_of(input(step, 0)));
}

static void shape_split(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t parts[TARE__CONTENT_MAX];
    bool there;
    int n = tare__numbers(step, "split", 1, parts, (int)TARE__CONTENT_MAX, &there);
    int axis = axis_in(step, x, 0);
    int64_t whole = axis >= 0 ? x->dims[axis] : UNKNOWN;
    int64_t even = step->n_out && whole >= 0 ? (whole + (int64_t)step->n_out - 1) / (int64_t)step->n_out : UNKNOWN;
    for (size_t i = 0; i < step->n_out; i++) {
        int64_t left = even < 0 ? UNKNOWN : whole - even * (int64_t)i; /* the last part may be smaller */
        tare__set_axis(step, i, type_of(x), x, axis,
                       there         ? ((int)i < n ? parts[i] : UNKNOWN)
                       : left < 0    ? (even < 0 ? UNKNOWN : 0)
                       : left < even ? left
                                     : even);
    }
}

/* The number of elements from `start` to before `end`. */
static int64_t slice_length(int64_t length, int64_t start, int64_t end, int64_t by)
{
    if (by == 0 || length < 0)
        return UNKNOWN;
    start = start < 0 ? start + length : start;
    end = end < 0 ? (end < -length ? -1 : end + length) : end;
    if (by > 0) {
        start = start < 0 ? 0 : start > length ? length : start;
        end = end < 0 ? 0 : end > length ? length : end;
        return end > start ? (end - start - 1) / by + 1 : 0;
    }
    start = start < 0 ? -1 : start >= length ? length - 1 : start;
    end = end < -1 ? -1 : end >= length ? length - 1 : end;
    return start > end ? (start - end - 1) / (by == INT64_MIN ? INT64_MAX : -by) + 1 : 0;
}

static void shape_slice(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t starts[RANK_MAX], ends[RANK_MAX], axes[RANK_MAX], steps[RANK_MAX], dims[RANK_MAX];
    bool there, has_axes, has_steps;
    if (!tare__set_unless_ranked(step, x))
        return;
    int n = tare__numbers(step, "starts", 1, starts, RANK_MAX, &there);
    int m = tare__numbers(step, "ends", 2, ends, RANK_MAX, &there);
    int n_axes = tare__numbers(step, "axes", 3, axes, RANK_MAX, &has_axes);
    int n_steps = tare__numbers(step, NULL, 4, steps, RANK_MAX, &has_steps);
    memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
    const tare__value *where = input(step, 1);
    int many = n >= 0 ? n : where && dim(where, 0) >= 0 && dim(where, 0) <= RANK_MAX ? (int)dim(where, 0) : UNKNOWN;
    if (many == UNKNOWN || (has_axes && n_axes != many)) {
        for (int i = 0; i < x->rank; i++)
            dims[i] = UNKNOWN;
        many = 0;
    }
    for (int i = 0; i < many; i++) {
        int axis = axis_of(has_axes ? axes[i] : i, x->rank);
        if (axis < 0) {
            tare__misfit(step);
            continue;
        }
        /* An unknown end leaves the length open, except for a known start and end. */
        bool known = i < n && i < m && (!has_steps || i < n_steps);
        dims[axis] = known ? slice_length(dims[axis], starts[i], ends[i], has_steps ? steps[i] : 1) : UNKNOWN;
    }
    tare__set(step, 0, x->type, x->rank, dims);
}

static void shape_pad(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t pads[2 * RANK_MAX], axes[RANK_MAX], dims[RANK_MAX];
    bool there, has_axes;
    if (!tare__set_unless_ranked(step, x))
        return;
    int n = tare__numbers(step, "pads", 1, pads, 2 * RANK_MAX, &there);
    int n_axes = tare__numbers(step, NULL, 3, axes, RANK_MAX, &has_axes);
    int many = has_axes ? n_axes : x->rank;
    for (int i = 0; i < x->rank; i++)
        dims[i] = n == UNKNOWN || many == UNKNOWN ? UNKNOWN : x->dims[i];
    for (int i = 0; i < many && n != UNKNOWN; i++) {
        int axis = axis_of(has_axes ? axes[i] : i, x->rank);
        if (axis < 0 || n != 2 * many) {
            tare__misfit(step);
            return;
        }
        int64_t sum;
        if (dims[axis] < 0 || __builtin_add_overflow(dims[axis], pads[i], &sum) ||
            __builtin_add_overflow(sum, pads[i + many], &sum) || sum < 0)
            sum = UNKNOWN;
        dims[axis] = sum;
    }
    tare__set(step, 0, x->type, x->rank, dims);
}

static void shape_tile(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t repeats[RANK_MAX], dims[RANK_MAX];
    bool there;
    int n = tare__numbers(step, NULL, 1, repeats, RANK_MAX, &there);
    if (!tare__set_unless_ranked(step, x))
        return;
    for (int i = 0; i < x->rank; i++) {
        if (i >= n || x->dims[i] < 0 || repeats[i] < 0 || __builtin_mul_overflow(x->dims[i], repeats[i], &dims[i]))
            dims[i] = UNKNOWN;
    }
    tare__set(step, 0, x->type, x->rank, dims);
}

static void shape_expand(tare__step *step)
{
    const tare__value *x = input(step, 0), *to = input(step, 1);
    int64_t dims[RANK_MAX] = {0};
    int64_t wanted = to && to->content ? (int64_t)to->n_content : has_rank(to, 1) ? dim(to, 0) : UNKNOWN;
    if (!is_ranked(x) || wanted < 0 || wanted > RANK_MAX) {
        tare__set_type(step, 0, type_of(x));
        return;
    }
    int rank = x->rank > (int)wanted ? x->rank : (int)wanted;
    for (int d = 1; d <= rank; d++) {
        int64_t a = d <= x->rank ? x->dims[x->rank - d] : 1, b = d <= wanted ? UNKNOWN : 1;
        if (d <= wanted && to->content && !tare__content(to, (size_t)(wanted - d), &b))
            b = UNKNOWN;
        if (!tare__broadcast_dim(a, b, &dims[rank - d]))
            tare__misfit(step);
    }
    tare__set(step, 0, x->type, rank, dims);
}

/* ---- picked -------------------------------------------------------------------------------------------------- */
void tare__shape_gather(tare__step *step)
{
    const tare__value *x = input(step, 0), *at = input(step, 1);
    int64_t dims[2 * RANK_MAX];
    int axis = axis_in(step, x, 0), rank = 0;
    if (axis < 0 || !is_ranked(at)) {
        tare__set_type(step, 0, type_of(x));
        return;
    }
    for (size_t i = 0; i < at->n_content && at->content && x->dims[axis] >= 0; i++)
        if (at->content[i] >= (double)x->dims[axis] || at->content[i] < -(double)x->dims[axis]) {
            tare__misfit(step); /* positions beyond the end of the table */
            break;
        }
    for (int i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int i = 0; i < at->rank; i++)
        dims[rank++] = at->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    tare__set(step, 0, x->type, rank <= RANK_MAX ? rank : UNKNOWN, dims);
}

static void shape_gather_elements(tare__step *step)
{
    tare__set_like(step, 0, input(step, 1));
    tare__set_type(step, 0, type_of(input(step, 0)));
}

static void shape_gather_nd(tare__step *step)
{
    const tare__value *x = input(step, 0), *at = input(step, 1);
    int64_t dims[2 * RANK_MAX], depth = dim(at, -1), batch = tare__attribute_int(step, "batch_dims", 0);
    int rank = 0;
    if (!is_ranked(x) || !is_ranked(at) || depth < 0 || batch < 0 || batch + depth > x->rank || at->rank < 1) {
        tare__set_type(step, 0, type_of(x));
        return;
    }
    for (int i = 0; i < at->rank - 1; i++)
        dims[rank++] = at->dims[i];
    for (int i = (int)(batch + depth); i < x->rank; i++)
        dims[rank++] = x->dims[i];
    tare__set(step, 0, x->type, rank <= RANK_MAX ? rank : UNKNOWN, dims);
}

static void shape_top_k(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t k = tare__attribute_int(step, "k", UNKNOWN);
    int axis = axis_in(step, x, -1);
    if (k == UNKNOWN && !tare__content(input(step, 1), 0, &k))
        k = UNKNOWN;
    tare__set_axis(step, 0, type_of(x), x, axis, k);
    tare__set_axis(step, 1, TARE__ONNX_INT64, x, axis, k);
}

static void shape_one_hot(tare__step *step)
{
    const tare__value *at = input(step, 0);
    int64_t dims[RANK_MAX + 1], depth;
    if (!tare__content(input(step, 1), 0, &depth))
        depth = UNKNOWN;
    int axis =
        is_ranked(at) && at->rank < RANK_MAX ? axis_of(tare__attribute_int(step, "axis", -1), at->rank + 1) : UNKNOWN;
    for (int i = 0, from = 0; axis >= 0 && i <= at->rank; i++)
        dims[i] = i == axis ? depth : at->dims[from++];
    tare__set(step, 0, type_of(input(step, 2)), axis >= 0 ? at->rank + 1 : UNKNOWN, dims);
}

static void shape_non_zero(tare__step *step)
{
    const tare__value *x = input(step, 0);
    SET(step, 0, TARE__ONNX_INT64, is_ranked(x) ? x->rank : UNKNOWN, UNKNOWN);
}

static void shape_compress(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int axis = axis_in(step, x, INT64_MAX); /* by default all elements in a row */
    if (axis < 0)
        SET(step, 0, type_of(x), UNKNOWN);
    else
        tare__set_axis(step, 0, x->type, x, axis, UNKNOWN);
}

static void shape_unique(tare__step *step)
{
    SET(step, 0, type_of(input(step, 0)), UNKNOWN);
    for (size_t i = 1; i < 4; i++)
        SET(step, i, TARE__ONNX_INT64, UNKNOWN);
}

static void shape_suppression(tare__step *step)
{
    SET(step, 0, TARE__ONNX_INT64, UNKNOWN, 3);
}

/* ---- counted together ---------------------------------------------------------------------------------------- */
bool tare__reduced_axes(tare__step *step, int rank, uint64_t *set)
{
    bool there, known = axes_of(step, 1, rank, &there, set);
    if (*set == 0 && !tare__attribute_int(step, "noop_with_empty_axes", 0))
        *set = UINT64_MAX;
    return known;
}

void tare__shape_reduce(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t dims[RANK_MAX] = {0};
    uint64_t axes;
    bool keep = tare__attribute_int(step, "keepdims", 1);
    int rank = 0;
    if (!tare__set_unless_ranked(step, x))
        return;
    if (!tare__reduced_axes(step, x->rank, &axes)) {
        for (int i = 0; i < x->rank; i++)
            dims[i] = UNKNOWN;
        tare__set(step, 0, x->type, keep ? x->rank : UNKNOWN, dims);
        return;
    }
    for (int i = 0; i < x->rank; i++) {
        if (!(axes >> i & 1))
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    }
    tare__set(step, 0, x->type, rank, dims);
}

static void shape_arg_max(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t dims[RANK_MAX] = {0};
    bool keep = tare__attribute_int(step, "keepdims", 1);
    int at = axis_in(step, x, 0), rank = 0;
    for (int i = 0; at >= 0 && i < x->rank; i++) {
        if (i != at)
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    }
    tare__set(step, 0, TARE__ONNX_INT64, at >= 0 ? rank : UNKNOWN, dims);
}

/* ---- made of nothing ----------------------------------------------------------------------------------------- */
static void shape_shape(tare__step *step)
{
    const tare__value *x = input(step, 0);
    if (!is_ranked(x)) {
        SET(step, 0, TARE__ONNX_INT64, UNKNOWN);
        return;
    }
    int64_t start = tare__attribute_int(step, "start", 0), end = tare__attribute_int(step, "end", x->rank);
    start = start < 0 ? start + x->rank : start;
    end = end < 0 ? end + x->rank : end;
    start = start < 0 ? 0 : start > x->rank ? x->rank : start;
    end = end < start ? start : end > x->rank ? x->rank : end;
    double values[RANK_MAX];
    for (int64_t i = start; i < end; i++)
        values[i - start] = x->dims[i] < 0 ? NAN : (double)x->dims[i];
    SET(step, 0, TARE__ONNX_INT64, end - start);
    tare__set_content(step, 0, values, (size_t)(end - start));
}

static void shape_size(tare__step *step)
{
    int64_t elements = tare__elements(input(step, 0));
    tare__set(step, 0, TARE__ONNX_INT64, 0, NULL);
    if (elements >= 0)
        tare__set_content(step, 0, &(double){(double)elements}, 1);
}

/* The shape in an input. */
static void shape_from(tare__step *step, size_t at, int type)
{
    const tare__value *to = input(step, at);
    int64_t dims[RANK_MAX] = {0};
    int64_t rank = to && to->content ? (int64_t)to->n_content : has_rank(to, 1) ? dim(to, 0) : UNKNOWN;
    for (int64_t i = 0; i < rank && rank <= RANK_MAX; i++)
        dims[i] = tare__content(to, (size_t)i, &dims[i]) ? dims[i] : UNKNOWN;
    tare__set(step, 0, type, rank <= RANK_MAX ? (int)rank : UNKNOWN, dims);
}

static bool attribute_tensor(tare__step *step, const char *name, uint32_t number, tare__onnx_tensor *tensor)
{
    tare__slice message, found;
    if (!tare__attribute_find(step, name, &message))
        return false;
    found = tare__wire_last(message, number);
    if (found.data && number == 22) /* sparse: the values in it */
        found = tare__wire_last(found, 1);
    if (!found.data)
        return false;
    int status = tare__onnx_read_tensor(step->walk->model, found, tensor);
    if (status && !step->walk->status)
        step->walk->status = status;
    return !status;
}

static void shape_constant_of_shape(tare__step *step)
{
    tare__onnx_tensor filling;
    double values[TARE__CONTENT_MAX], value = 0;
    bool given = attribute_tensor(step, "value", 5, &filling);
    shape_from(step, 0, given ? filling.type : TARE__ONNX_FLOAT);
    if (given && !(filling.elements == 1 && tare__onnx_tensor_values(&filling, &value, 1)))
        return;
    int64_t n = tare__elements(output(step, 0));
    if (n < 0 || n > (int64_t)TARE__CONTENT_MAX)
        return;
    for (int64_t i = 0; i < n; i++)
        values[i] = value;
    tare__set_content(step, 0, values, (size_t)n);
}

/* A list is a weight like a tensor; the position of its values is not needed. */
static void constant_numbers(tare__step *step, tare__onnx_tensor *tensor)
{
    int64_t numbers[TARE__CONTENT_MAX];
    double values[TARE__CONTENT_MAX];
    int n = tare__attribute_ints(step, "value_ints", numbers, (int)TARE__CONTENT_MAX);
    if (n >= 0) {
        SET(step, 0, TARE__ONNX_INT64, n);
        for (int i = 0; i < n && i < (int)TARE__CONTENT_MAX; i++)
            values[i] = (double)numbers[i];
        tare__set_content(step, 0, values, (size_t)n);
        return;
    }
    n = tare__attribute_floats(step, "value_floats", values, (int)TARE__CONTENT_MAX);
    if (n == UNKNOWN)
        return;
    SET(step, 0, TARE__ONNX_FLOAT, n);
    tare__set_content(step, 0, values, (size_t)n);
    tare__value *value = output(step, 0);
    *tensor = (tare__onnx_tensor){.type = TARE__ONNX_FLOAT, .rank = value->rank, .dims = value->dims,
                                  .elements = (uint64_t)n, .bytes = (uint64_t)n * sizeof(float)};
    if (value->rank == 1)
        value->tensor = tensor;
}

static void shape_constant(tare__step *step)
{
    tare__onnx_tensor *tensor = tare__arena_alloc(step->walk->model->arena, sizeof *tensor);
    tare__slice message;
    if (!tensor || !output(step, 0)) {
        if (!tensor)
            tare__walk_no_memory(step->walk);
        return;
    }
    output(step, 0)->activation = false;
    if (attribute_tensor(step, "value", 5, tensor)) {
        tare__weight_set(step->walk, tensor, output(step, 0));
        output(step, 0)->written = true;
        return;
    }
    if (step->walk->status || attribute_tensor(step, "sparse_value", 22, tensor) || step->walk->status)
        return;
    if (tare__attribute_find(step, "value_int", &message)) {
        tare__set(step, 0, TARE__ONNX_INT64, 0, NULL);
        tare__set_content(step, 0, &(double){(double)tare__attribute_int(step, "value_int", 0)}, 1);
    } else if (tare__attribute_find(step, "value_float", &message)) {
        tare__set(step, 0, TARE__ONNX_FLOAT, 0, NULL);
        tare__set_content(step, 0, &(double){tare__attribute_float(step, "value_float", 0)}, 1);
    } else if (tare__attribute_find(step, "value_string", &message)) {
        tare__set(step, 0, TARE__ONNX_STRING, 0, NULL);
    } else {
        constant_numbers(step, tensor);
    }
}

static void shape_range(tare__step *step)
{
    double of[3], values[TARE__CONTENT_MAX];
    int type = type_of(input(step, 0));
    for (size_t i = 0; i < 3; i++) {
        const tare__value *value = input(step, i);
        of[i] = value && value->content && value->n_content ? value->content[0] : NAN;
    }
    double count = ceil((of[1] - of[0]) / of[2]);
    if (!(count < 4e18)) { /* unknown, or zero step */
        SET(step, 0, type, UNKNOWN);
        return;
    }
    int64_t n = count > 0 ? (int64_t)count : 0;
    SET(step, 0, type, n);
    for (int64_t i = 0; i < n && i < (int64_t)TARE__CONTENT_MAX; i++)
        values[i] = of[0] + of[2] * (double)i;
    tare__set_content(step, 0, values, (size_t)n);
}

static void shape_random(tare__step *step)
{
    int64_t dims[RANK_MAX] = {0};
    int n = tare__attribute_ints(step, "shape", dims, RANK_MAX);
    tare__set(step, 0, tare__attribute_type(step, "dtype", TARE__ONNX_FLOAT), n <= RANK_MAX ? n : UNKNOWN, dims);
}

static void shape_multinomial(tare__step *step)
{
    SET(step, 0, tare__attribute_type(step, "dtype", TARE__ONNX_INT32), dim(input(step, 0), 0),
        tare__attribute_int(step, "sample_size", 1));
}

static void shape_window(tare__step *step)
{
    int64_t size;
    SET(step, 0, tare__attribute_type(step, "output_datatype", TARE__ONNX_FLOAT),
        tare__content(input(step, 0), 0, &size) ? size : UNKNOWN);
}

void tare__shape_none(tare__step *step)
{
    for (size_t i = 0; i < step->n_out; i++) {
        if (step->out[i])
            step->out[i]->optional = true;
    }
}

static void shape_unknown(tare__step *step)
{
    (void)step;
}

#define FREE(name, shape)   {name, shape, tare__cost_none, 0}
#define REDUCE(name, each)  {name, tare__shape_reduce, tare__cost_input, each}
#define MS "com.microsoft:"

const tare__rule tare__rules_layout[] = {
    FREE("Identity", shape_identity),
    FREE("Reshape", shape_reshape),
    FREE("Flatten", shape_flatten),
    FREE("Squeeze", shape_squeeze),
    FREE("Unsqueeze", shape_unsqueeze),
    FREE("Transpose", shape_transpose),
    FREE("DepthToSpace", shape_depth_to_space),
    FREE("SpaceToDepth", shape_space_to_depth),
    FREE("Concat", shape_concat),
    FREE("Split", shape_split),
    FREE("Slice", shape_slice),
    FREE("Pad", shape_pad),
    FREE(MS "Pad", shape_pad),
    FREE("Tile", shape_tile),
    FREE("Expand", shape_expand),
    FREE("Gather", tare__shape_gather),
    FREE("GatherElements", shape_gather_elements),
    FREE("GatherND", shape_gather_nd),
    FREE("Scatter", tare__shape_like_first),
    FREE("ScatterElements", tare__shape_like_first),
    FREE("ScatterND", tare__shape_like_first),
    FREE("TensorScatter", tare__shape_like_first),
    FREE("ReverseSequence", tare__shape_like_first),
    FREE("Trilu", tare__shape_like_first),
    FREE("OneHot", shape_one_hot),
    FREE("NonZero", shape_non_zero),
    FREE("Compress", shape_compress),
    FREE("Unique", shape_unique),
    FREE("Shape", shape_shape),
    FREE("Size", shape_size),
    FREE("ConstantOfShape", shape_constant_of_shape),
    FREE("Constant", shape_constant),
    FREE("Range", shape_range),
    FREE("RandomNormal", shape_random),
    FREE("RandomUniform", shape_random),
    FREE("Multinomial", shape_multinomial),
    FREE("HannWindow", shape_window),
    FREE("HammingWindow", shape_window),
    FREE("BlackmanWindow", shape_window),
    FREE("SequenceConstruct", tare__shape_none),
    FREE("SequenceEmpty", tare__shape_none),
    FREE("SequenceInsert", tare__shape_none),
    FREE("SequenceErase", tare__shape_none),
    FREE("SplitToSequence", tare__shape_none),
    FREE("Optional", tare__shape_none),
    FREE("OptionalHasElement", tare__shape_none),
    FREE("OptionalGetElement", shape_unknown),
    FREE("SequenceAt", shape_unknown),
    FREE("SequenceLength", shape_unknown),
    FREE("ConcatFromSequence", shape_unknown),
    {"TopK", shape_top_k, tare__cost_input, 1},
    {"NonMaxSuppression", shape_suppression, tare__cost_input, 1},
    {"ArgMax", shape_arg_max, tare__cost_input, 1},
    {"ArgMin", shape_arg_max, tare__cost_input, 1},
    REDUCE("ReduceSum", 1), REDUCE("ReduceMean", 1), REDUCE("ReduceMax", 1), REDUCE("ReduceMin", 1),
    REDUCE("ReduceProd", 1), REDUCE("ReduceL1", 2), REDUCE("ReduceL2", 2), REDUCE("ReduceSumSquare", 2),
    REDUCE("ReduceLogSum", 1), REDUCE("ReduceLogSumExp", 3),
    {NULL, NULL, NULL, 0},
};
