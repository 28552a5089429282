/* toml_file: reads settings files, if they are trusted. Owned by the calling thread.
 * Must not know what is in them. */
#define _GNU_SOURCE
#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tare.h"

#define FILE_MAX_BYTES (1u << 20)

static int read_whole(FILE *stream, const char *file, char **text, size_t *bytes, tare__error *error)
{
    char *all = malloc(FILE_MAX_BYTES + 1);
    if (!all)
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    *bytes = fread(all, 1, FILE_MAX_BYTES + 1, stream);
    int status = ferror(stream) ? tare__fail(error, TARE_E_USAGE, "cannot read %.200s: %s", file, strerror(errno))
                 : *bytes > FILE_MAX_BYTES
                     ? tare__fail(error, TARE_E_USAGE, "%.200s is larger than %u bytes", file, FILE_MAX_BYTES)
                     : 0;
    if (status)
        free(all);
    else
        *text = all;
    return status;
}

int tare__toml_file(const char *file, char **text, size_t *bytes, const char **refused, tare__error *error)
{
    const char *is;
    int fd = tare__input_open(file, false, &is);
    *text = NULL;
    *refused = fd >= 0 ? tare__trust_file(fd) : is ? "is not a regular file" : NULL;
    if (*refused && fd >= 0)
        close(fd);
    if (*refused || fd == -ENOENT || fd == -ENOTDIR)
        return 0;
    FILE *stream = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!stream) {
        int failure = fd < 0 ? -fd : errno;
        if (fd >= 0)
            close(fd);
        return tare__fail(error, TARE_E_USAGE, "cannot read %.200s: %s", file, strerror(failure));
    }
    int status = read_whole(stream, file, text, bytes, error);
    fclose(stream);
    return status;
}
