/* A small trace of one span, for tests of commands. One thread. */
#ifndef TARE_TEST_CLI_TRACE_H
#define TARE_TEST_CLI_TRACE_H

#include <fcntl.h>
#include <unistd.h>

#include "format/format.h"
#include "tare.h"

static void add_run(tare__text *file, const char *session_folder)
{
    tare__text fields = {0};
    tare__file_header header;
    tare__file_header_make(&header);
    tare__text_append(file, (const char *)&header, sizeof header);
    tare__field_bytes(&fields, TARE__FIELD_COMMAND, "./prog", sizeof "./prog");
    tare__field_number(&fields, TARE__FIELD_CLOCK_KIND, TARE__CLOCK_MONOTONIC);
    tare__field_number(&fields, TARE__FIELD_START_TICKS, 1000);
    if (session_folder)
        tare__field_string(&fields, TARE__FIELD_FOLDER, session_folder);
    assert_int_equal(tare__fields_seal(TARE__BLOCK_RUN, 0, &fields, file), 0);
    tare__text_free(&fields);
}

static void add_events(tare__text *file)
{
    static const tare__file_name name = {1, TARE_KIND_SPAN, 1, "work", "a.c", 4, 3};
    tare__squeezer *squeezer = tare__squeezer_new();
    tare__events_encoder *encoder = tare__events_encoder_new();
    tare__block_header header = {.stream = 1};
    tare__span_stack none = {0};
    assert_true(squeezer && encoder);
    assert_int_equal(tare__names_seal(&name, 1, squeezer, file), 0);
    tare__events_reset(encoder, 0);
    tare__events_add(encoder, TARE__OP_BEGIN, 1, 2000);
    tare__events_add(encoder, TARE__OP_END, 0, 3000);
    assert_int_equal(tare__events_seal(encoder, squeezer, &none, &header, file), 0);
    tare__events_encoder_free(encoder);
    tare__squeezer_free(squeezer);
}

static void write_file(const char *path, const void *data, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(tare__write_all(fd, data, bytes), 0);
    close(fd);
}

/* `session_folder` NULL: it tells of none. */
static void write_trace_to(const char *path, bool finished, const char *session_folder)
{
    tare__text file = {0}, fields = {0};
    add_run(&file, session_folder);
    add_events(&file);
    tare__field_number(&fields, TARE__FIELD_END_TICKS, 5000);
    if (finished)
        assert_int_equal(tare__fields_seal(TARE__BLOCK_END, 0, &fields, &file), 0);
    write_file(path, file.data, file.length);
    tare__text_free(&file);
    tare__text_free(&fields);
}

#endif
