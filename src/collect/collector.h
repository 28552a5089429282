/* collector: declarations shared by the files of this module. One thread. */
#ifndef TARE_COLLECT_COLLECTOR_H
#define TARE_COLLECT_COLLECTOR_H

#ifndef _GNU_SOURCE
#error "cpu_set_t needs _GNU_SOURCE, before any header"
#endif

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/types.h>

#include "collect.h"
#include "record/record.h"

#define TARE__TICK_ACTIVE_NS 1000000u
#define TARE__TICK_CALM_NS 4000000u /* chunks arrive occasionally */
#define TARE__TICK_IDLE_NS 8000000u /* none within a second */
#define TARE__TICK_ALONE_NS 100000000u /* no process records: a hello wakes the collector */
#define TARE__POOL_BYTES ((uint64_t)8 << 20)       /* of one process */
#define TARE__BUSY_POOL_BYTES ((uint64_t)32 << 20) /* of a process that records a lot */
#define TARE__SEAL_NS 1000000000u       /* a block seals when full or after this */
#define TARE__AGGREGATES_NS 10000000000u
#define TARE__HOLE_NS 2000000000u       /* a reserved slot that is still empty is skipped after this time */
#define TARE__HOLE_PASSED_NS 20000000u  /* the same, if its thread has filled further chunks since */

/* ---- the session's folder ------------------------------------------------------------------------------ */
typedef struct tare__folder {
    char path[TARE__PATH_BYTES];
    char fallback[TARE__PATH_BYTES]; /* "" until created */
    tare__session_page *page;
    int lock;   /* the session file, locked while the collector lives */
    int socket; /* where processes send their hello */
} tare__folder;

int tare__folder_create(tare__folder *folder, uint64_t pool_bytes, tare__error *error);
/* Reads a folder whose collector is gone; changes nothing in it. 0; TARE_E_BUSY: it is alive; or another status. */
void tare__folder_named(tare__folder *folder); /* the trace has the name given in the page */
int tare__folder_take(tare__folder *folder, const char *path, tare__error *error);
void tare__folder_sync(tare__folder *folder, tare__clock_sync *sync); /* reads the clocks and stores them there */
bool tare__folder_remove(tare__folder *folder); /* false: something remains */
void tare__folder_close(tare__folder *folder);
/* own.c */
/* Opens a folder of this user for reading that no other user can write and that is not a link. A descriptor, or -1
 * with a message. */
int tare__folder_open(const char *path, tare__error *error);
/* Removes PLACE/tare-UID-XXXXXX of this user, mode 0700, containing only session files. False: it is kept; if it
 * could not be verified, nothing in it was changed. */
bool tare__folder_delete(const char *path);
bool tare__folder_deletable(const char *path); /* whether it would be removed; removes nothing */
bool tare__ring_name(const char *name); /* <32 hex>.ring */
/* bus.c: from head to free, truncation of a session file or ring does not kill the collector. */
struct tare__collector;
#define TARE__ENDING_BYTES sizeof ".XXXXXX"
void tare__bus_watch(struct tare__collector *collector);
void tare__bus_leave(void);
/* saved.c */
/* Whether the process of this ring is running: it keeps the ring mapped for writing, which a read lease detects in
 * any PID namespace. Without leases its pid is checked. */
bool tare__ring_in_use(int fd);
bool tare__mark_saved(const tare__folder *folder, int trace, const char *path);
bool tare__saved_in(int dir, char trace[TARE__PATH_BYTES]); /* and that trace is still there */
bool tare__process_runs(pid_t pid); /* salvage.c: false for a zombie */

/* ---- a trace that is to be continued (blocks.c) ------------------------------------------------------------ */
typedef struct tare__blocks {
    int fd;
    uint64_t at, size;       /* at the end: start of a block truncated by the end of the file, or `size` */
    uint64_t damaged_blocks, damaged_bytes; /* skipped so far */
    uint64_t searched;
    int failure;             /* -errno: the file could not be read; 0 */
    uint8_t *room;           /* the payload of the block that tare__blocks_next found */
} tare__blocks;

int tare__blocks_open(tare__blocks *walk, int fd); /* 0 or a status */
bool tare__blocks_next(tare__blocks *walk, tare__block_header *header); /* false: no further complete block */
void tare__blocks_close(tare__blocks *walk);

/* ---- streams, rings, processes ----------------------------------------------------------------------------- */
typedef struct tare__stream {
    uint32_t id;       /* in the file */
    uint32_t number;   /* in its ring */
    int32_t tid;
    char name[TARE__THREAD_NAME_BYTES];
    uint64_t position; /* TARE__POSITION */
    uint32_t ordinal;
    uint64_t last_ticks;
    uint64_t sealed_ns;
    uint64_t hole_since_ns;
    uint64_t gap_since_ns; /* chunk gap_sequence was missing in a scan that found later ones; 0: none */
    uint32_t gap_sequence;
    uint64_t aggregates_ns;
    uint64_t calls_told; /* by the last block of aggregates */
    uint64_t dropped_spans, dropped_others, skipped;
    bool gone; /* its thread has ended: the next scan sees the last it wrote */
    bool told; /* its STREAM block says all of the above */
    tare__span_stack open;
} tare__stream;

typedef struct tare__process_entry {
    pid_t pid;
    pid_t parent;
    uint64_t start_time; /* from the kernel, to distinguish reused pids; 0: not known yet */
    bool joined;
    bool other_user;
    bool folder_hidden;
    unsigned times_seen;
    char reason[128];
    const char *command; /* in the arena of names */
    size_t command_bytes;
} tare__process_entry;

/* ---- samples ----------------------------------------------------------------------------------------------- */
typedef struct tare__sample_value {
    int64_t value;
    uint32_t series;
} tare__sample_value;

typedef struct tare__sampling {
    tare__sample_set *set;  /* NULL: no sampling */
    tare__samples *samples; /* NULL: only the list of processes is used */
    tare__series *series;   /* all, by id - 1; their texts in `texts` */
    size_t series_count, series_room;
    uint32_t *fresh; /* ids of series that are new or changed since they were written */
    size_t fresh_count, fresh_room;
    tare__sample_value *values; /* values of the current sample */
    size_t value_count, value_room;
    bool late; /* the previous sample was discarded */
    tare__intern *texts;
    uint64_t sealed_ns;
    uint64_t interval_ns; /* as requested */
    uint32_t oom_series;  /* processes killed in the job's control group */
    int64_t oom_first, oom_last;
    bool oom_known;
    int64_t oom_machine; /* killed on the whole machine before the start; -1: unknown */
} tare__sampling;

typedef struct tare__stack_thread_state tare__stack_thread_state;
typedef struct tare__stack_options {
    pid_t target;
    uint64_t interval_ns; /* 0: the default; TARE__RUN_NO_SAMPLES */
    bool native;
} tare__stack_options;

/* What the kernel reports for the direct child and the children it waited for. */
typedef struct tare__child_usage {
    bool known;
    uint64_t user_ns, system_ns;
    uint64_t peak_bytes; /* 0: unknown */
} tare__child_usage;

typedef struct tare__source {
    char path[TARE__PATH_BYTES];
    char file[64];
    tare__ring *ring;
    uint64_t bytes; /* of the file, all mapped */
    uint64_t mapped;
    uint64_t names_offset, chunks_offset; /* as checked when it was opened, since the program could change it */
    int fd;    /* -1: descriptors are scarce, opened by path when needed */
    int pidfd; /* -1: likewise; its pid is checked */
    pid_t pid; /* in the outer namespace */
    uint64_t start_time; /* from the kernel, if pidfd is -1; 0: unknown */
    int64_t rank; /* -1: none */
    bool gone; /* the process ended, or became another program */
    bool lives; /* salvaging: it is still running without a collector */
    bool broken;
    bool shared; /* the process sees changes to its chunks */
    bool full_grown; /* it cannot grow any more */
    char reason[128];
    uint32_t process; /* number in the file */
    uint32_t taken_seen;
    uint32_t most_waiting; /* chunks found at a tick, maximum so far */
    uint64_t scanned_ns;
    uint64_t asked_ns; /* whether it is alive, according to its pid */
    uint64_t liveness_ns;
    uint64_t left_ticks;
    uint32_t *name_map; /* ring name id to file name id */
    tare__stream **streams; /* by number - 1; NULL: not seen or ended */
    size_t stream_room;
} tare__source;

typedef struct tare__ring_file {
    char name[64];
} tare__ring_file;

/* An executable file, to identify a process that records under another name. */
typedef struct tare__program {
    dev_t device;
    ino_t inode;
} tare__program;
#define TARE__PROGRAMS_MAX 16
#define TARE__RESERVE_FDS 3

typedef struct tare__collector {
    tare__folder folder;
    tare__writer writer;
    tare__squeezer *squeezer;
    tare__events_encoder *encoder;
    tare__intern *names; /* kind byte + text; file id is index + 1 */
    uint32_t new_name_count; /* not in the file yet */
    tare__arena *name_arena;
    tare__file_name *all_names;
    size_t all_name_room;
    tare__complete_span *complete;
    uint32_t complete_count;
    tare__fact facts[TARE__FACTS_MAX];
    uint32_t fact_count;
    tare__span_stack before; /* open spans before the current block */
    tare__text block, fields;
    tare__text run_fields; /* of the RUN block */
    tare__source **sources;
    uint32_t source_count;
    size_t source_room;
    tare__process_entry *processes;
    uint32_t process_count;
    size_t process_room;
    uint32_t joined;
    uint32_t stream_count;
    uint64_t sync_ns, sync_gap_ns;
    uint64_t started_ns, started_ticks;
    uint64_t last_ns, folder_scan_ns, active_ns, moving_ns;
    uint64_t dropped_spans, unattributed_spans;
    uint64_t rotate_check_ns;
    uint64_t place_ns;   /* time of the last choice of a CPU */
    cpu_set_t busy_cpus; /* chunks filled there since */
    cpu_set_t own_cpus;  /* CPUs that may be used; empty until determined */
    bool aside;
    uint64_t given_back; /* chunks so far, as a measure of its activity */
    bool salvaging;
    uint32_t unread_rings;   /* salvaging: files that are not rings any more, or could not be opened */
    uint32_t broken_rings;   /* opened, and not read to their end: invalid, or a system call failed */
    uint64_t last_ticks;     /* salvaging: the last known time, in the file or in the rings */
    tare__clock_sync first_sync, last_sync; /* salvaging: in the file; ticks 0: none */
    uint32_t *entry_of;  /* index in the samplers' list to index in `processes` + 1 */
    size_t entry_of_room;
    tare__sampling sampling;
    tare__stack_thread_state *stacks; /* NULL: no stack sampling */
    uint64_t stack_cpu_ns; /* of its thread, once it has ended */
    tare__child_usage child;
    bool oom_killed;
    int reserve[TARE__RESERVE_FDS]; /* descriptors + 1 that samplers cannot take; 0: lent, or none */
    bool keeps_reserve;
    tare__ring_file *done; /* read to their end but not removable */
    uint32_t done_count;
    size_t done_room;
    bool page_cut;    /* the session file was truncated */
    bool folder_gone; /* the session's folder was removed */
    int unread_error; /* errno of the last ring that could not be opened; 0 */
    tare__program programs[TARE__PROGRAMS_MAX]; /* that recorded */
    uint32_t program_count;
    bool program_missed; /* one ended before it could be sampled and may have been of this kind */
    tare__text notes; /* lines for the END block */
    char warnings[1024]; /* of these: which stacks could not be sampled at all */
    tare__text ended; /* salvaging: the END fields of a collector that was not killed; empty: it was */
    uint64_t ended_realtime, ended_ticks; /* of it */
    uint64_t steps; /* begun */
    bool of_another_user;     /* the process that was attached to */
    uint64_t busy_pool_bytes; /* limit for a process that records a lot; 0: the default */
} tare__collector;

int tare__collector_open(tare__collector *collector, tare__error *error);
void tare__collector_free(tare__collector *collector);
/* What runs, for the RUN block. */
typedef struct tare__run_about {
    char *const *command;
    pid_t attached;       /* 0: launched */
    uint64_t interval_ns; /* sampling interval; 0: no sampling */
    double carbon_g_per_kwh;
    tare__peaks peaks; /* of the machine */
} tare__run_about;
int tare__collector_head(tare__collector *collector, const tare__run_about *about);
/* One pass over all rings. `final`: everything, including empty slots, of rings whose process is gone. */
void tare__collector_tick(tare__collector *collector);
/* All remaining events, the names again, and the END block. */
void tare__collector_finish(tare__collector *collector, int exit_status, int signal, uint32_t left_running);
uint32_t tare__collector_recording(const tare__collector *collector); /* joined processes still alive */
void tare__collector_write_sync(tare__collector *collector, const tare__clock_sync *sync);
/* How long the caller may sleep. */
/* Sleeps until the next tick is due, or until `fds` (n of them, revents set) are readable. */
#define TARE__PAUSE_FDS 3
void tare__collector_pause(const tare__collector *collector, struct pollfd *fds, nfds_t n);

/* place.c */
void tare__note_busy_cpu(tare__collector *collector, int cpu); /* a chunk was filled there */
void tare__move_aside(tare__collector *collector); /* moves the collector off the CPUs where the program records, if
                                                    * there are others */

/* sources.c */
void tare__sources_find(tare__collector *collector); /* hellos and new ring files */
void tare__reserve_take(tare__collector *collector); /* from here on it is lent to rings and the folder only */
void tare__reserve_give_up(tare__collector *collector);
void tare__source_done(tare__collector *collector, const tare__source *source); /* removes its file */
uint32_t tare__sources_unread(const tare__collector *collector); /* complete ring files in the folder that are not
                                                                  * open */
void tare__program_note(tare__collector *collector, pid_t pid); /* it records, or will */
/* Processes that have this session in their environment and run a recorded program, but are not in the list: they
 * were orphaned before the first sample, so they have no known ancestor. */
uint32_t tare__orphans_of(const tare__collector *collector, const tare__sampled_process *list, size_t count);
bool tare__runs_recorded_program(const tare__collector *collector, pid_t pid);
void tare__source_free(tare__source *source);
bool tare__source_in_use(tare__collector *collector, const tare__source *source);
tare__stream *tare__source_stream(tare__collector *collector, tare__source *source, const tare__chunk *chunk);
void tare__source_grow(tare__collector *collector, tare__source *source);
/* False: the ring is not valid any more, or cannot be opened now. */
bool tare__source_map_growth(tare__collector *collector, tare__source *source);
void tare__source_check_alive(tare__collector *collector, tare__source *source);
/* drain.c */
void tare__source_drain(tare__collector *collector, tare__source *source, bool final);
/* describe.c */
int64_t tare__rank_in(const char *environment, size_t bytes); /* as in /proc; -1: none */
int64_t tare__rank_of(pid_t pid);
void tare__tell_process(tare__collector *collector, tare__source *source, int exit_status);
void tare__tell_stream(tare__collector *collector, tare__source *source, tare__stream *stream);
uint32_t tare__file_name_of(tare__collector *collector, tare__source *source, uint32_t id);
uint32_t tare__file_name_add(tare__collector *collector, uint32_t kind, uint32_t line, const char *text,
                             size_t text_bytes, const char *file, size_t file_bytes);
void tare__flush_names(tare__collector *collector, tare__text *out);
/* samples.c */
void tare__sampling_open(tare__collector *collector, pid_t target, const tare__record_options *options);
uint64_t tare__sampling_interval_ns(uint64_t asked_ns); /* 0: no samples */
uint64_t tare__sampling_due_ns(const tare__collector *collector); /* UINT64_MAX: never */
/* Takes a sample if it is due; `last`: in any case, with everything. True: it did. */
bool tare__sampling_tick(tare__collector *collector, bool last);
void tare__sampling_flush(tare__collector *collector); /* writes the collected values as blocks */
bool tare__sampling_oom(const tare__collector *collector, bool killed); /* killed: by SIGKILL */
void tare__sampling_free(tare__collector *collector);
/* stacks.c */
void tare__stacks_open(tare__collector *collector, const tare__stack_options *options);
/* Takes over finished blocks; `fresh_list`: passes on the samplers' list of processes. */
void tare__stacks_tick(tare__collector *collector, bool fresh_list);
/* symbols.c: appends blocks with the names of all native frames. `own`: of programs of this user. 0 or
 * TARE_E_MEMORY. */
int tare__symbolize(tare__stacks *stacks, bool own, tare__squeezer *squeezer, tare__text *out, tare__text *notes);
void tare__stacks_finish(tare__collector *collector); /* ends the thread and writes what is left */
/* tree.c */
uid_t tare__user_of(pid_t pid); /* its effective user; -1: unknown */
void tare__tree_update(tare__collector *collector); /* updates the processes from the samplers' list */
void tare__process_joined(tare__collector *collector, pid_t pid);
/* Adds when a Python process was ready and what it imported, if it reported that. pid: the current one. */
void tare__tell_imports(tare__collector *collector, pid_t pid, tare__text *fields);
void tare__tree_tell(tare__collector *collector); /* those that were seen and never joined */

#endif
