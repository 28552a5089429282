/* cgroup: finds the control groups of a process. The set's thread owns it.
 * Must not know what is measured in a group. */
#define _GNU_SOURCE
#include "cgroup.h"

#include <stdio.h>
#include <stdlib.h>

#define CGROUP_BYTES 16384
#define MOUNTS_BYTES (256 * 1024)
#define MOUNTS_BYTES_MAX (8 * 1024 * 1024) /* hosts of many containers have thousands of mounts */

static const char *const controllers[TARE__CONTROLLERS] = {"cpu", "cpuacct", "cpuset", "memory", ""};

/* ---- /proc/PID/cgroup: "4:memory:/a/b", of version 2 "0::/a/b" --------------------------------------- */

static void path_of(pid_t target, const char *file, char out[64])
{
    if (target > 0)
        snprintf(out, 64, "/proc/%d/%s", (int)target, file);
    else
        snprintf(out, 64, "/proc/self/%s", file);
}

static int read_memberships(const char *root, pid_t target, char text[CGROUP_BYTES])
{
    char path[64];
    path_of(target, "cgroup", path);
    return tare__sample_read(root, path, text, CGROUP_BYTES);
}

static uint64_t hash_of(const char *text, int bytes)
{
    return tare__hash_bytes(TARE__HASH_START, text, bytes > 0 ? (size_t)bytes : 0);
}

static tare__scan up_to(tare__scan *text, char mark)
{
    tare__scan part = {text->at, text->end};
    for (const char *c = text->at; c < text->end; c++)
        if (*c == mark) {
            part.end = c;
            break;
        }
    text->at = part.end < text->end ? part.end + 1 : part.end;
    return part;
}

static bool has_word(tare__scan list, const char *word)
{
    while (list.at < list.end)
        if (tare__scan_is(up_to(&list, ','), word))
            return true;
    return false;
}

static void copy(tare__scan from, char out[TARE__PATH_BYTES])
{
    size_t bytes = (size_t)(from.end - from.at);
    if (bytes >= TARE__PATH_BYTES)
        bytes = 0;
    memcpy(out, from.at, bytes);
    out[bytes] = '\0';
}

/* The group's path of each controller and of version 2, "" where there is none. */
static void read_paths(const char *text, int bytes, tare__cgroups *groups)
{
    tare__scan rest = tare__scan_of(text, bytes), line;
    while (tare__scan_line(&rest, &line)) {
        static const char deleted[] = " (deleted)";
        size_t tail = sizeof deleted - 1;
        if ((size_t)(line.end - line.at) > tail && memcmp(line.end - tail, deleted, tail) == 0)
            line.end -= tail;
        tare__scan number = up_to(&line, ':'), list = up_to(&line, ':');
        for (size_t i = 0; i < TARE__CGROUP_UNIFIED; i++)
            if (has_word(list, controllers[i]))
                copy(line, groups->of[i].path);
        if (tare__scan_is(number, "0") && list.at == list.end)
            copy(line, groups->of[TARE__CGROUP_UNIFIED].path);
    }
}

/* ---- /proc/self/mountinfo ---------------------------------------------------------------------------- */

typedef struct mount {
    char root[TARE__PATH_BYTES], point[TARE__PATH_BYTES];
    int version;
    tare__scan options; /* of the file system: version 1's controllers */
} mount;

/* Blanks in paths are written as \040. */
static void unescape(char *path)
{
    char *out = path;
    for (const char *at = path; *at; out++) {
        bool octal = at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' && at[3] >= '0' &&
                     at[3] <= '7';
        *out = octal ? (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0')) : *at;
        at += octal ? 4 : 1;
    }
    *out = '\0';
}

/* "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory". False: another mount. */
static bool read_mount(tare__scan line, mount *mount)
{
    for (int i = 0; i < 3; i++)
        tare__scan_word(&line);
    copy(tare__scan_word(&line), mount->root);
    copy(tare__scan_word(&line), mount->point);
    for (tare__scan word; !tare__scan_is(word = tare__scan_word(&line), "-");)
        if (word.at == word.end)
            return false;
    tare__scan type = tare__scan_word(&line);
    mount->version = tare__scan_is(type, "cgroup2") ? 2 : tare__scan_is(type, "cgroup") ? 1 : 0;
    tare__scan_word(&line);
    mount->options = tare__scan_word(&line);
    unescape(mount->root);
    unescape(mount->point);
    return mount->version > 0 && mount->root[0] == '/' && mount->point[0] == '/';
}

/* The path below the mount's root; NULL: the group is not below it. */
static const char *below(const char *path, const char *root)
{
    size_t bytes = strlen(root);
    if (strcmp(root, "/") == 0)
        bytes = 0;
    if (strncmp(path, root, bytes) != 0 || (path[bytes] != '/' && path[bytes] != '\0'))
        return NULL;
    return strcmp(path + bytes, "/") == 0 ? "" : path + bytes;
}

/* A container may see its own group as the root of the mount, whatever its path is: then the mount itself is used. A
 * path that begins with ".." is outside of what is visible. */
static void take_mount(const char *root, tare__cgroup *group, const mount *mount)
{
    char folder[2 * TARE__PATH_BYTES];
    if (group->path[0] != '/' || strncmp(group->path, "/..", 3) == 0)
        return;
    const char *rest = below(group->path, mount->root);
    snprintf(folder, sizeof folder, "%s%s", mount->point, rest ? rest : "");
    bool exact = rest && tare__machine_exists(root, folder);
    if (!exact)
        folder[strlen(mount->point)] = '\0';
    size_t bytes = strlen(folder), mount_bytes = strlen(mount->point);
    bool better = group->version == 0 || (exact && bytes - mount_bytes > strlen(group->folder) - group->mount_bytes);
    if (!better || bytes >= TARE__PATH_BYTES || !tare__machine_exists(root, folder))
        return;
    memcpy(group->folder, folder, bytes + 1);
    group->mount_bytes = mount_bytes;
    group->version = mount->version;
}

static void take_mounts(const char *root, const char *text, int bytes, tare__cgroups *groups)
{
    tare__scan rest = tare__scan_of(text, bytes), line;
    mount mount;
    while (tare__scan_line(&rest, &line)) {
        if (!read_mount(line, &mount))
            continue;
        if (mount.version == 2)
            take_mount(root, &groups->of[TARE__CGROUP_UNIFIED], &mount);
        for (size_t i = 0; i < TARE__CGROUP_UNIFIED && mount.version == 1; i++)
            if (has_word(mount.options, controllers[i]))
                take_mount(root, &groups->of[i], &mount);
    }
}

/* This process's own mounts: files are opened from here, even if the target sees other mounts. */
static char *read_mounts(const char *root, int *got)
{
    char *text = NULL;
    for (size_t room = MOUNTS_BYTES; room <= MOUNTS_BYTES_MAX; room *= 2) {
        char *larger = realloc(text, room);
        if (!larger)
            break;
        text = larger;
        *got = tare__sample_read(root, "/proc/self/mountinfo", text, room);
        if (*got < 0 || (size_t)*got + 1 < room)
            break;
    }
    return text;
}

/* ---- both -------------------------------------------------------------------------------------------- */

void tare__cgroup_find(const char *root, pid_t target, tare__cgroups *groups)
{
    char text[CGROUP_BYTES], path[64];
    memset(groups, 0, sizeof *groups);
    int got = read_memberships(root, target, text), mounts_got = -1;
    path_of(target, "cgroup", path);
    if (got < 0) {
        tare__machine_why(got, path, groups->why);
        return;
    }
    groups->text = hash_of(text, got);
    read_paths(text, got, groups);
    char *mounts = read_mounts(root, &mounts_got);
    take_mounts(root, mounts, mounts ? mounts_got : 0, groups);
    free(mounts);
    for (size_t i = 0; i < TARE__CGROUP_UNIFIED; i++)
        if (groups->of[i].version == 0)
            groups->of[i] = groups->of[TARE__CGROUP_UNIFIED];
    snprintf(groups->why, sizeof groups->why, "no control group of this process is visible");
}

/* A zombie has no memory. */
static bool is_alive(const char *root, pid_t target)
{
    char path[64], text[128];
    int64_t pages;
    path_of(target, "statm", path);
    tare__scan scan = tare__scan_of(text, tare__sample_read(root, path, text, sizeof text));
    return tare__scan_number(&scan, &pages) && pages > 0;
}

/* A process that exits is moved to the top groups of version 1: this is not a move. */
bool tare__cgroup_moved(const char *root, pid_t target, const tare__cgroups *groups)
{
    char text[CGROUP_BYTES];
    int got = read_memberships(root, target, text);
    return got > 0 && hash_of(text, got) != groups->text && is_alive(root, target);
}

bool tare__cgroup_climb(const tare__cgroup *group, char *folder)
{
    char *slash = strrchr(folder, '/');
    if (!slash || (size_t)(slash - folder) < group->mount_bytes)
        return false;
    *slash = '\0';
    return true;
}
