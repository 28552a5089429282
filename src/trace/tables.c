/* tables: the content of the blocks RUN, NAMES, PROCESS, STREAM, SERIES, FACTS, STACKS and END, digested as they are
 * read.
 * Owned by the thread that opened the trace. A later block replaces an earlier one.
 * Must not know events. */
#include <stdlib.h>
#include <string.h>

#include "inner.h"
#include "tare.h"

#define ROWS_MAX ((size_t)100000) /* processes, streams */
#define TEXT_MAX TARE__TRACE_TEXT_MAX
#define SERIES_MAX ((size_t)1 << 18)
#define FACTS_MAX ((size_t)1 << 16)

/* ---- rows by number ------------------------------------------------------------------------------ */
void *tare__trace_find_row(const tare__trace_table *table, uint64_t number)
{
    if (number >= table->numbers || !table->row_of[number])
        return NULL;
    return table->rows + (table->row_of[number] - 1) * table->row_bytes;
}

void *tare__trace_make_row(tare__trace_table *table, uint64_t number, bool *refused)
{
    void *row = tare__trace_find_row(table, number);
    *refused = !row && (number == 0 || number > TARE__TRACE_IDS_MAX || table->n >= table->limit);
    if (row || *refused ||
        !tare__array_fit_zeroed(&table->row_of, &table->numbers, (size_t)number + 1, sizeof *table->row_of) ||
        !tare__array_fit(&table->rows, &table->room, table->n + 1, table->row_bytes))
        return row;
    row = table->rows + table->n * table->row_bytes;
    memset(row, 0, table->row_bytes);
    table->row_of[number] = (uint32_t)++table->n;
    return row;
}

void tare__trace_init_tables(tare__trace *trace)
{
    trace->processes = (tare__trace_table){.row_bytes = sizeof(tare__trace_process), .limit = ROWS_MAX};
    trace->streams = (tare__trace_table){.row_bytes = sizeof(tare__stream_row), .limit = ROWS_MAX};
    trace->names = (tare__trace_table){.row_bytes = sizeof(tare__trace_name), .limit = TARE__TRACE_IDS_MAX};
    trace->series = (tare__trace_table){.row_bytes = sizeof(tare__trace_series), .limit = SERIES_MAX};
    trace->facts = (tare__trace_table){.row_bytes = sizeof(tare__trace_fact), .limit = FACTS_MAX};
    trace->functions =
        (tare__trace_table){.row_bytes = sizeof(tare__trace_function), .limit = TARE__STACK_FUNCTIONS_MAX};
    trace->stacks = (tare__trace_table){.row_bytes = sizeof(tare__trace_stack), .limit = TARE__STACKS_MAX};
    trace->threads = (tare__trace_table){.row_bytes = sizeof(tare__trace_thread), .limit = TARE__STACK_THREADS_MAX};
    trace->first_ticks = UINT64_MAX;
    trace->sync_stride = 1;
}

/* ---- fields into structs ------------------------------------------------------------------------- */
typedef enum field_type { NUMBER64, NUMBER32, FLAG, TEXT, ARGUMENTS, ID } field_type;

/* Destination of a field. ARGUMENTS is text followed by its size_t length. */
typedef struct field_rule {
    uint32_t tag;
    field_type type;
    size_t at;
    size_t present_at; /* offset of a bool set with it; 0: none */
} field_rule;

#define AT(member) offsetof(RECORD, member)

#define RECORD tare__trace_run
static const field_rule run_rules[] = {
    {TARE__FIELD_COMMAND, ARGUMENTS, AT(arguments), 0},
    {TARE__FIELD_SESSION_ID, TEXT, AT(session_id), 0},
    {TARE__FIELD_HOST, TEXT, AT(host), 0},
    {TARE__FIELD_WRITER, TEXT, AT(writer), 0},
    {TARE__FIELD_FOLDER, TEXT, AT(folder), 0},
    {TARE__FIELD_CPU_MODEL, TEXT, AT(cpu_model), 0},
    {TARE__FIELD_DIRECTORY, TEXT, AT(directory), 0},
    {TARE__FIELD_START_REALTIME, NUMBER64, AT(start_realtime_ns), 0},
    {TARE__FIELD_START_TICKS, NUMBER64, AT(start_ticks), 0},
    {TARE__FIELD_CLOCK_KIND, NUMBER32, AT(clock), 0},
    {TARE__FIELD_CPUS, NUMBER32, AT(cpus), 0},
    {TARE__FIELD_KERNEL, TEXT, AT(kernel), 0},
    {TARE__FIELD_SYSTEM, TEXT, AT(system), 0},
    {TARE__FIELD_REVISION, TEXT, AT(revision), 0},
    {TARE__FIELD_GPUS, TEXT, AT(gpus), 0},
    {TARE__FIELD_MEMORY, NUMBER64, AT(memory_bytes), 0},
    {TARE__FIELD_INTERVAL, NUMBER64, AT(interval_ns), 0},
    {TARE__FIELD_ATTACHED, NUMBER64, AT(attached), 0},
    {TARE__FIELD_CARBON, NUMBER64, AT(carbon), AT(has_carbon)},
    {TARE__FIELD_PEAKS, TEXT, AT(peaks), 0},
    {0, 0, 0, 0},
};
#undef RECORD

#define RECORD tare__trace_end
static const field_rule end_rules[] = {
    {TARE__FIELD_END_REALTIME, NUMBER64, AT(realtime_ns), 0},
    {TARE__FIELD_END_TICKS, NUMBER64, AT(ticks), 0},
    {TARE__FIELD_STATUS, NUMBER64, AT(status), AT(has_status)},
    {TARE__FIELD_SIGNAL, NUMBER32, AT(signal), 0},
    {TARE__FIELD_COLLECTOR_CPU, NUMBER64, AT(collector_cpu_ns), AT(has_collector_cpu)},
    {TARE__FIELD_ROTATED_SPANS, NUMBER64, AT(rotated_spans), 0},
    {TARE__FIELD_ROTATED_BEFORE, NUMBER64, AT(rotated_before), 0},
    {TARE__FIELD_SALVAGED, FLAG, AT(salvaged), 0},
    {TARE__FIELD_REFUSED_SPACE, NUMBER64, AT(refused_space), 0},
    {TARE__FIELD_REFUSED_ABI, NUMBER64, AT(refused_abi), 0},
    {TARE__FIELD_REFUSED_SYSTEM, NUMBER64, AT(refused_system), 0},
    {TARE__FIELD_REFUSED_COPY, NUMBER64, AT(refused_copy), 0},
    {TARE__FIELD_WRITE_ERROR, TEXT, AT(write_error), 0},
    {TARE__FIELD_NOTES, TEXT, AT(notes), 0},
    {TARE__FIELD_LEFT_RUNNING, NUMBER64, AT(left_running), 0},
    {TARE__FIELD_SAMPLER_CPU, NUMBER64, AT(sampler_cpu_ns), AT(has_sampler_cpu)},
    {TARE__FIELD_STRETCHED, NUMBER64, AT(stretched_ns), 0},
    {TARE__FIELD_CHILD_USER, NUMBER64, AT(child_user_ns), AT(has_child)},
    {TARE__FIELD_CHILD_SYSTEM, NUMBER64, AT(child_system_ns), 0},
    {TARE__FIELD_CHILD_PEAK, NUMBER64, AT(child_peak_bytes), 0},
    {TARE__FIELD_OOM_KILLED, FLAG, AT(oom_killed), 0},
    {TARE__FIELD_UNREAD_RINGS, NUMBER64, AT(unread_rings), 0},
    {TARE__FIELD_FOLDER_GONE, FLAG, AT(folder_gone), 0},
    {0, 0, 0, 0},
};
#undef RECORD

#define RECORD tare__trace_process
static const field_rule process_rules[] = {
    {TARE__FIELD_PROCESS, NUMBER32, AT(number), 0},
    {TARE__FIELD_PROCESS_ID, ID, AT(id), AT(joined)},
    {TARE__FIELD_PID, NUMBER64, AT(pid), 0},
    {TARE__FIELD_PARENT_PID, NUMBER64, AT(parent_pid), 0},
    {TARE__FIELD_PARENT_ID, ID, AT(parent), 0},
    {TARE__FIELD_PROCESS_COMMAND, ARGUMENTS, AT(arguments), 0},
    {TARE__FIELD_JOINED_TICKS, NUMBER64, AT(joined_ticks), 0},
    {TARE__FIELD_LEFT_TICKS, NUMBER64, AT(left_ticks), 0},
    {TARE__FIELD_NOT_JOINED, TEXT, AT(not_joined), 0},
    {TARE__FIELD_COST_PAIR, NUMBER32, AT(cost.pair), AT(has_cost)},
    {TARE__FIELD_COST_INNER, NUMBER32, AT(cost.inner), 0},
    {TARE__FIELD_COST_NEXT, NUMBER32, AT(cost.next), 0},
    {TARE__FIELD_COST_AGGREGATE, NUMBER32, AT(cost.aggregate), 0},
    {TARE__FIELD_UNATTRIBUTED_SPANS, NUMBER64, AT(unattributed_spans), 0},
    {TARE__FIELD_UNATTRIBUTED_OTHERS, NUMBER64, AT(unattributed_others), 0},
    {TARE__FIELD_NAMES_REFUSED, NUMBER64, AT(names_refused), 0},
    {TARE__FIELD_INNER_PID, NUMBER64, AT(inner_pid), 0},
    {TARE__FIELD_UNREADABLE, TEXT, AT(unreadable), 0},
    {TARE__FIELD_EXIT_STATUS, NUMBER64, AT(exit_status), AT(has_exit_status)},
    {TARE__FIELD_RANK, NUMBER64, AT(rank), AT(has_rank)},
    {TARE__FIELD_IMPORTS, TEXT, AT(imports), 0},
    {0, 0, 0, 0},
};
#undef RECORD

#define RECORD tare__trace_stream
static const field_rule stream_rules[] = {
    {TARE__FIELD_STREAM, NUMBER32, AT(id), 0},
    {TARE__FIELD_STREAM_PROCESS, NUMBER32, AT(process), 0},
    {TARE__FIELD_TID, NUMBER64, AT(tid), 0},
    {TARE__FIELD_THREAD_NAME, TEXT, AT(name), 0},
    {TARE__FIELD_DROPPED_SPANS, NUMBER64, AT(dropped_spans), 0},
    {TARE__FIELD_DROPPED_OTHERS, NUMBER64, AT(dropped_others), 0},
    {TARE__FIELD_SKIPPED_SLOTS, NUMBER64, AT(skipped_slots), 0},
    {0, 0, 0, 0},
};
#undef RECORD

static void free_texts(char *record, const field_rule *rules)
{
    for (const field_rule *rule = rules; rule->tag; rule++)
        if (rule->type == TEXT || rule->type == ARGUMENTS) {
            free(*(char **)(record + rule->at));
            *(char **)(record + rule->at) = NULL;
        }
}

static int set_text(char *record, const field_rule *rule, const uint8_t *data, size_t bytes)
{
    char **text = (char **)(record + rule->at);
    if (bytes > TEXT_MAX)
        bytes = TEXT_MAX;
    free(*text); /* if a field is given twice */
    *text = malloc(bytes + 1);
    if (!*text)
        return TARE_E_MEMORY;
    memcpy(*text, data, bytes);
    (*text)[bytes] = '\0';
    if (rule->type == ARGUMENTS)
        *(size_t *)(record + rule->at + sizeof(char *)) = bytes;
    return 0;
}

static int set_field(char *record, const field_rule *rule, const uint8_t *data, size_t bytes)
{
    if (rule->type == TEXT || rule->type == ARGUMENTS)
        return set_text(record, rule, data, bytes);
    uint64_t number = rule->type == ID ? 0 : tare__field_value(data, bytes);
    uint32_t narrow = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    bool flag = number != 0;
    if (rule->type == NUMBER64)
        memcpy(record + rule->at, &number, sizeof number);
    else if (rule->type == NUMBER32)
        memcpy(record + rule->at, &narrow, sizeof narrow);
    else if (rule->type == FLAG)
        memcpy(record + rule->at, &flag, sizeof flag);
    else if (bytes == TARE__ID_BYTES)
        memcpy(record + rule->at, data, TARE__ID_BYTES);
    else
        return TARE_E_INPUT;
    if (rule->present_at)
        *(bool *)(record + rule->present_at) = true;
    return 0;
}

/* Fills a zeroed record; on a failure the record is empty again. */
static int read_fields(const tare__trace_block *block, const field_rule *rules, char *record)
{
    tare__reader reader = {block->payload, block->payload + block->header.payload_bytes, false};
    uint32_t tag;
    const uint8_t *data;
    size_t bytes;
    int status = 0;
    while (!status && tare__field_next(&reader, &tag, &data, &bytes))
        for (const field_rule *rule = rules; rule->tag && !status; rule++)
            if (rule->tag == tag)
                status = set_field(record, rule, data, bytes);
    if (!status && reader.failed)
        status = TARE_E_INPUT;
    if (status)
        free_texts(record, rules);
    return status;
}

/* ---- one digest function for each kind -------------------------------------------------------------- */
static int digest_run(tare__trace *trace, const tare__trace_block *block)
{
    tare__trace_run run = {.present = true};
    int status = read_fields(block, run_rules, (char *)&run);
    if (status)
        return status;
    free_texts((char *)&trace->run, run_rules);
    trace->run = run;
    return 0;
}

static int digest_end(tare__trace *trace, const tare__trace_block *block)
{
    tare__trace_end end = {.present = true, .offset = block->offset};
    int status = read_fields(block, end_rules, (char *)&end);
    if (status)
        return status;
    free_texts((char *)&trace->end, end_rules);
    trace->end = end;
    return 0;
}

/* A full table is not damage: the file has more rows than are shown. */
static int no_row(const tare__trace_table *table, bool refused)
{
    if (refused && table->n >= table->limit)
        return 0;
    return refused ? TARE_E_INPUT : TARE_E_MEMORY;
}

static int digest_process(tare__trace *trace, const tare__trace_block *block)
{
    tare__trace_process process = {0};
    bool refused;
    int status = read_fields(block, process_rules, (char *)&process);
    if (status)
        return status;
    tare__trace_process *row = tare__trace_make_row(&trace->processes, process.number, &refused);
    free_texts(row ? (char *)row : (char *)&process, process_rules);
    if (!row)
        return no_row(&trace->processes, refused);
    *row = process;
    return 0;
}

static int digest_stream(tare__trace *trace, const tare__trace_block *block)
{
    tare__trace_stream stream = {0};
    bool refused;
    int status = read_fields(block, stream_rules, (char *)&stream);
    if (status)
        return status;
    tare__stream_row *row = tare__trace_make_row(&trace->streams, stream.id, &refused);
    free_texts(row ? (char *)&row->stream : (char *)&stream, stream_rules);
    if (!row)
        return no_row(&trace->streams, refused);
    row->stream = stream;
    return 0;
}

/* ---- aggregates: only the offset of the newest readable block ----------------------------------------- */
static void drop_aggregate(void *context, const tare__aggregate *aggregate)
{
    (void)context;
    (void)aggregate;
}

static int digest_aggregates(tare__trace *trace, const tare__trace_block *block)
{
    bool refused;
    int status = tare__aggregates_read(&block->header, block->payload, trace->squeezer, drop_aggregate, NULL);
    if (status)
        return status;
    tare__stream_row *row = tare__trace_make_row(&trace->streams, block->header.stream, &refused);
    if (!row)
        return no_row(&trace->streams, refused);
    row->stream.id = block->header.stream;
    row->aggregates_at = block->offset;
    return 0;
}

/* ---- by kind ------------------------------------------------------------------------------------- */
typedef int digest_function(tare__trace *trace, const tare__trace_block *block);

static digest_function *const digest_of[] = {
    [TARE__BLOCK_RUN] = digest_run,         [TARE__BLOCK_NAMES] = tare__trace_take_names,
    [TARE__BLOCK_PROCESS] = digest_process, [TARE__BLOCK_STREAM] = digest_stream,
    [TARE__BLOCK_CLOCK] = tare__trace_add_syncs, [TARE__BLOCK_AGGREGATES] = digest_aggregates,
    [TARE__BLOCK_END] = digest_end,         [TARE__BLOCK_SERIES] = tare__trace_take_series,
    [TARE__BLOCK_FACTS] = tare__trace_take_facts, [TARE__BLOCK_STACKS] = tare__trace_take_stacks,
    [TARE__BLOCK_SYMBOLS] = tare__trace_take_symbols,
};

bool tare__trace_is_meta(unsigned kind)
{
    return kind < TARE__COUNT_OF(digest_of) && digest_of[kind];
}

int tare__trace_digest(tare__trace *trace, const tare__trace_block *block)
{
    unsigned kind = block->header.kind;
    return tare__trace_is_meta(kind) ? digest_of[kind](trace, block) : 0;
}

void tare__trace_free_tables(tare__trace *trace)
{
    free_texts((char *)&trace->run, run_rules);
    free_texts((char *)&trace->end, end_rules);
    for (size_t i = 0; i < trace->processes.n; i++)
        free_texts(trace->processes.rows + i * trace->processes.row_bytes, process_rules);
    for (size_t i = 0; i < trace->streams.n; i++)
        free_texts(trace->streams.rows + i * trace->streams.row_bytes, stream_rules);
    tare__trace_table *tables[] = {&trace->processes, &trace->streams, &trace->names, &trace->series,
                                   &trace->facts,     &trace->functions, &trace->stacks, &trace->threads};
    for (size_t i = 0; i < TARE__COUNT_OF(tables); i++) {
        free(tables[i]->rows);
        free(tables[i]->row_of);
    }
    tare__index_free(&trace->symbol_index);
    free(trace->symbols);
    free(trace->symbol_frames);
}

/* ---- access -------------------------------------------------------------------------------------- */
const tare__trace_run *tare__trace_run_of(const tare__trace *trace)
{
    return &trace->run;
}

const tare__trace_end *tare__trace_end_of(const tare__trace *trace)
{
    return &trace->end;
}

const tare__trace_process *tare__trace_processes(const tare__trace *trace, size_t *n)
{
    *n = trace->processes.n;
    return (const tare__trace_process *)(const void *)trace->processes.rows;
}

size_t tare__trace_stream_count(const tare__trace *trace)
{
    return trace->streams.n;
}

const tare__trace_stream *tare__trace_stream_row(const tare__trace *trace, size_t row)
{
    const tare__stream_row *rows = (const tare__stream_row *)(const void *)trace->streams.rows;
    return row < trace->streams.n ? &rows[row].stream : NULL;
}

const tare__trace_name *tare__trace_names(const tare__trace *trace, size_t *n)
{
    *n = trace->names.n;
    return (const tare__trace_name *)(const void *)trace->names.rows;
}

const tare__trace_series *tare__trace_series_rows(const tare__trace *trace, size_t *n)
{
    *n = trace->series.n;
    return (const tare__trace_series *)(const void *)trace->series.rows;
}

const tare__trace_series *tare__trace_series_at(const tare__trace *trace, uint32_t id)
{
    return tare__trace_find_row(&trace->series, id);
}

const tare__trace_process *tare__trace_process_at(const tare__trace *trace, uint32_t number)
{
    return tare__trace_find_row(&trace->processes, number);
}

const tare__trace_stream *tare__trace_stream_at(const tare__trace *trace, uint32_t id)
{
    const tare__stream_row *row = tare__trace_find_row(&trace->streams, id);
    return row ? &row->stream : NULL;
}

const tare__trace_name *tare__trace_name_at(const tare__trace *trace, uint32_t id)
{
    return tare__trace_find_row(&trace->names, id);
}

uint64_t tare__trace_aggregates_at(const tare__trace *trace, uint32_t stream)
{
    const tare__stream_row *row = tare__trace_find_row(&trace->streams, stream);
    return row ? row->aggregates_at : 0;
}
