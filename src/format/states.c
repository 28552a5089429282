/* states: the states of a sampled thread in words. Pure.
 * Must not know where they are shown. */
#include "format.h"

static const char *const words[TARE__STATE_COUNT] = {
    [TARE__STATE_UNKNOWN] = "unknown",
    [TARE__STATE_RUNNING] = "running",
    [TARE__STATE_RUNNABLE] = "waiting for a CPU",
    [TARE__STATE_GIL] = "waiting for the GIL",
    [TARE__STATE_LOCK] = "waiting for a lock",
    [TARE__STATE_DISK] = "waiting for a disk",
    [TARE__STATE_NETWORK] = "waiting for the network",
    [TARE__STATE_CHILD] = "waiting for a process",
    [TARE__STATE_PIPE] = "waiting for a pipe",
    [TARE__STATE_GPU] = "waiting for a GPU",
    [TARE__STATE_SLEEP] = "sleeping",
    [TARE__STATE_OTHER] = "waiting",
};

const char *tare__thread_state_words(unsigned state)
{
    return words[state < TARE__STATE_COUNT ? state : TARE__STATE_UNKNOWN];
}
