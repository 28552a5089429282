/* python_guess: checks that the code objects of the stacks are those in the cache. Those of the last samples are part
 * of the read that has the frames; the others take one more.
 * One thread owns the reader.
 * Must not know frames or threads. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "python_inner.h"

#define GUESS_SAMPLES 8u /* a code object is expected for so many samples after its last one */
#define GUESS_VECTORS 200u

void tare__python_guess_plan(tare__python *python)
{
    for (size_t i = 0; i < python->guessed.n; i++) {
        tare__python_region *region = &python->guessed.at[i];
        region->first = python->n_vectors < TARE__PYTHON_VECTORS_MAX
                            ? tare__python_plan(python, region->address, region->bytes) : TARE__PYTHON_NO;
    }
}

static void check_place(tare__python *python, tare__python_place *place, const unsigned char *bytes)
{
    if (bytes && tare__python_place_is(python, place, bytes))
        place->checked = python->round;
}

void tare__python_guess_check(tare__python *python)
{
    for (size_t i = 0; i < python->n_guesses; i++) {
        const tare__python_guess *guess = &python->guesses[i];
        const tare__python_region *region = &python->guessed.at[guess->region];
        tare__python_place *place = tare__python_place_of(python, guess->address);
        if (place && region->first != TARE__PYTHON_NO)
            check_place(python, place,
                        tare__python_planned(python, region->first + guess->offset, python->layout.code_bytes));
    }
}

void tare__python_ask(tare__python *python, uint64_t address)
{
    tare__python_place *place = tare__python_place_of(python, address);
    if (place && (place->checked == python->round || place->asked))
        return;
    if (tare__python_add(&python->asked, address) && place)
        place->asked = true;
}

/* Reads the code objects that were not guessed, in one call; what is new or has changed is loaded. */
void tare__python_ask_check(tare__python *python)
{
    tare__python_regions ranges = {0};
    tare__python_addresses *asked = &python->asked;
    if (!asked->n || !tare__python_merge(asked, python->layout.code_bytes, &ranges)) {
        free(ranges.at);
        asked->n = 0;
        return;
    }
    tare__python_plan_clear(python);
    for (size_t i = 0; i < ranges.n; i++)
        ranges.at[i].first = tare__python_plan(python, ranges.at[i].address, ranges.at[i].bytes);
    tare__python_plan_read(python);
    for (size_t i = 0; i < asked->n; i++) {
        tare__python_place *place = tare__python_place_of(python, asked->at[i]);
        const tare__python_region *range = tare__python_region_of(&ranges, asked->at[i], python->layout.code_bytes);
        if (!place)
            continue;
        place->asked = false;
        if (range && range->first != TARE__PYTHON_NO)
            check_place(python, place,
                        tare__python_planned(python, range->first + (uint32_t)(asked->at[i] - range->address),
                                             python->layout.code_bytes));
    }
    for (size_t i = 0; i < asked->n; i++) {
        tare__python_place *place = tare__python_place_of(python, asked->at[i]);
        if ((!place || place->checked != python->round) && tare__python_may_read(python)) {
            tare__python_place_load(python, asked->at[i]);
            python->loaded = true;
        }
    }
    asked->n = 0;
    free(ranges.at);
}

static bool is_recent(const tare__python *python, const tare__python_place *place)
{
    return place->used && python->sample - place->used < GUESS_SAMPLES;
}

/* The places that the next sample will probably have: those of the last samples. */
static void make_guesses(tare__python *python, tare__python_addresses *addresses)
{
    python->n_guesses = 0;
    if (!tare__python_merge(addresses, python->layout.code_bytes, &python->guessed) ||
        !tare__array_fit(&python->guesses, &python->guesses_room, addresses->n, sizeof(*python->guesses)))
        return;
    if (python->guessed.n > GUESS_VECTORS)
        python->guessed.n = GUESS_VECTORS;
    for (size_t i = 0; i < addresses->n; i++) {
        const tare__python_region *region =
            tare__python_region_of(&python->guessed, addresses->at[i], python->layout.code_bytes);
        if (!region)
            continue;
        tare__python_place_of(python, addresses->at[i])->guessed = true;
        python->guesses[python->n_guesses++] =
            (tare__python_guess){addresses->at[i], (uint32_t)(region - python->guessed.at),
                                 (uint32_t)(addresses->at[i] - region->address)};
    }
}

void tare__python_guess_next(tare__python *python)
{
    tare__python_addresses *fresh = &python->fresh; /* used and not guessed, in this sample */
    size_t old = fresh->n;
    for (size_t i = 0; i < python->n_guesses; i++) {
        tare__python_place *place = tare__python_place_of(python, python->guesses[i].address);
        if (place)
            old += !is_recent(python, place);
    }
    if (!old)
        return;
    for (size_t i = 0; i < python->n_guesses; i++) {
        tare__python_place *place = tare__python_place_of(python, python->guesses[i].address);
        if (place)
            place->guessed = false;
        if (place && is_recent(python, place))
            tare__python_add(fresh, place->address);
    }
    for (size_t i = 0; i < fresh->n; i++) /* all are in the cache still, or it was cleared */
        if (!tare__python_place_of(python, fresh->at[i]))
            fresh->at[i--] = fresh->at[--fresh->n];
    make_guesses(python, fresh);
    fresh->n = 0;
}
