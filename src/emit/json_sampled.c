/* json_sampled: what was used, what stands out and what was sampled, as JSON.
 * Owned by the calling thread.
 * Must not know how the tables were made. */
#include "json_writer.h"

/* ---- names ----------------------------------------------------------------------------------------- */
static const char *unit_name(tare__metric_unit unit)
{
    static const char *const names[] = {
        [TARE__SHOW_COUNT] = "count",     [TARE__SHOW_BYTES] = "bytes",
        [TARE__SHOW_SHARE] = "share",     [TARE__SHOW_CORES] = "cores",
        [TARE__SHOW_SECONDS] = "seconds", [TARE__SHOW_CELSIUS] = "celsius",
        [TARE__SHOW_WATTS] = "watts",     [TARE__SHOW_JOULES] = "joules",
        [TARE__SHOW_HERTZ] = "hertz",     [TARE__SHOW_BITS] = "bits",
        [TARE__SHOW_BYTES_PER_S] = "bytes_per_s", [TARE__SHOW_PER_S] = "per_s"};
    return (size_t)unit < TARE__COUNT_OF(names) ? names[unit] : NULL;
}

static const char *or_other(const char *word)
{
    return word ? word : "other";
}

/* ---- usage ----------------------------------------------------------------------------------------- */
static void put_reasons(writer *to, const tare__usage_table *usage)
{
    const struct {
        const char *key, *why;
    } absent[] = {{"cpu", usage->absent_cpu},
                  {"memory", usage->absent_memory},
                  {"disk", usage->absent_disk},
                  {"energy", usage->absent_energy},
                  {"gpu", usage->absent_gpu}};
    tare__json_key(&to->json, "reasons");
    tare__json_object(&to->json);
    for (size_t i = 0; i < TARE__COUNT_OF(absent); i++)
        if (absent[i].why)
            put_string(to, absent[i].key, absent[i].why);
    tare__json_end_object(&to->json);
}

static void put_memory(writer *to, const tare__usage_table *usage)
{
    put_double(to, "rss_peak_bytes", usage->rss_peak_bytes);
    put_bool(to, "rss_peak_at_least", usage->rss_peak_at_least);
    put_string(to, "rss_peak_process", usage->rss_peak_process);
    put_ns(to, "rss_peak_at_ns", usage->rss_peak_at_ns);
    put_double(to, "tree_rss_max_bytes", usage->tree_rss_max_bytes);
    put_double(to, "memory_allowed_bytes", usage->memory_allowed_bytes);
}

static void put_traffic(writer *to, const tare__usage_table *usage)
{
    put_double(to, "io_read_bytes", usage->io_read_bytes);
    put_double(to, "io_write_bytes", usage->io_write_bytes);
    put_double(to, "disk_read_bytes", usage->disk_read_bytes);
    put_double(to, "disk_write_bytes", usage->disk_write_bytes);
    put_double(to, "net_received_bytes", usage->net_received_bytes);
    put_double(to, "net_sent_bytes", usage->net_sent_bytes);
}

void tare__json_put_usage(writer *to)
{
    const tare__usage_table *usage = &to->analysis->usage;
    tare__json_key(&to->json, "usage");
    tare__json_object(&to->json);
    put_double(to, "cpu_seconds", usage->cpu_seconds);
    put_double(to, "user_seconds", usage->user_seconds);
    put_double(to, "system_seconds", usage->system_seconds);
    put_double(to, "cores_mean", usage->cores_mean);
    put_double(to, "cores_max", usage->cores_max);
    put_double(to, "cores_allowed", usage->cores_allowed);
    put_memory(to, usage);
    put_traffic(to, usage);
    put_double(to, "faults_major", usage->faults_major);
    put_double(to, "switches_voluntary", usage->switches_voluntary);
    put_double(to, "switches_forced", usage->switches_forced);
    put_double(to, "threads_max", usage->threads_max);
    put_double(to, "processes_max", usage->processes_max);
    put_double(to, "energy_joules", usage->energy_joules);
    put_double(to, "carbon_grams", usage->carbon_grams);
    put_double(to, "carbon_intensity", usage->carbon_intensity);
    put_double(to, "gpu_busy_mean", usage->gpu_busy_mean);
    put_double(to, "gpu_memory_max_bytes", usage->gpu_memory_max_bytes);
    put_reasons(to, usage);
    tare__json_end_object(&to->json);
}

/* ---- phases ---------------------------------------------------------------------------------------- */
static void put_phase(writer *to, const char *key, const tare__phase *phase)
{
    tare__json_key(&to->json, key);
    tare__json_object(&to->json);
    put_ns(to, "from_ns", phase->from_ns);
    put_ns(to, "to_ns", phase->to_ns);
    put_string(to, "how", phase->how);
    tare__json_end_object(&to->json);
}

static void put_import(writer *to, const tare__import_row *row)
{
    tare__json_object(&to->json);
    put_string(to, "module", row->module);
    put_ns(to, "from_ns", row->from_ns);
    put_ns(to, "total_ns", row->total_ns);
    tare__json_end_object(&to->json);
}

void tare__json_put_phases(writer *to)
{
    const tare__phase_table *phases = &to->analysis->phases;
    tare__json_key(&to->json, "phases");
    if (!phases->steady.how) {
        tare__json_null(&to->json);
        return;
    }
    tare__json_object(&to->json);
    put_phase(to, "startup", &phases->startup);
    put_phase(to, "steady_state", &phases->steady);
    put_phase(to, "shutdown", &phases->shutdown);
    put_ns(to, "interpreter_ns", phases->interpreter_ns);
    put_ns(to, "imports_ns", phases->imports_ns);
    put_ns(to, "preparation_ns", phases->preparation_ns);
    put_ns(to, "warm_up_ns", phases->warm_up_ns);
    tare__json_key(&to->json, "warm_up_steps");
    tare__json_unsigned(&to->json, phases->warm_up_steps);
    put_ns(to, "compile_ns", phases->compile_ns);
    tare__json_key(&to->json, "imports");
    if (phases->imports_known) {
        tare__json_array(&to->json);
        for (size_t i = 0; i < phases->n_imports; i++)
            put_import(to, &phases->imports[i]);
        tare__json_end_array(&to->json);
    } else {
        tare__json_null(&to->json);
    }
    tare__json_end_object(&to->json);
}

/* ---- findings -------------------------------------------------------------------------------------- */
static void put_figures(writer *to, const tare__finding *finding)
{
    tare__json_key(&to->json, "figures");
    tare__json_array(&to->json);
    for (size_t i = 0; i < finding->n_figures; i++) {
        tare__json_object(&to->json);
        put_string(to, "name", finding->figures[i].name);
        put_double(to, "value", finding->figures[i].value);
        put_string(to, "unit", unit_name(finding->figures[i].unit));
        tare__json_end_object(&to->json);
    }
    tare__json_end_array(&to->json);
}

static void put_finding(writer *to, size_t index)
{
    const tare__finding *finding = &to->analysis->findings[index];
    put_string(to, "id", finding->id);
    put_string(to, "severity", tare__severity_word(finding->severity));
    put_string(to, "title", finding->title);
    put_string(to, "evidence", finding->evidence);
    put_string(to, "advice", finding->advice);
    put_double(to, "gain", finding->gain);
    put_string(to, "gain_how", finding->gain_how);
    put_ns(to, "from_ns", finding->from_ns);
    put_ns(to, "to_ns", finding->to_ns);
    put_figures(to, finding);
    put_string(to, "source", finding->source);
}

void tare__json_put_findings(writer *to)
{
    put_list(to, "findings", to->analysis->n_findings, put_finding);
}

/* ---- metrics --------------------------------------------------------------------------------------- */
static void put_point(writer *to, const tare__metric_point *point)
{
    tare__json_array(&to->json);
    tare__json_signed(&to->json, (int64_t)llround(point->at_ns));
    tare__json_signed(&to->json, (int64_t)llround(point->lasts_ns));
    tare__json_double(&to->json, point->min);
    tare__json_double(&to->json, point->mean);
    tare__json_double(&to->json, point->max);
    tare__json_end_array(&to->json);
}

/* Threads and single CPUs are many: their course is left out unless everything is asked for. */
static void put_points(writer *to, const tare__metric_row *row)
{
    bool many = row->subject == TARE__SUBJECT_THREAD || row->subject == TARE__SUBJECT_CPU;
    tare__json_key(&to->json, "points");
    if (!row->points || (many && !to->all)) {
        tare__json_null(&to->json);
        return;
    }
    tare__json_array(&to->json);
    for (size_t i = 0; i < row->n_points; i++)
        put_point(to, &row->points[i]);
    tare__json_end_array(&to->json);
}

static void put_metric(writer *to, size_t index)
{
    const tare__metric_row *row = &to->analysis->metrics[index];
    bool any = row->n > 0; /* else there is nothing that the figures could be of */
    put_string(to, "metric", row->metric);
    put_string(to, "subject", or_other(tare__subject_word(row->subject)));
    put_unsigned(to, "key", row->key);
    put_unsigned(to, "owner", row->owner);
    put_string(to, "label", row->label);
    put_string(to, "kind", or_other(tare__metric_kind_word(row->kind)));
    put_string(to, "unit", unit_name(row->unit));
    put_string(to, "absent", row->absent);
    put_unsigned(to, "samples", row->n);
    put_double(to, "min", any ? row->min : NAN);
    put_double(to, "mean", any ? row->mean : NAN);
    put_double(to, "max", any ? row->max : NAN);
    put_ns(to, "max_at_ns", any ? row->max_at_ns : NAN);
    put_double(to, "first", any ? row->first : NAN);
    put_double(to, "last", any ? row->last : NAN);
    put_double(to, "total", any ? row->total : NAN);
    put_string(to, "total_unit", row->kind == TARE__METRIC_TOTAL ? unit_name(row->total_unit) : NULL);
    put_ns(to, "from_ns", any ? row->from_ns : NAN);
    put_ns(to, "to_ns", any ? row->to_ns : NAN);
    put_points(to, row);
}

void tare__json_put_metrics(writer *to)
{
    put_list(to, "metrics", to->analysis->n_metrics, put_metric);
}
