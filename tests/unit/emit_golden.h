/* Compares what an emitter wrote with a file of tests/golden. One thread.
 * After a change that was meant, write the files anew and read the difference:
 *     TARE_GOLDEN=write meson test -C build --suite emit && git diff tests/golden */
#ifndef TARE_TEST_EMIT_GOLDEN_H
#define TARE_TEST_EMIT_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/emit.h"

/* A sink that keeps everything, and refuses from its `refuse`th write on. */
typedef struct kept {
    tare__text text;
    unsigned writes, refuse; /* 0: never */
} kept;

static int keep(void *context, const void *data, size_t bytes)
{
    kept *kept = context;
    if (++kept->writes == kept->refuse)
        return -28;
    tare__text_append(&kept->text, data, bytes);
    return 0;
}

static inline tare__emit_sink sink_of(kept *kept)
{
    return (tare__emit_sink){.write = keep, .context = kept};
}

/* Tests run in the build folder, from which the compiler was given this file's path. */
static inline void golden_path(char out[512], const char *name)
{
    const char *here = __FILE__, *slash = strrchr(here, '/');
    snprintf(out, 512, "%.*s../golden/%s", (int)(slash + 1 - here), here, name);
}

static inline void read_golden(const char *name, tare__text *text)
{
    char path[512], piece[4096];
    golden_path(path, name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("no golden file %s: run with TARE_GOLDEN=write, and read what was written", path);
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;)
        tare__text_append(text, piece, got);
    fclose(file);
}

static inline void write_golden(const char *name, const tare__text *text)
{
    char path[512];
    golden_path(path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text->data, 1, text->length, file), text->length);
    assert_int_equal(fclose(file), 0);
}

static inline void assert_golden(const char *name, const tare__text *got)
{
    const char *mode = getenv("TARE_GOLDEN");
    if (mode && strcmp(mode, "write") == 0) {
        write_golden(name, got);
        return;
    }
    tare__text wanted = {0};
    read_golden(name, &wanted);
    if (wanted.length != got->length || memcmp(wanted.data, got->data, got->length) != 0)
        print_error("---- tests/golden/%s is not what came out:\n%s----\n", name, got->data);
    assert_int_equal(wanted.length, got->length);
    assert_memory_equal(wanted.data, got->data, got->length);
    tare__text_free(&wanted);
}

/* Compares what is between two marks of a file in docs/ with what the schema says. */
static inline void assert_part_of_document(const char *file, const char *name, const char *test, const tare__text *part)
{
    char first[128], path[64];
    tare__text doc = {0}, wanted = {0};
    snprintf(path, sizeof path, "../../docs/%s", file);
    snprintf(first, sizeof first, "<!-- %s: made from src/analyze/schema by the unit test %s -->\n", name, test);
    read_golden(path, &doc);
    const char *from = strstr(doc.data, first), *to = from ? strstr(from, "<!-- end -->\n") : NULL;
    if (!to)
        fail_msg("docs/%s does not have the marks of: %s", file, name);
    tare__text_append(&wanted, doc.data, (size_t)(from - doc.data) + strlen(first));
    tare__text_append(&wanted, part->data, part->length);
    tare__text_string(&wanted, to);
    assert_golden(path, &wanted);
    tare__text_free(&doc);
    tare__text_free(&wanted);
}

#endif
