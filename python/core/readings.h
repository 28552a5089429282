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
double tare__py_unix_time(void);        /* seconds, as time.time() */
/* Resident memory in bytes; 0: it could not be read (nothing that runs has none). */
uint64_t tare__py_rss(void);

/* The largest resident memory between open and close, by the kernel's high-water mark, which there is once a
 * process: it is reset when a peak is opened, after what it said was given to all the open ones. A mark that is hardly
 * above what is resident is left as it is: a peak is exact to 256 KiB and what the kernel's own counting is off by. */
typedef struct tare__py_peak {
    struct tare__py_peak *next, *previous;
    uint64_t bytes;  /* so far */
    uint64_t mark;   /* the high-water mark when it was opened or last reset: what is above it was seen since */
    uint64_t hidden; /* what a mark that could not be reset may hide; 0: nothing */
    int refused;     /* errno of the reset it needed and did not get; 0: what the mark says is its own */
    int lower_bound; /* such an errno: there may have been more than was seen; 0: there was not */
} tare__py_peak;
void tare__py_peak_open(tare__py_peak *peak, uint64_t rss_now);
void tare__py_peak_close(tare__py_peak *peak, uint64_t rss_now);
/* What a lower_bound means, a sentence. */
void tare__py_peak_sentence(int lower_bound, char text[200]);

#endif
