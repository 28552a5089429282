/* process: the sampler of processes: their usage, the intervals of reading it, and their end.
 * One thread: the set's. Expensive values have longer intervals and separate parts of the budget.
 * Must not know how samples are stored or shown. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "watch.h"

#define THOROUGH_NS 1000000000u   /* interval for idle processes, open files, children of all threads */
#define THOROUGH_SHARE 0.3        /* of the budget */
#define PSS_FIRST_NS 1000000000u  /* not while it starts */
#define PSS_NS 5000000000u
#define PSS_SHARE 0.2             /* of the budget */
#define SETTLED_SAMPLES 2u          /* a process seen for the second time gets all its series */

/* In the order of the enumeration in watch.h. */
static const struct {
    tare__metric metric;
    bool at_once; /* reported even for a process that is seen only once */
} values[TARE__W_COUNT] = {
    [TARE__W_USER] = {TARE__M_CPU_USER, true},
    [TARE__W_SYSTEM] = {TARE__M_CPU_SYSTEM, true},
    [TARE__W_IO_READ] = {TARE__M_IO_READ, false},
    [TARE__W_IO_WRITE] = {TARE__M_IO_WRITE, false},
    [TARE__W_DISK_READ] = {TARE__M_DISK_READ, false},
    [TARE__W_DISK_WRITE] = {TARE__M_DISK_WRITE, false},
    [TARE__W_RSS] = {TARE__M_RSS, true},
    [TARE__W_ANON] = {TARE__M_RSS_ANON, false},
    [TARE__W_THREADS] = {TARE__M_THREADS, false},
    [TARE__W_RUNNING] = {TARE__M_THREADS_RUNNING, false},
    [TARE__W_DISK_WAIT] = {TARE__M_THREADS_DISK_WAIT, false},
    [TARE__W_RSS_PEAK] = {TARE__M_RSS_PEAK, true},
    [TARE__W_FILE] = {TARE__M_RSS_FILE, false},
    [TARE__W_SHARED] = {TARE__M_RSS_SHARED, false},
    [TARE__W_SWAPPED] = {TARE__M_SWAPPED, false},
    [TARE__W_FAULTS_MINOR] = {TARE__M_FAULTS_MINOR, false},
    [TARE__W_FAULTS_MAJOR] = {TARE__M_FAULTS_MAJOR, false},
    [TARE__W_VOLUNTARY] = {TARE__M_SWITCHES_VOLUNTARY, false},
    [TARE__W_FORCED] = {TARE__M_SWITCHES_FORCED, false},
    [TARE__W_FILES] = {TARE__M_FILES, false},
    [TARE__W_PSS] = {TARE__M_PSS, false},
};

typedef struct process_state {
    tare__watch watch;
    tare__thread_pace threads;
    uint64_t thorough_ns; /* when the next is due */
    uint64_t pss_ns;
    bool sizes_count_files; /* the size of /proc/PID/fd is the number of descriptors (Linux 6.2) */
    tare__totals totals;
    uint32_t own_series[3]; /* of this process */
    int own_fd;
} process_state;

/* ---- one process ------------------------------------------------------------------------------------------- */

/* The exact sum divided as the kernel does (cputime_adjust): in the ratio of its ticks, and neither part ever
 * decreases. */
static void split_cpu(tare__watched *process)
{
    int64_t *user = &process->value[TARE__W_USER], *system = &process->value[TARE__W_SYSTEM];
    const tare__proc_stat *stat = &process->stat;
    if (process->cpu_ns == 0) { /* for a zombie only the coarser ticks are available */
        int64_t ticks_user = tare__proc_ticks_ns(stat->user), ticks_system = tare__proc_ticks_ns(stat->system);
        *user = ticks_user > *user ? ticks_user : *user;
        *system = ticks_system > *system ? ticks_system : *system;
        return;
    }
    int64_t total = (int64_t)process->cpu_ns, ticks = tare__watch_add(stat->user, stat->system);
    int64_t before_user = *user == TARE__NO_VALUE ? 0 : *user, before_system = *user == TARE__NO_VALUE ? 0 : *system;
    if (total < tare__watch_add(before_user, before_system))
        total = tare__watch_add(before_user, before_system);
    int64_t now_system = ticks > 0 ? (int64_t)((double)total * (double)stat->system / (double)ticks) : 0;
    if (now_system < before_system)
        now_system = before_system;
    if (total - now_system < before_user)
        now_system = total - before_user;
    *system = now_system;
    *user = total - now_system;
}

static void take_stat(tare__watched *process)
{
    const tare__proc_stat *stat = &process->stat;
    split_cpu(process);
    process->value[TARE__W_FAULTS_MINOR] = stat->faults_minor;
    process->value[TARE__W_FAULTS_MAJOR] = stat->faults_major;
    process->value[TARE__W_THREADS] = stat->threads > process->own_threads ? stat->threads - process->own_threads : 1;
    process->many_threads = process->many_threads || stat->threads > 1;
    if (!process->many_threads) {
        process->value[TARE__W_RUNNING] = stat->state == 'R';
        process->value[TARE__W_DISK_WAIT] = stat->state == 'D';
    }
}

static void take_status(tare__sample_set *set, tare__watch *watch, tare__watched *process)
{
    char text[4096];
    tare__proc_status status;
    int got = tare__watch_read(watch, process->pid, "status", &process->fd_status, text, sizeof text);
    process->unread = process->unread || tare__sample_failed_here(got);
    if (got <= 0)
        return;
    tare__proc_status_parse(text, &status);
    int64_t *value = process->value;
    if (status.rss == TARE__NO_VALUE) /* between its exit and its zombie state, or a kernel thread */
        return;
    value[TARE__W_RSS] = status.rss;
    value[TARE__W_ANON] = status.anon;
    value[TARE__W_FILE] = status.file;
    value[TARE__W_SHARED] = status.shared;
    value[TARE__W_SWAPPED] = status.swapped;
    if (status.rss_peak > value[TARE__W_RSS_PEAK]) /* it is reset by exec */
        value[TARE__W_RSS_PEAK] = status.rss_peak;
    if (!process->many_threads) {
        value[TARE__W_VOLUNTARY] = status.switches_voluntary;
        value[TARE__W_FORCED] = status.switches_forced;
    }
    size_t n;
    tare__sample_process_list(set, &n)[process->listed].rss_peak =
        value[TARE__W_RSS_PEAK] == TARE__NO_VALUE ? -1 : value[TARE__W_RSS_PEAK];
}

/* The kernel adds the bytes of each child that a process waits for, and of each thread that ended, to its own. With
 * one thread, all of this is known exactly. With several threads, children's bytes are known as far as the children
 * were seen (totals.c). */
static void take_inherited(tare__watch *watch, tare__watched *process, const tare__proc_io *io)
{
    char text[1024], path[64];
    tare__proc_io own;
    process->inherits_exactly = false;
    if (process->many_threads || process->stat.waited_faults == 0)
        return;
    snprintf(path, sizeof path, "/proc/%d/task/%d/io", (int)process->pid, (int)process->pid);
    int got = tare__sample_read(watch->root, path, text, sizeof text);
    process->unread = process->unread || tare__sample_failed_here(got);
    if (got <= 0 || !tare__proc_io_parse(text, &own))
        return;
    int64_t *inherited = process->inherited;
    inherited[TARE__W_IO_READ] = io->read - own.read;
    inherited[TARE__W_IO_WRITE] = io->write - own.write;
    inherited[TARE__W_DISK_READ] = io->disk_read - own.disk_read;
    inherited[TARE__W_DISK_WRITE] = io->disk_write - own.disk_write;
    process->inherits_exactly = true;
}

static void take_io(tare__watch *watch, tare__watched *process)
{
    char text[1024];
    tare__proc_io io;
    int got = tare__watch_read(watch, process->pid, "io", &process->fd_io, text, sizeof text);
    process->unread = process->unread || (tare__sample_failed_here(got) && !process->ended);
    if (got < 0 && (process->ended || process->unread))
        return; /* the last value is kept */
    process->io_failure = got < 0 ? -got : 0;
    if (got <= 0 || !tare__proc_io_parse(text, &io))
        return;
    process->value[TARE__W_IO_READ] = io.read;
    process->value[TARE__W_IO_WRITE] = io.write;
    process->value[TARE__W_DISK_READ] = io.disk_read;
    process->value[TARE__W_DISK_WRITE] = io.disk_write;
    take_inherited(watch, process, &io);
}

static void take_files(const process_state *state, tare__watched *process)
{
    char path[4200];
    struct stat about;
    snprintf(path, sizeof path, "%s/proc/%d/fd", state->watch.root, (int)process->pid);
    process->files_failure = 0;
    if (state->sizes_count_files) {
        /* Its size is readable by everyone; permission to read its content is not checked here. */
        if (stat(path, &about) == 0)
            process->value[TARE__W_FILES] = about.st_size;
        else
            process->files_failure = errno;
        return;
    }
    DIR *folder = opendir(path);
    if (!folder) {
        process->files_failure = errno;
        return;
    }
    int64_t n = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(folder);
    process->value[TARE__W_FILES] = n;
}

static void take_pss(tare__watch *watch, tare__watched *process)
{
    char text[4096], path[64];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)process->pid);
    int got = tare__sample_read(watch->root, path, text, sizeof text);
    process->pss_failure = got < 0 ? -got : 0;
    process->value[TARE__W_PSS] = got > 0 ? tare__proc_pss_parse(text) : TARE__NO_VALUE;
}

/* What it adds to the tree: its own usage, and that of the children it waited for. /proc/PID/io already includes
 * these. */
static void take_lasting(tare__watched *process)
{
    int64_t now[TARE__W_LASTING];
    for (int i = 0; i < TARE__W_LASTING; i++)
        now[i] = process->value[i] == TARE__NO_VALUE ? 0 : process->value[i];
    int64_t waited[2] = {tare__proc_ticks_ns(process->stat.waited_user),
                         tare__proc_ticks_ns(process->stat.waited_system)};
    for (int i = 0; i < TARE__W_LASTING; i++) {
        if (i < 2)
            now[i] = tare__watch_add(now[i], waited[i]);
        int64_t grew = i < 2 ? waited[i] - process->waited_cpu[i] : now[i] - process->lasting[i];
        process->waited[i] = process->times_seen > 1 ? grew : 0;
        process->lasting[i] = now[i];
    }
    process->waited_cpu[0] = waited[0];
    process->waited_cpu[1] = waited[1];
}

static void read_process(tare__sample_set *set, process_state *state, tare__watched *process)
{
    memset(process->waited, 0, sizeof process->waited);
    if (process->gone || process->idle || process->unread)
        return;
    take_stat(process);
    if (!process->ended)
        take_status(set, &state->watch, process);
    take_io(&state->watch, process);
    if (!process->unread)
        take_lasting(process);
}

tare__metric tare__watch_metric(int which)
{
    return values[which].metric;
}

/* ---- series of a process ------------------------------------------------------------------------------------- */

const char *tare__watch_reason(const tare__watched *process, int which, char out[256])
{
    char path[64];
    if (which >= TARE__W_IO_READ && which <= TARE__W_DISK_WRITE && process->io_failure) {
        snprintf(path, sizeof path, "/proc/%d/io", (int)process->pid);
        return tare__sample_why(process->io_failure, path, out);
    }
    if (which == TARE__W_PSS && process->pss_failure) {
        snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)process->pid);
        return tare__sample_why(process->pss_failure, path, out);
    }
    if (which == TARE__W_FILES && process->files_failure) {
        snprintf(path, sizeof path, "/proc/%d/fd", (int)process->pid);
        return tare__sample_why(process->files_failure, path, out);
    }
    return NULL;
}

/* Without the part of other processes; never decreases. */
static int64_t own_value(tare__watched *process, int which)
{
    int64_t own = process->value[which];
    if (which < TARE__W_IO_READ || which > TARE__W_DISK_WRITE)
        return own;
    if (process->inherited[which] > 0)
        own -= process->inherited[which];
    if (own > process->told_own[which])
        process->told_own[which] = own;
    return process->told_own[which];
}

static void put_value(tare__sample_set *set, tare__watched *process, int which)
{
    char words[256];
    const char *reason = tare__watch_reason(process, which, words);
    if (process->value[which] == TARE__NO_VALUE && !reason)
        return;
    if (!process->series[which]) {
        tare__subject subject = {TARE__SUBJECT_PROCESS, (uint64_t)process->pid, process->start_time,
                                 process->stat.name};
        process->series[which] = tare__sample_series_of(set, values[which].metric, &subject);
    }
    if (reason)
        tare__sample_absent(set, process->series[which], reason);
    else
        tare__sample_put(set, process->series[which], own_value(process, which));
}

/* It called exec: its series get the new name. */
static void rename_series(tare__sample_set *set, tare__watched *process)
{
    if (strcmp(process->told_name, process->stat.name) == 0)
        return;
    tare__subject subject = {TARE__SUBJECT_PROCESS, (uint64_t)process->pid, process->start_time, process->stat.name};
    for (int i = 0; i < TARE__W_COUNT; i++)
        if (process->series[i])
            tare__sample_series_of(set, values[i].metric, &subject);
    strcpy(process->told_name, process->stat.name);
}

static void end_series(tare__sample_set *set, tare__watched *process)
{
    for (int i = 0; i < TARE__W_COUNT; i++)
        tare__sample_absent(set, process->series[i], "ended");
    tare__threads_end(set, process);
    process->told_end = true;
}

static void put_process(tare__sample_set *set, process_state *state, tare__watched *process, bool files, bool pss)
{
    if (process->told_end || process->unread)
        return;
    bool settled = process->times_seen >= SETTLED_SAMPLES || process->pid == state->watch.target;
    if (!process->gone) {
        rename_series(set, process);
        for (int i = 0; i < TARE__W_ALWAYS; i++)
            if ((settled || values[i].at_once) && !(process->ended && i >= TARE__W_LASTING))
                put_value(set, process, i);
        if (files && settled && !process->ended)
            put_value(set, process, TARE__W_FILES);
        if (pss && settled && !process->ended)
            put_value(set, process, TARE__W_PSS);
    }
    if (process->ended)
        end_series(set, process);
}

/* ---- this process itself -------------------------------------------------------------------------------------- */

static void put_own(tare__sample_set *set, process_state *state)
{
    static const tare__metric metrics[] = {TARE__M_CPU_USER, TARE__M_CPU_SYSTEM, TARE__M_RSS};
    char text[1024];
    tare__proc_stat stat;
    if (state->watch.self <= 0 ||
        tare__watch_read(&state->watch, state->watch.self, "stat", &state->own_fd, text, sizeof text) <= 0 ||
        !tare__proc_stat_parse(text, &stat))
        return;
    int64_t own[] = {tare__proc_ticks_ns(stat.user), tare__proc_ticks_ns(stat.system),
                     stat.rss_pages * sysconf(_SC_PAGESIZE)};
    for (size_t i = 0; i < TARE__COUNT_OF(metrics); i++) {
        if (!state->own_series[i])
            state->own_series[i] =
                tare__sample_series_of(set, metrics[i], &(tare__subject){.kind = TARE__SUBJECT_TARE});
        tare__sample_put(set, state->own_series[i], own[i]);
    }
}

/* ---- ticks ------------------------------------------------------------------------------------------------- */

static bool take_all_pss(tare__sample_set *set, process_state *state, uint64_t now_ns)
{
    if (state->pss_ns == 0)
        state->pss_ns = now_ns + PSS_FIRST_NS;
    if (now_ns < state->pss_ns)
        return false;
    uint64_t before = tare__sample_cost_clock(set);
    for (size_t i = 0; i < state->watch.count; i++)
        if (!state->watch.processes[i].ended)
            take_pss(&state->watch, &state->watch.processes[i]);
    double gap = (double)(tare__sample_cost_clock(set) - before) / (tare__sample_options_of(set)->budget * PSS_SHARE);
    state->pss_ns = now_ns + (uint64_t)(gap > PSS_NS ? gap : PSS_NS);
    return true;
}

static void tick_process(tare__sample_set *set, void *context, uint64_t now_ns)
{
    process_state *state = context;
    tare__watch *watch = &state->watch;
    if (watch->target <= 0)
        return;
    const tare__sample_options *options = tare__sample_options_of(set);
    bool only_list = options->only_list || options->left_out & 1; /* its own bit: it is the first in the table */
    bool thorough = only_list || now_ns >= state->thorough_ns;
    uint64_t before = tare__sample_cost_clock(set);
    tare__watch_update(set, watch, now_ns, thorough);
    bool all = true; /* were read; else it shows later who waited for those that have gone */
    if (!only_list) {
        for (size_t i = 0; i < watch->count; i++) {
            read_process(set, state, &watch->processes[i]);
            all = all && !watch->processes[i].unread;
            if (thorough && !watch->processes[i].ended && !watch->processes[i].unread)
                take_files(state, &watch->processes[i]);
        }
        tare__threads_update(set, watch, &state->threads, thorough);
        bool pss = take_all_pss(set, state, now_ns);
        if (all)
            tare__totals_keep_ended(&state->totals, watch);
        for (size_t i = 0; i < watch->count; i++)
            put_process(set, state, &watch->processes[i], thorough, pss);
        tare__totals_put(set, &state->totals, watch, now_ns, pss);
        if (thorough)
            put_own(set, state);
    }
    if (all)
        tare__watch_forget(set, watch);
    if (!thorough)
        return;
    double gap = (double)(tare__sample_cost_clock(set) - before) / (options->budget * THOROUGH_SHARE);
    state->thorough_ns = now_ns + (uint64_t)(gap > THOROUGH_NS ? gap : THOROUGH_NS);
}

/* ---- opening, closing -------------------------------------------------------------------------------------- */

static bool sizes_count_files(const char *root)
{
    struct stat before, after;
    if (root[0] || stat("/proc/self/fd", &before) != 0)
        return false;
    int fd = dup(2); /* shows a change by a single descriptor */
    bool grew = fd >= 0 && stat("/proc/self/fd", &after) == 0 && after.st_size == before.st_size + 1;
    if (fd >= 0)
        close(fd);
    return grew;
}

static void open_process(tare__sample_set *set, void *context)
{
    process_state *state = context;
    tare__watch_open(set, &state->watch);
    state->own_fd = -1;
    state->sizes_count_files = sizes_count_files(state->watch.root);
}

static void close_process(void *context)
{
    process_state *state = context;
    tare__watch_close_fd(&state->watch, &state->own_fd);
    tare__watch_close(&state->watch);
}

const tare__sampler tare__sampler_process = {
    .name = "process",
    .every = 1,
    .state_bytes = sizeof(process_state),
    .open = open_process,
    .tick = tick_process,
    .close = close_process,
    .doctor = tare__process_doctor,
};
