/* model_rig: a model for the look-alike runtime: its file is words that say what goes wrong, its report is made by
 * hand. Must not know what is tested. */
#ifndef TARE_TEST_MODEL_RIG_H
#define TARE_TEST_MODEL_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../fake/path.h"
#include "model/model.h"
#include "tare.h"

typedef struct model_rig {
    char path[64];
    int64_t dims[2];
    const char *symbols[2];
    tare__model_tensor input;
    tare__model_weights weights;
    tare__model_layer layers[2];
    tare__model_report report;
    tare__model_options analyzed;
    tare__runner_options options;
    tare__model_fill fill; /* random, normal */
    tare__model_measured *measured;
    tare__error error;
} model_rig;

static void rig_open(model_rig *rig, const char *words)
{
    *rig = (model_rig){.path = "/tmp/tare-model.XXXXXX", .dims = {1, 4}, .symbols = {"batch", NULL}};
    int fd = mkstemp(rig->path);
    assert_true(fd >= 0 && write(fd, words, strlen(words)) == (ssize_t)strlen(words));
    close(fd);
    bool half = strstr(words, "fp16") != NULL;
    rig->input = (tare__model_tensor){.name = "x", .type = half ? "float16" : "float32", .element_type = half ? 10 : 1,
                                      .rank = 2, .dims = rig->dims, .symbols = rig->symbols};
    rig->weights = (tare__model_weights){half ? "float16" : "float32", 1, 16, 64};
    rig->layers[0] =
        (tare__model_layer){.name = "fc", .node = "fc", .op = "MatMul", .domain = "", .cost = {.macs = 16}};
    rig->layers[1] = (tare__model_layer){.name = "act", .node = "act", .op = "Relu", .domain = ""};
    rig->report = (tare__model_report){.path = rig->path,
                                       .inputs = &rig->input,
                                       .n_inputs = 1,
                                       .fills = &rig->fill,
                                       .types = &rig->weights,
                                       .n_types = 1,
                                       .layers = rig->layers,
                                       .n_layers = 2,
                                       .total = {.macs = 16}};
    rig->options = (tare__runner_options){.model = rig->path,
                                          .runtime = strdup(fake_path("ort")),
                                          .runs = 50,
                                          .warmup = 5,
                                          .warmup_is_fixed = true,
                                          .seconds = 1};
}

static int rig_measure(model_rig *rig)
{
    tare__model_measured_free(rig->measured);
    rig->measured = NULL;
    return tare__model_measure(&rig->report, &rig->analyzed, &rig->options, &rig->measured, &rig->error);
}

static void rig_close(model_rig *rig)
{
    tare__model_measured_free(rig->measured);
    free((char *)rig->options.runtime);
    unlink(rig->path);
}

#endif
