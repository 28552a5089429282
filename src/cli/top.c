/* top: `tare top`: the functions in which a running Python program spends its time, as a table that is updated in
 * place.
 * One thread. The processes are only read, never paused. Must not know how stacks are read. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "sample/sample.h"
#include "tare.h"

#define ME "tare top"
#define RATE_NS 10000000u
#define SHOW_NS 1000000000u
#define LIST_NS 500000000u
#define ROWS_MAX 200u
#define PROCESSES_MAX 256u

enum { TOP_COUNT };

typedef struct function_row {
    uint64_t own, total; /* samples since the last table */
    uint64_t own_ns;     /* since the start */
    uint64_t sample;             /* the last one that has it: recursion counts once */
    int32_t line;                /* the last one seen */
} function_row;

typedef struct top_process {
    pid_t pid;
    tare__python *python;
    uint64_t try_ns;
    uint64_t sampled_ns; /* when its threads were sampled last; 0: never */
    uint64_t passed_ns;  /* until now since then: the time of each sample */
    bool listed;
} top_process;

typedef struct top {
    pid_t pid;
    uint64_t tables; /* to show; 0: until interrupted */
    tare__sample_set *set;
    top_process processes[PROCESSES_MAX];
    size_t process_count;
    tare__intern *names; /* name, line end, file */
    function_row *rows;
    size_t row_room;
    uint64_t samples, samples_all, sample; /* of active threads */
    uint64_t shown;
    uint64_t states[TARE__STATE_COUNT];    /* of the first process's main thread, since the last table */
    uint64_t main_samples;
    char why[256]; /* the first process cannot be read */
    int why_status;
} top;

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* ---- samples ----------------------------------------------------------------------------------------------- */

static void ignore_series(void *context, const tare__series *series)
{
    (void)context, (void)series;
}

static void ignore_value(void *context, uint32_t series, int64_t value)
{
    (void)context, (void)series, (void)value;
}

static void list_processes(top *state)
{
    size_t n = 0, kept = 0;
    tare__sample_tick_all(state->set, tare__monotonic_ns());
    const tare__sampled_process *list = tare__sample_processes(state->set, &n);
    for (size_t i = 0; i < state->process_count; i++)
        state->processes[i].listed = false;
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        while (at < state->process_count && state->processes[at].pid != list[i].pid)
            at++;
        if (!list[i].alive || at == PROCESSES_MAX)
            continue;
        if (at == state->process_count)
            state->processes[state->process_count++] = (top_process){.pid = list[i].pid};
        state->processes[at].listed = true;
    }
    for (size_t i = 0; i < state->process_count; i++) {
        if (state->processes[i].listed)
            state->processes[kept++] = state->processes[i];
        else
            tare__python_close(state->processes[i].python);
    }
    state->process_count = kept;
}

static function_row *row_of(top *state, const tare__python *python, uint32_t code)
{
    char key[1024];
    const tare__python_code *about = tare__python_code_at(python, code);
    if (!about)
        return NULL;
    int length = snprintf(key, sizeof key, "%s\n%s", about->name, about->file);
    size_t name = strlen(about->name);
    for (size_t i = 0; i < name && i < sizeof key; i++)
        if (key[i] == '\n') /* separates the two, and a name may have any character */
            key[i] = '?';
    uint32_t id = tare__intern_add(state->names, key, (size_t)length < sizeof key ? (size_t)length : sizeof key - 1);
    size_t before = state->row_room;
    if (id == TARE__INTERN_NONE ||
        !tare__array_fit(&state->rows, &state->row_room, (size_t)id + 1, sizeof *state->rows))
        return NULL;
    memset(state->rows + before, 0, (state->row_room - before) * sizeof *state->rows);
    return &state->rows[id];
}

/* A thread that waits is counted only if it is the main thread: others are idle workers. */
static bool is_active(const tare__python_thread *thread, tare__thread_state state)
{
    return thread->main || state == TARE__STATE_RUNNING || state == TARE__STATE_RUNNABLE ||
           state == TARE__STATE_GIL || state == TARE__STATE_DISK || state == TARE__STATE_UNKNOWN;
}

static tare__thread_state state_of(pid_t pid, const tare__python *python, const tare__python_thread *thread)
{
    tare__thread_now now = {0};
    tare__thread_reader *reader = thread->tid > 0 ? tare__thread_open(pid, thread->tid) : NULL;
    bool known = reader && tare__thread_read(reader, &now);
    tare__thread_close(reader);
    if (!known)
        return TARE__STATE_UNKNOWN;
    bool gil = now.state == TARE__STATE_LOCK && !thread->has_gil && tare__python_is_gil(python, now.lock);
    return gil ? TARE__STATE_GIL : now.state;
}

static void take_thread(top *state, const top_process *process, const tare__python_thread *thread)
{
    tare__thread_state now = state_of(process->pid, process->python, thread);
    if (thread->main && process->pid == state->pid) {
        state->states[now]++;
        state->main_samples++;
    }
    if (thread->torn || thread->n == 0 || !is_active(thread, now))
        return;
    state->samples++;
    state->samples_all++;
    state->sample++;
    for (uint32_t i = 0; i < thread->n; i++) {
        function_row *row = row_of(state, process->python, thread->frames[i].code);
        if (!row || row->sample == state->sample)
            continue;
        row->sample = state->sample;
        row->line = thread->frames[i].line;
        row->total++;
        row->own += i == 0;
        row->own_ns += i == 0 ? process->passed_ns : 0;
    }
}

static void take_process(top *state, top_process *process, uint64_t now_ns)
{
    const tare__python_thread *threads = NULL;
    uint32_t n = 0;
    tare__error error = {""};
    if (!process->python) {
        if (now_ns < process->try_ns)
            return;
        process->try_ns = now_ns + LIST_NS;
        int status = tare__python_open(process->pid, &process->python, &error);
        if (status != 0) {
            if (process->pid == state->pid) {
                snprintf(state->why, sizeof state->why, "%.255s", error.text);
                state->why_status = status;
            }
            return;
        }
        if (process->pid == state->pid)
            state->why[0] = '\0';
    }
    int status = tare__python_sample(process->python, &threads, &n, &error);
    if (status == TARE_E_BUSY)
        return;
    if (status != 0) {
        tare__python_close(process->python);
        process->python = NULL;
        return;
    }
    process->passed_ns = process->sampled_ns ? now_ns - process->sampled_ns : RATE_NS;
    process->sampled_ns = now_ns;
    for (uint32_t i = 0; i < n; i++)
        take_thread(state, process, &threads[i]);
}

/* ---- the table --------------------------------------------------------------------------------------------- */

static const function_row *sorted_rows; /* for the comparison below */

static int by_own(const void *left, const void *right)
{
    const function_row *a = &sorted_rows[*(const uint32_t *)left], *b = &sorted_rows[*(const uint32_t *)right];
    if (a->own != b->own)
        return a->own < b->own ? 1 : -1;
    if (a->total != b->total)
        return a->total < b->total ? 1 : -1;
    return a->own_ns != b->own_ns ? (a->own_ns < b->own_ns ? 1 : -1) : 0;
}

static void window(unsigned *rows, unsigned *columns)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *rows = known ? size.ws_row : 24;
    *columns = known ? size.ws_col : 80;
}

static void put_line(tare__text *out, const char *words, unsigned columns)
{
    char line[1200];
    tare__text_fit(line, sizeof line, words, columns);
    tare__text_format(out, "%s\n", line);
}

static void put_head(const top *state, unsigned columns, tare__text *out)
{
    char value[TARE__UNIT_BYTES];
    tare__text words = {0};
    tare__text_format(&words, "Process %d", (int)state->pid);
    size_t python = 0;
    for (size_t i = 0; i < state->process_count; i++)
        python += state->processes[i].python != NULL;
    if (python > 1)
        tare__text_format(&words, " and %zu more Python processes", python - 1);
    tare__text_string(&words, " · MainThread");
    bool any = false;
    for (unsigned i = 0; i < TARE__STATE_COUNT; i++) {
        double share = state->main_samples ? (double)state->states[i] / (double)state->main_samples : 0;
        if (share < 0.05)
            continue;
        tare__text_format(&words, "%s %s %s", any ? "," : "", tare__thread_state_words(i),
                          tare__unit_percent(value, share));
        any = true;
    }
    if (!any)
        tare__text_format(&words, ": %s", state->why[0] ? state->why : "no samples");
    put_line(out, words.data ? words.data : "", columns);
    tare__text_string(out, "\n");
    put_line(out, "  self  total  self time     function", columns);
    tare__text_free(&words);
}

static void put_row(const top *state, uint32_t id, unsigned columns, tare__text *out)
{
    const function_row *row = &state->rows[id];
    char own[TARE__UNIT_BYTES], total[TARE__UNIT_BYTES], self[TARE__UNIT_BYTES], name[1100], line[1200];
    double all = state->samples ? (double)state->samples : 1;
    size_t length = 0;
    const char *key = tare__intern_text(state->names, id, &length);
    const char *file = key ? memchr(key, '\n', length) : NULL;
    if (!file)
        return;
    const char *base = memrchr(file + 1, '/', length - (size_t)(file + 1 - key));
    snprintf(name, sizeof name, "%.*s (%.*s:%d)", (int)(file - key), key,
             (int)(key + length - (base ? base + 1 : file + 1)), base ? base + 1 : file + 1, (int)row->line);
    tare__unit_percent(own, (double)row->own / all);
    tare__unit_percent(total, (double)row->total / all);
    tare__unit_time(self, (double)row->own_ns);
    int shares = snprintf(line, sizeof line, "%6s %6s %10s     ", own, total, self);
    if (columns > (unsigned)shares)
        tare__text_fit(line + shares, sizeof line - (size_t)shares, name, columns - (unsigned)shares);
    put_line(out, line, columns);
}

static int show(top *state, bool terminal)
{
    unsigned rows, columns;
    uint32_t n = tare__intern_count(state->names), used = 0;
    uint32_t *order = malloc(((size_t)n + 1) * sizeof *order);
    tare__text out = {0};
    window(&rows, &columns);
    if (terminal)
        dprintf(STDOUT_FILENO, "\x1b[H\x1b[J"); /* not part of the text, whose control characters are escaped */
    put_head(state, columns, &out);
    for (uint32_t i = 0; order && i < n && i < state->row_room; i++)
        if (state->rows[i].total)
            order[used++] = i;
    sorted_rows = state->rows;
    if (used)
        qsort(order, used, sizeof *order, by_own);
    unsigned most = !terminal ? ROWS_MAX : rows > 4 ? rows - 4 : 1; /* below the head, above the cursor */
    for (uint32_t i = 0; i < used && i < most; i++)
        put_row(state, order[i], columns, &out);
    free(order);
    int status = tare__cli_print(&out);
    tare__text_free(&out);
    for (uint32_t i = 0; i < n && i < state->row_room; i++)
        state->rows[i].own = state->rows[i].total = 0;
    memset(state->states, 0, sizeof state->states);
    state->samples = state->main_samples = 0;
    return status;
}

/* ---- the command ------------------------------------------------------------------------------------------- */

static int watch(top *state)
{
    bool terminal = isatty(STDOUT_FILENO);
    uint64_t due = tare__monotonic_ns(), show_at = due + SHOW_NS, list_at = due;
    int status = TARE__EXIT_OK;
    while (!interrupted && status == TARE__EXIT_OK && (!state->tables || state->shown < state->tables)) {
        uint64_t now = tare__monotonic_ns();
        if (now >= list_at) {
            list_processes(state);
            list_at = now + LIST_NS;
            if (state->process_count == 0)
                break;
        }
        for (size_t i = 0; i < state->process_count; i++)
            take_process(state, &state->processes[i], now);
        if (now >= show_at) {
            if (state->why[0] && !state->samples_all)
                break; /* said by the caller */
            status = show(state, terminal);
            show_at = now + SHOW_NS;
            state->shown++;
        }
        due = due + RATE_NS > now ? due + RATE_NS : now + RATE_NS;
        struct timespec at = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
        while (!interrupted && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
            ;
    }
    return status;
}

static int take_top_option(void *context, int key, const char *argument, tare__error *error)
{
    top *state = context;
    return key == TOP_COUNT ? tare__cli_take_count("count", argument, 1, 1000000, &state->tables, error) : 0;
}

static int top_main(int argc, char **argv)
{
    static top state; /* large: not on the stack */
    tare__error error = {""};
    tare__cli_words words;
    int status = tare__cli_read(&tare__cli_top, argc, argv, &state, &words, &error);
    if (status == 0 && !words.help)
        status = tare__cli_read_pid(ME, &words, &state.pid, &error);
    if (status)
        return tare__cli_usage(ME, &error);
    if (words.help)
        return tare__cli_print_help(&tare__cli_top);
    if (kill(state.pid, 0) != 0 && errno == ESRCH) {
        tare__cli_say(ME, "no process %d", (int)state.pid);
        return TARE__EXIT_INPUT;
    }
    tare__sample_options options = {.root = "", .target = state.pid, .self = getpid(), .interval_ns = LIST_NS,
                                    .only_list = true};
    tare__sample_sink sink = {ignore_series, ignore_value, NULL};
    state.set = tare__sample_open(&options, &sink);
    state.names = tare__intern_new();
    if (!state.set || !state.names) {
        tare__cli_say(ME, "%s", tare_status_text(TARE_E_MEMORY));
        return TARE__EXIT_FAILED;
    }
    struct sigaction on_interrupt = {.sa_handler = interrupt};
    sigaction(SIGINT, &on_interrupt, NULL);
    sigaction(SIGTERM, &on_interrupt, NULL);
    status = watch(&state);
    bool unread = state.why[0] && state.samples_all == 0;
    if (unread)
        tare__cli_say(ME, "%s", state.why);
    else if (!state.shown && !interrupted && status == TARE__EXIT_OK) {
        tare__cli_say(ME, "process %d has ended", (int)state.pid);
        status = TARE__EXIT_INPUT;
    }
    for (size_t i = 0; i < state.process_count; i++)
        tare__python_close(state.processes[i].python);
    tare__sample_close(state.set);
    tare__intern_free(state.names);
    free(state.rows);
    if (status || !unread)
        return status;
    bool gone = state.why_status == TARE_E_SYSTEM || state.why_status == TARE_E_INPUT;
    return gone ? TARE__EXIT_INPUT : TARE__EXIT_FAILED;
}

static const tare__cli_option top_options[] = {
    {"count", 0, "N", "stop after N tables, one per second", TOP_COUNT},
};

const tare__cli_command tare__cli_top = {
    .name = "top",
    .summary = "Show the hot functions of a running Python program",
    .usage = "[options] PID",
    .details = "Updated every second until Ctrl-C. Counts the main thread, and other threads while\n"
               "they work. Exit status: 0; 1 it cannot be read (permission denied, or an unsupported\n"
               "Python); 2 invalid command line; 3 no such process, or no Python in it.\n",
    .examples = "  tare top 4120\n"
                "  tare top --count 5 4120 > hot.txt\n",
    .options = top_options,
    .option_count = TARE__COUNT_OF(top_options),
    .take = take_top_option,
    .main = top_main,
};
