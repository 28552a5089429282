/* stacks: the walk over the call tree of sampled stacks, and how its nodes are named in exports.
 * Owned by the calling thread.
 * Must not know the formats. */
#include "stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tare__stacks_require(const tare__analysis *analysis, tare__error *error)
{
    if (analysis->stacks.n)
        return 0;
    return tare__fail(error, TARE_E_INPUT,
                      "the trace has no stack samples: no Python process was sampled, or --no-stacks was used");
}

int tare__stacks_walk(const tare__analysis *analysis, tare__stack_visitor *visit, void *context, tare__error *error)
{
    const tare__stack_tree *tree = &analysis->stacks;
    size_t deepest = 0;
    int status = tare__stacks_require(analysis, error);
    if (status)
        return status;
    for (size_t i = 0; i < tree->n; i++)
        deepest = tree->nodes[i].depth > deepest ? tree->nodes[i].depth : deepest;
    const tare__stack_node **chain = malloc((deepest + 1) * sizeof *chain);
    if (!chain)
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    for (size_t i = 0; i < tree->n && !status; i++) {
        const tare__stack_node *node = &tree->nodes[i];
        chain[node->depth] = node;
        if (node->self_ns > 0)
            status = visit(context, chain, (size_t)node->depth + 1);
    }
    free(chain);
    return status;
}

/* ---- names -------------------------------------------------------------------------------------------- */
static const tare__sampled_thread_row *thread_of(const tare__analysis *analysis, const tare__stack_node *node)
{
    return node->thread < analysis->n_sampled_threads ? &analysis->sampled_threads[node->thread] : NULL;
}

/* Threads may have the same name, and often do; one without has its id as name: "thread 4127". */
void tare__stack_thread_name(const tare__analysis *analysis, const tare__stack_node *node, tare__text *out)
{
    const tare__sampled_thread_row *thread = thread_of(analysis, node);
    char id[32];
    tare__text_string(out, node->name);
    if (!thread || !thread->name)
        return;
    snprintf(id, sizeof id, " %lld", (long long)thread->tid);
    size_t all = strlen(node->name), part = strlen(id);
    if (all < part || strcmp(node->name + all - part, id) != 0)
        tare__text_format(out, " (%s)", id + 1);
}

void tare__stack_put_line(tare__text *out, const char *text, size_t length)
{
    for (size_t at = 0, size; at < length; at += size ? size : 1) {
        uint32_t code;
        size = tare__utf8_decode(text + at, length - at, &code);
        if (size == 0)
            tare__text_string(out, "\xef\xbf\xbd");
        else if (tare__utf8_control(code) || code == 0x2028 || code == 0x2029) /* separators of lines and paragraphs */
            tare__text_string(out, " ");
        else
            tare__text_append(out, text + at, size);
    }
}

const char *tare__stack_file(const tare__analysis *analysis, const char *file)
{
    bool standard;
    const char *folder = analysis->run.directory, *module = tare__module_path(file, &standard);
    size_t length = folder ? strlen(folder) : 0;
    bool below = length > 1 && strncmp(file, folder, length) == 0 && file[length] == '/' && file[length + 1];
    return module && !(standard && below) ? module : below ? file + length + 1 : file;
}

bool tare__stack_is_active(const tare__analysis *analysis, const tare__stack_node *node, unsigned state)
{
    const tare__sampled_thread_row *thread = thread_of(analysis, node);
    return (thread && thread->leading) || state == TARE__STATE_RUNNING || state == TARE__STATE_RUNNABLE ||
           state == TARE__STATE_GIL || state == TARE__STATE_DISK;
}
