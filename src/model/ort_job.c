/* ort_job: what the child does: loads the runtime and the model, warms up until runs are stable, times them.
 * The only thread of Tare in the child; the runtime has its own.
 * Must not know who reads the board. */
#define _GNU_SOURCE
#include "ort_child.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WARM_SECONDS  10.0
#define WARM_FIRST    10u /* runs before the first check for stability */
#define PATIENCE      10.0 /* multiple of the given seconds */
#define RUNS_LEAST    3u
#define PROFILED_RUNS 11u /* the first of them is not counted */

static void enter(tare__board *board, tare__board_phase phase)
{
    __atomic_store_n(&board->phase, (uint32_t)phase, __ATOMIC_RELEASE);
}

static int load(const tare__job *job, tare__ort *ort, tare__ort_session *session, tare__board *board)
{
    enter(board, TARE__BOARD_RUNTIME);
    uint64_t from = tare__monotonic_ns();
    int status = tare__ort_open(ort, job->library, &board->error);
    if (status)
        return status;
    if (job->model)
        tare__ort_start(ort);
    board->runtime_ns = (double)(tare__monotonic_ns() - from);
    memcpy(board->version, ort->version, sizeof board->version);
    memcpy(board->library, ort->dl.path, sizeof board->library);
    board->before_bytes = tare__rss_now(0);
    if (!job->model)
        return 0;
    enter(board, TARE__BOARD_LOAD);
    from = tare__monotonic_ns();
    status = tare__ort_load(session, ort, job->model, job->threads, job->profile, &board->error);
    if (status)
        return status;
    board->load_ns = (double)(tare__monotonic_ns() - from);
    board->loaded_bytes = tare__rss_now(0);
    board->load_peak_bytes = tare__rss_peak();
    return tare__ort_feed(session, job->tensors, job->n_tensors, &board->error);
}

/* ---- warming up ----------------------------------------------------------------------------------------------- */
static int warm_until_steady(tare__ort_session *session, tare__board *board)
{
    double begin[TARE__BOARD_WARM_MAX];
    uint64_t until = tare__monotonic_ns() + (uint64_t)(WARM_SECONDS * 1e9);
    size_t done = 0, target = WARM_FIRST;
    while (done < TARE__BOARD_WARM_MAX && (done < 2 || tare__monotonic_ns() < until)) {
        size_t more = 0;
        int status = tare__ort_loop(session, target - done, done ? 0 : 2, until, begin, board->warm_ns + done, &more,
                                    &board->error);
        done += more;
        board->warm_done = done;
        if (status)
            return status;
        tare__steady steady = tare__steady_state(board->warm_ns, done);
        board->steady = steady.reached;
        board->warm_cv = steady.cv;
        if (steady.reached)
            break;
        target = done * 2 < TARE__BOARD_WARM_MAX ? done * 2 : TARE__BOARD_WARM_MAX;
    }
    return 0;
}

static int warm(const tare__job *job, tare__ort_session *session, tare__board *board)
{
    double begin[TARE__BOARD_WARM_MAX];
    enter(board, TARE__BOARD_WARM);
    int status = job->warmup_is_fixed ? tare__ort_loop(session, job->warmup, job->warmup, 0, begin, board->warm_ns,
                                                       &board->warm_done, &board->error)
                                      : warm_until_steady(session, board);
    if (!status && job->warmup_is_fixed) {
        tare__steady steady = tare__steady_state(board->warm_ns, board->warm_done);
        board->steady = steady.reached;
        board->warm_cv = steady.cv;
    }
    board->first_ns = board->warm_done ? board->warm_ns[0] : NAN;
    return status;
}

/* ---- the timed runs ------------------------------------------------------------------------------------------- */
/* If time is the limit, a model whose runs take seconds is not run for many minutes. */
static size_t least_runs(const tare__job *job, const tare__board *board)
{
    double last_ns = board->warm_done ? board->warm_ns[board->warm_done - 1] : 0, most = PATIENCE * job->seconds * 1e9;
    if (job->least == job->runs || (double)job->least * last_ns <= most)
        return job->least;
    return most / last_ns > RUNS_LEAST ? (size_t)(most / last_ns) : RUNS_LEAST;
}

static int time_runs(const tare__job *job, tare__ort_session *session, tare__board *board)
{
    bool fresh = tare__rss_reset_peak();
    board->rss_first_bytes = tare__rss_now(0);
    enter(board, TARE__BOARD_RUN);
    int status = tare__ort_loop(session, job->runs, least_runs(job, board),
                                tare__monotonic_ns() + (uint64_t)(job->seconds * 1e9), board->values,
                                board->values + board->runs_room, &board->run_done, &board->error);
    board->end_ns = (double)tare__monotonic_ns();
    board->rss_last_bytes = tare__rss_now(0);
    board->peak_bytes = fresh ? tare__rss_peak() : NAN;
    if (isnan(board->first_ns) && board->run_done)
        board->first_ns = board->values[board->runs_room];
    return status;
}

static int profile_runs(tare__ort_session *session, tare__board *board, const tare__job *job)
{
    double begin[PROFILED_RUNS], took[PROFILED_RUNS];
    size_t done = 0;
    tare__text path = {0};
    enter(board, TARE__BOARD_PROFILE);
    int status = tare__ort_loop(session, PROFILED_RUNS, 2, tare__monotonic_ns() + (uint64_t)(job->seconds * 1e9), begin,
                                took, &done, &board->error);
    if (!status)
        status = tare__ort_profile_end(session, &path, &board->error);
    if (!status)
        snprintf(board->profile, sizeof board->profile, "%s", path.data);
    tare__text_free(&path);
    return status;
}

void tare__job_do(const tare__job *job, tare__board *board)
{
    tare__ort ort = {0};
    tare__ort_session session = {0};
    int status = load(job, &ort, &session, board);
    bool timed = job->model && !job->profile;
    if (!status && job->profile)
        status = profile_runs(&session, board, job);
    if (!status && timed)
        status = warm(job, &session, board);
    if (!status && timed)
        status = time_runs(job, &session, board);
    if (!status && timed && (job->pre || job->post)) {
        enter(board, TARE__BOARD_BESIDE);
        status = tare__beside_measure(job, &session, board, &board->error);
    }
    board->status = status;
    if (!status)
        enter(board, TARE__BOARD_DONE);
    /* Nothing is released: the process exits here, and some runtimes crash on release. */
}
