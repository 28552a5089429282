/* fuzz_baseline: any bytes as a baseline or a model's report: what reads is written and must read back the same.
 * Nothing may crash, hang or leak.
 * One thread. Must not know what a right answer is. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "emit/emit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tare__figures *figures, *again;
    tare__error error;
    if (tare__figures_read_json((const char *)data, bytes, "fuzz", &figures, &error))
        return 0;
    tare__text text = {0};
    tare__put_document(&text, &tare__document_baseline, figures, bytes & 1);
    if (text.failed || tare__figures_read_json(text.data, text.length, "fuzz", &again, &error) ||
        again->n != figures->n)
        abort();
    tare__figures_free(again);
    tare__figures_free(figures);
    tare__text_free(&text);
    return 0;
}
