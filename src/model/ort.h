/* ort: the used part of ONNX Runtime's C interface, and a session with its inputs. One thread per session.
 * The table of functions only grows at its end, so that a slot's number identifies it.
 * Must not know what is measured. */
#ifndef TARE_MODEL_ORT_H
#define TARE_MODEL_ORT_H

#include "runner.h"

#define TARE__ORT_API 8 /* the oldest version that has all of the slots: 1.8 of 2021 */

/* All types of the runtime are opaque; a status is NULL on success. */
struct tare__ort {
    tare__dl dl;
    char version[32];
    const char *(*error_message)(const void *status);
    void *(*create_env)(int severity, const char *id, void **env);
    void *(*create_session)(const void *env, const char *path, const void *options, void **session);
    void *(*create_session_of)(const void *env, const void *model, size_t bytes, const void *options, void **session);
    void *(*run)(void *session, const void *run_options, const char *const *input_names, const void *const *inputs,
                 size_t n_inputs, const char *const *output_names, size_t n_outputs, void **outputs);
    void *(*create_options)(void **options);
    void *(*enable_profiling)(void *options, const char *prefix);
    void *(*set_threads)(void *options, int threads);
    void *(*input_count)(const void *session, size_t *n);
    void *(*output_count)(const void *session, size_t *n);
    void *(*input_type)(const void *session, size_t at, void **type);
    void *(*input_name)(const void *session, size_t at, void *allocator, char **name);
    void *(*output_name)(const void *session, size_t at, void *allocator, char **name);
    void *(*create_tensor)(const void *memory, void *data, size_t bytes, const int64_t *dims, size_t rank, int type,
                           void **value);
    void *(*tensor_data)(void *value, void **data);
    void *(*tensor_info)(const void *type, const void **info); /* belongs to the type */
    void *(*element_type)(const void *info, int *type);
    void *(*rank)(const void *info, size_t *rank);
    void *(*dims)(const void *info, int64_t *dims, size_t rank);
    void *(*value_info)(const void *value, void **info);
    void *(*cpu_memory)(int allocator, int kind, void **memory);
    void *(*free_memory)(void *allocator, void *memory);
    void *(*default_allocator)(void **allocator);
    void (*release_status)(void *status);
    void (*release_session)(void *session);
    void (*release_value)(void *value);
    void (*release_type)(void *type);
    void (*release_info)(void *info);
    void (*release_options)(void *options);
    void *(*end_profiling)(void *session, void *allocator, char **path);
};

/* 0; TARE_E_SYSTEM: it cannot be loaded; TARE_E_VERSION: not ONNX Runtime, or too old. With a message. */
int tare__ort_open(tare__ort *ort, const char *path, tare__error *error);
/* 0 if status is NULL; else TARE_E_INPUT with "WHAT: the runtime's message", and the status is released. */
int tare__ort_check(const tare__ort *ort, void *status, const char *what, tare__error *error);

/* ---- tensors that go in --------------------------------------------------------------------------------------- */
#define TARE__ORT_RANK_MAX 32u
typedef struct tare__ort_tensor {
    const char *name;
    int type; /* ONNX's number */
    size_t rank;
    int64_t dims[TARE__ORT_RANK_MAX];
    bool ids;         /* indexes a table */
    void *data;       /* in the arena or a mapping */
    size_t bytes;
    bool from_file;
} tare__ort_tensor;

size_t tare__ort_type_bytes(int type);       /* of one element; 0: not of fixed size, or unknown */
const char *tare__ort_type_name(int type);   /* "float32"; NULL */
/* Elements of the shape; -1: a dimension is open, or the number is too large. */
int64_t tare__ort_elements(const int64_t *dims, size_t rank);
/* Fills a tensor; random values are the same for the same seed. 0; TARE_E_USAGE: none can be generated;
 * TARE_E_MEMORY; with a message. */
struct tare__model_fill;
int tare__ort_generate(tare__ort_tensor *tensor, const struct tare__model_fill *fill, uint64_t seed, tare__arena *arena,
                       tare__error *error);
/* An input of a report with its values: generated, given, or from a file; `asked`: samples of a batch, 0: unchanged. */
int tare__input_make(const struct tare__model_report *report, size_t at, int64_t requested, uint64_t seed,
                     tare__arena *arena, tare__ort_tensor *tensor, tare__error *error);
/* Fills it from a file; its shape comes from an .npy, and must be set for any other. With `batch` above 0 the
 * samples of the file are repeated or truncated to that number. 0, TARE_E_INPUT, TARE_E_MEMORY. */
int tare__ort_read(tare__ort_tensor *tensor, const char *path, int64_t batch, tare__arena *arena, tare__error *error);
/* The header of an .npy: type, shape and where the values begin. 0 or TARE_E_INPUT with a message about `path`. */
int tare__npy_parse(const unsigned char *bytes, size_t length, const char *path, tare__ort_tensor *tensor,
                    size_t *offset, tare__error *error);
/* … and writes it: its bytes, 0 if the type has no name there. `out` has 512. */
size_t tare__npy_header(const tare__ort_tensor *tensor, unsigned char out[512]);

typedef enum tare__ort_kind {
    TARE__ORT_PLAIN,
    TARE__ORT_IDS,      /* of tokens */
    TARE__ORT_MASK,     /* 1 for a token, 0 for padding */
    TARE__ORT_SEGMENTS, /* of tokens: all 0 */
    TARE__ORT_POSITIONS,
    TARE__ORT_IMAGE
} tare__ort_kind;
/* Over all inputs: tokens (without padding), or images, in one run; 0: none. */
uint64_t tare__ort_tokens(const tare__ort_tensor *tensors, size_t n);
uint64_t tare__ort_images(const tare__ort_tensor *tensors, size_t n);

/* ---- a session ------------------------------------------------------------------------------------------------ */
struct tare__ort_session {
    const tare__ort *ort;
    void *env, *options, *session, *memory, *allocator;
    size_t n_inputs, n_outputs;
    char **input_names, **output_names;
    void **inputs, **outputs; /* values; outputs belong to the runtime, those of the last run are valid until they
                               * are dropped */
};
/* The runtime's one-time initialization in a process, before the first model is loaded. Never fails: a model that
 * does not load reports the reason. */
void tare__ort_start(const tare__ort *ort);
/* Loads the model. `threads` 0: the runtime's default. `profile`: a prefix of a path, or NULL. */
int tare__ort_load(tare__ort_session *session, const tare__ort *ort, const char *model, unsigned threads,
                   const char *profile, tare__error *error);
/* Creates values for the tensors, matched by name; the tensors must outlive the session. */
int tare__ort_feed(tare__ort_session *session, tare__ort_tensor *tensors, size_t n, tare__error *error);
int tare__ort_run_once(tare__ort_session *session, tare__error *error); /* outputs stay until they are dropped */
void tare__ort_drop_outputs(tare__ort_session *session);
/* Ends profiling; returns the path of the file, a copy. */
int tare__ort_profile_end(tare__ort_session *session, tare__text *path, tare__error *error);

#endif
