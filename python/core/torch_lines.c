/* torch_lines: time by line of the program's own code and by phase. A ticker requests a sample of the main thread's
 * position at its next safe point; the time since the last sample is added to that line. Nothing is interrupted.
 * The ticker is a separate thread that runs no Python code; the main thread samples, with the interpreter's lock.
 * Must not know torch. */
#include "torch.h"

#include <dlfcn.h>
#include <errno.h>
#include <frameobject.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_EVERY_NS 20000000
#define UNSURE_MAX    64u
#define DROPPED_MAX   32u
#define LINES_MAX     128u /* sites; a recorder has some 380 for all */

/* ---- frames -------------------------------------------------------------------------------------------- */
static char library[512]; /* the folder of the interpreter's own modules, with a slash */

const char *tare__torch_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The folder of this package, with a slash: that of the extension. */
static const char *own_folder(void)
{
    static char folder[sizeof ((torch_line *)NULL)->file];
    Dl_info found;
    if (!folder[0] && dladdr(folder, &found) && found.dli_fname) {
        int length = (int)(tare__torch_base_name(found.dli_fname) - found.dli_fname);
        snprintf(folder, sizeof folder, "%.*s", length, found.dli_fname);
    }
    return folder;
}

/* Tare's own files count as installed packages wherever they are: below `pip install --target`, or beside a build. The
 * start-up hook may belong to a package for another Python. */
static bool is_own(const char *file)
{
    const char *folder = own_folder();
    return (folder[0] && strncmp(file, folder, strlen(folder)) == 0) || strstr(file, "/tare/_hook/");
}

static bool is_installed(const char *file)
{
    return is_own(file) || strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") || file[0] == '<' ||
           (library[0] && strncmp(file, library, strlen(library)) == 0);
}

static PyCodeObject *code_of(PyFrameObject *frame)
{
    return PyFrame_GetCode(frame); /* a new reference */
}

static void copy_text(PyObject *text, char *out, size_t room)
{
    const char *bytes = text ? PyUnicode_AsUTF8(text) : NULL;
    PyErr_Clear();
    snprintf(out, room, "%s", bytes ? bytes : "");
}

bool tare__torch_line_here(torch_line *line)
{
    PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
    bool found = false;
    Py_XINCREF(frame);
    while (frame && !found) {
        PyCodeObject *code = code_of(frame);
        copy_text(code->co_filename, line->file, sizeof line->file);
        found = line->file[0] && !is_installed(line->file);
        if (found) {
            copy_text(code->co_name, line->function, sizeof line->function);
            line->line = PyFrame_GetLineNumber(frame);
        }
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return found;
}

/* ---- sites --------------------------------------------------------------------------------------------- */
static tare_site sites[LINES_MAX];
static unsigned told[LINES_MAX]; /* one more than the sessions before the last one that knows the line */
static uint32_t n_sites;

static bool is_site(const tare_site *site, const char *name, const torch_line *line)
{
    return site->line == (uint32_t)line->line && strcmp(site->name, name) == 0 && strcmp(site->file, line->file) == 0;
}

static tare_site *site_of(const torch_line *line, const char *doing)
{
    char name[700];
    snprintf(name, sizeof name, "%s @ %s:%d %s", doing, tare__torch_base_name(line->file), line->line, line->function);
    for (uint32_t i = 0; i < n_sites; i++)
        if (is_site(&sites[i], name, line))
            return &sites[i];
    char *kept = n_sites < LINES_MAX ? strdup(name) : NULL, *file = kept ? strdup(line->file) : NULL;
    if (!file) {
        free(kept);
        return NULL;
    }
    sites[n_sites] = (tare_site){0, kept, file, (uint32_t)line->line, TARE_KIND_AGGREGATE, 1, 0};
    return &sites[n_sites++];
}

/* Records ticks as a span that ends now, whenever they were spent. */
static void add(const torch_line *line, const char *doing, uint64_t ticks)
{
    tare_site *site = site_of(line, doing);
    uint64_t now = tare_aggregate_begin();
    if (!site || now <= ticks)
        return;
    tare_aggregate_end(site, now - ticks);
    if (told[site - sites] == tare__py_sessions + 1)
        return;
    char key[80];
    snprintf(key, sizeof key, "torch.line.%s", doing); /* an aggregate of the program may have such a name, too */
    tare__fact_tell(key, line->file, (uint32_t)line->line, NAN, line->function);
    told[site - sites] = tare__py_sessions + 1;
}

/* ---- lines that are found to be in a step or between steps later ------------------------------------------ */
/* A step that was begun may turn out not to be one, and after a step the program may end. */
typedef struct unsure_line {
    torch_line line;
    uint64_t ticks;
    uint64_t begun, counted; /* steps begun, and those that were valid, when it was sampled */
    bool in_step;
} unsure_line;

static unsure_line unsure[UNSURE_MAX];
static uint32_t n_unsure;
static uint64_t dropped[DROPPED_MAX]; /* the last begun steps that were not valid, by their number among those begun */
static unsigned n_dropped;

void tare__torch_lines_drop_step(uint64_t begun)
{
    dropped[n_dropped++ % DROPPED_MAX] = begun;
}

static bool was_dropped(uint64_t begun)
{
    for (unsigned i = 0; i < DROPPED_MAX && i < n_dropped; i++)
        if (dropped[i] == begun)
            return true;
    return false;
}

/* NULL: not known yet. Of several steps that ended since, the majority decides. */
static const char *what_it_was(const unsure_line *one, bool last)
{
    uint64_t begun = tare__py_stack_watched_begun - one->begun, counted = tare__torch_steps() - one->counted;
    bool in_step = tare__torch_in_step();
    if (one->in_step && begun == 0 && in_step)
        return !last ? NULL : tare__torch_in_rest() ? "other" : "step";
    if (one->in_step && counted > 0 && !was_dropped(one->begun) && 2 * counted >= begun + !in_step)
        return "step";
    if (counted > 0 && one->counted > 0)
        return "between";
    return last || one->counted == 0 ? "other" : NULL;
}

static void settle(bool last)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n_unsure; i++) {
        const char *doing = what_it_was(&unsure[i], last || (n_unsure == UNSURE_MAX && i < UNSURE_MAX / 4));
        if (doing)
            add(&unsure[i].line, doing, unsure[i].ticks);
        else
            unsure[kept++] = unsure[i];
    }
    n_unsure = kept;
}

static void wait_and_see(const torch_line *line, uint64_t ticks)
{
    unsure_line fresh = {*line, ticks, tare__py_stack_watched_begun, tare__torch_steps(), tare__torch_in_step()};
    for (uint32_t i = 0; i < n_unsure; i++) {
        unsure_line *known = &unsure[i];
        if (known->begun == fresh.begun && known->counted == fresh.counted && known->in_step == fresh.in_step &&
            known->line.line == line->line && strcmp(known->line.file, line->file) == 0 &&
            strcmp(known->line.function, line->function) == 0) {
            known->ticks += ticks;
            return;
        }
    }
    if (n_unsure < UNSURE_MAX)
        unsure[n_unsure++] = fresh;
}

/* "data @ train.py:23 __getitem__": the phase is read by rules, the rest by users. For phases outside of the steps,
 * and for a worker that loads for these, it is "evaluation data". */
static void take_line(const torch_line *line, torch_phase phase, uint64_t ticks)
{
    char doing[64];
    const char *kind;
    uint64_t apart = tare__torch_ticks_at_line(&kind); /* spent in calls that have a separate span */
    apart = apart < ticks ? apart : ticks;
    bool loads = !phase && tare__torch_loading();
    bool aside = loads ? tare__torch_loads_aside : phase && tare__torch_between_steps();
    if (!phase && !loads && apart) {
        add(line, kind, apart);
        ticks -= apart;
    }
    if (!ticks)
        return;
    if (phase || loads) {
        snprintf(doing, sizeof doing, "%s%s", aside ? "evaluation " : "",
                 loads ? "load" : tare__torch_phase_names[phase]);
        add(line, doing, ticks);
    } else if (tare__torch_in_step() || (tare__torch_between_steps() && tare__torch_steps() > 0)) {
        wait_and_see(line, ticks);
    } else {
        add(line, "other", ticks);
    }
}

/* ---- sampling ------------------------------------------------------------------------------------------ */
static pthread_t ticker;
static PyThreadState *main_thread; /* the thread that is sampled */
static pid_t ticking; /* the process that has one; 0: none */
static atomic_bool requested, ends;
static uint64_t last_sample;

/* The program's other threads: it may load data in one of them. */
static void count_threads(void)
{
    static int64_t reported = -1;
    int64_t n = -1;
    for (PyThreadState *one = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); one;
         one = PyThreadState_Next(one))
        n++;
    if (n != reported)
        tare_counter_name("python.threads", (double)n);
    reported = n;
}

static int take_sample(void *nothing)
{
    int saved_errno = errno;
    torch_raised raised = tare__torch_put_aside();
    torch_line line;
    uint64_t from = last_sample;
    last_sample = tare_aggregate_begin();
    atomic_store(&requested, false);
    settle(false);
    if (from && last_sample > from && tare__torch_line_here(&line))
        take_line(&line, tare__torch_phase_now(), last_sample - from);
    if (tare__torch_steps() || tare__torch_in_step()) /* a launcher has threads, too, and does not train */
        count_threads();
    tare__torch_put_back(raised);
    errno = saved_errno;
    return 0;
}

static void *tick(void *nothing)
{
    struct timespec pause = {0, SAMPLE_EVERY_NS};
    while (!atomic_load(&ends)) {
        nanosleep(&pause, NULL);
        if (!tare_recording() || atomic_exchange(&requested, true))
            continue;
        if (Py_AddPendingCall(take_sample, NULL) != 0)
            atomic_store(&requested, false);
        else
            tare__py_break(main_thread);
    }
    return nothing;
}

PyDoc_STRVAR(start_doc,
             "torch_lines_start(library)\n--\n\nStarts sampling lines in this process; files "
             "below the folder `library` are not the program's own.");
static PyObject *start(PyObject *module, PyObject *folder)
{
    copy_text(folder, library, sizeof library);
    if (ticking == getpid())
        Py_RETURN_NONE;
    atomic_store(&ends, false);
    atomic_store(&requested, false);
    last_sample = 0;
    main_thread = tare__py_main_thread();
    sigset_t all, before; /* signals are left to the program's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool made = pthread_create(&ticker, NULL, tick, NULL) == 0;
    if (made)
        pthread_setname_np(ticker, "tare-lines");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ticking = made ? getpid() : 0;
    return PyBool_FromLong(made);
}

static PyObject *stop(PyObject *module, PyObject *nothing)
{
    if (ticking != getpid())
        Py_RETURN_NONE;
    atomic_store(&ends, true);
    ticking = 0;
    Py_BEGIN_ALLOW_THREADS
    pthread_join(ticker, NULL);
    Py_END_ALLOW_THREADS
    settle(true);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(here_doc,
             "torch_line_here()\n--\n\n(file, line, function) of the innermost frame of the program's own "
             "code; None: there is none.");
static PyObject *here(PyObject *module, PyObject *nothing)
{
    torch_line line;
    if (!tare__torch_line_here(&line))
        Py_RETURN_NONE;
    return Py_BuildValue("sis", line.file, line.line, line.function);
}

static PyMethodDef functions[] = {
    {"torch_lines_start", start, METH_O, start_doc},
    {"torch_lines_stop", stop, METH_NOARGS, "torch_lines_stop()\n--\n\nNo more looks."},
    {"torch_line_here", here, METH_NOARGS, here_doc},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_torch_lines = {.functions = functions};
