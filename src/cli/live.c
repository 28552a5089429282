/* live: the status line while the program runs, updated in place, only on a terminal.
 * The collector's thread.
 * Must not block the collector: a terminal that accepts no output is skipped. */
#define _GNU_SOURCE
#include "recording.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define EVERY_NS 200000000u

static bool takes_text(void)
{
    struct pollfd terminal = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLOUT);
}

static unsigned columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col - 1 : 79;
}

/* Steps since the line was last written: the current rate, not the average. */
static double step_rate(tare__cli_live *live, const tare__run_progress *progress)
{
    double seconds = (double)(progress->elapsed_ns - live->at_ns) / 1e9;
    double rate = (double)(progress->steps - live->steps) / seconds;
    live->steps = progress->steps;
    return progress->steps > 0 && seconds > 0 ? rate : NAN;
}

void tare__cli_live_words(tare__cli_live *live, const tare__run_progress *progress, tare__text *out)
{
    char elapsed[TARE__UNIT_BYTES], value[TARE__UNIT_BYTES];
    double rate = step_rate(live, progress);
    tare__text_format(out, "tare: %s", tare__unit_time(elapsed, (double)progress->elapsed_ns));
    if (isfinite(rate))
        tare__text_format(out, " · %s steps/s", tare__unit_count(value, rate));
    if (isfinite(progress->now.tree_cores))
        tare__text_format(out, " · CPU %s core%s", tare__unit_count(value, progress->now.tree_cores),
                          progress->now.tree_cores == 1 ? "" : "s");
    if (isfinite(progress->now.tree_rss_bytes))
        tare__text_format(out, " · memory %s", tare__unit_bytes(value, progress->now.tree_rss_bytes));
    if (isfinite(progress->now.gpu_busy))
        tare__text_format(out, " · GPU %s", tare__unit_percent(value, progress->now.gpu_busy));
    if (isfinite(progress->now.gpu_memory_bytes))
        tare__text_format(out, " · GPU memory %s", tare__unit_bytes(value, progress->now.gpu_memory_bytes));
}

void tare__cli_live_update(tare__cli_live *live, const tare__run_progress *progress)
{
    bool first = !live->shown && live->at_ns == 0;
    if (!live->on || (!first && progress->elapsed_ns < live->at_ns + EVERY_NS) || !takes_text())
        return;
    tare__text words = {0};
    char fitted[1024];
    tare__cli_live_words(live, progress, &words);
    live->at_ns = progress->elapsed_ns;
    if (!words.failed) {
        tare__text_fit(fitted, sizeof fitted, words.data, columns());
        dprintf(STDERR_FILENO, "\r%s\x1b[K", fitted);
        live->shown = true;
    }
    tare__text_free(&words);
}

void tare__cli_live_begin(tare__cli_live *live, bool wanted)
{
    *live = (tare__cli_live){.on = wanted && isatty(STDERR_FILENO)};
}

void tare__cli_live_end(tare__cli_live *live)
{
    if (live->shown && takes_text())
        dprintf(STDERR_FILENO, "\r\x1b[K");
    live->on = live->shown = false;
}
