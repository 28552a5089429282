/* history_show: the subcommands that show runs: list, show, trend. One thread.
 * Must not know how runs are stored or laid out. */
#include "history.h"

#include <stdlib.h>
#include <string.h>

#define TRENDS_MAX     64
#define TRENDS_DEFAULT 8

static const tare__history_emitter *emitter_of(const tare__history_call *history)
{
    return tare__history_find(history->format ? history->format : "text");
}

/* ---- list ------------------------------------------------------------------------------------------- */
int tare__history_do_list(tare__history_call *history, tare__error *error)
{
    tare__kept_list runs = {0};
    int status = history->store ? tare__store_list(history->store, &history->filter, &runs, error) : 0;
    if (status)
        return tare__history_exit(status);
    if (runs.n == 0 && !history->format)
        tare__cli_say(TARE__HISTORY_ME, "no matching runs");
    int exit_status = tare__history_write(history, emitter_of(history)->list, &runs, error);
    tare__store_list_free(&runs);
    return exit_status;
}

/* ---- show ------------------------------------------------------------------------------------------- */
int tare__history_do_show(tare__history_call *history, tare__error *error)
{
    tare__kept_list runs;
    tare__figures *figures = NULL;
    int status = tare__store_find(history->store, history->words[0], &runs, error);
    if (status)
        return tare__history_exit(status);
    status = tare__store_figures(history->store, &runs.rows[0], &figures, error);
    int exit_status = status ? tare__history_exit(status)
                             : tare__history_write(history, emitter_of(history)->show,
                                                   &(tare__kept_run){&runs.rows[0], figures}, error);
    tare__figures_free(figures);
    tare__store_list_free(&runs);
    return exit_status;
}

/* ---- trend ------------------------------------------------------------------------------------------ */
typedef struct trending {
    tare__kept_trend rows[TRENDS_MAX];
    tare__kept_trends trends;
} trending;

/* Runs of different commands or machines are not comparable: those of the newest one are used, unless a filter selects
 * others. */
static int narrow(tare__history_call *history, tare__kept_list *newest, tare__error *error)
{
    tare__store_filter one = history->filter;
    one.limit = 1;
    int status = tare__store_list(history->store, &one, newest, error);
    if (status)
        return status;
    if (newest->n == 0) {
        tare__store_list_free(newest);
        return tare__fail(error, TARE_E_USAGE, "no matching run; `tare history` lists all runs");
    }
    const tare__kept *run = &newest->rows[0];
    if (!history->filter.command)
        history->filter.exact_command = run->command;
    if (!history->any_machine && !history->filter.host)
        history->filter.machine = run->machine;
    return 0;
}

/* The figures shown by default: duration and resource usage first, then steps and spans. */
static bool is_main(const char *name)
{
    return strcmp(name, "run.elapsed") == 0 || strcmp(name, "run.cpu") == 0 ||
           strcmp(name, "run.peak_rss") == 0 || strncmp(name, "step", 4) == 0 ||
           strncmp(name, "span:", 5) == 0 || strncmp(name, "model.", 6) == 0;
}

static int choose(tare__history_call *history, tare__arena *arena, const char **figures, size_t *n, tare__error *error)
{
    tare__store_name *names = NULL;
    size_t n_names = 0;
    tare__store_filter recent = history->filter;
    recent.limit = recent.limit && recent.limit < 50 ? recent.limit : 50;
    int status = tare__store_names(history->store, &recent, arena, &names, &n_names, error);
    for (int round = 0; round < 2 && !status; round++)
        for (size_t i = 0; i < n_names && *n < TRENDS_DEFAULT; i++)
            if (is_main(names[i].name) && (strncmp(names[i].name, "run.", 4) == 0) == (round == 0))
                figures[(*n)++] = names[i].name;
    if (!status && *n == 0)
        return tare__fail(error, TARE_E_USAGE,
                          "these runs have no default figures; name one: tare history trend FIGURE");
    return status;
}

static int no_such_figure(tare__history_call *history, const char *figure, tare__arena *arena, tare__error *error)
{
    tare__store_name *names = NULL;
    size_t n = 0;
    tare__store_filter recent = history->filter;
    recent.limit = 50;
    if (tare__store_names(history->store, &recent, arena, &names, &n, NULL) != 0)
        n = 0;
    const char **plain = calloc(n + 1, sizeof *plain);
    for (size_t i = 0; i < n && plain; i++)
        plain[i] = names[i].name;
    const char *near = plain ? tare__cli_nearest(figure, plain, n) : NULL;
    int status = tare__fail(error, TARE_E_USAGE, "no matching run has a figure '%.100s'%s%.100s%s", figure,
                            near ? "; did you mean '" : "; `tare history show last` lists them",
                            near ? near : "", near ? "'?" : "");
    free(plain);
    return status;
}

static int load_trends(tare__history_call *history, trending *into, const char *const *figures, size_t n,
                       tare__arena *arena, tare__error *error)
{
    int status = 0;
    for (size_t i = 0; i < n && i < TRENDS_MAX && !status; i++) {
        tare__kept_trend *trend = &into->rows[into->trends.n];
        status = tare__store_trend(history->store, &history->filter, figures[i], trend, error);
        if (status == TARE__STORE_NONE)
            return no_such_figure(history, figures[i], arena, error);
        if (status)
            return status;
        into->trends.n++;
        if (tare__kept_find_changes(trend) != 0)
            status = tare__no_memory(error);
    }
    return status;
}

int tare__history_do_trend(tare__history_call *history, tare__error *error)
{
    static trending from;
    tare__kept_list newest;
    const char *chosen[TRENDS_MAX];
    size_t n = 0;
    tare__arena *arena = tare__arena_new();
    from = (trending){.trends.rows = from.rows};
    int status = arena ? narrow(history, &newest, error) : tare__no_memory(error);
    if (status) {
        tare__arena_free(arena);
        return tare__history_exit(status);
    }
    if (history->n_words > TRENDS_MAX)
        status = tare__fail(error, TARE_E_USAGE, "more than %d figures", TRENDS_MAX);
    for (; (int)n < history->n_words && n < TRENDS_MAX; n++)
        chosen[n] = history->words[n];
    if (!status && n == 0)
        status = choose(history, arena, chosen, &n, error);
    if (!status)
        status = load_trends(history, &from, chosen, n, arena, error);
    from.trends.command = history->filter.exact_command;
    from.trends.machine = history->filter.machine;
    int exit_status = status ? tare__history_exit(status)
                             : tare__history_write(history, emitter_of(history)->trend, &from.trends, error);
    for (size_t i = 0; i < from.trends.n; i++)
        tare__store_trend_free(&from.rows[i]);
    tare__store_list_free(&newest);
    tare__arena_free(arena);
    return exit_status;
}
