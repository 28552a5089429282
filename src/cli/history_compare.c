/* history_compare: `tare history compare`: compares a run of the history with another, or with the last ones before it.
 * One thread.
 * Must not know how figures are compared, stored or laid out. */
#include "history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare.h"
#include "inputs.h"

#define LAST_MAX 1000u

/* ---- the two sides ---------------------------------------------------------------------------------- */
typedef struct side {
    tare__store *store;
    const tare__kept_list *runs;
} side;

/* The oldest first. */
static int load_run(const void *context, size_t i, tare__figures **figures, tare__error *error)
{
    const side *of = context;
    return tare__store_figures(of->store, &of->runs->rows[of->runs->n - 1 - i], figures, error);
}

/* Runs of the same command on the same machine before it; failed runs are excluded, since they have no meaningful
 * speed. */
static int find_before(tare__history_call *history, const tare__kept *run, tare__kept_list *before, tare__error *error)
{
    if (history->last == 0 || history->last > LAST_MAX)
        return tare__fail(error, TARE_E_USAGE, "--last: a number from 1 to %u", LAST_MAX);
    const tare__store_filter filter = {.exact_command = run->command,
                                       .machine = history->any_machine ? NULL : run->machine,
                                       .kind = run->kind,
                                       .before_ns = run->when_ns,
                                       .not_id = run->id,
                                       .ended_well = true,
                                       .limit = history->last};
    int status = tare__store_list(history->store, &filter, before, error);
    if (status || before->n)
        return status;
    tare__store_list_free(before);
    return tare__fail(error, TARE_E_USAGE, "there is no earlier successful run of '%.100s'%s",
                      run->command ? run->command : "?", history->any_machine ? "" : " on its machine");
}

static void name_run(const tare__kept_list *runs, char *out, size_t room)
{
    if (runs->n == 1)
        snprintf(out, room, "%.*s", (int)runs->id_digits, runs->rows[0].id);
    else
        snprintf(out, room, "the %zu runs before", runs->n);
}

static int compare(tare__history_call *history, const tare__kept_list *base, const tare__kept_list *head,
                   tare__error *error)
{
    tare__figures *sides[2] = {NULL, NULL};
    char names[2][64];
    tare__comparison *comparison = NULL;
    const side earlier = {history->store, base};
    int status = base->n == 1 ? tare__store_figures(history->store, &base->rows[0], &sides[0], error)
                              : tare__cli_load_joined(base->n, load_run, &earlier, &sides[0], error);
    if (!status)
        status = tare__store_figures(history->store, &head->rows[0], &sides[1], error);
    if (!status &&
        tare__compare(sides[0], sides[1], &(tare__compare_options){.min_change = NAN}, &comparison) != 0)
        status = tare__no_memory(error);
    name_run(base, names[0], sizeof names[0]);
    name_run(head, names[1], sizeof names[1]);
    tare__emit_comparison input = {.comparison = comparison, .base_name = names[0], .head_name = names[1]};
    int exit_status = status ? tare__history_exit(status)
               : tare__compare_write(&input, history->format, history->output, &history->emit, error);
    tare__comparison_free(comparison);
    tare__figures_free(sides[0]);
    tare__figures_free(sides[1]);
    return exit_status;
}

/* ---- the subcommand --------------------------------------------------------------------------------- */
int tare__history_do_compare(tare__history_call *history, tare__error *error)
{
    static char newest[] = "last";
    tare__kept_list base, head;
    bool two = history->n_words == 2;
    if (two && history->last_given) {
        tare__fail(error, TARE_E_USAGE, "--last requires exactly one run");
        return TARE__EXIT_USAGE;
    }
    const char *head_word = history->n_words == 0 ? newest : history->words[two];
    int status = tare__store_find(history->store, head_word, &head, error);
    if (status)
        return tare__history_exit(status);
    status = two ? tare__store_find(history->store, history->words[0], &base, error)
                 : find_before(history, &head.rows[0], &base, error);
    int exit_status = status ? tare__history_exit(status) : compare(history, &base, &head, error);
    if (!status)
        tare__store_list_free(&base);
    tare__store_list_free(&head);
    return exit_status;
}
