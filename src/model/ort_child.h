/* ort_child: measures one configuration in a separate process, so that a crash of the runtime costs one row. The
 * child writes its results to a board in shared memory, which outlives it. One child at a time.
 * Must not know how the figures are used. */
#ifndef TARE_MODEL_ORT_CHILD_H
#define TARE_MODEL_ORT_CHILD_H

#include "ort.h"

typedef enum tare__board_phase {
    TARE__BOARD_START,
    TARE__BOARD_RUNTIME,
    TARE__BOARD_LOAD,
    TARE__BOARD_WARM,
    TARE__BOARD_RUN,
    TARE__BOARD_PROFILE,
    TARE__BOARD_BESIDE, /* with the commands before and after the model */
    TARE__BOARD_DONE
} tare__board_phase;

#define TARE__BOARD_WARM_MAX   1000u
#define TARE__BOARD_BESIDE_MAX 1000u

typedef struct tare__board {
    uint32_t phase;   /* tare__board_phase, stored last */
    int status;       /* 0: no error so far */
    tare__error error;
    char version[32];
    char library[4096];
    char profile[4096];
    double runtime_ns, load_ns, first_ns;
    size_t warm_done;
    bool steady;
    double warm_cv;
    size_t run_done, beside_done;
    double end_ns;    /* of the timed runs */
    double before_bytes, loaded_bytes, load_peak_bytes, peak_bytes; /* NaN: unknown */
    double rss_first_bytes, rss_last_bytes; /* at both ends of the timed runs */
    size_t runs_room;
    double warm_ns[TARE__BOARD_WARM_MAX];
    double pre_ns[TARE__BOARD_BESIDE_MAX], beside_ns[TARE__BOARD_BESIDE_MAX], post_ns[TARE__BOARD_BESIDE_MAX];
    double values[];  /* start times and durations of runs: runs_room each */
} tare__board;

typedef struct tare__job {
    const char *library;
    const char *model;       /* NULL: only the library is opened */
    unsigned threads;
    tare__ort_tensor *tensors;
    size_t n_tensors;
    size_t runs, least;      /* at most, and at least */
    double seconds;          /* for the runs between */
    size_t warmup;
    bool warmup_is_fixed;
    const char *profile;     /* prefix of a path: the runs are profiled and not timed; NULL */
    const char *pre, *post;
    size_t beside_runs;
} tare__job;

/* In the child. Errors are written to the board. */
void tare__job_do(const tare__job *job, tare__board *board);

/* The pre- and postprocessing commands, in the child, after the timed runs. */
int tare__beside_measure(const tare__job *job, tare__ort_session *session, tare__board *board, tare__error *error);

typedef struct tare__child_seen {
    double rss_sum;   /* over samples during the timed runs */
    size_t samples;
    char death[160];  /* how it ended, if not normally; "" */
    char words[200];  /* the last line it wrote to standard error; "" */
} tare__child_seen;

tare__board *tare__board_new(size_t runs); /* NULL: out of memory */
void tare__board_free(tare__board *board);
/* Forks, waits and samples. 0; TARE_E_SYSTEM with a message: there is no child. */
int tare__child_run(const tare__job *job, tare__board *board, tare__child_seen *seen, tare__error *error);

/* Resident memory of a process (0: this one) now, and its high-water mark; NaN: unknown. */
double tare__rss_now(int pid);
double tare__rss_peak(void);
bool tare__rss_reset_peak(void);

#endif
