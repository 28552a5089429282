/* ort_session: a model loaded into ONNX Runtime, its inputs, and runs of it.
 * One thread per session; the runtime has its own threads.
 * Must not know why it is run. */
#define _GNU_SOURCE
#include "ort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tare.h"

#define SEVERITY_FATAL 4 /* its warnings would appear between the lines of a report */

static int read_names(tare__ort_session *session, bool outputs, size_t n, char ***names, tare__error *error)
{
    const tare__ort *ort = session->ort;
    *names = calloc(n + 1, sizeof **names);
    if (!*names)
        return tare__no_memory(error);
    for (size_t i = 0; i < n; i++) {
        void *status = outputs ? ort->output_name(session->session, i, session->allocator, &(*names)[i])
                               : ort->input_name(session->session, i, session->allocator, &(*names)[i]);
        int code = tare__ort_check(ort, status, "its inputs cannot be read", error);
        if (code)
            return code;
    }
    return 0;
}

static int read_ends(tare__ort_session *session, tare__error *error)
{
    const tare__ort *ort = session->ort;
    int status = tare__ort_check(ort, ort->default_allocator(&session->allocator), "no allocator", error);
    if (!status)
        status = tare__ort_check(ort, ort->cpu_memory(1, 0, &session->memory), "no memory", error);
    if (!status)
        status = tare__ort_check(ort, ort->input_count(session->session, &session->n_inputs), "inputs", error);
    if (!status)
        status = tare__ort_check(ort, ort->output_count(session->session, &session->n_outputs), "outputs", error);
    if (!status)
        status = read_names(session, false, session->n_inputs, &session->input_names, error);
    if (!status)
        status = read_names(session, true, session->n_outputs, &session->output_names, error);
    if (status)
        return status;
    session->inputs = calloc(session->n_inputs + 1, sizeof *session->inputs);
    session->outputs = calloc(session->n_outputs + 1, sizeof *session->outputs);
    return session->inputs && session->outputs ? 0 : tare__no_memory(error);
}

static int make_options(tare__ort_session *session, unsigned threads, const char *profile, tare__error *error)
{
    const tare__ort *ort = session->ort;
    int status = tare__ort_check(ort, ort->create_options(&session->options), "no options", error);
    if (!status && threads)
        status = tare__ort_check(ort, ort->set_threads(session->options, (int)threads), "threads", error);
    if (!status && profile)
        status = tare__ort_check(ort, ort->enable_profiling(session->options, profile), "profiling", error);
    return status;
}

/* Identity of one number: IR 3, opset 7, which every runtime reads. */
static const unsigned char smallest[] = {
    0x08, 0x03, 0x3a, 0x37, 0x0a, 0x10, 0x0a, 0x01, 0x78, 0x12, 0x01, 0x79, 0x22, 0x08, 0x49, 0x64,
    0x65, 0x6e, 0x74, 0x69, 0x74, 0x79, 0x12, 0x01, 0x67, 0x5a, 0x0f, 0x0a, 0x01, 0x78, 0x12, 0x0a,
    0x0a, 0x08, 0x08, 0x01, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x01, 0x62, 0x0f, 0x0a, 0x01, 0x79, 0x12,
    0x0a, 0x0a, 0x08, 0x08, 0x01, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x01, 0x42, 0x04, 0x0a, 0x00, 0x10,
    0x07,
};

void tare__ort_start(const tare__ort *ort)
{
    void *env = NULL, *options = NULL, *session = NULL;
    void *status = ort->create_env(SEVERITY_FATAL, "tare", &env); /* never released: all sessions of a process share
                                                                   * it */
    if (!status)
        status = ort->create_options(&options);
    if (!status)
        status = ort->create_session_of(env, smallest, sizeof smallest, options, &session);
    if (status)
        ort->release_status(status);
    if (session)
        ort->release_session(session);
    if (options)
        ort->release_options(options);
}

int tare__ort_load(tare__ort_session *session, const tare__ort *ort, const char *model, unsigned threads,
                   const char *profile, tare__error *error)
{
    *session = (tare__ort_session){.ort = ort};
    int status = tare__ort_check(ort, ort->create_env(SEVERITY_FATAL, "tare", &session->env), "no environment", error);
    if (!status)
        status = make_options(session, threads, profile, error);
    if (!status)
        status = tare__ort_check(ort, ort->create_session(session->env, model, session->options, &session->session),
                                 "ONNX Runtime cannot load the model", error);
    return status ? status : read_ends(session, error);
}

/* ---- inputs --------------------------------------------------------------------------------------------------- */
static void put_shape(char *out, size_t room, const int64_t *dims, size_t rank)
{
    size_t at = 0;
    snprintf(out, room, "a single value");
    for (size_t i = 0; i < rank && at + 24 < room; i++)
        at += (size_t)(dims[i] < 0 ? snprintf(out + at, room - at, "%s?", i ? "x" : "")
                                   : snprintf(out + at, room - at, "%s%lld", i ? "x" : "", (long long)dims[i]));
}

static bool shapes_fit(const int64_t *wanted, size_t wanted_rank, const tare__ort_tensor *given)
{
    bool fit = wanted_rank == given->rank;
    for (size_t i = 0; fit && i < wanted_rank; i++)
        fit = wanted[i] < 0 || wanted[i] == given->dims[i];
    return fit;
}

/* The session's information on an input takes precedence over that of the tensor. */
static int check_tensor(tare__ort_session *session, size_t at, const tare__ort_tensor *tensor, tare__error *error)
{
    const tare__ort *ort = session->ort;
    void *type = NULL;
    const void *info = NULL;
    int element = 0;
    size_t rank = 0;
    int64_t dims[TARE__ORT_RANK_MAX];
    char wanted[200], given[200];
    int status = tare__ort_check(ort, ort->input_type(session->session, at, &type), tensor->name, error);
    if (status)
        return status;
    status = tare__ort_check(ort, ort->tensor_info(type, &info), tensor->name, error);
    if (!status && !info)
        status = tare__fail(error, TARE_E_INPUT, "input '%.100s' is not a tensor; such models are not supported",
                            tensor->name);
    if (!status)
        status = tare__ort_check(ort, ort->element_type(info, &element), tensor->name, error);
    if (!status)
        status = tare__ort_check(ort, ort->rank(info, &rank), tensor->name, error);
    if (!status && rank <= TARE__ORT_RANK_MAX)
        status = tare__ort_check(ort, ort->dims(info, dims, rank), tensor->name, error);
    if (!status && element != tensor->type) {
        const char *name = tare__ort_type_name(element), *ours = tare__ort_type_name(tensor->type);
        status = tare__fail(error, TARE_E_INPUT, "input '%.100s' is %s, not %s", tensor->name,
                            name ? name : "of another type", ours ? ours : "that");
    }
    if (!status && rank <= TARE__ORT_RANK_MAX && !shapes_fit(dims, rank, tensor)) {
        put_shape(wanted, sizeof wanted, dims, rank);
        put_shape(given, sizeof given, tensor->dims, tensor->rank);
        status = tare__fail(error, TARE_E_INPUT, "input '%.100s' is %s, not %s", tensor->name, wanted, given);
    }
    ort->release_type(type);
    return status;
}

static tare__ort_tensor *find_tensor(tare__ort_tensor *tensors, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    return NULL;
}

int tare__ort_feed(tare__ort_session *session, tare__ort_tensor *tensors, size_t n, tare__error *error)
{
    const tare__ort *ort = session->ort;
    for (size_t i = 0; i < session->n_inputs; i++) {
        tare__ort_tensor *tensor = find_tensor(tensors, n, session->input_names[i]);
        if (!tensor)
            return tare__fail(error, TARE_E_INPUT, "the model requires an input '%.100s' that the file does not "
                                                   "contain",
                              session->input_names[i]);
        int status = check_tensor(session, i, tensor, error);
        if (!status)
            status = tare__ort_check(ort,
                                     ort->create_tensor(session->memory, tensor->data, tensor->bytes, tensor->dims,
                                                        tensor->rank, tensor->type, &session->inputs[i]),
                                     tensor->name, error);
        if (status)
            return status;
    }
    return 0;
}

/* ---- runs ----------------------------------------------------------------------------------------------------- */
static inline void *run(tare__ort_session *session)
{
    return session->ort->run(session->session, NULL, (const char *const *)session->input_names,
                             (const void *const *)session->inputs, session->n_inputs,
                             (const char *const *)session->output_names, session->n_outputs, session->outputs);
}

void tare__ort_drop_outputs(tare__ort_session *session)
{
    for (size_t i = 0; i < session->n_outputs; i++) {
        if (session->outputs && session->outputs[i])
            session->ort->release_value(session->outputs[i]);
        if (session->outputs)
            session->outputs[i] = NULL;
    }
}

int tare__ort_run_once(tare__ort_session *session, tare__error *error)
{
    return tare__ort_check(session->ort, run(session), "the model cannot be run", error);
}

int tare__ort_loop(tare__ort_session *session, size_t runs, size_t least, uint64_t until_ns, double *begin_ns,
                   double *took_ns, size_t *done, tare__error *error)
{
    for (size_t i = 0; i < runs; i++) {
        uint64_t from = tare__monotonic_ns();
        if (i >= least && from >= until_ns)
            break;
        void *status = run(session);
        uint64_t to = tare__monotonic_ns();
        tare__ort_drop_outputs(session);
        if (TARE__UNLIKELY(status != NULL))
            return tare__ort_check(session->ort, status, "the model cannot be run", error);
        begin_ns[i] = (double)from;
        took_ns[i] = (double)(to - from);
        __atomic_store_n(done, i + 1, __ATOMIC_RELEASE);
    }
    return 0;
}

int tare__ort_profile_end(tare__ort_session *session, tare__text *path, tare__error *error)
{
    char *name = NULL;
    int status = tare__ort_check(session->ort, session->ort->end_profiling(session->session, session->allocator, &name),
                                 "no profile", error);
    if (status)
        return status;
    tare__text_string(path, name);
    session->ort->free_memory(session->allocator, name);
    return path->failed ? tare__no_memory(error) : 0;
}
