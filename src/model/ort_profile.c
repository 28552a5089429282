/* ort_profile: reads ONNX Runtime's profile, an array of events, into nodes with their time in each run.
 * Owned by the calling thread. Streams; trusts nothing it reads.
 * Must not know the model's file. */
#define _GNU_SOURCE
#include "ort_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tare.h"

#define NODES_MAX 200000u
#define ENDING    "_kernel_time"

typedef struct event {
    char name[512], op[128], provider[64], index[24];
    bool is_node, is_run;
    double at_ns, dur_ns;
    double bytes, output_bytes;
    bool sized;
    size_t n_inputs, n_outputs;
    tare__profile_end inputs[TARE__PROFILE_ENDS_MAX], outputs[2];
} event;

/* When a node ran. */
typedef struct span {
    double at_ns, dur_ns;
} span;

typedef struct state {
    tare__json_reader reader;
    tare__profile *profile;
    tare__arena *arena;
    tare__intern *index;
    size_t room;
    size_t run;        /* the current run; the first is 0 */
    bool memory;       /* out of memory */
    span *spans;       /* top-level nodes of the current run, as far as known */
    size_t n_spans, spans_room;
    event event;
} state;

/* ---- one event ------------------------------------------------------------------------------------------------ */
static bool is(const tare__json_reader *reader, const char *word)
{
    return strlen(word) == reader->length && memcmp(reader->text, word, reader->length) == 0;
}

static void copy(const tare__json_reader *reader, char *out, size_t room)
{
    size_t length = reader->length < room ? reader->length : room - 1;
    memcpy(out, reader->text, length);
    out[length] = '\0';
}

/* The runtime's type names and Tare's. */
static const char *type_of(const tare__json_reader *reader)
{
    static const char *const words[][2] = {
        {"float", "float32"}, {"double", "float64"}, {"float16", "float16"}, {"bfloat16", "bfloat16"},
        {"int8", "int8"},     {"uint8", "uint8"},    {"int16", "int16"},     {"uint16", "uint16"},
        {"int32", "int32"},   {"uint32", "uint32"},  {"int64", "int64"},     {"uint64", "uint64"},
        {"bool", "bool"},     {"string", "string"}};
    for (size_t i = 0; i < TARE__COUNT_OF(words); i++)
        if (is(reader, words[i][0]))
            return words[i][1];
    return "other";
}

/* Whether the next value is an array or an object, as wanted; anything else is skipped. */
static bool enter(tare__json_reader *reader, tare__json_token wanted)
{
    tare__json_token token = tare__json_next(reader);
    if (token != wanted)
        tare__json_skip(reader, token);
    return token == wanted;
}

static void read_dims(tare__json_reader *reader, tare__profile_end *end)
{
    tare__json_token token;
    if (!enter(reader, TARE__JSON_ARRAY))
        return;
    while ((token = tare__json_next(reader)) != TARE__JSON_END_ARRAY && token != TARE__JSON_BROKEN &&
           token != TARE__JSON_END) {
        int64_t value = -1;
        if (token != TARE__JSON_NUMBER) {
            tare__json_skip(reader, token);
            continue;
        }
        tare__json_scaled(reader->text, reader->length, 1, &value);
        if (end->rank < TARE__COUNT_OF(end->dims))
            end->dims[end->rank] = value;
        end->rank++;
    }
}

/* [{"float":[1,3,224,224]},{"int64":[2]}] */
static void read_ends(tare__json_reader *reader, tare__profile_end *ends, size_t room, size_t *n)
{
    if (!enter(reader, TARE__JSON_ARRAY))
        return;
    while (tare__json_next(reader) == TARE__JSON_OBJECT) {
        tare__profile_end end = {0};
        while (tare__json_next(reader) == TARE__JSON_KEY) {
            end.type = type_of(reader);
            end.rank = 0;
            read_dims(reader, &end);
        }
        if (*n < room && end.type)
            ends[(*n)++] = end;
    }
}

static void read_args(state *state)
{
    tare__json_reader *reader = &state->reader;
    event *event = &state->event;
    tare__json_token token;
    if (!enter(reader, TARE__JSON_OBJECT))
        return;
    while ((token = tare__json_next(reader)) == TARE__JSON_KEY) {
        if (is(reader, "input_type_shape")) {
            read_ends(reader, event->inputs, TARE__COUNT_OF(event->inputs), &event->n_inputs);
            continue;
        }
        if (is(reader, "output_type_shape")) {
            read_ends(reader, event->outputs, TARE__COUNT_OF(event->outputs), &event->n_outputs);
            continue;
        }
        bool op = is(reader, "op_name"), provider = is(reader, "provider"), index = is(reader, "node_index");
        bool output = is(reader, "output_size");
        bool size = output || is(reader, "parameter_size") || is(reader, "activation_size");
        token = tare__json_next(reader);
        if (token != TARE__JSON_STRING && token != TARE__JSON_NUMBER) {
            tare__json_skip(reader, token);
            continue;
        }
        if (op)
            copy(reader, event->op, sizeof event->op);
        if (provider)
            copy(reader, event->provider, sizeof event->provider);
        if (index)
            copy(reader, event->index, sizeof event->index);
        double value = size ? tare__json_double_of(reader->text, reader->length) : NAN;
        if (!isnan(value)) {
            event->bytes += value;
            event->sized = true;
            if (output)
                event->output_bytes = value;
        }
    }
}

static void take_name(event *event)
{
    size_t length = strlen(event->name), ending = strlen(ENDING);
    if (strcmp(event->name, "model_run") == 0) {
        event->is_run = true;
    } else if (length >= ending && strcmp(event->name + length - ending, ENDING) == 0) {
        event->name[length - ending] = '\0';
        event->is_node = true;
    }
}

static void read_event(state *state)
{
    tare__json_reader *reader = &state->reader;
    event *event = &state->event;
    bool of_node = false, of_session = false;
    *event = (struct event){.at_ns = NAN, .dur_ns = NAN, .output_bytes = NAN};
    tare__json_token token;
    while ((token = tare__json_next(reader)) == TARE__JSON_KEY) {
        if (is(reader, "args")) {
            read_args(state);
            continue;
        }
        bool name = is(reader, "name"), dur = is(reader, "dur"), kind = is(reader, "cat"), at = is(reader, "ts");
        token = tare__json_next(reader);
        if (token == TARE__JSON_STRING && name)
            copy(reader, event->name, sizeof event->name);
        else if (token == TARE__JSON_STRING && kind) {
            of_node = is(reader, "Node");
            of_session = is(reader, "Session");
        } else if (token == TARE__JSON_NUMBER && dur)
            event->dur_ns = tare__json_double_of(reader->text, reader->length) * 1e3;
        else if (token == TARE__JSON_NUMBER && at)
            event->at_ns = tare__json_double_of(reader->text, reader->length) * 1e3;
        else
            tare__json_skip(reader, token);
    }
    take_name(event);
    event->is_node = event->is_node && of_node && event->dur_ns >= 0;
    event->is_run = event->is_run && of_session;
}

/* ---- nodes ---------------------------------------------------------------------------------------------------- */
static tare__profile_node *node_of(state *state)
{
    const event *event = &state->event;
    char key[sizeof event->index + sizeof event->name + 1];
    size_t length = strlen(event->index) + 1 + strlen(event->name);
    strcat(strcat(strcpy(key, event->index), ":"), event->name);
    tare__profile *profile = state->profile;
    uint32_t id = tare__intern_add(state->index, key, length);
    if (id == TARE__INTERN_NONE || id >= NODES_MAX)
        return NULL;
    if (id < profile->n_nodes)
        return profile->nodes[id];
    tare__profile_node *node = tare__arena_alloc(state->arena, sizeof *node);
    if (!node)
        return NULL;
    if (profile->n_nodes == state->room) {
        size_t room = state->room ? state->room * 2 : 64;
        tare__profile_node **nodes = tare__arena_alloc(state->arena, room * sizeof(void *));
        if (!nodes)
            return NULL;
        if (state->room)
            memcpy(nodes, profile->nodes, state->room * sizeof(void *));
        profile->nodes = nodes;
        state->room = room;
    }
    node->name = tare__arena_copy(state->arena, event->name, strlen(event->name));
    node->op = tare__arena_copy(state->arena, event->op, strlen(event->op));
    node->provider = tare__arena_copy(state->arena, event->provider, strlen(event->provider));
    if (!node->name || !node->op || !node->provider)
        return NULL;
    profile->nodes[profile->n_nodes++] = node;
    return node;
}

static bool holds_graph(const event *event)
{
    static const char *const ops[] = {"If", "Loop", "Scan"};
    return TARE__IS_ONE_OF(event->op, ops);
}

/* Its time without that of the nodes inside it, which have separate entries. They precede it, and began later. */
static double own_time(state *state)
{
    const event *event = &state->event;
    double own = event->dur_ns;
    while (holds_graph(event) && state->n_spans && state->spans[state->n_spans - 1].at_ns >= event->at_ns)
        own -= state->spans[--state->n_spans].dur_ns;
    if (!tare__array_fit(&state->spans, &state->spans_room, state->n_spans + 1, sizeof *state->spans))
        state->memory = true;
    else
        state->spans[state->n_spans++] = (span){event->at_ns, event->dur_ns};
    return own > 0 ? own : 0;
}

/* Indices are those of runs, including the first, which is removed at the end. */
static bool take_node(state *state)
{
    const event *event = &state->event;
    tare__profile_node *node = node_of(state);
    double own = own_time(state);
    if (!node || state->memory)
        return false;
    if (state->run >= TARE__PROFILE_RUNS_MAX)
        return true;
    node->run_ns[state->run] += own;
    node->calls += state->run > 0;
    node->n_inputs = event->n_inputs;
    node->n_outputs = event->n_outputs;
    memcpy(node->inputs, event->inputs, sizeof node->inputs);
    memcpy(node->outputs, event->outputs, sizeof node->outputs);
    node->bytes = event->sized ? event->bytes : NAN;
    node->output_bytes = event->output_bytes;
    return true;
}

static void leave_first_out(tare__profile *profile, size_t runs)
{
    profile->runs = runs > 1 ? runs - 1 : runs;
    for (size_t i = 0; i < profile->n_nodes && runs > 1; i++) {
        double *values = profile->nodes[i]->run_ns;
        memmove(values, values + 1, (runs - 1) * sizeof *values);
    }
    for (size_t i = 0; i < profile->n_nodes && runs == 1; i++)
        profile->nodes[i]->calls = 1;
}

static int read_events(state *state, tare__error *error)
{
    tare__json_reader *reader = &state->reader;
    tare__json_token token = tare__json_next(reader);
    if (token != TARE__JSON_ARRAY)
        return tare__fail(error, TARE_E_INPUT, "the runtime's profile is not an array of events");
    while ((token = tare__json_next(reader)) == TARE__JSON_OBJECT) {
        read_event(state);
        if (reader->wrong)
            break;
        if (state->event.is_node && !take_node(state))
            return tare__fail(error, TARE_E_MEMORY, "out of memory for the profile's nodes");
        if (state->event.is_run)
            state->n_spans = 0;
        if (state->event.is_run && state->run < TARE__PROFILE_RUNS_MAX)
            state->run++; /* a run's event comes after those of its nodes */
    }
    if (reader->wrong)
        return tare__fail(error, TARE_E_INPUT, "the runtime's profile is damaged at byte %llu: %s",
                          (unsigned long long)reader->offset, reader->wrong);
    if (!state->run || !state->profile->n_nodes)
        return tare__fail(error, TARE_E_INPUT, "the runtime's profile contains no run");
    leave_first_out(state->profile, state->run);
    return 0;
}

int tare__profile_read_from(tare__json_source *read, void *context, tare__arena *arena, tare__profile *profile,
                            tare__error *error)
{
    static state state;
    state = (struct state){.profile = profile, .arena = arena, .index = tare__intern_new()};
    *profile = (tare__profile){.arena = arena};
    bool open = tare__json_reader_open(&state.reader, read, context);
    int status = state.index && open ? read_events(&state, error) : tare__no_memory(error);
    if (open)
        tare__json_reader_close(&state.reader);
    tare__intern_free(state.index);
    free(state.spans);
    return status;
}

static int64_t read_file(void *context, void *into, size_t bytes)
{
    ssize_t got;
    while ((got = read(*(int *)context, into, bytes)) < 0 && errno == EINTR)
        continue;
    return got;
}

int tare__profile_read(const char *path, tare__arena *arena, tare__profile *profile, tare__error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tare__fail(error, TARE_E_SYSTEM, "cannot read the runtime's profile: %s", strerror(errno));
    int status = tare__profile_read_from(read_file, &fd, arena, profile, error);
    close(fd);
    return status;
}
