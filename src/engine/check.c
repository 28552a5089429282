/* check: figures read from JSON, and checked against a baseline.
 * An object is used by one thread at a time.
 * Must not know where the JSON comes from or is written to. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/emit.h"
#include "engine.h"

int tare_engine_figures(const char *json, size_t bytes, const char *name, tare_engine_write *write, void *context,
                        char error[TARE_ENGINE_ERROR])
{
    tare__error why = {""};
    tare__figures *figures = NULL;
    tare__text text = {0};
    int status = tare__figures_read_json(json, bytes, name, &figures, &why);
    if (!status)
        tare__put_document(&text, &tare__document_baseline, figures, false);
    tare__figures_free(figures);
    return tare__engine_finish(status, why.text, &text, write, context, error);
}

static int make_thresholds(const tare_engine_gate *gates, size_t n, tare__threshold **made, tare__error *why)
{
    *made = calloc(n + 1, sizeof **made);
    if (!*made)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        tare__threshold *one = &(*made)[i];
        if (strlen(gates[i].name) > TARE__THRESHOLD_NAME_MAX)
            return tare__fail(why, TARE_E_USAGE, "the name of the figure '%.64s' is too long", gates[i].name);
        *one = (tare__threshold){.kind = TARE__THRESHOLD_CHANGE, .value = gates[i].share, .floor = NAN};
        strcpy(one->name, gates[i].name);
    }
    return 0;
}

int tare_engine_check(const char *baseline, size_t baseline_bytes, const char *head, size_t head_bytes, double share,
                      const tare_engine_gate *gates, size_t n_gates, tare_engine_write *write, void *context,
                      char error[TARE_ENGINE_ERROR])
{
    static const tare__check_names names = {.head = "results", .base = "baseline"};
    tare__error why = {""};
    tare__figures *before = NULL, *after = NULL;
    tare__threshold *thresholds = NULL;
    tare__check *check = NULL;
    tare__text text = {0};
    int status = tare__figures_read_json(baseline, baseline_bytes, names.base, &before, &why);
    if (!status)
        status = tare__figures_read_json(head, head_bytes, names.head, &after, &why);
    if (!status)
        status = make_thresholds(gates, n_gates, &thresholds, &why);
    if (!status) {
        const tare__check_options options = {.thresholds = thresholds, .n_thresholds = n_gates, .share = share};
        status = tare__check_figures(before, after, &options, &check, &why);
    }
    if (!status)
        tare__emit_check_json(check, &names, false, &text);
    tare__check_free(check);
    free(thresholds);
    tare__figures_free(before);
    tare__figures_free(after);
    return tare__engine_finish(status, why.text, &text, write, context, error);
}

int tare_engine_threshold(const char *threshold, const char *unit, double *value, char written[TARE_ENGINE_UNIT],
                          char error[TARE_ENGINE_ERROR])
{
    tare__error why = {""};
    tare__threshold read;
    char what[96];
    snprintf(what, sizeof what, "the threshold '%.64s'", threshold);
    int status = tare__threshold_parse_of(threshold, unit, what, &read, &why);
    if (status) {
        snprintf(error, TARE_ENGINE_ERROR, "%s", why.text);
        return status;
    }
    *value = read.value;
    snprintf(written, TARE_ENGINE_UNIT, "%s", read.unit);
    return 0;
}
