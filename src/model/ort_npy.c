/* ort_npy: tensors from files: NumPy's .npy, or raw bytes; and the header of an .npy for readers of outputs.
 * Owned by the calling thread. Trusts nothing it reads.
 * Must not know the runtime. */
#define _GNU_SOURCE
#include "ort.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tare.h"

#define HEADER_MAX 65536u
#define FILE_MAX   ((int64_t)1 << 36)

static const struct {
    const char *code; /* without its byte order */
    int type;
} codes[] = {{"f4", 1}, {"u1", 2}, {"i1", 3}, {"u2", 4}, {"i2", 5}, {"i4", 6}, {"i8", 7}, {"b1", 9},
             {"f2", 10}, {"f8", 11}, {"u4", 12}, {"u8", 13}};

/* ---- .npy ----------------------------------------------------------------------------------------------------- */
/* The value of 'key': in the header, a Python dictionary of three entries. */
static const char *value_of(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *at = strstr(header, quoted);
    at = at ? strchr(at + strlen(quoted), ':') : NULL;
    return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

static bool parse_shape(const char *at, tare__ort_tensor *tensor)
{
    tensor->rank = 0;
    if (!at || *at++ != '(')
        return false;
    while (*(at += strspn(at, " ,")) != ')') {
        char *end;
        errno = 0;
        if (*at < '0' || *at > '9' || tensor->rank == TARE__ORT_RANK_MAX)
            return false;
        tensor->dims[tensor->rank++] = strtoll(at, &end, 10);
        if (errno)
            return false;
        at = end;
    }
    return tare__ort_elements(tensor->dims, tensor->rank) >= 0;
}

static int parse_header(const char *header, const char *path, tare__ort_tensor *tensor, tare__error *error)
{
    const char *descr = value_of(header, "descr"), *order = value_of(header, "fortran_order");
    if (!descr || *descr != '\'' || strlen(descr) < 5 || !order)
        return tare__fail(error, TARE_E_INPUT, "'%.200s' is a damaged .npy file: its header has no simple type", path);
    if (strncmp(order, "True", 4) == 0)
        return tare__fail(error, TARE_E_INPUT, "'%.200s' is in Fortran order; save numpy.ascontiguousarray of it",
                          path);
    if (descr[1] == '>')
        return tare__fail(error, TARE_E_INPUT, "'%.200s' has a different byte order", path);
    tensor->type = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(codes); i++)
        if (strncmp(descr + 2, codes[i].code, 2) == 0 && descr[4] == '\'')
            tensor->type = codes[i].type;
    if (!tensor->type)
        return tare__fail(error, TARE_E_INPUT, "'%.200s' is of type %.20s, which models do not support", path, descr);
    if (!parse_shape(value_of(header, "shape"), tensor))
        return tare__fail(error, TARE_E_INPUT, "'%.200s' is a damaged .npy file: its shape cannot be read", path);
    return 0;
}

int tare__npy_parse(const unsigned char *bytes, size_t length, const char *path, tare__ort_tensor *tensor,
                    size_t *offset, tare__error *error)
{
    size_t before, header;
    if (length < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return tare__fail(error, TARE_E_INPUT, "'%.200s' is not a .npy file", path);
    if (bytes[6] == 1) {
        before = 10;
        header = bytes[8] | (size_t)bytes[9] << 8;
    } else {
        before = 12;
        header = bytes[8] | (size_t)bytes[9] << 8 | (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (header > HEADER_MAX || before + header > length)
        return tare__fail(error, TARE_E_INPUT, "'%.200s' is a damaged .npy file: it ends inside its header", path);
    char *text = malloc(header + 1);
    if (!text)
        return tare__no_memory(error);
    memcpy(text, bytes + before, header);
    text[header] = '\0';
    int status = parse_header(text, path, tensor, error);
    free(text);
    *offset = before + header;
    return status;
}

size_t tare__npy_header(const tare__ort_tensor *tensor, unsigned char out[512])
{
    const char *code = NULL;
    char text[460];
    for (size_t i = 0; i < TARE__COUNT_OF(codes); i++)
        if (codes[i].type == tensor->type)
            code = codes[i].code;
    if (!code || tensor->rank > 16)
        return 0;
    int at = snprintf(text, sizeof text, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                      code[1] == '1' ? "|" : "<", code);
    for (size_t i = 0; i < tensor->rank; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%lld,", (long long)tensor->dims[i]);
    at += snprintf(text + at, sizeof text - (size_t)at, "), }");
    size_t whole = (size_t)(10 + at + 1 + 63) / 64 * 64; /* values begin at a multiple of 64 */
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (unsigned char)((whole - 10) & 0xff);
    out[9] = (unsigned char)((whole - 10) >> 8);
    memset(out + 10, ' ', whole - 10);
    memcpy(out + 10, text, (size_t)at);
    out[whole - 1] = '\n';
    return whole;
}

/* ---- files ---------------------------------------------------------------------------------------------------- */
static int read_whole(const char *path, tare__arena *arena, unsigned char **bytes, size_t *length, tare__error *error)
{
    struct stat info;
    int fd, status = tare__input_file(path, &fd, error);
    if (status)
        return status;
    if (fstat(fd, &info) != 0 || info.st_size > FILE_MAX)
        status = tare__fail(error, TARE_E_INPUT, "'%.200s' is not a tensor file", path);
    *length = status ? 0 : (size_t)info.st_size;
    *bytes = status ? NULL : tare__arena_alloc(arena, *length + 1);
    if (!status && !*bytes)
        status = tare__fail(error, TARE_E_MEMORY, "out of memory: '%.200s' has %zu bytes", path, *length);
    size_t got = 0;
    int failure = status ? 0 : tare__pread_all(fd, *bytes, *length, 0, &got);
    if (failure || (!status && got != *length))
        status = tare__fail(error, TARE_E_INPUT, "cannot read '%.200s': %s", path,
                            failure ? strerror(-failure) : "it was truncated");
    close(fd);
    return status;
}

void tare__runner_file_shape(tare__runner_file *file)
{
    unsigned char bytes[4096];
    tare__ort_tensor tensor = {.name = ""};
    tare__error error = {""};
    size_t got = 0, offset = 0;
    const char *is;
    int fd = file->path ? tare__input_open(file->path, false, &is) : -1;
    file->rank = -1;
    if (fd < 0)
        return;
    if (tare__pread_all(fd, bytes, sizeof bytes, 0, &got) == 0 && got > 6 && memcmp(bytes, "\x93NUMPY", 6) == 0 &&
        tare__npy_parse(bytes, got, file->path, &tensor, &offset, &error) == 0) {
        file->rank = (int)tensor.rank;
        memcpy(file->dims, tensor.dims, tensor.rank * sizeof *file->dims);
    }
    close(fd);
}

/* Samples one after the other, repeated from the first if the file has fewer. */
static int fit_batch(tare__ort_tensor *tensor, int64_t batch, tare__arena *arena, tare__error *error)
{
    int64_t rows = tensor->rank ? tensor->dims[0] : 0;
    if (batch <= 0 || rows == batch || !tensor->rank)
        return 0;
    if (rows == 0)
        return tare__fail(error, TARE_E_INPUT, "the file for input '%.100s' has no samples", tensor->name);
    size_t row = tensor->bytes / (size_t)rows;
    char *data = row > SIZE_MAX / (size_t)batch ? NULL : tare__arena_alloc(arena, row * (size_t)batch + 1);
    if (!data)
        return tare__no_memory(error);
    for (int64_t i = 0; i < batch; i++)
        memcpy(data + (size_t)i * row, (const char *)tensor->data + (size_t)(i % rows) * row, row);
    tensor->data = data;
    tensor->bytes = row * (size_t)batch;
    tensor->dims[0] = batch;
    return 0;
}

static int read_npy(tare__ort_tensor *tensor, unsigned char *bytes, size_t length, const char *path, tare__error *error)
{
    int wanted = tensor->type;
    size_t offset = 0;
    int status = tare__npy_parse(bytes, length, path, tensor, &offset, error);
    if (status)
        return status;
    if (wanted && tensor->type != wanted)
        return tare__fail(error, TARE_E_INPUT, "'%.200s' is %s, and input '%.100s' is %s", path,
                          tare__ort_type_name(tensor->type), tensor->name,
                          tare__ort_type_name(wanted) ? tare__ort_type_name(wanted) : "of another type");
    size_t needed = (size_t)tare__ort_elements(tensor->dims, tensor->rank) * tare__ort_type_bytes(tensor->type);
    if (length - offset < needed)
        return tare__fail(error, TARE_E_INPUT, "'%.200s' is truncated: %zu bytes of values, its shape requires %zu",
                          path, length - offset, needed);
    tensor->data = memmove(bytes, bytes + offset, needed); /* aligned, whatever the header's length */
    tensor->bytes = needed;
    return 0;
}

static int read_bare(tare__ort_tensor *tensor, unsigned char *bytes, size_t length, const char *path,
                     tare__error *error)
{
    size_t size = tare__ort_type_bytes(tensor->type);
    int64_t elements = tare__ort_elements(tensor->dims, tensor->rank);
    if (!size || elements < 0)
        return tare__fail(error, TARE_E_INPUT,
                          "'%.200s' is bare bytes, and the shape of input '%.100s' is open: --shape "
                          "closes it, or an .npy file brings its own",
                          path, tensor->name);
    size_t row = tensor->rank && tensor->dims[0] > 0 ? (size_t)elements / (size_t)tensor->dims[0] * size
                                                     : (size_t)elements * size;
    if (!row || length % row || !length)
        return tare__fail(error, TARE_E_INPUT, "'%.200s' has %zu bytes; a sample of input '%.100s' has %zu", path,
                          length, tensor->name, row);
    if (tensor->rank)
        tensor->dims[0] = (int64_t)(length / row);
    else if (length != row)
        return tare__fail(error, TARE_E_INPUT, "'%.200s' has %zu bytes, and input '%.100s' %zu", path, length,
                          tensor->name, row);
    tensor->data = bytes;
    tensor->bytes = length;
    return 0;
}

int tare__ort_read(tare__ort_tensor *tensor, const char *path, int64_t batch, tare__arena *arena, tare__error *error)
{
    unsigned char *bytes = NULL;
    size_t length = 0, ending = strlen(path);
    int status = read_whole(path, arena, &bytes, &length, error);
    if (status)
        return status;
    bool npy = (ending > 4 && strcmp(path + ending - 4, ".npy") == 0) ||
               (length > 6 && memcmp(bytes, "\x93NUMPY", 6) == 0);
    status = npy ? read_npy(tensor, bytes, length, path, error) : read_bare(tensor, bytes, length, path, error);
    tensor->from_file = true;
    return status ? status : fit_batch(tensor, batch, arena, error);
}
