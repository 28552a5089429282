/* rules_hot: what any program spends its time on, by stack samples: the line or function that takes most of the time of
 * the leading thread, and threads that wait for the interpreter lock.
 * Owned by the thread that analyzes.
 * Must not know how stacks are sampled. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hot.h"

/* ---- advice -------------------------------------------------------------------------------------- */
/* For code that runs, by the package that most of the line's time is in. */
static const char *advice_for_package(const char *package)
{
    static const struct {
        const char *package, *advice;
    } advices[] = {
        {"re", "Simplify the pattern (nested quantifiers backtrack), compile it once, or rule most inputs out with a "
               "str method first."},
        {"json", "Parse less, parse each document once, or use a faster parser (orjson, msgspec)."},
        {"csv", "Read in bulk with a compiled reader (pyarrow.csv, pandas.read_csv with usecols and dtype)."},
        {"copy", "Avoid deepcopy: copy only what changes, or build new objects from it."},
        {"multiprocessing", "Send less data between processes: larger tasks (chunksize), shared memory "
                            "(multiprocessing.shared_memory) or memory-mapped files."},
        {"pickle", "Serialize less, or large arrays as buffers (pickle protocol 5, numpy.save, pyarrow)."},
        {"logging", "Log less often here, or guard the call with logger.isEnabledFor()."},
        {"pandas", "Replace loops over rows (iterrows, apply with axis=1, item assignment) by operations on whole "
                   "columns."},
        {"numpy", "Work on whole arrays instead of single elements, avoid temporary copies, and check the dtype."},
        {"PIL", "Decode smaller images (Image.draft), cache decoded data, or decode in several processes."},
        {"hashlib", "Hash less data, or in threads: hashing large buffers releases the GIL."},
        {"zlib", "Use a lower compression level or a faster codec (zstd, lz4)."},
        {"gzip", "Use a lower compression level or a faster codec (zstd, lz4)."},
        {"bz2", "Use a lower compression level or a faster codec (zstd, lz4)."},
        {"lzma", "Use a lower compression level or a faster codec (zstd, lz4)."},
        {"_strptime", "Parse ISO dates with datetime.fromisoformat, or whole columns with pandas.to_datetime."},
        {"dateutil", "Parse dates with a known format (datetime.strptime, datetime.fromisoformat)."},
        {"sqlite3", "Run fewer, larger statements in one transaction (executemany), and index what is searched."},
        {"inspect", "Do this once instead of in every call: reading source and signatures is slow."},
        {"garbage collection", "Create fewer objects that refer to each other, or call gc.freeze() after startup."},
    };
    for (size_t i = 0; package && i < TARE__COUNT_OF(advices); i++)
        if (strcmp(package, advices[i].package) == 0)
            return advices[i].advice;
    return NULL;
}

/* Waiting for a CPU is not the line's fault: other rules tell who uses the CPUs. */
static bool computes(const tare__hot *hot)
{
    return hot->state == TARE__STATE_RUNNING || hot->state == TARE__STATE_RUNNABLE;
}

static bool is_import(const tare__hot *hot)
{
    return hot->imports >= 0.5;
}

/* An event loop, or a server, that has nothing to do. */
static bool is_idle_loop(const tare__hot *hot)
{
    static const char *const select[] = {"select"}, *const accept[] = {"accept"};
    return hot->state == TARE__STATE_NETWORK &&
           (tare__is_function(hot->inner, hot->inner_file, "/selectors.py", select, 1) ||
            tare__is_function(hot->inner, hot->inner_file, "/socket.py", accept, 1));
}

static const char *advice_for(const tare__hot *hot, bool imports)
{
    static const char *const advices[TARE__STATE_COUNT] = {
        [TARE__STATE_GIL] =
            "Other threads hold the interpreter lock: move their work to processes "
            "(concurrent.futures.ProcessPoolExecutor) or to libraries that release the lock.",
        [TARE__STATE_LOCK] = "Hold the lock for less time, split it, or pass work through a queue.",
        [TARE__STATE_DISK] =
            "Read ahead in the background and in larger blocks, and keep in memory what is read again.",
        [TARE__STATE_NETWORK] =
            "Send independent requests concurrently (a thread pool, asyncio), reuse connections, and ask for several "
            "items at once.",
        [TARE__STATE_CHILD] = "Do other work until the process ends, run several at once, or replace it by a library "
                              "call.",
        [TARE__STATE_PIPE] = "Do other work until the data arrive, or make the process that sends them faster.",
        [TARE__STATE_GPU] = "Queue more work before reading a result, and read results less often.",
        [TARE__STATE_SLEEP] = "Wait for the event itself (threading.Event, select, a callback) instead of sleeping.",
        [TARE__STATE_OTHER] = "Do this in the background, less often, or for several items at once.",
    };
    if (is_idle_loop(hot))
        return "A server waits here for its clients. In a client, start independent requests together "
               "(asyncio.gather) instead of one after the other.";
    if (imports)
        return "Import only where it is used (inside the function), or only the part that is needed; python -X "
               "importtime shows the modules one by one.";
    if (tare__waits_for_thread(hot->state, hot->inner, hot->inner_file))
        return "Make the code that it waits for faster, or do other work until its result is there.";
    const char *by_package = computes(hot) ? advice_for_package(hot->package) : NULL;
    if (by_package)
        return by_package;
    if (!computes(hot) && hot->state < TARE__STATE_COUNT && advices[hot->state])
        return advices[hot->state];
    if (hot->package && hot->own && strcmp(hot->package, "your code") != 0)
        return "Call it less often or for several items at once, or keep its results.";
    return "Do less in this line: a better algorithm (a set or dict instead of searching a list, no repeated work), "
           "operations on whole arrays, or compiled code.";
}

/* ---- the line that takes the time ---------------------------------------------------------------- */
/* Rules of steps name the lines of a training loop, in its phases. */
static bool has_training(const tare__analysis *of)
{
    for (size_t i = 0; i < of->n_steps; i++)
        if ((double)of->steps[i].count >= limit(LIMIT_FEWEST_STEPS))
            return true;
    return false;
}

static bool is_reported(const findings *out, const tare__hot *hot)
{
    static const char *const same[] = {"operation", "data-loading", "forward", "backward", "disk-bound",
                                       "outside-steps", "gil"};
    for (size_t i = 0; i < out->n; i++)
        for (size_t k = 0; k < TARE__COUNT_OF(same); k++)
            if (out->rows[i].file && strcmp(out->rows[i].id, same[k]) == 0 && out->rows[i].line == hot->line &&
                strcmp(out->rows[i].file, hot->file) == 0)
                return true;
    return false;
}

/* The line, if it takes a large part; else the function, by all of its lines. */
static bool find_hot(const tare__analysis *of, tare__hot_question *question, tare__hot *hot)
{
    if (tare__hot_line(of, question, hot) && hot->share >= limit(LIMIT_HOT_CODE))
        return true;
    question->by_function = true;
    return tare__hot_line(of, question, hot) && hot->function_share >= limit(LIMIT_HOT_CODE);
}

static void say_title(findings *out, const tare__analysis *of, const tare__hot *hot, bool by_function, double share)
{
    bool runs = computes(hot);
    tare__place_text place = tare__show_place(of, hot->file, hot->line);
    if (is_import(hot) && !by_function)
        tare__say_title(out, "%s of the run is imports at %s", percent(share).text, place.text);
    else if (by_function)
        tare__say_title(out, "%s of the run is %s, hottest line %s", percent(share).text,
                        tare__show_name(hot->function).text, place.text);
    else
        tare__say_title(out, "%s of the run is %s at %s%s%s", percent(share).text,
                        tare__show_name(hot->function).text, place.text, runs ? "" : ", ",
                        runs ? "" : tare__wait_phrase(hot->state, hot->inner, hot->inner_file));
}

static bool is_thread(const tare__analysis *of, const tare__sampled_thread_row *thread, const void *context)
{
    (void)of;
    return thread == context;
}

/* A thread that waits for a lock, or sleeps, while another one of its process works: that one takes the time. NULL:
 * none works. */
static const tare__sampled_thread_row *works_meanwhile(const tare__analysis *of, const tare__hot *hot,
                                                       const tare__sampled_thread_row *waits)
{
    if (hot->state != TARE__STATE_LOCK && hot->state != TARE__STATE_SLEEP)
        return NULL;
    for (size_t i = 0; i < of->n_sampled_threads; i++) { /* the most active first */
        const tare__sampled_thread_row *row = &of->sampled_threads[i];
        if (row != waits && row->pid == waits->pid && row->active_ns >= 0.5 * hot->ns)
            return row;
    }
    return NULL;
}

#define SMALL_IMPORT 0.05 /* of the longest one */

/* The modules that take longest, with what they import, on whichever lines. */
static void say_imported(findings *out, const tare__analysis *of)
{
    char names[400] = "";
    size_t used = 0;
    unsigned n = 0;
    for (size_t i = 0; i < of->n_sampled_imports && n < 3 && used < sizeof names; i++) {
        const tare__sampled_import_row *row = &of->sampled_imports[i];
        if (!(row->outer_ns >= SMALL_IMPORT * of->sampled_imports[0].total_ns) || strcmp(row->module, "site") == 0)
            continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s %s", n++ ? ", " : "",
                                 tare__show_name(row->module).text, tare__show_time(row->outer_ns).text);
    }
    if (n)
        tare__say_evidence(out, "Longest %s of the run: %s.", n == 1 ? "import" : "imports", names);
}

/* ---- what others do meanwhile -------------------------------------------------------------------- */
static bool is_other_thread(const tare__analysis *of, const tare__sampled_thread_row *thread, const void *context)
{
    (void)of;
    return thread != context;
}

static bool waits_for_others(const tare__hot *hot)
{
    return hot->state == TARE__STATE_LOCK || hot->state == TARE__STATE_PIPE || hot->state == TARE__STATE_CHILD;
}

#define MEANWHILE        0.5  /* time of others, as a share of that wait, that is worth a sentence */
#define MEANWHILE_SERVES 0.05 /* … where a thread only hands out work: a server that waits for its clients */

/* The line on which other threads and processes work, or else wait for something other than their next task. */
static void say_meanwhile(findings *out, const tare__analysis *of, const tare__sampled_thread_row *waits,
                          const tare__hot *hot)
{
    const uint32_t active = TARE__ON_CPU | 1u << TARE__STATE_GIL | 1u << TARE__STATE_DISK;
    tare__hot_question question = {.thread = is_other_thread, .context = waits, .states = active};
    tare__hot others;
    const char *time = "the time in which other threads work";
    double least_ns = (is_idle_loop(hot) ? MEANWHILE_SERVES : MEANWHILE) * hot->ns;
    bool known = tare__hot_line(of, &question, &others) && others.own && others.all_ns >= least_ns;
    if (!known) {
        question.states = 0;
        question.own = true;
        time = "the time of your code in other threads";
        known = tare__hot_line(of, &question, &others) && others.all_ns >= least_ns &&
                (others.state != TARE__STATE_LOCK || !others.inner);
    }
    if (known && (others.line != hot->line || strcmp(others.file, hot->file) != 0))
        tare__say_evidence(out, "Meanwhile, %s of %s (%s of %s) is %s at %s, %s.", percent(others.share).text, time,
                           tare__show_time(others.ns).text, tare__show_time(others.all_ns).text,
                           tare__show_name(others.function).text,
                           tare__show_place(of, others.file, others.line).text,
                           tare__wait_phrase(others.state, others.inner, others.inner_file));
}

/* ---- the rule ------------------------------------------------------------------------------------ */
void tare__rule_hot_code(findings *out, const tare__analysis *of)
{
    tare__hot_question question = {.thread = is_thread};
    tare__hot hot;
    char thread[80], time[160];
    if (of->stacks.leading >= of->n_sampled_threads || has_training(of) ||
        !(of->sampled_threads[of->stacks.leading].wall_ns >= limit(LIMIT_SHORTEST_RUN)))
        return;
    const tare__sampled_thread_row *leading = &of->sampled_threads[of->stacks.leading], *other;
    question.context = leading;
    bool known = find_hot(of, &question, &hot);
    if (known && (other = works_meanwhile(of, &hot, leading))) {
        tare__hot_question its = {.thread = is_thread, .context = other};
        tare__hot found;
        if (find_hot(of, &its, &found) && found.own) {
            leading = other;
            question = its;
            hot = found;
        }
    }
    if (!known || is_reported(out, &hot) || (!hot.own && hot.file[0] == '<')) /* parts of the interpreter */
        return;
    snprintf(thread, sizeof thread, leading->main ? "the main thread" : "thread %" PRId64, leading->tid);
    if (leading->name)
        snprintf(thread, sizeof thread, "%.60s", leading->name);
    snprintf(time, sizeof time, "the wall time of %s", thread);
    double share = question.by_function ? hot.function_share : hot.share, ns = share * hot.all_ns;
    double gain = fmin(1, ns / fmax(of->run.elapsed_ns, hot.all_ns)); /* it may end before the run does */
    if (!(gain >= limit(LIMIT_HOT_CODE)))
        return;
    bool serves = is_idle_loop(&hot), imports = is_import(&hot) && !question.by_function;
    tare__finding_add(out, TARE__INFO); /* not a fault: one line is always the largest */
    say_title(out, of, &hot, question.by_function, gain);
    tare__say_hot_line(out, of, &hot, time);
    if (imports)
        say_imported(out, of->whole ? of->whole : of);
    if (waits_for_others(&hot) || serves)
        say_meanwhile(out, of, leading, &hot);
    tare__say_advice(out, "%s", advice_for(&hot, imports));
    if (serves)
        tare__say_gain(out, NAN, "not predicted: a server waits for its clients");
    else if (computes(&hot))
        tare__say_gain(out, gain, "all of its time (Amdahl's law)");
    else
        tare__say_gain(out, gain, "all of its time, if it overlapped with other work");
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "time", ns / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "samples", (double)hot.samples, TARE__SHOW_COUNT);
}

/* ---- the interpreter lock ------------------------------------------------------------------------ */
typedef struct gil_process { /* the process whose threads wait longest for its lock */
    int64_t pid;
    double gil_ns, on_ns, most_ns; /* most: of one thread */
    unsigned threads;              /* that want to run for a considerable part of their time */
} gil_process;

static gil_process sum_process(const tare__analysis *of, int64_t pid)
{
    gil_process sum = {.pid = pid};
    for (size_t i = 0; i < of->n_sampled_threads; i++) {
        const tare__sampled_thread_row *row = &of->sampled_threads[i];
        if (row->pid != pid)
            continue;
        double gil = row->of.ns[TARE__STATE_GIL];
        double on = row->of.ns[TARE__STATE_RUNNING] + row->of.ns[TARE__STATE_RUNNABLE];
        sum.gil_ns += gil;
        sum.on_ns += on;
        sum.most_ns = fmax(sum.most_ns, gil);
        sum.threads += gil + on >= 0.1 * of->run.elapsed_ns;
    }
    return sum;
}

static gil_process worst_process(const tare__analysis *of)
{
    gil_process worst = {0};
    for (size_t i = 0; i < of->n_sampled_threads; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++)
            first = of->sampled_threads[k].pid != of->sampled_threads[i].pid;
        gil_process sum = first ? sum_process(of, of->sampled_threads[i].pid) : (gil_process){0};
        worst = sum.gil_ns > worst.gil_ns ? sum : worst;
    }
    return worst;
}

static bool is_of_process(const tare__analysis *of, const tare__sampled_thread_row *thread, const void *context)
{
    (void)of;
    return thread->pid == *(const int64_t *)context;
}

void tare__rule_gil(findings *out, const tare__analysis *of)
{
    if (of->n_sampled_threads > 2000) /* the sums above are quadratic */
        return;
    gil_process worst = worst_process(of);
    double share = worst.gil_ns / (worst.gil_ns + worst.on_ns), cores = of->usage.cores_allowed;
    if (worst.threads < 2 || !(share >= limit(LIMIT_GIL)) || !(of->run.elapsed_ns >= limit(LIMIT_SHORTEST_RUN)))
        return;
    tare__finding_add(out, worst.most_ns >= limit(LIMIT_HOT_CODE) * of->run.elapsed_ns ? TARE__WARNING : TARE__INFO);
    tare__say_title(out, "%u threads compete for the GIL and wait for it for %s of the time in which they could run",
                    worst.threads, percent(share).text);
    tare__say_evidence(out,
                       "Threads of process %" PRId64 " ran or waited for a CPU for %s and waited for the GIL for %s.",
                       worst.pid, tare__show_time(worst.on_ns).text, tare__show_time(worst.gil_ns).text);
    const tare__hot_question question = {.thread = is_of_process, .context = &worst.pid,
                                     .states = TARE__ON_CPU | 1u << TARE__STATE_GIL,
                                     .time = "the time in which they could run"};
    tare__say_hot(out, of, &question);
    tare__say_advice(out,
                     "Python code of one process runs on one core at a time: use processes "
                     "(concurrent.futures.ProcessPoolExecutor), libraries that release the GIL, or a single thread, "
                     "which avoids switching.");
    double spread = cores >= 1 ? 1 - 1 / fmin(worst.threads, cores) : NAN;
    if (cores >= 2)
        tare__say_gain(out, fmin(spread, worst.most_ns / of->run.elapsed_ns),
                       "the longest time that one thread waited for it, if the work were spread over the cores");
    else
        tare__say_gain(out, NAN, "not predicted: processes need more cores than are available");
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "waiting", worst.gil_ns / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "running", worst.on_ns / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "threads", worst.threads, TARE__SHOW_COUNT);
}
