/* environment: machine, operating system and revision of the working directory, for the first block of a trace.
 * One thread. Reads files only, starts no process.
 * Must not know how any of this is shown. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "collector.h"

#define REVISION_SHOWN 12 /* of its hexadecimal digits */
#define PACKED_MAX (4 << 20)

static void line_after(char *text, const char *key, char *out, size_t room)
{
    out[0] = '\0';
    for (char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (strncmp(line, key, strlen(key)) == 0) {
            line += strlen(key);
            line += strspn(line, " \t");
            snprintf(out, room, "%.*s", (int)strcspn(line, "\n"), line);
            return;
        }
}

/* ---- the machine ------------------------------------------------------------------------------------------- */

static void cpu_model(char *out, size_t room)
{
    static char text[16384]; /* the first CPU represents all */
    char line[256];
    out[0] = '\0';
    if (tare__sample_read("", "/proc/cpuinfo", text, sizeof text) <= 0)
        return;
    line_after(text, "model name", line, sizeof line);
    if (line[0] == ':')
        snprintf(out, room, "%s", line + 1 + strspn(line + 1, " \t"));
}

static void system_name(char *out, size_t room)
{
    char text[4096], value[256];
    out[0] = '\0';
    if (tare__sample_read("", "/etc/os-release", text, sizeof text) <= 0 &&
        tare__sample_read("", "/usr/lib/os-release", text, sizeof text) <= 0)
        return;
    line_after(text, "PRETTY_NAME=", value, sizeof value);
    size_t length = strlen(value);
    bool quoted = length > 1 && (value[0] == '"' || value[0] == '\'') && value[length - 1] == value[0];
    snprintf(out, room, "%.*s", (int)(length - 2 * quoted), value + quoted);
}

/* ---- Git: gitrepository-layout(5) -------------------------------------------------------------------------- */

static bool read_word(const char *folder, const char *file, char *out, size_t room)
{
    char path[PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (tare__sample_read("", path, out, room) <= 0)
        return false;
    out[strcspn(out, "\r\n")] = '\0';
    return out[0] != '\0';
}

/* A path as Git writes it: absolute, or relative to `base`. False: too long. */
static bool follow(const char *base, const char *path, char out[PATH_MAX])
{
    int length = path[0] == '/' ? snprintf(out, PATH_MAX, "%s", path) : snprintf(out, PATH_MAX, "%s/%s", base, path);
    return length > 0 && length < PATH_MAX;
}

/* .git is a folder, or a file that names it (worktrees, submodules). */
static bool git_folder(const char *folder, char out[PATH_MAX])
{
    char above[PATH_MAX], word[PATH_MAX];
    struct stat about;
    snprintf(above, sizeof above, "%s", folder);
    for (;;) {
        if (!follow(above, ".git", out))
            return false;
        if (stat(out, &about) == 0) {
            if (S_ISDIR(about.st_mode))
                return true;
            return read_word(above, ".git", word, sizeof word) && strncmp(word, "gitdir: ", 8) == 0 &&
                   follow(above, word + 8, out);
        }
        char *slash = strrchr(above, '/');
        if (!slash || above[1] == '\0')
            return false;
        slash[slash == above] = '\0';
    }
}

static bool is_revision(const char *word)
{
    size_t digits = strspn(word, "0123456789abcdef");
    return (digits == 40 || digits == 64) && (word[digits] == '\0' || word[digits] == ' ');
}

static bool packed_revision(const char *shared, const char *ref, char out[80])
{
    char path[PATH_MAX + 300];
    char *text = malloc(PACKED_MAX);
    snprintf(path, sizeof path, "%s/packed-refs", shared);
    bool found = false;
    if (text && tare__sample_read("", path, text, PACKED_MAX) > 0)
        for (char *line = text; line && !found; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
            size_t length = strcspn(line, "\n"), hex = strcspn(line, " \n");
            found = hex < length && length - hex - 1 == strlen(ref) && is_revision(line) &&
                    memcmp(line + hex + 1, ref, length - hex - 1) == 0;
            if (found)
                snprintf(out, 80, "%.*s", (int)hex, line);
        }
    free(text);
    return found;
}

/* "4f2a9c1b2d3e on main" for the Git repository that contains `folder`; false: none. */
static bool git_revision(const char *folder, char *out, size_t room)
{
    char git[PATH_MAX], shared[PATH_MAX], word[512], head[512], revision[80];
    if (!git_folder(folder, git) || !read_word(git, "HEAD", head, sizeof head))
        return false;
    if (is_revision(head)) {
        snprintf(out, room, "%.*s, detached", REVISION_SHOWN, head);
        return true;
    }
    if (strncmp(head, "ref: ", 5) != 0)
        return false;
    const char *ref = head + 5;
    strcpy(shared, git);
    if (read_word(git, "commondir", word, sizeof word) && !follow(git, word, shared))
        return false;
    if (!(read_word(git, ref, revision, sizeof revision) && is_revision(revision)) &&
        !(read_word(shared, ref, revision, sizeof revision) && is_revision(revision)) &&
        !packed_revision(shared, ref, revision))
        return false;
    snprintf(out, room, "%.*s on %s", REVISION_SHOWN, revision,
             strncmp(ref, "refs/heads/", 11) == 0 ? ref + 11 : ref);
    return true;
}

/* ---- all ---------------------------------------------------------------------------------------------------- */
void tare__tell_environment(tare__text *fields)
{
    char words[512];
    struct utsname machine;
    if (uname(&machine) == 0) {
        tare__field_string(fields, TARE__FIELD_HOST, machine.nodename);
        snprintf(words, sizeof words, "%s %s", machine.sysname, machine.release);
        tare__field_string(fields, TARE__FIELD_KERNEL, words);
    }
    system_name(words, sizeof words);
    if (words[0])
        tare__field_string(fields, TARE__FIELD_SYSTEM, words);
    tare__field_number(fields, TARE__FIELD_CPUS, (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    cpu_model(words, sizeof words);
    if (words[0])
        tare__field_string(fields, TARE__FIELD_CPU_MODEL, words);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0)
        tare__field_number(fields, TARE__FIELD_MEMORY, (uint64_t)pages * (uint64_t)page);
    char directory[PATH_MAX];
    if (!getcwd(directory, sizeof directory))
        return;
    tare__field_string(fields, TARE__FIELD_DIRECTORY, directory);
    if (git_revision(directory, words, sizeof words))
        tare__field_string(fields, TARE__FIELD_REVISION, words);
}
