/* cpu: CPU times of the machine and of each CPU (/proc/stat), load and runnable tasks (/proc/loadavg).
 * The set's thread owns it.
 * Must not know which process used the time. */
#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CPUS_MAX 512
/* The lines of the CPUs come first; the rest (interrupts) is not used and may be truncated. */
#define STAT_BYTES (CPUS_MAX * 128)

enum { COLUMNS = TARE__CPU_COLUMNS, FIGURES = 5 };
static const struct {
    tare__metric metric;
    int8_t columns[3]; /* their sum; -1: none */
} figures[FIGURES] = {
    {TARE__M_CPU_USER, {TARE__CPU_USER, TARE__CPU_NICE, -1}},
    {TARE__M_CPU_SYSTEM, {TARE__CPU_SYSTEM, TARE__CPU_IRQ, TARE__CPU_SOFTIRQ}},
    {TARE__M_CPU_IDLE, {TARE__CPU_IDLE, -1, -1}},
    {TARE__M_CPU_IOWAIT, {TARE__CPU_IOWAIT, -1, -1}},
    {TARE__M_CPU_STEAL, {TARE__CPU_STEAL, -1, -1}},
};

typedef struct cpu_line {
    bool known;
    tare__counter counters[FIGURES];
} cpu_line;

typedef struct cpu_part {
    int stat, loadavg;
    int64_t tick_ns;
    uint32_t load, runnable;
    cpu_line machine;
    cpu_line cpus[CPUS_MAX];
    char text[STAT_BYTES];
} cpu_part;

static void open_line(tare__sample_set *set, cpu_line *line, const tare__subject *subject)
{
    for (size_t i = 0; i < FIGURES; i++)
        line->counters[i].series = tare__sample_series_of(set, figures[i].metric, subject);
    line->known = true;
}

static void open_cpu(tare__sample_set *set, void *state)
{
    cpu_part *part = state;
    part->stat = part->loadavg = -1;
    long hz = sysconf(_SC_CLK_TCK);
    part->tick_ns = 1000000000 / (hz > 0 ? hz : 100);
    open_line(set, &part->machine, &(tare__subject){.kind = TARE__SUBJECT_SYSTEM});
    part->load = tare__machine_series(set, TARE__M_LOAD);
    part->runnable = tare__machine_series(set, TARE__M_RUNNABLE);
}

/* False: not a line of CPU times. */
static bool read_columns(tare__scan *line, int64_t tick_ns, int64_t columns[COLUMNS], int *n)
{
    *n = (int)tare__line_numbers(line, columns, COLUMNS);
    for (int i = 0; i < *n; i++)
        if (!tare__scan_times(columns[i], tick_ns, &columns[i]))
            return false;
    return *n >= (int)TARE__CPU_COLUMNS_MIN;
}

static void put_line(tare__sample_set *set, cpu_line *line, const int64_t columns[COLUMNS], int n)
{
    for (size_t i = 0; i < FIGURES; i++) {
        int64_t sum = 0;
        bool fits = figures[i].columns[0] < n;
        for (size_t j = 0; j < 3 && figures[i].columns[j] >= 0; j++)
            if (figures[i].columns[j] < n)
                fits &= !__builtin_add_overflow(sum, columns[figures[i].columns[j]], &sum);
        if (fits)
            tare__counter_hold(set, &line->counters[i], sum);
        else
            tare__sample_absent(set, line->counters[i].series, "/proc/stat has no such value");
    }
}

/* "cpu" is the machine, "cpu7" a CPU; NULL: another line, or a CPU beyond the limit. */
static cpu_line *line_of(tare__sample_set *set, cpu_part *part, tare__scan word)
{
    int64_t number;
    if (!tare__scan_skip(&word, "cpu"))
        return NULL;
    if (word.at == word.end)
        return &part->machine;
    if (!tare__scan_number(&word, &number) || word.at != word.end || number < 0 || number >= CPUS_MAX)
        return NULL;
    cpu_line *line = &part->cpus[number];
    if (!line->known)
        open_line(set, line, &(tare__subject){.kind = TARE__SUBJECT_CPU, .key = (uint64_t)number});
    return line;
}

static void tick_times(tare__sample_set *set, cpu_part *part, const char *root)
{
    int got = tare__sample_pread(root, "/proc/stat", &part->stat, part->text, sizeof part->text);
    tare__scan text = tare__scan_of(part->text, got), line;
    bool seen = false;
    while (tare__scan_line(&text, &line)) {
        tare__scan word = tare__scan_word(&line);
        if (word.end - word.at < 3 || memcmp(word.at, "cpu", 3) != 0)
            break;
        int64_t columns[COLUMNS];
        int n;
        if (!read_columns(&line, part->tick_ns, columns, &n))
            continue;
        cpu_line *of = line_of(set, part, word);
        if (of)
            put_line(set, of, columns, n);
        seen |= of == &part->machine;
    }
    char why[256];
    if (!seen)
        for (size_t i = 0; i < FIGURES; i++)
            tare__sample_absent(set, part->machine.counters[i].series,
                                tare__machine_why(got < 0 ? got : 0, "/proc/stat", why));
}

/* "0.52 0.58 0.59 3/602 81": the load of one minute, and runnable tasks of all tasks. */
static bool read_load(tare__scan text, int64_t *load, int64_t *runnable)
{
    int64_t whole, part;
    if (!tare__scan_number(&text, &whole) || !tare__scan_skip(&text, ".") || !tare__scan_number(&text, &part) ||
        part > 99 || !tare__scan_times(whole, 1000, load))
        return false;
    *load += part * 10;
    tare__scan_word(&text);
    tare__scan_word(&text);
    return tare__scan_number(&text, runnable) && tare__scan_skip(&text, "/");
}

static void tick_load(tare__sample_set *set, cpu_part *part, const char *root)
{
    char text[128], why[256];
    int64_t load, runnable;
    int got = tare__sample_pread(root, "/proc/loadavg", &part->loadavg, text, sizeof text);
    if (read_load(tare__scan_of(text, got), &load, &runnable)) {
        tare__sample_put(set, part->load, load);
        tare__sample_put(set, part->runnable, runnable);
        return;
    }
    tare__machine_why(got < 0 ? got : 0, "/proc/loadavg", why);
    tare__sample_absent(set, part->load, why);
    tare__sample_absent(set, part->runnable, why);
}

static void tick_cpu(tare__sample_set *set, void *state, uint64_t now_ns)
{
    (void)now_ns;
    const char *root = tare__sample_options_of(set)->root;
    tick_times(set, state, root);
    tick_load(set, state, root);
}

static void close_cpu(void *state)
{
    cpu_part *part = state;
    tare__machine_close(&part->stat);
    tare__machine_close(&part->loadavg);
}

static void doctor_cpu(const char *root, tare__sample_check_sink *sink, void *context)
{
    char *text = malloc(STAT_BYTES), why[256];
    if (!text)
        return;
    int got = tare__sample_read(root, "/proc/stat", text, STAT_BYTES), cpus = 0;
    tare__scan rest = tare__scan_of(text, got), line;
    while (tare__scan_line(&rest, &line) && tare__scan_skip(&line, "cpu"))
        cpus += line.at < line.end && !tare__scan_blank(*line.at);
    if (cpus > 0)
        tare__machine_check(sink, context, "system", "/proc/stat", TARE__SAMPLE_WORKS, "", "CPU times of %d CPU%s",
                            cpus, cpus == 1 ? "" : "s");
    else
        tare__machine_check(sink, context, "system", "/proc/stat", TARE__SAMPLE_FAILS,
                            got == -ENOENT ? "mount -t proc proc /proc" : "", "%s",
                            tare__machine_why(got < 0 ? got : 0, "/proc/stat", why));
    free(text);
}

const tare__sampler tare__part_cpu = {
    .name = "cpu",
    .every = 1,
    .state_bytes = sizeof(cpu_part),
    .open = open_cpu,
    .tick = tick_cpu,
    .close = close_cpu,
    .doctor = doctor_cpu,
};
