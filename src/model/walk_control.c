/* walk_control: nodes with subgraphs (If, Loop, Scan), and calls of the model's own functions.
 * Owned by the calling thread.
 * Must not know what other operators do. */
#include <stdio.h>

#include "rules.h"

#define TRIPS_MAX 1000000000 /* a larger number means "until the condition is false" */

/* ---- frames -------------------------------------------------------------------------------------------------- */
static const char *prefix_of(tare__walk *walk, const tare__frame *frame, const tare__onnx_node *node, const char *part)
{
    tare__slice name = node->name.length ? node->name : node->op;
    tare__text text = {0};
    tare__text_string(&text, frame->prefix);
    tare__text_append(&text, (const char *)name.data, name.length);
    tare__text_format(&text, "/%s", part);
    const char *prefix = text.failed ? "" : tare__walk_copy(walk, (tare__slice){(uint8_t *)text.data, text.length});
    tare__text_free(&text);
    return prefix;
}

static int too_deep(tare__walk *walk, const tare__onnx_node *node)
{
    return tare__walk_wrong(walk, node->op, "graphs or functions are nested too deep, or call themselves, at");
}

/* Walks the subgraph in an attribute. Its outputs' indices go to `outputs`, as many as there is space for; returns
 * their number, or UNKNOWN if the walk failed. */
typedef struct body {
    tare__onnx_graph graph;
    tare__frame frame;
} body;

static int open_body(tare__step *step, const char *attribute, uint64_t times, body *body)
{
    tare__walk *walk = step->walk;
    tare__slice message;
    if (!tare__attribute_find(step, attribute, &message))
        return tare__walk_wrong(walk, step->node->op, "a graph is missing in an operator");
    if (step->frame->depth >= TARE__ONNX_DEPTH_MAX)
        return too_deep(walk, step->node);
    int status = tare__onnx_read_graph(walk->model, tare__wire_last(message, 6), &body->graph);
    if (status)
        return walk->status = status;
    char part[40];
    snprintf(part, sizeof part, "%.30s/", attribute);
    body->frame = (tare__frame){.outer = step->frame,
                                .graph = &body->graph,
                                .times = times,
                                .at_least = step->frame->at_least,
                                .depth = step->frame->depth + 1,
                                .prefix = prefix_of(walk, step->frame, step->node, part)};
    return walk->status;
}

static int run_body(tare__walk *walk, body *body)
{
    if (!walk->status && !tare__walk_weights(walk, &body->frame, &body->graph))
        tare__walk_nodes(walk, &body->frame, body->graph.nodes, body->graph.n_nodes);
    return walk->status;
}

static void close_body(body *body)
{
    tare__slices_free(&body->frame.names);
    tare__slices_free(&body->frame.infos);
}

/* The value of a body's output; NULL: there is none, and the walk has failed. */
static tare__value *body_output(tare__walk *walk, const body *body, size_t i)
{
    tare__slice name = i < body->graph.n_outputs ? body->graph.outputs[i].name : (tare__slice){0};
    uint32_t number = tare__walk_find(&body->frame, name);
    if (number != TARE__SLICES_NONE && walk->values[number])
        return walk->values[number];
    tare__walk_wrong(walk, name, "nothing makes the output");
    return NULL;
}

/* Undoes the walk since this point. */
typedef struct mark {
    size_t layers, values;
    uint32_t time;
} mark;

static mark mark_of(const tare__walk *walk)
{
    return (mark){walk->n_layers, walk->n_values, walk->time};
}

static void forget(tare__walk *walk, mark from, size_t to_values)
{
    for (size_t i = from.values; i < to_values; i++) {
        if (walk->values[i])
            walk->values[i]->activation = false;
    }
}

typedef struct weight {
    uint64_t macs, other;
    bool macs_at_least, other_at_least;
} weight;

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static weight weight_of(const tare__walk *walk, size_t from, size_t to)
{
    weight sum = {0};
    for (size_t i = from; i < to; i++) {
        const tare__model_layer *layer = &walk->layers[i];
        sum.macs = sum_of(sum.macs, layer->cost.macs);
        sum.other = sum_of(sum.other, layer->cost.other);
        sum.macs_at_least |= layer->macs_at_least;
        sum.other_at_least |= layer->other_at_least;
    }
    return sum;
}

/* Keeps the dimensions in which input and output agree. True: all of them. */
static bool agree(tare__walk *walk, tare__value *in, const tare__value *out)
{
    if (in->rank < 0 || in->rank != out->rank) {
        bool same = in->rank == out->rank;
        in->rank = UNKNOWN;
        return same;
    }
    int64_t *dims = tare__arena_alloc(walk->model->arena, sizeof *dims * (size_t)(in->rank + 1));
    bool all = true;
    if (!dims) {
        tare__walk_no_memory(walk);
        return true;
    }
    for (int i = 0; i < in->rank; i++) {
        bool same = in->dims[i] == out->dims[i];
        dims[i] = same ? in->dims[i] : UNKNOWN;
        all = all && (same || in->dims[i] == UNKNOWN);
    }
    in->dims = dims;
    return all;
}

/* ---- If ------------------------------------------------------------------------------------------------------ */
static void bind_branch(tare__step *step, body *body)
{
    for (size_t i = 0; i < step->node->n_outputs && !step->walk->status; i++) {
        tare__slice name = step->node->outputs[i];
        if (name.length == 0 || !body_output(step->walk, body, i))
            continue;
        uint32_t number = tare__walk_find(&body->frame, body->graph.outputs[i].name);
        if (!tare__slices_add((tare__slices *)&step->frame->names, name, number))
            tare__walk_no_memory(step->walk);
    }
}

static int run_branch(tare__step *step, const char *name, body *body)
{
    int status = open_body(step, name, step->frame->times, body);
    return status ? status : run_body(step->walk, body);
}

/* The additional cost of the branch that is not counted. */
static void tell_branch(tare__step *step, bool second, const weight *counted, const weight *left)
{
    tare__slice name = step->node->name.length ? step->node->name : step->node->op;
    step->macs_at_least = counted->macs != left->macs || left->macs_at_least;
    step->other_at_least = counted->other != left->other || left->other_at_least;
    if (!step->macs_at_least && !step->other_at_least)
        return;
    step->reason = "the branch is known only at run time; the cheaper one is counted";
    tare__walk_note(step->walk,
                    "'%.*s': the branch is known only at run time; %s, the cheaper one, is counted; "
                    "%s costs %s%llu MACs more",
                    TARE__SLICE_SHOWN(name),
                    second ? "else_branch" : "then_branch", second ? "then_branch" : "else_branch",
                    left->macs_at_least ? "at least " : "",
                    (unsigned long long)(left->macs > counted->macs ? left->macs - counted->macs : 0));
}

static bool is_cheaper(const weight *a, const weight *b)
{
    return a->macs != b->macs ? a->macs < b->macs : a->other < b->other;
}

/* If the branch is unknown, only common properties of both are known for the outputs. */
static void bind_both(tare__step *step, const body *chosen, const body *other)
{
    for (size_t i = 0; i < step->node->n_outputs && !step->walk->status; i++) {
        if (step->node->outputs[i].length == 0)
            continue;
        tare__value *value = body_output(step->walk, chosen, i),
                    *left = value ? body_output(step->walk, other, i) : NULL;
        if (!left)
            continue;
        if (value->rank != left->rank ||
            (value->rank > 0 && memcmp(value->dims, left->dims, (size_t)value->rank * sizeof *value->dims) != 0))
            agree(step->walk, value, left);
        value->content = NULL;
        value->n_content = 0;
    }
}

/* Both are walked, since both have weights; one is counted. If it is unknown which one runs, it is the cheaper one,
 * and the figures are lower bounds. */
static void walk_if(tare__step *step)
{
    tare__walk *walk = step->walk;
    int64_t taken;
    bool known = tare__content(input(step, 0), 0, &taken);
    body branches[2] = {0};
    mark start = mark_of(walk);
    run_branch(step, "then_branch", &branches[0]);
    mark middle = mark_of(walk);
    walk->time = start.time;
    if (!walk->status)
        run_branch(step, "else_branch", &branches[1]);
    if (!walk->status) {
        mark end = mark_of(walk);
        weight weights[2] = {weight_of(walk, start.layers, middle.layers), weight_of(walk, middle.layers, end.layers)};
        bool second = known ? !taken : is_cheaper(&weights[1], &weights[0]);
        forget(walk, second ? start : middle, second ? middle.values : end.values);
        tare__walk_drop(walk, second ? start.layers : middle.layers, second ? middle.layers : end.layers);
        walk->time = middle.time > end.time ? middle.time : end.time;
        if (!known) {
            walk->open_branch = true;
            tell_branch(step, second, &weights[second], &weights[!second]);
            bind_both(step, &branches[second], &branches[!second]);
        }
        bind_branch(step, &branches[second]);
    }
    close_body(&branches[0]);
    close_body(&branches[1]);
}

/* ---- Loop and Scan ------------------------------------------------------------------------------------------- */
/* Loop-carried values: from a value outside to an input of the body, from an output of the body to one of the node. */
typedef struct turn {
    tare__step *step;
    body body;
    size_t n_first;   /* inputs of the node and of the body before the carried ones */
    size_t n_carried; /* from input n_first on; outputs of the body from n_ahead on */
    size_t n_ahead;
    int64_t trips; /* UNKNOWN */
    tare__value *shapes; /* of carried values at the start of the body */
} turn;

static tare__value *add_body_input(turn *turn, size_t i, const tare__value *like)
{
    tare__walk *walk = turn->step->walk;
    if (i >= turn->body.graph.n_inputs)
        return NULL; /* a damaged file: reported where it is used */
    const tare__onnx_info *info = &turn->body.graph.inputs[i];
    tare__value *value = tare__walk_add(walk, &turn->body.frame, info->name);
    if (!value)
        return NULL;
    value->type = info->type;
    if (like) {
        value->type = like->type ? like->type : info->type;
        value->rank = like->rank;
        value->dims = like->dims;
    }
    return value;
}

static uint64_t times_of(const turn *turn)
{
    uint64_t times, trips = turn->trips == UNKNOWN ? 1 : (uint64_t)turn->trips;
    return __builtin_mul_overflow(turn->step->frame->times, trips, &times) ? UINT64_MAX : times;
}

/* Outer values that a loop uses are live until it ends. */
static void hold_outer(tare__walk *walk, mark start)
{
    for (size_t i = 0; i < start.values; i++) {
        if (walk->values[i] && walk->values[i]->last >= start.time && walk->values[i]->last < walk->time)
            walk->values[i]->last = walk->time;
    }
}

typedef void fill_body(turn *turn); /* inputs of the body that are not carried */

static bool pass(turn *turn, const char *attribute, fill_body *fill)
{
    tare__walk *walk = turn->step->walk;
    bool settled = true;
    if (open_body(turn->step, attribute, times_of(turn), &turn->body))
        return true;
    turn->body.frame.at_least |= turn->trips == UNKNOWN;
    fill(turn);
    for (size_t i = 0; i < turn->n_carried && !walk->status; i++) {
        tare__value *value = add_body_input(turn, turn->n_first + i, &turn->shapes[i]);
        tare__value *first = input(turn->step, turn->n_first + i);
        if (value && first)
            value->shares = first->shares ? first->shares : first;
    }
    run_body(walk, &turn->body);
    for (size_t i = 0; i < turn->n_carried && !walk->status; i++) {
        const tare__value *out = body_output(walk, &turn->body, turn->n_ahead + i);
        settled = out ? agree(walk, &turn->shapes[i], out) && settled : settled;
    }
    return settled;
}

/* Undoes the walk of its body. */
static void leave(turn *turn, mark start)
{
    tare__walk *walk = turn->step->walk;
    forget(walk, start, walk->n_values);
    tare__walk_drop(walk, start.layers, walk->n_layers);
    walk->time = start.time;
    close_body(&turn->body);
    turn->body = (body){0};
}

/* Walked again if a carried value changes its shape: then the dimension is unknown. */
static void walk_body(turn *turn, const char *attribute, fill_body *fill)
{
    tare__walk *walk = turn->step->walk;
    mark start = mark_of(walk);
    turn->shapes = tare__arena_alloc(walk->model->arena, (turn->n_carried + 1) * sizeof *turn->shapes);
    if (!turn->shapes) {
        tare__walk_no_memory(walk);
        return;
    }
    for (size_t i = 0; i < turn->n_carried; i++) {
        const tare__value *value = input(turn->step, turn->n_first + i);
        turn->shapes[i].rank = UNKNOWN;
        if (value)
            turn->shapes[i] = *value;
    }
    for (int tries = 0; tries < 3 && !walk->status; tries++) {
        if (tries)
            leave(turn, start);
        if (pass(turn, attribute, fill))
            break;
    }
    hold_outer(walk, start);
}

static void set_carried(turn *turn)
{
    for (size_t i = 0; i < turn->n_carried; i++)
        tare__set_like(turn->step, i, &turn->shapes[i]);
}

/* Outputs of each iteration, concatenated along a new axis. */
static void set_stacked(turn *turn, size_t output_at, const tare__value *one, int64_t axis)
{
    int64_t dims[TARE__MODEL_RANK_MAX + 1];
    if (!one || one->rank < 0 || one->rank >= (int)TARE__MODEL_RANK_MAX) {
        tare__set_type(turn->step, output_at, type_of(one));
        return;
    }
    int at = axis_of(axis, one->rank + 1);
    for (int i = 0, from = 0; i <= one->rank; i++)
        dims[i] = i == at ? turn->trips : one->dims[from++];
    tare__set(turn->step, output_at, one->type, one->rank + 1, dims);
}

static void fill_loop(turn *turn)
{
    tare__walk *walk = turn->step->walk;
    static const int64_t none[1] = {0};
    tare__value scalar = {.type = TARE__ONNX_INT64, .rank = 0, .dims = (int64_t *)none};
    add_body_input(turn, 0, &scalar);
    scalar.type = TARE__ONNX_BOOL;
    tare__value *condition = add_body_input(turn, 1, &scalar);
    int64_t known;
    if (condition && (!input(turn->step, 1) || (tare__content(input(turn->step, 1), 0, &known) && known))) {
        condition->content = tare__arena_alloc(walk->model->arena, sizeof *condition->content);
        if (!condition->content) {
            tare__walk_no_memory(walk);
            return;
        }
        condition->content[0] = 1;
        condition->n_content = 1;
    }
}

static void tell_trips(turn *turn, int64_t most)
{
    tare__slice name = turn->step->node->name.length ? turn->step->node->name : turn->step->node->op;
    if (turn->trips == UNKNOWN) {
        turn->step->macs_at_least = turn->step->other_at_least = true;
        turn->step->reason = "its number of iterations is known only when the model runs; one is counted";
        char limit[48] = "";
        if (most != UNKNOWN)
            snprintf(limit, sizeof limit, " of at most %lld", (long long)most);
        tare__walk_note(turn->step->walk,
                        "'%.*s': its number of iterations is known only when the model runs; one%s is counted",
                        TARE__SLICE_SHOWN(name), limit);
    }
}

static void walk_loop(tare__step *step)
{
    turn turn = {.step = step, .n_first = 2, .n_ahead = 1, .trips = UNKNOWN};
    int64_t trips, known, on = 0;
    turn.n_carried = step->n_in > 2 ? step->n_in - 2 : 0;
    if (tare__content(input(step, 0), 0, &trips) && trips >= 0 && trips <= TRIPS_MAX)
        turn.trips = trips;
    if (tare__content(input(step, 1), 0, &known) && !known)
        turn.trips = 0;
    mark start = mark_of(step->walk);
    walk_body(&turn, "body", fill_loop);
    int64_t most = turn.trips;
    const tare__value *condition = step->walk->status ? NULL : body_output(step->walk, &turn.body, 0);
    bool to_the_end = turn.trips == 0 || turn.trips == 1 || (tare__content(condition, 0, &on) && on);
    if (!step->walk->status && turn.trips != UNKNOWN && !to_the_end) {
        /* It may end early: only the first iteration is certain. */
        leave(&turn, start);
        turn.trips = UNKNOWN;
        walk_body(&turn, "body", fill_loop);
    }
    if (!step->walk->status) {
        tell_trips(&turn, most);
        set_carried(&turn);
        for (size_t i = turn.n_carried; i < step->n_out && !step->walk->status; i++)
            set_stacked(&turn, i, body_output(step->walk, &turn.body, i + 1), 0);
    }
    close_body(&turn.body);
}

static int64_t scan_axis(const turn *turn, const char *attribute, size_t i)
{
    int64_t axes[64];
    int n = tare__attribute_ints(turn->step, attribute, axes, 64);
    return n > (int)i && i < 64 ? axes[i] : 0;
}

/* The scanned inputs follow the carried ones; each iteration gets one slice. */
static void fill_scan(turn *turn)
{
    const tare__step *step = turn->step;
    for (size_t i = turn->n_carried; i < step->n_in; i++) {
        const tare__value *whole = input(step, i);
        tare__value slice = {.type = type_of(whole), .rank = UNKNOWN};
        int64_t dims[TARE__MODEL_RANK_MAX];
        int at = is_ranked(whole) ? axis_of(scan_axis(turn, "scan_input_axes", i - turn->n_carried), whole->rank)
                                  : UNKNOWN;
        if (at >= 0) {
            slice.rank = whole->rank - 1;
            for (int d = 0, to = 0; d < whole->rank; d++) {
                if (d != at)
                    dims[to++] = whole->dims[d];
            }
        }
        tare__value *value = add_body_input(turn, i, &slice);
        tare__step inner = {.walk = step->walk, .frame = step->frame, .node = step->node, .out = &value, .n_out = 1};
        if (value && slice.rank >= 0)
            tare__set(&inner, 0, slice.type, slice.rank, dims);
    }
}

static void walk_scan(tare__step *step)
{
    turn turn = {.step = step, .trips = UNKNOWN};
    int64_t scanned = tare__attribute_int(step, "num_scan_inputs", 0);
    if (scanned < 0 || (uint64_t)scanned > step->n_in) {
        tare__walk_wrong(step->walk, step->node->op, "more inputs are scanned than there are, in");
        return;
    }
    turn.n_carried = step->n_in - (size_t)scanned;
    for (size_t i = turn.n_carried; i < step->n_in && turn.trips == UNKNOWN; i++)
        turn.trips = dim(input(step, i), (int)scan_axis(&turn, "scan_input_axes", i - turn.n_carried));
    walk_body(&turn, "body", fill_scan);
    if (!step->walk->status) {
        tell_trips(&turn, UNKNOWN);
        set_carried(&turn);
        for (size_t i = turn.n_carried; i < step->n_out && !step->walk->status; i++)
            set_stacked(&turn, i, body_output(step->walk, &turn.body, i),
                        scan_axis(&turn, "scan_output_axes", i - turn.n_carried));
    }
    close_body(&turn.body);
}

/* ---- functions ----------------------------------------------------------------------------------------------- */
static const tare__onnx_function *find_function(const tare__onnx *model, const tare__onnx_node *node)
{
    for (size_t i = 0; i < model->n_functions; i++) {
        const tare__onnx_function *function = &model->functions[i];
        if (tare__slice_equal(function->name, node->op) && tare__slice_equal(function->domain, node->domain))
            return function;
    }
    return NULL;
}

/* An omitted argument is a NULL value. */
static int add_absent(tare__walk *walk, tare__frame *frame, tare__slice name)
{
    if (!tare__array_fit(&walk->values, &walk->values_room, walk->n_values + 1, sizeof *walk->values) ||
        !tare__slices_add(&frame->names, name, (uint32_t)walk->n_values))
        return tare__walk_no_memory(walk);
    walk->values[walk->n_values++] = NULL;
    return 0;
}

static int pass_arguments(tare__walk *walk, const tare__frame *from, tare__frame *to, const tare__onnx_node *node)
{
    const tare__onnx_function *function = to->function;
    for (size_t i = 0; i < function->n_inputs && !walk->status; i++) {
        tare__slice name = i < node->n_inputs ? node->inputs[i] : (tare__slice){0};
        uint32_t number = name.length ? tare__walk_find(from, name) : TARE__SLICES_NONE;
        if (name.length && number == TARE__SLICES_NONE)
            return tare__walk_wrong(walk, name, "nothing makes the input");
        if (number == TARE__SLICES_NONE)
            add_absent(walk, to, function->inputs[i]);
        else if (!tare__slices_add(&to->names, function->inputs[i], number))
            tare__walk_no_memory(walk);
    }
    return walk->status;
}

static int return_values(tare__walk *walk, const tare__frame *from, tare__frame *to, const tare__onnx_node *node)
{
    const tare__onnx_function *function = from->function;
    for (size_t i = 0; i < node->n_outputs && !walk->status; i++) {
        tare__slice name = i < function->n_outputs ? function->outputs[i] : (tare__slice){0};
        uint32_t number = tare__walk_find(from, name);
        if (node->outputs[i].length == 0)
            continue;
        if (number == TARE__SLICES_NONE)
            return tare__walk_wrong(walk, node->outputs[i], "the function does not produce");
        if (!tare__slices_add(&to->names, node->outputs[i], number))
            tare__walk_no_memory(walk);
    }
    return walk->status;
}

static void walk_function(tare__walk *walk, tare__frame *frame, const tare__onnx_node *node,
                          const tare__onnx_function *function)
{
    if (frame->depth >= TARE__ONNX_DEPTH_MAX) {
        too_deep(walk, node);
        return;
    }
    tare__frame inner = {.caller = frame, .function = function, .call = node, .times = frame->times,
                         .depth = frame->depth + 1, .prefix = prefix_of(walk, frame, node, "")};
    if (!pass_arguments(walk, frame, &inner, node) &&
        !tare__walk_nodes(walk, &inner, function->nodes, function->n_nodes))
        return_values(walk, &inner, frame, node);
    tare__slices_free(&inner.names);
}

/* ---- which of them ------------------------------------------------------------------------------------------- */
static const struct {
    const char *op;
    void (*walk)(tare__step *step);
    bool makes; /* its own values; else its outputs are those of a branch */
} controls[] = {{"If", walk_if, false}, {"Loop", walk_loop, true}, {"Scan", walk_scan, true}};

static void walk_with(tare__walk *walk, tare__frame *frame, const tare__onnx_node *node, size_t which)
{
    tare__step step;
    tare__onnx_node without = *node;
    without.n_outputs = 0;
    if (tare__walk_open(walk, frame, &without, &step))
        return;
    step.node = node;
    if (controls[which].makes) {
        /* Created before its body is walked, live from its end. */
        step.out = tare__arena_alloc(walk->model->arena, (node->n_outputs + 1) * sizeof *step.out);
        step.n_out = step.out ? node->n_outputs : 0;
        if (!step.out)
            tare__walk_no_memory(walk);
        for (size_t i = 0; i < step.n_out && !walk->status; i++) {
            step.out[i] = node->outputs[i].length ? tare__walk_add(walk, frame, node->outputs[i]) : NULL;
            if (step.out[i])
                step.out[i]->activation = true;
        }
    }
    if (!walk->status)
        controls[which].walk(&step);
    for (size_t i = 0; i < step.n_out; i++) {
        if (step.out[i])
            step.out[i]->made = step.out[i]->last = walk->time;
    }
    if (!walk->status)
        tare__walk_close(&step);
}

bool tare__walk_control(tare__walk *walk, tare__frame *frame, const tare__onnx_node *node)
{
    const tare__onnx_function *function = walk->model->n_functions ? find_function(walk->model, node) : NULL;
    if (function) {
        walk_function(walk, frame, node, function);
        return true;
    }
    for (size_t i = 0; i < TARE__COUNT_OF(controls) && node->domain.length == 0; i++) {
        if (tare__slice_is(node->op, controls[i].op)) {
            walk_with(walk, frame, node, i);
            return true;
        }
    }
    return false;
}
