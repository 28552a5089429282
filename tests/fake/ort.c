/* ort: a library that looks like ONNX Runtime: one input "x" of floats, N x 4, one output "y". What it does is in the
 * model's file, a word a line: fail-load, fail-run, crash-load, crash-run, exit-run, odd-type, fp16. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 300
#ifdef FAKE_OLD
#define NEWEST 2
#else
#define NEWEST 20
#endif

typedef struct options {
    char profile[512];
    int threads;
} options;

typedef struct session {
    char words[1024];
    options options;
    unsigned runs;
} session;

typedef struct tensor {
    float *data;
    int64_t dims[2];
    int owned;
} tensor;

/* Of an input, whose first dimension is open; or of a value. */
typedef struct info {
    int type;
    int64_t dims[2];
} info;

static int allocator, memory, environment;

static void *status_of(const char *words)
{
    return strdup(words);
}

static int asks(const session *of, const char *word)
{
    return strstr(of->words, word) != NULL;
}

static const char *error_message(const void *status) { return status; }
static void *create_env(int severity, const char *id, void **env)
{
    (void)severity, (void)id;
    *env = &environment;
    return NULL;
}
static void *create_options(void **made)
{
    *made = calloc(1, sizeof(options));
    return NULL;
}
static void *enable_profiling(void *of, const char *prefix)
{
    snprintf(((options *)of)->profile, sizeof ((options *)of)->profile, "%s", prefix);
    return NULL;
}
static void *set_threads(void *of, int threads)
{
    ((options *)of)->threads = threads;
    return NULL;
}

static void *create_session(const void *env, const char *path, const void *with, void **made)
{
    (void)env;
    FILE *file = fopen(path, "r");
    session *one = calloc(1, sizeof *one);
    if (!file)
        return status_of("the fake has no such file");
    if (fread(one->words, 1, sizeof one->words - 1, file) == 0)
        one->words[0] = '\0';
    fclose(file);
    one->options = *(const options *)with;
    if (asks(one, "fail-load"))
        return status_of("the fake does not like this model");
    if (asks(one, "crash-load"))
        raise(SIGSEGV);
    *made = one;
    return NULL;
}

static void *create_session_of(const void *env, const void *model, size_t bytes, const void *with, void **made)
{
    (void)env, (void)model, (void)bytes, (void)with;
    *made = calloc(1, sizeof(session));
    return NULL;
}

static void *count_one(const void *of, size_t *n)
{
    (void)of;
    *n = 1;
    return NULL;
}
static void *input_name(const void *of, size_t at, void *with, char **name)
{
    (void)of, (void)at, (void)with;
    *name = strdup("x");
    return NULL;
}
static void *output_name(const void *of, size_t at, void *with, char **name)
{
    (void)of, (void)at, (void)with;
    *name = strdup("y");
    return NULL;
}
static void *input_type(const void *of, size_t at, void **type)
{
    (void)at;
    info *made = malloc(sizeof *made);
    *made = (info){asks(of, "odd-type") ? 7 : asks(of, "fp16") ? 10 : 1, {-1, 4}};
    *type = made;
    return NULL;
}
static void *tensor_info(const void *type, const void **found)
{
    *found = type;
    return NULL;
}
static void *element_type(const void *of, int *type)
{
    *type = ((const info *)of)->type;
    return NULL;
}
static void *rank(const void *of, size_t *n)
{
    (void)of;
    *n = 2;
    return NULL;
}
static void *dims(const void *of, int64_t *out, size_t n)
{
    memcpy(out, ((const info *)of)->dims, n * sizeof *out);
    return NULL;
}
static void *create_tensor(const void *where, void *data, size_t bytes, const int64_t *shape, size_t n, int type,
                           void **value)
{
    (void)where, (void)bytes, (void)n, (void)type;
    tensor *one = calloc(1, sizeof *one);
    one->data = data;
    one->dims[0] = shape[0];
    one->dims[1] = shape[1];
    *value = one;
    return NULL;
}
static void *tensor_data(void *value, void **data)
{
    *data = ((tensor *)value)->data;
    return NULL;
}

/* Each output is twice its input. */
static void *run(void *of, const void *with, const char *const *in, const void *const *inputs, size_t n_inputs,
                 const char *const *out, size_t n_outputs, void **outputs)
{
    session *one = of;
    (void)with, (void)in, (void)out, (void)n_outputs, (void)n_inputs;
    if (asks(one, "fail-run"))
        return status_of("the fake does not run this");
    if (asks(one, "crash-run") && one->runs == 25) {
        fputs("the fake is about to crash\n", stderr);
        raise(SIGSEGV);
    }
    if (asks(one, "exit-run"))
        _exit(7);
    const tensor *given = inputs[0];
    tensor *made = calloc(1, sizeof *made);
    size_t n = (size_t)(given->dims[0] * given->dims[1]);
    *made = (tensor){.data = malloc(n * sizeof(float)), .dims = {given->dims[0], given->dims[1]}, .owned = 1};
    for (size_t i = 0; i < n; i++)
        made->data[i] = asks(one, "fp16") ? 0 : 2 * given->data[i];
    outputs[0] = made;
    one->runs++;
    return NULL;
}

static void *value_info(const void *value, void **found)
{
    info *made = malloc(sizeof *made);
    *made = (info){1, {((const tensor *)value)->dims[0], ((const tensor *)value)->dims[1]}};
    *found = made;
    return NULL;
}

static void *cpu_memory(int kind, int type, void **made)
{
    (void)kind, (void)type;
    *made = &memory;
    return NULL;
}
static void *default_allocator(void **made)
{
    *made = &allocator;
    return NULL;
}
static void *free_memory(void *with, void *data)
{
    (void)with;
    free(data);
    return NULL;
}
static void keep(void *unused) { (void)unused; }
static void release_value(void *value)
{
    if (value && ((tensor *)value)->owned)
        free(((tensor *)value)->data);
    free(value);
}

static void put_node(FILE *file, const char *name, const char *op, int us, const char *in, const char *out)
{
    fprintf(
        file,
        "{\"cat\" : \"Node\",\"pid\" :1,\"tid\" :1,\"dur\" :%d,\"ts\" :1,\"ph\" : \"X\",\"name\" :\"%s_kernel_time\","
        "\"args\" : {\"op_name\" : \"%s\",\"provider\" : \"CPUExecutionProvider\",\"node_index\" : \"0\","
        "\"input_type_shape\" : %s,\"output_type_shape\" : %s,\"output_size\" : \"16\",\"parameter_size\" : \"64\","
        "\"activation_size\" : \"16\"}},\n",
        us, name, op, in, out);
}

static void *end_profiling(void *of, void *with, char **path)
{
    session *one = of;
    (void)with;
    if (asprintf(path, "%s_1.json", one->options.profile) < 0)
        return status_of("no memory");
    FILE *file = fopen(*path, "w");
    if (!file)
        return status_of("no file");
    fputs("[\n{\"cat\" : \"Session\",\"dur\" :5,\"name\" :\"model_loading_uri\",\"args\" : {}},\n", file);
    for (unsigned i = 0; i < one->runs; i++) {
        if (asks(one, "fp16"))
            put_node(file, "InsertedPrecisionFreeCast_x", "Cast", 2, "[{\"float16\":[1,4]}]", "[{\"float\":[1,4]}]");
        put_node(file, "fc", "Gemm", i ? 10 : 1000, "[{\"float\":[1,4]},{\"float\":[4,4]}]", "[{\"float\":[1,4]}]");
        put_node(file, "act", "Relu", 5, "[{\"float\":[1,4]}]", "[{\"float\":[1,4]}]");
        fputs("{\"cat\" : \"Session\",\"dur\" :20,\"name\" :\"model_run\",\"args\" : {}},\n", file);
    }
    if (asks(one, "kill-profile") && fflush(file) == 0)
        raise(SIGKILL);
    fputs(asks(one, "torn-profile") ? "{\"cat\" : \"No"
                                    : "{\"cat\" : \"Session\",\"dur\" :1,\"name\" :\"end\",\"args\" : {}}\n]\n",
          file);
    fclose(file);
    return NULL;
}

static void *table[SLOTS];

static const void *get_api(uint32_t version)
{
    if (version > NEWEST)
        return NULL;
    const struct {
        int slot;
        void *function;
    } all[] = {{2, (void *)error_message},
               {3, (void *)create_env},
               {7, (void *)create_session},
               {8, (void *)create_session_of},
               {9, (void *)run},
               {10, (void *)create_options},
               {14, (void *)enable_profiling},
               {24, (void *)set_threads},
               {30, (void *)count_one},
               {31, (void *)count_one},
               {33, (void *)input_type},
               {36, (void *)input_name},
               {37, (void *)output_name},
               {49, (void *)create_tensor},
               {51, (void *)tensor_data},
               {55, (void *)tensor_info},
               {60, (void *)element_type},
               {61, (void *)rank},
               {62, (void *)dims},
               {65, (void *)value_info},
               {69, (void *)cpu_memory},
               {76, (void *)free_memory},
               {78, (void *)default_allocator},
               {92, (void *)keep},
               {93, (void *)free},
               {94, (void *)keep},
               {95, (void *)free},
               {96, (void *)release_value},
               {98, (void *)free},
               {99, (void *)free},
               {100, (void *)free},
               {110, (void *)end_profiling}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        table[all[i].slot] = all[i].function;
    return table;
}

static const char *get_version(void)
{
    return NEWEST == 2 ? "1.2.0" : "1.20.1";
}

const void *OrtGetApiBase(void);
const void *OrtGetApiBase(void)
{
    static const struct {
        const void *(*api)(uint32_t);
        const char *(*version)(void);
    } base = {get_api, get_version};
    return &base;
}
