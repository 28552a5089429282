/* stacks: sampled call stacks as blocks of a file: a table of functions, a table of stacks as links to their callers,
 * and samples that refer to a stack by number. docs/FORMAT.md is the specification.
 * A writer belongs to one thread. Decoders trust nothing they read.
 * Must not know how stacks are taken, or what they are used for. */
#ifndef TARE_FORMAT_STACKS_H
#define TARE_FORMAT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "codec.h"
#include "file.h"

typedef enum tare__frame_kind {
    TARE__FRAME_PYTHON = 1,
    TARE__FRAME_NATIVE = 2, /* file: the object; name: its build id in hex until it is symbolized */
    TARE__FRAME_KERNEL = 3,
    TARE__FRAME_NOTE = 4    /* not code: "garbage collection", "(frames omitted)" */
} tare__frame_kind;

/* What a thread was doing when it was sampled. */
typedef enum tare__thread_state {
    TARE__STATE_UNKNOWN = 0,
    TARE__STATE_RUNNING = 1,
    TARE__STATE_RUNNABLE = 2, /* ready, waiting for a CPU */
    TARE__STATE_GIL = 3,
    TARE__STATE_LOCK = 4,
    TARE__STATE_DISK = 5,
    TARE__STATE_NETWORK = 6,
    TARE__STATE_CHILD = 7,    /* waiting for the end of a process */
    TARE__STATE_PIPE = 8,     /* for data from another process */
    TARE__STATE_GPU = 9,
    TARE__STATE_SLEEP = 10,
    TARE__STATE_OTHER = 11,   /* any other system call */
    TARE__STATE_COUNT = 12
} tare__thread_state;

const char *tare__thread_state_words(unsigned state); /* "waiting for a lock" */

#define TARE__SAMPLE_HAS_GIL 1u
#define TARE__SAMPLE_IN_GC 2u
#define TARE__SAMPLE_TORN 4u   /* the stack changed while it was read: `stack` is 0, the rest is valid */

typedef struct tare__stack_function {
    uint32_t kind;       /* tare__frame_kind */
    uint32_t first_line; /* 0: unknown */
    const char *name, *file; /* not NUL terminated; the file may be empty */
    uint32_t name_bytes, file_bytes;
} tare__stack_function;

typedef struct tare__stack_thread {
    int64_t pid, tid;    /* in the outer namespace */
    uint64_t start_time; /* of the process, clock ticks since boot */
    const char *name;
    uint32_t name_bytes;
    bool main;           /* the first thread of its process */
} tare__stack_thread;

typedef struct tare__stack_sample {
    uint64_t ticks;
    uint32_t thread; /* number of the thread, from 1 */
    uint32_t stack;  /* number of the stack, from 1; 0: none */
    uint32_t state;  /* tare__thread_state */
    uint32_t flags;
    uint64_t wall_ns;  /* time of this thread that the sample stands for: since its previous sample */
    uint64_t cpu_ns;   /* of it on a CPU */
    uint64_t queue_ns; /* of it ready, without a CPU */
} tare__stack_sample;

/* Limits of a file: beyond them new functions and stacks are refused and counted. */
#define TARE__STACKS_MAX (1u << 20)
#define TARE__STACK_FUNCTIONS_MAX (1u << 18)
#define TARE__STACK_THREADS_MAX (1u << 16)
#define TARE__STACK_SAMPLES_MAX 8192u /* in one block */
#define TARE__STACK_TEXTS_MAX ((size_t)32 << 20) /* bytes of all different names and files */

/* ---- writing: tables that remember what is already in the file -------------------------------------------- */
typedef struct tare__stacks tare__stacks;
tare__stacks *tare__stacks_new(void); /* NULL: out of memory */
void tare__stacks_free(tare__stacks *stacks); /* NULL is allowed */
/* Numbers from 1, the same for the same content; 0: out of memory or the limit is reached (counted). */
uint32_t tare__stacks_function(tare__stacks *stacks, const tare__stack_function *function);
uint32_t tare__stacks_thread(tare__stacks *stacks, const tare__stack_thread *thread);
/* The stack `caller` (0: none) with one more frame; `line` is an offset in the object for native frames. */
uint32_t tare__stacks_push(tare__stacks *stacks, uint32_t caller, uint32_t function, uint64_t line);
/* False: the block is full; seal it first. Samples of an unknown thread are refused, unknown stacks become 0. */
bool tare__stacks_sample(tare__stacks *stacks, const tare__stack_sample *sample);
uint32_t tare__stacks_pending(const tare__stacks *stacks); /* samples not sealed yet */
uint64_t tare__stacks_refused(const tare__stacks *stacks); /* by limits or for lack of memory */
/* Appends the blocks of what is new: functions, stacks and threads, then the samples. 0 or a status; on failure
 * everything stays pending. */
int tare__stacks_seal(tare__stacks *stacks, tare__squeezer *squeezer, tare__text *out);
/* The blocks of the last seal could not be written to the file: the next seal repeats its tables; its samples are
 * lost. */
void tare__stacks_unseal(tare__stacks *stacks);
/* The native frames and those of the kernel in the tables: calls `sink` once for each object and offset, by object,
 * then offset. 0 or TARE_E_MEMORY. */
typedef void tare__stacks_native(void *context, uint32_t object, const uint64_t *offsets, uint32_t n);
int tare__stacks_each_native(const tare__stacks *stacks, tare__stacks_native *sink, void *context);
/* Valid until the next function is added; NULL: no such number. */
const tare__stack_function *tare__stacks_function_at(const tare__stacks *stacks, uint32_t number);
uint32_t tare__stacks_count(const tare__stacks *stacks); /* of different stacks */

/* ---- symbols ---------------------------------------------------------------------------------------------- */
#define TARE__SYMBOL_DEPTH_MAX 32u    /* of inlined functions at an offset */
#define TARE__SYMBOL_ROWS_MAX 16384u  /* in a block */

typedef struct tare__stack_symbol_frame {
    uint32_t function; /* its number in the table of functions */
    uint32_t line;     /* in its source file; 0: unknown */
} tare__stack_symbol_frame;

typedef struct tare__stack_symbol { /* what is at an offset of an object: inlined functions are after their caller */
    uint32_t object; /* number of the function that stands for the object */
    uint32_t n;
    uint64_t offset;
    const tare__stack_symbol_frame *frames; /* n, from the outermost on */
} tare__stack_symbol;

/* Appends one block of 1 to TARE__SYMBOL_ROWS_MAX rows, sorted by object and offset. 0 or a status. */
int tare__stack_symbols_seal(const tare__stack_symbol *rows, uint32_t n, tare__squeezer *squeezer, tare__text *out);
typedef void tare__stack_symbols_sink(void *context, const tare__stack_symbol *row);
/* A whole SYMBOLS block: numbers of functions are in range, but may be unknown. 0, TARE_E_INPUT or TARE_E_MEMORY. */
int tare__stack_symbols_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                       tare__stack_symbols_sink *sink, void *context);

/* ---- reading ---------------------------------------------------------------------------------------------- */
typedef struct tare__stacks_sink {
    void (*function)(void *context, uint32_t number, const tare__stack_function *function);
    void (*thread)(void *context, uint32_t number, const tare__stack_thread *thread);
    void (*stack)(void *context, uint32_t number, uint32_t caller, uint32_t function, uint64_t line);
    void *context;
} tare__stacks_sink;
/* A whole STACKS block. Every number that a row refers to is below its own number or in the file's tables: the caller
 * checks the latter. 0, TARE_E_INPUT or TARE_E_MEMORY. */
int tare__stacks_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                      const tare__stacks_sink *sink);
/* A whole STACK_SAMPLES block into `samples` (space for TARE__STACK_SAMPLES_MAX); *n of them, in order of time.
 * 0, TARE_E_INPUT or TARE_E_MEMORY. */
int tare__stack_samples_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                             tare__stack_sample *samples, uint32_t *n);

#endif
