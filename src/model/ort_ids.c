/* ort_ids: how many ids a model knows: the rows of the table that an input is looked up in, so that ids that are made up
 * exist. One thread.
 * Must not know how inputs are made. */
#define _GNU_SOURCE
#include "ort_inner.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx.h"

#define STEPS 8 /* casts and reshapes between the input and the look-up */

/* What these give has the same ids in it as what they take. */
static bool passes_on(const tare__onnx_node *node)
{
    static const char *const ops[] = {"Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose"};
    for (size_t i = 0; i < TARE__COUNT_OF(ops); i++)
        if (tare__slice_is(node->op, ops[i]))
            return true;
    return false;
}

static int64_t rows_of(const tare__onnx_graph *graph, tare__slice table)
{
    for (size_t i = 0; i < graph->n_initializers; i++)
        if (tare__slice_equal(graph->initializers[i].name, table))
            return graph->initializers[i].rank > 0 ? graph->initializers[i].dims[0] : 0;
    return 0;
}

/* The smallest of the tables: an id must be in all of them. */
static int64_t look_up(const tare__onnx_graph *graph, tare__slice name, int steps)
{
    int64_t least = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const tare__onnx_node *node = &graph->nodes[i];
        int64_t rows = 0;
        if (node->n_inputs > 1 && tare__slice_is(node->op, "Gather") && tare__slice_equal(node->inputs[1], name))
            rows = rows_of(graph, node->inputs[0]);
        else if (steps && node->n_inputs && node->n_outputs && passes_on(node) &&
                 tare__slice_equal(node->inputs[0], name))
            rows = look_up(graph, node->outputs[0], steps - 1);
        if (rows > 0 && (!least || rows < least))
            least = rows;
    }
    return least;
}

static int64_t read_and_look(tare__onnx *model, const char *input)
{
    model->arena = tare__arena_new();
    int64_t rows = 0;
    if (model->arena && tare__onnx_read(model) == 0)
        rows = look_up(&model->graph, (tare__slice){(const uint8_t *)input, strlen(input)}, STEPS);
    tare__arena_free(model->arena);
    return rows;
}

int64_t tare__inputs_bound(const char *path, const char *input)
{
    tare__error error;
    struct stat about;
    tare__onnx model = {.error = &error, .path = path, .beside = true};
    int64_t rows = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    void *data = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0
                     ? mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                     : MAP_FAILED;
    close(fd);
    if (data == MAP_FAILED)
        return 0;
    model.data = data;
    model.bytes = (size_t)about.st_size;
    madvise(data, model.bytes, MADV_RANDOM);
    rows = read_and_look(&model, input);
    munmap(data, model.bytes);
    return rows;
}
