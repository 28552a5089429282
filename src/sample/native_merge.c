/* native_merge: the native frames of a thread between the frames of its Python code.
 * Any thread: no state.
 * Must not know objects, or how frames are read.
 *
 * Each frame of the evaluation loop stands for the Python frames that it runs. What it calls, up to the next frame of
 * the loop, was called by the innermost of them. */
#include <string.h>

#include "native.h"

#define NEXT_BYTES 48u /* an instruction with its caches */

/* ---- order ------------------------------------------------------------------------------------------------------ */
typedef struct output {
    int32_t *at;
    size_t n;
} output;

static void put_native(output *out, size_t frame)
{
    out->at[out->n++] = (int32_t)frame;
}

/* The functions of the interpreter that lead to a library are not shown; those of which it consists are. */
static void put_leaf(const tare__merging *from, size_t end, output *out)
{
    size_t shown = end;
    for (size_t i = 0; i < end; i++)
        if (from->classes[i] == TARE__CODE_OTHER)
            shown = i + 1;
    for (size_t i = 0; i < shown; i++)
        put_native(out, i);
}

/* Between two evaluations. */
static void put_middle(const tare__merging *from, size_t start, size_t end, output *out)
{
    bool others = false;
    for (size_t i = start; i < end; i++)
        others = others || from->classes[i] == TARE__CODE_OTHER;
    for (size_t i = start; i < end && others; i++)
        if (from->classes[i] != TARE__CODE_PYTHON)
            put_native(out, i);
}

/* What called the interpreter: the start of a program or thread is not shown, a program that embeds Python is. */
static void put_outer(const tare__merging *from, size_t start, output *out)
{
    for (size_t i = start; i < from->n; i++)
        if (from->classes[i] == TARE__CODE_OTHER)
            put_native(out, i);
}

/* Those of one evaluation. */
static uint32_t put_python(const tare__merging *from, uint32_t first, uint32_t evaluation, output *out)
{
    uint32_t i = first;
    for (; i < from->n_python && from->python[i].evaluation == evaluation; i++)
        out->at[out->n++] = -1 - (int32_t)i;
    return i;
}

static size_t next_evaluation(const tare__merging *from, size_t start)
{
    while (start < from->n && from->classes[start] != TARE__CODE_EVAL)
        start++;
    return start;
}

/* Code without unwind tables was called by the innermost frame, or by functions that are not known. */
static bool only_others(const tare__merging *from)
{
    for (size_t i = 0; i < from->n; i++)
        if (from->classes[i] == TARE__CODE_PYTHON)
            return false;
    return from->n > 0;
}

size_t tare__native_merge(const tare__merging *from, int32_t *at)
{
    output out = {at, 0};
    uint32_t found = 0, python = 0;
    for (size_t i = 0; i < from->n; i++)
        found += from->classes[i] == TARE__CODE_EVAL;
    if (found > from->evaluations || (found < from->evaluations && from->whole) ||
        (!found && (!from->evaluations || !only_others(from))))
        return 0;
    size_t end = next_evaluation(from, 0);
    put_leaf(from, end, &out);
    if (!found)
        out.at[out.n++] = TARE__NATIVE_GAP;
    for (uint32_t evaluation = 0; evaluation < found; evaluation++) {
        size_t start = end + 1;
        python = put_python(from, python, evaluation, &out);
        end = next_evaluation(from, start);
        if (end < from->n)
            put_middle(from, start, end, &out);
        else if (evaluation + 1 == from->evaluations)
            put_outer(from, start, &out);
    }
    for (; python < from->n_python; python++) /* beyond the copy of the stack */
        out.at[out.n++] = -1 - (int32_t)python;
    return out.n;
}

/* ---- one moment ------------------------------------------------------------------------------------------------- */
typedef struct found {
    const tare__python_thread *thread;
    bool frame, exact, several;
    uint64_t next; /* a next instruction; 0: none */
} found;

/* The loop has the address of its frame and the next instruction in registers or in its stack. */
static void look_at(found *found, uint64_t word)
{
    const tare__python_thread *thread = found->thread;
    found->frame = found->frame || word == thread->current;
    if (word <= thread->code || word > thread->code_end)
        return;
    found->exact = found->exact || (word >= thread->instruction && word <= thread->instruction + NEXT_BYTES);
    found->several = found->several || (found->next && found->next != word);
    found->next = word;
}

/* `end` 0: the stack of the loop was not found, it is somewhere in the copy. */
bool tare__native_matches(const tare__native_copy *copy, uint64_t end, const tare__python *python,
                          const tare__python_thread *thread, int32_t *line)
{
    uint64_t sp = copy->regs.value[TARE__NATIVE_SP];
    size_t bytes = end > sp && end - sp < copy->bytes ? (size_t)(end - sp) : copy->bytes;
    found found = {.thread = thread};
    *line = 0;
    if (!thread->current)
        return false;
    for (unsigned i = 0; i < TARE__UNWIND_REGS; i++)
        if (copy->regs.known >> i & 1)
            look_at(&found, copy->regs.value[i]);
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
        uint64_t word;
        memcpy(&word, copy->stack + at, 8);
        look_at(&found, word);
    }
    if (!found.frame || !found.next || (found.several && !found.exact))
        return false;
    if (!end && !found.exact)
        return false;
    if (!found.exact)
        *line = tare__python_line_at(python, thread, found.next - 2);
    return true;
}
