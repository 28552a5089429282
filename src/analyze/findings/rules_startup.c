/* rules_startup: a run dominated by startup, and the program's imports.
 * Owned by the thread that analyzes.
 * Must not know how phases were found. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rules.h"

bool tare__imported(const tare__analysis *of, const char *module)
{
    for (size_t i = 0; i < of->phases.n_imports; i++)
        if (strcmp(of->phases.imports[i].module, module) == 0)
            return true;
    if (strcmp(module, "torch") != 0)
        return false;
    for (size_t i = 0; i < of->n_facts; i++)
        if (strncmp(of->facts[i].key, "torch.", 6) == 0)
            return true;
    return false;
}

bool tare__has_loader(const tare__analysis *of)
{
    return tare__fact_sum(of, "torch.loader.workers", &(tare__fact_row){0});
}

bool tare__is_python(const tare__analysis *of)
{
    return of->phases.imports_known || tare__imported(of, "torch");
}

double tare__saved_by_workers(double wait_ns, double compute_ns, double load_ns, double then)
{
    return fmax(0, wait_ns + compute_ns - fmax(compute_ns, load_ns / fmax(1, then)));
}

bool tare__compute_is_idle(const tare__analysis *of)
{
    return !tare__any_gpu_used(of) || !(of->usage.gpu_busy_mean > limit(LIMIT_GPU_WORKS));
}

double tare__beside_gpu(const tare__analysis *of, double gain)
{
    double busy = tare__any_gpu_used(of) ? of->usage.gpu_busy_mean : NAN;
    return isnan(busy) ? gain : fmin(gain, fmax(0, 1 - busy));
}

typedef struct part {
    const char *name, *advice;
    double ns;
} part;

#define PARTS 4u

/* Longest first. */
static void parts_of(const tare__phase_table *phases, part parts[PARTS])
{
    const part all[PARTS] = {
        {"imports", "Run python -X importtime to see which modules take the time; import late what only some runs use.",
         phases->imports_ns},
        {"warm-up steps",
         "Cache compiled kernels between runs (TORCHINDUCTOR_FX_GRAPH_CACHE=1), and leave warm-up out of measurements.",
         phases->warm_up_ns},
        {"preparation",
         "Put spans around loading the data, building the model and moving it to the device to see which part takes "
         "it.",
         phases->preparation_ns},
        {"starting the interpreter", "Look at what its site-packages load at startup (python -X importtime -c pass).",
         phases->interpreter_ns},
    };
    size_t n = 0;
    for (size_t i = 0; i < PARTS; i++) {
        size_t at = n++;
        double ns = isnan(all[i].ns) ? 0 : all[i].ns;
        for (; at > 0 && parts[at - 1].ns < ns; at--)
            parts[at] = parts[at - 1];
        parts[at] = all[i];
        parts[at].ns = ns;
    }
}

static void say_imports(findings *out, const tare__phase_table *phases)
{
    for (size_t i = 0; i < phases->n_imports && i < 3; i++)
        if (phases->imports[i].total_ns > 0.05 * phases->imports_ns)
            tare__say_evidence(out, "Importing %s took %s.", tare__show_name(phases->imports[i].module).text,
                               tare__show_time(phases->imports[i].total_ns).text);
}

void tare__rule_startup(findings *out, const tare__analysis *of)
{
    const tare__phase_table *phases = &of->phases;
    double startup = phases->startup.to_ns - phases->startup.from_ns, share = startup / of->run.elapsed_ns;
    part parts[PARTS];
    if (!(share >= limit(LIMIT_STARTUP_OF_RUN)) || !(startup >= limit(LIMIT_STARTUP_SHORTEST)))
        return;
    parts_of(phases, parts);
    tare__finding_add(out, TARE__INFO);
    tare__say_when(out, phases->startup.from_ns, phases->startup.to_ns);
    tare__say_title(out, "Startup takes %s of the run, mostly %s", percent(share).text, parts[0].name);
    tare__say_evidence(out, "Startup took %s of %s (%s):", tare__show_time(startup).text,
                       tare__show_time(of->run.elapsed_ns).text, phases->startup.how);
    char list[256] = "";
    for (size_t i = 0, length = 0; i < PARTS && parts[i].ns > 0.02 * startup && length < sizeof list; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s %s", i ? ", " : "", parts[i].name,
                                   tare__show_time(parts[i].ns).text);
    tare__say_evidence(out, "%s.", list);
    say_imports(out, phases);
    if (phases->compile_ns > 0.02 * startup)
        tare__say_evidence(out, "torch.compile took %s.", tare__show_time(phases->compile_ns).text);
    tare__say_advice(out, "%s", parts[0].advice);
    tare__say_advice(out, "Startup is paid once a run: to measure the work itself, let the program run longer.");
    tare__say_gain(out, NAN, "not predicted: gains are shares of steady-state time");
    tare__say_figure(out, "startup", startup / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "interpreter", phases->interpreter_ns / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "imports", phases->imports_ns / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "preparation", phases->preparation_ns / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "warm_up", phases->warm_up_ns / 1e9, TARE__SHOW_SECONDS);
}
