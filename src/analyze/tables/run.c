/* run: the table of the run itself, and the notes: sentences on missing data and the reasons.
 * Owned by the thread that analyzes.
 * Must not know events. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyze/inner.h"
#include "analyze/findings/rules.h"

#define NOTES_MAX 32

typedef struct note_list {
    const char *notes[NOTES_MAX];
    size_t n;
    tare__arena *arena;
} note_list;

static void note(note_list *list, const char *format, ...) TARE__PRINTF(2, 3);
static void note(note_list *list, const char *format, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (length < 0 || list->n == NOTES_MAX)
        return;
    list->notes[list->n++] = copied(list->arena, sentence);
}

/* "1 span", "4,000 spans" */
typedef struct counted {
    char text[TARE__COUNTED_BYTES];
} counted;

static counted how_many(uint64_t n, const char *one, const char *many)
{
    counted result;
    tare__unit_counted(result.text, (double)n, one, many);
    return result;
}

/* A name that a shell takes as one word: a trace may be anybody's, and its hints are pasted. */
static bool is_plain(const char *path)
{
    for (const char *at = path; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
              strchr("/._-+,:@%", *at)))
            return false;
    return true;
}

/* ---- notes --------------------------------------------------------------------------------------- */
static void note_end(note_list *list, const work *work, const tare__run_table *run)
{
    const tare__trace_damage *damage = tare__trace_damage_of(work->trace);
    char time[TARE__UNIT_BYTES];
    double last_ns = damage->last_ticks ? tare__trace_ns(work->trace, damage->last_ticks) : 0;
    tare__unit_time(time, last_ns > 0 ? last_ns : 0);
    if (damage->torn)
        note(list, "the file ends inside a block at byte %llu: events after %s are missing",
             (unsigned long long)damage->torn_offset, time);
    else if (!run->finished)
        note(list, "the file is unfinished: its recording is still running or was killed; the last event is at %s",
             time);
    bool is_there = run->folder && access(run->folder, F_OK) == 0;
    if (!run->finished && is_there && is_plain(run->folder))
        note(list, "`tare report %s` may recover more events", run->folder);
    else if (!run->finished && is_there)
        note(list, "its session folder still exists; `tare clean` may recover more events from it");
    else if (!run->finished && run->folder)
        note(list, "its session folder %s no longer exists%s%s: events that were still in memory are lost", run->folder,
             run->host ? ", or is on " : "", run->host ? run->host : "");
    if (run->salvaged)
        note(list, "the recording was killed; a later command recovered its remaining events");
    if (tare__trace_end_of(work->trace)->folder_gone)
        note(list, "the session folder was removed during the run: processes that were not read yet, or started after "
                   "that, are missing");
    uint64_t unread = tare__trace_end_of(work->trace)->unread_rings;
    if (unread)
        note(list, "%s memory could not be read: its last events are missing",
             how_many(unread, "process's", "processes'").text);
}

static void note_damage(note_list *list, const work *work)
{
    const tare__trace_damage *damage = tare__trace_damage_of(work->trace);
    if (damage->file_header)
        note(list, "the file's header (byte 0 to 15) is damaged; the blocks after it were read");
    if (damage->blocks) {
        counted blocks = how_many(damage->blocks, "damaged block", "damaged blocks");
        counted spans = how_many(damage->spans, "span", "spans");
        note(list, "%s (first at byte %llu) %s dropped: %s%s", blocks.text, (unsigned long long)damage->first_offset,
             damage->blocks == 1 ? "was" : "were", damage->headless ? "at least " : "", spans.text);
    }
    if (damage->unknown)
        note(list, "%s of a newer version skipped", how_many(damage->unknown, "block", "blocks").text);
    if (!tare__trace_run_of(work->trace)->present)
        note(list, "command, host and start time are unavailable: their block is damaged or missing");
    if (!tare__trace_clock_known(work->trace))
        note(list, "the clock frequency is unknown: all times are in ticks, not nanoseconds");
}

/* Those after a failed system call have a note of the collector, with the reason. */
static void note_refusals(note_list *list, const tare__run_table *run)
{
    const struct {
        uint64_t n;
        const char *why;
    } reasons[] = {{run->refused_space, "no space"},
                   {run->refused_abi, "another version of libtare"},
                   {run->refused_copy, "a second copy of libtare"}};
    char parts[256] = "";
    uint64_t refused = 0;
    for (size_t i = 0, used = 0; i < TARE__COUNT_OF(reasons) && used < sizeof parts; i++) {
        if (reasons[i].n)
            used += (size_t)snprintf(parts + used, sizeof parts - used, "%s%llu: %s", used ? ", " : "",
                                     (unsigned long long)reasons[i].n, reasons[i].why);
        refused += reasons[i].n;
    }
    if (refused)
        note(list, "%s could not join and %s not recorded (%s)", how_many(refused, "process", "processes").text,
             refused == 1 ? "was" : "were", parts);
}

/* Notes from the collector. */
static void note_lines(note_list *list, const char *lines)
{
    for (const char *at = lines ? lines : ""; *at; at += strspn(at, "\n")) {
        size_t length = strcspn(at, "\n");
        note(list, "%.*s", (int)(length < 900 ? length : 900), at);
        at += length;
    }
}

static void note_losses(note_list *list, const tare__run_table *run)
{
    char time[TARE__UNIT_BYTES];
    if (run->write_error)
        note(list, "writing failed: %s", run->write_error);
    if (run->dropped_spans || run->dropped_others)
        note(list, "%s and %s were dropped because a buffer was full",
             how_many(run->dropped_spans, "span", "spans").text,
             how_many(run->dropped_others, "other event", "other events").text);
    if (run->rotated_spans)
        note(list, "%s dropped because of --max-size or --last: data before %s is incomplete",
             how_many(run->rotated_spans, "span was", "spans were").text,
             tare__unit_time(time, run->rotated_before_at_ns));
    note_refusals(list, run);
    if (run->left_running)
        note(list, "%s still running when the recording ended",
             how_many(run->left_running, "process was", "processes were").text);
    if (run->names_refused)
        note(list, "%s exceeded a process's name table and are merged",
             how_many(run->names_refused, "name", "names").text);
}

static void note_folding(note_list *list, const work *work)
{
    if (work->nodes.folded_deep)
        note(list, "spans nested deeper than %u levels are merged with the one at that level", DEPTH_MAX);
    if (work->too_deep)
        note(list, "too many spans were open at once: the innermost are counted, not timed");
    if (work->nodes.folded_many)
        note(list, "more than %u different span paths: the rest is merged into \"(others)\"", NODES_MAX);
    if (work->has_strays)
        note(list, "too many threads: the rest shares one row, and the self time of their long spans is overestimated");
    if (work->nodes.numbers_refused)
        note(list, "%s on spans were dropped: too many different names",
             how_many(work->nodes.numbers_refused, "number", "numbers").text);
    if (work->steps_refused)
        note(list, "too many kinds of steps: the rest has no rows");
    if (work->nodes.hist_bits < 5)
        note(list, "too many distinct durations: percentiles are accurate to %.0f %%",
             100.0 / (double)(2u << work->nodes.hist_bits));
}

static void note_samples(note_list *list, const work *work, const tare__analysis *analysis)
{
    const tare__own_table *own = &analysis->own;
    const metrics *metrics = &work->metrics;
    char longest[TARE__UNIT_BYTES], requested[TARE__UNIT_BYTES];
    /* Small deviations are ignored; the table of Tare's overhead has the figures. */
    if (own->longest_interval_ns >= 1.5 * own->interval_ns)
        note(list,
             "sampling interval up to %s instead of %s: more frequent sampling would have exceeded the CPU limit for "
             "samplers", tare__unit_time(longest, own->longest_interval_ns),
             tare__unit_time(requested, own->interval_ns));
    if (metrics->restarts)
        note(list,
             "sampled totals decreased %s (first %s of a %s), which they never should: only increases are counted "
             "from there on", how_many(metrics->restarts, "time", "times").text, metrics->restarted,
             metrics->restarted_of);
    if (metrics->late)
        note(list, "%s dropped: not in order of time", how_many(metrics->late, "sample was", "samples were").text);
    if (metrics->strangers)
        note(list, "%s dropped: the block that describes them is damaged or missing",
             how_many(metrics->strangers, "sample was", "samples were").text);
    if (work->energy_of)
        note(list, "energy covers %s only: other sources are unavailable", work->energy_of);
    if (work->carbon_assumed)
        note(list, "CO2 is estimated with an assumed carbon intensity of %.0f g/kWh (set --carbon)",
             analysis->usage.carbon_intensity);
}

/* ---- table --------------------------------------------------------------------------------------- */
static int split_arguments(tare__run_table *run, const tare__trace_run *reported, tare__arena *arena)
{
    if (!reported->arguments)
        return 0;
    run->command = tare__analyze_command(arena, reported->arguments, reported->arguments_bytes);
    char *copy = tare__arena_copy(arena, reported->arguments, reported->arguments_bytes);
    size_t n = 1;
    for (size_t i = 0; i < reported->arguments_bytes; i++)
        n += reported->arguments[i] == '\0';
    const char **arguments = tare__arena_alloc(arena, n * sizeof *arguments);
    if (!copy || !arguments || !run->command)
        return TARE_E_MEMORY;
    for (size_t at = 0; at < reported->arguments_bytes; at += strlen(copy + at) + 1)
        arguments[run->n_arguments++] = copy + at;
    run->arguments = arguments;
    return 0;
}

/* End of an unfinished file: the last event, or the end of a process, which also ends its open spans. */
static uint64_t last_ticks(const work *work)
{
    size_t n;
    const tare__trace_process *rows = tare__trace_processes(work->trace, &n);
    uint64_t last = tare__trace_damage_of(work->trace)->last_ticks;
    for (size_t i = 0; i < n; i++)
        last = rows[i].left_ticks > last ? rows[i].left_ticks : last;
    return last;
}

double tare__analyze_elapsed(const work *work)
{
    if (work->window.to)
        return work->window.to_ns - work->window.from_ns;
    const tare__trace_end *end = tare__trace_end_of(work->trace);
    uint64_t last = end->ticks ? end->ticks : last_ticks(work);
    return last ? tare__trace_ns(work->trace, last) : NAN;
}

static void fill_from_end(const work *work, tare__run_table *run, tare__arena *arena)
{
    const tare__trace_end *end = tare__trace_end_of(work->trace);
    run->finished = end->present;
    run->salvaged = end->salvaged;
    run->oom_killed = end->oom_killed;
    run->elapsed_ns = tare__analyze_elapsed(work);
    run->status = end->has_status ? (int)end->status : -1;
    run->signal = (int)end->signal;
    run->rotated_spans = end->rotated_spans;
    run->rotated_before_at_ns = end->rotated_before ? tare__trace_ns(work->trace, end->rotated_before) : NAN;
    run->refused_space = end->refused_space;
    run->refused_abi = end->refused_abi;
    run->refused_system = end->refused_system;
    run->refused_copy = end->refused_copy;
    run->left_running = end->left_running;
    run->write_error = copied(arena, end->write_error);
}

static void fill_from_processes(const work *work, const tare__analysis *analysis, tare__run_table *run)
{
    size_t n;
    const tare__trace_process *processes = tare__trace_processes(work->trace, &n);
    for (size_t i = 0; i < n; i++) {
        run->dropped_spans += processes[i].unattributed_spans;
        run->dropped_others += processes[i].unattributed_others;
        run->names_refused += processes[i].names_refused;
    }
    for (size_t i = 0; i < analysis->n_threads; i++) {
        run->spans += analysis->threads[i].spans;
        run->dropped_spans += analysis->threads[i].dropped_spans;
        run->dropped_others += analysis->threads[i].dropped_others;
    }
}

#define COVERED       0.5 /* share of the CPU time that stack samples should have … */
#define UNCOVERED_NS  2e8 /* … unless the rest is less than this: the start of a program */

/* Processes may end before they are sampled, and threads without Python code are sampled with --native only. */
static void note_uncovered(note_list *list, const work *work, const tare__analysis *analysis)
{
    double all_ns = 1e9 * analysis->usage.cpu_seconds, sampled_ns = 0;
    char share[TARE__UNIT_BYTES], time[TARE__UNIT_BYTES], all[TARE__UNIT_BYTES];
    bool native = false;
    for (size_t i = 0; i < analysis->n_sampled_threads; i++)
        sampled_ns += analysis->sampled_threads[i].of.ns[TARE__STATE_RUNNING];
    for (size_t i = 0; i < analysis->n_functions && !native; i++)
        native = analysis->functions[i].kind == TARE__FRAME_NATIVE;
    if (work->window.to || !(sampled_ns > 0) || !(sampled_ns < COVERED * all_ns && all_ns - sampled_ns >= UNCOVERED_NS))
        return;
    note(list, "stack samples have %s of the CPU time of the run (%s of %s): the rest is of %s",
         tare__unit_percent(share, sampled_ns / all_ns), tare__unit_time(time, sampled_ns),
         tare__unit_time(all, all_ns),
         native ? "processes that ended too soon to be sampled"
                : "processes that ended too soon to be sampled or are not Python programs, and of threads without "
                  "Python code (--native samples these, too)");
}

/* Last of the tables: the notes refer to all others. */
int tare__analyze_run_table(work *work, tare__analysis *analysis)
{
    const tare__trace_run *reported = tare__trace_run_of(work->trace);
    const tare__trace_damage *damage = tare__trace_damage_of(work->trace);
    tare__run_table *run = &analysis->run;
    tare__arena *arena = analysis->arena;
    int status = split_arguments(run, reported, arena);
    fill_from_end(work, run, arena);
    fill_from_processes(work, analysis, run);
    run->host = copied(arena, reported->host);
    run->directory = copied(arena, reported->directory);
    run->writer = copied(arena, reported->writer);
    run->cpu_model = copied(arena, reported->cpu_model);
    run->folder = copied(arena, run->finished ? NULL : reported->folder);
    run->kernel = copied(arena, reported->kernel);
    run->system = copied(arena, reported->system);
    run->revision = copied(arena, reported->revision);
    run->gpus = copied(arena, reported->gpus);
    tare__peaks_read(&run->peaks, reported->peaks ? reported->peaks : "");
    run->memory_bytes = reported->memory_bytes ? (double)reported->memory_bytes : NAN;
    run->attached = (int64_t)reported->attached;
    run->cpus = reported->cpus;
    run->start_realtime_ns = reported->start_realtime_ns;
    run->clock_known = tare__trace_clock_known(work->trace);
    run->damaged_blocks = damage->blocks;
    run->damaged_bytes = damage->bytes;
    run->damaged_spans = damage->spans;
    run->unknown_blocks = damage->unknown;

    note_list list = {.arena = arena};
    note_end(&list, work, run);
    note_damage(&list, work);
    note_losses(&list, run);
    note_lines(&list, tare__trace_end_of(work->trace)->notes);
    note_folding(&list, work);
    note_samples(&list, work, analysis);
    note_uncovered(&list, work, analysis);
    if (tare__steps_only_queue(analysis))
        note(&list, "durations and rates of steps are host time: most steps end without waiting for the GPU");
    const char **notes = tare__arena_alloc(arena, (list.n + 1) * sizeof *notes);
    if (status || !notes)
        return TARE_E_MEMORY;
    memcpy(notes, list.notes, list.n * sizeof *notes);
    run->notes = notes;
    run->n_notes = list.n;
    return 0;
}
