/* inner: a trace's state, shared by the files of this module only.
 * Owned by the thread that opened the trace.
 * Must not know what the records are used for. */
#ifndef TARE_TRACE_INNER_H
#define TARE_TRACE_INNER_H

#include "trace.h"

/* Rows in order of appearance, indexed by the number that the file assigns. */
typedef struct tare__trace_table {
    char *rows;
    size_t row_bytes;
    size_t n, room, limit;
    uint32_t *row_of; /* by number: row + 1; 0: none */
    size_t numbers;
} tare__trace_table;

/* The row of a number, or NULL. */
void *tare__trace_find_row(const tare__trace_table *table, uint64_t number);
/* The same, created (zeroed) if it does not exist. NULL: out of memory, or *refused: too many, or an invalid number. */
void *tare__trace_make_row(tare__trace_table *table, uint64_t number, bool *refused);

/* A stream's row, with data kept in addition to what the file states. */
typedef struct tare__stream_row {
    tare__trace_stream stream; /* first: the row is returned as this type */
    uint64_t aggregates_at;
} tare__stream_row;

#define TARE__SYNCS_MAX 4096u

typedef struct tare__trace_symbol {
    uint32_t object, n;
    uint64_t offset;
    size_t first; /* in symbol_frames */
} tare__trace_symbol;

struct tare__trace {
    int fd;
    uint64_t size; /* when opened; data appended later is ignored */
    unsigned user; /* that it belonged to then */
    char *path;
    tare__squeezer *squeezer;

    /* window: the part of the file in memory */
    uint8_t *buffer;
    size_t buffer_room, buffer_bytes;
    uint64_t buffer_offset;

    /* cursor */
    uint64_t offset;
    uint64_t unverified;   /* start of the payload skipped last without verification; 0: none */
    uint64_t wasted_bytes; /* checksummed for payloads that were damaged, with no block after them */
    bool scanning;         /* prescan in progress */
    bool prescanned;       /* tables are complete */
    tare__trace_damage damage;
    tare__trace_damage meta_damage; /* refused while filling the tables in prescan */
    bool header_damaged;
    uint64_t first_ticks; /* earliest event seen; UINT64_MAX: none */

    /* tables */
    tare__trace_run run;
    tare__trace_end end;
    tare__trace_table processes, streams, names, series, facts;
    tare__trace_table functions, stacks, threads;
    uint32_t function_largest, stack_largest, thread_largest; /* numbers */
    tare__trace_symbol *symbols;
    tare__stack_symbol_frame *symbol_frames;
    size_t n_symbols, symbol_room, n_symbol_frames, symbol_frame_room;
    tare__index symbol_index;
    tare__intern *stack_texts;
    size_t stack_text_bytes;
    tare__stack_sample *stack_samples; /* of one block; allocated at first use */
    tare__intern *fact_keys; /* stream, key, file, text and line; its id + 1 is the row's number */
    tare__arena *name_texts;
    size_t name_text_bytes;
    tare__intern *files;
    tare__intern *series_texts;
    size_t series_text_bytes;

    tare__clock_sync *syncs;
    uint32_t n_syncs;
    uint64_t syncs_seen, sync_stride; /* every nth sync is kept */
    bool last_sync_stays;
};

/* ---- window (open.c) ----------------------------------------------------------------------------- */
/* Makes *got of `bytes` bytes at `offset` readable at *data; fewer only at the end of the file. */
int tare__trace_window(tare__trace *trace, uint64_t offset, size_t bytes, const uint8_t **data, size_t *got,
                       tare__error *error);

/* ---- tables (tables.c, texts.c, stacks.c, clock.c) -------------------------------------------------------- */
/* Processes a block that fills a table; ignores others. 0, TARE_E_INPUT if the codec rejects it, TARE_E_MEMORY. */
int tare__trace_digest(tare__trace *trace, const tare__trace_block *block);
bool tare__trace_is_meta(unsigned kind); /* a block that prescan reads */
void tare__trace_init_tables(tare__trace *trace);
void tare__trace_free_tables(tare__trace *trace);
#define TARE__TRACE_TEXT_MAX ((size_t)4096) /* of one field or text; longer ones are truncated */
int tare__trace_take_names(tare__trace *trace, const tare__trace_block *block);
int tare__trace_take_series(tare__trace *trace, const tare__trace_block *block);
int tare__trace_take_facts(tare__trace *trace, const tare__trace_block *block);
int tare__trace_take_stacks(tare__trace *trace, const tare__trace_block *block);
int tare__trace_take_symbols(tare__trace *trace, const tare__trace_block *block);
int tare__trace_add_syncs(tare__trace *trace, const tare__trace_block *block);

#endif
