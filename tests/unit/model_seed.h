/* model_seed: a seed of the models' fuzzer, for tests of the room. One thread.
 * Must not know what is in it. */
#ifndef TARE_TESTS_MODEL_SEED_H
#define TARE_TESTS_MODEL_SEED_H

#include <stdio.h>
#include <string.h>

static uint8_t data[64 << 10];

/* Into `data`. */
static size_t read_seed(const char *name)
{
    const char *here = __FILE__, *slash = strrchr(here, '/');
    char path[512];
    snprintf(path, sizeof path, "%.*s../fuzz/corpus/fuzz_model/%s", (int)(slash + 1 - here), here, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("there is no %s", path);
    size_t bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    return bytes;
}

#endif
