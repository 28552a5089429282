/* Fuzzes the reader of settings files: any bytes, both ways to read them. One thread.
 * Must not know the settings. */
#include "base/toml.c"

static int take(void *context, const tare__toml_pair *pair, tare__error *error)
{
    (void)error;
    *(size_t *)context += strlen(pair->key) + strlen(pair->value);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tare__error error;
    size_t sum = 0;
    tare__toml_read((const char *)data, bytes, "tare.toml", "", take, &sum, &error);
    tare__toml_read((const char *)data, bytes, "pyproject.toml", "tool.tare", take, &sum, &error);
    tare__toml_read((const char *)data, bytes, "tare.toml", "check", take, &sum, &error);
    return 0;
}
