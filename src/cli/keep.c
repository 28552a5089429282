/* keep: adds a finished run to the history, after the program has ended and before Tare does; a failure is one line on
 * standard error. One thread.
 * Must not know how runs are stored, nor make a run fail. */
#define _GNU_SOURCE
#include "keep.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"

/* Timeouts after which a run is not added. Other writers of a file finish soon; an unresponsive server may stay so. */
#define PATIENCE_MS        5000
#define SERVER_PATIENCE_MS 2000

/* ---- options ---------------------------------------------------------------------------------------- */
#define TAG_BYTES_MAX 64u

int tare__cli_keep_take_tags(tare__cli_keeping *keeping, const char *argument, tare__error *error)
{
    if (keeping->n_tags == TARE__KEEP_TAGS)
        return tare__fail(error, TARE_E_USAGE, "--tag: more than %d", TARE__KEEP_TAGS);
    if (!*argument || strlen(argument) > TAG_BYTES_MAX || strpbrk(argument, " \t\n,"))
        return tare__fail(error, TARE_E_USAGE, "--tag: '%.64s' is not a valid tag; a tag is one word of up to %u bytes",
                          argument, TAG_BYTES_MAX);
    for (size_t i = 0; i < keeping->n_tags; i++)
        if (strcmp(keeping->tags[i], argument) == 0)
            return 0;
    keeping->tags[keeping->n_tags++] = argument;
    return 0;
}

static int find_place(const tare__cli_keeping *keeping, char place[TARE__STORE_PLACE_BYTES], bool *off,
                      tare__error *error)
{
    *off = keeping->off;
    return *off ? 0 : tare__store_place(keeping->store, place, off, error);
}

bool tare__cli_keeps(const tare__cli_keeping *keeping)
{
    char place[TARE__STORE_PLACE_BYTES];
    bool off;
    return find_place(keeping, place, &off, NULL) != 0 || !off;
}

/* ---- a run ------------------------------------------------------------------------------------------ */
static void take_session_id(const char *session, char id[TARE__KEPT_ID_DIGITS + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < TARE__ID_BYTES; i++) {
        id[2 * i] = digits[(unsigned char)session[i] >> 4];
        id[2 * i + 1] = digits[(unsigned char)session[i] & 15];
    }
    id[2 * TARE__ID_BYTES] = '\0';
}
_Static_assert(TARE__KEPT_ID_DIGITS == 2 * TARE__ID_BYTES, "a run's id is its session's");

/* Data that a trace has without an analysis. */
static const char *command_of(const tare__trace_run *from, tare__arena *arena)
{
    char *line = from->arguments_bytes ? tare__arena_copy(arena, from->arguments, from->arguments_bytes) : NULL;
    for (size_t i = 0; line && i + 1 < from->arguments_bytes; i++)
        if (!line[i])
            line[i] = ' ';
    return line;
}

static const char *absolute(const char *path, tare__arena *arena)
{
    char folder[4096];
    size_t length;
    if (path[0] == '/' || !getcwd(folder, sizeof folder))
        return path;
    char *out = tare__arena_alloc(arena, (length = strlen(folder)) + strlen(path) + 2);
    if (!out)
        return path;
    memcpy(out, folder, length);
    out[length] = '/';
    strcpy(out + length + 1, path);
    return out;
}

static void take_run(const tare__run_table *from, tare__kept *run)
{
    run->command = from->command;
    run->directory = from->directory;
    run->host = from->host;
    run->cpu_model = from->cpu_model;
    run->revision = from->revision;
    run->when_ns = from->start_realtime_ns;
    run->elapsed_ns = from->finished && from->clock_known ? from->elapsed_ns : NAN;
    run->status = from->status;
    run->signal = from->signal;
}

static void take_head(const tare__trace_run *from, const tare__trace_end *end, tare__arena *arena, tare__kept *run)
{
    run->command = command_of(from, arena);
    run->directory = from->directory;
    run->host = from->host;
    run->cpu_model = from->cpu_model;
    run->revision = from->revision;
    run->when_ns = from->start_realtime_ns;
    if (end->present && end->realtime_ns > from->start_realtime_ns && from->start_realtime_ns)
        run->elapsed_ns = (double)(end->realtime_ns - from->start_realtime_ns);
    run->status = end->has_status ? (int)end->status : -1;
    run->signal = (int)end->signal;
}

int tare__cli_kept_of_trace(tare__trace *trace, const tare__analysis *analysis, tare__arena *arena,
                            tare__kept *run, tare__error *error)
{
    int status = analysis ? 0 : tare__trace_prescan(trace, error);
    if (status)
        return status;
    const tare__trace_run *head = tare__trace_run_of(trace);
    *run = (tare__kept){.kind = "run", .dirty = -1, .status = -1, .elapsed_ns = NAN};
    if (analysis)
        take_run(&analysis->run, run);
    else
        take_head(head, tare__trace_end_of(trace), arena, run);
    run->trace = absolute(tare__trace_path(trace), arena);
    if (head->session_id)
        take_session_id(head->session_id, run->id);
    else
        tare__kept_make_id(run->host, run->command, run->directory, run->when_ns, 0, run->id);
    return 0;
}

/* The machine and the duration of a run that was not analyzed. */
static tare__figures *short_figures(tare__trace *trace, const tare__kept *run)
{
    const tare__trace_run *head = tare__trace_run_of(trace);
    tare__figures *figures = tare__figures_new("run");
    const tare__figure elapsed = {.name = "run.elapsed",
                                  .unit = "ns",
                                  .better = TARE__LOWER,
                                  .value = run->elapsed_ns,
                                  .total = run->elapsed_ns,
                                  .n = 1};
    if (!figures)
        return NULL;
    tare__figures_set_machine(figures, head->host, head->cpu_model, head->cpus,
                              head->memory_bytes ? (double)head->memory_bytes : NAN, head->kernel);
    if (!isnan(run->elapsed_ns))
        tare__figures_add(figures, &elapsed);
    return figures;
}

/* ---- into the store --------------------------------------------------------------------------------- */
static int put(const char *place, tare__kept *run, const tare__figures *figures, tare__cli_git *git, tare__error *error)
{
    const tare__store_options options = {.create = true,
                                         .writes = true,
                                         .patience_ms = strstr(place, "://") ? SERVER_PATIENCE_MS : PATIENCE_MS};
    tare__store *store = NULL;
    int status = tare__store_open(place, &options, &store, error);
    run->dirty = tare__cli_git_answer(git);
    if (!status)
        status = tare__store_put(store, run, figures, NULL, error);
    tare__store_close(store);
    return status;
}

static void say(int status, const tare__error *error)
{
    if (status)
        tare__cli_say("tare", "not in the history: %s", error->text[0] ? error->text : tare_status_text(status));
}

static int keep_run(const char *place, const tare__cli_keeping *keeping, tare__trace *trace,
                    const tare__analysis *analysis, tare__cli_git *git, tare__arena *arena, tare__error *error)
{
    tare__kept run;
    tare__figures *figures = NULL;
    int status = tare__cli_kept_of_trace(trace, analysis, arena, &run, error);
    if (status)
        return status;
    status = analysis ? tare__figures_of_analysis(analysis, &figures) : 0;
    if (!analysis)
        figures = short_figures(trace, &run);
    if (status || !figures)
        return tare__no_memory(error);
    run.machine = figures->machine;
    run.tags = keeping->tags;
    run.n_tags = keeping->n_tags;
    status = put(place, &run, figures, git, error);
    tare__figures_free(figures);
    return status;
}

void tare__cli_keep_ask(const tare__cli_keeping *keeping, tare__trace *trace, tare__cli_git *git)
{
    if (tare__cli_keeps(keeping) && tare__trace_prescan(trace, NULL) == 0 && tare__trace_run_of(trace)->revision)
        tare__cli_git_ask(git);
}

void tare__cli_keep_run(const tare__cli_keeping *keeping, tare__trace *trace, const tare__analysis *analysis,
                        tare__cli_git *git)
{
    char place[TARE__STORE_PLACE_BYTES];
    bool off;
    tare__error error = {""};
    int status = find_place(keeping, place, &off, &error);
    tare__arena *arena = off ? NULL : tare__arena_new();
    if (!status && !off)
        status = arena ? keep_run(place, keeping, trace, analysis, git, arena, &error) : TARE_E_MEMORY;
    tare__arena_free(arena);
    say(status, &error);
}

void tare__cli_keep_figures(const tare__cli_keeping *keeping, const tare__cli_keep_what *what)
{
    char place[TARE__STORE_PLACE_BYTES], folder[4096];
    bool off;
    tare__error error = {""};
    tare__cli_git git = TARE__GIT_NOT_ASKED;
    int status = find_place(keeping, place, &off, &error);
    if (status || off) {
        say(status, &error);
        return;
    }
    const tare__figures *figures = what->figures;
    if (figures->revision)
        tare__cli_git_ask(&git);
    tare__kept run = {.kind = figures->kind,
                      .command = what->command ? what->command : figures->command,
                      .host = figures->host,
                      .machine = figures->machine,
                      .cpu_model = figures->cpu_model,
                      .revision = figures->revision,
                      .trace = what->path,
                      .status = what->status,
                      .when_ns = figures->when_ns,
                      .elapsed_ns = what->elapsed_ns,
                      .dirty = -1,
                      .tags = keeping->tags,
                      .n_tags = keeping->n_tags};
    run.directory = getcwd(folder, sizeof folder);
    uint64_t now_ns = tare__clock_ns(CLOCK_REALTIME);
    run.when_ns = run.when_ns ? run.when_ns : now_ns;
    tare__kept_make_id(run.host, run.command, run.directory, now_ns, (uint64_t)getpid(), run.id);
    say(put(place, &run, figures, &git, &error), &error);
}
