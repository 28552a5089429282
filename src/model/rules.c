/* rules: finds the rule of an operator; shared functions of rules: attributes, outputs, costs by elements.
 * Owned by the calling thread.
 * Must not know any operator. */
#include "rules.h"

#include <stdio.h>

#include "tare.h"

/* ---- the tables ---------------------------------------------------------------------------------------------- */
static const tare__rule *const tables[] = {
    tare__rules_elementwise, tare__rules_layout, tare__rules_matrix,  tare__rules_window, tare__rules_attention,
    tare__rules_quantized,   tare__rules_signal, tare__rules_classic, tare__rules_text,
};

#define TABLE_BITS 16u /* number: the table, then the rule */

int tare__rules_open(tare__walk *walk)
{
    for (uint32_t t = 0; t < TARE__COUNT_OF(tables); t++) {
        for (uint32_t i = 0; tables[t][i].op; i++) {
            const char *op = tables[t][i].op;
            if (!tare__slices_add(&walk->rules, tare__slice_of(op), t << TABLE_BITS | i))
                return tare__walk_no_memory(walk);
        }
    }
    return 0;
}

const tare__rule *tare__rule_find(tare__walk *walk, const tare__onnx_node *node)
{
    char whole[160];
    tare__slice name = node->op;
    if (node->domain.length) {
        int length =
            snprintf(whole, sizeof whole, "%.*s:%.*s", (int)(node->domain.length < 64 ? node->domain.length : 64),
                     (const char *)node->domain.data, (int)(node->op.length < 64 ? node->op.length : 64),
                     (const char *)node->op.data);
        name = (tare__slice){(const uint8_t *)whole, (size_t)length};
    }
    uint32_t number = tare__slices_find(&walk->rules, name);
    return number == TARE__SLICES_NONE ? NULL : &tables[number >> TABLE_BITS][number & ((1u << TABLE_BITS) - 1)];
}

bool tare__model_multiplies(const char *op)
{
    for (size_t t = 0; t < TARE__COUNT_OF(tables); t++) {
        bool never = tables[t] == tare__rules_elementwise || tables[t] == tare__rules_layout;
        for (const tare__rule *rule = tables[t]; rule->op; rule++) {
            const char *domain = strrchr(rule->op, ':');
            if (strcmp(domain ? domain + 1 : rule->op, op) == 0)
                return !never && rule->cost != tare__cost_none && rule->cost != tare__cost_output &&
                       rule->cost != tare__cost_input && rule->cost != tare__cost_pool;
        }
    }
    return true;
}

/* ---- inputs -------------------------------------------------------------------------------------------------- */
int64_t tare__elements(const tare__value *value)
{
    uint64_t elements;
    if (!is_ranked(value))
        return UNKNOWN;
    for (int i = 0; i < value->rank; i++) {
        if (value->dims[i] < 0)
            return UNKNOWN;
    }
    return tare__onnx_elements_of(value->rank, value->dims, &elements) ? (int64_t)elements : UNKNOWN;
}

static void too_large(tare__step *step)
{
    const tare__slice name = step->node->n_outputs ? step->node->outputs[0] : step->node->name;
    if (!step->walk->status)
        step->walk->status = tare__fail(step->walk->model->error, TARE_E_INPUT,
                                        "'%.200s': the dimensions of '%.*s' are larger than can be counted",
                                        step->walk->model->path, TARE__SLICE_SHOWN(name));
}

int64_t tare__product_of(tare__step *step, int n, const int64_t *dims)
{
    uint64_t product;
    for (int i = 0; i < n; i++) {
        if (dims[i] < 0)
            return UNKNOWN;
    }
    if (tare__onnx_elements_of(n, dims, &product))
        return (int64_t)product;
    too_large(step);
    return UNKNOWN;
}

bool tare__content(const tare__value *value, size_t i, int64_t *number)
{
    if (!value || !value->content || i >= value->n_content || isnan(value->content[i]))
        return false;
    double of = value->content[i];
    *number = of >= 9.2e18 ? INT64_MAX : of <= -9.2e18 ? INT64_MIN : (int64_t)of;
    return true;
}

/* ---- attributes ---------------------------------------------------------------------------------------------- */
static const tare__onnx_attribute *find_in(const tare__onnx_attribute *list, size_t n, tare__slice name)
{
    for (size_t i = 0; i < n; i++) {
        if (tare__slice_equal(list[i].name, name))
            return &list[i];
    }
    return NULL;
}

/* A reference of a function's attribute is looked up in the call, which may itself be in a function. */
bool tare__attribute_find(const tare__step *step, const char *name, tare__slice *message)
{
    const tare__frame *frame = step->frame;
    const tare__onnx_attribute *found = find_in(step->node->attributes, step->node->n_attributes, tare__slice_of(name));
    while (found && found->refers.length) {
        while (frame && !frame->function)
            frame = frame->outer;
        if (!frame)
            return false;
        const tare__onnx_attribute *given = find_in(frame->call->attributes, frame->call->n_attributes, found->refers);
        found = given ? given : find_in(frame->function->defaults, frame->function->n_defaults, found->refers);
        if (!given)
            break;
        frame = frame->caller;
    }
    if (found)
        *message = found->message;
    return found;
}

tare__slice tare__wire_last(tare__slice message, uint32_t number)
{
    tare__slice found = {0};
    tare__wire wire = tare__wire_of(message);
    for (tare__wire_field field; tare__wire_next(&wire, &field);) {
        if (field.number == number && field.type == TARE__WIRE_BYTES)
            found = field.bytes;
    }
    return found;
}

static bool find_field(const tare__step *step, const char *name, uint32_t number, tare__wire_field *found)
{
    tare__slice message;
    bool there = false;
    if (!tare__attribute_find(step, name, &message))
        return false;
    tare__wire wire = tare__wire_of(message);
    for (tare__wire_field field; tare__wire_next(&wire, &field);) {
        if (field.number == number) {
            *found = field;
            there = true;
        }
    }
    return there;
}

int64_t tare__attribute_int(const tare__step *step, const char *name, int64_t otherwise)
{
    tare__wire_field field;
    bool there = find_field(step, name, 3, &field) && field.type == TARE__WIRE_VARINT;
    return there ? (int64_t)field.value : otherwise;
}

double tare__attribute_float(const tare__step *step, const char *name, double otherwise)
{
    tare__wire_field field;
    if (!find_field(step, name, 2, &field) || field.type != TARE__WIRE_FIXED32)
        return otherwise;
    return tare__wire_float(field.value);
}

int tare__attribute_type(const tare__step *step, const char *name, int otherwise)
{
    return (int)(tare__attribute_int(step, name, otherwise) & INT32_MAX);
}

int tare__attribute_floats(const tare__step *step, const char *name, double *values, int room)
{
    tare__slice message;
    uint64_t bits;
    int n = 0;
    if (!tare__attribute_find(step, name, &message))
        return UNKNOWN;
    tare__wire_numbers numbers = tare__wire_numbers_of(message, 7, TARE__WIRE_FIXED32);
    for (; n < 1 << 24 && tare__wire_number(&numbers, &bits); n++)
        if (n < room)
            values[n] = tare__wire_float(bits);
    return n;
}

tare__slice tare__attribute_text(const tare__step *step, const char *name)
{
    tare__wire_field field;
    bool there = find_field(step, name, 4, &field) && field.type == TARE__WIRE_BYTES;
    return there ? field.bytes : (tare__slice){0};
}

bool tare__attribute_is(const tare__step *step, const char *name, const char *text)
{
    return tare__slice_is(tare__attribute_text(step, name), text);
}

int tare__attribute_ints(const tare__step *step, const char *name, int64_t *values, int room)
{
    tare__slice message;
    int n = 0;
    if (!tare__attribute_find(step, name, &message))
        return UNKNOWN;
    tare__wire_numbers numbers = tare__wire_numbers_of(message, 8, TARE__WIRE_VARINT);
    for (uint64_t value; n < 1 << 20 && tare__wire_number(&numbers, &value); n++) {
        if (n < room)
            values[n] = (int64_t)value;
    }
    return n;
}

int tare__numbers(const tare__step *step, const char *attribute, size_t at, int64_t *values, int room, bool *there)
{
    int n = attribute ? tare__attribute_ints(step, attribute, values, room) : UNKNOWN;
    const tare__value *from = input(step, at);
    *there = n != UNKNOWN || from;
    if (n != UNKNOWN)
        return n <= room ? n : UNKNOWN;
    if (!from || !from->content || from->n_content > (size_t)room)
        return UNKNOWN;
    for (size_t i = 0; i < from->n_content; i++) {
        if (!tare__content(from, i, &values[i]))
            return UNKNOWN;
    }
    return (int)from->n_content;
}

/* ---- outputs ------------------------------------------------------------------------------------------------- */
void tare__set(tare__step *step, size_t i, int type, int rank, const int64_t *dims)
{
    tare__value *value = output(step, i);
    if (!value)
        return;
    value->type = type;
    if (rank < 0 || rank > (int)TARE__MODEL_RANK_MAX)
        return;
    int64_t *kept = tare__arena_alloc(step->walk->model->arena, sizeof *kept * (size_t)(rank + !rank));
    if (!kept) {
        tare__walk_no_memory(step->walk);
        return;
    }
    for (int d = 0; d < rank; d++)
        kept[d] = dims[d] < 0 ? UNKNOWN : dims[d];
    if (tare__product_of(step, rank, kept) == UNKNOWN && step->walk->status)
        return;
    value->rank = rank;
    value->dims = kept;
}

void tare__set_like(tare__step *step, size_t i, const tare__value *like)
{
    if (like)
        tare__set(step, i, like->type, like->rank, like->dims);
}

bool tare__set_unless_ranked(tare__step *step, const tare__value *x)
{
    if (!is_ranked(x))
        tare__set_type(step, 0, type_of(x));
    return is_ranked(x);
}

void tare__set_axis(tare__step *step, size_t i, int type, const tare__value *x, int axis, int64_t length)
{
    int64_t dims[TARE__MODEL_RANK_MAX];
    if (axis >= 0) {
        memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
        dims[axis] = length;
    }
    tare__set(step, i, type, axis >= 0 ? x->rank : UNKNOWN, dims);
}

void tare__set_type(tare__step *step, size_t i, int type)
{
    if (output(step, i))
        output(step, i)->type = type;
}

void tare__set_view(tare__step *step, size_t i, tare__value *of)
{
    tare__value *value = output(step, i);
    if (value && of)
        value->shares = of->shares ? of->shares : of;
}

void tare__set_content(tare__step *step, size_t i, const double *values, size_t n)
{
    tare__value *value = output(step, i);
    size_t bytes = (n + !n) * sizeof *values;
    if (!value || n > TARE__CONTENT_MAX || step->walk->content_bytes + bytes > TARE__CONTENT_BYTES)
        return;
    value->content = tare__arena_alloc(step->walk->model->arena, bytes);
    if (!value->content) {
        tare__walk_no_memory(step->walk);
        return;
    }
    if (n)
        memcpy(value->content, values, n * sizeof *values);
    value->n_content = n;
    step->walk->content_bytes += bytes;
}

void tare__misfit(tare__step *step)
{
    step->walk->misfits++;
    step->reason = "the shapes of its inputs do not match";
    step->state = TARE__MODEL_NO_SHAPE;
}

bool tare__broadcast_dim(int64_t a, int64_t b, int64_t *both)
{
    bool fit = a < 0 || b < 0 || a == b || a == 1 || b == 1;
    if (a == b || b == 1)
        *both = a;
    else if (a == 1)
        *both = b;
    else
        *both = a < 0 ? b : a; /* an unknown one must equal the other, unless that is 1 */
    return fit;
}

bool tare__broadcast(tare__step *step, size_t from, int *rank, int64_t *dims)
{
    *rank = 0;
    for (size_t i = from; i < step->n_in; i++) {
        if (step->in[i] && !is_ranked(step->in[i]))
            return false;
        if (step->in[i] && step->in[i]->rank > *rank)
            *rank = step->in[i]->rank;
    }
    for (int d = 1; d <= *rank; d++) {
        int64_t *both = &dims[*rank - d];
        *both = 1;
        for (size_t i = from; i < step->n_in; i++) {
            const tare__value *value = step->in[i];
            int64_t one = value && d <= value->rank ? value->dims[value->rank - d] : 1;
            if (!tare__broadcast_dim(*both, one, both)) {
                tare__misfit(step);
                return false;
            }
        }
    }
    return true;
}

/* ---- costs --------------------------------------------------------------------------------------------------- */
static void add_product(tare__step *step, uint64_t *sum, bool *at_least, int n, const int64_t *factors)
{
    for (int i = 0; i < n; i++) {
        if (factors[i] < 0 && step->state == TARE__MODEL_COUNTED) {
            step->state = TARE__MODEL_NO_SHAPE;
            step->reason = "its shapes are known only when the model runs";
        }
    }
    if (step->state != TARE__MODEL_COUNTED) {
        *at_least = true;
        return;
    }
    int64_t product = tare__product_of(step, n, factors);
    if (product >= 0 && __builtin_add_overflow(*sum, (uint64_t)product, sum))
        too_large(step);
}

void tare__add_macs(tare__step *step, int n, const int64_t *factors)
{
    add_product(step, &step->macs, &step->macs_at_least, n, factors);
}

void tare__add_other(tare__step *step, int n, const int64_t *factors)
{
    add_product(step, &step->other, &step->other_at_least, n, factors);
}

void tare__cost_none(tare__step *step)
{
    (void)step;
}

void tare__cost_unknown(tare__step *step, const char *reason)
{
    step->state = TARE__MODEL_NO_RULE;
    step->other_at_least = true;
    step->reason = reason;
}

static int64_t factor_of(const tare__step *step)
{
    return (int64_t)tare__rule_find(step->walk, step->node)->factor;
}

void tare__cost_output(tare__step *step)
{
    ADD_OTHER(step, tare__elements(output(step, 0)), factor_of(step));
}

void tare__cost_input(tare__step *step)
{
    ADD_OTHER(step, tare__elements(input(step, 0)), factor_of(step));
}
