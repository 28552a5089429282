/* set: all samplers of one target: their series, their intervals, and their cost.
 * One thread owns a set.
 * Must not know what any sampler measures, nor where values go. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

#define SAMPLERS_MAX 32u
#define LIST_AT 0u /* the first sampler of the table determines the processes of the tree; others use its list */
#define STRETCH_MAX_NS 10000000000u /* longest interval, however expensive ticks are */

/* Temporary subjects must not take the space of permanent ones. */
#define SERIES_MAX 20000u
#define SERIES_OF_PROCESSES_MAX 19000u
#define SERIES_OF_THREADS_MAX 16000u

typedef struct series_entry {
    uint64_t key, owner;
    uint32_t label, reason; /* in the set's texts */
    uint16_t metric, subject;
} series_entry;

struct tare__sample_set {
    tare__sample_options options;
    char *root;
    tare__sample_sink sink;
    void *states[SAMPLERS_MAX];
    unsigned waited[SAMPLERS_MAX]; /* ticks since its last */
    uint64_t due_ns, interval_ns;
    double tick_cost_ns; /* recent */
    tare__sample_cost cost;
    tare__sample_now now;
    uint32_t interval_series;
    series_entry *series; /* by id - 1 */
    size_t series_count, series_room;
    tare__index index; /* of series */
    tare__intern *texts; /* labels and reasons; 0 is "" */
    tare__sampled_process *processes;
    size_t process_count, process_room;
};

/* ---- series ------------------------------------------------------------------------------------------------ */

/* Subjects without a number are distinguished by their label. */
static bool label_identifies(tare__subject_kind kind)
{
    return kind == TARE__SUBJECT_DISK || kind == TARE__SUBJECT_NETWORK || kind == TARE__SUBJECT_SENSOR ||
           kind == TARE__SUBJECT_CONTAINER;
}

static uint32_t hash_of(const series_entry *entry)
{
    uint64_t hash = tare__hash_mix((uint64_t)entry->metric << 16 | entry->subject, entry->key);
    hash = tare__hash_mix(hash, entry->owner);
    return (uint32_t)(label_identifies((tare__subject_kind)entry->subject) ? tare__hash_mix(hash, entry->label) : hash);
}

TARE__SAME(is_same, series_entry,
           TARE__EQUAL(metric) && TARE__EQUAL(subject) && TARE__EQUAL(key) && TARE__EQUAL(owner) &&
               (TARE__EQUAL(label) || !label_identifies((tare__subject_kind)a->subject)))

static const char *text_of(const tare__sample_set *set, uint32_t text, uint32_t *bytes)
{
    size_t length = 0;
    const char *found = tare__intern_text(set->texts, text, &length);
    *bytes = (uint32_t)length;
    return found ? found : "";
}

static void tell(tare__sample_set *set, uint32_t id)
{
    const series_entry *entry = &set->series[id - 1];
    const tare__metric_about *about = tare__metric_of((tare__metric)entry->metric);
    tare__series series = {.id = id, .unit = about->unit, .kind = about->kind, .subject = entry->subject,
                           .key = entry->key, .owner = entry->owner, .metric = about->name,
                           .metric_bytes = (uint32_t)strlen(about->name)};
    series.label = text_of(set, entry->label, &series.label_bytes);
    series.absent = text_of(set, entry->reason, &series.absent_bytes);
    set->sink.series(set->sink.context, &series);
}

static size_t room_for(tare__subject_kind kind)
{
    if (kind == TARE__SUBJECT_THREAD)
        return SERIES_OF_THREADS_MAX;
    return kind == TARE__SUBJECT_PROCESS ? SERIES_OF_PROCESSES_MAX : SERIES_MAX;
}

static void relabel(tare__sample_set *set, uint32_t id, uint32_t label)
{
    if (set->series[id - 1].label == label)
        return;
    set->series[id - 1].label = label;
    tell(set, id);
}

uint32_t tare__sample_series_of(tare__sample_set *set, tare__metric metric, const tare__subject *subject)
{
    const char *label = subject->label ? subject->label : "";
    series_entry entry = {.key = subject->key, .owner = subject->owner, .metric = (uint16_t)metric,
                          .subject = (uint16_t)subject->kind,
                          .label = tare__intern_add(set->texts, label, strlen(label))};
    if (entry.label == TARE__INTERN_NONE)
        return 0;
    uint32_t hash = hash_of(&entry), row = tare__index_find(&set->index, hash, is_same, set->series, &entry);
    if (row != TARE__INDEX_NONE) {
        if (subject->label)
            relabel(set, row + 1, entry.label);
        return row + 1;
    }
    if (set->series_count >= room_for(subject->kind) ||
        !tare__array_fit(&set->series, &set->series_room, set->series_count + 1, sizeof *set->series) ||
        !tare__index_add(&set->index, hash, (uint32_t)set->series_count))
        return 0;
    set->series[set->series_count++] = entry;
    tell(set, (uint32_t)set->series_count);
    return (uint32_t)set->series_count;
}

static void give_reason(tare__sample_set *set, uint32_t id, uint32_t reason)
{
    if (set->series[id - 1].reason == reason || reason == TARE__INTERN_NONE)
        return;
    set->series[id - 1].reason = reason;
    tell(set, id);
}

void tare__sample_put(tare__sample_set *set, uint32_t series, int64_t value)
{
    if (series == 0 || series > set->series_count)
        return;
    give_reason(set, series, 0);
    set->sink.value(set->sink.context, series, value);
}

void tare__sample_absent(tare__sample_set *set, uint32_t series, const char *reason)
{
    if (series == 0 || series > set->series_count)
        return;
    give_reason(set, series, tare__intern_add(set->texts, reason, strlen(reason)));
}

/* ---- ticks ------------------------------------------------------------------------------------------------- */

static uint64_t thread_cpu_ns(void)
{
    return tare__clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t tare__sample_cost_clock(const tare__sample_set *set)
{
    return set->options.cost_clock();
}

uint64_t tare__sample_tick_budget_ns(const tare__sample_set *set)
{
    return (uint64_t)(set->options.budget * (double)set->options.interval_ns);
}

/* One expensive tick (a new process was found and read) is no reason to slow down; many are. When ticks become cheap
 * again the interval decreases immediately, except for small changes, which would make it fluctuate. */
static void keep_to_budget(tare__sample_set *set, uint64_t spent_ns)
{
    set->tick_cost_ns += ((double)spent_ns - set->tick_cost_ns) / 8;
    double wanted = set->tick_cost_ns / set->options.budget, asked = (double)set->options.interval_ns;
    if (wanted < asked)
        wanted = asked;
    if (wanted > STRETCH_MAX_NS)
        wanted = asked > STRETCH_MAX_NS ? asked : STRETCH_MAX_NS;
    if (wanted > (double)set->interval_ns || wanted < 0.8 * (double)set->interval_ns)
        set->interval_ns = (uint64_t)wanted;
    if (wanted <= asked)
        set->interval_ns = set->options.interval_ns;
    if (set->interval_ns > set->cost.longest_ns)
        set->cost.longest_ns = set->interval_ns;
}

static void tell_interval(tare__sample_set *set)
{
    if (set->options.only_list)
        return;
    if (!set->interval_series)
        set->interval_series = tare__sample_series_of(set, TARE__M_SAMPLE_INTERVAL,
                                                      &(tare__subject){.kind = TARE__SUBJECT_TARE});
    tare__sample_put(set, set->interval_series, (int64_t)set->interval_ns);
}

static uint64_t tick(tare__sample_set *set, uint64_t now_ns, bool all)
{
    uint64_t before = tare__sample_cost_clock(set);
    tell_interval(set);
    const tare__sampler *sampler;
    for (size_t i = 0; i < SAMPLERS_MAX && (sampler = tare__sampler_at(i)) != NULL; i++) {
        if (!set->states[i])
            continue;
        if (!all && ++set->waited[i] < sampler->every)
            continue;
        set->waited[i] = 0;
        if (sampler->tick)
            sampler->tick(set, set->states[i], now_ns);
    }
    uint64_t spent = tare__sample_cost_clock(set) - before;
    set->cost.cpu_ns += spent;
    set->due_ns += set->interval_ns;
    if (set->due_ns <= now_ns || all)
        set->due_ns = now_ns + set->interval_ns;
    return spent;
}

void tare__sample_tick(tare__sample_set *set, uint64_t now_ns)
{
    keep_to_budget(set, tick(set, now_ns, false));
}

void tare__sample_tick_all(tare__sample_set *set, uint64_t now_ns)
{
    tick(set, now_ns, true);
}

uint64_t tare__sample_due_ns(const tare__sample_set *set)
{
    return set->due_ns;
}

tare__sample_cost tare__sample_cost_of(const tare__sample_set *set)
{
    tare__sample_cost cost = set->cost;
    cost.interval_ns = set->interval_ns;
    return cost;
}

/* ---- opening, closing -------------------------------------------------------------------------------------- */

static bool take_options(tare__sample_set *set, const tare__sample_options *options)
{
    set->options = *options;
    set->root = strdup(options->root ? options->root : "");
    set->options.root = set->root;
    if (set->options.interval_ns == 0)
        set->options.interval_ns = TARE__SAMPLE_INTERVAL_NS;
    if (set->options.interval_ns < TARE__SAMPLE_INTERVAL_MIN_NS)
        set->options.interval_ns = TARE__SAMPLE_INTERVAL_MIN_NS;
    if (!(set->options.budget > 0))
        set->options.budget = TARE__SAMPLE_BUDGET;
    if (!set->options.cost_clock)
        set->options.cost_clock = thread_cpu_ns;
    set->interval_ns = set->cost.longest_ns = set->options.interval_ns;
    return set->root != NULL;
}

static bool open_samplers(tare__sample_set *set)
{
    const tare__sampler *sampler;
    for (size_t i = 0; i < SAMPLERS_MAX && (sampler = tare__sampler_at(i)) != NULL; i++) {
        bool unwanted = set->options.only_list || set->options.left_out >> i & 1;
        if (unwanted && i != LIST_AT)
            continue;
        set->states[i] = calloc(1, sampler->state_bytes ? sampler->state_bytes : 1);
        if (!set->states[i])
            return false;
        set->waited[i] = sampler->every; /* the first tick runs all samplers */
        uint64_t before = tare__sample_cost_clock(set);
        if (sampler->open)
            sampler->open(set, set->states[i]);
        set->cost.cpu_ns += tare__sample_cost_clock(set) - before;
    }
    return true;
}

tare__sample_set *tare__sample_open(const tare__sample_options *options, const tare__sample_sink *sink)
{
    tare__sample_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->sink = *sink;
    set->now = (tare__sample_now){NAN, NAN, NAN, NAN};
    set->texts = tare__intern_new();
    if (!set->texts || tare__intern_add(set->texts, "", 0) != 0 || !take_options(set, options) ||
        !open_samplers(set)) {
        tare__sample_close(set);
        return NULL;
    }
    return set;
}

void tare__sample_close(tare__sample_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < SAMPLERS_MAX; i++) {
        if (set->states[i] && tare__sampler_at(i)->close)
            tare__sampler_at(i)->close(set->states[i]);
        free(set->states[i]);
    }
    free(set->processes);
    free(set->series);
    tare__index_free(&set->index);
    tare__intern_free(set->texts);
    free(set->root);
    free(set);
}

/* ---- queries by samplers and the collector ------------------------------------------------------------------ */

const tare__sample_options *tare__sample_options_of(const tare__sample_set *set)
{
    return &set->options;
}

const tare__sampled_process *tare__sample_processes(const tare__sample_set *set, size_t *n)
{
    *n = set->process_count;
    return set->processes;
}

tare__sampled_process *tare__sample_process_list(tare__sample_set *set, size_t *n)
{
    *n = set->process_count;
    return set->processes;
}

tare__sampled_process *tare__sample_process_add(tare__sample_set *set)
{
    if (!tare__array_fit(&set->processes, &set->process_room, set->process_count + 1, sizeof *set->processes))
        return NULL;
    tare__sampled_process *process = &set->processes[set->process_count++];
    memset(process, 0, sizeof *process);
    return process;
}

void tare__sample_process_drop(tare__sample_set *set, size_t index)
{
    set->processes[index] = set->processes[--set->process_count];
}

tare__sample_now tare__sample_now_of(const tare__sample_set *set)
{
    return set->now;
}

tare__sample_now *tare__sample_now_put(tare__sample_set *set)
{
    return &set->now;
}
