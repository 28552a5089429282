/* folded: sampled stacks as the lines that flamegraph.pl, inferno and speedscope read: frames separated by semicolons,
 * outermost first, and microseconds. docs/EXPORT.md.
 * Owned by the calling thread.
 * Must not know how the call tree was made. */
#include <math.h>
#include <string.h>

#include "emit/flush.h"
#include "stacks.h"

typedef struct folded {
    const tare__analysis *analysis;
    const tare__emit_sink *sink;
    tare__error *error;
    tare__text out, line, name;
} folded;

static void put_node(folded *to, const tare__stack_node *node)
{
    tare__text *name = &to->name;
    tare__text_clear(name);
    if (node->what == TARE__NODE_THREAD)
        tare__stack_thread_name(to->analysis, node, name);
    else
        tare__text_string(name, node->name);
    if (node->file && node->file[0])
        tare__text_format(name, " (%s", tare__stack_file(to->analysis, node->file));
    if (node->file && node->file[0] && node->line)
        tare__text_format(name, ":%u", node->line);
    tare__text_string(name, node->file && node->file[0] ? ")" : "");
    for (char *at = name->data; at && (at = memchr(at, ';', name->length - (size_t)(at - name->data)));)
        *at = ':'; /* a semicolon would begin another frame */
    to->line.failed |= name->failed;
    tare__stack_put_line(&to->line, name->data, name->length);
}

/* A line for each state: a frame says what is waited for. */
static int visit(void *context, const tare__stack_node *const *chain, size_t n)
{
    folded *to = context;
    const tare__stack_node *node = chain[n - 1];
    tare__text_clear(&to->line);
    for (size_t i = 0; i < n; i++) {
        if (i)
            tare__text_string(&to->line, ";");
        put_node(to, chain[i]);
    }
    to->out.failed |= to->line.failed;
    for (unsigned state = 0; state < TARE__STATE_COUNT; state++) {
        long long us = llround(node->of.ns[state] / 1e3);
        if (us <= 0)
            continue;
        tare__text_append(&to->out, to->line.data, to->line.length);
        if (state != TARE__STATE_RUNNING)
            tare__text_format(&to->out, ";[%s]", tare__state_phrase(state));
        tare__text_format(&to->out, " %lld\n", us);
    }
    return tare__emit_flush_piece(&to->out, to->sink, to->error);
}

static int emit_folded(const tare__emit_input *input, const tare__emit_options *options, const tare__emit_sink *sink,
                       tare__error *error)
{
    (void)options;
    folded to = {.analysis = input->analysis, .sink = sink, .error = error};
    int status = tare__stacks_walk(input->analysis, visit, &to, error);
    if (!status)
        status = tare__emit_flush(&to.out, sink, error);
    tare__text_free(&to.out);
    tare__text_free(&to.line);
    tare__text_free(&to.name);
    return status;
}

const tare__emitter tare__emit_folded = {
    .name = "folded",
    .needs = TARE__EMIT_TABLES,
    .emit = emit_folded,
};
