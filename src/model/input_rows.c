/* input_rows: the number of valid ids of a model: the rows of the table that an input indexes, so that generated ids
 * exist. Pure; any thread.
 * Must not know how inputs are filled. */
#include "inputs.h"

#define STEPS  8   /* casts and reshapes between the input and the lookup, or between a weight and the table */
#define VISITS 200 /* of the whole graph: limits the time for a damaged file */

/* The output of these has the same ids, or as many rows, as the input. */
static bool passes_on(const tare__onnx_node *node, bool table)
{
    static const char *const ids[] = {"Cast",    "Identity", "Reshape",   "Unsqueeze",
                                      "Squeeze", "Flatten",  "Transpose", "Clip"};
    static const char *const tables[] = {"Cast", "Identity", "DequantizeLinear"};
    return table ? tare__slice_is_any(node->op, tables, TARE__COUNT_OF(tables))
                 : tare__slice_is_any(node->op, ids, TARE__COUNT_OF(ids));
}

static int64_t rows_of(const tare__onnx_graph *graph, tare__slice table)
{
    for (int step = 0; step < STEPS; step++) {
        const tare__onnx_node *maker = NULL;
        for (size_t i = 0; i < graph->n_initializers; i++)
            if (tare__slice_equal(graph->initializers[i].name, table))
                return graph->initializers[i].rank > 0 ? graph->initializers[i].dims[0] : 0;
        for (size_t i = 0; i < graph->n_nodes && !maker; i++)
            if (graph->nodes[i].n_outputs && tare__slice_equal(graph->nodes[i].outputs[0], table))
                maker = &graph->nodes[i];
        if (!maker || !maker->n_inputs || !passes_on(maker, true))
            return 0;
        table = maker->inputs[0];
    }
    return 0;
}

/* The inputs that are the table and the ids. */
static const struct {
    const char *op;
    uint32_t table, ids;
} lookups[] = {{"Gather", 0, 1}, {"GatherBlockQuantized", 0, 1}, {"EmbedLayerNormalization", 2, 0}};

static int64_t table_rows(const tare__onnx_graph *graph, const tare__onnx_node *node, tare__slice name)
{
    for (size_t i = 0; i < TARE__COUNT_OF(lookups); i++) {
        uint32_t most = lookups[i].table > lookups[i].ids ? lookups[i].table : lookups[i].ids;
        if (node->n_inputs > most && tare__slice_is(node->op, lookups[i].op) &&
            tare__slice_equal(node->inputs[lookups[i].ids], name))
            return rows_of(graph, node->inputs[lookups[i].table]);
    }
    return 0;
}

/* The smallest of the tables: an id must be in all of them. */
static int64_t find_rows(const tare__onnx_graph *graph, tare__slice name, int steps, int *visits)
{
    int64_t least = 0;
    if (--*visits < 0)
        return 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const tare__onnx_node *node = &graph->nodes[i];
        int64_t rows = table_rows(graph, node, name);
        if (!rows && steps && node->n_inputs && node->n_outputs && passes_on(node, false) &&
            tare__slice_equal(node->inputs[0], name))
            rows = find_rows(graph, node->outputs[0], steps - 1, visits);
        if (rows > 0 && (!least || rows < least))
            least = rows;
    }
    return least;
}

int64_t tare__input_rows(const tare__onnx_graph *graph, tare__slice input)
{
    int visits = VISITS;
    return find_rows(graph, input, STEPS, &visits);
}
