/* model: the functions of tare_engine.h on model files, over model/ and emit/.
 * One thread of the process at a time.
 * Must not know who shows them, nor print. */
#include <string.h>

#include "emit/emit.h"
#include "engine.h"
#include "model/model.h"

/* Converts shapes and values of inputs, as the options of `tare model` give them, and analyzes the model. */
static int analyze(const char *path, const tare_engine_model_options *options, tare__arena *arena,
                 tare__model_report **report, tare__error *why)
{
    tare__model_shape *shapes = arena ? tare__arena_alloc(arena, (options->n_inputs + 1) * sizeof *shapes) : NULL;
    tare__runner_file *values = arena ? tare__arena_alloc(arena, (options->n_inputs + 1) * sizeof *values) : NULL;
    tare__model_options requested = {.batch = options->batch, .shapes = shapes, .files = values};
    if (!shapes || !values)
        return tare__fail(why, TARE_E_MEMORY, "out of memory");
    for (size_t i = 0; i < options->n_inputs; i++) {
        const tare_engine_input *input = &options->inputs[i];
        if (input->rank)
            shapes[requested.n_shapes++] =
                (tare__model_shape){.input = input->name, .rank = input->rank, .dims = input->dims};
        if (!input->n_values || input->n_values > TARE_ENGINE_VALUES_MAX)
            continue;
        tare__runner_file *to = &values[requested.n_files++];
        *to = (tare__runner_file){.input = input->name, .n_values = input->n_values, .rank = -1};
        memcpy(to->values, input->values, input->n_values * sizeof *to->values);
    }
    return tare__model_analyze(path, &requested, report, why);
}

int tare_engine_model_json(const char *path, const tare_engine_model_options *options, tare_engine_write *write,
                           void *context, char error[TARE_ENGINE_ERROR])
{
    _Static_assert(TARE_ENGINE_VALUES_MAX == TARE__FILL_VALUES_MAX, "as many values as a model can be told");
    tare__error why = {""};
    tare__arena *arena = tare__arena_new();
    tare__model_report *report = NULL;
    int status = analyze(path, options, arena, &report, &why);
    if (!status)
        status = tare__emit_model_json(&(tare__model_view){.report = report}, &(tare__emit_options){0},
                                       &(tare__emit_sink){.write = write, .context = context}, &why);
    tare__model_free(report);
    tare__arena_free(arena);
    return status ? tare__engine_fail(status, why.text, error) : 0;
}

int tare_engine_model_generate(const char *path, const tare_engine_model_options *options, uint64_t seed,
                               tare_engine_tensor_sink *sink, void *context, char error[TARE_ENGINE_ERROR])
{
    tare__error why = {""};
    tare__arena *arena = tare__arena_new();
    tare__model_report *report = NULL;
    int status = analyze(path, options, arena, &report, &why);
    for (size_t i = 0; !status && i < report->n_inputs; i++) {
        tare__runner_tensor made;
        status = tare__runner_generate(report, i, seed, arena, &made, &why);
        if (!status)
            status = sink(context, &(tare_engine_tensor){.name = made.name,
                                                         .type = made.type,
                                                         .dims = made.dims,
                                                         .rank = made.rank,
                                                         .data = made.data,
                                                         .bytes = made.bytes});
    }
    tare__model_free(report);
    tare__arena_free(arena);
    return status ? tare__engine_fail(status, why.text, error) : 0;
}

int tare_engine_model_half(const char *path, const char *out, char error[TARE_ENGINE_ERROR])
{
    tare__error why = {""};
    int status = tare__half_convert(path, out, &why);
    return status ? tare__engine_fail(status, why.text, error) : 0;
}

int tare_engine_runtime_profile(const char *path, tare_engine_node_sink *sink, void *context,
                                char error[TARE_ENGINE_ERROR])
{
    tare__error why = {""};
    tare__arena *arena = tare__arena_new();
    tare__runner_node *nodes = NULL;
    size_t n = 0, runs = 0;
    int status = arena ? tare__runner_profile(path, arena, &nodes, &n, &runs, &why) : TARE_E_MEMORY;
    for (size_t i = 0; !status && i < n; i++)
        status = sink(context, &(tare_engine_node){.name = nodes[i].name,
                                                   .op = nodes[i].op,
                                                   .provider = nodes[i].provider,
                                                   .type = nodes[i].type,
                                                   .calls = nodes[i].calls,
                                                   .run_ns = nodes[i].run_ns,
                                                   .runs = runs,
                                                   .output_bytes = nodes[i].output_bytes});
    tare__arena_free(arena);
    return status ? tare__engine_fail(status, why.text, error) : 0;
}
