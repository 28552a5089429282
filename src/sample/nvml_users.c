/* nvml_users: GPU memory by process: processes of the run's tree that NVML lists, and the reason if they are
 * unknown.
 * The set's thread.
 * Must not know intervals. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nvml.h"

#define UNNAMED_BYTES (64ll << 20) /* this much in use, and no process listed: processes are hidden */

static const tare__sampled_process *in_tree(tare__sample_set *set, unsigned pid)
{
    size_t n = 0;
    const tare__sampled_process *processes = tare__sample_process_list(set, &n);
    for (size_t i = 0; i < n; i++)
        if ((unsigned)processes[i].pid == pid && processes[i].alive)
            return &processes[i];
    return NULL;
}

static uint32_t series_of(tare__sample_set *set, const tare__nvml_gpu *gpu, unsigned pid, const char *name)
{
    tare__subject subject = {
        .kind = TARE__SUBJECT_GPU_PROCESS, .key = pid, .owner = gpu->index, .label = name};
    return tare__sample_series_of(set, TARE__M_MEMORY_USED, &subject);
}

static tare__nvml_user *user_of(tare__sample_set *set, const tare__nvml_gpu *gpu, tare__nvml_users *users,
                                const tare__sampled_process *process)
{
    unsigned pid = (unsigned)process->pid;
    for (unsigned i = 0; i < users->count; i++)
        if (users->users[i].pid == pid)
            return &users->users[i];
    if (users->count == TARE__NVML_USERS_MAX)
        return NULL;
    tare__nvml_user *user = &users->users[users->count++];
    *user = (tare__nvml_user){.pid = pid, .series = series_of(set, gpu, pid, process->name)};
    return user;
}

/* A process that is no longer listed has released its memory: a measured 0. */
static void forget_gone(tare__sample_set *set, tare__nvml_users *users)
{
    for (unsigned i = 0; i < users->count;) {
        if (users->users[i].there) {
            users->users[i++].there = false;
            continue;
        }
        tare__sample_put(set, users->users[i].series, 0);
        users->users[i] = users->users[--users->count];
    }
}

static bool is_here(const char *root, unsigned pid)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/proc/%u", root, pid);
    return access(path, F_OK) == 0;
}

/* The number of the initial PID namespace is fixed in the kernel. */
static bool in_container(const char *root)
{
    char path[4096], link[64] = "";
    snprintf(path, sizeof path, "%s/proc/self/ns/pid", root);
    return readlink(path, link, sizeof link - 1) > 0 && strcmp(link, "pid:[4026531836]") != 0;
}

static void tell_why(tare__sample_set *set, const tare__nvml_gpu *gpu, const char *reason)
{
    pid_t target = tare__sample_options_of(set)->target;
    if (target != 0)
        tare__sample_absent(set, series_of(set, gpu, (unsigned)target, NULL), reason);
}

/* In a container NVML may list processes by their outer pids, or not at all. */
static void tell_unnamed(tare__sample_set *set, const tare__nvml_gpu *gpu, int64_t used,
                         const tare__nvml_process *list, unsigned n)
{
    const char *root = tare__sample_options_of(set)->root;
    for (unsigned i = 0; i < n; i++)
        if (is_here(root, list[i].pid))
            return;
    if (n > 0)
        tell_why(set, gpu, "NVML reports process ids of the host, not of this container");
    else if (used >= UNNAMED_BYTES && in_container(root))
        tell_why(set, gpu, "NVML does not name the processes of this container");
}

static void put_user(tare__sample_set *set, const tare__nvml_gpu *gpu, tare__nvml_users *users,
                     const tare__nvml_process *listed)
{
    const tare__sampled_process *process = in_tree(set, listed->pid);
    tare__nvml_user *user = process ? user_of(set, gpu, users, process) : NULL;
    if (!user)
        return;
    user->there = true;
    if (listed->used == TARE__NVML_NOT_AVAILABLE)
        tare__sample_absent(set, user->series, "the driver does not report memory by process");
    else
        tare__sample_put(set, user->series, (int64_t)listed->used);
}

int tare__nvml_read_users(tare__sample_set *set, const tare__nvml *nvml, const tare__nvml_gpu *gpu, int64_t used,
                          tare__nvml_users *users)
{
    tare__nvml_process list[TARE__NVML_PROCESSES_MAX];
    char reason[256];
    unsigned n = 0;
    int result = tare__nvml_processes(nvml, gpu->device, list, &n);
    if (result) {
        tell_why(set, gpu, tare__nvml_words(nvml, result, reason));
        return result;
    }
    for (unsigned i = 0; i < n; i++)
        put_user(set, gpu, users, &list[i]);
    bool had = users->count > 0;
    forget_gone(set, users);
    if (!had)
        tell_unnamed(set, gpu, used, list, n);
    return 0;
}

void tare__nvml_users_absent(tare__sample_set *set, const tare__nvml_users *users, const char *reason)
{
    for (unsigned i = 0; i < users->count; i++)
        tare__sample_absent(set, users->users[i].series, reason);
}
