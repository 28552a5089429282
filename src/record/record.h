/* record: inside the target. Clock, names, per-thread cursors into shared chunks, start and end of
 * threads and processes, sessions. Everything here may run in any thread, in a signal handler, after fork.
 * Must not know what the records will mean, nor any file but the ring. */
#ifndef TARE_RECORD_H
#define TARE_RECORD_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tare.h>

#include "base/base.h"
#include "format/format.h"

/* ---- clock ----------------------------------------------------------------------------------------- */
/* Whether the time-stamp counter of this machine is reliable as a clock. */
tare__clock_kind tare__clock_choose(void);
bool tare__clock_tsc_forbidden(void); /* for this thread, by PR_SET_TSC: reading it would raise SIGSEGV */
uint64_t tare__clock_ticks(tare__clock_kind kind);

/* ---- signals ------------------------------------------------------------------------------------------- */
void tare__signals_hold(uint64_t *before); /* until released, no handler runs in this thread */
void tare__signals_release(const uint64_t *before);
/* The function with this stack frame was left by siglongjmp, as seen from a frame of the same thread. */
bool tare__signals_frame_left(uintptr_t frame, uintptr_t here);
size_t tare__signals_stack_left(void); /* bytes left of the alternate stack; SIZE_MAX: not on one */

/* ---- threads --------------------------------------------------------------------------------------------
 * The state of a thread is on private pages that fork wipes (MADV_WIPEONFORK), so that a child finds zeros and
 * joins again, however it was created: atfork handlers do not run for _Fork or clone. */
#define TARE__SKIP_LEVELS 512
#define TARE__CELLS_MAX 384
#define TARE__CELL_CHUNKS_MAX (TARE__CELLS_MAX / TARE__CELLS_PER_CHUNK + 1)

typedef struct tare__thread {
    /* Next free slot: its address, with the chunk's generation in the low four bits. Advanced by one instruction
     * before the slot is filled, so that a signal handler in between gets the next slot. Bits 12..15 zero: no slot
     * there, use the slow path (end of the chunk, wiped by fork, parked at 0). */
    uint64_t cursor;
    uint64_t saved;        /* the cursor while it is parked at 0; 0: the chunk is full or there is none */
    volatile uint32_t in_slow; /* the slow path is running: a handler must not enter it again */
    uint32_t held;         /* signals are blocked: in_slow is certainly true */
    uint32_t met;          /* consecutive records that found in_slow set */
    uintptr_t slow_frame;  /* of the function that set in_slow */
    uint32_t stream;       /* 0: not joined */
    uint32_t chunk;        /* index + 1; 0: none */
    uint32_t sequence;     /* of the next chunk */
    uint32_t reserve_used;
    uint32_t full_at;       /* ring->given_back when no chunk was free, + 1; 0: no unsuccessful search */
    int32_t tid;
    /* If a span was dropped or skipped and is still open, its end must be skipped too: one bit per level from there
     * on, 1 for skipped. The slow path is used until the stack is empty again. */
    uint32_t skip_depth;
    uint32_t skip_count;   /* bits that are 1: at 0 the stack is no longer needed */
    uint32_t skip_over;    /* levels beyond the bits; all of them are skipped */
    uint64_t skip_bits[TARE__SKIP_LEVELS / 64];
    uint64_t dropped_spans, dropped_others, lost_ends;
    uint64_t nested_spans, nested_others; /* dropped by handlers that found in_slow set */
    uint64_t nested_told; /* their sum when it was last published */
    uint32_t steps_open, epochs_open;
    uint32_t cell_chunks[TARE__CELL_CHUNKS_MAX]; /* index + 1; the last one has space */
    uint32_t cell_chunk_count, cells_used;
    _Atomic uint32_t used; /* the state belongs to a thread */
    char name[TARE__THREAD_NAME_BYTES];
    tare__cell *cells[TARE__CELLS_MAX]; /* by site->slot */
} tare__thread;

_Static_assert(offsetof(tare__thread, cursor) == 0, "tare.h reaches the cursor through the same pointer");
#define tare__self ((tare__thread *)(void *)tare__cursor)
static inline void tare__self_set(tare__thread *self)
{
    tare__cursor = self ? &self->cursor : NULL;
}

/* Constants that the inline hot path of tare.h contains as numbers. */
_Static_assert(sizeof(tare__slot) == 16 && TARE__CHUNK_MAIN_BITS == 0xF000 && TARE__WORD_GENERATION == 15 &&
                   TARE__WORD(TARE__RECORD_END - TARE__RECORD_BEGIN, 0) == 0x10 &&
                   TARE__WORD(TARE__RECORD_NEXT - TARE__RECORD_BEGIN, 0) == 0x20,
               "tare.h and ring.h agree");

/* The calling thread's state, joined to the process's ring; NULL if there is no space or no session (if this is
 * permanent, the gate is closed). Slow, preserves errno. */
tare__thread *tare__thread_join(void);
/* Adds a (possibly wiped) state to the ring; false: no session. */
bool tare__thread_enlist(tare__thread *self);
/* Moves the thread to a new chunk and retires the old one. False: none is free, nothing changed. */
bool tare__thread_next_chunk(tare__thread *self, bool may_grow);
void tare__thread_count_drops(tare__thread *self); /* publishes its drop counts */
/* Sets in_slow for the function with this frame; false: it is already set, by one that is still running. */
bool tare__thread_enter_slow(tare__thread *self, uintptr_t frame);
/* Within it: signals are blocked, since this must be completed. */
void tare__thread_hold(tare__thread *self, uint64_t *before);
void tare__thread_release(tare__thread *self, const uint64_t *before);
void tare__thread_leave_slow(tare__thread *self); /* in_slow ends here */
/* A record of a handler that interrupted the slow path, or found no thread state (NULL). */
void tare__thread_drop_nested(tare__thread *self, bool span);
bool tare__threads_prepare(void); /* once per process, before any thread records */
void tare__count_unattributed(bool span); /* a record that found no thread state; also before the ring exists */
void tare__threads_forget(void); /* every thread joins again at its next event (a new session starts) */
tare__cell *tare__thread_cell(tare__thread *self, uint64_t slot, uint32_t name, uint32_t every);

/* ---- process ---------------------------------------------------------------------------------------------- */
typedef enum tare__process_state {
    TARE__PROCESS_FRESH = 0, /* also what fork leaves */
    TARE__PROCESS_JOINING = 1,
    TARE__PROCESS_JOINED = 2,
    TARE__PROCESS_REFUSED = 3
} tare__process_state;

typedef struct tare__process {
    _Atomic uint32_t state;
    _Atomic int32_t joiner; /* thread that is joining it */
    _Atomic(void *) thread_blocks;
    tare__ring *ring;
    uint8_t *chunks;
    char path[TARE__PATH_BYTES]; /* of the ring file */
} tare__process;

extern tare__process *tare__here;          /* on a page that fork wipes; NULL: never had a session */
extern _Atomic(tare__session_page *) tare__session; /* of the session, or of the last one: other threads may still
                                                     * use it */
extern char tare__session_folder[TARE__PATH_BYTES]; /* kept across fork, so that the child can join */
extern _Atomic uint32_t tare__modes;       /* TARE__MODE_ bits; they determine the gate */

enum {
    TARE__MODE_SESSION = 1,
    TARE__MODE_PAUSED = 2,
    TARE__MODE_NO_TSC = 4,
    TARE__MODE_FORWARD = 8 /* another copy of the library owns the state */
};
void tare__modes_set(uint32_t set, uint32_t clear);

static inline bool tare__in_session(void)
{
    return atomic_load_explicit(&tare__modes, memory_order_acquire) & TARE__MODE_SESSION;
}

/* True if events can be recorded. The gate starts at 2, so that events before any constructor detect the session
 * themselves. */
bool tare__find_out(void);
static inline bool tare__on(void)
{
    return TARE__LIKELY(tare__gate_now() == 1) || tare__find_out();
}

/* Starts the helper program with `socket` as its only connection; wait() does not see it as a child of this process.
 * 0 or a status. */
int tare__helper_spawn(const char *path, int socket, int *pid);
/* Finds the helper; false: not found. */
bool tare__helper_find(const char *wanted, char path[TARE__PATH_BYTES]);

/* The process's ring, created at first use; NULL: none. */
tare__ring *tare__process_join(void);
typedef enum tare__growth {
    TARE__GROWN,     /* try again */
    TARE__GROWS_NOW, /* another thread is extending it, for longer than this one can wait */
    TARE__FULL_GROWN
} tare__growth;
tare__growth tare__process_grow(void); /* more chunks, for many threads; system calls */
uint32_t tare__process_chunk_room(void); /* chunks that are mapped here: the collector may add more */
void tare__process_leave(void); /* releases the ring at the end of a session; late writes remain harmless */
uint64_t tare__ticks(void);
void tare__calibrate(tare__ring *ring, uint8_t *chunk);
int tare__thread_id(void);

/* Attaches to the session in this folder. 0 or a status. */
int tare__session_attach(const char *folder);
void tare__session_detach(void);

/* ---- names ----------------------------------------------------------------------------------------------- */
/* Id of a name, the same for the same text and kind. Lock-free, no system call. */
uint32_t tare__name_intern(const char *text, int kind, const char *file, uint32_t line);
void tare__names_publish(tare__ring *ring); /* copies all existing names into a new ring */
/* Makes site->word (and site->slot of aggregates). Returns the word. */
uint64_t tare__site_register(tare_site *site);

/* ---- writing records ------------------------------------------------------------------------------------- */
/* One instruction, so that a handler on this thread cannot interrupt it; like tare__reserve of tare.h. */
static inline void tare__add(uint64_t *at, uint64_t value)
{
#if defined(__x86_64__)
    __asm__ volatile("addq %1, %0" : "+m"(*at) : "er"(value) : "cc");
#else
    __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
#endif
}

static inline tare__slot *tare__slot_of(uint64_t cursor)
{
    return (tare__slot *)(uintptr_t)(cursor & ~TARE__WORD_GENERATION);
}

/* The word is stored last, with release: the collector takes a slot by its word. */
static inline void tare__slot_write(uint64_t cursor, uint64_t value, uint64_t word)
{
    tare__slot *slot = tare__slot_of(cursor);
    __atomic_store_n(&slot->value, value, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->word, word | (cursor & TARE__WORD_GENERATION), __ATOMIC_RELEASE);
}

/* Records `n` slots (words without generation) on the slow path. `reserved` is the result of tare__reserve. Times of
 * 0 in slots[0] are filled in. */
#define TARE__NOT_RESERVED UINT64_MAX
void tare__record_slow(tare__slot *slots, unsigned n, uint64_t reserved) __attribute__((cold));
/* The same, trying the fast path first. */
void tare__record(tare__slot *slots, unsigned n);

/* ---- other copies of this library in the process ------------------------------------------------------------ */
/* Every recording function of tare.h, as functions of the first copy: later copies call these. */
#define TARE__HOME_LIST(X)                                                                             \
    X(void, begin, (tare_site * site), (site))                                                         \
    X(void, end, (tare_site * site), (site))                                                           \
    X(void, next, (tare_site * site), (site))                                                          \
    X(uint64_t, aggregate_begin, (void), ())                                                           \
    X(void, aggregate_end, (tare_site * site, uint64_t start), (site, start))                          \
    X(uint64_t, sampled_begin, (tare_site * site), (site))                                             \
    X(void, sampled_end, (tare_site * site, uint64_t start), (site, start))                            \
    X(void, mark, (tare_site * site), (site))                                                          \
    X(void, counter, (tare_site * site, double value), (site, value))                                  \
    X(void, number, (tare_site * site, double value), (site, value))                                   \
    X(void, indexed, (tare_site * site, uint64_t index, int action), (site, index, action))            \
    X(void, complete, (tare_site * site, const tare_complete_span *span), (site, span))                \
    X(void, fact, (const char *key, const char *file, uint32_t line, double value, const char *text),   \
      (key, file, line, value, text))                                                                  \
    X(tare_site *, dynamic, (const char *name, int kind, tare_site *scratch), (name, kind, scratch))   \
    X(uint32_t, track, (const char *name, tare_track_kind kind), (name, kind))                         \
    X(uint64_t, now, (void), ())                                                                       \
    X(void, thread_name, (const char *name), (name))                                                   \
    X(int, start, (const tare_options *options), (options))                                            \
    X(int, stop, (void), ())                                                                           \
    X(void, pause, (void), ())                                                                         \
    X(void, resume, (void), ())                                                                        \
    X(int, recording, (void), ())                                                                      \
    X(const char *, output, (void), ())

typedef struct tare__home {
    uint32_t abi;
    uint32_t bytes;
    _Atomic uint32_t claimed;
    const int *gate;
#define TARE__HOME_MEMBER(type, name, parameters, arguments) type(*name) parameters;
    TARE__HOME_LIST(TARE__HOME_MEMBER)
#undef TARE__HOME_MEMBER
} tare__home;

extern const tare__home *tare__forward; /* the first copy, if this is not it; NULL */
/* Determines which copy owns the state. True: this one. */
bool tare__home_claim(void);

#endif
