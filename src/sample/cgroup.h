/* cgroup: the control groups of a process, their mount points, and the limits above them. Versions 1, 2 and
 * both at once. The set's thread owns it.
 * Must not know what is measured in a group. */
#ifndef TARE_SAMPLE_CGROUP_H
#define TARE_SAMPLE_CGROUP_H

#include "machine.h"

typedef enum tare__controller {
    TARE__CGROUP_CPU,
    TARE__CGROUP_CPUACCT,
    TARE__CGROUP_CPUSET,
    TARE__CGROUP_MEMORY,
    TARE__CGROUP_UNIFIED, /* version 2's own hierarchy, with any controllers */
    TARE__CONTROLLERS
} tare__controller;

typedef struct tare__cgroup {
    int version;                 /* 1 or 2; 0: none, and the rest is empty */
    char path[TARE__PATH_BYTES]; /* as in /proc/PID/cgroup */
    char folder[TARE__PATH_BYTES];
    size_t mount_bytes; /* length of the topmost folder that is visible */
} tare__cgroup;

typedef struct tare__cgroups {
    tare__cgroup of[TARE__CONTROLLERS];
    uint64_t text; /* a hash of /proc/PID/cgroup, to detect moves */
    char why[256]; /* reason why there is none */
} tare__cgroups;

/* `target` 0: this process. */
void tare__cgroup_find(const char *root, pid_t target, tare__cgroups *groups);
/* True: the process is now in other groups. False if it ended. */
bool tare__cgroup_moved(const char *root, pid_t target, const tare__cgroups *groups);
bool tare__cgroup_climb(const tare__cgroup *group, char *folder); /* to the folder's parent; false at the top */

/* The smallest limit of a group and all visible groups above it. */
typedef struct tare__cgroup_limit {
    int64_t value;                 /* -1: none */
    char folder[TARE__PATH_BYTES]; /* of the group that has it, else of the process's own */
} tare__cgroup_limit;
void tare__cgroup_cpu_limit(const char *root, const tare__cgroups *groups, tare__cgroup_limit *out); /* milli cores */
void tare__cgroup_memory_limit(const char *root, const tare__cgroups *groups, tare__cgroup_limit *out); /* bytes */
/* CPUs available to the process: its affinity, its cpuset, those online; the minimum. 0: unknown. `before` is the
 * previous value. */
int tare__cgroup_cpus(const char *root, pid_t target, const tare__cgroups *groups, int before);

#endif
