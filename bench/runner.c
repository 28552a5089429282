/* runner: what the measuring loop of `tare model` adds to a run of ONNX Runtime: the loop against the runtime's own
 * functions called in a row, in one session, in batches that take turns.
 * usage: runner LIBRARY MODEL BATCHES RUNS; prints a line a batch: ns a run of bare, loop, bare. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "model/ort.h"

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void die(const tare__error *error)
{
    fprintf(stderr, "%s\n", error->text);
    exit(1);
}

static double bare(tare__ort_session *session, size_t runs)
{
    const tare__ort *ort = session->ort;
    double from = now_ns();
    for (size_t i = 0; i < runs; i++) {
        void *output = NULL;
        if (ort->run(session->session, NULL, (const char *const *)session->input_names,
                     (const void *const *)session->inputs, session->n_inputs,
                     (const char *const *)session->output_names, 1, &output))
            exit(1);
        ort->release_value(output);
    }
    return (now_ns() - from) / (double)runs;
}

static double loop(tare__ort_session *session, size_t runs, double *begin, double *took)
{
    tare__error error;
    size_t done = 0;
    double from = now_ns();
    if (tare__ort_loop(session, runs, runs, 0, begin, took, &done, &error))
        die(&error);
    return (now_ns() - from) / (double)runs;
}

int main(int argc, char **argv)
{
    tare__error error = {""};
    tare__ort ort;
    tare__ort_session session;
    static float values[64 * 1024];
    tare__ort_tensor tensor = {.name = "x", .type = 1, .rank = 2, .dims = {1, 64}, .data = values, .bytes = 64 * 4};
    if (argc != 5)
        return 2;
    size_t batches = strtoul(argv[3], NULL, 10), runs = strtoul(argv[4], NULL, 10);
    double *begin = calloc(runs, sizeof *begin), *took = calloc(runs, sizeof *took);
    if (!begin || !took || tare__ort_open(&ort, argv[1], &error) ||
        tare__ort_load(&session, &ort, argv[2], 1, NULL, &error) || tare__ort_feed(&session, &tensor, 1, &error) ||
        session.n_outputs != 1)
        die(&error);
    bare(&session, runs);
    for (size_t i = 0; i < batches; i++) {
        double before = bare(&session, runs), ours = loop(&session, runs, begin, took), after = bare(&session, runs);
        printf("%.2f %.2f %.2f\n", before, ours, after);
    }
    return 0;
}
