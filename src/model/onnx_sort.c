/* onnx_sort: sorts nodes into execution order: the file's own order if it is valid, as the format requires.
 * Owned by the calling thread.
 * Must not know what operators do. */
#include <stdlib.h>

#include "onnx.h"
#include "slices.h"
#include "tare.h"

typedef struct sorting {
    const tare__onnx_node *nodes;
    tare__slices makers; /* an output's name to the node */
    uint8_t *colours;    /* 0 not visited, 1 in progress, 2 done */
    uint32_t *order;
    size_t n_ordered;
    struct step {
        uint32_t node, input;
    } *stack;
} sorting;

static bool is_sorted(const tare__onnx_node *nodes, size_t n, const tare__slices *makers)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < nodes[i].n_inputs; j++) {
            uint32_t maker = tare__slices_find(makers, nodes[i].inputs[j]);
            if (maker != TARE__SLICES_NONE && maker >= i)
                return false;
        }
    }
    return true;
}

/* Depth first, without recursion: a chain may be as long as the file. The node on a cycle; TARE__SLICES_NONE. */
static uint32_t visit(sorting *sort, uint32_t from)
{
    size_t depth = 0;
    sort->stack[depth++] = (struct step){from, 0};
    sort->colours[from] = 1;
    while (depth) {
        struct step *step = &sort->stack[depth - 1];
        const tare__onnx_node *node = &sort->nodes[step->node];
        if (step->input == node->n_inputs) {
            sort->colours[step->node] = 2;
            sort->order[sort->n_ordered++] = step->node;
            depth--;
            continue;
        }
        uint32_t maker = tare__slices_find(&sort->makers, node->inputs[step->input++]);
        if (maker == TARE__SLICES_NONE || sort->colours[maker] == 2)
            continue;
        if (sort->colours[maker] == 1)
            return maker;
        sort->colours[maker] = 1;
        sort->stack[depth++] = (struct step){maker, 0};
    }
    return TARE__SLICES_NONE;
}

static int sort_nodes(tare__onnx *model, tare__onnx_node *nodes, size_t n, sorting *sort)
{
    tare__onnx_node *sorted = malloc(n * sizeof *sorted);
    sort->nodes = nodes;
    sort->colours = calloc(n, 1);
    sort->order = malloc(n * sizeof *sort->order);
    sort->stack = malloc(n * sizeof *sort->stack);
    int status = sorted && sort->colours && sort->order && sort->stack
                     ? 0
                     : tare__no_memory(model->error);
    for (uint32_t i = 0; i < n && !status; i++) {
        uint32_t on_circle = sort->colours[i] ? TARE__SLICES_NONE : visit(sort, i);
        if (on_circle == TARE__SLICES_NONE)
            continue;
        tare__slice name = nodes[on_circle].outputs[0];
        status = tare__fail(model->error, TARE_E_INPUT, "'%.200s': the graph has a cycle: '%.*s' depends on itself",
                            model->path, TARE__SLICE_SHOWN(name));
    }
    for (size_t i = 0; i < n && !status; i++)
        sorted[i] = nodes[sort->order[i]];
    if (!status)
        memcpy(nodes, sorted, n * sizeof *sorted);
    free(sorted);
    free(sort->colours);
    free(sort->order);
    free(sort->stack);
    return status;
}

static int find_makers(tare__onnx *model, const tare__onnx_node *nodes, size_t n, tare__slices *makers,
                       tare__slice what)
{
    for (uint32_t i = 0; i < n; i++) {
        for (size_t j = 0; j < nodes[i].n_outputs; j++) {
            tare__slice name = nodes[i].outputs[j];
            if (name.length == 0)
                continue;
            if (tare__slices_find(makers, name) != TARE__SLICES_NONE)
                return tare__fail(model->error, TARE_E_INPUT, "'%.200s': in '%.*s' two nodes produce '%.*s'",
                                  model->path, TARE__SLICE_SHOWN(what),
                                  TARE__SLICE_SHOWN(name));
            if (!tare__slices_add(makers, name, i))
                return tare__no_memory(model->error);
        }
    }
    return 0;
}

int tare__onnx_sort(tare__onnx *model, tare__onnx_node *nodes, size_t n, tare__slice what)
{
    sorting sort = {0};
    if (n >= TARE__SLICES_NONE)
        return tare__fail(model->error, TARE_E_INPUT, "'%.200s' has too many nodes", model->path);
    int status = find_makers(model, nodes, n, &sort.makers, what);
    if (!status && !is_sorted(nodes, n, &sort.makers))
        status = sort_nodes(model, nodes, n, &sort);
    tare__slices_free(&sort.makers);
    return status;
}
