/* analyze: opens a model, has it read and walked, and returns the report.
 * Owned by the calling thread.
 * Must not know the format, nor operators. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "tare.h"
#include "walk.h"

/* Memory that a report refers to is freed with it. */
typedef struct owned {
    tare__model_report report;
    tare__arena *arena;
} owned;

/* The kind of the file is more helpful than the byte at which it is not ONNX. */
static int read_model(tare__onnx *model)
{
    int status = tare__onnx_read(model);
    const char *what = status == TARE_E_INPUT ? tare__onnx_guess(model) : NULL;
    return what ? tare__fail(model->error, status, "'%.200s' is not an ONNX model: it is %s", model->path, what)
                : status;
}

/* One walk, with these default sizes. */
typedef struct tried {
    tare__model_report *report;
    size_t misfits; /* nodes whose inputs do not match */
    bool sequence, side; /* sizes that were used */
} tried;

static int analyze_once(tare__onnx *model, const tare__model_options *options, tare__input_sizes sizes, tried *found)
{
    static const tare__model_options none = {0};
    tare__walk walk = {.model = model, .options = options ? options : &none, .sizes = sizes};
    *found = (tried){0};
    model->arena = tare__arena_new();
    owned *made = model->arena ? tare__arena_alloc(model->arena, sizeof *made) : NULL;
    int status = made ? read_model(model) : tare__no_memory(model->error);
    if (!status)
        status = tare__rules_open(&walk);
    if (!status)
        status = tare__walk_model(&walk);
    if (!status)
        status = tare__report_fill(&walk, &made->report);
    tare__walk_free(&walk);
    if (status) {
        tare__arena_free(model->arena);
        return status;
    }
    made->arena = model->arena;
    *found = (tried){&made->report, walk.misfits, walk.sized_sequence, walk.sized_side};
    return 0;
}

/* Again with other sizes; the better one is kept. Only running out of memory is a failure. */
static int try_sizes(const tare__onnx *fresh, const tare__model_options *options, tare__input_sizes sizes, tried *best)
{
    tare__error error = {""};
    tare__onnx again = *fresh;
    tried found;
    again.error = &error;
    int status = analyze_once(&again, options, sizes, &found);
    if (status)
        return status == TARE_E_MEMORY ? tare__fail(fresh->error, status, "out of memory") : 0;
    bool better = found.misfits < best->misfits;
    tare__model_free(better ? best->report : found.report);
    if (better)
        *best = found;
    return 0;
}

/* Position tables and windows have a limited or fixed length: if the default sizes do not match, others are tried. */
static int analyze(tare__onnx *model, const tare__model_options *options, tare__model_report **report)
{
    const tare__onnx fresh = *model;
    tare__input_sizes sizes = {tare__input_sequences[0], tare__input_sides[0]};
    tried best;
    int status = analyze_once(model, options, sizes, &best);
    for (size_t i = 1; !status && best.sequence && best.misfits && i < tare__input_sequences_count; i++) {
        size_t before = best.misfits;
        status = try_sizes(&fresh, options, (tare__input_sizes){tare__input_sequences[i], sizes.side}, &best);
        if (!status && best.misfits < before)
            sizes.sequence = tare__input_sequences[i];
    }
    for (size_t i = 1; !status && best.side && best.misfits && i < tare__input_sides_count; i++)
        status = try_sizes(&fresh, options, (tare__input_sizes){sizes.sequence, tare__input_sides[i]}, &best);
    if (status)
        tare__model_free(best.report);
    *report = status ? NULL : best.report;
    return status;
}

int tare__model_analyze_bytes(const void *data, size_t bytes, const tare__model_options *options,
                            tare__model_report **report, tare__error *error)
{
    tare__onnx model = {.error = error, .path = "(memory)", .data = data, .bytes = bytes};
    *report = NULL;
    return analyze(&model, options, report);
}

int tare__model_analyze(const char *path, const tare__model_options *options, tare__model_report **report,
                      tare__error *error)
{
    tare__onnx model = {.error = error, .path = path, .beside = true};
    *report = NULL;
    int status = tare__onnx_map(&model);
    if (!status) {
        model.mapped = true;
        madvise((void *)model.data, model.bytes, MADV_RANDOM); /* weights are skipped: no read-ahead */
        status = analyze(&model, options, report);
    }
    tare__onnx_unmap(&model);
    return status;
}

void tare__model_free(tare__model_report *report)
{
    if (report)
        tare__arena_free(((owned *)report)->arena);
}
