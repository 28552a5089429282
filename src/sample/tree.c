/* tree: the processes of the target: itself, its descendants, and orphans of these.
 * One thread: the set's. A process is identified by pid and start time, and stays known until it ends.
 * Must not know what is reported of a process. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "watch.h"

#define KNOWN_MAX 8192u            /* processes; more only if that many are alive */
#define KEPT_FILES_MAX 1024        /* descriptors; fewer if the limit on open files is low */
#define SCAN_NS 1000000000u        /* interval of scans of all of /proc */
#define SCAN_SHARE 0.2             /* part of the budget for these */
#define FEW_THREADS 16             /* number of processes whose children are read in each sample */

/* ---- files -------------------------------------------------------------------------------------------------- */

void tare__watch_close_fd(tare__watch *watch, int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        watch->fds_left++;
    }
    *fd = -1;
}

int tare__watch_read(tare__watch *watch, pid_t pid, const char *file, int *fd, char *out, size_t room)
{
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    if (*fd == -1 && watch->fds_left <= 0)
        return tare__sample_read(watch->root, path, out, room);
    bool was_closed = *fd == -1;
    int got = tare__sample_pread(watch->root, path, fd, out, room);
    watch->fds_left -= was_closed && *fd >= 0;
    return got;
}

static int read_once(const tare__watch *watch, pid_t pid, const char *file, char *out, size_t room)
{
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    return tare__sample_read(watch->root, path, out, room);
}

static DIR *open_folder(const tare__watch *watch, const char *path)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s%s", watch->root, path);
    return opendir(whole);
}

pid_t tare__watch_as_pid(const char *name)
{
    char *end;
    long pid = strtol(name, &end, 10);
    return name[0] >= '0' && name[0] <= '9' && *end == '\0' && pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

/* The CPU clock of another process (clock_getcpuclockid): exact, cheap, and needs no permission. */
static bool cpu_clock(const tare__watch *watch, pid_t pid, uint64_t *ns)
{
    struct timespec time;
    clockid_t clock = (clockid_t)(~(unsigned)pid << 3 | 2u);
    if (!watch->clocks || clock_gettime(clock, &time) != 0)
        return false;
    *ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    return true;
}

/* ---- known processes -------------------------------------------------------------------------------------- */

static uint32_t hash_of(pid_t pid)
{
    return (uint32_t)tare__hash_mix(0, (uint32_t)pid);
}

TARE__KEYED(has_pid, tare__watched, pid_t, a->pid == *b)

tare__watched *tare__watch_find(tare__watch *watch, pid_t pid)
{
    uint32_t at = tare__index_find(&watch->index, hash_of(pid), has_pid, watch->processes, &pid);
    return at == TARE__INDEX_NONE ? NULL : &watch->processes[at];
}

static tare__watched *find(tare__watch *watch, pid_t pid)
{
    tare__watched *found = tare__watch_find(watch, pid);
    return found && !found->gone ? found : NULL;
}

/* A reused pid refers to the later process. */
static bool put_index(tare__watch *watch, pid_t pid, size_t at)
{
    const tare__watched *before = tare__watch_find(watch, pid);
    if (!before)
        return tare__index_add(&watch->index, hash_of(pid), (uint32_t)at);
    tare__index_move(&watch->index, hash_of(pid), (uint32_t)(before - watch->processes), (uint32_t)at);
    return true;
}

/* After some were removed: an index cannot remove single entries. The remaining ones fit. */
static void fill_index(tare__watch *watch)
{
    tare__index_clear(&watch->index);
    for (size_t i = 0; i < watch->count; i++)
        put_index(watch, watch->processes[i].pid, i);
}

static void release(tare__watch *watch, tare__watched *process)
{
    int *const kept[] = {&process->fd_stat, &process->fd_status, &process->fd_io, &process->fd_children};
    for (size_t i = 0; i < TARE__COUNT_OF(kept); i++)
        tare__watch_close_fd(watch, kept[i]);
    for (size_t i = 0; i < process->thread_count; i++)
        tare__watch_close_fd(watch, &process->threads[i].fd);
    free(process->threads);
    process->threads = NULL;
    process->thread_count = process->thread_room = 0;
}

static void tell_list(tare__sample_set *set, const tare__watched *process)
{
    size_t n;
    tare__sampled_process *listed = &tare__sample_process_list(set, &n)[process->listed];
    listed->pid = process->pid;
    listed->parent = process->stat.parent;
    listed->start_time = process->start_time;
    listed->alive = !process->ended;
    snprintf(listed->name, sizeof listed->name, "%s", process->stat.name);
}

void tare__watch_forget(tare__sample_set *set, tare__watch *watch)
{
    size_t kept = 0;
    for (size_t i = 0; i < watch->count; i++) {
        tare__watched *process = &watch->processes[i];
        if (!process->gone) {
            watch->processes[kept++] = *process;
            continue;
        }
        release(watch, process);
    }
    if (kept == watch->count)
        return;
    watch->count = kept;
    fill_index(watch);
    /* The list includes ended ones until it becomes long. */
    size_t n;
    tare__sampled_process *list = tare__sample_process_list(set, &n);
    for (size_t i = n; i > 0 && n > KNOWN_MAX; i--)
        if (!list[i - 1].alive) {
            size_t last = --n;
            tare__sample_process_drop(set, i - 1);
            for (size_t k = 0; k < watch->count; k++)
                if (watch->processes[k].listed == last)
                    watch->processes[k].listed = i - 1;
        }
}

/* A new one; NULL: no space, or it is already gone. */
static tare__watched *add(tare__sample_set *set, tare__watch *watch, pid_t pid, const tare__proc_stat *stat)
{
    if (!tare__array_fit(&watch->processes, &watch->room, watch->count + 1, sizeof *watch->processes) ||
        !put_index(watch, pid, watch->count))
        return NULL;
    tare__sampled_process *listed = tare__sample_process_add(set);
    if (!listed) {
        fill_index(watch);
        return NULL;
    }
    listed->rss_peak = -1;
    tare__watched *process = &watch->processes[watch->count++];
    memset(process, 0, sizeof *process);
    process->pid = pid;
    process->start_time = stat->start_time;
    process->stat = *stat;
    process->fd_stat = process->fd_status = process->fd_io = process->fd_children = -1;
    size_t n;
    tare__sample_process_list(set, &n);
    process->listed = n - 1;
    for (int i = 0; i < TARE__W_COUNT; i++)
        process->value[i] = TARE__NO_VALUE;
    tell_list(set, process);
    return process;
}

/* ---- reading a process again --------------------------------------------------------------------------------- */

static void mark_gone(tare__watched *process)
{
    process->gone = process->ended = true;
    process->idle = process->unread = false;
}

/* A process whose first thread has ended looks like a zombie, and continues to run with its other threads. */
static bool is_over(const tare__proc_stat *stat)
{
    return (stat->state == 'Z' && stat->threads <= 1) || stat->state == 'X';
}

static void refresh(tare__sample_set *set, tare__watch *watch, tare__watched *process, bool thorough)
{
    uint64_t cpu_ns = 0;
    bool has_clock = cpu_clock(watch, process->pid, &cpu_ns);
    process->idle = has_clock && process->times_seen > 1 && cpu_ns == process->cpu_ns && !process->ended && !thorough;
    process->unread = false;
    process->times_seen++;
    if (process->idle)
        return;
    char text[1024];
    tare__proc_stat stat;
    int got = tare__watch_read(watch, process->pid, "stat", &process->fd_stat, text, sizeof text);
    if (tare__sample_failed_here(got)) {
        process->unread = true;
        return;
    }
    if (got <= 0 || !tare__proc_stat_parse(text, &stat) || stat.start_time != process->start_time) {
        mark_gone(process);
        tell_list(set, process);
        return;
    }
    process->stat = stat;
    process->cpu_ns = has_clock ? cpu_ns : 0;
    process->ended = is_over(&stat);
    tell_list(set, process);
}

/* ---- finding new processes ------------------------------------------------------------------------------------ */

static void meet(tare__sample_set *set, tare__watch *watch, pid_t pid)
{
    if (pid == watch->self || find(watch, pid))
        return;
    char text[1024];
    tare__proc_stat stat;
    if (read_once(watch, pid, "stat", text, sizeof text) > 0 && tare__proc_stat_parse(text, &stat))
        add(set, watch, pid, &stat);
}

static void meet_all(tare__sample_set *set, tare__watch *watch, const char *children)
{
    char *end;
    for (long child; (child = strtol(children, &end, 10)) > 0; children = end)
        meet(set, watch, (pid_t)child);
}

static char *children_room(void)
{
    static char text[1 << 16]; /* about 9,000 children; the rest in a later sample, when some have ended */
    return text;
}

static void meet_children_of_first(tare__sample_set *set, tare__watch *watch, size_t index)
{
    tare__watched *process = &watch->processes[index];
    char file[64], *text = children_room();
    snprintf(file, sizeof file, "task/%d/children", (int)process->pid);
    int got = tare__watch_read(watch, process->pid, file, &process->fd_children, text, 1 << 16);
    if (got == -ENOENT && !process->ended)
        watch->no_children = true;
    if (got > 0)
        meet_all(set, watch, text);
}

static void meet_children_of_others(tare__sample_set *set, tare__watch *watch, size_t index)
{
    char path[64];
    pid_t pid = watch->processes[index].pid;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = open_folder(watch, path);
    struct dirent *entry;
    while (threads && (entry = readdir(threads)) != NULL) {
        pid_t tid = tare__watch_as_pid(entry->d_name);
        char file[64], *text = children_room();
        snprintf(file, sizeof file, "task/%d/children", (int)tid);
        if (tid && tid != pid && read_once(watch, pid, file, text, 1 << 16) > 0)
            meet_all(set, watch, text);
    }
    if (threads)
        closedir(threads);
}

/* Orphans of a launched program become children of this process: it is set as subreaper before the launch. */
static void meet_own_children(tare__sample_set *set, tare__watch *watch)
{
    char file[64], text[4096], *end;
    snprintf(file, sizeof file, "task/%d/children", (int)watch->self);
    if (tare__watch_read(watch, watch->self, file, &watch->fd_children, text, sizeof text) <= 0)
        return;
    char *at = text;
    for (long child; (child = strtol(at, &end, 10)) > 0; at = end) {
        char stat_text[1024];
        tare__proc_stat stat;
        if (!find(watch, (pid_t)child) &&
            read_once(watch, (pid_t)child, "stat", stat_text, sizeof stat_text) > 0 &&
            tare__proc_stat_parse(stat_text, &stat) && stat.start_time >= watch->target_start)
            add(set, watch, (pid_t)child, &stat);
    }
}

TARE__ORDER(by_pid, pid_t, TARE__RISING_VALUE)

/* A descendant of a known process; or in this session without a parent, and not older than the target. */
static bool belongs(tare__watch *watch, const tare__proc_stat *stat)
{
    if (find(watch, stat->parent))
        return true;
    return stat->parent == 1 && stat->session == watch->session && stat->session > 0 &&
           stat->start_time >= watch->target_start;
}

/* All of /proc. A pid that was not part of the tree is skipped as long as it is present at each scan. */
static void scan(tare__sample_set *set, tare__watch *watch)
{
    DIR *folder = open_folder(watch, "/proc");
    pid_t *now = NULL;
    size_t count = 0, room = 0;
    struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL) {
        pid_t pid = tare__watch_as_pid(entry->d_name);
        char text[1024];
        tare__proc_stat stat;
        if (!pid || pid == watch->self || find(watch, pid))
            continue;
        bool stranger = watch->stranger_count &&
                        bsearch(&pid, watch->strangers, watch->stranger_count, sizeof pid, by_pid);
        if (!stranger && read_once(watch, pid, "stat", text, sizeof text) > 0 && tare__proc_stat_parse(text, &stat) &&
            belongs(watch, &stat))
            add(set, watch, pid, &stat);
        else if (tare__array_fit(&now, &room, count + 1, sizeof *now))
            now[count++] = pid;
    }
    if (folder)
        closedir(folder);
    if (count)
        qsort(now, count, sizeof *now, by_pid);
    free(watch->strangers);
    watch->strangers = now;
    watch->stranger_count = count;
}

static void scan_when_due(tare__sample_set *set, tare__watch *watch, uint64_t now_ns)
{
    if (now_ns < watch->scan_due_ns)
        return;
    uint64_t before = tare__sample_cost_clock(set);
    scan(set, watch);
    double spent = (double)(tare__sample_cost_clock(set) - before);
    double gap = spent / (tare__sample_options_of(set)->budget * SCAN_SHARE);
    watch->scan_due_ns = now_ns + (uint64_t)(gap > SCAN_NS ? gap : SCAN_NS);
}

/* ---- one sample ------------------------------------------------------------------------------------------------ */

static void find_target(tare__sample_set *set, tare__watch *watch)
{
    if (watch->target_start || watch->target <= 0)
        return;
    meet(set, watch, watch->target);
    tare__watched *target = find(watch, watch->target);
    if (!target)
        return;
    watch->target_start = target->start_time ? target->start_time : 1;
    watch->session = target->stat.session;
    watch->launched = target->stat.parent == watch->self && watch->self > 0;
}

/* A process that did not run since cannot have started another. */
static bool may_have_children(const tare__watched *process)
{
    return !process->ended && !process->idle && !process->unread;
}

void tare__watch_update(tare__sample_set *set, tare__watch *watch, uint64_t now_ns, bool thorough)
{
    find_target(set, watch);
    size_t known = watch->count;
    for (size_t i = 0; i < watch->count; i++) { /* it grows in the loop */
        if (watch->processes[i].gone)
            continue;
        refresh(set, watch, &watch->processes[i], thorough);
        if (!may_have_children(&watch->processes[i]) || watch->no_children)
            continue;
        meet_children_of_first(set, watch, i);
        int64_t threads = watch->processes[i].stat.threads;
        if (threads > 1 && (thorough || threads <= FEW_THREADS || i >= known))
            meet_children_of_others(set, watch, i);
    }
    known = watch->count;
    if (watch->launched && watch->target_start)
        meet_own_children(set, watch);
    /* No descendant of a launched program can be lost, if the kernel lists children. */
    if (watch->target_start && (watch->no_children || !watch->launched))
        scan_when_due(set, watch, now_ns);
    for (size_t i = known; i < watch->count; i++)
        refresh(set, watch, &watch->processes[i], thorough);
}

/* ---- opening, closing -------------------------------------------------------------------------------------- */

void tare__watch_open(tare__sample_set *set, tare__watch *watch)
{
    const tare__sample_options *options = tare__sample_options_of(set);
    watch->root = options->root;
    watch->target = options->target;
    watch->self = options->self;
    watch->fd_children = -1;
    watch->clocks = options->root[0] == '\0';
    struct rlimit files;
    watch->fds_left = KEPT_FILES_MAX;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < KEPT_FILES_MAX)
        watch->fds_left = (int)(files.rlim_cur / 4);
}

void tare__watch_close(tare__watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        release(watch, &watch->processes[i]);
    tare__watch_close_fd(watch, &watch->fd_children);
    free(watch->processes);
    free(watch->strangers);
    tare__index_free(&watch->index);
    memset(watch, 0, sizeof *watch);
}
