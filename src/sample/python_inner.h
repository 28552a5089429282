/* python_inner: what the files python*.c share. Layouts of the structs of CPython, the reader, its cache of code
 * objects, and reads of the memory of the process.
 * One thread owns a reader; the table of objects without an interpreter (python_find.c) is shared, with a lock.
 * Must not know when samples are taken. */
#ifndef TARE_SAMPLE_PYTHON_INNER_H
#define TARE_SAMPLE_PYTHON_INNER_H

#include <string.h>
#include <sys/uio.h>

#include "python.h"
#include "tare.h"

/* ---- memory of the process ------------------------------------------------------------------- */
/* process_vm_readv without flags; tests replace it. */
typedef ssize_t tare__python_read_function(pid_t pid, const struct iovec *local, unsigned long n_local,
                                           const struct iovec *remote, unsigned long n_remote);
extern tare__python_read_function *tare__python_read_memory;

/* ---- layouts: offsets in the structs of one version (python_offsets.c) ----------------------- */
#define TARE__PYTHON_NO UINT32_MAX /* the version has no such field */
#define TARE__PYTHON_STATE_BYTES 1024u
#define TARE__PYTHON_FRAME_BYTES 128u
#define TARE__PYTHON_CODE_BYTES 512u
#define TARE__PYTHON_GIL_BYTES 512u /* of struct _gil_runtime_state, at most */

typedef enum tare__python_table {
    TARE__PYTHON_LNOTAB,    /* 3.9 */
    TARE__PYTHON_LINETABLE, /* 3.10 */
    TARE__PYTHON_LOCATIONS, /* 3.11+ */
} tare__python_table;

typedef struct tare__python_layout {
    uint32_t minor;            /* of 3.MINOR */
    bool free_threaded;
    bool tagged;               /* the code pointer of a frame has flags in its low bits */
    tare__python_table table;
    uint32_t runtime_interpreters, runtime_gil;                                 /* _PyRuntimeState */
    uint32_t interp_next, interp_threads, interp_collecting, interp_gil;        /* PyInterpreterState; gil: a pointer */
    uint32_t gil_holder, gil_locked;                                            /* struct _gil_runtime_state */
    uint32_t state_next, state_interp, state_frame, state_ident, state_native;  /* PyThreadState */
    uint32_t state_chunk;                                                       /* followed by datastack_top */
    uint32_t cframe_current;   /* _PyCFrame: state_frame points to one, not to a frame */
    uint32_t frame_code, frame_previous, frame_instruction, frame_owner;        /* _PyInterpreterFrame, PyFrameObject */
    uint32_t frame_entry;      /* 3.11: is_entry */
    uint32_t frame_stack;      /* 3.11 to 3.13: stacktop, -1 while the frame itself runs */
    uint32_t frame_running;    /* 3.9: f_executing, 3.10: f_state */
    uint32_t code_name, code_qualname, code_file, code_first_line, code_lines, code_traceable;  /* PyCodeObject */
    uint32_t code_start;       /* co_code_adaptive; 3.9 and 3.10: co_code, a pointer */
    uint32_t text_state, text_length, text_ascii, text_compact; /* PyASCIIObject, PyCompactUnicodeObject */
    uint32_t text_kind_shift;  /* of the bit field `kind` in `state` */
    uint32_t bytes_size, bytes_data, object_type, object_size;
    uint32_t state_bytes, frame_bytes, code_bytes; /* how much of each is read */
} tare__python_layout;

/* NULL: a version that is not known (or publishes its offsets). */
const tare__python_layout *tare__python_layout_of(uint32_t minor);
#define TARE__PYTHON_OFFSETS_BYTES 1024u
/* From _Py_DebugOffsets (3.13+), every offset checked. TARE_E_INPUT: not valid, or a version that is not known. */
int tare__python_layout_read(const unsigned char *offsets, tare__python_layout *layout, uint32_t *version,
                             tare__error *error);

/* ---- where the interpreter is (python_find.c, python_elf.c) ---------------------------------- */
typedef struct tare__python_symbols { /* addresses in the process; 0: not found */
    uint64_t runtime, version, code_type;
} tare__python_symbols;
typedef struct tare__python_map {
    uint64_t start, end, offset;
    uint64_t device, inode;
    bool readable, writable, executable;
    const char *path; /* in the text of maps */
} tare__python_map;
/* The object's symbols from its image in memory at `base`. False: it has no dynamic symbol _PyRuntime, or could not be
 * read; *without: certainly the first. */
bool tare__python_elf_memory(pid_t pid, uint64_t base, tare__python_symbols *symbols, bool *without);
/* From its file: all symbols, or the section .PyRuntime. `fd` stays open. `base`: where its first byte is mapped. */
bool tare__python_elf_file(int fd, uint64_t base, tare__python_symbols *symbols);

/* ---- code objects (python_code.c, python_lines.c) -------------------------------------------- */
typedef struct tare__python_mark { /* differs where another code object is at the same address */
    uint64_t type, name, qualname, file, lines, start, size;
    uint32_t first_line;
} tare__python_mark;

typedef struct tare__python_line {
    uint32_t start; /* bytes from the start of the code */
    int32_t line;   /* 0: none */
} tare__python_line;

typedef struct tare__python_function { /* by content */
    tare__python_code shown;
    tare__python_line *lines;
    uint32_t n_lines;
    uint64_t hash;
} tare__python_function;

typedef struct tare__python_place { /* an address with a code object */
    uint64_t address;
    tare__python_mark mark;
    uint32_t code;      /* index + 1 in functions */
    int32_t traceable;  /* bytes from the start of the code */
    uint32_t code_bytes;
    uint32_t checked;   /* the round that found the mark unchanged */
    uint32_t used;      /* the last sample that has it */
    bool guessed, asked; /* in `guesses`; in the read of those that were not guessed */
} tare__python_place;

typedef struct tare__python_codes {
    tare__python_function **functions;
    size_t n_functions, functions_room;
    tare__index by_content;
    tare__python_place *places;
    size_t n_places, places_room;
    tare__index by_address;
    tare__arena *memory;
    size_t bytes; /* of texts and lines */
} tare__python_codes;

/* ---- the reader ------------------------------------------------------------------------------ */
typedef struct tare__python_region { /* a chunk of the data stack, or frames outside of it that are close together */
    uint64_t address;
    uint32_t bytes;         /* read of it */
    uint32_t next;          /* to be read of it from the next read on */
    uint32_t size;          /* it has */
    uint32_t first, second; /* where the two copies are in the buffer */
} tare__python_region;

typedef struct tare__python_regions {
    tare__python_region *at;
    size_t n, room;
} tare__python_regions;

typedef struct tare__python_addresses {
    uint64_t *at;
    size_t n, room;
} tare__python_addresses;

typedef struct tare__python_raw { /* a frame before its code is known */
    uint64_t code, instruction;
    bool generator;
} tare__python_raw;

#define TARE__PYTHON_INNER 8u
typedef struct tare__python_inner { /* one of the innermost frames, as it has to stay while it is checked again */
    uint64_t address, code, previous, instruction;
    bool calling, entered, outside;
    int owner;
} tare__python_inner;

typedef enum tare__python_progress {
    TARE__PYTHON_WAITS,   /* to be read (again) */
    TARE__PYTHON_CHANGED, /* to be read again, since it changed while it was read */
    TARE__PYTHON_WALKED,  /* frames are in `raw` */
    TARE__PYTHON_DONE,
    TARE__PYTHON_TORN,
} tare__python_progress;

typedef struct tare__python_state { /* a PyThreadState */
    uint64_t address, ident, native;
    uint32_t interp;
    pid_t tid;
    bool starting;                 /* its thread does not run yet: ident and native are of the one that starts it */
    bool renamed;                  /* they have changed since it was listed */
    uint64_t cframe;               /* of the last sample */
    tare__python_regions chunks;   /* of its data stack, the newest first */
    tare__python_regions frames;   /* outside of it, by address */
    tare__python_addresses outside; /* the frames in them */
    uint32_t at_state, at_cframe, at_end; /* in the buffer */
    bool planned;
    tare__python_progress progress;
    uint32_t waits, changes;       /* reads that did not do, in this sample */
    tare__python_raw *raw;         /* innermost ones, then a ring of the outermost ones */
    uint32_t depth;
    tare__python_inner inner[TARE__PYTHON_INNER];
    uint32_t n_inner;
    bool scattered;                /* some of them are not in the data stack */
    tare__python_regions again;    /* the ranges that have them */
    tare__python_frame *shown;
    uint32_t n_shown;
    uint16_t *evaluation;          /* of each in `raw`, up to TARE__PYTHON_INNERMOST; NULL: not wanted */
    uint32_t evaluations;          /* 0: unknown */
} tare__python_state;

typedef struct tare__python_interp {
    uint64_t address, gil;
    uint64_t holder, last_holder; /* when a read began, and when it ended; 0: none */
    bool collecting;
    uint32_t at_next, at_threads, at_collecting, at_gil, at_last; /* in the buffer */
} tare__python_interp;

typedef struct tare__python_guess { /* a code object that the stacks of this sample probably have */
    uint64_t address;
    uint32_t region, offset;
} tare__python_guess;

#define TARE__PYTHON_INTERPS_MAX 64u
#define TARE__PYTHON_VECTORS_MAX 1000u
struct tare__python {
    pid_t pid, own_pid;       /* in the namespace of this process, and in its own */
    bool other_namespace;
    int memory_fd;            /* /proc/PID/mem of this program: ends with it */
    char version[32], object[256];
    tare__python_layout layout;
    tare__python_symbols symbols;
    tare__python_interp interps[TARE__PYTHON_INTERPS_MAX];
    uint32_t n_interps;
    tare__python_state **states;
    size_t n_states, states_room;
    tare__python_codes codes;
    tare__python_thread *threads;
    size_t threads_room;
    tare__python_frame *joined; /* stacks of threads that have entered several interpreters */
    size_t joined_room;
    tare__python_cost cost;
    uint32_t sample, round;   /* numbers, from 1 */
    uint64_t calls_before;    /* cost.calls when the sample began */
    uint32_t at_runtime, at_gil;
    bool list_changed, loaded;
    bool wants_evaluations;
    tare__python_guess *guesses;
    size_t n_guesses, guesses_room;
    tare__python_regions guessed; /* the ranges that have them */
    tare__python_addresses asked, fresh;
    int cpu;                  /* where the next planned read is made; -1: anywhere */
    bool uses_reader;         /* of python_cpu.c */
    uint32_t barred;          /* until this sample: it did not work */
    bool may_skip;            /* this sample, when its CPU comes late */
    uint32_t skipped;         /* in a row */
    uint32_t unsteady;        /* samples that are read where the program runs */
    uint32_t searches;        /* samples in which one read may not do */
    uint32_t spell, calm;     /* how many come next; samples since the last ones */
    int32_t tid_offset;       /* of the thread id in struct pthread; -1: not known yet, -2: unknown */
    unsigned tid_tries;
    /* The planned read. */
    struct iovec vectors[TARE__PYTHON_VECTORS_MAX + 24];
    uint32_t n_vectors;
    unsigned char *buffer;
    size_t buffer_room, planned_bytes, valid_bytes;
};

/* ---- reads (python_memory.c) ----------------------------------------------------------------- */
#define TARE__PYTHON_BUFFER_MAX (64u << 20)
bool tare__python_get(pid_t pid, uint64_t address, void *out, size_t bytes); /* all of it, or false */
bool tare__python_read(tare__python *python, uint64_t address, void *out, size_t bytes); /* counted */
/* Whether this sample may read more of what it did not plan. A process can make its stacks as scattered as it likes:
 * what is left is read with the next samples, and nothing that waits for the reader waits long. */
bool tare__python_may_read(const tare__python *python);
void tare__python_plan_clear(tare__python *python);
/* Adds a range; where it will be in the buffer, or TARE__PYTHON_NO (too much). */
uint32_t tare__python_plan(tare__python *python, uint64_t address, size_t bytes);
/* One system call for all ranges. False: nothing could be read, errno set. */
bool tare__python_plan_read(tare__python *python);
static inline const unsigned char *tare__python_planned(const tare__python *python, uint32_t at, size_t bytes)
{
    return at != TARE__PYTHON_NO && at + bytes <= python->valid_bytes ? python->buffer + at : NULL;
}
static inline uint64_t tare__python_u64(const unsigned char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}
static inline uint32_t tare__python_u32(const unsigned char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}
/* Sorts addresses of objects of `bytes`, and makes ranges of those that are close together. False: no memory. */
bool tare__python_merge(tare__python_addresses *addresses, uint32_t bytes, tare__python_regions *out);
const tare__python_region *tare__python_region_of(const tare__python_regions *regions, uint64_t address, size_t bytes);
bool tare__python_add(tare__python_addresses *addresses, uint64_t address);
bool tare__python_alive(const tare__python *python); /* it still runs the program that was opened */

/* ---- python_cpu.c ---------------------------------------------------------------------------- */
/* The CPU that runs Python code of the process; -1: none does, or it is not known. */
int tare__python_cpu_of(tare__python *python);
/* Calls the function on this CPU. 0; TARE_E_BUSY: it was not called, since the CPU came late; TARE_E_SYSTEM: it cannot
 * be called there (no thread, another cpuset, the CPU is not given away). */
int tare__python_cpu_run(tare__python *python, int cpu, void (*function)(void *context), void *context);
void tare__python_cpu_close(tare__python *python);
/* The thread state that holds the lock; 0: none. */
uint64_t tare__python_holder_now(tare__python *python, const tare__python_interp *interp);

/* ---- python_code.c --------------------------------------------------------------------------- */
void tare__python_codes_free(tare__python_codes *codes);
tare__python_place *tare__python_place_of(const tare__python *python, uint64_t address); /* NULL: not in the cache */
/* Whether `bytes` (code_bytes of the layout) are those of the code object in the cache. */
bool tare__python_place_is(const tare__python *python, const tare__python_place *place, const unsigned char *bytes);
/* Reads it into the cache. False: it is no code object, or changed meanwhile. */
bool tare__python_place_load(tare__python *python, uint64_t address);
int32_t tare__python_line_of(const tare__python_function *function, uint32_t offset);

/* ---- python_guess.c ------------------------------------------------------------------------------ */
void tare__python_guess_plan(tare__python *python);  /* the code objects that the stacks probably have */
void tare__python_guess_check(tare__python *python); /* after the read */
void tare__python_ask(tare__python *python, uint64_t address); /* one that a stack has */
void tare__python_ask_check(tare__python *python);   /* reads those that were not guessed */
void tare__python_guess_next(tare__python *python);  /* after a sample */

/* ---- python_lines.c: pure functions ---------------------------------------------------------- */
/* Sorted by start; NULL: no memory. */
tare__python_line *tare__python_lines(tare__arena *memory, tare__python_table table, const unsigned char *bytes,
                                      size_t n, uint32_t first_line, uint32_t code_bytes, uint32_t *n_lines);
/* A compact Unicode object's characters (of 1, 2 or 4 bytes) as UTF-8. NULL: no memory. */
char *tare__python_utf8(tare__arena *memory, const unsigned char *bytes, size_t characters, unsigned kind, bool ascii);

/* ---- python_frames.c, python_verify.c, python_threads.c -------------------------------------- */
/* Adds the ranges of a thread to the planned read: false if they do not fit into it. */
bool tare__python_state_plan(tare__python *python, tare__python_state *state);
/* Follows the frames in the planned read into `raw`, and sets `progress`. */
void tare__python_state_walk(tare__python *python, tare__python_state *state);
#define TARE__PYTHON_INNERMOST (TARE__PYTHON_DEPTH_MAX / 4 * 3)
#define TARE__PYTHON_OUTERMOST (TARE__PYTHON_DEPTH_MAX - TARE__PYTHON_INNERMOST)
/* Whether the innermost frames are as they were, in this copy of them. */
bool tare__python_frame_is(const tare__python_layout *layout, const tare__python_inner *frame,
                           const unsigned char *bytes);
/* The threads that may run Python code while they are read, and whose frames are scattered: their innermost frames are
 * read several times more. Those that change are CHANGED. */
void tare__python_verify(tare__python *python);
void tare__python_state_free(tare__python_state *state);
/* python_evaluations.c: which call of the evaluation loop runs each frame in `raw`. */
void tare__python_state_evaluations(tare__python *python, tare__python_state *state);
/* Reads the list of thread states anew. False: no memory, or it could not be read. */
bool tare__python_list(tare__python *python);
int tare__python_find(tare__python *python, tare__error *error); /* symbols, layout, version, object; as open */
/* The process id in its own namespace. */
void tare__python_namespace(tare__python *python);

#endif
