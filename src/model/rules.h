/* rules: shared by the files of rules: a step's inputs, attributes and outputs, costs by elements.
 * Owned by the calling thread; used by the files of rules only.
 * Must not know any operator. */
#ifndef TARE_MODEL_RULES_H
#define TARE_MODEL_RULES_H

#include <math.h>

#include "walk.h"

#define UNKNOWN TARE__MODEL_UNKNOWN

/* ---- inputs -------------------------------------------------------------------------------------------------- */
static inline tare__value *input(const tare__step *step, size_t i)
{
    return i < step->n_in ? step->in[i] : NULL;
}

static inline tare__value *output(const tare__step *step, size_t i)
{
    return i < step->n_out ? step->out[i] : NULL;
}

static inline bool is_ranked(const tare__value *value)
{
    return value && value->rank >= 0;
}

static inline bool has_rank(const tare__value *value, int rank)
{
    return value && value->rank == rank;
}

/* A dimension, counted from the end if `i` is negative; UNKNOWN also if there is none. */
static inline int64_t dim(const tare__value *value, int i)
{
    if (!is_ranked(value))
        return UNKNOWN;
    i = i < 0 ? i + value->rank : i;
    return i >= 0 && i < value->rank ? value->dims[i] : UNKNOWN;
}

static inline int type_of(const tare__value *value)
{
    return value ? value->type : 0;
}

/* Its number of elements; UNKNOWN. */
int64_t tare__elements(const tare__value *value);
/* The product of some dimensions; UNKNOWN if one is. An overflow fails the walk. */
int64_t tare__product_of(tare__step *step, int n, const int64_t *dims);
/* The integer at `i` of an input; false: unknown. */
bool tare__content(const tare__value *value, size_t i, int64_t *number);

/* ---- attributes: the node's, or what it stands for in the call of the function ----------------------------------- */
/* The last message in a field of a message; no data: none. */
tare__slice tare__wire_last(tare__slice message, uint32_t number);
bool tare__attribute_find(const tare__step *step, const char *name, tare__slice *message);
int64_t tare__attribute_int(const tare__step *step, const char *name, int64_t otherwise);
double tare__attribute_float(const tare__step *step, const char *name, double otherwise);
int tare__attribute_type(const tare__step *step, const char *name, int otherwise); /* of elements */
tare__slice tare__attribute_text(const tare__step *step, const char *name); /* no data: absent */
/* Their number; those beyond `room` are not stored. UNKNOWN: absent. */
int tare__attribute_ints(const tare__step *step, const char *name, int64_t *values, int room);
int tare__attribute_floats(const tare__step *step, const char *name, double *values, int room);
bool tare__attribute_is(const tare__step *step, const char *name, const char *text);

/* Integers from an attribute (older operators) or else from an input. UNKNOWN: neither, or unknown; *there tells
 * which. */
int tare__numbers(const tare__step *step, const char *attribute, size_t at, int64_t *values, int room, bool *there);
/* The axes that a reduction removes. */
bool tare__reduced_axes(tare__step *step, int rank, uint64_t *set);
/* An axis made positive; UNKNOWN: out of range. */
static inline int axis_of(int64_t axis, int rank)
{
    axis = axis < 0 ? axis + rank : axis;
    return axis >= 0 && axis < rank ? (int)axis : UNKNOWN;
}

/* The axis of `x` that an attribute names; UNKNOWN also if its rank is. */
static inline int axis_in(const tare__step *step, const tare__value *x, int64_t otherwise)
{
    return is_ranked(x) ? axis_of(tare__attribute_int(step, "axis", otherwise), x->rank) : UNKNOWN;
}

/* ---- outputs ------------------------------------------------------------------------------------------------- */
/* Rank UNKNOWN: only the type is known. */
void tare__set(tare__step *step, size_t i, int type, int rank, const int64_t *dims);
void tare__set_like(tare__step *step, size_t i, const tare__value *like);
void tare__set_type(tare__step *step, size_t i, int type);
/* Whether the rank of `x` is known; if not, the first output has its type only. */
bool tare__set_unless_ranked(tare__step *step, const tare__value *x);
/* The shape of `x` with another length of one axis; an axis that is UNKNOWN: only the type. */
void tare__set_axis(tare__step *step, size_t i, int type, const tare__value *x, int axis, int64_t length);
/* The output shares the input's memory with another shape. */
void tare__set_view(tare__step *step, size_t i, tare__value *of);
/* `n` values, which are copied. No effect if there are too many. */
void tare__set_content(tare__step *step, size_t i, const double *values, size_t n);
/* The shapes contradict each other or the operator: the outputs are unknown. */
void tare__misfit(tare__step *step);
/* The shape of all inputs from `from` on, broadcast; false: unknown. */
bool tare__broadcast(tare__step *step, size_t from, int *rank, int64_t *dims);
/* Two dimensions of which one may be 1; false: they do not match. */
bool tare__broadcast_dim(int64_t a, int64_t b, int64_t *both);

/* ---- costs --------------------------------------------------------------------------------------------------- */
void tare__cost_none(tare__step *step);
void tare__cost_unknown(tare__step *step, const char *reason); /* depends on what is known only when the model runs */
void tare__cost_output(tare__step *step); /* the factor per element of the first output */
void tare__cost_input(tare__step *step);  /* of the first input */
/* Adds a product of `n` factors to the MACs; if one is UNKNOWN, the step is not counted. */
void tare__add_macs(tare__step *step, int n, const int64_t *factors);
void tare__add_other(tare__step *step, int n, const int64_t *factors);

#define ADD_MACS(step, ...) \
    tare__add_macs(step, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})
#define ADD_OTHER(step, ...) \
    tare__add_other(step, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})
#define SET(step, i, type, ...)                                                         \
    tare__set(step, i, type, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
              (const int64_t[]){__VA_ARGS__})

/* ---- values of small tensors --------------------------------------------------------------------------------- */
void tare__fold(tare__step *step); /* values of the outputs, if the inputs are known */
bool tare__fold_evaluates(tare__slice op);

/* Shapes used by several files of rules. */
void tare__shape_like_first(tare__step *step); /* the first output is like the first input */
void tare__shape_broadcast(tare__step *step);
bool tare__matmul_shape(tare__step *step, const tare__value *a, const tare__value *b, bool turn_a, bool turn_b,
                        int type);
void tare__shape_conv_of(tare__step *step, const tare__value *x, const tare__value *w, int type);
void tare__cost_conv_of(tare__step *step, const tare__value *w);
void tare__cost_matmul_of(tare__step *step, const tare__value *a, bool turn_a);
void tare__shape_pool(tare__step *step);
void tare__cost_pool(tare__step *step);
void tare__shape_global_pool(tare__step *step);
void tare__shape_gather(tare__step *step);
void tare__shape_concat_of(tare__step *step, size_t from, size_t stride, int type);
void tare__shape_reduce(tare__step *step);
void tare__shape_none(tare__step *step); /* sequences, maps and optionals: without a size */

#endif
