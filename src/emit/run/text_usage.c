/* text_usage: resource usage of the run, a line each, with a graph over time if there is space.
 * Owned by the calling thread.
 * Must not know how anything was measured. */
#include "parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COURSE_COLUMNS 16u
#define COURSE_FROM    50u /* column, on a page of 80; a wider one has more columns for the text */
#define COURSES_MAX    3u
#define TOLD_BYTES     1048576.0 /* less traffic than this is not significant */

/* ---- a graph over time ------------------------------------------------------------------------------ */
typedef struct course {
    double bins[COURSE_COLUMNS]; /* means; NaN if unknown */
    bool any;
    double top;
} course;

static void add_point(const tare__metric_point *point, double run_ns, double sums[], double weights[])
{
    double each = run_ns / COURSE_COLUMNS;
    double from = point->at_ns / each, to = (point->at_ns + point->lasts_ns) / each;
    if (!isfinite(from) || !isfinite(to) || !isfinite(point->mean) || to < 0)
        return;
    for (unsigned i = from > 0 ? (unsigned)fmin(from, COURSE_COLUMNS) : 0; i < COURSE_COLUMNS && i <= to; i++) {
        double share = fmin(to, i + 1.0) - fmax(from, i);
        share = share > 0 ? share : to == from ? 1e-9 : 0; /* an instant counts if nothing else is known */
        sums[i] += share * point->mean;
        weights[i] += share;
    }
}

/* Adds a metric of a subject, over the time of the run, to the graph: user and system time are shown as one. */
static void add_row(course *course, const tare__metric_row *row, double run_ns)
{
    double sums[COURSE_COLUMNS] = {0}, weights[COURSE_COLUMNS] = {0};
    if (!row || row->n_points < 2 || !(run_ns > 0))
        return;
    for (size_t i = 0; i < row->n_points; i++)
        add_point(&row->points[i], run_ns, sums, weights);
    for (unsigned i = 0; i < COURSE_COLUMNS; i++) {
        double mean = weights[i] > 0 ? sums[i] / weights[i] : NAN;
        course->bins[i] = course->any ? course->bins[i] + mean : mean;
    }
    course->any = true;
}

static void put_course(tare__page *page, const course *course)
{
    tare__page_style_on(page, TARE__PAGE_BAR);
    for (unsigned i = 0; i < COURSE_COLUMNS; i++) {
        double share = course->bins[i] / course->top;
        tare__text_string(page->out, isnan(share) ? " " : tare__page_spark(share));
    }
    tare__page_style_off(page);
}

/* ---- a line --------------------------------------------------------------------------------------- */
typedef struct used {
    const char *label;
    char words[256]; /* "": nothing to show */
    struct {
        tare__metric metric;
        tare__subject_kind subject;
    } courses[COURSES_MAX]; /* added up; subject 0: unused */
    char top[48]; /* label of its maximum */
} used;

static course course_of(const tare__analysis *analysis, const used *used)
{
    course sum = {.any = false};
    for (unsigned i = 0; i < COURSES_MAX && used->courses[i].subject; i++)
        add_row(&sum, tare__metric_row_of(analysis, used->courses[i].metric, used->courses[i].subject, UINT64_MAX),
                analysis->run.elapsed_ns);
    for (unsigned i = 0; i < COURSE_COLUMNS && sum.any; i++)
        sum.top = fmax(sum.top, sum.bins[i]); /* ignores NaN */
    return sum;
}

static void put_used(tare__page *page, const tare__analysis *analysis, const used *used)
{
    unsigned from = COURSE_FROM + (page->options->width > 80 ? (page->options->width - 80) / 4 : 0);
    size_t columns = TARE__PAGE_LABEL + tare__text_columns(used->words, strlen(used->words));
    size_t end = from + COURSE_COLUMNS + 1 + tare__text_columns(used->top, strlen(used->top));
    if (!used->words[0])
        return;
    tare__text_format(page->out, "%s", used->label);
    tare__text_pad_to(page->out, TARE__PAGE_LABEL);
    tare__page_sentence(page, TARE__PAGE_LABEL, used->words);
    course course = course_of(analysis, used);
    if (course.top > 0 && columns < from && end <= page->options->width) {
        tare__text_pad_to(page->out, from);
        put_course(page, &course);
        tare__page_style_on(page, TARE__PAGE_FAINT);
        tare__text_format(page->out, " %s", used->top);
        tare__page_style_off(page);
    }
    tare__page_line_end(page);
}

static void add_words(used *used, const char *format, ...) TARE__PRINTF(2, 3);

static void add_words(used *used, const char *format, ...)
{
    size_t length = strlen(used->words);
    va_list args;
    va_start(args, format);
    vsnprintf(used->words + length, sizeof used->words - length, format, args);
    va_end(args);
}

/* ---- the lines --------------------------------------------------------------------------------------- */
typedef void tell(used *used, const tare__usage_table *usage);

static void tell_cpu(used *used, const tare__usage_table *usage)
{
    char time[TARE__UNIT_BYTES], share[TARE__UNIT_BYTES], cores[TARE__UNIT_BYTES], most[TARE__UNIT_BYTES];
    if (!isfinite(usage->cpu_seconds))
        return;
    add_words(used, "%s", tare__unit_time(time, usage->cpu_seconds * 1e9));
    if (isfinite(usage->cores_mean) && usage->cores_allowed > 0 && usage->cores_mean > usage->cores_allowed)
        add_words(used, " · all of %s core%s", tare__unit_count(cores, usage->cores_allowed),
                  usage->cores_allowed == 1 ? "" : "s");
    else if (isfinite(usage->cores_mean) && usage->cores_allowed > 0)
        add_words(used, " · %s of %s core%s", tare__unit_percent(share, usage->cores_mean / usage->cores_allowed),
                  tare__unit_count(cores, usage->cores_allowed), usage->cores_allowed == 1 ? "" : "s");
    if (isfinite(usage->cores_max))
        snprintf(used->top, sizeof used->top, "max %s", tare__unit_count(most, usage->cores_max));
}

static void tell_memory(used *used, const tare__usage_table *usage)
{
    char peak[TARE__UNIT_BYTES], share[TARE__UNIT_BYTES], allowed[TARE__UNIT_BYTES], most[TARE__UNIT_BYTES];
    char name[64];
    if (!isfinite(usage->rss_peak_bytes))
        return;
    /* A job of several processes needs their total; the largest process is stated as the place to start. */
    bool several = usage->processes_max > 1 && usage->tree_rss_max_bytes > 1.05 * usage->rss_peak_bytes;
    if (several)
        add_words(used, "%s in all processes · largest ", tare__unit_bytes(most, usage->tree_rss_max_bytes));
    add_words(used, "%s%s", usage->rss_peak_at_least ? "at least " : "", tare__unit_bytes(peak, usage->rss_peak_bytes));
    if (usage->rss_peak_process && usage->processes_max > 1) {
        tare__text_fit(name, sizeof name, usage->rss_peak_process, 12);
        add_words(used, " (%s)", name);
    }
    if (usage->memory_allowed_bytes > 0)
        add_words(used, " · %s of %s",
                  tare__unit_percent(share, usage->rss_peak_bytes / usage->memory_allowed_bytes),
                  tare__unit_bytes(allowed, usage->memory_allowed_bytes));
    if (isfinite(usage->tree_rss_max_bytes))
        snprintf(used->top, sizeof used->top, "max %s", tare__unit_bytes(most, usage->tree_rss_max_bytes));
}

/* Requested bytes, which may come from a cache, are shown only if they differ much from the bytes on disk. */
static void tell_disk(used *used, const tare__usage_table *usage)
{
    char read[TARE__UNIT_BYTES], wrote[TARE__UNIT_BYTES];
    double requested = usage->io_read_bytes + usage->io_write_bytes;
    double really = usage->disk_read_bytes + usage->disk_write_bytes;
    if (isfinite(really))
        add_words(used, "read %s, wrote %s", tare__unit_bytes(read, usage->disk_read_bytes),
                  tare__unit_bytes(wrote, usage->disk_write_bytes));
    if (requested >= TOLD_BYTES && !(requested < 2 * really))
        add_words(used, "%srequested %s and %s", isfinite(really) ? "; " : "",
                  tare__unit_bytes(read, usage->io_read_bytes), tare__unit_bytes(wrote, usage->io_write_bytes));
}

static void tell_network(used *used, const tare__usage_table *usage)
{
    char received[TARE__UNIT_BYTES], sent[TARE__UNIT_BYTES];
    if (usage->net_received_bytes + usage->net_sent_bytes >= TOLD_BYTES)
        add_words(used, "received %s, sent %s (whole machine)",
                  tare__unit_bytes(received, usage->net_received_bytes),
                  tare__unit_bytes(sent, usage->net_sent_bytes));
}

static void tell_tasks(used *used, const tare__usage_table *usage)
{
    char processes[TARE__COUNTED_BYTES], threads[TARE__COUNTED_BYTES], forced[TARE__UNIT_BYTES];
    if (!isfinite(usage->threads_max) || !isfinite(usage->processes_max))
        return;
    add_words(used, "%s, %s at once", tare__unit_counted(processes, usage->processes_max, "process", "processes"),
              tare__unit_counted(threads, usage->threads_max, "thread", NULL));
    if (isfinite(usage->switches_voluntary) && isfinite(usage->switches_forced))
        add_words(used, "; %s, %s preempted", tare__unit_counted(threads, usage->switches_voluntary, "wait", NULL),
                  tare__unit_count(forced, usage->switches_forced));
    if (usage->faults_major > 0)
        add_words(used, ", %s", tare__unit_counted(threads, usage->faults_major, "major fault", NULL));
}

static void tell_gpu(used *used, const tare__usage_table *usage)
{
    char busy[TARE__UNIT_BYTES], memory[TARE__UNIT_BYTES];
    if (isfinite(usage->gpu_busy_mean))
        add_words(used, "%s busy", tare__unit_percent(busy, usage->gpu_busy_mean));
    if (isfinite(usage->gpu_memory_max_bytes))
        add_words(used, "%smemory up to %s", used->words[0] ? " · " : "",
                  tare__unit_bytes(memory, usage->gpu_memory_max_bytes));
}

static void tell_energy(used *used, const tare__usage_table *usage)
{
    char joules[TARE__UNIT_BYTES], grams[TARE__UNIT_BYTES], intensity[TARE__UNIT_BYTES];
    if (!isfinite(usage->energy_joules))
        return;
    add_words(used, "%s J", tare__unit_count(joules, usage->energy_joules));
    if (isfinite(usage->carbon_grams))
        add_words(used, " · %s g CO2 at %s g/kWh", tare__unit_count(grams, usage->carbon_grams),
                  tare__unit_count(intensity, usage->carbon_intensity));
}

static const struct {
    used used;
    tell *tell;
} things[] = {
    {{.label = "CPU",
      .courses = {{TARE__M_CPU_USER, TARE__SUBJECT_TREE}, {TARE__M_CPU_SYSTEM, TARE__SUBJECT_TREE}}},
     tell_cpu},
    {{.label = "Memory", .courses = {{TARE__M_RSS, TARE__SUBJECT_TREE}}}, tell_memory},
    {{.label = "Disk",
      .courses = {{TARE__M_DISK_READ, TARE__SUBJECT_TREE}, {TARE__M_DISK_WRITE, TARE__SUBJECT_TREE}}},
     tell_disk},
    {{.label = "Network"}, tell_network},
    {{.label = "GPU", .courses = {{TARE__M_GPU_BUSY, TARE__SUBJECT_GPU}}}, tell_gpu},
    {{.label = "Energy"}, tell_energy},
    {{.label = "Tasks", .courses = {{TARE__M_THREADS_RUNNING, TARE__SUBJECT_TREE}}}, tell_tasks},
};

/* ---- phases --------------------------------------------------------------------------------------- */
#define PART_TOLD 0.05 /* of startup: smaller parts of it are not named */

static void add_startup(used *used, const tare__phase_table *phases)
{
    const struct {
        const char *name;
        double ns;
    } parts[] = {{"interpreter", phases->interpreter_ns},
                 {"imports", phases->imports_ns},
                 {"preparation", phases->preparation_ns},
                 {"warm-up", phases->warm_up_ns}};
    char time[TARE__UNIT_BYTES];
    double startup = phases->startup.to_ns - phases->startup.from_ns;
    bool any = false;
    add_words(used, "startup %s", tare__unit_time(time, startup));
    for (size_t i = 0; i < TARE__COUNT_OF(parts); i++)
        if (parts[i].ns > PART_TOLD * startup) {
            add_words(used, "%s%s %s", any ? ", " : " (", parts[i].name, tare__unit_time(time, parts[i].ns));
            any = true;
        }
    add_words(used, "%s, ", any ? ")" : "");
}

static void put_phases(tare__page *page, const tare__analysis *analysis)
{
    const tare__phase_table *phases = &analysis->phases;
    used used = {.label = "Phases"};
    char time[TARE__UNIT_BYTES];
    bool startup = phases->startup.to_ns > phases->startup.from_ns;
    bool shutdown = phases->shutdown.to_ns > phases->shutdown.from_ns;
    if (!phases->steady.how || (!startup && !shutdown))
        return;
    if (startup)
        add_startup(&used, phases);
    add_words(&used, "steady state %s", tare__unit_time(time, phases->steady.to_ns - phases->steady.from_ns));
    if (shutdown)
        add_words(&used, ", shutdown %s", tare__unit_time(time, phases->shutdown.to_ns - phases->shutdown.from_ns));
    put_used(page, analysis, &used);
}

/* The first part of a reason states the cause; the rest, on how to fix it, is for --all and `tare doctor`. */
static int shortened(const char *why)
{
    const char *more = strstr(why, ": "), *bracket = strstr(why, " (");
    more = !more || (bracket && bracket < more) ? bracket : more;
    return more ? (int)(more - why) : (int)strlen(why);
}

/* ---- absent metrics, in one sentence; those with the same reason are grouped ----------------------- */
static void put_absent(tare__page *page, const tare__usage_table *usage)
{
    const struct {
        const char *what, *why;
    } absent[] = {{"CPU", usage->absent_cpu},
                  {"memory", usage->absent_memory},
                  {"disk", usage->absent_disk},
                  {"GPU", usage->absent_gpu},
                  {"energy", usage->absent_energy}};
    bool reported[TARE__COUNT_OF(absent)] = {false};
    tare__text words = {0};
    for (size_t i = 0; i < TARE__COUNT_OF(absent); i++) {
        if (reported[i] || !absent[i].why)
            continue;
        tare__text_format(&words, "%s%s", words.length ? "; " : "", absent[i].what);
        for (size_t j = i + 1; j < TARE__COUNT_OF(absent); j++) {
            if (absent[j].why && strcmp(absent[i].why, absent[j].why) == 0) {
                reported[j] = true;
                tare__text_format(&words, ", %s", absent[j].what);
            }
        }
        int length = page->options->all ? (int)strlen(absent[i].why) : shortened(absent[i].why);
        tare__text_format(&words, ": %.*s", length, absent[i].why);
    }
    if (words.length > 0 && !words.failed) {
        tare__page_style_on(page, TARE__PAGE_FAINT);
        tare__text_string(page->out, "n/a");
        tare__text_pad_to(page->out, TARE__PAGE_LABEL);
        tare__page_sentence_in(page, TARE__PAGE_LABEL, words.data, page->options->all ? TARE__PAGE_ENDLESS : 2);
        tare__page_style_off(page);
        tare__page_line_end(page);
    }
    tare__text_end(&words, page->out);
}

void tare__part_usage(tare__page *page, const tare__analysis *analysis)
{
    tare__text *whole = page->out, lines = {0};
    page->out = &lines;
    put_phases(page, analysis);
    for (size_t i = 0; i < TARE__COUNT_OF(things); i++) {
        used used = things[i].used;
        things[i].tell(&used, &analysis->usage);
        put_used(page, analysis, &used);
    }
    put_absent(page, &analysis->usage);
    page->out = whole;
    if (lines.length > 0) {
        tare__page_heading(page, "Resource usage");
        tare__text_append(page->out, lines.data, lines.length);
    }
    tare__text_end(&lines, page->out);
}
