/* What a program says about its stacks, and the comparison with what was read. */
#ifndef TARE_SAMPLE_PYTHON_TRUTH_H
#define TARE_SAMPLE_PYTHON_TRUTH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample/python_inner.h"

/* The next line without its end; fails if there is none. */
static inline char *line_of(FILE *file)
{
    static char line[8192];
    if (!fgets(line, sizeof(line), file))
        fail_msg("the output of the program has ended");
    line[strcspn(line, "\n")] = '\0';
    return line;
}

#define FRAMES_MAX 11000u
typedef struct truth {
    unsigned long long ident;
    int tid, main, depth;
    struct {
        int line, first;
        char *name, *file;
    } *frames;
} truth;

static inline size_t read_truth(FILE *file, truth *out, size_t room)
{
    size_t n = 0;
    for (char *line; strcmp(line = line_of(file), "ready") != 0;) {
        if (strncmp(line, "thread ", 7) != 0)
            continue;
        truth *thread = &out[n++];
        assert_true(n <= room);
        assert_int_equal(sscanf(line, "thread %llu %d %d %d", &thread->ident, &thread->tid, &thread->main,
                                &thread->depth), 4);
        thread->frames = calloc((size_t)thread->depth + 1, sizeof(*thread->frames));
        for (int i = 0; i < thread->depth; i++) {
            int name;
            line = line_of(file);
            assert_int_equal(sscanf(line, "frame %d %d %n", &thread->frames[i].line, &thread->frames[i].first,
                                    &name), 2);
            char *tab = strchr(line, '\t');
            assert_non_null(tab);
            *tab = '\0';
            thread->frames[i].name = strdup(line + name);
            thread->frames[i].file = strdup(tab + 1);
        }
    }
    return n;
}

static inline void free_truth(truth *threads, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < threads[i].depth; k++) {
            free(threads[i].frames[k].name);
            free(threads[i].frames[k].file);
        }
        free(threads[i].frames);
    }
}

/* Frame `at` of what was read; those in the middle of a cut stack are missing. */
static inline void compare_frame(const tare__python *python, const tare__python_thread *got, uint32_t at,
                          const truth *expected, int of)
{
    const tare__python_code *code = tare__python_code_at(python, got->frames[at].code);
    assert_non_null(code);
    assert_string_equal(code->name, expected->frames[of].name);
    assert_string_equal(code->file, expected->frames[of].file);
    assert_int_equal(code->first_line, expected->frames[of].first);
    assert_int_equal(got->frames[at].line, expected->frames[of].line);
}

static inline void compare_thread(const tare__python *python, const tare__python_thread *got, const truth *expected)
{
    assert_false(got->torn);
    assert_int_equal(got->tid, expected->tid);
    assert_int_equal(got->main, expected->main);
    const tare__python_code *first = got->n ? tare__python_code_at(python, got->frames[0].code) : NULL;
    int skipped = first && strcmp(first->name, "stop") == 0; /* the program reports its caller */
    assert_int_equal(got->depth, expected->depth + skipped);
    assert_int_equal(got->cut, got->depth > TARE__PYTHON_DEPTH_MAX);
    if (!got->cut)
        assert_int_equal(got->n, got->depth);
    for (uint32_t i = (uint32_t)skipped; i < got->n; i++) {
        uint32_t from_end = got->n - i;
        int of = got->cut && i >= TARE__PYTHON_INNERMOST ? expected->depth - (int)from_end : (int)i - skipped;
        compare_frame(python, got, i, expected, of);
    }
}

#endif
