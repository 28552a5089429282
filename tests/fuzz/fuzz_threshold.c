/* Fuzzes the reader of thresholds, and the patterns in them: any text, against itself and a name. One thread.
 * Must not know what thresholds are for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tare__error error = {""};
    tare__threshold threshold;
    char *word = malloc(bytes + 1);
    if (!word)
        return 0;
    memcpy(word, data, bytes);
    word[bytes] = '\0';
    if (tare__threshold_parse(word, "--threshold", &threshold, &error) == 0) {
        if (!(threshold.value >= 0) || isinf(threshold.value) || !threshold.name[0])
            abort();
        tare__threshold_names(&threshold, word);
        tare__threshold_names(&threshold, "operator:aten::mm");
        tare__threshold_fits(threshold.unit, "samples/s");
    } else if (!error.text[0]) {
        abort();
    }
    free(word);
    return 0;
}
