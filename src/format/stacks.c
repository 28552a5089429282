/* stacks: tables of the functions, stacks and threads of a file while it is written, and the samples of the next block.
 * Owned by one thread. Known rows are found by hash: pushing a known frame is the inner loop of a sampler.
 * Must not know how blocks are encoded. */
#include "stacks.h"

#include <stdlib.h>
#include <string.h>

#include "ring.h"
#include "stacks_inner.h"
#include "tare.h"

/* How many rows of each table are in the file. */
typedef struct progress {
    uint32_t functions, stacks, threads;
} progress;

struct tare__stacks {
    tare__intern *texts; /* equal texts have the same address */
    size_t text_bytes;
    tare__stack_function *functions;
    tare__stack_row *stacks;
    tare__stack_thread *threads;
    size_t function_room, stack_room, thread_room;
    progress known, sealed;
    progress before; /* the last seal */
    tare__index function_index, stack_index, thread_index;
    uint64_t refused;
    uint32_t sample_count;
    tare__stack_sample samples[TARE__STACK_SAMPLES_MAX];
};

tare__stacks *tare__stacks_new(void)
{
    tare__stacks *stacks = calloc(1, sizeof *stacks);
    if (stacks)
        stacks->texts = tare__intern_new();
    if (stacks && stacks->texts)
        return stacks;
    tare__stacks_free(stacks);
    return NULL;
}

void tare__stacks_free(tare__stacks *stacks)
{
    if (!stacks)
        return;
    tare__intern_free(stacks->texts);
    tare__index_free(&stacks->function_index);
    tare__index_free(&stacks->stack_index);
    tare__index_free(&stacks->thread_index);
    free(stacks->functions);
    free(stacks->stacks);
    free(stacks->threads);
    free(stacks);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */
static uint32_t refuse(tare__stacks *stacks)
{
    stacks->refused++;
    return 0;
}

/* The one copy of a text, and its id for hashes. False: there is no space for it. */
static bool keep_text(tare__stacks *stacks, const char **text, uint32_t bytes, uint32_t *id)
{
    const char *given = bytes ? *text : "";
    *id = tare__intern_find(stacks->texts, given, bytes);
    if (*id == TARE__INTERN_NONE) {
        if (bytes > TARE__STACK_TEXTS_MAX - stacks->text_bytes)
            return false;
        *id = tare__intern_add(stacks->texts, given, bytes);
        if (*id == TARE__INTERN_NONE)
            return false;
        stacks->text_bytes += bytes;
    }
    *text = tare__intern_text(stacks->texts, *id, NULL);
    return true;
}

TARE__SAME(is_function, tare__stack_function,
           TARE__EQUAL(name) && TARE__EQUAL(file) && TARE__EQUAL(kind) && TARE__EQUAL(first_line))

uint32_t tare__stacks_function(tare__stacks *stacks, const tare__stack_function *function)
{
    tare__stack_function row = *function;
    uint32_t name, file;
    if (row.name_bytes > TARE__NAME_TEXT_MAX)
        row.name_bytes = TARE__NAME_TEXT_MAX;
    if (row.file_bytes > TARE__NAME_TEXT_MAX) { /* the end of a path is more informative than its beginning */
        row.file += row.file_bytes - TARE__NAME_TEXT_MAX;
        row.file_bytes = TARE__NAME_TEXT_MAX;
    }
    if (!keep_text(stacks, &row.name, row.name_bytes, &name) || !keep_text(stacks, &row.file, row.file_bytes, &file))
        return refuse(stacks);
    uint32_t hash = (uint32_t)tare__hash_mix(tare__hash_mix((uint64_t)name << 32 | file, row.kind), row.first_line);
    uint32_t at = tare__index_find(&stacks->function_index, hash, is_function, stacks->functions, &row);
    if (at != TARE__INDEX_NONE)
        return at + 1;
    uint32_t n = stacks->known.functions;
    if (n >= TARE__STACK_FUNCTIONS_MAX ||
        !tare__array_fit(&stacks->functions, &stacks->function_room, (size_t)n + 1, sizeof row) ||
        !tare__index_add(&stacks->function_index, hash, n))
        return refuse(stacks);
    stacks->functions[n] = row;
    return stacks->known.functions = n + 1;
}

TARE__SAME(is_thread, tare__stack_thread,
           TARE__EQUAL(tid) && TARE__EQUAL(pid) && TARE__EQUAL(start_time) && TARE__EQUAL(name) && TARE__EQUAL(main))

uint32_t tare__stacks_thread(tare__stacks *stacks, const tare__stack_thread *thread)
{
    tare__stack_thread row = *thread;
    uint32_t name;
    if (row.name_bytes > TARE__NAME_TEXT_MAX)
        row.name_bytes = TARE__NAME_TEXT_MAX;
    if (!keep_text(stacks, &row.name, row.name_bytes, &name))
        return refuse(stacks);
    uint64_t who = tare__hash_mix(tare__hash_mix((uint64_t)row.pid, (uint64_t)row.tid), row.start_time);
    uint32_t hash = (uint32_t)tare__hash_mix(who, (uint64_t)name << 1 | row.main);
    uint32_t at = tare__index_find(&stacks->thread_index, hash, is_thread, stacks->threads, &row);
    if (at != TARE__INDEX_NONE)
        return at + 1;
    uint32_t n = stacks->known.threads;
    if (n >= TARE__STACK_THREADS_MAX ||
        !tare__array_fit(&stacks->threads, &stacks->thread_room, (size_t)n + 1, sizeof row) ||
        !tare__index_add(&stacks->thread_index, hash, n))
        return refuse(stacks);
    stacks->threads[n] = row;
    return stacks->known.threads = n + 1;
}

TARE__SAME(is_stack, tare__stack_row, TARE__EQUAL(caller) && TARE__EQUAL(function) && TARE__EQUAL(line))

static uint32_t add_stack(tare__stacks *stacks, const tare__stack_row *row, uint32_t hash)
{
    uint32_t n = stacks->known.stacks;
    if (n >= TARE__STACKS_MAX || row->caller > n || row->function > stacks->known.functions ||
        !tare__array_fit(&stacks->stacks, &stacks->stack_room, (size_t)n + 1, sizeof *row) ||
        !tare__index_add(&stacks->stack_index, hash, n))
        return refuse(stacks);
    stacks->stacks[n] = *row;
    return stacks->known.stacks = n + 1;
}

uint32_t tare__stacks_push(tare__stacks *stacks, uint32_t caller, uint32_t function, uint64_t line)
{
    const tare__stack_row row = {caller, function, line};
    uint32_t hash = (uint32_t)tare__hash_mix(tare__hash_mix(0, (uint64_t)caller << 32 | function), line);
    uint32_t at = tare__index_find(&stacks->stack_index, hash, is_stack, stacks->stacks, &row);
    return TARE__LIKELY(at != TARE__INDEX_NONE) ? at + 1 : add_stack(stacks, &row, hash);
}

uint32_t tare__stacks_count(const tare__stacks *stacks)
{
    return stacks->known.stacks;
}

/* ---- native frames ------------------------------------------------------------------------------------------ */
const tare__stack_function *tare__stacks_function_at(const tare__stacks *stacks, uint32_t number)
{
    return number && number <= stacks->known.functions ? &stacks->functions[number - 1] : NULL;
}

typedef struct native_frame {
    uint32_t object;
    uint64_t offset;
} native_frame;

TARE__ORDER(by_offset, native_frame, TARE__RISING(object) TARE__RISING(offset))

/* Sorted, each once. */
static uint32_t list_native(const tare__stacks *stacks, native_frame *list)
{
    uint32_t n = 0, kept = 0;
    for (uint32_t i = 0; i < stacks->known.stacks; i++) {
        const tare__stack_row *row = &stacks->stacks[i];
        uint32_t kind = row->function ? stacks->functions[row->function - 1].kind : TARE__FRAME_NOTE;
        if (row->line && (kind == TARE__FRAME_NATIVE || kind == TARE__FRAME_KERNEL))
            list[n++] = (native_frame){row->function, row->line};
    }
    if (n)
        qsort(list, n, sizeof *list, by_offset);
    for (uint32_t i = 0; i < n; i++)
        if (!kept || by_offset(&list[i], &list[kept - 1]) != 0)
            list[kept++] = list[i];
    return kept;
}

int tare__stacks_each_native(const tare__stacks *stacks, tare__stacks_native *sink, void *context)
{
    size_t most = (size_t)stacks->known.stacks + 1;
    native_frame *list = malloc(most * sizeof *list);
    uint64_t *offsets = malloc(most * sizeof *offsets);
    uint32_t n = list && offsets ? list_native(stacks, list) : 0;
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && list[end].object == list[first].object; end++)
            offsets[end - first] = list[end].offset;
        sink(context, list[first].object, offsets, end - first);
    }
    int status = list && offsets ? 0 : TARE_E_MEMORY;
    free(list);
    free(offsets);
    return status;
}

/* ---- samples ----------------------------------------------------------------------------------------------- */
bool tare__stacks_sample(tare__stacks *stacks, const tare__stack_sample *sample)
{
    tare__stack_sample *samples = stacks->samples;
    uint32_t at = stacks->sample_count;
    if (at >= TARE__STACK_SAMPLES_MAX)
        return false;
    if (sample->thread == 0 || sample->thread > stacks->known.threads) {
        refuse(stacks);
        return true;
    }
    /* Nearly always in order already. */
    for (; at > 0 && samples[at - 1].ticks > sample->ticks; at--)
        samples[at] = samples[at - 1];
    samples[at] = *sample;
    if (sample->stack > stacks->known.stacks)
        samples[at].stack = refuse(stacks);
    stacks->sample_count++;
    return true;
}

uint32_t tare__stacks_pending(const tare__stacks *stacks)
{
    return stacks->sample_count;
}

uint64_t tare__stacks_refused(const tare__stacks *stacks)
{
    return stacks->refused;
}

/* ---- blocks ------------------------------------------------------------------------------------------------ */
static uint32_t at_most(uint32_t rows)
{
    return rows < TARE__STACK_ROWS_MAX ? rows : TARE__STACK_ROWS_MAX;
}

/* Rows whose texts fit into their columns. */
static uint32_t functions_that_fit(const tare__stack_function *functions, uint32_t n)
{
    size_t names = 0, files = 0;
    for (uint32_t i = 0; i < n; i++) {
        names += functions[i].name_bytes;
        files += functions[i].file_bytes;
        if (names > TARE__STACK_COLUMN_MAX || files > TARE__STACK_COLUMN_MAX)
            return i;
    }
    return n;
}

static uint32_t threads_that_fit(const tare__stack_thread *threads, uint32_t n)
{
    size_t names = 0;
    for (uint32_t i = 0; i < n; i++) {
        names += threads[i].name_bytes;
        if (names > TARE__STACK_COLUMN_MAX)
            return i;
    }
    return n;
}

/* The next block's rows. Stacks wait for the functions that they refer to. */
static tare__stack_part next_part(const tare__stacks *stacks, const progress *done)
{
    const progress *known = &stacks->known;
    tare__stack_part part = {
        .first_function = done->functions + 1,
        .first_stack = done->stacks + 1,
        .first_thread = done->threads + 1,
    };
    if (done->functions < known->functions) {
        part.functions = stacks->functions + done->functions;
        part.function_count = functions_that_fit(part.functions, at_most(known->functions - done->functions));
    }
    if (done->stacks < known->stacks && done->functions + part.function_count == known->functions) {
        part.stacks = stacks->stacks + done->stacks;
        part.stack_count = at_most(known->stacks - done->stacks);
    }
    if (done->threads < known->threads) {
        part.threads = stacks->threads + done->threads;
        part.thread_count = threads_that_fit(part.threads, at_most(known->threads - done->threads));
    }
    return part;
}

static int seal_tables(const tare__stacks *stacks, progress *done, tare__squeezer *squeezer, tare__text *out)
{
    int status = 0;
    while (!status && memcmp(done, &stacks->known, sizeof *done) != 0) {
        tare__stack_part part = next_part(stacks, done);
        status = tare__stack_part_seal(&part, squeezer, out);
        done->functions += part.function_count;
        done->stacks += part.stack_count;
        done->threads += part.thread_count;
    }
    return status;
}

int tare__stacks_seal(tare__stacks *stacks, tare__squeezer *squeezer, tare__text *out)
{
    size_t length = out->length;
    progress done = stacks->sealed;
    int status = seal_tables(stacks, &done, squeezer, out);
    if (!status && stacks->sample_count)
        status = tare__stack_samples_seal(stacks->samples, stacks->sample_count, squeezer, out);
    if (status) {
        if (out->length > length) {
            out->length = length; /* all or nothing */
            out->data[length] = '\0';
        }
        return status;
    }
    stacks->before = stacks->sealed;
    stacks->sealed = done;
    stacks->sample_count = 0;
    return 0;
}

void tare__stacks_unseal(tare__stacks *stacks)
{
    stacks->sealed = stacks->before;
}
