/* trace: opens a .tare file, validates it, recovers what is readable in a damaged one, and returns its blocks in file
 * order.
 * A trace belongs to one thread; its memory does not grow with the file's length.
 * Must not know rings, targets, or what the records are used for. */
#ifndef TARE_TRACE_H
#define TARE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "format/format.h"

typedef struct tare__trace tare__trace;

/* Opens and validates the head of the file. 0; TARE_E_INPUT (missing, not a trace, empty, damaged beyond use),
 * TARE_E_VERSION, TARE_E_PERMISSION, TARE_E_SYSTEM or TARE_E_MEMORY with a message. */
int tare__trace_open(const char *path, tare__trace **trace, tare__error *error);
/* The same for a file that is already open, even if its name now refers to another file; the caller keeps the
 * descriptor. */
int tare__trace_open_at(int fd, const char *path, tare__trace **trace, tare__error *error);
void tare__trace_close(tare__trace *trace); /* NULL is allowed */
const char *tare__trace_path(const tare__trace *trace);
/* Of the file that was opened, even if its name now refers to another one. */
unsigned tare__trace_user(const tare__trace *trace);

/* ---- cursor -------------------------------------------------------------------------------------- */
typedef struct tare__trace_block {
    tare__block_header header;
    const uint8_t *payload; /* checksum verified; valid until the next call */
    uint64_t offset;        /* of the header in the file */
} tare__trace_block;

/* The next block of a known kind and coding, in file order: 1, 0 at the end, TARE_E_SYSTEM or TARE_E_MEMORY with a
 * message. Damage is skipped and reported by tare__trace_damage. The content of the blocks RUN, NAMES, PROCESS, STREAM,
 * CLOCK, SERIES, FACTS, STACKS and END is in the tables below before they are returned. */
int tare__trace_next(tare__trace *trace, tare__trace_block *block, tare__error *error);

/* Reads all headers, and the payloads that fill the tables; seeks over events. Afterwards the tables are those of the
 * whole file and the cursor is at the start. A second call has no effect.
 * 0 or as tare__trace_next. */
int tare__trace_prescan(tare__trace *trace, tare__error *error);
void tare__trace_rewind(tare__trace *trace); /* the damage report is reset; tables stay */

/* Counts a payload that has a valid checksum but is rejected by its codec among the damaged blocks. */
void tare__trace_refuse(tare__trace *trace, const tare__trace_block *block);

/* ---- damage: in what the cursor has read since open or rewind ------------------------------------- */
typedef struct tare__trace_damage {
    uint64_t blocks;       /* damaged blocks, or runs of bytes in which no block starts */
    uint64_t bytes;        /* skipped because of it */
    uint64_t first_offset; /* of the first damage; meaningful when blocks > 0 */
    uint64_t spans;        /* in damaged blocks with valid headers */
    uint64_t headless;     /* of `blocks`: those without a valid header, so that the number of their spans is unknown */
    bool file_header;      /* the first 16 bytes are damaged (counted in neither) */
    bool torn;             /* the file ends inside a block */
    uint64_t torn_offset;  /* where that block starts */
    uint64_t unknown;      /* blocks of unknown kind or coding, skipped */
    uint64_t last_ticks;   /* newest event time in a valid header; 0: none */
} tare__trace_damage;
const tare__trace_damage *tare__trace_damage_of(const tare__trace *trace);

/* ---- tables: digested as the blocks are read; complete after prescan or at the end ------------------------
 * Strings are NUL terminated and valid until close; NULL if the file has none. */
typedef struct tare__trace_run {
    bool present;
    const char *session_id; /* TARE__ID_BYTES random bytes, or NULL */
    const char *arguments;     /* each terminated by NUL */
    size_t arguments_bytes;
    const char *host, *writer, *folder, *cpu_model, *directory;
    uint64_t start_realtime_ns; /* 0: not known */
    uint64_t start_ticks;
    uint32_t clock; /* tare__clock_kind; 0: not known */
    uint32_t cpus;
    const char *kernel, *system, *revision, *gpus;
    uint64_t memory_bytes; /* of the machine; 0: not known */
    uint64_t interval_ns;  /* sampling interval as requested; 0: no sampling */
    uint64_t attached;     /* pid; 0: the program was launched */
    bool has_carbon;
    uint64_t carbon; /* milligrams of CO2 per kilowatt-hour */
    const char *peaks; /* of the machine, as tare__peaks_read accepts them; NULL: not measured */
} tare__trace_run;

typedef struct tare__trace_end {
    bool present; /* false: the file is unfinished */
    uint64_t offset; /* of that block */
    bool has_status, salvaged;
    int64_t status;
    uint32_t signal;
    uint64_t realtime_ns, ticks; /* 0: not known */
    bool has_collector_cpu;
    uint64_t collector_cpu_ns;
    uint64_t rotated_spans, rotated_before; /* ticks; 0: nothing was removed by rotation */
    uint64_t refused_space, refused_abi, refused_system, refused_copy;
    uint64_t left_running;
    bool folder_gone; /* the session folder was removed during recording */
    uint64_t unread_rings; /* rings of processes that could not be read when the file was finished */
    const char *write_error;
    const char *notes; /* lines; NULL: none */
    bool has_sampler_cpu, has_child, oom_killed;
    uint64_t sampler_cpu_ns, stretched_ns;
    uint64_t child_user_ns, child_system_ns, child_peak_bytes;
} tare__trace_end;

typedef struct tare__trace_process {
    uint32_t number;
    bool joined; /* has a process id */
    bool has_cost, has_exit_status, has_rank;
    uint8_t id[TARE__ID_BYTES], parent[TARE__ID_BYTES];
    int64_t pid, parent_pid, inner_pid; /* 0: not known */
    const char *arguments;              /* each terminated by NUL */
    size_t arguments_bytes;
    uint64_t joined_ticks, left_ticks; /* 0: not known */
    const char *not_joined, *unreadable;
    const char *imports; /* lines, as in TARE__FIELD_IMPORTS; NULL: not known */
    tare__own_cost cost; /* 1/256 ticks */
    uint64_t unattributed_spans, unattributed_others, names_refused;
    int64_t exit_status; /* as from wait() */
    uint64_t rank; /* of a distributed job */
} tare__trace_process;

typedef struct tare__trace_stream {
    uint32_t id;
    uint32_t process; /* its number; 0: not known */
    int64_t tid;
    const char *name;
    uint64_t dropped_spans, dropped_others, skipped_slots;
} tare__trace_stream;

typedef struct tare__trace_name {
    const char *text;
    const char *file; /* NULL: not known */
    uint32_t text_bytes;
    uint32_t kind; /* tare_kind, or TARE__NAME_TRACK + tare_track_kind */
    uint32_t line;
    uint32_t id;
} tare__trace_name;

typedef struct tare__trace_series {
    uint32_t id;
    uint32_t unit, kind, subject; /* tare__unit_kind, tare__metric_kind, tare__subject_kind; others are unknown */
    uint64_t key, owner;
    const char *metric, *label; /* NUL terminated; the label may be "" */
    const char *absent;         /* reason; NULL: not reported as absent */
} tare__trace_series;

/* A fact, with all reports of it by one stream: key, file and text are names (tare__trace_fact_text). */
typedef struct tare__trace_fact {
    uint32_t stream, key, file, text, line; /* 0: none */
    uint64_t count;
    uint64_t first_ticks, last_ticks;
    double first, last, sum, min, max; /* of the values; NaN: none */
} tare__trace_fact;

/* Sampled stacks: numbers from 1, as in the file. */
typedef struct tare__trace_function {
    uint32_t kind; /* tare__frame_kind; others are unknown */
    uint32_t first_line;
    const char *name, *file; /* NUL terminated; the file may be "" */
} tare__trace_function;

typedef struct tare__trace_stack {
    uint32_t caller;   /* a smaller number, or 0: none */
    uint32_t function; /* 0: not in the file (a damaged block) */
    uint64_t line;     /* offset in the object for native frames */
} tare__trace_stack;

typedef struct tare__trace_thread {
    int64_t pid, tid;
    uint64_t start_time;
    const char *name;
    bool main;
} tare__trace_thread;

const tare__trace_run *tare__trace_run_of(const tare__trace *trace);
const tare__trace_end *tare__trace_end_of(const tare__trace *trace);
/* In order of appearance. The pointer is valid until the next call of next or prescan. */
const tare__trace_process *tare__trace_processes(const tare__trace *trace, size_t *n);
size_t tare__trace_stream_count(const tare__trace *trace);
const tare__trace_stream *tare__trace_stream_row(const tare__trace *trace, size_t row);
const tare__trace_name *tare__trace_names(const tare__trace *trace, size_t *n);
const tare__trace_series *tare__trace_series_rows(const tare__trace *trace, size_t *n);
const tare__trace_series *tare__trace_series_at(const tare__trace *trace, uint32_t id);
const tare__trace_fact *tare__trace_facts(const tare__trace *trace, size_t *n);
const char *tare__trace_fact_text(const tare__trace *trace, uint32_t id); /* NULL: none, or not the text of a fact */
bool tare__trace_fact_is(const tare__trace *trace, const tare__trace_fact *fact, const char *key);
/* NULL: no such number, or its block is damaged. `n`: the largest number. */
const tare__trace_function *tare__trace_function_at(const tare__trace *trace, uint32_t number);
const tare__trace_stack *tare__trace_stack_at(const tare__trace *trace, uint32_t number);
const tare__trace_thread *tare__trace_thread_at(const tare__trace *trace, uint32_t number);
uint32_t tare__trace_function_count(const tare__trace *trace);
uint32_t tare__trace_stack_count(const tare__trace *trace);
uint32_t tare__trace_thread_count(const tare__trace *trace);
/* The functions at an offset of an object (the number of a native function), from the outermost on: *n of them, valid
 * until the next block is read. NULL: not symbolized. */
const tare__stack_symbol_frame *tare__trace_symbol_at(const tare__trace *trace, uint32_t object, uint64_t offset,
                                                      uint32_t *n);
/* The samples of a STACK_SAMPLES block, valid until the next call; numbers without a row in the tables are set to 0.
 * 0, TARE_E_INPUT if the codec rejects it, or TARE_E_MEMORY. */
int tare__trace_stack_samples(tare__trace *trace, const tare__trace_block *block, const tare__stack_sample **samples,
                              uint32_t *n);
/* By number or id; NULL if not recorded in the file. */
const tare__trace_process *tare__trace_process_at(const tare__trace *trace, uint32_t number);
const tare__trace_stream *tare__trace_stream_at(const tare__trace *trace, uint32_t id);
const tare__trace_name *tare__trace_name_at(const tare__trace *trace, uint32_t id);
/* Offset of the newest readable AGGREGATES block of a stream, the one that counts; 0: none. After prescan. */
uint64_t tare__trace_aggregates_at(const tare__trace *trace, uint32_t stream);

/* Ids above this are treated as damage: a few bytes must not make a table grow without limit. */
#define TARE__TRACE_IDS_MAX (1u << 20)

/* ---- clock --------------------------------------------------------------------------------------- */
/* Nanoseconds since the start of the run; negative before it. Piecewise linear between syncs. */
double tare__trace_ns(const tare__trace *trace, uint64_t ticks);
/* Nanoseconds a tick, on average over the run: for durations and sums. */
double tare__trace_tick_ns(const tare__trace *trace);
bool tare__trace_clock_known(const tare__trace *trace); /* else a tick is assumed to be a nanosecond */

#include "replay.h"
#include "import.h"

#endif
