/* state: whether a thread of another process runs, is ready, or waits, from files of /proc/PID/task/TID.
 * One thread owns a reader. The other process is not paused, and may end at any time.
 * Must not know what system calls mean, nor what the answers are used for.
 *
 * The file "syscall" says `running` of a thread that runs and of one that waits for a CPU. They differ in two counters:
 * the third number in schedstat counts how often the thread got a CPU, and nr_switches how often it left one. The other
 * numbers do not decide: the CPU time of a thread that runs is updated at clock ticks only, and its delay is added when
 * it gets a CPU. Most reads need one file: CPU time grows whenever a thread leaves its CPU, so that one that ran still
 * runs if no number changed, and one that was ready still waits for a CPU if its count did not.
 *
 * A sampler needs less: with many reads, the counters say how much of the time on or waiting for a CPU was on one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "files.h"
#include "state.h"
#include "state_wait.h"

#define CALL_BYTES 256
#define TOTALS_BYTES 96
#define SWITCHES_BYTES 4096
#define DENIED_READS 256u /* until the permission is tried again: it changes with exec and setuid */
/* A thread that left its CPU this long before the reader got it was interrupted by the reader. */
#define INTERRUPTED_NS 500000
#define LATE_NS 50000000u  /* the totals of a busy thread at a glance */
#define RECENT_NS 2e8      /* of time on or waiting for a CPU: which share was on one */

enum { TOTALS, CALL, SWITCHES, STATUS, STAT, FILES };
static const char *const names[FILES] = {"schedstat", "syscall", "sched", "status", "stat"};

typedef enum place { OFF_CPU, ON_CPU, NOT_KNOWN } place;

struct tare__thread_reader {
    tare__waiting waiting;
    uint64_t start_time;
    int fds[FILES]; /* -1: not kept */
    bool opened;    /* a file during this read, by its path */
    bool read_before;
    bool no_switches; /* a kernel without "sched": "status" has the counts, too, and costs more */
    unsigned denied; /* reads until "syscall" is tried again; 0: it is read */
    char totals[TOTALS_BYTES], call[CALL_BYTES]; /* as read last */
    int totals_bytes, call_bytes;
    uint64_t arrivals; /* how often it got a CPU */
    int64_t base;      /* arrivals minus departures while it is off the CPU: some kernels miss a few arrivals */
    bool base_known;
    unsigned growths;  /* of CPU time without an arrival, of a thread believed to be off the CPU */
    bool settled;      /* the state was confirmed by the letter in "stat" */
    bool interrupted;  /* RUNNING, as only this reader keeps it from its CPU */
    uint64_t glance_ns, totals_ns;  /* the last one; the last one that read the totals */
    uint64_t since_ns, since_on_ns; /* it is busy or not since then; its totals at that time */
    bool busy;                      /* on or waiting for a CPU most of the time */
    double cpu_ns, queue_ns;        /* recent time on and waiting for a CPU */
    double owed_ns;                 /* of time on a CPU, less that of the samples on one */
    uint64_t told_cpu_ns, told_queue_ns; /* totals at the last glance: read or, where they were late, estimated */
    tare__thread_now last;
};

/* ---- files ------------------------------------------------------------------------------------------------------ */

static int read_once(int fd, char *out, size_t room)
{
    ssize_t got;
    do
        got = pread(fd, out, room - 1, 0);
    while (got < 0 && errno == EINTR);
    out[got > 0 ? got : 0] = '\0';
    return got < 0 ? -errno : (int)got;
}

/* Bytes, or a negative errno. */
static int read_file(tare__thread_reader *reader, int file, char *out, size_t room)
{
    if (reader->fds[file] >= 0)
        return read_once(reader->fds[file], out, room);
    char path[80];
    out[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)reader->waiting.pid, (int)reader->waiting.tid, names[file]);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    reader->opened = true;
    int got = read_once(fd, out, room);
    if (got >= 0 && !tare__is_scarce(fd))
        reader->fds[file] = fd;
    else
        close(fd);
    return got;
}

static void close_file(tare__thread_reader *reader, int file)
{
    if (reader->fds[file] >= 0)
        close(reader->fds[file]);
    reader->fds[file] = -1;
}

tare__thread_reader *tare__thread_open(pid_t pid, pid_t tid)
{
    tare__thread_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    for (int i = 0; i < FILES; i++)
        reader->fds[i] = -1;
    tare__waiting_start(&reader->waiting, pid, tid);
    reader->start_time = tare__waiting_stat(&reader->waiting).start_time;
    return reader;
}

void tare__thread_close(tare__thread_reader *reader)
{
    if (!reader)
        return;
    for (int i = 0; i < FILES; i++)
        close_file(reader, i);
    free(reader);
}

static tare__task_stat read_stat(tare__thread_reader *reader)
{
    char text[1024];
    int got = read_file(reader, STAT, text, sizeof text);
    return tare__task_stat_of(text, got);
}

static bool has_ended(char letter)
{
    return letter == 'Z' || letter == 'X' || letter == 'x';
}

/* ---- totals ----------------------------------------------------------------------------------------------------- */

static bool parse_totals(const char *text, int bytes, uint64_t out[3])
{
    tare__scan scan = tare__scan_of(text, bytes);
    for (int i = 0; i < 3; i++) {
        int64_t value;
        if (!tare__scan_number(&scan, &value) || value < 0)
            return false;
        out[i] = (uint64_t)value;
    }
    return out[0] > 0 || out[2] > 0; /* a kernel that does not count has zeros */
}

/* Another program, or another thread with this number (exec by a thread that is not the first). */
static void forget(tare__thread_reader *reader)
{
    reader->base_known = reader->settled = reader->interrupted = false;
    reader->growths = 0;
    reader->last.state = TARE__STATE_UNKNOWN;
    tare__waiting_start(&reader->waiting, reader->waiting.pid, reader->waiting.tid);
}

/* CPU time that grows twice without an arrival, of a thread that was thought to wait for a CPU: its arrival was not
 * counted. Once: it left between two reads. */
static void find_missed_arrival(tare__thread_reader *reader, const uint64_t totals[3])
{
    bool grew = totals[2] == reader->arrivals && totals[0] > reader->last.cpu_ns;
    if (totals[2] != reader->arrivals || reader->last.state != TARE__STATE_RUNNABLE)
        reader->growths = 0;
    else if (grew && ++reader->growths == 2) {
        reader->base--;
        reader->growths = 0;
    }
}

static void take_totals(tare__thread_reader *reader, const char *text, int bytes)
{
    uint64_t totals[3];
    memcpy(reader->totals, text, (size_t)bytes + 1);
    reader->totals_bytes = bytes;
    reader->last.known = parse_totals(text, bytes, totals);
    if (!reader->last.known)
        return;
    if (totals[0] < reader->last.cpu_ns || totals[2] < reader->arrivals)
        forget(reader);
    find_missed_arrival(reader, totals);
    reader->last.cpu_ns = totals[0];
    reader->last.queue_ns = totals[1];
    reader->arrivals = totals[2];
}

typedef enum reading { CHANGED, SAME, ENDED, NOT_NOW } reading;

static reading read_totals(tare__thread_reader *reader)
{
    char text[TOTALS_BYTES];
    int got = read_file(reader, TOTALS, text, sizeof text);
    if (tare__sample_failed_here(got))
        return NOT_NOW;
    if (got == -ESRCH)
        return ENDED;
    if (got < 0) { /* a kernel without this file */
        reader->last.known = false;
        tare__task_stat stat = read_stat(reader);
        return stat.letter && !has_ended(stat.letter) ? CHANGED : ENDED;
    }
    if (reader->read_before && got == reader->totals_bytes && memcmp(text, reader->totals, (size_t)got) == 0)
        return SAME;
    take_totals(reader, text, got);
    return CHANGED;
}

/* ---- on a CPU or not -------------------------------------------------------------------------------------------- */

/* The number after "name" and a colon, at the start of a line. */
static bool value_of(const char *text, const char *name, int64_t *value)
{
    const char *line = text;
    size_t bytes = strlen(name);
    for (; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, bytes) != 0)
            continue;
        tare__scan rest = tare__scan_of(line + bytes, (int)strcspn(line + bytes, "\n"));
        tare__scan_blanks(&rest);
        return tare__scan_skip(&rest, ":") && tare__scan_number(&rest, value);
    }
    return false;
}

/* "se.exec_start  :  12507121.527808", in ms: when its CPU time was last updated; 0: unknown. */
static int64_t updated_ns(const char *text)
{
    const char *line = strstr(text, "\nse.exec_start"), *at = line ? strchr(line + 1, ':') : NULL;
    int64_t whole, part, ns;
    if (!at)
        return 0;
    tare__scan rest = tare__scan_of(at + 1, (int)strcspn(at + 1, "\n"));
    if (!tare__scan_number(&rest, &whole) || !tare__scan_skip(&rest, ".") || !tare__scan_number(&rest, &part) ||
        !tare__scan_times(whole, 1000000, &ns))
        return 0;
    return ns + part;
}

/* How often it left a CPU; false: unknown. */
static bool read_switches(tare__thread_reader *reader, int64_t *switches, int64_t *left_ns)
{
    char text[SWITCHES_BYTES];
    int64_t forced;
    *left_ns = 0;
    if (!reader->no_switches) {
        int got = read_file(reader, SWITCHES, text, sizeof text);
        if (got > 0 && value_of(text, "nr_switches", switches)) {
            *left_ns = updated_ns(text);
            return true;
        }
        reader->no_switches = got != -ESRCH && !tare__sample_failed_here(got);
    }
    if (read_file(reader, STATUS, text, sizeof text) <= 0 || !value_of(text, "voluntary_ctxt_switches", switches) ||
        !value_of(text, "nonvoluntary_ctxt_switches", &forced))
        return false;
    *switches += forced;
    return true;
}

static bool is_expected(const tare__thread_reader *reader, int64_t difference)
{
    return reader->base_known && (difference == reader->base || difference == reader->base + 1);
}

static void calibrate(tare__thread_reader *reader, int64_t difference)
{
    if (!reader->base_known)
        reader->base = difference > 0 ? difference - 1 : difference;
    else if (difference < reader->base)
        reader->base = difference;
    else if (difference > reader->base + 1)
        reader->base = difference - 1;
    reader->base_known = true;
}

/* The two counters are not read at the same time: if they do not fit, once more. */
static place find_place(tare__thread_reader *reader, int64_t *left_ns)
{
    int64_t switches, difference = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (!reader->last.known || !read_switches(reader, &switches, left_ns))
            return NOT_KNOWN;
        difference = (int64_t)reader->arrivals - switches;
        if (is_expected(reader, difference) || (!reader->base_known && (difference == 0 || difference == 1)))
            break;
        if (read_totals(reader) == ENDED)
            return NOT_KNOWN;
    }
    calibrate(reader, difference);
    return difference > reader->base ? ON_CPU : OFF_CPU;
}

/* The reader runs on the CPU of this thread, which left it just when the reader got it: without the reader it would
 * run. */
static bool is_interrupted(tare__thread_reader *reader, int64_t left_ns)
{
    char text[SWITCHES_BYTES];
    if (left_ns == 0 || read_stat(reader).cpu != sched_getcpu() ||
        tare__sample_read("", "/proc/thread-self/sched", text, sizeof text) <= 0)
        return false;
    int64_t since = updated_ns(text) - left_ns;
    return since >= 0 && since < INTERRUPTED_NS;
}

/* ---- system calls ----------------------------------------------------------------------------------------------- */

static bool hex_number(tare__scan *text, uint64_t *out)
{
    tare__scan_blanks(text);
    if (!tare__scan_skip(text, "0x"))
        return false;
    uint64_t value = 0;
    int digits = 0;
    for (; text->at < text->end && digits < 17; text->at++, digits++) {
        char c = *text->at;
        bool decimal = c >= '0' && c <= '9';
        if (!decimal && (c < 'a' || c > 'f'))
            break;
        value = value << 4 | (unsigned)(decimal ? c - '0' : c - 'a' + 10);
    }
    *out = value;
    return digits > 0 && digits <= 16;
}

/* "0 0x3 0x7f85 0x20000 0x22 0xffffffff 0x0 0x7ffc 0x7f85": number, arguments, stack, code; "-1 0x7ffc 0x7f85". */
static bool parse_call(const char *text, int bytes, tare__call *call)
{
    tare__scan scan = tare__scan_of(text, bytes);
    memset(call, 0, sizeof *call);
    if (!tare__scan_number(&scan, &call->number))
        return false;
    for (int i = 0; i < 6 && call->number >= 0; i++)
        if (!hex_number(&scan, &call->arguments[i]))
            return false;
    if (call->number < 0)
        call->number = TARE__CALL_NONE;
    return hex_number(&scan, &call->stack) && hex_number(&scan, &call->code);
}

static const struct {
    char letter;
    tare__thread_state state;
} letters[] = {{'R', TARE__STATE_RUNNING}, {'D', TARE__STATE_DISK}, {'\0', TARE__STATE_UNKNOWN}};

static tare__thread_state state_of_letter(char letter)
{
    for (size_t i = 0; i < TARE__COUNT_OF(letters); i++)
        if (letters[i].letter == letter)
            return letters[i].state;
    return TARE__STATE_OTHER;
}

static void take_state(tare__thread_reader *reader, tare__thread_state state)
{
    reader->last.state = state;
    reader->last.system_call = -1;
    reader->last.lock = reader->last.stack = reader->last.code = 0;
    reader->interrupted = false;
    reader->call_bytes = 0;
}

/* The same answer twice: a stopped thread shows the call in which it was stopped, and only the letter tells. */
static bool settle(tare__thread_reader *reader)
{
    int64_t switches, left_ns;
    char letter = tare__waiting_stat(&reader->waiting).letter;
    reader->settled = true;
    if (has_ended(letter))
        return false;
    if (letter == 'T' || letter == 't') {
        reader->last.state = TARE__STATE_OTHER;
        reader->last.lock = 0;
    }
    if (reader->fds[SWITCHES] >= 0 && reader->last.known && read_switches(reader, &switches, &left_ns)) {
        reader->base = (int64_t)reader->arrivals - switches;
        reader->base_known = true;
    }
    return true;
}

/* False: it has ended. */
static bool take_call(tare__thread_reader *reader, const char *text, int bytes, bool same)
{
    tare__call call;
    bool again = bytes == reader->call_bytes && memcmp(text, reader->call, (size_t)bytes) == 0;
    if (again && same)
        return reader->settled || settle(reader);
    if (again && tare__waiting_is_known(&reader->waiting, reader->last.system_call))
        return true;
    take_state(reader, TARE__STATE_OTHER);
    reader->settled = false;
    if (!parse_call(text, bytes, &call))
        return true;
    if (call.number == TARE__CALL_NONE) {
        char letter = tare__waiting_stat(&reader->waiting).letter;
        if (has_ended(letter) || letter == '\0')
            return false;
        take_state(reader, state_of_letter(letter));
        if (letter != 'D')
            return true;
    }
    reader->last.state = tare__waiting_state(&reader->waiting, &call, &reader->last.system_call, &reader->last.lock);
    reader->last.stack = call.stack;
    reader->last.code = call.code;
    memcpy(reader->call, text, (size_t)bytes);
    reader->call_bytes = bytes;
    return true;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* The text of "syscall", or where that is not permitted one made of the letter in "stat": *letter is then not NUL.
 * Bytes, or a negative errno. */
static int read_call(tare__thread_reader *reader, char *out, size_t room, char *letter)
{
    *letter = '\0';
    if (reader->denied > 0)
        reader->denied--;
    if (reader->denied == 0) {
        int got = read_file(reader, CALL, out, room);
        if (got > 0 || got == -ESRCH || tare__sample_failed_here(got))
            return got;
        close_file(reader, CALL);
        reader->denied = DENIED_READS;
    }
    tare__task_stat stat = read_stat(reader);
    *letter = stat.letter;
    out[0] = '\0';
    return stat.letter && !has_ended(stat.letter) ? 0 : -ESRCH;
}

/* Ready, or on a CPU. */
static void take_running(tare__thread_reader *reader, place where, int64_t left_ns)
{
    bool interrupted = where == OFF_CPU && is_interrupted(reader, left_ns);
    take_state(reader, where == OFF_CPU && !interrupted ? TARE__STATE_RUNNABLE : TARE__STATE_RUNNING);
    reader->interrupted = interrupted;
}

static bool is_ready(const tare__thread_reader *reader)
{
    return reader->last.state == TARE__STATE_RUNNING || reader->last.state == TARE__STATE_RUNNABLE;
}

/* As read_call; where that fails, the state is unknown. -ESRCH: it has ended. */
static int ask_call(tare__thread_reader *reader, char *text, size_t room, char *letter)
{
    int got = read_call(reader, text, room, letter);
    if (got < 0 && got != -ESRCH)
        take_state(reader, TARE__STATE_UNKNOWN);
    return got;
}

/* False: it has ended. */
static bool read_state(tare__thread_reader *reader, bool same)
{
    char text[CALL_BYTES], letter;
    int64_t left_ns = 0;
    place where = NOT_KNOWN;
    if (is_ready(reader) && same && reader->last.known && reader->base_known && !reader->interrupted)
        return true;
    if (is_ready(reader)) {
        where = find_place(reader, &left_ns);
        if (where == ON_CPU) {
            take_running(reader, where, left_ns);
            return true;
        }
    }
    int got = ask_call(reader, text, sizeof text, &letter);
    if (got < 0)
        return got != -ESRCH;
    if (letter == '\0' ? strncmp(text, "running", 7) != 0 : letter != 'R') {
        if (letter == '\0')
            return take_call(reader, text, got, same);
        take_state(reader, state_of_letter(letter));
        return true;
    }
    if (same && reader->last.known && reader->last.state != TARE__STATE_UNKNOWN && !is_ready(reader))
        where = OFF_CPU; /* woken up, and did not get a CPU yet */
    else if (where == NOT_KNOWN)
        where = find_place(reader, &left_ns);
    take_running(reader, where, left_ns);
    return true;
}

/* Files were opened by path: it may be another thread with the same number. */
static bool is_same_thread(tare__thread_reader *reader)
{
    tare__task_stat stat = tare__waiting_stat(&reader->waiting);
    if (!stat.letter) /* ended, which the next read notices, or descriptors ran out */
        return true;
    if (!reader->start_time)
        reader->start_time = stat.start_time;
    return stat.start_time == reader->start_time;
}

static bool finish(tare__thread_reader *reader, bool alive, bool same, tare__thread_now *now)
{
    if (alive && reader->opened)
        alive = is_same_thread(reader);
    reader->read_before = true;
    reader->last.same = alive && same && reader->last.known && !is_ready(reader);
    *now = reader->last;
    return alive;
}

bool tare__thread_read(tare__thread_reader *reader, tare__thread_now *now)
{
    reader->opened = false;
    reading got = read_totals(reader);
    bool alive = got != ENDED;
    if (got == NOT_NOW)
        take_state(reader, TARE__STATE_UNKNOWN);
    else if (alive)
        alive = read_state(reader, got == SAME);
    return finish(reader, alive, got == SAME, now);
}

/* ---- at a glance ------------------------------------------------------------------------------------------------ */

static void find_busy(tare__thread_reader *reader, uint64_t now_ns)
{
    uint64_t on_ns = reader->last.cpu_ns + reader->last.queue_ns, passed = now_ns - reader->since_ns;
    if (passed < LATE_NS)
        return;
    reader->busy = reader->since_ns && on_ns >= reader->since_on_ns && on_ns - reader->since_on_ns >= passed / 4 * 3;
    reader->since_ns = now_ns;
    reader->since_on_ns = on_ns;
}

/* Recent time on and waiting for a CPU. */
static void find_share(tare__thread_reader *reader, const tare__thread_now *before)
{
    if (reader->last.cpu_ns > before->cpu_ns)
        reader->cpu_ns += (double)(reader->last.cpu_ns - before->cpu_ns);
    if (reader->last.queue_ns > before->queue_ns)
        reader->queue_ns += (double)(reader->last.queue_ns - before->queue_ns);
    double all = reader->cpu_ns + reader->queue_ns;
    if (all > RECENT_NS) {
        reader->cpu_ns *= RECENT_NS / all;
        reader->queue_ns *= RECENT_NS / all;
    }
}

/* The state of a thread that is ready: over some reads as often RUNNING as the counters say. */
static tare__thread_state ready_state(tare__thread_reader *reader, double passed, bool ran)
{
    double all = reader->cpu_ns + reader->queue_ns;
    reader->owed_ns += passed * (all > 0 ? reader->cpu_ns / all : 1);
    bool running = ran || reader->owed_ns >= passed / 2;
    reader->owed_ns -= running ? passed : 0;
    reader->owed_ns = reader->owed_ns < -RECENT_NS ? -RECENT_NS : reader->owed_ns;
    return running ? TARE__STATE_RUNNING : TARE__STATE_RUNNABLE;
}

/* *late: the totals were not read; `same`: they were, and did not change. False: it has ended. */
static bool glance_state(tare__thread_reader *reader, double passed, bool same, bool *late)
{
    char text[CALL_BYTES], letter;
    int got = ask_call(reader, text, sizeof text, &letter);
    if (got < 0)
        return got != -ESRCH;
    if (letter == '\0' ? strncmp(text, "running", 7) == 0 : letter == 'R') {
        bool woken = same && reader->last.state != TARE__STATE_UNKNOWN && !is_ready(reader); /* and has no CPU yet */
        take_state(reader, woken ? TARE__STATE_RUNNABLE : ready_state(reader, passed, false));
        return true;
    }
    if (*late && read_totals(reader) == ENDED) /* up to date from now on: it may wait for long */
        return false;
    *late = false;
    if (letter == '\0')
        return take_call(reader, text, got, same);
    take_state(reader, state_of_letter(letter));
    return true;
}

/* Time since the totals were read counts as the time before. An estimate that was too high is made up for by the next
 * ones: totals never decrease, and sums stay those of the counters. */
static void tell_totals(tare__thread_reader *reader, const tare__thread_now *before, double estimated,
                        tare__thread_now *now)
{
    double all = reader->cpu_ns + reader->queue_ns, on = all > 0 ? reader->cpu_ns / all : 1;
    if (now->cpu_ns < before->cpu_ns || now->queue_ns < before->queue_ns) /* another program */
        reader->told_cpu_ns = reader->told_queue_ns = 0;
    uint64_t cpu_ns = reader->told_cpu_ns + (uint64_t)(on * estimated);
    uint64_t queue_ns = reader->told_queue_ns + (uint64_t)((1 - on) * estimated);
    now->cpu_ns = reader->told_cpu_ns = cpu_ns > now->cpu_ns ? cpu_ns : now->cpu_ns;
    now->queue_ns = reader->told_queue_ns = queue_ns > now->queue_ns ? queue_ns : now->queue_ns;
}

bool tare__thread_glance(tare__thread_reader *reader, uint64_t now_ns, bool ran, tare__thread_now *now)
{
    bool late = reader->busy && is_ready(reader) && now_ns - reader->totals_ns < LATE_NS;
    double passed = reader->read_before ? (double)(now_ns - reader->glance_ns) : 0;
    const tare__thread_now before = reader->last;
    reading got = CHANGED;
    reader->opened = false;
    reader->glance_ns = now_ns;
    if (!late) {
        got = read_totals(reader);
        reader->totals_ns = now_ns;
        find_busy(reader, now_ns);
        if (reader->read_before)
            find_share(reader, &before);
    }
    bool alive = got != ENDED;
    if (got == NOT_NOW)
        take_state(reader, TARE__STATE_UNKNOWN);
    else if (alive && ran)
        take_state(reader, ready_state(reader, passed, true));
    else if (alive)
        alive = reader->last.known ? glance_state(reader, passed, got == SAME, &late) : read_state(reader, got == SAME);
    alive = finish(reader, alive, got == SAME, now);
    tell_totals(reader, &before, late ? passed : 0, now);
    return alive;
}
