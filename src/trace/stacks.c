/* stacks: the content of the STACKS blocks: functions, stacks and threads by number; the samples that refer to them.
 * Owned by the thread that opened the trace.
 * Must not know what the samples are used for. */
#include <stdlib.h>
#include <string.h>

#include "inner.h"
#include "tare.h"

typedef struct taker {
    tare__trace *trace;
    int status;
} taker;

/* The row of a number. NULL: the table is full, or the status is set. */
static void *row_for(taker *taker, tare__trace_table *table, uint32_t number, uint32_t *largest)
{
    bool refused;
    if (taker->status)
        return NULL;
    void *row = tare__trace_make_row(table, number, &refused);
    if (!row && !refused)
        taker->status = TARE_E_MEMORY;
    if (row && number > *largest)
        *largest = number;
    return row;
}

/* Names and files repeat: each text is stored once. */
static const char *keep(taker *taker, const char *text, uint32_t bytes)
{
    tare__trace *trace = taker->trace;
    bytes = bytes < TARE__TRACE_TEXT_MAX ? bytes : (uint32_t)TARE__TRACE_TEXT_MAX;
    uint32_t id = tare__intern_find(trace->stack_texts, text, bytes);
    if (id == TARE__INTERN_NONE) {
        if (bytes > TARE__STACK_TEXTS_MAX - trace->stack_text_bytes)
            return "(too many texts)";
        id = tare__intern_add(trace->stack_texts, text, bytes);
        if (id == TARE__INTERN_NONE) {
            taker->status = TARE_E_MEMORY;
            return "";
        }
        trace->stack_text_bytes += bytes;
    }
    return tare__intern_text(trace->stack_texts, id, NULL);
}

static void take_function(void *context, uint32_t number, const tare__stack_function *function)
{
    taker *taker = context;
    tare__trace *trace = taker->trace;
    tare__trace_function *row = row_for(taker, &trace->functions, number, &trace->function_largest);
    if (!row)
        return;
    *row = (tare__trace_function){
        .kind = function->kind,
        .first_line = function->first_line,
        .name = keep(taker, function->name, function->name_bytes),
        .file = keep(taker, function->file, function->file_bytes),
    };
}

static void take_thread(void *context, uint32_t number, const tare__stack_thread *thread)
{
    taker *taker = context;
    tare__trace *trace = taker->trace;
    tare__trace_thread *row = row_for(taker, &trace->threads, number, &trace->thread_largest);
    if (!row)
        return;
    *row = (tare__trace_thread){
        .pid = thread->pid,
        .tid = thread->tid,
        .start_time = thread->start_time,
        .name = keep(taker, thread->name, thread->name_bytes),
        .main = thread->main,
    };
}

static void take_stack(void *context, uint32_t number, uint32_t caller, uint32_t function, uint64_t line)
{
    taker *taker = context;
    tare__trace *trace = taker->trace;
    tare__trace_stack *row = row_for(taker, &trace->stacks, number, &trace->stack_largest);
    if (!row)
        return;
    bool known = tare__trace_find_row(&trace->functions, function);
    *row = (tare__trace_stack){.caller = caller, .function = known ? function : 0, .line = line};
}

int tare__trace_take_stacks(tare__trace *trace, const tare__trace_block *block)
{
    taker taker = {trace, 0};
    const tare__stacks_sink sink = {take_function, take_thread, take_stack, &taker};
    int status = tare__stacks_read(&block->header, block->payload, trace->squeezer, &sink);
    return status ? status : taker.status;
}

/* ---- symbols ----------------------------------------------------------------------------------------------- */
TARE__KEYED(is_symbol, tare__trace_symbol, tare__stack_symbol, TARE__EQUAL(offset) && TARE__EQUAL(object))

static uint32_t symbol_hash(uint32_t object, uint64_t offset)
{
    return (uint32_t)tare__hash_mix(tare__hash_mix(0, object), offset);
}

static void take_symbol(void *context, const tare__stack_symbol *row)
{
    taker *taker = context;
    tare__trace *trace = taker->trace;
    uint32_t hash = symbol_hash(row->object, row->offset);
    if (taker->status || trace->n_symbols >= TARE__STACKS_MAX ||
        tare__index_find(&trace->symbol_index, hash, is_symbol, trace->symbols, row) != TARE__INDEX_NONE)
        return;
    size_t frames = trace->n_symbol_frames + row->n;
    if (!tare__array_fit(&trace->symbols, &trace->symbol_room, trace->n_symbols + 1, sizeof *trace->symbols) ||
        !tare__array_fit(&trace->symbol_frames, &trace->symbol_frame_room, frames + 1, sizeof *trace->symbol_frames) ||
        !tare__index_add(&trace->symbol_index, hash, (uint32_t)trace->n_symbols)) {
        taker->status = TARE_E_MEMORY;
        return;
    }
    trace->symbols[trace->n_symbols++] =
        (tare__trace_symbol){.object = row->object, .n = row->n, .offset = row->offset,
                             .first = trace->n_symbol_frames};
    for (uint32_t i = 0; i < row->n; i++) {
        tare__stack_symbol_frame frame = row->frames[i];
        if (!tare__trace_find_row(&trace->functions, frame.function))
            frame.function = 0;
        trace->symbol_frames[trace->n_symbol_frames++] = frame;
    }
}

int tare__trace_take_symbols(tare__trace *trace, const tare__trace_block *block)
{
    taker taker = {trace, 0};
    int status = tare__stack_symbols_read(&block->header, block->payload, trace->squeezer, take_symbol, &taker);
    return status ? status : taker.status;
}

const tare__stack_symbol_frame *tare__trace_symbol_at(const tare__trace *trace, uint32_t object, uint64_t offset,
                                                      uint32_t *n)
{
    const tare__stack_symbol key = {.object = object, .offset = offset};
    uint32_t row = tare__index_find(&trace->symbol_index, symbol_hash(object, offset), is_symbol, trace->symbols, &key);
    *n = row != TARE__INDEX_NONE ? trace->symbols[row].n : 0;
    return *n ? trace->symbol_frames + trace->symbols[row].first : NULL;
}

/* ---- access ------------------------------------------------------------------------------------------------ */
const tare__trace_function *tare__trace_function_at(const tare__trace *trace, uint32_t number)
{
    return tare__trace_find_row(&trace->functions, number);
}

const tare__trace_stack *tare__trace_stack_at(const tare__trace *trace, uint32_t number)
{
    return tare__trace_find_row(&trace->stacks, number);
}

const tare__trace_thread *tare__trace_thread_at(const tare__trace *trace, uint32_t number)
{
    return tare__trace_find_row(&trace->threads, number);
}

uint32_t tare__trace_function_count(const tare__trace *trace)
{
    return trace->function_largest;
}

uint32_t tare__trace_stack_count(const tare__trace *trace)
{
    return trace->stack_largest;
}

uint32_t tare__trace_thread_count(const tare__trace *trace)
{
    return trace->thread_largest;
}

int tare__trace_stack_samples(tare__trace *trace, const tare__trace_block *block, const tare__stack_sample **samples,
                              uint32_t *n)
{
    *n = 0;
    *samples = NULL;
    if (!trace->stack_samples)
        trace->stack_samples = malloc(TARE__STACK_SAMPLES_MAX * sizeof *trace->stack_samples);
    if (!trace->stack_samples)
        return TARE_E_MEMORY;
    tare__stack_sample *got = trace->stack_samples;
    int status = tare__stack_samples_read(&block->header, block->payload, trace->squeezer, got, n);
    if (status)
        return status;
    for (uint32_t i = 0; i < *n; i++) {
        if (!tare__trace_find_row(&trace->threads, got[i].thread))
            got[i].thread = 0;
        if (!tare__trace_find_row(&trace->stacks, got[i].stack))
            got[i].stack = 0;
    }
    *samples = got;
    return 0;
}
