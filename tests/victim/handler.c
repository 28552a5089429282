/* handler: a timer's signal handler that records, on top of a tight loop that records.
 * One thread and its handler.
 * Must not know anything of Tare but tare.h. */
#include <errno.h>
#include <signal.h>
#include <sys/time.h>

#include "victim.h"

static tare_site in_handler = TARE_SITE("handler"), in_loop = TARE_SITE("loop");
static tare_site chained = TARE_SITE("chained");
static tare_site counted = TARE_SITE_OF("counted", TARE_KIND_AGGREGATE, 1);
static volatile uint64_t fired;
static volatile uint64_t errno_changed;

static void on_timer(int number)
{
    (void)number;
    int before = errno;
    errno = 4321;
    tare_begin(&in_handler);
    tare_aggregate_end(&counted, tare_aggregate_begin());
    tare_end(&in_handler);
    errno_changed += errno != 4321;
    errno = before;
    fired++;
}

int main(int argc, char **argv)
{
    uint64_t ms = number_of(argc, argv, 1, 500), n = 0;
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (uint64_t until = monotonic_ns() + ms * 1000000; monotonic_ns() < until; n++) {
        tare_begin(&in_loop);
        tare_next(&chained);
        tare_end(&chained);
        tare_aggregate_end(&counted, tare_aggregate_begin());
    }
    setitimer(ITIMER_REAL, &never, NULL);
    tell("loops", n);
    tell("fired", fired);
    tell("errno_changed", errno_changed);
    return 0;
}
