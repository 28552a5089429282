/* native: native frames as rows of a trace, on their own or between the frames of Python code that called them.
 * One thread owns it.
 * Must not know when stacks are sampled. */
#ifndef TARE_SAMPLE_NATIVE_H
#define TARE_SAMPLE_NATIVE_H

#include "format/format.h"
#include "native_events.h"
#include "python.h"
#include "unwind.h"

#define TARE__NATIVE_DEPTH_MAX 1024u
#if defined(__x86_64__) /* DWARF numbers */
#define TARE__NATIVE_IP 16
#define TARE__NATIVE_SP 7
#else
#define TARE__NATIVE_IP 32
#define TARE__NATIVE_SP 31
#endif

typedef struct tare__native tare__native;
typedef struct tare__native_process tare__native_process;
/* `events`: NULL: only of threads that wait. Frees it in the end, even if there is no memory (NULL). */
tare__native *tare__native_new(tare__stacks *stacks, tare__native_events *events);
void tare__native_free(tare__native *native); /* after its processes; NULL is allowed */
tare__native_events *tare__native_events_of(const tare__native *native);
tare__native_process *tare__native_process_new(tare__native *native, pid_t pid); /* NULL: no memory */
void tare__native_process_free(tare__native_process *process); /* NULL is allowed */
/* It runs another program now. */
void tare__native_process_changed(tare__native_process *process);

typedef struct tare__native_copy { /* of a thread */
    tare__unwind_regs regs;
    const unsigned char *stack; /* from the stack pointer on */
    size_t bytes;
    const uint64_t *kernel;     /* return addresses, innermost first */
    uint32_t n_kernel;
} tare__native_copy;

/* Pushes a frame of the Python thread (0: the innermost): the new stack, 0: refused. `line` replaces the frame's, if
 * it is not 0. */
typedef uint32_t tare__native_push(void *context, uint32_t stack, uint32_t frame, int32_t line);

/* The number of the stack; 0: no frames, or with a Python thread (NULL: none) that they do not belong together. */
uint32_t tare__native_stack(tare__native_process *process, const tare__native_copy *copy, const tare__python *python,
                            const tare__python_thread *thread, tare__native_push *push, void *context);
/* Memory of a thread's stack, as much as can be read: valid until the next call. */
const unsigned char *tare__native_read(tare__native_process *process, uint64_t address, size_t *bytes);

typedef struct tare__native_counts {
    uint64_t stacks, merged;
    uint64_t apart;   /* stacks of Python code whose native frames were of another moment */
    uint64_t partial; /* the outermost frames are unknown */
} tare__native_counts;
tare__native_counts tare__native_counts_of(const tare__native *native);

/* ---- native_merge.c: pure functions ---------------------------------------------------------------------------- */
typedef enum tare__code_class {
    TARE__CODE_OTHER,
    TARE__CODE_SYSTEM, /* the C library and the loader */
    TARE__CODE_PYTHON, /* the interpreter, … */
    TARE__CODE_EVAL    /* … its evaluation loop */
} tare__code_class;

typedef struct tare__merging {
    const uint8_t *classes; /* of the native frames, innermost first */
    size_t n;
    bool whole;
    const tare__python_frame *python;
    uint32_t n_python, evaluations;
} tare__merging;

#define TARE__NATIVE_GAP INT32_MIN /* frames that are not known */
/* The frames of both, innermost first: i for a native one, -1 - i for one of Python code. How many: at most
 * n + n_python + 1. 0: they do not belong together. */
size_t tare__native_merge(const tare__merging *merging, int32_t *out);
/* Whether the registers and the stack of the innermost evaluation are those of this Python thread's innermost frame.
 * *line: where it was at that moment, if not at the line of the frame; else 0. */
bool tare__native_matches(const tare__native_copy *copy, uint64_t end, const tare__python *python,
                          const tare__python_thread *thread, int32_t *line);

#endif
