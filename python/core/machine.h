/* machine: activity of the whole machine, read from /proc: CPU time, waiting for disks, disks, network, memory.
 * Any thread. Must not know blocks. */
#ifndef TARE_PYTHON_MACHINE_H
#define TARE_PYTHON_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TARE__PY_CPU = 1,
    TARE__PY_DISK = 2,
    TARE__PY_NETWORK = 4,
    TARE__PY_MEMORY = 8,
    TARE__PY_RSS = 16,
};

#define TARE__PY_DISKS_MAX 16
typedef struct tare__py_machine {
    uint64_t at_ns;
    uint32_t has; /* which of the above could be read */
    uint32_t disks;
    uint64_t cpu_total, cpu_idle, cpu_iowait; /* ticks of all CPUs; iowait is not in idle */
    uint64_t received, sent;                  /* bytes of all interfaces except the loopback */
    uint64_t memory_total, memory_available;  /* bytes */
    uint64_t rss;                             /* bytes of this process */
    uint32_t disk_ms[TARE__PY_DISKS_MAX];     /* with a request under way; whole disks */
} tare__py_machine;

void tare__py_machine_read(tare__py_machine *machine, uint32_t what);

/* The difference between two readings. NaN: unknown. */
typedef struct tare__py_usage {
    double cpu_percent, iowait_percent, disk_percent, received, sent;
    double memory_percent, rss; /* of the later reading */
} tare__py_usage;
#define TARE__PY_SHORTEST_NS 50000000u /* the kernel counts CPU time in ticks of some 10 ms */
tare__py_usage tare__py_machine_between(const tare__py_machine *from, const tare__py_machine *to);

/* A reading not older than 5 ms, shared by all callers; attached to the interpreter. */
void tare__py_machine_recent(tare__py_machine *machine, uint32_t what);

/* CPUs that this process may use, by its affinity, its cpuset and the quotas of its control groups. */
int tare__py_cpus(void);

#endif
