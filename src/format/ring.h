/* ring: the shared memory between a recorded process and the collector: session page, ring file,
 * chunks, records. Written by the target, read (and chunks returned) by the collector.
 * Must not know how either side works. */
#ifndef TARE_FORMAT_RING_H
#define TARE_FORMAT_RING_H

#include <stdbool.h>
#include <stdint.h>

/* Both sides must agree on every layout in this file: increment it on any change. */
#define TARE__RING_ABI 3u

/* ---- the session folder -------------------------------------------------------------------------
 * DIR/session          one tare__session_page; the collector holds a flock on it while it lives
 * DIR/join             datagram socket: one tare__hello from each process that joins
 * DIR/<32 hex>.ring    one for each recorded process, named by its random id
 * DIR/saved            written by salvage: device, inode, size and name of the trace that has everything
 * DIR/word-<pid>-<start>  a sentence: why this process (by its start in the kernel's ticks) has not joined; then lines
 *                       on its imports, as of TARE__FIELD_IMPORTS but in ns of CLOCK_MONOTONIC */
#define TARE__ENV_SESSION "TARE_SESSION" /* the folder, in the environment of recorded programs */
#define TARE__SESSION_FILE "session"
#define TARE__JOIN_SOCKET "join"
#define TARE__SAVED_FILE "saved"
#define TARE__RING_SUFFIX ".ring"
#define TARE__WORD_PREFIX "word-"
#define TARE__SESSION_MAGIC "TARESES"
#define TARE__RING_MAGIC "TARERNG"
#define TARE__ID_BYTES 16
#define TARE__PATH_BYTES 1024

typedef enum tare__clock_kind {
    TARE__CLOCK_TSC = 1,       /* invariant time-stamp counter (CNTVCT on aarch64) */
    TARE__CLOCK_MONOTONIC = 2  /* clock_gettime(CLOCK_MONOTONIC), nanoseconds */
} tare__clock_kind;

/* Simultaneous readings of three clocks. */
typedef struct tare__clock_sync {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
} tare__clock_sync;

/* Why a process could not join; counted in the session page. */
typedef enum tare__refusal {
    TARE__REFUSED_SPACE = 0,   /* no space for its ring */
    TARE__REFUSED_ABI = 1,     /* its libtare has another ABI */
    TARE__REFUSED_SYSTEM = 2,  /* open, map, … failed */
    TARE__REFUSED_COPY = 3,    /* a second copy of the library that could not adopt the first */
    TARE__REFUSED_LIMIT = 4,   /* its limit on file sizes is too low */
    TARE__REFUSED_GONE = 5,    /* the session's folder does not exist any more */
    TARE__REFUSED_DENIED = 6,  /* it may not write into the session's folder */
    TARE__REFUSED_FILES = 7,   /* no file descriptor was left */
    TARE__REFUSED_MEMORY = 8,  /* no memory, or no address space */
    TARE__REFUSALS = 9
} tare__refusal;

typedef enum tare__session_state {
    TARE__SESSION_OPEN = 1,
    TARE__SESSION_ENDED = 2 /* no new process joins */
} tare__session_state;

#define TARE__SESSION_SYNCS 64

typedef struct tare__session_page {
    char magic[8];
    uint32_t abi;
    uint32_t bytes; /* of this page */
    uint8_t id[TARE__ID_BYTES];
    uint32_t clock; /* tare__clock_kind */
    _Atomic uint32_t state;
    uint64_t pool_bytes;           /* chunks a process gets; the collector adds them while it runs */
    uint64_t max_pool_bytes;       /* maximum, for many threads */
    _Atomic int64_t bytes_left;    /* what all processes together can still allocate */
    _Atomic uint32_t refused[TARE__REFUSALS];
    _Atomic uint32_t sync_count;   /* syncs[(sync_count - 1) % TARE__SESSION_SYNCS] is the newest */
    int32_t collector_pid;
    tare__clock_sync syncs[TARE__SESSION_SYNCS];
    char fallback[TARE__PATH_BYTES]; /* folder for rings if there is no space next to this page; "" none */
    /* The file that is being written. After its end, until the program runs and the file has that name: the
     * temporary suffix (".XXXXXX"). */
    char trace[TARE__PATH_BYTES];
} tare__session_page;

typedef struct tare__hello {
    uint32_t abi;
    int32_t pid; /* in the process's own namespace; the collector takes the sender's pid from the socket */
    uint8_t id[TARE__ID_BYTES];
} tare__hello;

/* ---- tare_start: a process and the helper that serves it, over a SOCK_SEQPACKET pair ---------------------- */
typedef enum tare__serve_kind {
    TARE__SERVE_START = 1,
    TARE__SERVE_STOP = 2
} tare__serve_kind;

typedef struct tare__serve_request {
    uint32_t abi;
    uint32_t kind;
    int32_t pid;
    uint32_t spare;
    uint64_t max_bytes, last_ns;
    char output[TARE__PATH_BYTES]; /* "": named after the program */
} tare__serve_request;

typedef struct tare__serve_reply {
    uint32_t abi;
    int32_t status; /* 0 or negative */
    char folder[TARE__PATH_BYTES];
    char trace[TARE__PATH_BYTES]; /* with a negative status: a message */
} tare__serve_reply;

/* ---- a record: one 16-byte slot, or several consecutive ones -----------------------------------------
 * A slot is valid if the generation in its word is that of its chunk: stale slots of an earlier use differ.
 * `word` is stored last, with release. */
typedef struct tare__slot {
    uint64_t value; /* ticks; the continuation's payload */
    uint64_t word;  /* zero 63..48 | name id or payload 47..16 | zero 15..8 | kind 7..4 | generation 3..0 */
} tare__slot;

/* Sixteen generations are enough: 0 is memory that was never written, and old slots in a chunk are one generation
 * back, since a chunk is returned full or with its rest zeroed. In the low bits, because the low four bits of a
 * slot's address are free to carry it. */
#define TARE__WORD_GENERATION UINT64_C(15)
#define TARE__WORD_KIND_SHIFT 4
#define TARE__WORD_ID_SHIFT 16
#define TARE__WORD_KIND(word) ((unsigned)((word) >> TARE__WORD_KIND_SHIFT & 15u))
#define TARE__WORD_ID(word) ((uint32_t)((word) >> TARE__WORD_ID_SHIFT))
#define TARE__WORD(kind, id) \
    ((uint64_t)(kind) << TARE__WORD_KIND_SHIFT | (uint64_t)(uint32_t)(id) << TARE__WORD_ID_SHIFT)

/* BEGIN + 1 is END and BEGIN + 2 is NEXT: the hot path derives one from the other by adding TARE__WORD(1, 0) or
 * TARE__WORD(2, 0). */
typedef enum tare__record_kind {
    TARE__RECORD_BEGIN = 1,     /* ticks; name */
    TARE__RECORD_END = 2,       /* ticks; name, 0: the innermost */
    TARE__RECORD_NEXT = 3,      /* ticks; name */
    TARE__RECORD_MARK = 4,      /* ticks; name */
    TARE__RECORD_COUNTER = 5,   /* ticks; name | MORE: bits of a double */
    TARE__RECORD_NUMBER = 6,    /* bits of a double; name. Belongs to the innermost open span */
    TARE__RECORD_COMPLETE = 7,  /* start; name | MORE: end; track name | MORE: id | MORE: parent | MORE: flow */
    TARE__RECORD_LOST_ENDS = 8, /* number of ends dropped since the last record; – */
    TARE__RECORD_FACT = 9,      /* ticks; key | MORE: bits of a double; file | MORE: line; text. All three are names */
    TARE__RECORD_MORE = 14,     /* continuation */
    TARE__RECORD_PAD = 15       /* padding: fills the tail of a chunk */
} tare__record_kind;

#define TARE__COMPLETE_SLOTS 5
#define TARE__COUNTER_SLOTS 2
#define TARE__FACT_SLOTS 3

/* ---- a chunk: 64 KiB, aligned to its size ----------------------------------------------------------
 * bytes 0..127        tare__chunk
 * bytes 128..4095     reserve: slots for the ends of open spans if no further chunk is available
 * bytes 4096..65535   slots, filled in order; the reserve follows them in time
 * The layout determines the only test of the recorder's hot path: an address whose bits 12..15 are all zero is
 * not a slot of the main part, and neither is the zero of a page wiped by fork. */
#define TARE__CHUNK_BYTES 65536u
#define TARE__CHUNK_MAIN 4096u
#define TARE__CHUNK_RESERVE 128u
#define TARE__CHUNK_MAIN_BITS 0xF000u
#define TARE__CHUNK_SLOTS ((TARE__CHUNK_BYTES - TARE__CHUNK_MAIN) / 16u)
#define TARE__CHUNK_RESERVE_SLOTS ((TARE__CHUNK_MAIN - TARE__CHUNK_RESERVE) / 16u)
#define TARE__THREAD_NAME_BYTES 64

typedef enum tare__chunk_state {
    TARE__CHUNK_FREE = 0,
    TARE__CHUNK_TAKEN = 1,      /* taken by a thread that is filling in the descriptor */
    TARE__CHUNK_EVENTS = 2,     /* being filled with records */
    TARE__CHUNK_AGGREGATES = 3, /* holds aggregate cells, updated in place */
    TARE__CHUNK_RETIRED = 4,    /* full or abandoned: `main_used` and `reserve_used` are final */
    TARE__CHUNK_AGGREGATES_RETIRED = 5
} tare__chunk_state;

typedef struct tare__chunk {
    uint32_t stream;   /* of this process: 1, 2, … one per thread */
    uint32_t sequence; /* of this stream: 0, 1, … */
    uint32_t generation;
    int32_t tid;
    int32_t cpu; /* where its thread ran when it took the chunk; -1: unknown */
    _Atomic uint32_t main_used; /* slots, when retired */
    _Atomic uint32_t reserve_used;
    _Atomic uint64_t dropped_spans;  /* of the stream, since its start */
    _Atomic uint64_t dropped_others; /* marks, counters, numbers, complete spans, facts */
    char thread_name[TARE__THREAD_NAME_BYTES];
} tare__chunk;

/* 1..15, and 1 again. */
static inline uint32_t tare__generation_after(uint32_t generation)
{
    return generation % 15 + 1;
}

_Static_assert(sizeof(tare__chunk) <= TARE__CHUNK_RESERVE, "the descriptor fits below the reserve");

/* ---- aggregate cells ----------------------------------------------------------------------------------
 * Histogram of ticks with 8 buckets per octave up to 2^48 ticks (more than a day). */
#define TARE__CELL_BITS 3
#define TARE__CELL_BUCKETS ((48 - TARE__CELL_BITS + 1) << TARE__CELL_BITS)

typedef struct tare__cell {
    _Atomic uint32_t name; /* ring name id; 0: not in use */
    uint32_t every;
    uint64_t count;        /* every call */
    uint64_t timed;        /* those that were timed: all, or one in `every` */
    uint64_t total;        /* ticks of the timed ones */
    uint64_t min, max;     /* ticks; min is UINT64_MAX before the first */
    uint64_t countdown;    /* sampled: calls until the next timed one */
    uint64_t random;
    uint32_t buckets[TARE__CELL_BUCKETS];
} tare__cell;

#define TARE__CELLS_PER_CHUNK ((TARE__CHUNK_BYTES - TARE__CHUNK_MAIN) / sizeof(tare__cell))

/* ---- names: an arena of 16-byte units; an id is the unit at which its entry starts -------------------- */
#define TARE__NAMES_BYTES (1u << 20)
#define TARE__NAME_UNIT 16u
#define TARE__NAME_TEXT_MAX 4000u

/* Kinds 1..10 are tare_kind; a track's kind is added to TRACK. No function of the public API creates a FACT. */
#define TARE__NAME_FACT 11 /* a key, a file or a text of a fact */
#define TARE__NAME_TRACK 16

typedef struct tare__name {
    _Atomic uint32_t ready; /* 1 when the rest is written */
    uint16_t kind;
    uint16_t text_bytes;
    uint16_t file_bytes;
    uint16_t units; /* of this entry */
    uint32_t line;
    char text[];    /* the name, then the file's name; no terminator */
} tare__name;

/* Ids that are not in the table. */
#define TARE__NAME_NONE 0u

/* ---- the ring file ----------------------------------------------------------------------------------------- */
#define TARE__RING_CHUNKS_MAX 8192u
#define TARE__COMMAND_BYTES 2048

/* The overhead of the recorder in this process, in 1/256 ticks, measured when it joined. */
typedef struct tare__own_cost {
    uint32_t pair;      /* begin + end of an empty span, total */
    uint32_t inner;     /* the part of it between its two timestamps */
    uint32_t next;
    uint32_t aggregate; /* a pair */
} tare__own_cost;

typedef struct tare__ring {
    char magic[8];
    uint32_t abi;
    uint32_t header_bytes;      /* of this struct */
    uint64_t names_offset;
    uint64_t chunks_offset;     /* a multiple of TARE__CHUNK_BYTES */
    uint8_t id[TARE__ID_BYTES]; /* random; identifies the process */
    uint8_t parent[TARE__ID_BYTES]; /* of the process it was forked from; zero: none or not joined */
    int32_t pid;                /* in its own namespace */
    int32_t ppid;
    uint64_t joined;            /* ticks */
    tare__own_cost cost;
    _Atomic uint32_t chunk_count; /* in the file, and in memory; grows */
    _Atomic uint32_t growing;     /* 1: the collector, or a thread at its first event, is extending it */
    _Atomic uint32_t next_stream;
    _Atomic uint32_t names_refused;
    _Atomic uint64_t unattributed_spans;   /* dropped by threads that could not allocate a chunk */
    _Atomic uint64_t unattributed_others;
    _Atomic uint32_t taken;       /* chunks taken so far: tells the collector that there is work */
    _Atomic uint32_t given_back;  /* and returned: tells a thread without one that a search may succeed */
    _Atomic uint32_t closed;      /* the process left the session */
    char command[TARE__COMMAND_BYTES]; /* arguments, each ended by NUL, then another NUL */
    _Atomic uint32_t chunk_state[TARE__RING_CHUNKS_MAX];
} tare__ring;

/* 0 if the header of a ring file of this size is valid; else a message. */
const char *tare__ring_check(const tare__ring *ring, uint64_t file_bytes);
const char *tare__session_check(const tare__session_page *page, uint64_t file_bytes);

#endif
