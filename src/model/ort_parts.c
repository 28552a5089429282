/* ort_parts: parts of the runner for other users of a model: generated inputs, nodes of a profile.
 * Owned by the calling thread.
 * Must not know the caller. */
#include <string.h>

#include "model.h"
#include "ort_profile.h"

int tare__runner_generate(const tare__model_report *report, size_t input, uint64_t seed, tare__arena *arena,
                          tare__runner_tensor *tensor, tare__error *error)
{
    tare__ort_tensor *made = tare__arena_alloc(arena, sizeof *made);
    if (!made)
        return tare__no_memory(error);
    int status = tare__input_make(report, input, 0, seed, arena, made, error);
    if (!status)
        *tensor = (tare__runner_tensor){.name = made->name,
                                        .type = tare__ort_type_name(made->type),
                                        .dims = made->dims,
                                        .rank = made->rank,
                                        .bytes = made->bytes,
                                        .data = made->data};
    return status;
}

static const char *real_type(const tare__profile_node *node)
{
    for (size_t i = 0; i < node->n_inputs; i++)
        if (strstr(node->inputs[i].type, "float"))
            return node->inputs[i].type;
    return NULL;
}

int tare__runner_profile(const char *path, tare__arena *arena, tare__runner_node **nodes, size_t *n, size_t *runs,
                         tare__error *error)
{
    tare__profile profile;
    int status = tare__profile_read(path, arena, &profile, error);
    if (status)
        return status;
    *n = profile.n_nodes;
    *runs = profile.runs;
    *nodes = tare__arena_alloc(arena, (*n + 1) * sizeof **nodes);
    if (!*nodes)
        return tare__no_memory(error);
    for (size_t i = 0; i < *n; i++) {
        const tare__profile_node *from = profile.nodes[i];
        (*nodes)[i] = (tare__runner_node){.name = from->name,
                                          .op = from->op,
                                          .provider = from->provider,
                                          .type = real_type(from),
                                          .calls = from->calls,
                                          .run_ns = from->run_ns,
                                          .output_bytes = from->output_bytes};
    }
    return 0;
}
