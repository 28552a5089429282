/* native: native frames as rows of a trace, on their own or between the frames of Python code that called them.
 * One thread owns it.
 * Must not know when stacks are sampled. */
#define _GNU_SOURCE
#include "native.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "elf_image.h"

#define STACK_BYTES 32768u
#define EXACT_MAX (TARE__STACKS_MAX / 4) /* stacks; then offsets of innermost frames are rounded: there is one for each
                                          * instruction that was sampled */
#define ROUND 16u
#define RANGES_MAX 8u
#define SYMBOLS_BYTES_MAX ((size_t)256 << 20)

typedef struct code_range { /* virtual addresses */
    uint64_t start, end;
} code_range;

typedef struct object { /* by its number in the tables of the unwinder */
    uint32_t function; /* in the file; 0: not yet */
    uint8_t class;     /* tare__code_class */
    bool known;
    uint8_t n_evals;
    code_range evals[RANGES_MAX]; /* the evaluation loop and its unlikely parts */
} object;

struct tare__native {
    tare__stacks *stacks;
    tare__native_events *events;
    tare__unwind *unwind;
    object *objects;
    size_t object_room;
    uint32_t unknown, kernel, gap; /* functions in the file; 0: not yet */
    tare__native_counts counts;
    tare__unwind_frame frames[TARE__NATIVE_DEPTH_MAX];
    uint8_t classes[TARE__NATIVE_DEPTH_MAX];
    int32_t order[TARE__NATIVE_DEPTH_MAX + TARE__PYTHON_DEPTH_MAX + 1];
    unsigned char stack[STACK_BYTES];
};

struct tare__native_process {
    tare__native *native;
    pid_t pid;
    tare__unwind_process *unwind;
};

tare__native *tare__native_new(tare__stacks *stacks, tare__native_events *events)
{
    tare__native *native = calloc(1, sizeof *native);
    tare__unwind *unwind = tare__unwind_new();
    if (!native || !unwind) {
        tare__unwind_free(unwind);
        tare__native_events_close(events);
        free(native);
        return NULL;
    }
    native->stacks = stacks;
    native->events = events;
    native->unwind = unwind;
    return native;
}

void tare__native_free(tare__native *native)
{
    if (!native)
        return;
    tare__native_events_close(native->events);
    tare__unwind_free(native->unwind);
    free(native->objects);
    free(native);
}

tare__native_events *tare__native_events_of(const tare__native *native)
{
    return native->events;
}

tare__native_counts tare__native_counts_of(const tare__native *native)
{
    return native->counts;
}

tare__native_process *tare__native_process_new(tare__native *native, pid_t pid)
{
    tare__native_process *process = calloc(1, sizeof *process);
    if (process && !(process->unwind = tare__unwind_process_new(native->unwind, pid))) {
        free(process);
        return NULL;
    }
    if (process) {
        process->native = native;
        process->pid = pid;
    }
    return process;
}

void tare__native_process_free(tare__native_process *process)
{
    if (!process)
        return;
    tare__unwind_process_free(process->unwind);
    free(process);
}

void tare__native_process_changed(tare__native_process *process)
{
    tare__unwind_process_changed(process->unwind);
}

const unsigned char *tare__native_read(tare__native_process *process, uint64_t address, size_t *bytes)
{
    tare__native *native = process->native;
    struct iovec local = {native->stack, sizeof native->stack};
    struct iovec remote = {(void *)(uintptr_t)address, sizeof native->stack}; // NOLINT: an address there
    ssize_t got = process_vm_readv(process->pid, &local, 1, &remote, 1, 0);
    *bytes = got > 0 ? (size_t)got : 0;
    return native->stack;
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */
static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static const char eval_name[] = "_PyEval_EvalFrameDefault";

static void find_evals(const tare__elf *elf, const tare__elf_sections *sections, const char *table, const char *texts,
                       object *object)
{
    const Elf64_Shdr *symbol_part = tare__elf_section(sections, table), *text_part = tare__elf_section(sections, texts);
    if (!symbol_part || !text_part)
        return;
    Elf64_Sym *symbols = tare__elf_content(elf, symbol_part, SYMBOLS_BYTES_MAX);
    char *text = tare__elf_content(elf, text_part, SYMBOLS_BYTES_MAX);
    size_t n = symbols && text ? symbol_part->sh_size / sizeof *symbols : 0;
    for (size_t i = 0; i < n && object->n_evals < RANGES_MAX; i++) {
        size_t at = symbols[i].st_name, bytes = sizeof eval_name - 1;
        if (!symbols[i].st_size || at >= text_part->sh_size || text_part->sh_size - at <= bytes ||
            memcmp(text + at, eval_name, bytes) != 0 || (text[at + bytes] && text[at + bytes] != '.'))
            continue;
        object->evals[object->n_evals++] = (code_range){symbols[i].st_value, symbols[i].st_value + symbols[i].st_size};
    }
    free(symbols);
    free(text);
}

static void read_evals(pid_t pid, const char *path, object *object)
{
    char whole[4200];
    snprintf(whole, sizeof whole, "/proc/%d/root%s", (int)pid, path);
    int fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    tare__elf elf;
    tare__elf_sections sections;
    if (fd < 0)
        return;
    if (tare__elf_file(&elf, fd) && tare__elf_sections_read(&elf, &sections)) {
        find_evals(&elf, &sections, ".symtab", ".strtab", object);
        if (!object->n_evals)
            find_evals(&elf, &sections, ".dynsym", ".dynstr", object);
        tare__elf_sections_free(&sections);
    }
    close(fd);
}

static void classify(const tare__native_process *process, const tare__python *python, const char *path, object *object)
{
    const char *name = tare__base_name(path);
    bool interpreter = python && strncmp(path, tare__python_object(python), 255) == 0;
    object->known = true;
    if (interpreter || begins(name, "libpython") || begins(name, "python")) {
        object->class = TARE__CODE_PYTHON;
        read_evals(process->pid, path, object);
    } else if (begins(name, "libc.so") || begins(name, "libc-") || begins(name, "libpthread") ||
               begins(name, "ld-linux") || begins(name, "ld-musl") || begins(name, "ld-2")) {
        object->class = TARE__CODE_SYSTEM;
    }
}

static object *object_of(tare__native *native, uint32_t number)
{
    if (!tare__array_fit_zeroed(&native->objects, &native->object_room, (size_t)number + 1, sizeof *native->objects))
        return NULL;
    return &native->objects[number];
}

static uint8_t class_of(const tare__native_process *process, const tare__python *python,
                        const tare__unwind_frame *frame)
{
    tare__native *native = process->native;
    const tare__unwind_object *about = tare__unwind_object_at(native->unwind, frame->object);
    object *object = about ? object_of(native, frame->object) : NULL;
    if (!object)
        return TARE__CODE_OTHER;
    if (!object->known)
        classify(process, python, about->path, object);
    for (unsigned i = 0; i < object->n_evals; i++)
        if (frame->offset >= object->evals[i].start && frame->offset < object->evals[i].end)
            return TARE__CODE_EVAL;
    return object->class;
}

/* ---- rows of the file ------------------------------------------------------------------------------------------- */
static uint32_t add_function(tare__native *native, uint32_t kind, const char *name, const char *file)
{
    static const char deleted[] = " (deleted)";
    size_t bytes = strlen(file), end = sizeof deleted - 1;
    if (bytes > end && strcmp(file + bytes - end, deleted) == 0)
        bytes -= end;
    tare__stack_function function = {.kind = kind, .name = name, .file = file, .name_bytes = (uint32_t)strlen(name),
                                     .file_bytes = (uint32_t)bytes};
    return tare__stacks_function(native->stacks, &function);
}

static uint32_t push_kernel(tare__native *native, uint32_t stack, const tare__native_copy *copy)
{
    if (!native->kernel)
        native->kernel = add_function(native, TARE__FRAME_KERNEL, "kernel", "");
    for (uint32_t i = copy->n_kernel; i > 0 && native->kernel; i--) {
        uint32_t pushed = tare__stacks_push(native->stacks, stack, native->kernel, copy->kernel[i - 1]);
        if (!pushed)
            break;
        stack = pushed;
    }
    return stack;
}

static uint32_t push_frame(tare__native *native, uint32_t stack, const tare__unwind_frame *frame, bool innermost)
{
    const tare__unwind_object *about = tare__unwind_object_at(native->unwind, frame->object);
    object *object = about ? object_of(native, frame->object) : NULL;
    if (!object) { /* code that was made by the program, without a file */
        if (!native->unknown)
            native->unknown = add_function(native, TARE__FRAME_NATIVE, "(code without a file)", "");
        return native->unknown ? tare__stacks_push(native->stacks, stack, native->unknown, 0) : 0;
    }
    if (!object->function)
        object->function = add_function(native, TARE__FRAME_NATIVE, about->build_id, about->path);
    bool rounded = innermost && tare__stacks_count(native->stacks) > EXACT_MAX;
    return object->function
               ? tare__stacks_push(native->stacks, stack, object->function,
                                   frame->offset & ~(uint64_t)(rounded ? ROUND - 1u : 0))
               : 0;
}

static uint32_t push_gap(tare__native *native, uint32_t stack)
{
    if (!native->gap)
        native->gap = add_function(native, TARE__FRAME_NOTE, "(frames omitted)", "");
    return native->gap ? tare__stacks_push(native->stacks, stack, native->gap, 0) : 0;
}

static uint32_t push_all(tare__native *native, const tare__native_copy *copy, size_t n, bool whole)
{
    uint32_t stack = whole || !n ? 0 : push_gap(native, 0); /* else a function would seem to have no caller */
    for (size_t i = n; i > 0; i--) {
        uint32_t pushed = push_frame(native, stack, &native->frames[i - 1], i == 1);
        if (!pushed)
            return stack;
        stack = pushed;
    }
    return push_kernel(native, stack, copy);
}

/* ---- stacks ----------------------------------------------------------------------------------------------------- */
static size_t unwind(tare__native_process *process, const tare__native_copy *copy, bool *whole)
{
    tare__native *native = process->native;
    *whole = false;
    size_t n = copy->regs.known ? tare__unwind_stack(process->unwind, &copy->regs, copy->stack,
                                                     copy->regs.value[TARE__NATIVE_SP], copy->bytes, native->frames,
                                                     TARE__NATIVE_DEPTH_MAX, whole)
                                : 0;
    native->counts.stacks++;
    native->counts.partial += !*whole;
    return n;
}

static uint32_t push_merged(tare__native *native, const tare__native_copy *copy, size_t n, int32_t line,
                            tare__native_push *push, void *context)
{
    uint32_t stack = 0;
    for (size_t i = n; i > 0; i--) {
        int32_t frame = native->order[i - 1];
        uint32_t pushed = frame == TARE__NATIVE_GAP ? push_gap(native, stack)
                          : frame < 0               ? push(context, stack, (uint32_t)(-1 - frame),
                                                             frame == -1 ? line : 0)
                                                    : push_frame(native, stack, &native->frames[frame], frame == 0);
        if (!pushed)
            return stack;
        stack = pushed;
    }
    return push_kernel(native, stack, copy);
}

uint32_t tare__native_stack(tare__native_process *process, const tare__native_copy *copy, const tare__python *python,
                            const tare__python_thread *thread, tare__native_push *push, void *context)
{
    tare__native *native = process->native;
    bool whole;
    size_t n = unwind(process, copy, &whole), eval = 0;
    int32_t line = 0;
    for (size_t i = 0; i < n && python; i++)
        native->classes[i] = class_of(process, python, &native->frames[i]);
    if (!thread || (!thread->n && !thread->torn && !thread->evaluations))
        return push_all(native, copy, n, whole);
    while (eval < n && native->classes[eval] != TARE__CODE_EVAL)
        eval++;
    const tare__merging merging = {.classes = native->classes, .n = n, .whole = whole, .python = thread->frames,
                                   .n_python = thread->n, .evaluations = thread->evaluations};
    if (thread->torn || thread->cut || (eval == n && whole) ||
        !tare__native_matches(copy, eval < n ? native->frames[eval].cfa : 0, python, thread, &line)) {
        native->counts.apart++;
        return 0;
    }
    size_t merged = tare__native_merge(&merging, native->order);
    native->counts.merged += merged > 0;
    native->counts.apart += !merged;
    return merged ? push_merged(native, copy, merged, line, push, context) : 0;
}
