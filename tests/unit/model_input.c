/* model_input: values made up for inputs, and those of files: .npy, bare bytes, broken ones. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/inputs.h"
#include "model/model.h"
#include "model/ort.h"
#include "tare.h"

static tare__arena *arena;
static tare__error error;

static int make(void **state)
{
    (void)state;
    arena = tare__arena_new();
    return arena == NULL;
}

static int drop(void **state)
{
    (void)state;
    tare__arena_free(arena);
    return 0;
}

static int generate(tare__ort_tensor *tensor, int64_t rows, uint64_t seed)
{
    tare__input input = {.name = tensor->name, .type = tensor->type, .rank = (int)tensor->rank, .dims = tensor->dims,
                         .rows = rows};
    tare__model_fill fill = tare__input_fill(&input, 1, 0);
    return tare__ort_generate(tensor, &fill, seed, arena, &error);
}

/* ---- generated ------------------------------------------------------------------------------------------------ */
static void the_same_seed_gives_the_same(void **state)
{
    (void)state;
    tare__ort_tensor a = {.name = "x", .type = 1, .rank = 2, .dims = {3, 100}}, b = a, c = a, other = a;
    other.name = "y";
    assert_int_equal(generate(&a, 0, 7), 0);
    assert_int_equal(generate(&b, 0, 7), 0);
    assert_int_equal(generate(&c, 0, 8), 0);
    assert_int_equal(generate(&other, 0, 7), 0);
    assert_int_equal(a.bytes, 1200);
    assert_memory_equal(a.data, b.data, a.bytes);
    assert_memory_not_equal(a.data, c.data, a.bytes);
    assert_memory_not_equal(a.data, other.data, a.bytes);
    const float *values = a.data;
    double sum = 0;
    for (size_t i = 0; i < 300; i++)
        sum += values[i];
    assert_true(fabs(sum / 300) < 0.5);
}

static void ids_masks_and_positions_make_sense(void **state)
{
    (void)state;
    tare__ort_tensor ids = {.name = "input_ids", .type = 7, .rank = 2, .dims = {2, 50}};
    tare__ort_tensor mask = {.name = "attention_mask", .type = 7, .rank = 2, .dims = {2, 50}};
    tare__ort_tensor kinds = {.name = "token_type_ids", .type = 7, .rank = 2, .dims = {2, 50}};
    tare__ort_tensor places = {.name = "position_ids", .type = 7, .rank = 2, .dims = {2, 50}};
    tare__ort_tensor *all[] = {&ids, &mask, &kinds, &places};
    bool seen[10] = {false};
    for (size_t i = 0; i < TARE__COUNT_OF(all); i++)
        assert_int_equal(generate(all[i], i == 0 ? 10 : 0, 1), 0);
    for (size_t i = 0; i < 100; i++) {
        int64_t id = ((int64_t *)ids.data)[i];
        assert_in_range(id, 0, 9);
        seen[id] = true;
        assert_int_equal(((int64_t *)mask.data)[i], 1);
        assert_int_equal(((int64_t *)kinds.data)[i], 0);
        assert_int_equal(((int64_t *)places.data)[i], i % 50);
    }
    for (size_t i = 0; i < 10; i++)
        assert_true(seen[i]);
}

/* What makes a model compute something else when it is 0 or 1. */
static void names_tell_what_inputs_are_for(void **state)
{
    (void)state;
    static const int64_t none[1] = {0}, one[] = {1}, three[] = {3}, tokens[] = {1, 37}, features[] = {1, 80, 500},
                         image[] = {1, 3, 480, 640}, two[] = {1, 2}, added[] = {1, 1, 9, 9}, embedding[] = {1, 192};
    const tare__input all[] = {
        {.name = "sr", .type = 7, .rank = 0, .dims = none},
        {.name = "input", .type = 7, .rank = 2, .dims = tokens},
        {.name = "input_lengths", .type = 7, .rank = 1, .dims = one},
        {.name = "scales", .type = 1, .rank = 1, .dims = three},
        {.name = "feats", .type = 1, .rank = 3, .dims = features, .open = 4},
        {.name = "feats_len", .type = 6, .rank = 1, .dims = one},
        {.name = "image", .type = 1, .rank = 4, .dims = image},
        {.name = "orig_target_sizes", .type = 7, .rank = 2, .dims = two},
        {.name = "use_cache_branch", .type = 9, .rank = 1, .dims = one},
        {.name = "state", .type = 1, .rank = 1, .dims = three},
        {.name = "encoder_hidden_states", .type = 1, .rank = 3, .dims = features},
        {.name = "attention_mask", .type = 1, .rank = 4, .dims = added},
        {.name = "length_scale", .type = 1, .rank = 1, .dims = one},
        {.name = "key_padding_mask", .type = 9, .rank = 2, .dims = tokens},
        {.name = "speaker", .type = 1, .rank = 2, .dims = embedding},
        {.name = "gain", .type = 1, .rank = 0, .dims = none},
        {.name = "count", .type = 7, .rank = 0, .dims = none},
    };
    const struct {
        tare__fill_kind kind;
        double first, second;
    } wanted[] = {
        {TARE__FILL_VALUES, 16000, 0}, {TARE__FILL_WHOLE, 0, 0},      {TARE__FILL_VALUES, 37, 0},
        {TARE__FILL_VALUES, 0.667, 1}, {TARE__FILL_NORMAL, 0, 0},     {TARE__FILL_VALUES, 500, 0},
        {TARE__FILL_UNIFORM, 0, 0},    {TARE__FILL_VALUES, 480, 640}, {TARE__FILL_VALUES, 0, 0},
        {TARE__FILL_VALUES, 0, 0},     {TARE__FILL_NORMAL, 0, 0},     {TARE__FILL_VALUES, 0, 0},
        {TARE__FILL_VALUES, 1, 0},     {TARE__FILL_VALUES, 0, 0},     {TARE__FILL_NORMAL, 0, 0},
        {TARE__FILL_VALUES, 1, 0},     {TARE__FILL_VALUES, 1, 0},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(all); i++) {
        tare__model_fill fill = tare__input_fill(all, TARE__COUNT_OF(all), i);
        if (fill.kind != wanted[i].kind || fill.values[0] != wanted[i].first || fill.values[1] != wanted[i].second)
            fail_msg("%s: kind %d, %g, %g", all[i].name, (int)fill.kind, fill.values[0], fill.values[1]);
    }
}

static void padding_is_no_token(void **state)
{
    (void)state;
    int64_t ones[] = {1, 1, 1, 0, 1, 0, 0, 0}, words[8] = {0};
    tare__ort_tensor tensors[] = {
        {.name = "input_ids", .type = 7, .rank = 2, .dims = {2, 4}, .data = words, .bytes = sizeof words},
        {.name = "attention_mask", .type = 7, .rank = 2, .dims = {2, 4}, .data = ones, .bytes = sizeof ones}};
    assert_int_equal(tare__ort_tokens(tensors, 2), 4);
    assert_int_equal(tare__ort_tokens(tensors, 1), 8);
    assert_int_equal(tare__ort_images(tensors, 2), 0);
    tare__ort_tensor image = {.name = "pixels", .type = 1, .rank = 4, .dims = {5, 3, 8, 8}};
    assert_int_equal(tare__ort_images(&image, 1), 5);
    assert_int_equal(tare__ort_tokens(&image, 1), 0);
}

static void shapes_that_cannot_be(void **state)
{
    (void)state;
    tare__ort_tensor open = {.name = "x", .type = 1, .rank = 2, .dims = {-1, 4}};
    tare__ort_tensor huge = {.name = "x", .type = 1, .rank = 3, .dims = {1 << 30, 1 << 30, 1 << 30}};
    tare__ort_tensor words = {.name = "x", .type = 8, .rank = 1, .dims = {4}};
    assert_int_equal(generate(&open, 0, 0), TARE_E_USAGE);
    assert_non_null(strstr(error.text, "--dim"));
    assert_int_equal(generate(&huge, 0, 0), TARE_E_USAGE);
    assert_int_equal(generate(&words, 0, 0), TARE_E_USAGE);
    assert_non_null(strstr(error.text, "string"));
}

/* ---- from files ----------------------------------------------------------------------------------------------- */
static const char *file_of(const void *data, size_t bytes, const char *ending)
{
    static char path[80];
    snprintf(path, sizeof path, "/tmp/tare-input.XXXXXX%s", ending);
    int fd = mkstemps(path, (int)strlen(ending));
    assert_true(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
    close(fd);
    return path;
}

static int read_back(tare__ort_tensor *tensor, const void *data, size_t bytes, const char *ending, int64_t batch)
{
    const char *path = file_of(data, bytes, ending);
    int status = tare__ort_read(tensor, path, batch, arena, &error);
    unlink(path);
    return status;
}

static size_t npy_of(unsigned char *out, int type, size_t rank, const int64_t *dims, const void *data, size_t bytes)
{
    tare__ort_tensor tensor = {.type = type, .rank = rank};
    memcpy(tensor.dims, dims, rank * sizeof *dims);
    size_t header = tare__npy_header(&tensor, out);
    assert_int_not_equal(header, 0);
    assert_int_equal(header % 64, 0);
    memcpy(out + header, data, bytes);
    return header + bytes;
}

static void npy_brings_its_shape(void **state)
{
    (void)state;
    unsigned char file[1024];
    float values[6] = {1, 2, 3, 4, 5, 6};
    size_t bytes = npy_of(file, 1, 2, (int64_t[]){2, 3}, values, sizeof values);
    tare__ort_tensor tensor = {.name = "x", .type = 1, .rank = 2, .dims = {-1, 3}};
    assert_int_equal(read_back(&tensor, file, bytes, ".npy", 0), 0);
    assert_int_equal(tensor.rank, 2);
    assert_int_equal(tensor.dims[0], 2);
    assert_memory_equal(tensor.data, values, sizeof values);
    /* Samples again from the first, and fewer. */
    assert_int_equal(read_back(&tensor, file, bytes, ".npy", 3), 0);
    assert_int_equal(tensor.dims[0], 3);
    assert_true(((float *)tensor.data)[6] == 1 && ((float *)tensor.data)[8] == 3);
    assert_int_equal(read_back(&tensor, file, bytes, ".npy", 1), 0);
    assert_int_equal(tensor.bytes, 12);
}

static void bare_bytes_have_the_inputs_shape(void **state)
{
    (void)state;
    float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    tare__ort_tensor tensor = {.name = "x", .type = 1, .rank = 2, .dims = {1, 4}};
    assert_int_equal(read_back(&tensor, values, sizeof values, ".bin", 0), 0);
    assert_int_equal(tensor.dims[0], 2);
    tensor = (tare__ort_tensor){.name = "x", .type = 1, .rank = 2, .dims = {1, 4}};
    assert_int_equal(read_back(&tensor, values, 30, ".bin", 0), TARE_E_INPUT);
    assert_non_null(strstr(error.text, "30 bytes"));
}

static void broken_files_get_a_sentence(void **state)
{
    (void)state;
    unsigned char file[1024];
    float values[6] = {0};
    size_t whole = npy_of(file, 1, 2, (int64_t[]){2, 3}, values, sizeof values);
    tare__ort_tensor tensor = {.name = "x", .type = 1, .rank = 2, .dims = {1, 3}};
    for (size_t bytes = 0; bytes < whole; bytes++) { /* cut anywhere */
        tensor.type = 1;
        assert_int_equal(read_back(&tensor, file, bytes, ".npy", 0), TARE_E_INPUT);
        assert_true(error.text[0] != '\0');
    }
    tensor.type = 7;
    assert_int_equal(read_back(&tensor, file, whole, ".npy", 0), TARE_E_INPUT);
    assert_non_null(strstr(error.text, "is float32, and input 'x' is int64"));
    assert_int_equal(tare__ort_read(&tensor, "/nowhere/x.npy", 0, arena, &error), TARE_E_INPUT);
    assert_non_null(strstr(error.text, "cannot read '/nowhere/x.npy'"));
    char *order = strstr((char *)file + 10, "False");
    assert_non_null(order);
    memcpy(order, "True ", 5);
    tensor.type = 1;
    assert_int_equal(read_back(&tensor, file, whole, ".npy", 0), TARE_E_INPUT);
    assert_non_null(strstr(error.text, "Fortran"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same),
        cmocka_unit_test(ids_masks_and_positions_make_sense),
        cmocka_unit_test(names_tell_what_inputs_are_for),
        cmocka_unit_test(padding_is_no_token),
        cmocka_unit_test(shapes_that_cannot_be),
        cmocka_unit_test(npy_brings_its_shape),
        cmocka_unit_test(bare_bytes_have_the_inputs_shape),
        cmocka_unit_test(broken_files_get_a_sentence),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
