/* readings: clocks and memory of this process, as blocks read them, and the peaks of memory (peaks.c). Attached to the
 * interpreter; the clocks may be read from any thread.
 * Must not know blocks. */
#ifndef TARE_PYTHON_READINGS_H
#define TARE_PYTHON_READINGS_H

#include <stdbool.h>
#include <stdint.h>

uint64_t tare__py_clock_ns(void);       /* monotonic */
uint64_t tare__py_thread_cpu_ns(void);  /* CPU time of the calling thread */
uint64_t tare__py_process_cpu_ns(void); /* CPU time of all threads of the process */
/* An instant of the monotonic clock in seconds, as time.time(); a change of the clock takes effect within a second. */
double tare__py_unix_time(uint64_t clock_ns);
/* Resident memory in bytes; 0: it could not be read (a running process always has some). */
uint64_t tare__py_rss(void);

/* Resident memory, and the kernel's high-water mark of it where a peak was requested. A reading of this
 * thread less than a microsecond before `now_ns` is reused: nested blocks share a reading, and so do the begin and end
 * of a block that does nothing. A thread touches a few pages in that time; other threads are not ordered with it
 * anyway. */
typedef struct tare__py_memory {
    uint64_t rss;  /* 0: it could not be read */
    uint64_t mark; /* 0: not requested */
} tare__py_memory;
tare__py_memory tare__py_memory_now(uint64_t now_ns, bool peak);
/* Sets the time of the caller's last reading, so that the clock is not read twice for it. */
void tare__py_memory_read_at(uint64_t clock_ns);

/* Resets the kernel's high-water mark to the current resident memory. This lowers the ru_maxrss that wait4 reports for
 * the process, so it is done only on the user's request. False: the kernel refused. */
bool tare__py_memory_reset_mark(tare__py_memory *now);

/* The largest resident memory between open and close. The kernel keeps one high-water mark per process. If it
 * rises while a peak is open, it is exactly that peak. If it does not, the peak was below the earlier mark: what is
 * known is the largest sample of a thread that reads resident memory every TARE__PY_PEAK_INTERVAL_NS, as long as such
 * a peak is open. A mark that is hardly above resident memory hides nothing: a peak is exact to 256 KiB plus the
 * error of the kernel's own counting. */
#define TARE__PY_PEAK_INTERVAL_NS 5000000u
typedef struct tare__py_peak {
    struct tare__py_peak *next, *previous;
    uint64_t number;  /* in the order of opening */
    uint64_t bytes;   /* the largest value so far */
    uint64_t mark;    /* the high-water mark when it was opened or last reset: a larger mark was reached since */
    uint64_t at_most; /* an earlier mark that may hide a larger peak; 0: nothing is hidden */
} tare__py_peak;
void tare__py_peak_open(tare__py_peak *peak, tare__py_memory now, bool reset);
void tare__py_peak_close(tare__py_peak *peak, tare__py_memory now);
/* Whether a mark is too close to resident memory to matter. */
bool tare__py_peak_is_near(uint64_t mark, uint64_t rss);
/* Describes a peak with an at_most in a sentence. */
void tare__py_peak_sentence(uint64_t at_most, char text[200]);

#endif
