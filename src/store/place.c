/* place: the location of the history: a file, a server, or disabled. Any thread.
 * Must not know what is stored there. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "inner.h"

#define FILE_NAME "history.db"

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}

static bool is_file(const char *path)
{
    struct stat about;
    if (stat(path, &about) == 0)
        return !S_ISDIR(about.st_mode);
    return ends_with(path, ".db") || ends_with(path, ".sqlite") || ends_with(path, ".sqlite3");
}

/* The XDG Base Directory specification: a relative $XDG_DATA_HOME is ignored. */
static int default_place(char *out, size_t room, tare__error *error)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int length;
    if (data && data[0] == '/')
        length = snprintf(out, room, "%s/tare/" FILE_NAME, data);
    else if (home && home[0] == '/')
        length = snprintf(out, room, "%s/.local/share/tare/" FILE_NAME, home);
    else
        return tare__fail(error, TARE_E_USAGE, "no location for the history: neither XDG_DATA_HOME nor HOME is set");
    return length < (int)room
               ? 0
               : tare__fail(error, TARE_E_USAGE, "the path of the history is too long");
}

/* A malformed URL, or a connection string: must not be used as a directory, whose name would contain the password. */
static bool may_have_password(const char *setting)
{
    const char *at = setting;
    if (strchr(setting, '@') && (strchr(setting, ':') || strcasestr(setting, "%3a")))
        return true;
    if (strncasecmp(setting, "postgres", 8) == 0) {
        const char *rest = setting + 8 + (strncasecmp(setting + 8, "ql", 2) == 0 ? 2 : 0);
        if (rest[0] == ':' || strncmp(rest, "//", 2) == 0)
            return true;
    }
    while ((at = strcasestr(at, "pass")) != NULL) {
        at += strspn(at, "PASSWORDpassword");
        if (at[strspn(at, " \t")] == '=')
            return true;
    }
    return false;
}

int tare__store_place(const char *setting, char out[TARE__STORE_PLACE_BYTES], bool *off, tare__error *error)
{
    static const char *const words[] = {"off", "no", "none", "false", "0"};
    char shown[TARE__STORE_PLACE_BYTES];
    *off = false;
    if (!setting || !*setting)
        return default_place(out, TARE__STORE_PLACE_BYTES, error);
    for (size_t i = 0; i < TARE__COUNT_OF(words); i++)
        *off = *off || strcasecmp(setting, words[i]) == 0;
    if (*off)
        return 0;
    tare__store_shown(setting, shown, sizeof shown);
    if (strstr(setting, "://") && !tare__store_postgres.suits(setting))
        return tare__fail(error, TARE_E_USAGE,
                          "'%.200s' is not a valid history; use a directory, a file or a postgres:// URL",
                          shown);
    if (!strstr(setting, "://") && may_have_password(setting))
        return tare__fail(error, TARE_E_USAGE,
                          "the history looks like a URL with a password, but is not of the form "
                          "postgres://USER:PASSWORD@HOST/NAME (not shown)");
    const char *format = strstr(setting, "://") || is_file(setting) ? "%s"
                         : ends_with(setting, "/")                  ? "%s" FILE_NAME
                                                                    : "%s/" FILE_NAME;
    if (snprintf(out, TARE__STORE_PLACE_BYTES, format, setting) >= TARE__STORE_PLACE_BYTES)
        return tare__fail(error, TARE_E_USAGE, "the path of the history is too long");
    return 0;
}

void tare__store_shown(const char *place, char *out, size_t room)
{
    char whole[2 * TARE__STORE_PLACE_BYTES];
    snprintf(whole, sizeof whole, "%s", place);
    tare__redact(whole); /* before truncation, which may remove part of a password */
    size_t length = strnlen(whole, room - 1);
    memcpy(out, whole, length);
    out[length] = '\0';
}
