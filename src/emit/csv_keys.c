/* csv_keys: what there is one of, as rows of key, value, unit and why it is absent: the run, what it used, its
 * phases, the tare line. Owned by the calling thread.
 * Must not know how the tables were made. */
#include <math.h>

#include "csv.h"
#include "tare.h"

typedef enum cell_type { TEXT, DOUBLE, TIME, COUNT, COUNT32, FLAG } cell_type;

typedef struct key_row {
    const char *key;
    cell_type type;
    size_t at; /* in its table */
    const char *unit;
    size_t absent_at;   /* of a const char *: why; 0: none */
    const char *absent; /* why, where the table does not say */
    bool zero_is_absent;
} key_row;

#define NOT_TOLD "the file does not say"

/* True when a value was put. */
static bool put_value(csv *to, const key_row *row, const char *value)
{
    double number = row->type == DOUBLE || row->type == TIME ? *(const double *)(const void *)value : 0;
    uint64_t count = row->type == COUNT     ? *(const uint64_t *)(const void *)value
                     : row->type == COUNT32 ? *(const uint32_t *)(const void *)value
                                            : 0;
    const char *text = row->type == TEXT ? *(const char *const *)(const void *)value : NULL;
    switch (row->type) {
    case TEXT: tare__csv_text(to, text); return text && *text;
    case DOUBLE: tare__csv_double(to, number); return isfinite(number);
    case TIME: tare__csv_ns(to, number); return isfinite(number);
    case FLAG: tare__csv_text(to, *(const bool *)(const void *)value ? "true" : "false"); return true;
    default:
        if (count || !row->zero_is_absent)
            tare__csv_count(to, count);
        else
            tare__csv_absent(to);
        return count || !row->zero_is_absent;
    }
}

static void put_rows(csv *to, const void *table, const key_row *rows, size_t n)
{
    for (size_t i = 0; i < n && !to->status; i++) {
        const key_row *row = &rows[i];
        tare__csv_text(to, row->key);
        bool there = put_value(to, row, (const char *)table + row->at);
        tare__csv_text(to, row->unit);
        const char *told = row->absent_at
                               ? *(const char *const *)(const void *)((const char *)table + row->absent_at)
                               : NULL;
        tare__csv_text(to, there ? NULL : told ? told : row->absent);
        tare__csv_end_row(to);
    }
}

/* ---- the run ------------------------------------------------------------------------------------------- */
#define AT(field) offsetof(tare__run_table, field)
static const key_row run_rows[] = {
    {"command", TEXT, AT(command), NULL, 0, NOT_TOLD, false},
    {"host", TEXT, AT(host), NULL, 0, NOT_TOLD, false},
    {"directory", TEXT, AT(directory), NULL, 0, NOT_TOLD, false},
    {"writer", TEXT, AT(writer), NULL, 0, NOT_TOLD, false},
    {"cpu_model", TEXT, AT(cpu_model), NULL, 0, NOT_TOLD, false},
    {"cpus", COUNT32, AT(cpus), "count", 0, NOT_TOLD, true},
    {"kernel", TEXT, AT(kernel), NULL, 0, NOT_TOLD, false},
    {"system", TEXT, AT(system), NULL, 0, NOT_TOLD, false},
    {"revision", TEXT, AT(revision), NULL, 0, NOT_TOLD, false},
    {"gpus", TEXT, AT(gpus), NULL, 0, NOT_TOLD, false},
    {"memory", DOUBLE, AT(memory_bytes), "bytes", 0, NOT_TOLD, false},
    {"start_realtime", COUNT, AT(start_realtime_ns), "ns", 0, NOT_TOLD, true},
    {"elapsed", TIME, AT(elapsed_ns), "ns", 0, NOT_TOLD, false},
    {"finished", FLAG, AT(finished), NULL, 0, NULL, false},
    {"salvaged", FLAG, AT(salvaged), NULL, 0, NULL, false},
    {"clock_known", FLAG, AT(clock_known), NULL, 0, NULL, false},
    {"oom_killed", FLAG, AT(oom_killed), NULL, 0, NULL, false},
    {"spans", COUNT, AT(spans), "count", 0, NULL, false},
    {"dropped_spans", COUNT, AT(dropped_spans), "count", 0, NULL, false},
    {"dropped_others", COUNT, AT(dropped_others), "count", 0, NULL, false},
    {"rotated_spans", COUNT, AT(rotated_spans), "count", 0, NULL, false},
    {"rotated_before_at", TIME, AT(rotated_before_at_ns), "ns", 0, "nothing was taken out", false},
    {"refused_space", COUNT, AT(refused_space), "count", 0, NULL, false},
    {"refused_abi", COUNT, AT(refused_abi), "count", 0, NULL, false},
    {"refused_system", COUNT, AT(refused_system), "count", 0, NULL, false},
    {"refused_copy", COUNT, AT(refused_copy), "count", 0, NULL, false},
    {"left_running", COUNT, AT(left_running), "count", 0, NULL, false},
    {"write_error", TEXT, AT(write_error), NULL, 0, "none", false},
    {"damaged_blocks", COUNT, AT(damaged_blocks), "count", 0, NULL, false},
    {"damaged_bytes", COUNT, AT(damaged_bytes), "bytes", 0, NULL, false},
    {"damaged_spans", COUNT, AT(damaged_spans), "count", 0, NULL, false},
    {"unknown_blocks", COUNT, AT(unknown_blocks), "count", 0, NULL, false},
    {"names_refused", COUNT, AT(names_refused), "count", 0, NULL, false},
};
#undef AT

/* A value that is known or absent for a reason. */
static void put_one(csv *to, const char *key, bool known, int64_t value, const char *absent)
{
    tare__csv_text(to, key);
    if (known)
        tare__csv_signed(to, value);
    else
        tare__csv_absent(to);
    tare__csv_text(to, NULL);
    tare__csv_text(to, known ? NULL : absent);
    tare__csv_end_row(to);
}

void tare__csv_put_run(csv *to, const tare__analysis *from)
{
    const tare__run_table *run = &from->run;
    put_rows(to, run, run_rows, TARE__COUNT_OF(run_rows));
    put_one(to, "exit_status", run->status >= 0, run->status, NOT_TOLD);
    put_one(to, "signal", run->signal > 0, run->signal, run->finished ? "none" : NOT_TOLD);
    put_one(to, "attached_pid", run->attached > 0, run->attached, "it was launched");
    for (size_t i = 0; i < run->n_notes && !to->status; i++) {
        tare__csv_text(to, "note");
        tare__csv_text(to, run->notes[i]);
        tare__csv_text(to, NULL);
        tare__csv_text(to, NULL);
        tare__csv_end_row(to);
    }
}

/* ---- what it used ---------------------------------------------------------------------------------------- */
#define AT(field)    offsetof(tare__usage_table, field)
#define NOT_MEASURED "not measured in this run"
static const key_row usage_rows[] = {
    {"cpu", DOUBLE, AT(cpu_seconds), "s", AT(absent_cpu), NOT_MEASURED, false},
    {"cpu_user", DOUBLE, AT(user_seconds), "s", AT(absent_cpu), NOT_MEASURED, false},
    {"cpu_system", DOUBLE, AT(system_seconds), "s", AT(absent_cpu), NOT_MEASURED, false},
    {"cores_mean", DOUBLE, AT(cores_mean), "cores", AT(absent_cpu), NOT_MEASURED, false},
    {"cores_max", DOUBLE, AT(cores_max), "cores", AT(absent_cpu), NOT_MEASURED, false},
    {"cores_allowed", DOUBLE, AT(cores_allowed), "cores", AT(absent_cpu), NOT_MEASURED, false},
    {"rss_peak", DOUBLE, AT(rss_peak_bytes), "bytes", AT(absent_memory), NOT_MEASURED, false},
    {"rss_peak_at_least", FLAG, AT(rss_peak_at_least), NULL, 0, NULL, false},
    {"rss_peak_process", TEXT, AT(rss_peak_process), NULL, AT(absent_memory), "not known", false},
    {"rss_peak_at", TIME, AT(rss_peak_at_ns), "ns", AT(absent_memory), "only known at the end", false},
    {"tree_rss_max", DOUBLE, AT(tree_rss_max_bytes), "bytes", AT(absent_memory), NOT_MEASURED, false},
    {"memory_allowed", DOUBLE, AT(memory_allowed_bytes), "bytes", AT(absent_memory), NOT_MEASURED, false},
    {"io_read", DOUBLE, AT(io_read_bytes), "bytes", AT(absent_disk), NOT_MEASURED, false},
    {"io_write", DOUBLE, AT(io_write_bytes), "bytes", AT(absent_disk), NOT_MEASURED, false},
    {"disk_read", DOUBLE, AT(disk_read_bytes), "bytes", AT(absent_disk), NOT_MEASURED, false},
    {"disk_write", DOUBLE, AT(disk_write_bytes), "bytes", AT(absent_disk), NOT_MEASURED, false},
    {"net_received", DOUBLE, AT(net_received_bytes), "bytes", 0, NOT_MEASURED, false},
    {"net_sent", DOUBLE, AT(net_sent_bytes), "bytes", 0, NOT_MEASURED, false},
    {"faults_major", DOUBLE, AT(faults_major), "count", AT(absent_memory), NOT_MEASURED, false},
    {"switches_voluntary", DOUBLE, AT(switches_voluntary), "count", AT(absent_cpu), NOT_MEASURED, false},
    {"switches_forced", DOUBLE, AT(switches_forced), "count", AT(absent_cpu), NOT_MEASURED, false},
    {"threads_max", DOUBLE, AT(threads_max), "count", AT(absent_cpu), NOT_MEASURED, false},
    {"processes_max", DOUBLE, AT(processes_max), "count", AT(absent_cpu), NOT_MEASURED, false},
    {"energy", DOUBLE, AT(energy_joules), "joules", AT(absent_energy), NOT_MEASURED, false},
    {"carbon", DOUBLE, AT(carbon_grams), "grams_co2", AT(absent_energy), NOT_MEASURED, false},
    {"carbon_intensity", DOUBLE, AT(carbon_intensity), "grams_co2_per_kwh", AT(absent_energy), NOT_MEASURED,
     false},
    {"gpu_busy_mean", DOUBLE, AT(gpu_busy_mean), "share", AT(absent_gpu), NOT_MEASURED, false},
    {"gpu_memory_max", DOUBLE, AT(gpu_memory_max_bytes), "bytes", AT(absent_gpu), NOT_MEASURED, false},
};
#undef AT

void tare__csv_put_usage(csv *to, const tare__analysis *from)
{
    put_rows(to, &from->usage, usage_rows, TARE__COUNT_OF(usage_rows));
}

/* ---- phases ------------------------------------------------------------------------------------------------ */
#define AT(field) offsetof(tare__phase_table, field)
#define NOT_APART "the phases of this run are not known"
static const key_row phase_rows[] = {
    {"startup_from", TIME, AT(startup.from_ns), "ns", AT(startup.how), NOT_APART, false},
    {"startup_to", TIME, AT(startup.to_ns), "ns", AT(startup.how), NOT_APART, false},
    {"steady_state_from", TIME, AT(steady.from_ns), "ns", AT(steady.how), NOT_APART, false},
    {"steady_state_to", TIME, AT(steady.to_ns), "ns", AT(steady.how), NOT_APART, false},
    {"shutdown_from", TIME, AT(shutdown.from_ns), "ns", AT(shutdown.how), NOT_APART, false},
    {"shutdown_to", TIME, AT(shutdown.to_ns), "ns", AT(shutdown.how), NOT_APART, false},
    {"interpreter", TIME, AT(interpreter_ns), "ns", 0, "no Python process reported when it was ready", false},
    {"imports", TIME, AT(imports_ns), "ns", 0, "no Python process reported its imports", false},
    {"preparation", TIME, AT(preparation_ns), "ns", AT(startup.how), NOT_APART, false},
    {"warm_up", TIME, AT(warm_up_ns), "ns", 0, "no warm-up steps are known", false},
    {"warm_up_steps", COUNT, AT(warm_up_steps), "count", 0, NULL, false},
    {"compile", TIME, AT(compile_ns), "ns", 0, "nothing was compiled", false},
};
#undef AT

void tare__csv_put_phases(csv *to, const tare__analysis *from)
{
    if (from->phases.steady.how) /* else the run was not analyzed for phases */
        put_rows(to, &from->phases, phase_rows, TARE__COUNT_OF(phase_rows));
}

/* ---- the tare line ----------------------------------------------------------------------------------------- */
#define AT(field)      offsetof(tare__own_table, field)
#define NOT_CALIBRATED "the recorder was not calibrated"
static const key_row own_rows[] = {
    {"spans", COUNT, AT(spans), "count", 0, NULL, false},
    {"chained_spans", COUNT, AT(chained_spans), "count", 0, NULL, false},
    {"marks", COUNT, AT(marks), "count", 0, NULL, false},
    {"counters", COUNT, AT(counters), "count", 0, NULL, false},
    {"numbers", COUNT, AT(numbers), "count", 0, NULL, false},
    {"complete_spans", COUNT, AT(complete_spans), "count", 0, NULL, false},
    {"aggregate_calls", COUNT, AT(aggregate_calls), "count", 0, NULL, false},
    {"aggregate_timed", COUNT, AT(aggregate_timed), "count", 0, NULL, false},
    {"pair", TIME, AT(pair_ns), "ns", 0, NOT_CALIBRATED, false},
    {"inner", TIME, AT(inner_ns), "ns", 0, NOT_CALIBRATED, false},
    {"next", TIME, AT(next_ns), "ns", 0, NOT_CALIBRATED, false},
    {"aggregate", TIME, AT(aggregate_ns), "ns", 0, NOT_CALIBRATED, false},
    {"own", TIME, AT(own_ns), "ns", 0, NOT_CALIBRATED, false},
    {"taken_off", TIME, AT(taken_off_ns), "ns", 0, NOT_CALIBRATED, false},
    {"collector_cpu", TIME, AT(collector_cpu_ns), "ns", 0, "the file has no end", false},
    {"sampler_cpu", TIME, AT(sampler_cpu_ns), "ns", 0, "nothing was sampled, or the file has no end", false},
    {"interval", TIME, AT(interval_ns), "ns", 0, "nothing was sampled", false},
    {"longest_interval", TIME, AT(longest_interval_ns), "ns", 0, "nothing was sampled", false},
    {"recorded", TIME, AT(recorded_ns), "ns", 0, "nothing was recorded", false},
    {"share", DOUBLE, AT(share), "share", 0, "own or recorded time is not known", false},
};
#undef AT

void tare__csv_put_own(csv *to, const tare__analysis *from)
{
    put_rows(to, &from->own, own_rows, TARE__COUNT_OF(own_rows));
}
