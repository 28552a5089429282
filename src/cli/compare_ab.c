/* compare_ab: two commands run alternately, round by round in random order, until a sequential test decides.
 * One thread.
 * Must not know how commands are recorded, nor how the result is shown. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compare.h"
#include "compare_launch.h"
#include "inputs.h"
#include "stat/stat.h"

#define DECIDES     "run.elapsed"
#define LOG_SHOWN   600 /* last bytes of the output of a failed command */

typedef struct rounds {
    const tare__cli_ab_options *options;
    tare__figures **runs[2]; /* one per round */
    double *values[2];       /* of the figure that decides */
    size_t n;
    char folder[PATH_MAX];   /* for traces and the output of the commands */
    bool own_folder;
    int log;
    tare__random random;
    double started_s;
    tare__sequential_plan plan;
} rounds;

/* ---- one run ---------------------------------------------------------------------------------- */
static void last_words(const rounds *all, char *out, size_t room)
{
    char end[LOG_SHOWN];
    out[0] = '\0';
    off_t length = all->log < 0 ? 0 : lseek(all->log, 0, SEEK_END);
    off_t from = length > LOG_SHOWN ? length - LOG_SHOWN : 0;
    ssize_t got = length > 0 ? pread(all->log, end, sizeof end, from) : 0;
    while (got > 0 && (end[got - 1] == '\n' || end[got - 1] == ' '))
        got--;
    const char *line = got > 0 ? memrchr(end, '\n', (size_t)got) : NULL;
    if (got > 0) {
        size_t start = line ? (size_t)(line - end) + 1 : 0;
        snprintf(out, room, "; its last line was: %.*s", (int)((size_t)got - start), end + start);
    }
}

static int check_status(const rounds *all, int side, size_t round, const tare__ab_ran *ran, tare__error *error)
{
    char words[LOG_SHOWN + 64];
    const char *command = all->options->commands[side];
    int status = WIFEXITED(ran->status) ? WEXITSTATUS(ran->status) : -1;
    if (status == 0)
        return 0;
    char when[32] = "the warm-up";
    if (round)
        snprintf(when, sizeof when, "round %zu", round);
    last_words(all, words, sizeof words);
    if (status < 0)
        return tare__fail(error, TARE_E_INPUT, "`%.150s` was killed by signal %d in %s%.200s", command,
                          WTERMSIG(ran->status), when, words);
    return tare__fail(error, TARE_E_INPUT, "`%.150s` exited with status %d in %s%.200s", command, status, when, words);
}

static void trace_path(const rounds *all, int side, size_t round, char out[PATH_MAX + 32])
{
    snprintf(out, PATH_MAX + 32, "%s/%s.%03zu.tare", all->folder, side ? "candidate" : "baseline", round);
}

static int bare_figures(const rounds *all, int side, const tare__ab_ran *ran, tare__figures **figures)
{
    char host[256] = "";
    tare__figures *made = tare__figures_new("run");
    if (!made)
        return TARE_E_MEMORY;
    const struct {
        const char *name, *unit;
        double value;
    } values[] = {{DECIDES, "ns", ran->elapsed_ns},
                  {"run.cpu", "ns", ran->cpu_ns},
                  {"run.peak_rss", "bytes", ran->peak_bytes}};
    int status = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(values) && !status; i++) {
        tare__figure figure = {.name = values[i].name, .unit = values[i].unit, .better = TARE__LOWER,
                               .value = values[i].value, .total = values[i].value, .n = 1};
        status = tare__figures_add(made, &figure);
    }
    if (gethostname(host, sizeof host - 1) == 0)
        made->host = tare__figures_text(made, host);
    made->command = tare__figures_text(made, all->options->commands[side]);
    made->when_ns = (uint64_t)time(NULL) * 1000000000u;
    *figures = made;
    return status;
}

/* Only the values are kept: the samples of a hundred runs would take a lot of memory and are not used. */
static int recorded_figures(const char *trace, tare__figures **figures, tare__error *error)
{
    tare__figures *whole;
    int status = tare__cli_load_figures(trace, &whole, error);
    if (status)
        return status;
    status = tare__figures_join((const tare__figures *const[]){whole}, 1, figures);
    tare__figures_free(whole);
    return status ? tare__no_memory(error) : 0;
}

static int run_once(rounds *all, int side, size_t round, tare__figures **figures, tare__error *error)
{
    char trace[PATH_MAX + 32];
    bool bare = all->options->bare;
    tare__ab_ran ran = {0};
    trace_path(all, side, round, trace);
    if (all->log >= 0 && ftruncate(all->log, 0) == 0)
        lseek(all->log, 0, SEEK_SET);
    int status = tare__ab_run(all->options->commands[side], bare ? NULL : trace, all->log, &ran, error);
    if (!status && !tare__ab_interrupted())
        status = check_status(all, side, round, &ran, error);
    if (!status && !tare__ab_interrupted())
        status = bare ? bare_figures(all, side, &ran, figures) : recorded_figures(trace, figures, error);
    if (!bare && (all->own_folder || round == 0))
        unlink(trace);
    return status;
}

/* ---- rounds ----------------------------------------------------------------------------------- */
static void forget_round(tare__figures *pair[2])
{
    tare__figures_free(pair[0]);
    tare__figures_free(pair[1]);
}

static int keep_round(rounds *all, tare__figures *pair[2], tare__error *error)
{
    for (int side = 0; side < 2; side++) {
        const tare__figure *decides = tare__figures_find(pair[side], DECIDES);
        if (!decides) {
            forget_round(pair);
            return tare__fail(error, TARE_E_INPUT, "`%.150s`: elapsed time unavailable", all->options->commands[side]);
        }
        all->values[side][all->n] = decides->value;
    }
    for (int side = 0; side < 2; side++)
        all->runs[side][all->n] = pair[side];
    all->n++;
    return 0;
}

/* A round is one run of each command in random order, so that effects of the order are the same for both. */
static int make_round(rounds *all, size_t round, bool counts, tare__error *error)
{
    int first = (int)tare__random_below(&all->random, 2), status = 0;
    tare__figures *pair[2] = {NULL, NULL};
    for (int i = 0; i < 2 && !status && !tare__ab_interrupted(); i++)
        status = run_once(all, first ^ i, counts ? round : 0, &pair[first ^ i], error);
    if (!status && counts && pair[0] && pair[1])
        status = keep_round(all, pair, error);
    else
        forget_round(pair);
    return status;
}

/* ---- when to stop ----------------------------------------------------------------------------- */
static double min_change(const rounds *all)
{
    return isnan(all->options->min_change) ? TARE__GATE_SHARE_TURN : all->options->min_change;
}

static void test_round(rounds *all, tare__cli_ab_result *result)
{
    tare__compare_ab *ab = &result->ab;
    const tare__question question = {.better = TARE__LOWER,
                                     .cannot = TARE__WHY_FEW,
                                     .gate = {.share = min_change(all), .floor = tare__decide_floor("ns")}};
    result->decision = tare__decide_rounds(all->values[0], all->values[1], all->n, &all->plan, &question);
    ab->rounds = all->n;
    ab->change = result->decision.change;
    ab->low = result->decision.low;
    ab->high = result->decision.high;
    ab->p = result->decision.p;
    ab->level = tare__sequential_level(&all->plan, all->n);
    ab->clear = result->decision.verdict != TARE__VERDICT_INCONCLUSIVE;
}

static void answer(const rounds *all, tare__cli_ab_result *result)
{
    tare__compare_ab *ab = &result->ab;
    char change[TARE__UNIT_BYTES], interval[TARE__COMPARED_BYTES], least[TARE__UNIT_BYTES];
    const char *after = ab->rounds == 1 ? "round" : "rounds", *why = ab->interrupted ? " (interrupted)" : "";
    tare__unit_change(change, ab->change);
    tare__compared_interval(interval, ab->low, ab->high);
    tare__unit_percent(least, min_change(all));
    ab->answer = result->answer;
    if (ab->clear && result->decision.verdict == TARE__VERDICT_SAME)
        snprintf(result->answer, sizeof result->answer, "After %zu %s: %s differs by less than %s (%s %%).",
                 ab->rounds, after, ab->figure, least, interval);
    else if (ab->clear)
        snprintf(result->answer, sizeof result->answer, "After %zu %s: the second command is %s, %s %s (%s %%).",
                 ab->rounds, after, ab->change > 0 ? "slower" : "faster", ab->figure, change, interval);
    else if (*interval)
        snprintf(result->answer, sizeof result->answer, "Inconclusive after %zu %s%s: %s changes by %s (%s %%).",
                 ab->rounds, after, why, ab->figure, change, interval);
    else
        snprintf(result->answer, sizeof result->answer,
                 "Inconclusive after %zu %s%s: %s changes by %s; too few rounds for a test.", ab->rounds, after, why,
                 ab->figure, change);
}

static bool is_over(const rounds *all, const tare__cli_ab_result *result)
{
    double limit = (double)all->options->seconds_ns / 1e9;
    return result->ab.clear || all->n >= all->options->rounds || tare__ab_interrupted() ||
           (limit > 0 && (double)tare__monotonic_ns() / 1e9 - all->started_s >= limit);
}

static void tell(const rounds *all, const tare__cli_ab_result *result)
{
    char base[TARE__UNIT_BYTES], head[TARE__UNIT_BYTES], change[TARE__UNIT_BYTES];
    if (all->options->quiet || !isatty(STDERR_FILENO) || !all->n)
        return;
    tare__cli_say(TARE__COMPARE_ME, "round %zu of at most %llu: %s, %s; %s so far", all->n,
                  (unsigned long long)all->options->rounds, tare__unit_time(base, all->values[0][all->n - 1]),
                  tare__unit_time(head, all->values[1][all->n - 1]),
                  tare__unit_change(change, result->ab.change));
}

/* ---- the command ------------------------------------------------------------------------------ */
static int make_folder(rounds *all, tare__error *error)
{
    const char *keep = all->options->keep;
    if (keep) {
        char taken[PATH_MAX + 32];
        snprintf(all->folder, sizeof all->folder, "%s", keep);
        if (mkdir(keep, 0700) != 0 && errno != EEXIST)
            return tare__fail(error, TARE_E_SYSTEM, "cannot create the directory '%.200s': %s", keep, strerror(errno));
        trace_path(all, 0, 1, taken);
        return access(taken, F_OK) == 0
                   ? tare__fail(error, TARE_E_USAGE, "--keep: '%.200s' already contains traces; choose another "
                                                     "directory", keep)
                   : 0;
    }
    snprintf(all->folder, sizeof all->folder, "%s/tare-ab.XXXXXX", tare__temporary_folder());
    all->own_folder = mkdtemp(all->folder) != NULL;
    return all->own_folder ? 0
                           : tare__fail(error, TARE_E_SYSTEM, "cannot create a directory in '%.200s': %s",
                                        tare__temporary_folder(), strerror(errno));
}

static int open_log(rounds *all, tare__error *error)
{
    char path[PATH_MAX + 16];
    all->log = -1;
    if (all->options->passed_output)
        return 0;
    snprintf(path, sizeof path, "%s/.output", all->folder);
    char *name = NULL;
    int fd = tare__file_make(path, 0600, &name);
    all->log = fd < 0 ? -1 : open(name, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        unlink(name); /* it exists as long as it is open */
        close(fd);
    }
    free(name);
    if (all->log < 0)
        return tare__fail(error, TARE_E_SYSTEM, "cannot write into '%.200s': %s", all->folder, strerror(errno));
    return 0;
}

static int start(rounds *all, tare__error *error)
{
    size_t most = (size_t)all->options->rounds;
    for (int side = 0; side < 2; side++) {
        all->runs[side] = calloc(most, sizeof(tare__figures *));
        all->values[side] = calloc(most, sizeof(double));
        if (!all->runs[side] || !all->values[side])
            return tare__no_memory(error);
    }
    tare__random_seed(&all->random, all->options->seed);
    int status = make_folder(all, error);
    return status ? status : open_log(all, error);
}

static void finish(rounds *all)
{
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < all->n; i++)
            tare__figures_free(all->runs[side][i]);
        free(all->runs[side]);
        free(all->values[side]);
    }
    if (all->log >= 0)
        close(all->log);
    if (all->own_folder)
        rmdir(all->folder);
}

static int join(rounds *all, tare__cli_ab_result *result, tare__error *error)
{
    for (int side = 0; side < 2 && all->n; side++) {
        if (tare__figures_join((const tare__figures *const *)all->runs[side], all->n, &result->sides[side]))
            return tare__no_memory(error);
        tare__figures *joined = result->sides[side]; /* the command as the user wrote it, without the shell around it */
        joined->command = tare__figures_text(joined, all->options->commands[side]);
    }
    return 0;
}

static int make_rounds(rounds *all, tare__cli_ab_result *result, tare__error *error)
{
    int status = 0;
    for (uint64_t i = 0; i < all->options->warmup && !status && !tare__ab_interrupted(); i++)
        status = make_round(all, 0, false, error);
    all->started_s = (double)tare__monotonic_ns() / 1e9;
    while (!status && !is_over(all, result)) {
        status = make_round(all, all->n + 1, true, error);
        test_round(all, result);
        tell(all, result);
    }
    return status;
}

int tare__cli_ab(const tare__cli_ab_options *options, tare__cli_ab_result *result, tare__error *error)
{
    rounds all = {.options = options, .log = -1};
    *result = (tare__cli_ab_result){.ab = {.commands = {options->commands[0], options->commands[1]},
                                           .figure = DECIDES,
                                           .wanted = (size_t)options->rounds,
                                           .change = NAN,
                                           .low = NAN,
                                           .high = NAN,
                                           .p = NAN}};
    tare__sequential_make(&all.plan, (size_t)options->rounds, TARE__SEQUENTIAL_ALPHA);
    tare__ab_watch();
    int status = start(&all, error);
    if (!status)
        status = make_rounds(&all, result, error);
    result->ab.interrupted = tare__ab_interrupted();
    tare__ab_unwatch();
    int joined = join(&all, result, status ? NULL : error);
    answer(&all, result);
    finish(&all);
    return status ? status : joined;
}
