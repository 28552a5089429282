/* nest: spans in loops, in depth, in recursion, and ended as they should not be.
 * One thread.
 * Must not know anything of Tare but tare.h. */
#include "victim.h"

static tare_site outer = TARE_SITE("outer"), inner = TARE_SITE("inner"), level = TARE_SITE("level");
static tare_site left = TARE_SITE("left open"), never = TARE_SITE("never begun");

static void loop(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        tare_begin(&outer);
        tare_begin(&inner);
        tare_end(&inner);
        tare_next(&inner);
        tare_end(&inner);
    }
    tell("loops", n);
}

static void deep(uint64_t n, uint64_t times)
{
    for (uint64_t t = 0; t < times; t++) {
        for (uint64_t i = 0; i < n; i++)
            tare_begin(&level);
        for (uint64_t i = 0; i < n; i++)
            tare_end(&level);
    }
    tell("levels", n * times);
}

static uint64_t recurse(uint64_t n)
{
    TARE_SPAN("recurse");
    return n < 2 ? n : recurse(n - 1) + recurse(n - 2);
}

static void wrong_ends(void)
{
    tare_end(&never);
    tare_begin(&outer);
    tare_end(&never); /* changes nothing */
    tare_begin(&left);
    tare_begin(&left);
    tare_end(&outer); /* closes both inside */
    tare_end(NULL);   /* nothing is open */
    tare_next(&inner);
    tare_next(&outer);
    tare_end(&outer);
    tare_end(&outer);
}

int main(int argc, char **argv)
{
    const char *mode = mode_of(argc, argv);
    tell_session();
    if (strcmp(mode, "loop") == 0)
        loop(number_of(argc, argv, 2, 1000));
    else if (strcmp(mode, "deep") == 0)
        deep(number_of(argc, argv, 2, 64), number_of(argc, argv, 3, 1));
    else if (strcmp(mode, "recurse") == 0)
        tell("result", recurse(number_of(argc, argv, 2, 10)));
    else if (strcmp(mode, "wrong") == 0)
        wrong_ends();
    else if (strcmp(mode, "open") == 0)
        for (uint64_t i = 0, n = number_of(argc, argv, 2, 3); i < n; i++)
            tare_begin(&left);
    else
        return unknown_mode(mode);
    return 0;
}
