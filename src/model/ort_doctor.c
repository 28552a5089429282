/* ort_doctor: whether models can be run on this machine: which ONNX Runtime is found, or why none. It is opened in a
 * separate process. One thread.
 * Must not know how the result is shown. */
#include "ort_child.h"

#include <stdio.h>
#include <string.h>

static void check_runtime(tare__sample_check *check)
{
    tare__error error = {""};
    tare__text path = {0};
    tare__child_seen seen = {0};
    tare__board *board = tare__board_new(1);
    int status = tare__runner_find(NULL, &path, &error);
    tare__job job = {.library = path.data};
    if (!status && board)
        status = tare__child_run(&job, board, &seen, &error);
    if (!status && board && !board->status && !seen.death[0]) {
        check->state = TARE__SAMPLE_WORKS;
        snprintf(check->detail, sizeof check->detail, "%s, %.200s", board->version, board->library);
    } else {
        const char *why = status          ? error.text
                          : seen.death[0] ? seen.death
                          : board         ? board->error.text
                                          : "out of memory";
        bool none = strstr(why, "cannot open shared object") != NULL;
        snprintf(check->detail, sizeof check->detail, "%.200s; no models can be run", none ? "not found" : why);
        snprintf(check->fix, sizeof check->fix, "pip install onnxruntime");
    }
    tare__text_free(&path);
    tare__board_free(board);
}

void tare__runner_doctor(tare__sample_check_sink *sink, void *context)
{
    tare__sample_check check = {.sampler = "models", .source = "ONNX Runtime", .state = TARE__SAMPLE_PARTLY};
    check_runtime(&check);
    sink(context, &check);
}
