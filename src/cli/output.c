/* output: where a command's result goes: standard output, or a file that is written completely or not at all.
 * One thread.
 * Must not know what is written. */
#define _GNU_SOURCE
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tare.h"

/* A descriptor that is already open is used unchanged; anything else must still be a pipe or a device once it is open,
 * and a pipe must not be owned by another user. */
static int open_in_place(tare__cli_output *output, int descriptor, tare__error *error)
{
    struct stat info;
    output->fd = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
                                 : open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (output->fd < 0)
        return tare__fail(error, TARE_E_SYSTEM, "cannot write '%s': %s", output->path, strerror(errno));
    bool known = fstat(output->fd, &info) == 0;
    if (descriptor < 0 && (!known || S_ISREG(info.st_mode) ||
                           (S_ISFIFO(info.st_mode) && info.st_uid != geteuid() && info.st_uid != 0))) {
        close(output->fd);
        output->fd = -1;
        return tare__fail(error, TARE_E_PERMISSION, "'%s' was replaced while it was being opened", output->path);
    }
    output->terminal = isatty(output->fd);
    return 0;
}

static bool readable; /* by other users, as far as the umask allows */

void tare__cli_output_readable(void)
{
    readable = true;
}

/* In the same directory, so that the rename stays in one file system. A report may contain private data: mode 0600,
 * like the trace. */
static int open_temporary(tare__cli_output *output, tare__error *error)
{
    unsigned mode = readable ? 0666 : 0600;
    output->fd = output->in_folder ? tare__file_make_at(output->folder, output->name, mode, &output->temporary)
                                   : tare__file_make(output->path, mode, &output->temporary);
    if (output->fd < 0)
        return tare__fail(error, output->fd == -ENOMEM ? TARE_E_MEMORY : TARE_E_SYSTEM, "cannot write '%s': %s",
                          output->path, strerror(-output->fd));
    return 0;
}

/* A pipe or a device is written in place, unless the pipe is owned by another user; a file, including one below
 * /dev/shm, and a link to a file are replaced, not written to. */
static int open_path(tare__cli_output *output, const char *path, tare__error *error)
{
    struct stat info;
    int descriptor = tare__descriptor_named(path);
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return tare__fail(error, TARE_E_USAGE, "'%s' is a directory; give a file name", path);
    bool in_place = descriptor >= 0 || (exists && !S_ISREG(info.st_mode));
    if (in_place && descriptor < 0 && S_ISFIFO(info.st_mode) && info.st_uid != geteuid() && info.st_uid != 0)
        return tare__fail(error, TARE_E_PERMISSION, "'%s' is a pipe owned by another user", path);
    output->path = strdup(path);
    if (!output->path)
        return tare__no_memory(error);
    return in_place ? open_in_place(output, descriptor, error) : open_temporary(output, error);
}

int tare__cli_output_open(tare__cli_output *output, const char *path, tare__error *error)
{
    *output = (tare__cli_output){.fd = STDOUT_FILENO};
    if (!path) {
        output->terminal = isatty(STDOUT_FILENO);
        return 0;
    }
    int status = open_path(output, path, error);
    if (status) {
        free(output->path);
        output->path = NULL;
    }
    return status;
}

int tare__cli_output_open_in(tare__cli_output *output, int folder, const char *path, size_t name_bytes,
                             tare__error *error)
{
    *output = (tare__cli_output){.fd = -1, .in_folder = true, .folder = folder, .path = strdup(path)};
    if (!output->path)
        return tare__no_memory(error);
    output->name = output->path + strlen(path) - name_bytes;
    int status = open_temporary(output, error);
    if (status) {
        free(output->path);
        output->path = NULL;
    }
    return status;
}

void tare__cli_output_lines(tare__cli_output *output, bool colours)
{
    output->lines = true;
    output->colours = colours;
}

/* Text: complete lines; data on a terminal: complete characters. `last`: the rest as well. */
static void write_harmless(tare__cli_output *output, bool last)
{
    tare__text *line = &output->line, safe = {0};
    const char *end = line->length && output->lines ? memrchr(line->data, '\n', line->length) : NULL;
    size_t whole = last             ? line->length
                   : !output->lines ? tare__harmless_whole(line->data, line->length)
                   : end            ? (size_t)(end - line->data) + 1
                                    : 0;
    if (!whole)
        return;
    (output->lines ? tare__harmless_lines : tare__harmless_data)(line->data, whole, output->colours, &safe);
    if (safe.failed || line->failed)
        output->failure = output->failure ? output->failure : ENOMEM;
    if (!output->failure)
        output->failure = -tare__write_all(output->fd, safe.data, safe.length);
    memmove(line->data, line->data + whole, line->length - whole);
    line->length -= whole;
    tare__text_free(&safe);
}

int tare__cli_output_write(void *context, const void *data, size_t bytes)
{
    tare__cli_output *output = context;
    if (output->lines || output->terminal) {
        tare__text_append(&output->line, data, bytes);
        if (output->line.failed && !output->failure)
            output->failure = ENOMEM;
        write_harmless(output, false);
        return -output->failure;
    }
    if (!output->failure)
        output->failure = -tare__write_all(output->fd, data, bytes);
    return -output->failure;
}

static int finish(tare__cli_output *output, tare__error *error)
{
    if (output->failure == 0)
        return 0;
    if (output->failure == EPIPE)
        return 0; /* the reader has closed the pipe */
    if (!output->path)
        return tare__fail(error, TARE_E_SYSTEM, "cannot write to standard output: %s", strerror(output->failure));
    return tare__fail(error, TARE_E_SYSTEM, "cannot write '%s': %s", output->path, strerror(output->failure));
}

int tare__cli_output_close(tare__cli_output *output, bool whole, tare__error *error)
{
    int status = 0;
    if (whole && !output->failure)
        write_harmless(output, true);
    tare__text_free(&output->line);
    /* A full disk may be reported only here (NFS, quotas). */
    if (output->temporary && whole && !output->failure)
        output->failure = output->in_folder ? -tare__file_put_at(output->folder, output->fd, output->temporary,
                                                                 output->name, true)
                                            : -tare__file_put(output->fd, output->temporary, output->path, true);
    else if (output->temporary)
        unlinkat(output->in_folder ? output->folder : AT_FDCWD, output->temporary, 0);
    if (output->path && output->fd >= 0 && close(output->fd) != 0 && !output->failure && !output->temporary)
        output->failure = errno;
    if (whole || output->failure)
        status = finish(output, error);
    free(output->temporary);
    free(output->path);
    *output = (tare__cli_output){.fd = -1};
    return status;
}

int tare__cli_write_text(const tare__text *text, bool lines, bool colours, const char *path, tare__error *error)
{
    tare__cli_output output;
    if (text->failed)
        return tare__no_memory(error);
    int status = tare__cli_output_open(&output, path, error);
    if (status)
        return status;
    if (lines)
        tare__cli_output_lines(&output, colours);
    tare__cli_output_write(&output, text->data, text->length);
    return tare__cli_output_close(&output, true, error);
}

int tare__cli_print(const tare__text *text)
{
    tare__cli_output output;
    tare__error error = {""};
    if (text->failed) {
        tare__cli_say("tare", "out of memory");
        return TARE__EXIT_FAILED;
    }
    tare__cli_output_open(&output, NULL, &error);
    tare__cli_output_lines(&output, true);
    tare__cli_output_write(&output, text->data, text->length);
    if (tare__cli_output_close(&output, true, &error) == 0)
        return TARE__EXIT_OK;
    tare__cli_say("tare", "%s", error.text);
    return TARE__EXIT_FAILED;
}

int tare__cli_print_help(const tare__cli_command *command)
{
    tare__text text = {0};
    tare__cli_help(command, &text);
    int exit_status = tare__cli_print(&text);
    tare__text_free(&text);
    return exit_status;
}

void tare__cli_say(const char *name, const char *format, ...)
{
    char sentence[2048], shown[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    tare__redact(sentence);
    tare__text_fit(shown, sizeof shown - 1, sentence, sizeof shown);
    fprintf(stderr, "%s: %s\n", name, shown);
}

int tare__cli_usage(const char *name, const tare__error *error)
{
    tare__cli_say(name, "%s", error->text);
    fprintf(stderr, "%s --help shows the options\n", name);
    return TARE__EXIT_USAGE;
}

int tare__cli_place_beside(const char *path, const char *ending, const char *becomes, char **place, tare__error *error)
{
    size_t length = strlen(path), less = strlen(ending);
    if (length > less && strcmp(path + length - less, ending) == 0)
        length -= less;
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (asprintf(place, "%.*s%s", (int)length, path, becomes) < 0) {
        *place = NULL;
        return tare__no_memory(error);
    }
    if (access(*place, F_OK) == 0)
        return tare__fail(error, TARE_E_USAGE, "'%.200s' already exists; use -o %.200s to overwrite it", *place,
                          *place);
    return 0;
}

bool tare__cli_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}
