/* toml_file: reads settings files completely if they are trusted, and reports what is wrong with a setting.
 * Owned by the calling thread. Must not know which settings there are. */
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

int tare__setting_fail(tare__error *error, tare__setting_fault fault, const char *where, const char *name,
                       const char *other)
{
    switch (fault) {
    case TARE__SETTING_IGNORED: return tare__fail(error, TARE_E_USAGE, "ignoring %s: it %s", where, other);
    case TARE__SETTING_TWICE: return tare__fail(error, TARE_E_USAGE, "%s: %s is set twice", where, name);
    case TARE__SETTING_UNKNOWN:
        return tare__fail(error, TARE_E_USAGE, "%s: unknown setting '%s'%s%s%s", where, name,
                          other ? "; did you mean '" : "", other ? other : "", other ? "'?" : "");
    case TARE__SETTING_MISSPELT:
        return tare__fail(error, TARE_E_USAGE, "unknown setting %s; did you mean %s?", name, other);
    case TARE__SETTING_TYPE: return tare__fail(error, TARE_E_USAGE, "%s: %s must be %s", where, name, other);
    case TARE__SETTING_SWITCH: return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' is not 1 or 0", where, other);
    case TARE__SETTING_OUTSIDE: break;
    }
    return tare__fail(error, TARE_E_USAGE,
                      "%s: %s: '%.200s' is outside the directory of the settings; set it on the command line, in the "
                      "program or in a TARE_* variable",
                      where, name, other);
}
