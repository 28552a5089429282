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
/* An instant of the monotonic clock in seconds, as time.time(); a clock that is set is noticed within a second. */
double tare__py_unix_time(uint64_t clock_ns);
/* Resident memory in bytes; 0: it could not be read (nothing that runs has none). */
uint64_t tare__py_rss(void);

/* Resident memory, and the kernel's high-water mark of it where a peak was asked for. What this thread read less
 * than a microsecond before `now_ns` is not read again: blocks inside each other share a reading, and so do the ends
 * of a block that does nothing. A thread touches a few pages in that time; what other threads do is not ordered with
 * it anyway. */
typedef struct tare__py_memory {
    uint64_t rss;  /* 0: it could not be read */
    uint64_t mark; /* 0: not asked for */
} tare__py_memory;
tare__py_memory tare__py_memory_now(uint64_t now_ns, bool peak);
/* What was read in this call of the caller is as old as this instant: clocks are not read twice for it. */
void tare__py_memory_read_at(uint64_t clock_ns);

/* Lets the kernel's high-water mark begin anew at what is resident now. It lowers the ru_maxrss that whoever waits for
 * the process is told: only where the user asked for it. False: the kernel refused. */
bool tare__py_memory_reset_mark(tare__py_memory *now);

/* The largest resident memory between open and close. The kernel keeps one high-water mark a process. Where it rises
 * while a peak is open, it is that peak, exactly. Where it does not, the peak was below the mark of before: what is
 * known is the largest sample of a thread that reads resident memory every TARE__PY_PEAK_INTERVAL_NS, as long as such
 * a peak is open. A mark that is hardly above what is resident hides nothing: a peak is exact to 256 KiB and what the
 * kernel's own counting is off by. */
#define TARE__PY_PEAK_INTERVAL_NS 5000000u
typedef struct tare__py_peak {
    struct tare__py_peak *next, *previous;
    uint64_t number;  /* in the order of opening */
    uint64_t bytes;   /* the most seen so far */
    uint64_t mark;    /* the high-water mark when it was opened or last reset: what is above it was seen since */
    uint64_t at_most; /* a mark from before that may hide more than was seen; 0: nothing is hidden */
} tare__py_peak;
void tare__py_peak_open(tare__py_peak *peak, tare__py_memory now, bool reset);
void tare__py_peak_close(tare__py_peak *peak, tare__py_memory now);
/* Whether a mark is not worth telling from what is resident. */
bool tare__py_peak_is_near(uint64_t mark, uint64_t rss);
/* What a peak with an at_most is, a sentence. */
void tare__py_peak_sentence(uint64_t at_most, char text[200]);

#endif
