/* ort_inner: shared by the files that measure: the current measurement. One thread.
 * Must not know how anything is shown. */
#ifndef TARE_MODEL_ORT_INNER_H
#define TARE_MODEL_ORT_INNER_H

#include "model.h"
#include "ort_child.h"
#include "ort_profile.h"

/* A folder for files of the runtime, in the directory for temporary files. It is locked while the process that
 * created it, or one that it forked, lives. */
typedef struct tare__ort_folder {
    char path[512]; /* "": none */
    int lock;
} tare__ort_folder;

bool tare__ort_folder_make(tare__ort_folder *folder);
void tare__ort_folder_remove(tare__ort_folder *folder); /* with the files in it; a missing one is allowed */
void tare__ort_folder_sweep(void);                      /* those left by killed processes of this user */

typedef struct tare__measuring {
    const tare__model_report *report;      /* of the first batch */
    const tare__model_options *analyzed;
    const tare__runner_options *options;
    tare__model_measured *measured;
    const char *library;                   /* for the loader */
    tare__ort_folder folder;               /* of the model in half precision */
    char half[540];                        /* … its path */
    const char *no_half;                   /* why there is none; NULL: not tried, or it exists */
    tare__error *error;
} tare__measuring;

/* A copy that lives as long as the measurements; NULL: out of memory. */
const char *tare__measuring_text(tare__measuring *measuring, const char *text);

/* Inputs of one configuration in a separate arena. 0; TARE_E_USAGE: this batch, or values of an input, are not
 * possible, with a message; else the error of a file. *batch becomes the samples per run; 0: unknown. */
int tare__inputs_make(tare__measuring *measuring, const tare__model_report *report, int64_t requested,
                      tare__arena *arena, tare__ort_tensor **tensors, size_t *n, int64_t *batch, tare__error *error);

/* Copies the values of a board to the result. */
int tare__result_fill(tare__runner_result *result, const tare__board *board, const tare__child_seen *seen,
                      const tare__ort_tensor *tensors, size_t n_tensors, tare__arena *arena);
void tare__results_mark_best(tare__runner_result *results, size_t n);

/* Layers of a profile, and what was executed. */
int tare__layers_of(tare__measuring *measuring, const tare__model_report *report, const tare__profile *profile,
                    const tare__runner_result *result);
void tare__executed_of(tare__measuring *measuring, const tare__profile *profile, tare__runner_result *result);

#endif
