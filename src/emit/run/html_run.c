/* html_run: what ran, where, what it used, what was found, what Tare itself cost.
 * Owned by the calling thread.
 * Must not know how the tables were made. */
#include "html.h"

#include <math.h>

/* ---- the run ------------------------------------------------------------------------------------ */
static void put_environment(tare__html *page, const tare__run_table *run)
{
    tare__html_key_string(page, "directory", run->directory);
    tare__html_key_string(page, "host", run->host);
    tare__html_key_string(page, "cpu_model", run->cpu_model);
    tare__json_key(&page->json, "cpus");
    tare__html_known(page, run->cpus);
    tare__html_key_figure(page, "memory_bytes", run->memory_bytes > 0 ? run->memory_bytes : NAN);
    tare__html_key_string(page, "kernel", run->kernel);
    tare__html_key_string(page, "system", run->system);
    tare__html_key_string(page, "revision", run->revision);
    tare__html_key_string(page, "gpus", run->gpus);
    tare__html_key_string(page, "writer", run->writer);
}

static void put_list(tare__html *page, const char *key, const char *const *texts, size_t n)
{
    tare__json_key(&page->json, key);
    tare__json_array(&page->json);
    for (size_t i = 0; i < n; i++)
        tare__json_string(&page->json, texts[i]);
    tare__json_end_array(&page->json);
}

static void put_end(tare__html *page, const tare__run_table *run)
{
    tare__html_key_bool(page, "finished", run->finished);
    tare__html_key_bool(page, "salvaged", run->salvaged);
    tare__html_key_bool(page, "clock_known", run->clock_known);
    tare__html_key_bool(page, "oom_killed", run->oom_killed);
    tare__json_key(&page->json, "status");
    if (run->status < 0)
        tare__json_null(&page->json);
    else
        tare__json_signed(&page->json, run->status);
    tare__json_key(&page->json, "signal");
    tare__html_known(page, run->signal);
    tare__json_key(&page->json, "attached");
    tare__html_known(page, run->attached);
    tare__html_key_unsigned(page, "spans", run->spans);
    tare__html_key_unsigned(page, "dropped_spans", run->dropped_spans);
    tare__html_key_unsigned(page, "rotated_spans", run->rotated_spans);
    tare__html_key_ns(page, "rotated_before_at", run->rotated_spans ? run->rotated_before_at_ns : NAN);
}

static void put_run(tare__html *page)
{
    const tare__run_table *run = &page->analysis->run;
    tare__json_key(&page->json, "run");
    tare__json_object(&page->json);
    tare__html_key_string(page, "command", run->command);
    put_list(page, "arguments", run->arguments, run->n_arguments);
    put_environment(page, run);
    tare__json_key(&page->json, "start_ms");
    tare__html_known(page, (int64_t)(run->start_realtime_ns / 1000000));
    tare__html_key_ns(page, "elapsed", run->elapsed_ns);
    put_end(page, run);
    tare__json_end_object(&page->json);
    put_list(page, "notes", run->notes, run->n_notes);
}

/* ---- usage -------------------------------------------------------------------------------------- */
static void put_usage(tare__html *page)
{
    const tare__usage_table *usage = &page->analysis->usage;
    tare__json_key(&page->json, "usage");
    tare__json_object(&page->json);
    tare__html_columns(page, &tare__table_usage, usage);
    tare__html_key_string(page, "absent_cpu", usage->absent_cpu);
    tare__html_key_string(page, "absent_memory", usage->absent_memory);
    tare__html_key_string(page, "absent_disk", usage->absent_disk);
    tare__html_key_string(page, "absent_energy", usage->absent_energy);
    tare__html_key_string(page, "absent_gpu", usage->absent_gpu);
    tare__json_end_object(&page->json);
}

/* ---- phases ------------------------------------------------------------------------------------- */
static void put_phases(tare__html *page)
{
    const tare__phase_table *phases = &page->analysis->phases;
    tare__json_key(&page->json, "phases");
    if (!phases->steady.how) {
        tare__json_null(&page->json);
        return;
    }
    tare__json_object(&page->json);
    tare__html_key_ns(page, "startup", phases->startup.to_ns - phases->startup.from_ns);
    tare__html_key_ns(page, "steady", phases->steady.to_ns - phases->steady.from_ns);
    tare__html_key_ns(page, "shutdown", phases->shutdown.to_ns - phases->shutdown.from_ns);
    tare__html_key_ns(page, "interpreter", phases->interpreter_ns);
    tare__html_key_ns(page, "imports", phases->imports_ns);
    tare__html_key_ns(page, "preparation", phases->preparation_ns);
    tare__html_key_ns(page, "warm_up", phases->warm_up_ns);
    tare__html_key_string(page, "startup_how", phases->startup.how);
    tare__html_key_string(page, "steady_how", phases->steady.how);
    tare__html_key_string(page, "shutdown_how", phases->shutdown.how);
    tare__json_end_object(&page->json);
}

/* ---- findings ----------------------------------------------------------------------------------- */
static void put_figures(tare__html *page, const tare__finding *finding)
{
    tare__json_array(&page->json);
    for (size_t i = 0; i < finding->n_figures; i++) {
        tare__json_array(&page->json);
        tare__json_string(&page->json, finding->figures[i].name);
        tare__html_figure(page, finding->figures[i].value);
        tare__json_string(&page->json, tare__html_unit(finding->figures[i].unit));
        tare__json_end_array(&page->json);
    }
    tare__json_end_array(&page->json);
}

static void put_finding(tare__html *page, size_t index)
{
    const tare__finding *finding = &page->analysis->findings[index];
    tare__json_string(&page->json, finding->id);
    tare__json_unsigned(&page->json, (uint64_t)finding->severity);
    tare__json_string(&page->json, finding->title);
    tare__json_string(&page->json, finding->evidence);
    tare__json_string(&page->json, finding->advice);
    tare__html_figure(page, finding->gain);
    tare__json_string(&page->json, finding->gain_how);
    tare__html_ns(page, finding->from_ns);
    tare__html_ns(page, finding->to_ns);
    put_figures(page, finding);
    tare__json_string(&page->json, finding->source);
}

/* ---- the tare line ------------------------------------------------------------------------------ */
static void put_own(tare__html *page)
{
    const tare__own_table *own = &page->analysis->own;
    tare__json_key(&page->json, "own");
    tare__json_object(&page->json);
    tare__html_key_unsigned(page, "spans", own->spans + own->chained_spans + own->complete_spans);
    tare__html_key_ns(page, "own", own->own_ns);
    tare__html_key_ns(page, "taken_off", own->taken_off_ns);
    tare__html_key_figure(page, "pair", own->pair_ns);
    tare__html_key_figure(page, "share", own->share);
    tare__html_key_ns(page, "collector_cpu", own->collector_cpu_ns);
    tare__html_key_ns(page, "sampler_cpu", own->sampler_cpu_ns);
    tare__html_key_ns(page, "interval", own->interval_ns);
    tare__html_key_ns(page, "longest_interval", own->longest_interval_ns);
    tare__json_end_object(&page->json);
}

void tare__html_run(tare__html *page)
{
    put_run(page);
    put_usage(page);
    put_phases(page);
    put_own(page);
    tare__html_table(page, "findings",
                     "id severity title evidence advice gain gain_how from to figures source",
                     page->analysis->n_findings, 0, put_finding);
}
