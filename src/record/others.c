/* others: marks, counters, numbers, steps, epochs, complete spans, facts, tracks, thread names.
 * Runs in the recording thread or a handler on top of it.
 * Must not know how they are shown. */
#include <string.h>

#include "record.h"

static uint64_t word_of(tare_site *site, tare__record_kind kind)
{
    uint64_t word = __atomic_load_n(&site->word, __ATOMIC_ACQUIRE);
    if (!word)
        word = tare__site_register(site);
    return word + TARE__WORD(kind - TARE__RECORD_BEGIN, 0);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

TARE_API void tare__mark(tare_site *site)
{
    if (!tare__on())
        return;
    if (tare__forward)
        tare__forward->mark(site);
    else
        tare__record(&(tare__slot){0, word_of(site, TARE__RECORD_MARK)}, 1);
}

TARE_API void tare__counter(tare_site *site, double value)
{
    if (!tare__on())
        return;
    if (tare__forward) {
        tare__forward->counter(site, value);
    } else {
        tare__slot slots[TARE__COUNTER_SLOTS] = {{0, word_of(site, TARE__RECORD_COUNTER)},
                                                 {bits_of(value), TARE__WORD(TARE__RECORD_MORE, 0)}};
        tare__record(slots, TARE__COUNTER_SLOTS);
    }
}

TARE_API void tare__number(tare_site *site, double value)
{
    if (!tare__on())
        return;
    if (tare__forward)
        tare__forward->number(site, value);
    else
        tare__record(&(tare__slot){bits_of(value), word_of(site, TARE__RECORD_NUMBER)}, 1);
}

TARE_API void tare__complete(tare_site *site, const tare_complete_span *span)
{
    if (!tare__on())
        return;
    if (tare__forward) {
        tare__forward->complete(site, span);
    } else {
        uint64_t more = TARE__WORD(TARE__RECORD_MORE, 0);
        tare__slot slots[TARE__COMPLETE_SLOTS] = {
            {span->start, word_of(site, TARE__RECORD_COMPLETE)},
            {span->end, TARE__WORD(TARE__RECORD_MORE, span->track)},
            {span->id, more},
            {span->parent, more},
            {span->flow, more},
        };
        tare__record(slots, TARE__COMPLETE_SLOTS);
    }
}

static uint32_t fact_name(const char *text)
{
    return text ? tare__name_intern(text, TARE__NAME_FACT, NULL, 0) : TARE__NAME_NONE;
}

TARE_API void tare__fact_tell(const char *key, const char *file, uint32_t line, double value, const char *text)
{
    if (!tare__on())
        return;
    if (tare__forward) {
        tare__forward->fact(key, file, line, value, text);
        return;
    }
    size_t length = file ? strlen(file) : 0;
    if (length > TARE__NAME_TEXT_MAX) /* the end of a path is more informative than its beginning */
        file += length - TARE__NAME_TEXT_MAX;
    tare__slot slots[TARE__FACT_SLOTS] = {
        {0, TARE__WORD(TARE__RECORD_FACT, fact_name(key))},
        {bits_of(value), TARE__WORD(TARE__RECORD_MORE, fact_name(file))},
        {line, TARE__WORD(TARE__RECORD_MORE, fact_name(text))},
    };
    tare__record(slots, TARE__FACT_SLOTS);
}

TARE_API tare_site *tare__dynamic(const char *name, int kind, tare_site *scratch)
{
    if (tare__on() && tare__forward)
        return tare__forward->dynamic(name, kind, scratch);
    memset(scratch, 0, sizeof *scratch);
    scratch->kind = (uint16_t)kind;
    scratch->every = 1;
    scratch->word = TARE__WORD(TARE__RECORD_BEGIN, tare__name_intern(name, kind, NULL, 0));
    return scratch;
}

TARE_API uint32_t tare_track(const char *name, tare_track_kind kind)
{
    if (!tare__on())
        return 0;
    if (tare__forward)
        return tare__forward->track(name, kind);
    int known = kind >= TARE_TRACK_TASK && kind <= TARE_TRACK_OTHER ? (int)kind : TARE_TRACK_OTHER;
    return tare__name_intern(name, TARE__NAME_TRACK + known, NULL, 0);
}

TARE_API uint64_t tare_now(void)
{
    return tare__forward ? tare__forward->now() : tare__ticks();
}

/* ---- steps and epochs ---------------------------------------------------------------------------------------- */

static tare_site step_site = {0, "step", NULL, 0, TARE_KIND_STEP, 1, 0};
static tare_site epoch_site = {0, "epoch", NULL, 0, TARE_KIND_EPOCH, 1, 0};
static tare_site index_site = {0, "index", NULL, 0, TARE_KIND_NUMBER, 1, 0};

enum { ACTION_BEGIN = 0, ACTION_NEXT = 1, ACTION_END = 2 };

static uint32_t *open_count(const tare_site *site)
{
    tare__thread *self = tare__self;
    if (!self)
        return NULL;
    return site->kind == TARE_KIND_STEP ? &self->steps_open : &self->epochs_open;
}

TARE_API void tare__indexed(tare_site *site, uint64_t index, int action)
{
    if (!tare__on())
        return;
    if (tare__forward) {
        tare__forward->indexed(site, index, action);
        return;
    }
    uint32_t *open = open_count(site);
    if (action == ACTION_END || (action == ACTION_NEXT && open && *open)) {
        tare_end(site);
        if (open && *open)
            --*open;
    }
    if (action == ACTION_END)
        return;
    tare_begin(site);
    tare__number(&index_site, (double)index);
    open = open_count(site);
    if (open)
        ++*open;
}

TARE_API void tare_step_begin(uint64_t index)
{
    tare__indexed(&step_site, index, ACTION_BEGIN);
}

TARE_API void tare_step_next(uint64_t index)
{
    tare__indexed(&step_site, index, ACTION_NEXT);
}

TARE_API void tare_step_end(void)
{
    tare__indexed(&step_site, 0, ACTION_END);
}

TARE_API void tare_epoch_begin(uint64_t index)
{
    tare__indexed(&epoch_site, index, ACTION_BEGIN);
}

TARE_API void tare_epoch_next(uint64_t index)
{
    tare__indexed(&epoch_site, index, ACTION_NEXT);
}

TARE_API void tare_epoch_end(void)
{
    tare__indexed(&epoch_site, 0, ACTION_END);
}

/* ---- thread names --------------------------------------------------------------------------------------------- */

TARE_API void tare_thread_name(const char *name)
{
    if (!name || !tare__on())
        return;
    if (tare__forward) {
        tare__forward->thread_name(name);
        return;
    }
    tare__thread *self = tare__self ? tare__self : tare__thread_join();
    if (!self)
        return;
    char padded[TARE__THREAD_NAME_BYTES] = {0};
    memcpy(padded, name, strnlen(name, sizeof padded - 1));
    memcpy(self->name, padded, sizeof padded);
    if (self->chunk && tare__here && tare__here->ring)
        memcpy(((tare__chunk *)(void *)(tare__here->chunks + (size_t)(self->chunk - 1) * TARE__CHUNK_BYTES))
                   ->thread_name,
               padded, sizeof padded);
}
