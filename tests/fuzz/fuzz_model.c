/* Fuzzes the reader of models: any bytes are weighed, or refused with a sentence; and what was weighed is converted
 * to half precision, or refused, and weighs the same. One thread.
 * Must not know the format. */
#include <string.h>

#include "model/half.h"
#include "model/model.h"

static int analyze(const void *data, size_t bytes, const tare__model_options *options, tare__model_report **report)
{
    tare__error error = {""};
    int status = tare__model_analyze_bytes(data, bytes, options, report, &error);
    if (status ? *report != NULL || error.text[0] == '\0' : *report == NULL)
        __builtin_trap();
    return status;
}

/* What is told apart must add up; weights that no node uses belong to none. */
static void add_up(const tare__model_report *report)
{
    uint64_t macs = 0, parameters = 0;
    for (size_t i = 0; i < report->n_operators; i++) {
        macs += report->operators[i].cost.macs;
        parameters += report->operators[i].cost.parameters;
    }
    if (macs != report->total.macs || parameters > report->total.parameters)
        __builtin_trap();
}

/* Shapes that the file tells of what is inside are gone: only what is counted without them can be compared. A
 * constant of tiny numbers becomes zeros, which are no parameters. */
static void convert(const uint8_t *data, size_t bytes, const tare__model_options *options,
                    const tare__model_report *report)
{
    tare__error error = {""};
    tare__text file = {0};
    tare__model_report *half = NULL;
    int status = tare__half_convert_bytes(data, bytes, &file, &error);
    if (status && error.text[0] == '\0')
        __builtin_trap();
    if (!status && (file.length > 16 * bytes + 4096 || analyze(file.data, file.length, options, &half) != 0))
        __builtin_trap();
    if (half && !half->not_counted && !report->not_counted &&
        (half->total.macs != report->total.macs || half->total.parameters > report->total.parameters))
        __builtin_trap();
    tare__model_free(half);
    tare__text_free(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const tare__model_dimension dimensions[] = {{"sequence", 7, false}};
    tare__model_options options = {.dimensions = dimensions, .n_dimensions = bytes % 2, .batch = (int64_t)(bytes % 3)};
    tare__model_report *report;
    if (analyze(data, bytes, &options, &report) != 0)
        return 0;
    add_up(report);
    convert(data, bytes, &options, report);
    tare__model_free(report);
    return 0;
}
