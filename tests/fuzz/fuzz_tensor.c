/* Fuzzes what is read beside a model: the header of an .npy file, and ONNX Runtime's profile. One thread.
 * Must not know how models are run. */
#include <string.h>

#include "model/ort_profile.h"

static void read_profile(const uint8_t *data, size_t bytes)
{
    tare__memory_source from = {data, bytes};
    tare__arena *arena = tare__arena_new();
    tare__profile profile;
    uint64_t macs;
    if (arena && tare__profile_read_from(tare__memory_read, &from, arena, &profile, NULL) == 0)
        for (size_t i = 0; i < profile.n_nodes; i++)
            tare__profile_macs(profile.nodes[i], &macs);
    tare__arena_free(arena);
}

/* What was read is written so that it is read again. */
static void read_header(const uint8_t *data, size_t bytes)
{
    tare__ort_tensor tensor = {.name = "x"}, again = {.name = "x"};
    unsigned char header[512];
    size_t offset;
    if (tare__npy_parse(data, bytes, "x.npy", &tensor, &offset, NULL) != 0)
        return;
    size_t length = tare__npy_header(&tensor, header);
    if (length &&
        (tare__npy_parse(header, length, "x.npy", &again, &offset, NULL) != 0 || again.type != tensor.type ||
         again.rank != tensor.rank || memcmp(again.dims, tensor.dims, tensor.rank * sizeof *tensor.dims) != 0))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes > 0 && data[0] == 0x93)
        read_header(data, bytes);
    else
        read_profile(data, bytes);
    return 0;
}
