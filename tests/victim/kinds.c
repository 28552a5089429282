/* kinds: one of everything: numbers, marks, counters, steps, epochs, complete spans on all kinds of track
 * that overlap and come late, aggregate and sampled spans, pauses.
 * One thread.
 * Must not know anything of Tare but tare.h. */
#include <math.h>

#include "victim.h"

static void training(uint64_t steps)
{
    for (int epoch = 0; epoch < 3; epoch++) {
        TARE_EPOCH(epoch);
        for (uint64_t i = 0; i < steps; i++) {
            TARE_STEP(i);
            TARE_BEGIN("load");
            TARE_NEXT("forward");
            TARE_NEXT("backward");
            TARE_END();
            TARE_SAMPLES(32);
            TARE_COUNTER("loss", 1.0 / (double)(i + 1));
        }
        TARE_MARK("checkpoint");
    }
    TARE_COUNTER("odd", -0.0);
    TARE_COUNTER("odd", 1e300);
    TARE_COUNTER("odd", (double)NAN);
    TARE_COUNTER("odd", (double)INFINITY);
}

/* Every `later` one is reported before those it overlaps. */
static void complete(uint64_t n)
{
    static const tare_track_kind track_kinds[] = {TARE_TRACK_TASK, TARE_TRACK_GPU, TARE_TRACK_REQUEST,
                                                  TARE_TRACK_OTHER};
    static tare_site kernel = TARE_SITE("kernel");
    uint32_t tracks[4];
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "track %d", i);
        tracks[i] = tare_track(name, track_kinds[i]);
        if (tare_track(name, track_kinds[i]) != tracks[i])
            exit(92);
    }
    uint64_t now = tare_now();
    for (uint64_t i = 0; i < n; i++) {
        uint64_t start = now - (i + 1) * 1000;
        tare_complete_span span = {tracks[i % 4], start, start + 1500, i + 1, i, i / 10 + 1};
        tare_complete(&kernel, &span);
    }
    tare_complete_span here = {0, now - 5000, now, 0, 0, 0};
    tare_complete_name("on this thread", &here);
    tare_complete_span backwards = {tracks[0], now, now - 100, 0, 0, 0};
    tare_complete_name("backwards", &backwards);
}

static void aggregate(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        TARE_AGGREGATE("aggregate");
        TARE_SAMPLED("sampled", 16);
    }
}

static void pauses(void)
{
    static tare_site around = TARE_SITE("around"), hidden = TARE_SITE("hidden"), shown = TARE_SITE("shown");
    tare_begin(&around);
    tare_pause();
    tell("recording", (uint64_t)tare_recording());
    tare_begin(&hidden);
    tare_begin(&hidden);
    TARE_AGGREGATE("hidden aggregate");
    TARE_MARK("hidden mark");
    tare_resume();
    tell("recording", (uint64_t)tare_recording());
    tare_begin(&shown); /* inside of two that were left out */
    tare_end(&shown);
    tare_end(&hidden);
    tare_end(&hidden);
    tare_pause();
    tare_end(&around); /* begun before: kept */
    tare_begin(&hidden);
    tare_resume();
    tare_end(&hidden);
    tare_begin(&shown);
    tare_end(&shown);
}

int main(int argc, char **argv)
{
    const char *mode = mode_of(argc, argv);
    uint64_t n = number_of(argc, argv, 2, 100);
    tell_session();
    if (strcmp(mode, "training") == 0)
        training(n);
    else if (strcmp(mode, "complete") == 0)
        complete(n);
    else if (strcmp(mode, "aggregate") == 0)
        aggregate(n);
    else if (strcmp(mode, "pauses") == 0)
        pauses();
    else if (strcmp(mode, "all") == 0) {
        training(n);
        complete(n);
        aggregate(n);
    } else
        return unknown_mode(mode);
    return 0;
}
