/* stacks_builder: puts sampled stacks into the trace of a builder, with the real writer.
 * Owned by the test's one thread.
 * Must not know how they are analyzed. */
#ifndef TARE_TEST_STACKS_BUILDER_H
#define TARE_TEST_STACKS_BUILDER_H

#include <stdarg.h>

#include "trace_builder.h"

typedef struct stacks_builder {
    builder *b;
    tare__stacks *stacks;
    uint64_t ticks[64]; /* of each thread's next sample */
} stacks_builder;

static inline stacks_builder stacks_start(builder *b)
{
    stacks_builder made = {.b = b, .stacks = tare__stacks_new()};
    builder_check(!made.stacks);
    return made;
}

static inline void stacks_seal(stacks_builder *s)
{
    builder_check(tare__stacks_seal(s->stacks, s->b->squeezer, &s->b->file));
}

static inline void stacks_done(stacks_builder *s)
{
    stacks_seal(s);
    tare__stacks_free(s->stacks);
}

static inline uint32_t stacks_thread(stacks_builder *s, int64_t pid, int64_t tid, uint64_t start, const char *name)
{
    tare__stack_thread thread = {.pid = pid, .tid = tid, .start_time = start, .name = name,
                                 .name_bytes = (uint32_t)strlen(name), .main = pid == tid};
    uint32_t number = tare__stacks_thread(s->stacks, &thread);
    builder_check(!number);
    return number;
}

static inline uint32_t stacks_frame(stacks_builder *s, uint32_t caller, tare__frame_kind kind, const char *name,
                                    const char *file, uint32_t first, uint64_t line)
{
    tare__stack_function function = {.kind = kind, .first_line = first, .name = name, .file = file,
                                     .name_bytes = (uint32_t)strlen(name), .file_bytes = (uint32_t)strlen(file)};
    uint32_t stack = tare__stacks_push(s->stacks, caller, tare__stacks_function(s->stacks, &function), line);
    builder_check(!stack);
    return stack;
}

static inline uint32_t stacks_python(stacks_builder *s, uint32_t caller, const char *name, const char *file,
                                     uint32_t line)
{
    return stacks_frame(s, caller, TARE__FRAME_PYTHON, name, file, line / 10 * 10, line);
}

#define MS UINT64_C(1000000)
/* A sample of a thread; a tick is half a nanosecond. */
static inline void stacks_full(stacks_builder *s, uint32_t thread, uint32_t stack, tare__thread_state state,
                               uint32_t flags, uint64_t wall_ns, uint64_t cpu_ns, uint64_t queue_ns)
{
    uint64_t *ticks = &s->ticks[thread % 64];
    *ticks = (*ticks ? *ticks : BUILD_START) + 2 * wall_ns;
    tare__stack_sample sample = {.ticks = *ticks, .thread = thread, .stack = stack, .state = state, .flags = flags,
                                 .wall_ns = wall_ns, .cpu_ns = cpu_ns, .queue_ns = queue_ns};
    if (tare__stacks_sample(s->stacks, &sample))
        return;
    stacks_seal(s);
    builder_check(!tare__stacks_sample(s->stacks, &sample));
}

/* n samples of 10 ms without counters. */
static inline void stacks_samples(stacks_builder *s, uint32_t thread, uint32_t stack, tare__thread_state state, int n)
{
    for (int i = 0; i < n; i++)
        stacks_full(s, thread, stack, state, 0, 10 * MS, 0, 0);
}

#endif
