/* metrics: what can be sampled over time, and of which subjects. The list of metrics that this version knows; a file
 * contains their names, so that a reader need not know them.
 * Must not know how anything is measured. */
#ifndef TARE_FORMAT_METRICS_H
#define TARE_FORMAT_METRICS_H

#include <stdint.h>

/* Values are integers in these units. */
typedef enum tare__unit_kind {
    TARE__IN_NONE = 0,
    TARE__IN_COUNT = 1,
    TARE__IN_BYTE = 2,
    TARE__IN_NS = 3,
    TARE__IN_PERMILLE = 4, /* thousandths (share): 1000 is 100 % */
    TARE__IN_MILLICELSIUS = 5,
    TARE__IN_MILLIWATT = 6,
    TARE__IN_MICROJOULE = 7,
    TARE__IN_HERTZ = 8,
    TARE__IN_MILLI = 9, /* thousandths: load, cores */
    TARE__IN_BITS = 10  /* a set of flags */
} tare__unit_kind;

typedef enum tare__metric_kind {
    TARE__METRIC_GAUGE = 1, /* valid until the next sample */
    TARE__METRIC_TOTAL = 2, /* only grows; differences and rates are shown */
    TARE__METRIC_PEAK = 3   /* a high-water mark: the largest value so far, exact also between samples */
} tare__metric_kind;

/* The subject of a value. */
typedef enum tare__subject_kind {
    TARE__SUBJECT_SYSTEM = 1,      /* the machine */
    TARE__SUBJECT_CPU = 2,         /* key: its number */
    TARE__SUBJECT_DISK = 3,        /* label: nvme0n1 */
    TARE__SUBJECT_NETWORK = 4,     /* label: eth0 */
    TARE__SUBJECT_CONTAINER = 5,   /* the control group the job runs in; label: its path */
    TARE__SUBJECT_TREE = 6,        /* all processes of the run together */
    TARE__SUBJECT_PROCESS = 7,     /* key: pid; owner: its start time in clock ticks since boot; label: command */
    TARE__SUBJECT_THREAD = 8,      /* key: tid; owner: pid; label: its name */
    TARE__SUBJECT_SENSOR = 9,      /* label: coretemp Package id 0 */
    TARE__SUBJECT_GPU = 10,        /* key: index; label: its name */
    TARE__SUBJECT_GPU_PROCESS = 11, /* key: pid; owner: the GPU's index */
    TARE__SUBJECT_TARE = 12        /* Tare itself, outside of the program */
} tare__subject_kind;

/* id, number in this process only; name in files; unit; kind; description */
#define TARE__METRICS(M)                                                                                            \
    /* processes, threads, the tree; CPU times also of machine, CPUs and container */                               \
    M(CPU_USER, "cpu.user", NS, TOTAL, "CPU time in user code")                                                     \
    M(CPU_SYSTEM, "cpu.system", NS, TOTAL, "CPU time in the kernel")                                                \
    M(CPU_IDLE, "cpu.idle", NS, TOTAL, "CPU time idle")                                                             \
    M(CPU_IOWAIT, "cpu.iowait", NS, TOTAL, "CPU time idle while some task waits for a disk")                        \
    M(CPU_STEAL, "cpu.steal", NS, TOTAL, "CPU time stolen by the hypervisor")                                       \
    M(CPU_USAGE, "cpu.usage", NS, TOTAL, "CPU time")                                                                \
    M(CPU_LIMIT, "cpu.limit", MILLI, GAUGE, "CPU limit in cores")                                                   \
    M(CPU_FREQUENCY, "cpu.frequency", HERTZ, GAUGE, "CPU clock")                                                    \
    M(CPU_PERIODS, "cpu.periods", COUNT, TOTAL, "enforcement periods of the CPU limit")                             \
    M(CPU_THROTTLED_PERIODS, "cpu.throttled_periods", COUNT, TOTAL, "periods in which the CPU limit was hit")       \
    M(CPU_THROTTLED, "cpu.throttled", NS, TOTAL, "time throttled by the CPU limit")                                 \
    M(RSS, "memory.rss", BYTE, GAUGE, "resident memory")                                                            \
    M(RSS_PEAK, "memory.rss_peak", BYTE, PEAK, "peak resident memory")                                              \
    M(RSS_ANON, "memory.anon", BYTE, GAUGE, "anonymous resident memory (heap, stacks)")                             \
    M(RSS_FILE, "memory.file", BYTE, GAUGE, "file-backed resident memory")                                          \
    M(RSS_SHARED, "memory.shared", BYTE, GAUGE, "resident shared memory")                                           \
    M(PSS, "memory.pss", BYTE, GAUGE, "proportional set size")                                                      \
    M(SWAPPED, "memory.swapped", BYTE, GAUGE, "memory swapped out")                                                 \
    M(FAULTS_MINOR, "faults.minor", COUNT, TOTAL, "page faults served from memory")                                 \
    M(FAULTS_MAJOR, "faults.major", COUNT, TOTAL, "page faults that waited for a disk")                             \
    M(SWITCHES_VOLUNTARY, "switches.voluntary", COUNT, TOTAL, "voluntary context switches")                         \
    M(SWITCHES_FORCED, "switches.forced", COUNT, TOTAL, "involuntary context switches")                             \
    M(THREADS, "threads", COUNT, GAUGE, "threads")                                                                  \
    M(THREADS_RUNNING, "threads.running", COUNT, GAUGE, "runnable threads")                                         \
    M(THREADS_DISK_WAIT, "threads.disk_wait", COUNT, GAUGE, "threads waiting for a disk")                           \
    M(PROCESSES, "processes", COUNT, GAUGE, "processes")                                                            \
    M(FILES, "files", COUNT, GAUGE, "open files")                                                                   \
    M(IO_READ, "io.read", BYTE, TOTAL, "bytes requested to read")                                                   \
    M(IO_WRITE, "io.write", BYTE, TOTAL, "bytes requested to write")                                                \
    M(DISK_READ, "disk.read", BYTE, TOTAL, "bytes read from disks")                                                 \
    M(DISK_WRITE, "disk.write", BYTE, TOTAL, "bytes written to disks")                                              \
    /* machine */                                                                                                   \
    M(MEMORY_TOTAL, "memory.total", BYTE, GAUGE, "total memory")                                                    \
    M(MEMORY_AVAILABLE, "memory.available", BYTE, GAUGE, "memory available without swapping")                       \
    M(MEMORY_USED, "memory.used", BYTE, GAUGE, "memory in use")                                                     \
    M(MEMORY_CACHED, "memory.cached", BYTE, GAUGE, "file cache")                                                    \
    M(SWAP_TOTAL, "swap.total", BYTE, GAUGE, "total swap")                                                          \
    M(SWAP_USED, "swap.used", BYTE, GAUGE, "swap in use")                                                           \
    M(SWAP_IN, "swap.in", BYTE, TOTAL, "bytes swapped in")                                                          \
    M(SWAP_OUT, "swap.out", BYTE, TOTAL, "bytes swapped out")                                                       \
    M(DISK_READS, "disk.reads", COUNT, TOTAL, "read requests")                                                      \
    M(DISK_WRITES, "disk.writes", COUNT, TOTAL, "write requests")                                                   \
    M(DISK_BUSY, "disk.busy", NS, TOTAL, "time with requests in flight")                                            \
    M(DISK_QUEUE, "disk.queue", NS, TOTAL, "requests in flight times duration; its rate is the queue length")       \
    M(NET_RECEIVED, "net.received", BYTE, TOTAL, "bytes received")                                                  \
    M(NET_SENT, "net.sent", BYTE, TOTAL, "bytes sent")                                                              \
    M(NET_ERRORS, "net.errors", COUNT, TOTAL, "packets with errors, or dropped")                                    \
    M(PRESSURE_CPU, "pressure.cpu", NS, TOTAL, "time in which some task waited for a CPU")                          \
    M(PRESSURE_MEMORY, "pressure.memory", NS, TOTAL, "time in which some task waited for memory")                   \
    M(PRESSURE_MEMORY_FULL, "pressure.memory_full", NS, TOTAL, "time in which all tasks waited for memory")         \
    M(PRESSURE_IO, "pressure.io", NS, TOTAL, "time in which some task waited for a disk")                           \
    M(PRESSURE_IO_FULL, "pressure.io_full", NS, TOTAL, "time in which all tasks waited for a disk")                 \
    M(LOAD, "load", MILLI, GAUGE, "load average over 1 minute")                                                       \
    M(RUNNABLE, "runnable", COUNT, GAUGE, "runnable tasks whole machine")                        \
    /* container */                                                                                                 \
    M(MEMORY_LIMIT, "memory.limit", BYTE, GAUGE, "memory limit")                                         \
    M(MEMORY_PEAK, "memory.peak", BYTE, PEAK, "peak memory used")                                                   \
    M(OOM, "oom", COUNT, TOTAL, "times the memory limit was hit with nothing left to reclaim")                      \
    M(OOM_KILLS, "oom.kills", COUNT, TOTAL, "processes killed by the OOM killer")                                  \
    /* temperature, power */                                                                                        \
    M(TEMPERATURE, "temperature", MILLICELSIUS, GAUGE, "temperature")                                               \
    M(POWER, "power", MILLIWATT, GAUGE, "power")                                                                    \
    M(ENERGY, "energy", MICROJOULE, TOTAL, "energy")                                                                \
    M(THROTTLE_EVENTS, "throttle.events", COUNT, TOTAL, "thermal throttle events")                     \
    /* GPU */                                                                                                       \
    M(GPU_BUSY, "gpu.busy", PERMILLE, GAUGE, "share of time in which some kernel ran")                              \
    M(GPU_MEMORY_BUSY, "gpu.memory_busy", PERMILLE, GAUGE, "share of time in which its memory was read or written") \
    M(GPU_CLOCK, "gpu.clock", HERTZ, GAUGE, "multiprocessor clock")                                         \
    M(GPU_MEMORY_CLOCK, "gpu.memory_clock", HERTZ, GAUGE, "memory clock")                                    \
    M(GPU_THROTTLE, "gpu.throttle", BITS, GAUGE, "clock throttle reasons (NVML bits)")                 \
    M(GPU_ECC, "gpu.ecc", COUNT, TOTAL, "uncorrected memory errors")                                \
    /* Tare */                                                                                                      \
    M(SAMPLE_INTERVAL, "sample.interval", NS, GAUGE, "time between samples")

typedef enum tare__metric {
#define TARE__METRIC_ID(id, name, unit, kind, what) TARE__M_##id,
    TARE__METRICS(TARE__METRIC_ID)
#undef TARE__METRIC_ID
    TARE__METRIC_COUNT
} tare__metric;

typedef struct tare__metric_about {
    const char *name; /* in files */
    tare__unit_kind unit;
    tare__metric_kind kind;
    const char *what; /* half a sentence */
} tare__metric_about;

const tare__metric_about *tare__metric_of(tare__metric metric);
/* TARE__METRIC_COUNT: unknown metric. */
tare__metric tare__metric_find(const char *name, uint32_t bytes);

#endif
