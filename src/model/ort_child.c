/* ort_child: forks the process that measures, samples its memory while it runs, and reports how it ended.
 * The calling thread, which must be the only one; the child shares only the board with it.
 * Must not know what is measured. */
#define _GNU_SOURCE
#include "ort_child.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tare.h"

#define SAMPLE_NS 10000000

static size_t bytes_of(size_t runs)
{
    return sizeof(tare__board) + 2 * runs * sizeof(double);
}

tare__board *tare__board_new(size_t runs)
{
    tare__board *board = mmap(NULL, bytes_of(runs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return NULL;
    board->runs_room = runs;
    board->runtime_ns = board->load_ns = board->first_ns = board->warm_cv = NAN;
    board->before_bytes = board->loaded_bytes = board->load_peak_bytes = board->peak_bytes = NAN;
    board->rss_first_bytes = board->rss_last_bytes = NAN;
    return board;
}

void tare__board_free(tare__board *board)
{
    if (board)
        munmap(board, bytes_of(board->runs_room));
}

/* ---- the child ------------------------------------------------------------------------------------------------ */
/* Standard output is for the report; the runtime's output on standard error is kept in case it dies. */
static void child(const tare__job *job, tare__board *board, int words, pid_t parent)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGINT, SIGTERM};
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct rlimit none = {0, 0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(words >= 0 ? words : nothing, STDERR_FILENO);
    setrlimit(RLIMIT_CORE, &none); /* a crash here is reported in the table, no core file is needed */
    for (size_t i = 0; i < TARE__COUNT_OF(deadly); i++)
        signal(deadly[i], SIG_DFL); /* restore the default, so that a crash is detected as one */
    signal(SIGPIPE, SIG_IGN);
    tare__job_do(job, board);
    _exit(0);
}

/* ---- its parent ----------------------------------------------------------------------------------------------- */
static void sample_rss(pid_t pid, const tare__board *board, tare__child_seen *seen)
{
    if (__atomic_load_n(&board->phase, __ATOMIC_ACQUIRE) != TARE__BOARD_RUN)
        return;
    double now = tare__rss_now(pid);
    if (isnan(now))
        return;
    seen->rss_sum += now;
    seen->samples++;
}

static int wait_for(pid_t pid, const tare__board *board, tare__child_seen *seen)
{
    const struct timespec pause = {.tv_nsec = SAMPLE_NS};
    int status = 0;
    pid_t ended;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        sample_rss(pid, board, seen);
        nanosleep(&pause, NULL);
    }
    return ended < 0 ? 0 : status;
}

static void say_death(int status, const tare__board *board, tare__child_seen *seen)
{
    static const char *const doing[] = {"before it began",
                                        "loading the runtime",
                                        "loading the model",
                                        "warming up",
                                        "running",
                                        "running profiled",
                                        "running with the commands beside it",
                                        "at its end"};
    uint32_t phase = board->phase < TARE__COUNT_OF(doing) ? board->phase : 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        snprintf(seen->death, sizeof seen->death, "the process was killed %s: out of memory, most likely",
                 doing[phase]);
    else if (WIFSIGNALED(status))
        snprintf(seen->death, sizeof seen->death, "the runtime crashed %s: %s", doing[phase],
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) || (!board->status && board->phase != TARE__BOARD_DONE))
        snprintf(seen->death, sizeof seen->death, "the runtime ended the process %s, status %d", doing[phase],
                 WEXITSTATUS(status));
}

/* The last line that is not empty. */
static void read_words(int words, tare__child_seen *seen)
{
    char text[4096];
    off_t end = lseek(words, 0, SEEK_END);
    size_t got = 0;
    if (end <= 0)
        return;
    uint64_t from = end > (off_t)sizeof text - 1 ? (uint64_t)end - (sizeof text - 1) : 0;
    tare__pread_all(words, text, sizeof text - 1, from, &got);
    while (got && (text[got - 1] == '\n' || text[got - 1] == ' '))
        got--;
    text[got] = '\0';
    const char *line = strrchr(text, '\n');
    snprintf(seen->words, sizeof seen->words, "%.190s", line ? line + 1 : text);
}

int tare__child_run(const tare__job *job, tare__board *board, tare__child_seen *seen, tare__error *error)
{
    *seen = (tare__child_seen){0};
    int words = memfd_create("tare-words", MFD_CLOEXEC);
    pid_t self = getpid(), pid = fork();
    if (pid == 0)
        child(job, board, words, self);
    int status = pid < 0 ? tare__fail(error, TARE_E_SYSTEM, "cannot start a process: %s", strerror(errno)) : 0;
    if (!status)
        say_death(wait_for(pid, board, seen), board, seen);
    if (words >= 0 && (seen->death[0] || board->phase == TARE__BOARD_BESIDE))
        read_words(words, seen);
    if (words >= 0)
        close(words);
    return status;
}
