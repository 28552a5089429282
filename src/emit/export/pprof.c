/* pprof: sampled stacks as a profile.proto of pprof, compressed with gzip: wall and CPU time of each stack, with its
 * process, thread and state as labels. docs/EXPORT.md.
 * Owned by the calling thread.
 * Must not know how the call tree was made. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit/flush.h"
#include "gzip.h"
#include "proto.h"
#include "stacks.h"

/* Fields of github.com/google/pprof/proto/profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME_NS = 9,
    PROFILE_DURATION_NS = 10,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
    TYPE_TYPE = 1,
    TYPE_UNIT = 2,
    SAMPLE_LOCATIONS = 1,
    SAMPLE_VALUES = 2,
    SAMPLE_LABEL = 3,
    LABEL_KEY = 1,
    LABEL_TEXT = 2,
    MAPPING_ID = 1,
    MAPPING_FILE = 5,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILES = 8,
    MAPPING_HAS_LINES = 9,
    LOCATION_ID = 1,
    LOCATION_MAPPING = 2,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    LINE_LINE = 2,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_FILE = 4,
    FUNCTION_START_LINE = 5
};

typedef struct pprof {
    const tare__analysis *analysis;
    tare__gzip *gzip;
    tare__error *error;
    tare__text out, message, part, list, name;
    tare__intern *strings, *functions, *locations; /* numbers of the file, less one for the last two */
    uint32_t *location_of; /* by node; 0: none */
    bool failed;           /* out of memory in a table */
} pprof;

static int hand_on(pprof *to, size_t least)
{
    to->out.failed |= to->failed || to->message.failed || to->part.failed || to->list.failed || to->name.failed;
    if (to->out.failed)
        return tare__no_memory(to->error);
    if (to->out.length < least)
        return 0;
    int status = tare__gzip_write(to->gzip, to->out.data, to->out.length, to->error);
    tare__text_clear(&to->out);
    return status;
}

static uint32_t number_of(pprof *to, tare__intern *table, const void *key, size_t bytes)
{
    uint32_t number = tare__intern_add(table, key, bytes);
    to->failed |= number == TARE__INTERN_NONE;
    return number == TARE__INTERN_NONE ? 0 : number;
}

static uint32_t string_of(pprof *to, const char *text)
{
    return number_of(to, to->strings, text ? text : "", text ? strlen(text) : 0);
}

static void put_message(pprof *to, unsigned field)
{
    tare__proto_message(&to->out, field, &to->message);
    tare__text_clear(&to->message);
}

/* ---- functions and locations: each before its first use ----------------------------------------------------- */
static uint32_t function_of(pprof *to, const tare__stack_node *node)
{
    const uint32_t key[3] = {string_of(to, node->name), string_of(to, node->file), node->first_line};
    uint32_t known = tare__intern_count(to->functions), at = number_of(to, to->functions, key, sizeof key);
    if (at < known || to->failed)
        return at + 1;
    tare__proto_number(&to->message, FUNCTION_ID, at + 1);
    tare__proto_number(&to->message, FUNCTION_NAME, key[0]);
    /* No system name: with the same one, pprof would take "<module>" and "f<int>(x)" for C++ names and cut their
     * brackets out. */
    tare__proto_number(&to->message, FUNCTION_FILE, key[1]);
    tare__proto_number(&to->message, FUNCTION_START_LINE, key[2]);
    put_message(to, PROFILE_FUNCTION);
    return at + 1;
}

static uint32_t location_of(pprof *to, const tare__stack_node *node)
{
    const uint32_t key[2] = {function_of(to, node), node->line};
    uint32_t known = tare__intern_count(to->locations), at = number_of(to, to->locations, key, sizeof key);
    if (at < known || to->failed)
        return at + 1;
    tare__proto_number(&to->message, LOCATION_ID, at + 1);
    tare__proto_number(&to->message, LOCATION_MAPPING, 1);
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, LINE_FUNCTION, key[0]);
    tare__proto_number(&to->part, LINE_LINE, key[1]);
    tare__proto_message(&to->message, LOCATION_LINE, &to->part);
    put_message(to, PROFILE_LOCATION);
    return at + 1;
}

static int put_locations(pprof *to)
{
    const tare__stack_tree *tree = &to->analysis->stacks;
    int status = 0;
    for (size_t i = 0; i < tree->n && !status; i++) {
        const tare__stack_node *node = &tree->nodes[i];
        if (node->what != TARE__NODE_PROCESS && node->what != TARE__NODE_THREAD)
            to->location_of[i] = location_of(to, node);
        status = hand_on(to, TARE__EMIT_PIECE);
    }
    return status;
}

/* ---- samples: one for each state ----------------------------------------------------------------------------- */
static void put_label(pprof *to, const char *key, uint32_t text)
{
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, LABEL_KEY, string_of(to, key));
    tare__proto_number(&to->part, LABEL_TEXT, text);
    tare__proto_message(&to->message, SAMPLE_LABEL, &to->part);
}

static uint32_t thread_of(pprof *to, const tare__stack_node *node)
{
    tare__text_clear(&to->name);
    tare__stack_thread_name(to->analysis, node, &to->name);
    return to->name.failed ? 0 : number_of(to, to->strings, to->name.data, to->name.length);
}

static void put_values(pprof *to, uint64_t wall_ns, uint64_t cpu_ns)
{
    tare__text_clear(&to->part);
    tare__varint_put(&to->part, wall_ns);
    tare__varint_put(&to->part, cpu_ns);
    tare__proto_message(&to->message, SAMPLE_VALUES, &to->part);
}

static int visit(void *context, const tare__stack_node *const *chain, size_t n)
{
    pprof *to = context;
    const tare__stack_node *node = chain[n - 1];
    uint32_t process = string_of(to, chain[0]->name);
    uint32_t thread = n > 1 ? thread_of(to, chain[1]) : 0;
    tare__text_clear(&to->list);
    for (size_t i = n; i-- > 0;) { /* the innermost first */
        uint32_t location = to->location_of[chain[i] - to->analysis->stacks.nodes];
        if (location)
            tare__varint_put(&to->list, location);
    }
    for (unsigned state = 0; state < TARE__STATE_COUNT; state++) {
        double ns = node->of.ns[state];
        uint64_t whole = ns > 0 && ns < 9e18 ? (uint64_t)llround(ns) : 0;
        if (!whole)
            continue;
        if (to->list.length)
            tare__proto_message(&to->message, SAMPLE_LOCATIONS, &to->list);
        put_values(to, whole, state == TARE__STATE_RUNNING ? whole : 0);
        put_label(to, "process", process);
        put_label(to, "thread", thread);
        put_label(to, "state", string_of(to, tare__state_word(state)));
        put_message(to, PROFILE_SAMPLE);
    }
    return hand_on(to, TARE__EMIT_PIECE);
}

/* ---- the profile ----------------------------------------------------------------------------------------------- */
static void put_type(pprof *to, const char *type)
{
    tare__proto_number(&to->message, TYPE_TYPE, string_of(to, type));
    tare__proto_number(&to->message, TYPE_UNIT, string_of(to, "nanoseconds"));
    put_message(to, PROFILE_SAMPLE_TYPE);
}

/* One for all locations: without it pprof would look for symbols. */
static void put_mapping(pprof *to, const char *command)
{
    tare__proto_number(&to->message, MAPPING_ID, 1);
    tare__proto_number(&to->message, MAPPING_FILE, string_of(to, command));
    tare__proto_number(&to->message, MAPPING_HAS_FUNCTIONS, 1);
    tare__proto_number(&to->message, MAPPING_HAS_FILES, 1);
    tare__proto_number(&to->message, MAPPING_HAS_LINES, 1);
    put_message(to, PROFILE_MAPPING);
}

static void put_head(pprof *to)
{
    const tare__run_table *run = &to->analysis->run;
    string_of(to, ""); /* number 0 */
    put_type(to, "wall");
    put_type(to, "cpu");
    put_mapping(to, run->command && run->command[0] ? run->command : "unknown command");
    if (run->start_realtime_ns)
        tare__proto_number(&to->out, PROFILE_TIME_NS, run->start_realtime_ns);
    if (run->elapsed_ns > 0 && run->elapsed_ns < 9e18)
        tare__proto_number(&to->out, PROFILE_DURATION_NS, (uint64_t)llround(run->elapsed_ns));
    if (run->host && run->host[0])
        tare__proto_number(&to->out, PROFILE_COMMENT, string_of(to, run->host));
    tare__proto_number(&to->out, PROFILE_DEFAULT_TYPE, string_of(to, "wall"));
}

static int put_strings(pprof *to)
{
    int status = 0;
    for (uint32_t i = 0; i < tare__intern_count(to->strings) && !status; i++) {
        size_t length;
        const char *text = tare__intern_text(to->strings, i, &length);
        tare__text_clear(&to->name); /* pprof prints names to terminals as they are */
        tare__stack_put_line(&to->name, text, length);
        tare__proto_message(&to->out, PROFILE_STRING, &to->name);
        status = hand_on(to, TARE__EMIT_PIECE);
    }
    return status;
}

static int put_all(pprof *to)
{
    put_head(to);
    int status = put_locations(to);
    if (!status)
        status = tare__stacks_walk(to->analysis, visit, to, to->error);
    if (!status)
        status = put_strings(to);
    if (!status)
        status = hand_on(to, 1);
    return status ? status : tare__gzip_end(to->gzip, to->error);
}

static int emit_pprof(const tare__emit_input *input, const tare__emit_options *options, const tare__emit_sink *sink,
                      tare__error *error)
{
    (void)options;
    pprof to = {.analysis = input->analysis, .error = error};
    int status = tare__stacks_require(input->analysis, error);
    if (status)
        return status;
    to.gzip = tare__gzip_new(sink);
    to.strings = tare__intern_new();
    to.functions = tare__intern_new();
    to.locations = tare__intern_new();
    to.location_of = calloc(input->analysis->stacks.n, sizeof *to.location_of);
    bool fits = to.gzip && to.strings && to.functions && to.locations && to.location_of;
    status = fits ? put_all(&to) : tare__no_memory(to.error);
    tare__text *const texts[] = {&to.out, &to.message, &to.part, &to.list, &to.name};
    for (size_t i = 0; i < TARE__COUNT_OF(texts); i++)
        tare__text_free(texts[i]);
    tare__intern *const tables[] = {to.strings, to.functions, to.locations};
    for (size_t i = 0; i < TARE__COUNT_OF(tables); i++)
        tare__intern_free(tables[i]);
    free(to.location_of);
    tare__gzip_free(to.gzip);
    return status;
}

const tare__emitter tare__emit_pprof = {
    .name = "pprof",
    .needs = TARE__EMIT_TABLES,
    .emit = emit_pprof,
};
