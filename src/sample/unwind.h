/* unwind: native call stacks of another process, from a copy of a thread's registers and of its stack, by the unwind
 * tables (.eh_frame) of the objects that are mapped in it. x86-64 and aarch64.
 * One thread owns the tables and all processes that use them.
 * Must not read the memory of a process while it unwinds, except ELF headers; must not trust any object's file. */
#ifndef TARE_SAMPLE_UNWIND_H
#define TARE_SAMPLE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- a stack -------------------------------------------------------------------------------------------- */
#define TARE__UNWIND_REGS 33u /* by DWARF number; 16 (x86-64) or 32 (aarch64) is the instruction pointer */
typedef struct tare__unwind_regs {
    uint64_t value[TARE__UNWIND_REGS];
    uint64_t known; /* a bit per register */
} tare__unwind_regs;

typedef struct tare__unwind_frame {
    uint64_t ip, cfa;  /* of callers, ip is the return address */
    uint32_t object;   /* number from 1; 0: no file (JIT, unknown) */
    uint64_t offset;   /* in the object's file as it is linked: the virtual address of its ELF image. Of callers, of a
                        * byte of the call (ip - 1), so that it is in the calling function and line */
} tare__unwind_frame;

typedef struct tare__unwind tare__unwind; /* tables of objects, shared by processes: one per build id (or
                                           * device, inode and time of change) */
typedef struct tare__unwind_process tare__unwind_process; /* the mappings of one process */

tare__unwind *tare__unwind_new(void); /* NULL: no memory */
void tare__unwind_free(tare__unwind *unwind); /* after its processes; NULL is allowed */
tare__unwind_process *tare__unwind_process_new(tare__unwind *unwind, pid_t pid); /* NULL: no memory */
void tare__unwind_process_free(tare__unwind_process *process); /* NULL is allowed */
/* Its mappings are others now (a library was loaded or unloaded, the program was replaced). Without this call a library
 * that took the place of another one is noticed after two seconds. */
void tare__unwind_process_changed(tare__unwind_process *process);

/* Frames, innermost first; returns how many. *whole: the outermost one was reached (else the copy or a rule was
 * missing, or `max` was). `stack` is a copy of `bytes` bytes of memory at `stack_address`. Reads /proc/PID/maps again
 * when an address is in no known mapping (rate limited). */
size_t tare__unwind_stack(tare__unwind_process *process, const tare__unwind_regs *regs, const unsigned char *stack,
                          uint64_t stack_address, size_t bytes, tare__unwind_frame *frames, size_t max, bool *whole);

/* ---- objects -------------------------------------------------------------------------------------------- */
#define TARE__UNWIND_VDSO "[vdso]" /* the path of the kernel's code in each process */
typedef struct tare__unwind_object {
    const char *path;     /* as in /proc/PID/maps */
    const char *build_id; /* hex, or "" */
} tare__unwind_object;

/* Valid until tare__unwind_free. NULL: no such object. */
const tare__unwind_object *tare__unwind_object_at(const tare__unwind *unwind, uint32_t object);

#endif
