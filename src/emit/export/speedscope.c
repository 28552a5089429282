/* speedscope: sampled stacks as the JSON of speedscope.app: a profile for each thread, weights in seconds of wall time.
 * docs/EXPORT.md.
 * Owned by the calling thread.
 * Must not know how the call tree was made. */
#include <stdlib.h>
#include <string.h>

#include "emit/flush.h"
#include "stacks.h"

typedef struct speedscope {
    const tare__analysis *analysis;
    const tare__emit_sink *sink;
    tare__error *error;
    tare__json json;
    tare__text out, name, weights;
    tare__intern *frames;
    uint32_t *frame_of; /* by node */
    uint32_t waiting[TARE__STATE_COUNT]; /* the frame that says so */
    const tare__stack_node *process, *thread; /* of the open profile; NULL: none is open */
    double sum_s;
    uint32_t profiles, active; /* active: the profile of the leading thread */
} speedscope;

/* ---- frames: each once, by name, file and line ------------------------------------------------------------ */
static bool add_frame(speedscope *to, const char *name, const char *file, uint32_t line, uint32_t *number)
{
    uint32_t known = tare__intern_count(to->frames);
    tare__text_clear(&to->name);
    tare__text_string(&to->name, name);
    tare__text_append(&to->name, "", 1);
    tare__text_string(&to->name, file ? file : "");
    tare__text_append(&to->name, (const char *)&line, sizeof line);
    *number = to->name.failed ? TARE__INTERN_NONE : tare__intern_add(to->frames, to->name.data, to->name.length);
    if (*number == TARE__INTERN_NONE)
        return false;
    if (*number < known)
        return true;
    tare__json_object(&to->json);
    tare__json_put_string(&to->json, "name", name);
    if (file && file[0])
        tare__json_put_string(&to->json, "file", file);
    if (line)
        tare__json_put_unsigned(&to->json, "line", line);
    tare__json_end_object(&to->json);
    return true;
}

static bool is_frame(const tare__stack_node *node)
{
    return node->what != TARE__NODE_PROCESS && node->what != TARE__NODE_THREAD;
}

static int put_frames(speedscope *to)
{
    const tare__stack_tree *tree = &to->analysis->stacks;
    bool fits = true;
    int status = 0;
    tare__json_key(&to->json, "shared");
    tare__json_object(&to->json);
    tare__json_key(&to->json, "frames");
    tare__json_array(&to->json);
    for (size_t i = 0; i < tree->n && fits && !status; i++) {
        const tare__stack_node *node = &tree->nodes[i];
        fits = !is_frame(node) || add_frame(to, node->name, node->file, node->line, &to->frame_of[i]);
        status = tare__emit_flush_piece(&to->out, to->sink, to->error);
    }
    for (unsigned state = 0; state < TARE__STATE_COUNT && fits; state++) {
        char name[96] = "[";
        strncat(name, tare__state_phrase(state), sizeof name - 3);
        strcat(name, "]");
        fits = add_frame(to, name, NULL, 0, &to->waiting[state]);
    }
    tare__json_end_array(&to->json);
    tare__json_end_object(&to->json);
    return fits ? status : tare__no_memory(to->error);
}

/* ---- profiles ----------------------------------------------------------------------------------------------- */
static void close_profile(speedscope *to)
{
    if (!to->thread)
        return;
    tare__json_end_array(&to->json);
    tare__json_key(&to->json, "weights");
    tare__json_array(&to->json);
    for (size_t at = 0; at + sizeof(double) <= to->weights.length; at += sizeof(double)) {
        double weight_s;
        memcpy(&weight_s, to->weights.data + at, sizeof weight_s);
        tare__json_double(&to->json, weight_s);
    }
    tare__json_end_array(&to->json);
    tare__json_key(&to->json, "endValue");
    tare__json_double(&to->json, to->sum_s);
    tare__json_end_object(&to->json);
    to->out.failed |= to->weights.failed;
    tare__text_clear(&to->weights);
    to->sum_s = 0;
    to->thread = NULL;
}

static void open_profile(speedscope *to, const tare__stack_node *process, const tare__stack_node *thread)
{
    const tare__analysis *analysis = to->analysis;
    tare__text *name = &to->name;
    close_profile(to);
    tare__text_clear(name);
    tare__text_string(name, process->name);
    if (thread != process) {
        tare__text_string(name, " · ");
        tare__stack_thread_name(analysis, thread, name);
    }
    tare__json_object(&to->json);
    tare__json_put_string(&to->json, "type", "sampled");
    tare__json_key(&to->json, "name");
    tare__json_text(&to->json, name->data, name->length);
    tare__json_put_string(&to->json, "unit", "seconds");
    tare__json_put_unsigned(&to->json, "startValue", 0);
    tare__json_key(&to->json, "samples");
    tare__json_array(&to->json);
    if (analysis->stacks.leading != TARE__NO_ROW && thread->thread == analysis->stacks.leading)
        to->active = to->profiles;
    to->profiles++;
    to->thread = thread;
}

/* A sample for each state: a frame says what is waited for. */
static int visit(void *context, const tare__stack_node *const *chain, size_t n)
{
    speedscope *to = context;
    const tare__stack_node *node = chain[n - 1], *thread = n > 1 ? chain[1] : chain[0];
    if (thread != to->thread)
        open_profile(to, chain[0], thread);
    for (unsigned state = 0; state < TARE__STATE_COUNT; state++) {
        double weight_s = node->of.ns[state] / 1e9;
        if (!(weight_s > 0))
            continue;
        tare__json_array(&to->json);
        for (size_t i = 0; i < n; i++)
            if (is_frame(chain[i]))
                tare__json_unsigned(&to->json, to->frame_of[chain[i] - to->analysis->stacks.nodes]);
        if (state != TARE__STATE_RUNNING)
            tare__json_unsigned(&to->json, to->waiting[state]);
        tare__json_end_array(&to->json);
        tare__text_append(&to->weights, (const char *)&weight_s, sizeof weight_s);
        to->sum_s += weight_s;
    }
    return tare__emit_flush_piece(&to->out, to->sink, to->error);
}

static int put_profiles(speedscope *to)
{
    tare__json_key(&to->json, "profiles");
    tare__json_array(&to->json);
    int status = tare__stacks_walk(to->analysis, visit, to, to->error);
    close_profile(to);
    tare__json_end_array(&to->json);
    return status;
}

static int put_all(speedscope *to)
{
    const tare__analysis *analysis = to->analysis;
    const char *command = analysis->run.command;
    tare__json_begin(&to->json, &to->out, false);
    tare__json_object(&to->json);
    tare__json_put_string(&to->json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    int status = put_frames(to);
    if (!status)
        status = put_profiles(to);
    if (status)
        return status;
    tare__json_put_string(&to->json, "name", command && command[0] ? command : "stack samples");
    tare__json_put_unsigned(&to->json, "activeProfileIndex", to->active);
    tare__json_put_string(&to->json, "exporter", "tare");
    tare__json_end_object(&to->json);
    tare__text_string(&to->out, "\n");
    return tare__emit_flush(&to->out, to->sink, to->error);
}

static int emit_speedscope(const tare__emit_input *input, const tare__emit_options *options,
                           const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    speedscope to = {.analysis = input->analysis, .sink = sink, .error = error};
    int status = tare__stacks_require(input->analysis, error);
    if (status)
        return status;
    to.frames = tare__intern_new();
    to.frame_of = calloc(input->analysis->stacks.n, sizeof *to.frame_of);
    status = to.frames && to.frame_of ? put_all(&to) : tare__no_memory(to.error);
    tare__intern_free(to.frames);
    free(to.frame_of);
    tare__text_free(&to.out);
    tare__text_free(&to.name);
    tare__text_free(&to.weights);
    return status;
}

const tare__emitter tare__emit_speedscope = {
    .name = "speedscope",
    .needs = TARE__EMIT_TABLES,
    .emit = emit_speedscope,
};
