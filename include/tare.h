/* tare.h: spans, counters and steps for C and C++ programs.
 *
 *     #include <tare.h>
 *
 *     void train(void)
 *     {
 *         for (int epoch = 0; epoch < 3; epoch++) {
 *             TARE_EPOCH(epoch);
 *             for (int i = 0; i < batches; i++) {
 *                 TARE_STEP(i);                  // one iteration, until the end of this block
 *                 TARE_BEGIN("load");     load();
 *                 TARE_NEXT("forward");   forward();   // one timestamp ends "load", begins "forward"
 *                 TARE_NEXT("backward");  backward();
 *                 TARE_END();
 *                 TARE_SAMPLES(32);              // a number on the innermost open span
 *             }
 *         }
 *     }
 *
 *     cc train.c -ltare && tare run -- ./a.out && tare report a.out.tare
 *
 * Without a session every call costs one well-predicted branch. With TARE_DISABLE defined before this
 * header is included, everything here compiles to nothing and needs no library.
 *
 * Nothing here prints (only the helper of tare_start does, about a misspelt TARE_ variable), exits, aborts,
 * throws, or changes errno. All calls may be made from any thread, after fork, before main and in atexit
 * handlers, and all but tare_start and tare_stop (which wait for the helper) from signal handlers. Names are
 * copied at first use.
 * A full buffer drops whole spans, counts them, and the report shows the count.
 */
#ifndef TARE_H
#define TARE_H

#include <stddef.h>
#include <stdint.h>

#define TARE_VERSION_MAJOR 0
#define TARE_VERSION_MINOR 1
#define TARE_VERSION_PATCH 0
#define TARE_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

#define TARE_API __attribute__((visibility("default")))

/* ---- status codes ------------------------------------------------------------------------------
 * A call that can fail returns 0 or one of these. */
#define TARE_STATUS_LIST(X)                                                                            \
    X(MEMORY, -1, "out of memory")                                                                     \
    X(USAGE, -2, "invalid usage")                                                                        \
    X(INPUT, -3, "unreadable or damaged input")                                                        \
    X(SYSTEM, -4, "a system call failed")                                                              \
    X(VERSION, -5, "written by another version that this one cannot read")                             \
    X(SPACE, -6, "no space left")                                                                      \
    X(PERMISSION, -7, "permission denied")                                                             \
    X(NO_SESSION, -8, "no session is recording")                                                       \
    X(BUSY, -9, "a session is already recording")                                                      \
    X(NO_HELPER, -10, "the tare program that writes the trace was not found")                          \
    X(DISABLED, -11, "compiled with TARE_DISABLE")

typedef enum tare_status {
    TARE_OK = 0,
#define TARE_STATUS_ENUM(name, value, sentence) TARE_E_##name = value,
    TARE_STATUS_LIST(TARE_STATUS_ENUM)
#undef TARE_STATUS_ENUM
} tare_status;

/* ---- call sites ---------------------------------------------------------------------------------
 * A site is a static object that names a place in the code. The macros define it; to define one explicitly:
 *     static tare_site forward = TARE_SITE("forward");
 * The name (up to 4,000 bytes) may be freed or unloaded after the first use of the site. */
typedef enum tare_kind {
    TARE_KIND_SPAN = 1,
    TARE_KIND_STEP = 2,
    TARE_KIND_EPOCH = 3,
    TARE_KIND_AGGREGATE = 4,
    TARE_KIND_MARK = 5,
    TARE_KIND_COUNTER = 6,
    TARE_KIND_NUMBER = 7,
    /* spans with a meaning that reports know: */
    TARE_KIND_OPERATOR = 8, /* of a framework: aten::mm */
    TARE_KIND_MODULE = 9,   /* a part of a model, by its path: encoder.layers.3 */
    TARE_KIND_PHASE = 10    /* of a step: "data", "copy", "forward", "backward", "optimizer" */
} tare_kind;

typedef struct tare_site {
    uint64_t word; /* private: 0 until first use */
    const char *name;
    const char *file;
    uint32_t line;
    uint16_t kind;
    uint16_t every; /* sampled spans: one in this many is timed; else 1 */
    uint64_t slot;  /* private */
} tare_site;

#define TARE_SITE_OF(name, kind, every) {0, (name), __FILE__, __LINE__, (uint16_t)(kind), (uint16_t)(every), 0}
#define TARE_SITE(name) TARE_SITE_OF(name, TARE_KIND_SPAN, 1)

/* ---- tracks and complete spans --------------------------------------------------------------------
 * A track is a separate row in timelines: a task, a GPU stream, a request. Spans on it are recorded
 * complete, may overlap, and may arrive late and in any order. */
typedef enum tare_track_kind {
    TARE_TRACK_TASK = 1,
    TARE_TRACK_GPU = 2,
    TARE_TRACK_REQUEST = 3,
    TARE_TRACK_OTHER = 4
} tare_track_kind;

typedef struct tare_complete_span {
    uint32_t track;  /* of tare_track; 0 is the calling thread */
    uint64_t start;  /* on the clock of tare_now */
    uint64_t end;
    uint64_t id;     /* the span's own id, for use as parent of other spans; 0 for none */
    uint64_t parent; /* id of the span it belongs to, on any track; 0 for none */
    uint64_t flow;   /* spans with the same flow are causally connected; 0 for none */
} tare_complete_span;

typedef struct tare_options {
    uint32_t size;           /* sizeof(tare_options): fields beyond it have their defaults, so the struct can grow */
    uint32_t reserved;
    const char *output;      /* the trace; NULL: NAME.tare after the program. Never overwrites. */
    const char *helper;      /* path of the tare program; NULL: search for it */
    uint64_t max_bytes;      /* maximum size of the trace, the oldest events are dropped; 0: no limit */
    uint64_t last_ns;        /* keep only the last events; 0: all */
} tare_options;

#ifndef TARE_DISABLE

/* ---- private: used by the inline functions below ---------------------------------------------
 * 0: no session; 1: recording; 2: a session that needs the slow path (paused, no usable TSC, …). */
extern TARE_API int tare__gate;
TARE_API void tare__end_last(void);
TARE_API void tare__begin_slow(tare_site *site);
TARE_API void tare__end_slow(tare_site *site);
TARE_API void tare__next_slow(tare_site *site);
TARE_API uint64_t tare__aggregate_begin(void);
TARE_API void tare__aggregate_end(tare_site *site, uint64_t start);
TARE_API uint64_t tare__sampled_begin(tare_site *site);
TARE_API void tare__sampled_end(tare_site *site, uint64_t start);
TARE_API void tare__mark(tare_site *site);
TARE_API void tare__counter(tare_site *site, double value);
TARE_API void tare__number(tare_site *site, double value);
TARE_API void tare__indexed(tare_site *site, uint64_t index, int next);
TARE_API void tare__complete(tare_site *site, const tare_complete_span *span);
TARE_API tare_site *tare__dynamic(const char *name, int kind, tare_site *scratch);
/* For Tare's own hooks into libraries: facts about the program, on which findings are based. Key, file and text have
 * up to 4,000 bytes each (of a longer file its end is kept, of the others the beginning); file and text may be NULL,
 * line 0, the value NaN. */
TARE_API void tare__fact_tell(const char *key, const char *file, uint32_t line, double value, const char *text);

static inline int tare__gate_now(void)
{
    return __atomic_load_n(&tare__gate, __ATOMIC_RELAXED);
}
#define TARE__OFF() __builtin_expect(tare__gate_now() == 0, 1)

static inline uint64_t tare__tsc(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0; /* never called: the gate is 2 if there is no counter */
#endif
}

/* The hot path is inline, since a call and its return cost a tenth of it. It depends on these parts of the library's
 * binary interface: this thread's cursor points at its next free 16-byte slot, with a generation in the low four
 * bits; bits 12 to 15 all zero mean there is none. The slot is reserved by one instruction (a signal handler then
 * gets the next one), and its word is stored last. */
#ifndef TARE__HOT_PATH_ELSEWHERE /* tests of this header define their own */
extern TARE_API __thread uint64_t *tare__cursor __attribute__((tls_model("initial-exec")));
TARE_API void tare__record_at(uint64_t word, uint64_t at);

static inline uint64_t tare__reserve(uint64_t *cursor, uint64_t bytes)
{
#if defined(__x86_64__)
    __asm__ volatile("xaddq %0, %1" : "+r"(bytes), "+m"(*cursor)::"memory", "cc");
    return bytes;
#else
    return __atomic_fetch_add(cursor, bytes, __ATOMIC_RELAXED);
#endif
}

/* False: this thread has no cursor yet, or no longer. */
static inline int tare__record_hot(uint64_t word)
{
    uint64_t *cursor = tare__cursor;
    if (__builtin_expect(!cursor, 0))
        return 0;
    uint64_t at = tare__reserve(cursor, 16);
    if (__builtin_expect((at & 0xF000u) == 0, 0)) {
        tare__record_at(word, at);
        return 1;
    }
    uint64_t *slot = (uint64_t *)(uintptr_t)(at & ~(uint64_t)15);
    __atomic_store_n(&slot[0], tare__tsc(), __ATOMIC_RELAXED);
    __atomic_store_n(&slot[1], word | (at & 15u), __ATOMIC_RELEASE);
    return 1;
}

static inline uint64_t tare__record_site(tare_site *site, uint64_t added, void (*slow)(tare_site *))
{
    uint64_t word = __atomic_load_n(&site->word, __ATOMIC_RELAXED);
    if (__builtin_expect(word != 0, 1) && tare__record_hot(word + added))
        return word;
    slow(site);
    return 0;
}

/* The site's word, or 0 if it took the slow path. */
static inline uint64_t tare__begin(tare_site *site) { return tare__record_site(site, 0x00, tare__begin_slow); }
static inline void tare__end(tare_site *site) { tare__record_site(site, 0x10, tare__end_slow); }
static inline void tare__end_of(tare_site *site, uint64_t word)
{
    if (!tare__record_hot(word + 0x10))
        tare__end_slow(site);
}
static inline void tare__next(tare_site *site) { tare__record_site(site, 0x20, tare__next_slow); }
#else
uint64_t tare__begin(tare_site *site);
void tare__end(tare_site *site);
void tare__end_of(tare_site *site, uint64_t word);
void tare__next(tare_site *site);
#endif

/* ---- nested spans ----------------------------------------------------------------------------------
 * Begin and end on one thread, properly nested to any depth. An end names its site: one without a matching
 * begin is counted and has no effect; spans left open inside are closed with it. */
static inline void tare_begin(tare_site *site)
{
    int gate = tare__gate_now();
    if (gate == 0)
        return;
    if (__builtin_expect(gate == 1, 1))
        tare__begin(site);
    else
        tare__begin_slow(site);
}

static inline void tare_end(tare_site *site) /* NULL: the innermost open span of this thread */
{
    int gate = tare__gate_now();
    if (gate == 0)
        return;
    if (!site)
        tare__end_last();
    else if (__builtin_expect(gate == 1, 1))
        tare__end(site);
    else
        tare__end_slow(site);
}

/* Ends the innermost open span and begins this one with a single timestamp. */
static inline void tare_next(tare_site *site)
{
    int gate = tare__gate_now();
    if (gate == 0)
        return;
    if (__builtin_expect(gate == 1, 1))
        tare__next(site);
    else
        tare__next_slow(site);
}

/* The same with a name created at run time. It is looked up at each call (about 20 ns); a process keeps up to about
 * 20,000 distinct names, further ones are recorded as "(more names)". NULL is "(null)". */
static inline void tare_begin_name(const char *name)
{
    tare_site site;
    if (!TARE__OFF())
        tare_begin(tare__dynamic(name, TARE_KIND_SPAN, &site));
}

static inline void tare_next_name(const char *name)
{
    tare_site site;
    if (!TARE__OFF())
        tare_next(tare__dynamic(name, TARE_KIND_SPAN, &site));
}

/* ---- aggregate and sampled spans ----------------------------------------------------------------
 * No event is kept: count, total, minimum, maximum and a histogram are updated in place, so memory use
 * and file size stay constant. begin returns a start time that end takes; 0 means nothing is recorded. */
static inline uint64_t tare_aggregate_begin(void)
{
    int gate = tare__gate_now();
    if (__builtin_expect(gate == 0, 1))
        return 0;
    return gate == 1 ? tare__tsc() : tare__aggregate_begin();
}

static inline void tare_aggregate_end(tare_site *site, uint64_t start)
{
    if (start)
        tare__aggregate_end(site, start);
}

/* Every call is counted, one in site->every is timed; the total in the report is then an estimate. */
static inline uint64_t tare_sampled_begin(tare_site *site)
{
    return TARE__OFF() ? 0 : tare__sampled_begin(site);
}

static inline void tare_sampled_end(tare_site *site, uint64_t start)
{
    if (__builtin_expect(start != 0, 0))
        tare__sampled_end(site, start);
}

/* ---- marks, counters, numbers ---------------------------------------------------------------------- */
static inline void tare_mark(tare_site *site)
{
    if (!TARE__OFF())
        tare__mark(site);
}

static inline void tare_mark_name(const char *name)
{
    tare_site site;
    if (!TARE__OFF())
        tare__mark(tare__dynamic(name, TARE_KIND_MARK, &site));
}

/* A value over time: queue depth, loss, learning rate. */
static inline void tare_counter(tare_site *site, double value)
{
    if (!TARE__OFF())
        tare__counter(site, value);
}

static inline void tare_counter_name(const char *name, double value)
{
    tare_site site;
    if (!TARE__OFF())
        tare__counter(tare__dynamic(name, TARE_KIND_COUNTER, &site), value);
}

/* A number on the innermost open span of this thread: added up per span name, with a rate. Reports know "samples",
 * "tokens", "bytes" and "flops"; any other name works too. */
static inline void tare_number(tare_site *site, double value)
{
    if (!TARE__OFF())
        tare__number(site, value);
}

/* ---- steps and epochs -----------------------------------------------------------------------------
 * Spans that reports treat as the iterations of a training loop. `next` ends the open one, if any. */
TARE_API void tare_step_begin(uint64_t index);
TARE_API void tare_step_next(uint64_t index);
TARE_API void tare_step_end(void);
TARE_API void tare_epoch_begin(uint64_t index);
TARE_API void tare_epoch_next(uint64_t index);
TARE_API void tare_epoch_end(void);

/* ---- complete spans ------------------------------------------------------------------------------- */
TARE_API uint64_t tare_now(void); /* ticks of the session's clock, as used by complete spans */
/* A track by name; the same name and kind give the same track. 0 if there is no session. */
TARE_API uint32_t tare_track(const char *name, tare_track_kind kind);

static inline void tare_complete(tare_site *site, const tare_complete_span *span)
{
    if (!TARE__OFF())
        tare__complete(site, span);
}

static inline void tare_complete_name(const char *name, const tare_complete_span *span)
{
    tare_site site;
    if (!TARE__OFF())
        tare__complete(tare__dynamic(name, TARE_KIND_SPAN, &site), span);
}

/* ---- thread, session -------------------------------------------------------------------------------- */
/* The calling thread's name in reports (up to 63 bytes; default: the name that the system has for it). */
TARE_API void tare_thread_name(const char *name);

/* Records this process without `tare run`: a helper process writes the trace and samples process and machine,
 * with the settings of TARE_* variables and ./tare.toml. Children created by fork join; executed programs do
 * not. Under `tare run` it resumes that session. 0 or a status. */
TARE_API int tare_start(const tare_options *options); /* NULL: defaults */
/* Details on the last failed tare_start; "" if the status has none. Valid until the next call. */
TARE_API const char *tare_start_error(void);
/* Ends the session; when it returns, the trace is complete. Under `tare run` it pauses. 0 or a status. */
TARE_API int tare_stop(void);
/* Between the two nothing is recorded except the ends of spans begun before. Process-wide. */
TARE_API void tare_pause(void);
TARE_API void tare_resume(void);
TARE_API int tare_recording(void); /* 1 while events are recorded */
TARE_API const char *tare_output(void); /* path of the trace of this process's session; "" when none */

/* ---- scopes: ended when the block is left, however it is left ------------------------------------------ */
typedef struct tare_scope {
    tare_site *site; /* NULL: nothing to end */
    uint64_t word;   /* of a begin that took the hot path; 0: it did not */
} tare_scope;

static inline tare_scope tare_scope_begin(tare_site *site)
{
    tare_scope scope = {NULL, 0};
    int gate = tare__gate_now();
    if (gate == 0)
        return scope;
    if (__builtin_expect(gate == 1, 1))
        scope.word = tare__begin(site);
    else
        tare__begin_slow(site);
    scope.site = site;
    return scope;
}

/* A span that began on the hot path may end on it without checking the gate again: ends are recorded during a pause,
 * and after the end of a session this thread has no cursor, or memory that is not read any more. */
static inline void tare_scope_end(tare_scope *scope)
{
    if (scope->word)
        tare__end_of(scope->site, scope->word);
    else if (scope->site)
        tare__end_slow(scope->site);
}

typedef struct tare_timed_scope {
    tare_site *site;
    uint64_t start;
} tare_timed_scope;

static inline tare_timed_scope tare_aggregate_scope(tare_site *site)
{
    tare_timed_scope scope = {site, tare_aggregate_begin()};
    return scope;
}

static inline void tare_aggregate_scope_end(tare_timed_scope *scope)
{
    tare_aggregate_end(scope->site, scope->start);
}

static inline tare_timed_scope tare_sampled_scope(tare_site *site)
{
    tare_timed_scope scope = {site, tare_sampled_begin(site)};
    return scope;
}

static inline void tare_sampled_scope_end(tare_timed_scope *scope)
{
    tare_sampled_end(scope->site, scope->start);
}

typedef struct tare_plain_scope {
    int kind; /* what to end; 0: nothing */
} tare_plain_scope;

static inline tare_plain_scope tare_name_scope_begin(const char *name)
{
    tare_plain_scope scope = {0};
    if (!TARE__OFF()) {
        scope.kind = TARE_KIND_SPAN;
        tare_begin_name(name);
    }
    return scope;
}

static inline tare_plain_scope tare_indexed_scope_begin(int kind, uint64_t index)
{
    tare_plain_scope scope = {0};
    if (!TARE__OFF()) {
        scope.kind = kind;
        if (kind == TARE_KIND_STEP)
            tare_step_begin(index);
        else
            tare_epoch_begin(index);
    }
    return scope;
}

static inline void tare_plain_scope_end(tare_plain_scope *scope)
{
    if (scope->kind == TARE_KIND_STEP)
        tare_step_end();
    else if (scope->kind == TARE_KIND_EPOCH)
        tare_epoch_end();
    else if (scope->kind)
        tare_end(NULL);
}

#define TARE__JOIN2(a, b) a##b
#define TARE__JOIN(a, b) TARE__JOIN2(a, b)

/* Two scopes on one line get different names from __COUNTER__. */
#define TARE__SCOPE(n, type, begin, end)                                                               \
    type TARE__JOIN(tare_scope_, n) __attribute__((cleanup(end), unused)) = begin
#define TARE__SITE_SCOPE(n, name, kind, every, type, begin, end)                                       \
    static tare_site TARE__JOIN(tare_site_, n) = TARE_SITE_OF(name, kind, every);                      \
    TARE__SCOPE(n, type, begin(&TARE__JOIN(tare_site_, n)), end)

#define TARE_SPAN(name)                                                                                \
    TARE__SITE_SCOPE(__COUNTER__, name, TARE_KIND_SPAN, 1, tare_scope, tare_scope_begin, tare_scope_end)
#define TARE_AGGREGATE(name)                                                                           \
    TARE__SITE_SCOPE(__COUNTER__, name, TARE_KIND_AGGREGATE, 1, tare_timed_scope, tare_aggregate_scope, \
                     tare_aggregate_scope_end)
#define TARE_SAMPLED(name, one_in)                                                                     \
    TARE__SITE_SCOPE(__COUNTER__, name, TARE_KIND_AGGREGATE, one_in, tare_timed_scope,                 \
                     tare_sampled_scope, tare_sampled_scope_end)
#define TARE_SPAN_NAME(name)                                                                           \
    TARE__SCOPE(__COUNTER__, tare_plain_scope, tare_name_scope_begin(name), tare_plain_scope_end)
#define TARE_STEP(index)                                                                               \
    TARE__SCOPE(__COUNTER__, tare_plain_scope, tare_indexed_scope_begin(TARE_KIND_STEP, (uint64_t)(index)), \
                tare_plain_scope_end)
#define TARE_EPOCH(index)                                                                              \
    TARE__SCOPE(__COUNTER__, tare_plain_scope, tare_indexed_scope_begin(TARE_KIND_EPOCH, (uint64_t)(index)), \
                tare_plain_scope_end)

#define TARE__WITH_SITE(name, kind, call)                                                              \
    do {                                                                                               \
        static tare_site tare__here = TARE_SITE_OF(name, kind, 1);                                     \
        call;                                                                                          \
    } while (0)

#define TARE_BEGIN(name) TARE__WITH_SITE(name, TARE_KIND_SPAN, tare_begin(&tare__here))
#define TARE_NEXT(name) TARE__WITH_SITE(name, TARE_KIND_SPAN, tare_next(&tare__here))
#define TARE_END() tare_end(NULL)
#define TARE_MARK(name) TARE__WITH_SITE(name, TARE_KIND_MARK, tare_mark(&tare__here))
#define TARE_COUNTER(name, value)                                                                      \
    TARE__WITH_SITE(name, TARE_KIND_COUNTER, tare_counter(&tare__here, (double)(value)))
#define TARE_NUMBER(name, value)                                                                       \
    TARE__WITH_SITE(name, TARE_KIND_NUMBER, tare_number(&tare__here, (double)(value)))

#else /* TARE_DISABLE: compiles to nothing, and arguments are not evaluated */

static inline void tare_begin(tare_site *site) { (void)site; }
static inline void tare_end(tare_site *site) { (void)site; }
static inline void tare_next(tare_site *site) { (void)site; }
static inline void tare_begin_name(const char *name) { (void)name; }
static inline void tare_next_name(const char *name) { (void)name; }
static inline uint64_t tare_aggregate_begin(void) { return 0; }
static inline void tare_aggregate_end(tare_site *site, uint64_t start) { (void)site, (void)start; }
static inline uint64_t tare_sampled_begin(tare_site *site) { return (void)site, (uint64_t)0; }
static inline void tare_sampled_end(tare_site *site, uint64_t start) { (void)site, (void)start; }
static inline void tare_mark(tare_site *site) { (void)site; }
static inline void tare_mark_name(const char *name) { (void)name; }
static inline void tare_counter(tare_site *site, double value) { (void)site, (void)value; }
static inline void tare_counter_name(const char *name, double value) { (void)name, (void)value; }
static inline void tare_number(tare_site *site, double value) { (void)site, (void)value; }
static inline void tare_step_begin(uint64_t index) { (void)index; }
static inline void tare_step_next(uint64_t index) { (void)index; }
static inline void tare_step_end(void) {}
static inline void tare_epoch_begin(uint64_t index) { (void)index; }
static inline void tare_epoch_next(uint64_t index) { (void)index; }
static inline void tare_epoch_end(void) {}
static inline uint64_t tare_now(void) { return 0; }
static inline uint32_t tare_track(const char *name, tare_track_kind kind) { return (void)name, (void)kind, 0u; }
static inline void tare_complete(tare_site *site, const tare_complete_span *span) { (void)site, (void)span; }
static inline void tare_complete_name(const char *name, const tare_complete_span *span) { (void)name, (void)span; }
static inline void tare_thread_name(const char *name) { (void)name; }
static inline int tare_start(const tare_options *options) { return (void)options, TARE_E_DISABLED; }
static inline const char *tare_start_error(void) { return ""; }
static inline int tare_stop(void) { return TARE_E_DISABLED; }
static inline void tare_pause(void) {}
static inline void tare_resume(void) {}
static inline int tare_recording(void) { return 0; }
static inline const char *tare_output(void) { return ""; }

#define TARE_SPAN(name) ((void)0)
#define TARE_SPAN_NAME(name) ((void)sizeof(name))
#define TARE_AGGREGATE(name) ((void)0)
#define TARE_SAMPLED(name, one_in) ((void)0)
#define TARE_STEP(index) ((void)sizeof(index))
#define TARE_EPOCH(index) ((void)sizeof(index))
#define TARE_BEGIN(name) ((void)0)
#define TARE_NEXT(name) ((void)0)
#define TARE_END() ((void)0)
#define TARE_MARK(name) ((void)0)
#define TARE_COUNTER(name, value) ((void)sizeof(value))
#define TARE_NUMBER(name, value) ((void)sizeof(value))

#endif /* TARE_DISABLE */

#define TARE_SAMPLES(n) TARE_NUMBER("samples", n)
#define TARE_TOKENS(n) TARE_NUMBER("tokens", n)
#define TARE_BYTES(n) TARE_NUMBER("bytes", n)
#define TARE_FLOPS(n) TARE_NUMBER("flops", n)

/* The message of a status code. */
static inline const char *tare_status_text(int status)
{
    switch (status) {
    case TARE_OK:
        return "done";
#define TARE_STATUS_CASE(name, value, sentence)                                                        \
    case value:                                                                                        \
        return sentence;
        TARE_STATUS_LIST(TARE_STATUS_CASE)
#undef TARE_STATUS_CASE
    default:
        return "unknown status";
    }
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARE_H */
