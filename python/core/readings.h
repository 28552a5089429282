/* readings: clocks and memory of this process, as blocks read them. Attached to the interpreter, which guards the
 * list of open peaks; the plain readings may be called from any thread.
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

/* The largest resident memory between open and close, by the kernel's high-water mark, which there is once a
 * process: it is reset when a peak is opened, after what it said was given to all the open ones. A mark that is
 * hardly above what is resident is left as it is: a peak is exact to 256 KiB and what the kernel's own counting is
 * off by. */
typedef struct tare__py_peak {
    struct tare__py_peak *next, *previous;
    uint64_t bytes;  /* so far */
    uint64_t mark;   /* the high-water mark when it was opened or last reset: what is above it was seen since */
    uint64_t hidden; /* what a mark that could not be reset may hide; 0: nothing */
    int refused;     /* errno of the reset it needed and did not get; 0: what the mark says is its own */
    int lower_bound; /* such an errno: there may have been more than was seen; 0: there was not */
} tare__py_peak;
void tare__py_peak_open(tare__py_peak *peak, tare__py_memory now);
void tare__py_peak_close(tare__py_peak *peak, tare__py_memory now);
/* What a lower_bound means, a sentence. */
void tare__py_peak_sentence(int lower_bound, char text[200]);

#endif
