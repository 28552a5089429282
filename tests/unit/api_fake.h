/* A recorder that only writes down what tare.h calls, as text: so that a test sees begins and ends
 * without a session. One thread. Included once by a test, in place of tare.h.
 * Must not know what the real recorder does with a call. */
#ifndef TARE_TESTS_API_FAKE_H
#define TARE_TESTS_API_FAKE_H

#include <stdio.h>
#include <string.h>

/* The header's calls go to names of our own; the library that is linked too stays untouched. */
#define TARE__HOT_PATH_ELSEWHERE
#define tare__gate fake_gate
#define tare__begin fake_begin
#define tare__end fake_end
#define tare__end_of fake_end_of
#define tare__end_last fake_end_last
#define tare__next fake_next
#define tare__begin_slow fake_begin_slow
#define tare__end_slow fake_end_slow
#define tare__next_slow fake_next_slow
#define tare__aggregate_begin fake_aggregate_begin
#define tare__aggregate_end fake_aggregate_end
#define tare__sampled_begin fake_sampled_begin
#define tare__sampled_end fake_sampled_end
#define tare__mark fake_mark
#define tare__counter fake_counter
#define tare__number fake_number
#define tare__complete fake_complete
#define tare__dynamic fake_dynamic
#define tare_step_begin fake_step_begin
#define tare_step_next fake_step_next
#define tare_step_end fake_step_end
#define tare_epoch_begin fake_epoch_begin
#define tare_epoch_next fake_epoch_next
#define tare_epoch_end fake_epoch_end

#include <tare.h>

static char fake_log[4096]; /* "begin a|end a|" */
static uint64_t fake_start = 7; /* what a timed begin returns */

static inline void fake_say(const char *what, const char *name, double value)
{
    size_t at = strlen(fake_log);
    if (value != 0)
        snprintf(fake_log + at, sizeof(fake_log) - at, "%s %s %g|", what, name, value);
    else
        snprintf(fake_log + at, sizeof(fake_log) - at, "%s %s|", what, name);
}

static inline const char *fake_name(const tare_site *site)
{
    return site ? site->name : "-";
}

#ifdef __cplusplus
extern "C" {
#endif

int fake_gate;

#define FAKE_CALL(call, what)                                                                          \
    void call(tare_site *site)                                                                         \
    {                                                                                                  \
        fake_say(what, fake_name(site), 0);                                                            \
    }
uint64_t fake_begin(tare_site *site)
{
    fake_say("begin", fake_name(site), 0);
    return 1;
}
FAKE_CALL(fake_end, "end")
void fake_end_of(tare_site *site, uint64_t word)
{
    (void)word;
    fake_say("end", fake_name(site), 0);
}
FAKE_CALL(fake_next, "next")
FAKE_CALL(fake_begin_slow, "slow begin")
FAKE_CALL(fake_end_slow, "slow end")

void fake_end_last(void)
{
    if (tare__gate == 1)
        fake_end(NULL);
    else
        fake_end_slow(NULL);
}
FAKE_CALL(fake_next_slow, "slow next")
FAKE_CALL(fake_mark, "mark")

#define FAKE_VALUE_CALL(call, what)                                                                    \
    void call(tare_site *site, double value)                                                           \
    {                                                                                                  \
        fake_say(what, fake_name(site), value);                                                        \
    }
FAKE_VALUE_CALL(fake_counter, "counter")
FAKE_VALUE_CALL(fake_number, "number")

#define FAKE_INDEX_CALL(call, what)                                                                    \
    void call(uint64_t index)                                                                          \
    {                                                                                                  \
        fake_say(what, "-", (double)index);                                                            \
    }
FAKE_INDEX_CALL(fake_step_begin, "step")
FAKE_INDEX_CALL(fake_step_next, "step next")
FAKE_INDEX_CALL(fake_epoch_begin, "epoch")
FAKE_INDEX_CALL(fake_epoch_next, "epoch next")

void fake_step_end(void)
{
    fake_say("step end", "-", 0);
}

void fake_epoch_end(void)
{
    fake_say("epoch end", "-", 0);
}

uint64_t fake_aggregate_begin(void)
{
    return fake_start;
}

/* On x86-64 the header may read the time-stamp counter itself: a start is any value but 0. */
void fake_aggregate_end(tare_site *site, uint64_t start)
{
    fake_say(start ? "aggregate" : "aggregate without start", fake_name(site), 0);
}

uint64_t fake_sampled_begin(tare_site *site)
{
    fake_say("sampled begin", fake_name(site), site->every);
    return fake_start;
}

void fake_sampled_end(tare_site *site, uint64_t start)
{
    fake_say("sampled end", fake_name(site), (double)start);
}

void fake_complete(tare_site *site, const tare_complete_span *span)
{
    fake_say("complete", fake_name(site), (double)(span->end - span->start));
}

tare_site *fake_dynamic(const char *name, int kind, tare_site *scratch)
{
    tare_site site = TARE_SITE_OF(name, kind, 1);
    *scratch = site;
    return scratch;
}

#ifdef __cplusplus
}
#endif

static inline void fake_reset(int gate)
{
    fake_log[0] = 0;
    fake_start = 7;
    fake_gate = gate;
}

#endif
