/* python: call stacks of a Python process, read from outside with process_vm_readv while it runs on.
 * One thread owns a reader. The process is never paused or changed, and nothing read from it is trusted.
 * Must not know when samples are taken or where they go. */
#ifndef TARE_SAMPLE_PYTHON_H
#define TARE_SAMPLE_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

#define TARE__PYTHON_DEPTH_MAX 1024u /* frames of a thread; outermost and innermost ones are kept */
#define TARE__PYTHON_THREADS_MAX 4096u

typedef struct tare__python tare__python;

/* 0; TARE_E_BUSY while the process may still become a Python process (it has not loaded or initialized an interpreter
 * yet): try again later; TARE_E_INPUT: not Python; TARE_E_VERSION: a Python that is not supported; TARE_E_PERMISSION;
 * TARE_E_SYSTEM: gone; with a message for the user in `error`. */
int tare__python_open(pid_t pid, tare__python **python, tare__error *error);
void tare__python_close(tare__python *python); /* NULL is allowed */
/* "3.11.7", and where it was found: the executable or a libpython. */
const char *tare__python_version(const tare__python *python);
const char *tare__python_object(const tare__python *python);

/* A function: valid until close. The same number for the same code object for as long as it exists. */
typedef struct tare__python_code {
    const char *name;    /* qualified name where the version has it (3.11+), else the name; UTF-8 */
    const char *file;
    uint32_t first_line;
} tare__python_code;
const tare__python_code *tare__python_code_at(const tare__python *python, uint32_t code);
uint32_t tare__python_code_count(const tare__python *python); /* the largest number */

typedef struct tare__python_frame {
    uint32_t code; /* from 1 */
    int32_t line;  /* 0: unknown */
    uint32_t evaluation; /* the call of the evaluation loop that runs it: 0 is the innermost one */
} tare__python_frame;

typedef struct tare__python_thread {
    uint64_t ident;     /* pthread_t */
    pid_t tid;          /* in the namespace of this process; 0: unknown */
    bool main;
    bool has_gil;
    bool in_gc;         /* a garbage collection runs on it */
    bool torn;          /* it changed while it was read: no frames */
    bool ran;           /* it ran Python code while it was read: on a CPU; false: not known */
    bool cut;           /* deeper than TARE__PYTHON_DEPTH_MAX: frames in the middle are missing */
    uint32_t depth;     /* before anything was cut */
    uint32_t n;         /* frames, innermost first */
    const tare__python_frame *frames; /* valid until the next call */
    uint32_t evaluations; /* calls of the evaluation loop; only if wanted */
    uint64_t current;     /* address of the innermost frame; 0: unknown, and so is the rest */
    uint64_t code, code_end, instruction; /* addresses of its bytecode, and of what it runs */
} tare__python_thread;

/* All threads of the process, each with its frames in all interpreters. 0; TARE_E_BUSY: not now, skip this sample;
 * TARE_E_SYSTEM: it is gone or has become another program (exec): close it; TARE_E_PERMISSION. */
int tare__python_sample(tare__python *python, const tare__python_thread **threads, uint32_t *n, tare__error *error);

/* From now on, `evaluations` and what follows are set. */
void tare__python_want_evaluations(tare__python *python);
/* One thread of those that the last call of the function above listed. *thread NULL: it runs no Python code. */
int tare__python_sample_thread(tare__python *python, pid_t tid, const tare__python_thread **thread, tare__error *error);
/* The line at this address of the bytecode of a thread's innermost frame; 0: none. */
int32_t tare__python_line_at(const tare__python *python, const tare__python_thread *thread, uint64_t instruction);

/* Whether a thread that waits on the futex at this address waits for the interpreter lock. */
bool tare__python_is_gil(const tare__python *python, uint64_t address);

typedef struct tare__python_cost {
    uint64_t samples, torn; /* threads read, and those discarded */
    uint64_t calls;         /* system calls */
} tare__python_cost;
tare__python_cost tare__python_cost_of(const tare__python *python);

#endif
