/* Fuzzes the reader of models: any bytes are weighed, or refused with a sentence. One thread.
 * Must not know the format. */
#include <string.h>

#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const tare__model_dimension dimensions[] = {{"sequence", 7, false}};
    tare__model_options options = {.dimensions = dimensions, .n_dimensions = bytes % 2, .batch = (int64_t)(bytes % 3)};
    tare__model_report *report;
    tare__error error = {""};
    int status = tare__model_weigh_bytes(data, bytes, &options, &report, &error);
    if (status ? report != NULL || error.text[0] == '\0' : report == NULL)
        __builtin_trap();
    uint64_t macs = 0, parameters = 0;
    for (size_t i = 0; report && i < report->n_operators; i++) {
        macs += report->operators[i].cost.macs;
        parameters += report->operators[i].cost.parameters;
    }
    /* What is told apart must add up; weights that no node uses belong to none. */
    if (report && (macs != report->total.macs || parameters > report->total.parameters))
        __builtin_trap();
    tare__model_free(report);
    return 0;
}
