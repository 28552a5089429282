/* watch: shared by the files of the process sampler: files of /proc/PID as numbers, and the sampled processes. */
#ifndef TARE_SAMPLE_WATCH_H
#define TARE_SAMPLE_WATCH_H

#include "sample.h"

#define TARE__NO_VALUE INT64_MIN

/* ---- proc.c: files of /proc/PID ----------------------------------------------------------------------------- */
typedef struct tare__proc_stat {
    char name[64]; /* comm; holds anything but NUL */
    char state;    /* R, S, D, Z, … */
    pid_t parent, session;
    int64_t faults_minor, faults_major;
    int64_t user, system, waited_user, waited_system; /* clock ticks */
    int64_t waited_faults; /* 0: it has not waited for a child yet */
    int64_t threads;
    uint64_t start_time; /* clock ticks since boot */
    int64_t rss_pages;
} tare__proc_stat;

typedef struct tare__proc_status { /* TARE__NO_VALUE: not in the file */
    int64_t rss, rss_peak, anon, file, shared, swapped; /* bytes */
    int64_t switches_voluntary, switches_forced;        /* of the first thread alone */
} tare__proc_status;

typedef struct tare__proc_io {
    int64_t read, write, disk_read, disk_write; /* bytes; including those of reaped children */
} tare__proc_io;

/* False: invalid file. Numbers beyond 63 bits become the largest value. */
bool tare__proc_stat_parse(const char *text, tare__proc_stat *out);
void tare__proc_status_parse(const char *text, tare__proc_status *out);
bool tare__proc_io_parse(const char *text, tare__proc_io *out);
int64_t tare__proc_pss_parse(const char *text); /* bytes, of smaps_rollup; TARE__NO_VALUE */
int64_t tare__proc_ticks_ns(int64_t ticks);

/* ---- the sampled processes -------------------------------------------------------------------------------------- */
typedef struct tare__watched_thread {
    pid_t tid;
    int fd; /* of its stat */
    bool seen; /* present in the list that is being read */
    unsigned times_seen;
    uint32_t series[2]; /* user, system; 0: none yet */
    int64_t user, system; /* ns */
    int64_t voluntary, forced; /* as read last */
    char state;
    char name[64], told_name[64];
} tare__watched_thread;

/* Values of a process; the table in process.c has the same order. */
enum {
    TARE__W_USER,
    TARE__W_SYSTEM,
    TARE__W_IO_READ,
    TARE__W_IO_WRITE,
    TARE__W_DISK_READ,
    TARE__W_DISK_WRITE,
    TARE__W_LASTING, /* those before are kept in the tree's totals when a process ends */
    TARE__W_RSS = TARE__W_LASTING,
    TARE__W_ANON,
    TARE__W_THREADS,
    TARE__W_RUNNING,
    TARE__W_DISK_WAIT,
    TARE__W_IN_TREE, /* … those before are summed for the tree */
    TARE__W_RSS_PEAK = TARE__W_IN_TREE,
    TARE__W_FILE,
    TARE__W_SHARED,
    TARE__W_SWAPPED,
    TARE__W_FAULTS_MINOR,
    TARE__W_FAULTS_MAJOR,
    TARE__W_VOLUNTARY,
    TARE__W_FORCED,
    TARE__W_ALWAYS, /* … those before are put at each tick, those after when they were read */
    TARE__W_FILES = TARE__W_ALWAYS,
    TARE__W_PSS,
    TARE__W_COUNT
};

typedef struct tare__watched {
    pid_t pid;
    uint64_t start_time;
    size_t listed;   /* its index in the set's list */
    bool gone;       /* not in /proc any more, or its pid was reused */
    bool ended;      /* a zombie, or gone; reported */
    bool idle;       /* did not run since the last sample */
    bool unread;     /* descriptors or memory ran out at this sample: it is left out */
    unsigned times_seen;
    int fd_stat, fd_status, fd_io, fd_children;
    tare__proc_stat stat;
    uint64_t cpu_ns; /* from its CPU clock; 0: no such clock */
    int io_failure, pss_failure, files_failure; /* errno; 0: none */
    int64_t value[TARE__W_COUNT];
    uint32_t series[TARE__W_COUNT];
    /* Including the usage of reaped children: what it adds to the tree, and how much that grew because of them since
     * the last sample. */
    int64_t lasting[TARE__W_LASTING], waited[TARE__W_LASTING];
    int64_t waited_cpu[2];
    int64_t inherited[TARE__W_LASTING]; /* part of its bytes from reaped children, as far as known */
    bool inherits_exactly;              /* … which is all of them */
    int64_t told_own[TARE__W_LASTING];  /* bytes without those, as last reported */
    bool told_end;
    char told_name[64];
    int64_t switches_of_ended[2];
    bool many_threads; /* has, or had */
    int64_t own_threads; /* number of its threads that belong to Tare */
    bool list_again;   /* a thread did not exist any more */
    tare__watched_thread *threads;
    size_t thread_count, thread_room;
} tare__watched;

typedef struct tare__watch {
    tare__watched *processes; /* in the order in which they were found */
    size_t count, room;
    tare__index index; /* of processes, by pid */
    const char *root;
    pid_t target, self;
    uint64_t target_start;
    pid_t session;
    bool launched;      /* by this process: orphans become its children */
    int fd_children;    /* of this process */
    bool clocks;        /* CPU clocks of other processes can be read */
    bool no_children;   /* the kernel has no children files */
    int fds_left;       /* descriptors that can still be kept open */
    uint64_t scan_due_ns; /* of all of /proc */
    pid_t *strangers;   /* pids found there that are not part of the tree, sorted */
    size_t stranger_count;
} tare__watch;

/* tree.c */
void tare__watch_open(tare__sample_set *set, tare__watch *watch);
void tare__watch_close(tare__watch *watch);
/* Reads each known process again, and finds new ones. `thorough`: also children of other threads, idle ones,
 * orphans. */
void tare__watch_update(tare__sample_set *set, tare__watch *watch, uint64_t now_ns, bool thorough);
/* Removes processes whose end was reported. */
void tare__watch_forget(tare__sample_set *set, tare__watch *watch);
/* Reads a file of a process, with a cached descriptor if possible. */
int tare__watch_read(tare__watch *watch, pid_t pid, const char *file, int *fd, char *out, size_t room);
void tare__watch_close_fd(tare__watch *watch, int *fd);
/* NULL: unknown. One that was found to be gone in this sample is still known. */
tare__watched *tare__watch_find(tare__watch *watch, pid_t pid);
pid_t tare__watch_as_pid(const char *name); /* 0: not a number */

/* process.c */
tare__metric tare__watch_metric(int which);
/* Why a value of a process cannot be read; NULL: it can. */
const char *tare__watch_reason(const tare__watched *process, int which, char out[256]);

/* ---- totals.c -------------------------------------------------------------------------------------------------- */
typedef struct tare__totals {
    uint32_t series[TARE__W_IN_TREE], processes_series, pss_series;
    int64_t ended[TARE__W_LASTING]; /* of ended processes that no process waited for */
    int64_t told[TARE__W_LASTING];
    char io_unknown[256]; /* why the bytes of an ended process are not included; "" */
    int64_t last_cpu_ns;
    uint64_t last_ns;
} tare__totals;
int64_t tare__watch_add(int64_t a, int64_t b); /* saturates at INT64_MAX */
/* Adds the usage of ended processes, unless a process waited for them. Before they are removed. */
void tare__totals_keep_ended(tare__totals *totals, tare__watch *watch);
void tare__totals_put(tare__sample_set *set, tare__totals *totals, const tare__watch *watch, uint64_t now_ns,
                      bool pss);

/* ---- threads.c --------------------------------------------------------------------------------------------- */
typedef struct tare__thread_pace {
    unsigned gap, waited; /* ticks between samples of threads, and since the last */
    bool thorough;        /* whether the next is thorough */
    double cost;          /* of a sample, relative to a tick */
} tare__thread_pace;
/* Reads and puts the threads of all processes, if due; limited to a part of the budget. */
void tare__threads_update(tare__sample_set *set, tare__watch *watch, tare__thread_pace *pace, bool thorough);
void tare__threads_end(tare__sample_set *set, tare__watched *process);

/* ---- doctor.c ---------------------------------------------------------------------------------------------- */
void tare__process_doctor(const char *root, tare__sample_check_sink *sink, void *context);

#endif
