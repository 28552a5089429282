/* inner: a trace's state, shared by the files of this room only.
 * Owned by the thread that opened the trace.
 * Must not know what is made of the records. */
#ifndef TARE_TRACE_INNER_H
#define TARE_TRACE_INNER_H

#include "trace.h"

/* Rows in order of appearance, found by a number the file gives them. */
typedef struct tare__trace_table {
    char *rows;
    size_t row_bytes;
    size_t n, room, limit;
    uint32_t *row_of; /* by number: row + 1; 0: none */
    size_t numbers;
} tare__trace_table;

/* The row of a number, or NULL. */
void *tare__trace_find_row(const tare__trace_table *table, uint64_t number);
/* The same, made (zeroed) when it is not there. NULL: no memory, or *refused: too many or a number that
 * makes no sense. */
void *tare__trace_make_row(tare__trace_table *table, uint64_t number, bool *refused);

/* A stream's row, and what is kept beside what the file says of it. */
typedef struct tare__stream_row {
    tare__trace_stream stream; /* first: the row is handed out as this */
    uint64_t aggregates_at;
} tare__stream_row;

#define TARE__SYNCS_MAX 4096u

struct tare__trace {
    int fd;
    uint64_t size; /* when opened; what is appended later is not seen */
    char *path;
    tare__squeezer *squeezer;

    /* window: the part of the file that is in memory */
    uint8_t *buffer;
    size_t buffer_room, buffer_bytes;
    uint64_t buffer_offset;

    /* cursor */
    uint64_t offset;
    uint64_t unverified;   /* the payload stepped over last, not looked at, starts here; 0: none */
    uint64_t wasted_bytes; /* summed up for payloads that turned out damaged, with no block behind them */
    bool scanning;         /* prescan under way */
    bool prescanned;       /* tables are complete */
    tare__trace_damage damage;
    tare__trace_damage meta_damage; /* refused while filling the tables in prescan */
    bool header_damaged;
    uint64_t first_ticks; /* earliest event seen; UINT64_MAX: none */

    /* tables */
    tare__trace_run run;
    tare__trace_end end;
    tare__trace_table processes, streams, names, series, facts;
    tare__intern *fact_keys; /* stream, key, file, text and line; its id + 1 is the row's number */
    tare__arena *name_texts;
    size_t name_text_bytes;
    tare__intern *files;
    tare__intern *series_texts;
    size_t series_text_bytes;

    tare__clock_sync *syncs;
    uint32_t n_syncs;
    uint64_t syncs_seen, sync_stride; /* every so many is kept */
    bool last_sync_stays;
};

/* ---- window (open.c) ----------------------------------------------------------------------------- */
/* Makes *got of `bytes` bytes at `offset` readable at *data; less only where the file ends. */
int tare__trace_window(tare__trace *trace, uint64_t offset, size_t bytes, const uint8_t **data, size_t *got,
                       tare__error *error);

/* ---- tables (tables.c, texts.c, clock.c) ------------------------------------------------------------------ */
/* Takes in a block that fills a table; others are left alone. 0, TARE_E_INPUT when the codec refuses it,
 * TARE_E_MEMORY. */
int tare__trace_digest(tare__trace *trace, const tare__trace_block *block);
bool tare__trace_is_meta(unsigned kind); /* a block that prescan reads */
void tare__trace_init_tables(tare__trace *trace);
void tare__trace_free_tables(tare__trace *trace);
#define TARE__TRACE_TEXT_MAX ((size_t)4096) /* of one field or text; more is cut */
int tare__trace_take_names(tare__trace *trace, const tare__trace_block *block);
int tare__trace_take_series(tare__trace *trace, const tare__trace_block *block);
int tare__trace_take_facts(tare__trace *trace, const tare__trace_block *block);
int tare__trace_add_syncs(tare__trace *trace, const tare__trace_block *block);

#endif
