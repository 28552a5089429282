/* import_inner: declarations shared by the files of the importer. One thread.
 * Must not know how a trace is shown. */
#ifndef TARE_TRACE_IMPORT_INNER_H
#define TARE_TRACE_IMPORT_INNER_H

#include "import.h"
#include "tare.h"

/* ---- records: what an event is converted to before it is written ----------------------------------------- */
typedef enum tare__import_kind {
    TARE__IMPORT_SPAN,     /* nested */
    TARE__IMPORT_FUNCTION, /* the same, a Python function: other spans take precedence */
    TARE__IMPORT_INDEXED,  /* the same, with an index */
    TARE__IMPORT_FLOWING,  /* the same, with a flow as its number */
    TARE__IMPORT_ENDLESS,  /* its end is missing */
    TARE__IMPORT_COMPLETE, /* on a track */
    TARE__IMPORT_MARK,
    TARE__IMPORT_COUNTER
} tare__import_kind;

typedef struct tare__import_record {
    int64_t start, duration; /* ns */
    union {
        uint64_t flow;
        double number; /* of a counter; of a nested span, its index or flow */
    };
    uint32_t place, name, order;
    uint32_t kind;
} tare__import_record;

/* ---- sorter: by place, then start, longer before shorter ------------------------------------------------ */
typedef struct tare__import_run {
    uint64_t offset, left; /* in the file: bytes; records not read yet */
    tare__import_record *buffer;
    uint32_t at, count;
} tare__import_run;

typedef struct tare__import_sorter {
    tare__import_record *records;
    uint32_t count, room;
    int fd;             /* of runs that did not fit; -1: none */
    const char *beside; /* the file with runs is created next to this path */
    uint64_t bytes;
    tare__import_run *runs;
    size_t run_count, run_room;
    size_t *heap; /* runs; the one with the smallest record first */
    size_t heap_count;
} tare__import_sorter;

int tare__sorter_open(tare__import_sorter *sorter, uint32_t records_max, const char *beside);
int tare__sorter_add(tare__import_sorter *sorter, const tare__import_record *record, tare__error *error);
int tare__sorter_rewind(tare__import_sorter *sorter,
                        tare__error *error); /* after the last add, before the first next */
/* 1: *record is the next; 0: no more; or a status. */
int tare__sorter_next(tare__import_sorter *sorter, tare__import_record *record, tare__error *error);
void tare__sorter_close(tare__import_sorter *sorter);

/* ---- who: processes, their threads, and tracks ----------------------------------------------------------- */
typedef struct tare__open_begin {
    int64_t start;
    uint32_t name;
} tare__open_begin;

typedef struct tare__import_place {
    uint32_t process; /* index */
    int64_t tid;
    char label[64];
    uint32_t track; /* name id; 0: a thread */
    uint64_t records;
    uint32_t stream; /* in the file; 0: not used */
    tare__open_begin *open;
    size_t open_count, open_room;
} tare__import_place;

typedef struct tare__import_process {
    int64_t pid;
    char label[128];
    uint32_t number; /* in the file; 0: not used */
} tare__import_process;

typedef struct tare__open_request { /* begun, not bound to a thread */
    uint64_t hash;
    int64_t start;
    uint32_t name, place;
} tare__open_request;

#define TARE__REQUESTS_MAX 4096u
#define TARE__NO_PLACE     UINT32_MAX

/* The file of the run to which a foreign trace belongs. */
typedef struct tare__import_base {
    struct tare__trace *trace;
    const char *path;
    uint32_t names, streams, processes; /* the highest numbers in use */
    double tick_ns;
    uint64_t start_ticks, start_realtime_ns, end_realtime_ns;
    uint64_t end_offset;
    tare__text end; /* its last block */
} tare__import_base;

typedef struct tare__importer {
    const tare__import_options *options;
    tare__import_base *base; /* NULL: a separate file is created */
    tare__fact base_fact;    /* states that this file was added to it */
    uint32_t names_before;   /* ids already in use */
    tare__import_report *report;
    tare__error *error;
    tare__json_reader reader;
    tare__import_sorter sorter;
    /* names: kind byte + text; the file's id is the index + 1 */
    tare__intern *names;
    size_t name_bytes;
    /* places */
    tare__intern *place_keys, *process_keys;
    tare__import_place *places;
    size_t place_room;
    tare__import_process *processes;
    size_t process_room;
    uint32_t home; /* the thread that launched work; TARE__NO_PLACE: none yet */
    tare__open_request *requests;
    uint32_t request_count;
    /* metadata of the document */
    int64_t base_ns;
    bool has_base, is_kineto, is_onnxruntime;
    int64_t rank; /* -1: unknown */
    char host[256];
    char gpu[128];
    uint32_t gpus;
    int64_t first_ns, last_ns; /* of all records */
    bool any;
    bool no_memory; /* when a place is missing: out of memory, else too many */
} tare__importer;

/* ---- names, places (import_who.c) ------------------------------------------------------------------------- */
/* A name's id in the file; 0: out of memory. Beyond the maximum number of names, the id that stands for all others. */
uint32_t tare__import_name(tare__importer *importer, uint32_t kind, const char *text, size_t length);
/* The place of a thread; TARE__NO_PLACE: too many, or out of memory. */
uint32_t tare__import_thread(tare__importer *importer, const char *pid, const char *tid);
uint32_t tare__import_track(tare__importer *importer, const char *pid, uint32_t kind, const char *label);
tare__import_process *tare__import_process_of(tare__importer *importer, const char *pid); /* NULL: too many */
void tare__import_free_who(tare__importer *importer);

/* ---- events (import_event.c) -------------------------------------------------------------------------------- */
/* Reads one event, whose OBJECT was read, and adds it. 0: added; 1: the JSON is malformed; or a status. */
int tare__import_event(tare__importer *importer);
/* Adds spans that were begun and not ended. */
int tare__import_leftovers(tare__importer *importer);

/* ---- the run to which it belongs (import_into.c) ------------------------------------------------------------- */
int tare__import_base_open(tare__importer *importer, tare__import_base *base);
void tare__import_base_close(tare__import_base *base);
/* Whether its times are within that run: 0, or TARE_E_INPUT with a message. */
int tare__import_base_check(const tare__importer *importer);
uint64_t tare__import_base_ticks(const tare__importer *importer, int64_t ns);
uint32_t tare__import_base_process(const tare__importer *importer, int64_t pid); /* its number; 0: not found */
/* Records that it was added, and from which file, as a mark. 0 or a status. */
int tare__import_base_tell(tare__importer *importer);

/* ---- the file (import_write.c) -------------------------------------------------------------------------------- */
int tare__import_write(tare__importer *importer);

#endif
