/* hot: which line of the program takes most of the time that a finding is about, by stack samples.
 * Owned by the thread that analyzes; internal to this module.
 * Must not know the rules. */
#ifndef TARE_ANALYZE_HOT_H
#define TARE_ANALYZE_HOT_H

#include "rules.h"

struct tare__uses;

/* Spans that are open at once: `path` is the innermost one, 0 outside of all. */
typedef struct tare__open_spans {
    const struct tare__uses *of;
    uint32_t path;
} tare__open_spans;
const char *tare__open_innermost(tare__open_spans spans); /* its name; "" outside of all */
uint32_t tare__open_innermost_kind(tare__open_spans spans);
uint32_t tare__open_outer(tare__open_spans spans);        /* the path without it */
bool tare__open_kind(tare__open_spans spans, uint32_t kind);                   /* one of them is of this tare_kind */
bool tare__open_name(tare__open_spans spans, uint32_t kind, const char *name); /* … and has this name; kind 0: any */
bool tare__open_start(tare__open_spans spans, const char *start);              /* the name of one begins with it */

/* Time of stack samples: all of it, unless fields restrict it. */
typedef struct tare__hot_question {
    bool (*within)(tare__open_spans spans, const void *context); /* only inside such spans; NULL: anywhere */
    bool (*thread)(const tare__analysis *of, const tare__sampled_thread_row *thread, const void *context);
    const void *context;
    uint32_t states; /* bits 1 << tare__thread_state: only time in these; 0: in all */
    bool own;         /* only time in code of the program, or called by it */
    bool by_function; /* the line of the function with most of the time, instead of the line with most */
    double most_ns;   /* what the finding is about: samples of much more time are of something else; 0: not checked */
    const char *time; /* of what, in a sentence: "the time in forward passes" */
} tare__hot_question;

/* For `within`; the context is a name, or the begin of one. */
bool tare__in_name(tare__open_spans spans, const void *name);
bool tare__in_phase(tare__open_spans spans, const void *name);
bool tare__in_start(tare__open_spans spans, const void *start);
bool tare__directly_in(tare__open_spans spans, const void *name); /* it is the innermost span */
/* For `thread`. */
bool tare__is_leading(const tare__analysis *of, const tare__sampled_thread_row *thread, const void *context);
/* A question about all time inside of phases of this name. */
tare__hot_question tare__of_phase(const char *name, const char *time);

#define TARE__ON_CPU (1u << TARE__STATE_RUNNING | 1u << TARE__STATE_RUNNABLE)

typedef struct tare__hot {
    const char *file, *function; /* of the line */
    uint32_t line;
    bool own;              /* code of the program itself; else no such code has a considerable part of the time */
    uint64_t samples;      /* of the question */
    double ns, all_ns;     /* of the line, of the question */
    double share;          /* of both */
    double function_share; /* of the line's function, by all of its lines */
    tare__state_times of;  /* of ns */
    double imports;        /* share of ns in which modules are imported */
    uint32_t state;        /* most of it, … */
    double state_share;    /* … as a share of it */
    const char *inner;     /* innermost function of at least half of it; NULL: the line's own */
    const char *inner_file;
    const char *package;   /* most of ns is in this one; NULL: not known */
} tare__hot;

/* False: too few samples, or no line has a considerable share. */
bool tare__hot_line(const tare__analysis *of, const tare__hot_question *question, tare__hot *found);
/* Adds a sentence of evidence about that line to the last finding, and its location. False: not known. */
bool tare__say_hot(findings *out, const tare__analysis *of, const tare__hot_question *question);
void tare__say_hot_line(findings *out, const tare__analysis *of, const tare__hot *hot, const char *time);
/* The location of the last finding, where the trace itself has it. */
void tare__say_location(findings *out, const char *file, uint32_t line);
/* "fetch.py:31" */
typedef struct tare__place_text {
    char text[512];
} tare__place_text;
tare__place_text tare__show_place(const tare__analysis *of, const char *file, uint32_t line);

#endif
