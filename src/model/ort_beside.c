/* ort_beside: end-to-end latency: a command that produces the model's inputs for each request, one that consumes its
 * outputs, and the model between them. Both are started once and answer over pipes. In the measuring child.
 * Must not know what the commands do. */
#define _GNU_SOURCE
#include "ort_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tare.h"

#define PATIENCE_MS 60000
#define HEADER_MAX  4096u

extern char **environ;

typedef struct helper {
    const char *said; /* "--pre" */
    const char *command;
    pid_t pid;
    int to, from;
} helper;

static int start(helper *one, tare__error *error)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    char *const words[] = {"sh", "-c", (char *)one->command, NULL};
    posix_spawn_file_actions_t actions;
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return tare__fail(error, TARE_E_SYSTEM, "%s: %s", one->said, strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    int failure = posix_spawn(&one->pid, "/bin/sh", &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    one->to = in[1];
    one->from = out[0];
    if (failure)
        one->pid = 0;
    return failure ? tare__fail(error, TARE_E_SYSTEM, "%s: %s", one->said, strerror(failure)) : 0;
}

/* Closes its input; a command that does not exit is killed. */
static void stop(helper *one)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    if (!one->pid)
        return;
    close(one->to);
    close(one->from);
    for (int i = 0; i < 100 && waitpid(one->pid, NULL, WNOHANG) == 0; i++) {
        if (i == 50)
            kill(one->pid, SIGKILL);
        nanosleep(&pause, NULL);
    }
}

static int gone(const helper *one, tare__error *error)
{
    return tare__fail(error, TARE_E_INPUT, "%s '%.100s' exited before it answered", one->said, one->command);
}

static int take(const helper *one, void *into, size_t bytes, tare__error *error)
{
    for (size_t at = 0; at < bytes;) {
        struct pollfd ready = {.fd = one->from, .events = POLLIN};
        int n = poll(&ready, 1, PATIENCE_MS);
        if (n == 0)
            return tare__fail(error, TARE_E_INPUT, "%s '%.100s' did not answer within a minute", one->said,
                              one->command);
        ssize_t got = n < 0 ? -1 : read(one->from, (char *)into + at, bytes - at);
        if (got == 0 || (got < 0 && errno != EINTR))
            return gone(one, error);
        at += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static int give(const helper *one, const void *data, size_t bytes, tare__error *error)
{
    return tare__write_all(one->to, data, bytes) ? gone(one, error) : 0;
}

/* ---- before the model ----------------------------------------------------------------------------------------- */
static int take_tensor(const helper *one, tare__ort_tensor *tensor, tare__error *error)
{
    static unsigned char header[HEADER_MAX];
    tare__ort_tensor given = {.name = tensor->name};
    size_t offset = 0;
    int status = take(one, header, 12, error);
    size_t length = header[8] | (size_t)header[9] << 8, whole = length + (header[6] == 1 ? 10 : 12);
    if (!status && (memcmp(header, "\x93NUMPY", 6) != 0 || whole < 12 || whole > HEADER_MAX))
        return tare__fail(error, TARE_E_INPUT, "%s '%.100s' did not answer with .npy data", one->said, one->command);
    if (!status)
        status = take(one, header + 12, whole - 12, error);
    if (!status)
        status = tare__npy_parse(header, whole, one->said, &given, &offset, error);
    if (!status && (given.type != tensor->type || given.rank != tensor->rank ||
                    memcmp(given.dims, tensor->dims, given.rank * sizeof *given.dims) != 0))
        return tare__fail(error, TARE_E_INPUT, "%s '%.100s' answered with a tensor that does not match input '%.100s'",
                          one->said, one->command, tensor->name);
    return status ? status : take(one, tensor->data, tensor->bytes, error);
}

static int prepare(const helper *one, const tare__job *job, tare__ort_session *session, size_t number,
                   tare__error *error)
{
    char line[32];
    int length = snprintf(line, sizeof line, "%zu\n", number);
    int status = give(one, line, (size_t)length, error);
    for (size_t i = 0; !status && i < session->n_inputs; i++)
        for (size_t k = 0; !status && k < job->n_tensors; k++)
            if (strcmp(job->tensors[k].name, session->input_names[i]) == 0)
                status = take_tensor(one, &job->tensors[k], error);
    return status;
}

/* ---- after it ------------------------------------------------------------------------------------------------- */
static int give_output(const helper *one, tare__ort_session *session, size_t at, tare__error *error)
{
    const tare__ort *ort = session->ort;
    tare__ort_tensor tensor = {.name = session->output_names[at]};
    unsigned char header[512];
    void *info = NULL;
    int status = tare__ort_check(ort, ort->value_info(session->outputs[at], &info), tensor.name, error);
    if (status)
        return status;
    status = tare__ort_check(ort, ort->element_type(info, &tensor.type), tensor.name, error);
    if (!status)
        status = tare__ort_check(ort, ort->rank(info, &tensor.rank), tensor.name, error);
    if (!status && tensor.rank <= TARE__ORT_RANK_MAX)
        status = tare__ort_check(ort, ort->dims(info, tensor.dims, tensor.rank), tensor.name, error);
    ort->release_info(info);
    if (!status)
        status = tare__ort_check(ort, ort->tensor_data(session->outputs[at], &tensor.data), tensor.name, error);
    if (status)
        return status;
    size_t bytes = tensor.rank <= TARE__ORT_RANK_MAX ? tare__npy_header(&tensor, header) : 0;
    if (!bytes)
        return tare__fail(error, TARE_E_INPUT, "%s: output '%.100s' has a type that .npy does not support", one->said,
                          tensor.name);
    tensor.bytes = (size_t)tare__ort_elements(tensor.dims, tensor.rank) * tare__ort_type_bytes(tensor.type);
    status = give(one, header, bytes, error);
    return status ? status : give(one, tensor.data, tensor.bytes, error);
}

static int finish(const helper *one, tare__ort_session *session, tare__error *error)
{
    char letter = 0;
    int status = 0;
    for (size_t i = 0; !status && i < session->n_outputs; i++)
        status = give_output(one, session, i, error);
    while (!status && letter != '\n')
        status = take(one, &letter, 1, error);
    return status;
}

/* ---- requests ------------------------------------------------------------------------------------------------- */
static int request(const tare__job *job, tare__ort_session *session, helper *pre, helper *post, size_t number,
                   double times[3], tare__error *error)
{
    double from = (double)tare__monotonic_ns();
    int status = job->pre ? prepare(pre, job, session, number, error) : 0;
    double ready = (double)tare__monotonic_ns();
    if (!status)
        status = tare__ort_run_once(session, error);
    double ran = (double)tare__monotonic_ns();
    if (!status && job->post)
        status = finish(post, session, error);
    double end = (double)tare__monotonic_ns();
    tare__ort_drop_outputs(session);
    times[0] = ready - from;
    times[1] = end - from;
    times[2] = end - ran;
    return status;
}

int tare__beside_measure(const tare__job *job, tare__ort_session *session, tare__board *board, tare__error *error)
{
    helper pre = {.said = "--pre", .command = job->pre}, post = {.said = "--post", .command = job->post};
    size_t runs = job->beside_runs < TARE__BOARD_BESIDE_MAX ? job->beside_runs : TARE__BOARD_BESIDE_MAX;
    double times[3];
    int status = job->pre ? start(&pre, error) : 0;
    if (!status && job->post)
        status = start(&post, error);
    if (!status)
        status = request(job, session, &pre, &post, 0, times, error); /* the startup of the commands is not counted */
    for (size_t i = 0; !status && i < runs; i++) {
        status = request(job, session, &pre, &post, i + 1, times, error);
        if (status)
            break;
        board->pre_ns[i] = times[0];
        board->beside_ns[i] = times[1];
        board->post_ns[i] = times[2];
        board->beside_done = i + 1;
    }
    stop(&pre);
    stop(&post);
    return status;
}
