/* ort_shapes: inputs of a configuration: shapes as in the static analysis, values from files or generated.
 * One thread.
 * Must not know the runtime, nor how values are made. */
#define _GNU_SOURCE
#include "ort_inner.h"

#include <string.h>

#include "onnx.h"
#include "tare.h"

/* An input whose first dimension may be the batch size. */
static bool has_batch(const tare__model_tensor *input)
{
    return input->rank >= 2 || (input->rank == 1 && input->symbols && input->symbols[0]);
}

static int check_batch(const tare__model_report *report, int64_t requested, tare__error *error)
{
    const tare__model_tensor *first = NULL;
    for (size_t i = 0; i < report->n_inputs; i++) {
        if (!has_batch(&report->inputs[i]))
            continue;
        if (report->inputs[i].dims[0] == requested)
            return 0;
        first = first ? first : &report->inputs[i];
    }
    if (!first)
        return tare__fail(error, TARE_E_USAGE, "the model has no input with a batch");
    return tare__fail(error, TARE_E_USAGE, "the model's batch is fixed at %lld: export it with an open first dimension "
                      "to run others", (long long)first->dims[0]);
}

static int take_shape(const tare__model_tensor *input, tare__ort_tensor *tensor, bool from_file, tare__error *error)
{
    if (!input->element_type && input->type) /* what holds tensors, or none */
        return tare__fail(error, TARE_E_USAGE, "input '%.100s' is of type %s, for which no values can be generated",
                          input->name, input->type);
    if ((input->rank < 0 && !from_file) || input->rank > (int)TARE__ORT_RANK_MAX)
        return tare__fail(error, TARE_E_USAGE, "the shape of input '%.100s' is unknown; set it with --shape "
                                               "'%.100s=N,N'",
                          input->name, input->name);
    tensor->rank = input->rank < 0 ? 0 : (size_t)input->rank;
    for (size_t i = 0; i < tensor->rank; i++)
        tensor->dims[i] = input->dims[i];
    return 0;
}

int tare__input_make(const tare__model_report *report, size_t at, int64_t requested, uint64_t seed, tare__arena *arena,
                     tare__ort_tensor *tensor, tare__error *error)
{
    const tare__model_tensor *input = &report->inputs[at];
    const tare__model_fill *fill = &report->fills[at];
    bool from_file = fill->kind == TARE__FILL_FILE;
    *tensor = (tare__ort_tensor){.name = input->name, .type = input->element_type};
    int status = take_shape(input, tensor, from_file, error);
    if (status)
        return status;
    if (from_file)
        return tare__ort_read(tensor, fill->what, has_batch(input) ? requested : 0, arena, error);
    tensor->ids = fill->kind == TARE__FILL_WHOLE && fill->what && strncmp(fill->what, "ids", 3) == 0;
    int64_t elements = tare__ort_elements(tensor->dims, tensor->rank);
    int64_t n = (int64_t)fill->n_values;
    if (fill->given && n > 1 && n != elements && n != tensor->dims[tensor->rank ? tensor->rank - 1 : 0])
        return tare__fail(error, TARE_E_INPUT,
                          "--input %.100s: %zu values for %lld elements: give one, a row, or all of "
                          "them",
                          input->name, fill->n_values, (long long)elements);
    return tare__ort_generate(tensor, fill, seed, arena, error);
}

int tare__inputs_make(tare__measuring *measuring, const tare__model_report *report, int64_t requested,
                      tare__arena *arena, tare__ort_tensor **tensors, size_t *n, int64_t *batch, tare__error *error)
{
    int status = requested && !measuring->options->n_files ? check_batch(report, requested, error) : 0;
    *n = report->n_inputs;
    *tensors = status ? NULL : tare__arena_alloc(arena, (*n + 1) * sizeof **tensors);
    if (!status && !*tensors)
        status = tare__no_memory(error);
    int64_t found = 0;
    for (size_t i = 0; !status && i < *n; i++) {
        status = tare__input_make(report, i, requested, measuring->options->seed, arena, &(*tensors)[i], error);
        if (!status && !found && has_batch(&report->inputs[i]))
            found = (*tensors)[i].dims[0];
    }
    if (!status)
        *batch = found;
    return status;
}
