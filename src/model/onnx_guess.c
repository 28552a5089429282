/* onnx_guess: identifies a file that is not an ONNX model, and says what to do.
 * Pure; any thread.
 * Must not know protobuf beyond its first level. */
#include "onnx.h"

static const struct {
    size_t at;
    const char *bytes;
    size_t n;
    const char *what;
} kinds[] = {
    {0, "PK\3\4", 4, "an archive, as torch.save and torch.export write it: export the model with torch.onnx.export, or "
                     "run it with tare.ModelProfiler"},
    {0, "\x80\2", 2, "a pickle, as older torch.save wrote it: export the model with torch.onnx.export"},
    {0, "\x80\4", 2, "a pickle: export the model to ONNX"},
    {0, "\x80\5", 2, "a pickle: export the model to ONNX"},
    {4, "ORTM", 4, "ONNX Runtime's own format: use the .onnx file that it was created from"},
    {4, "TFL3", 4, "a TensorFlow Lite model: tf2onnx --tflite converts it"},
    {0, "\x89HDF", 4, "HDF5, as Keras writes it: tf2onnx converts it"},
    {0, "GGUF", 4, "GGUF: weights without a graph"},
    {8, "{\"", 2, "safetensors: weights without a graph; export the model that they belong to"},
    {0, "\x1f\x8b", 2, "compressed: gunzip it first"},
    {0, "\x28\xb5\x2f\xfd", 4, "compressed: unzstd it first"},
    {0, "\xfd" "7zXZ", 5, "compressed: unxz it first"},
    {0, "version https://git-lfs", 23, "a pointer of Git LFS: `git lfs pull` fetches the model"},
    {0, "<", 1, "HTML or XML (failed download?)"},
    {0, "{", 1, "JSON"},
};

/* An incomplete download: the version is there, and the graph extends beyond the end. */
static bool is_cut_off(const tare__onnx *model)
{
    tare__wire wire = tare__wire_of((tare__slice){model->data, model->bytes});
    tare__wire_field field = {0};
    while (tare__wire_next(&wire, &field))
        continue;
    return wire.wrong && model->ir_version > 0 && field.number == 7 && field.type == TARE__WIRE_BYTES;
}

const char *tare__onnx_guess(const tare__onnx *model)
{
    if (is_cut_off(model))
        return "truncated inside its graph (incomplete download?)";
    for (size_t i = 0; i < TARE__COUNT_OF(kinds); i++)
        if (model->bytes >= kinds[i].at + kinds[i].n &&
            memcmp(model->data + kinds[i].at, kinds[i].bytes, kinds[i].n) == 0)
            return kinds[i].what;
    return NULL;
}
