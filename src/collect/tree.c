/* tree: every descendant of the launched process, whether it records or not, from the samplers' list.
 * One thread. Must not know rings, nor how the list is made. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector.h"

#define KEPT_MAX 16384u /* total number of processes */
#define READ_AGAIN 10u  /* samples; and at each of the first few, when it may still call exec */

static size_t read_of(pid_t pid, const char *file, char *out, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    int got = tare__sample_read("", path, out, room);
    return got > 0 ? (size_t)got : 0;
}

static tare__process_entry *add_entry(tare__collector *collector, pid_t pid, uint64_t start_time)
{
    if (collector->process_count >= KEPT_MAX ||
        !tare__array_fit(&collector->processes, &collector->process_room, collector->process_count + 1,
                         sizeof *collector->processes))
        return NULL;
    tare__process_entry *entry = &collector->processes[collector->process_count++];
    memset(entry, 0, sizeof *entry);
    entry->pid = pid;
    entry->start_time = start_time;
    entry->command = "";
    return entry;
}

/* A process that joined is known by its pid only, until the list has its start time. */
static tare__process_entry *find_entry(tare__collector *collector, pid_t pid, uint64_t start_time)
{
    for (uint32_t i = collector->process_count; i > 0; i--) {
        tare__process_entry *entry = &collector->processes[i - 1];
        if (entry->pid == pid && (entry->start_time == start_time || entry->start_time == 0 || start_time == 0))
            return entry;
    }
    return NULL;
}

void tare__process_joined(tare__collector *collector, pid_t pid)
{
    tare__process_entry *entry = find_entry(collector, pid, 0);
    if (!entry)
        entry = add_entry(collector, pid, 0);
    if (entry)
        entry->joined = true;
}

/* /proc/PID is owned by root if a process is not dumpable: its status file has the user. */
uid_t tare__user_of(pid_t pid)
{
    char text[2048];
    unsigned user = 0;
    size_t got = read_of(pid, "status", text, sizeof text);
    const char *line = got ? strstr(text, "\nUid:") : NULL;
    return line && sscanf(line, "\nUid: %*u %u", &user) == 1 ? (uid_t)user : (uid_t)-1;
}

/* The session folder in its initial environment; NULL: none, or it cannot be read. Valid until the next call. */
static const char *session_of(pid_t pid)
{
    static char environment[1 << 17];
    size_t got = read_of(pid, "environ", environment, sizeof environment);
    for (size_t at = 0; at < got; at += strlen(environment + at) + 1)
        if (strncmp(environment + at, TARE__ENV_SESSION "=", sizeof TARE__ENV_SESSION) == 0)
            return environment + at + sizeof TARE__ENV_SESSION;
    return NULL;
}

uint32_t tare__orphans_of(const tare__collector *collector, const tare__sampled_process *list, size_t count)
{
    uint32_t n = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all && (entry = readdir(all));) {
        struct stat about;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || pid == getpid() || fstatat(dirfd(all), entry->d_name, &about, 0) != 0 ||
            about.st_uid != geteuid() || !tare__runs_recorded_program(collector, pid))
            continue;
        bool known = false;
        for (size_t i = 0; i < count && !known; i++)
            known = list[i].alive && list[i].pid == pid;
        const char *session = known ? NULL : session_of(pid);
        n += session && strcmp(session, collector->folder.path) == 0;
    }
    if (all)
        closedir(all);
    return n;
}

/* In a container or chroot, or where another file system is mounted over it, the session's folder is not there. If that
 * is not known, it is taken for visible. */
static bool sees_folder(const tare__collector *collector, pid_t pid)
{
    char path[TARE__PATH_BYTES + 64];
    struct stat ours, its;
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, collector->folder.path);
    if (stat(collector->folder.path, &ours) != 0)
        return true;
    if (stat(path, &its) != 0)
        return errno != ENOENT && errno != ENOTDIR;
    return ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
}

/* Why it has not joined (yet), from what is visible now. */
static void find_reason(const tare__collector *collector, tare__process_entry *entry)
{
    char path[64];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%d", (int)entry->pid);
    entry->other_user = false;
    if (stat(path, &about) == 0 && about.st_uid != geteuid() && tare__user_of(entry->pid) != geteuid()) {
        entry->other_user = true;
        snprintf(entry->reason, sizeof entry->reason, "runs as another user (uid %u)", (unsigned)about.st_uid);
        return;
    }
    snprintf(path, sizeof path, "/proc/%d/environ", (int)entry->pid);
    bool readable = access(path, R_OK) == 0;
    snprintf(path, sizeof path, "/proc/%d/root", (int)entry->pid);
    entry->folder_hidden = access(path, F_OK) == 0 && !sees_folder(collector, entry->pid);
    if (entry->folder_hidden)
        snprintf(entry->reason, sizeof entry->reason,
                 "does not see the session folder (a container, a chroot or another mount)");
    else if (readable && !session_of(entry->pid))
        snprintf(entry->reason, sizeof entry->reason, "its environment was cleared");
    else
        snprintf(entry->reason, sizeof entry->reason, "recorded nothing");
}

/* ---- reports of a process ------------------------------------------------------------------------------------- */
/* The startup hook of Python interpreters writes a report to the session's folder: in the first line why the process
 * cannot join, in case it never does; then what it imported. If a process joined before the sampler listed it, its
 * start time is unknown, and the file is found by its pid. */
static bool find_word(const tare__collector *collector, pid_t pid, char *path, size_t room)
{
    char start[64];
    int length = snprintf(start, sizeof start, TARE__WORD_PREFIX "%d-", (int)pid);
    DIR *folder = opendir(collector->folder.path);
    bool found = false;
    for (struct dirent *file; folder && !found && (file = readdir(folder));)
        if (strncmp(file->d_name, start, (size_t)length) == 0)
            found = snprintf(path, room, "%s/%s", collector->folder.path, file->d_name) < (int)room;
    if (folder)
        closedir(folder);
    return found;
}

/* Number of bytes read, followed by a NUL; 0: none. */
static size_t read_word(const tare__collector *collector, pid_t pid, uint64_t start_time, char *out, size_t room)
{
    char path[TARE__PATH_BYTES + 300];
    if (!collector->folder.path[0] || pid <= 0)
        return 0;
    if (start_time)
        snprintf(path, sizeof path, "%s/" TARE__WORD_PREFIX "%d-%llu", collector->folder.path, (int)pid,
                 (unsigned long long)start_time);
    else if (!find_word(collector, pid, path, sizeof path))
        return 0;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, out, room - 1);
    if (fd >= 0)
        close(fd);
    out[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

static void take_word(const tare__collector *collector, tare__process_entry *entry)
{
    char text[sizeof entry->reason];
    if (!read_word(collector, entry->pid, entry->start_time, text, sizeof text))
        return;
    text[strcspn(text, "\r\n")] = '\0';
    if (text[0])
        strcpy(entry->reason, text);
}

#define WORD_BYTES ((size_t)65536)
#define IMPORTS_BYTES 4000u /* of the field: a reader keeps no more */

/* One line with its times converted to microseconds of the run; false: invalid. */
static bool tell_line(tare__text *out, const char *line, uint64_t started_ns)
{
    char kind[8], name[128] = "";
    unsigned long long begin, end = 0;
    int read = sscanf(line, "%7[a-z] %llu %llu %127[^ \n]", kind, &begin, &end, name);
    bool instant = read >= 1 && (strcmp(kind, "python") == 0 || strcmp(kind, "exit") == 0);
    if (read < 2 || begin < started_ns || (!instant && (read != 4 || end < begin)))
        return false;
    if (instant)
        tare__text_format(out, "%s %llu\n", kind, (begin - started_ns) / 1000);
    else
        tare__text_format(out, "%s %llu %llu %s\n", kind, (begin - started_ns) / 1000, (end - started_ns) / 1000, name);
    return true;
}

void tare__tell_imports(tare__collector *collector, pid_t pid, tare__text *fields)
{
    const tare__process_entry *entry = find_entry(collector, pid, 0);
    char *word = collector->salvaging ? NULL : malloc(WORD_BYTES);
    tare__text lines = {0};
    if (word && read_word(collector, pid, entry ? entry->start_time : 0, word, WORD_BYTES))
        for (char *line = strchr(word, '\n'); line && lines.length < IMPORTS_BYTES - 200; line = strchr(line, '\n'))
            if (!tell_line(&lines, ++line, collector->started_ns) && *line)
                break;
    if (lines.length && !lines.failed)
        tare__field_bytes(fields, TARE__FIELD_IMPORTS, lines.data, lines.length);
    tare__text_free(&lines);
    free(word);
}

static void take_command(tare__collector *collector, tare__process_entry *entry, const char *command, size_t bytes)
{
    const char *kept = tare__arena_copy(collector->name_arena, command, bytes);
    if (!kept)
        return;
    entry->command = kept;
    entry->command_bytes = bytes;
}

static void update_entry(tare__collector *collector, tare__process_entry *entry)
{
    char command[TARE__COMMAND_BYTES];
    entry->times_seen++;
    if (entry->joined || (entry->times_seen > 3 && entry->times_seen % READ_AGAIN))
        return;
    size_t bytes = read_of(entry->pid, "cmdline", command, sizeof command);
    if (bytes == 0)
        return;
    if (bytes != entry->command_bytes || memcmp(command, entry->command, bytes) != 0)
        take_command(collector, entry, command, bytes); /* new, or it called exec */
    find_reason(collector, entry);
}

static void name_ended(tare__collector *collector, tare__process_entry *entry, const char *name)
{
    if (entry->command_bytes || entry->joined)
        return;
    take_command(collector, entry, name, strlen(name) + 1);
    snprintf(entry->reason, sizeof entry->reason, "ended before it could be sampled");
}

static tare__process_entry *entry_of(tare__collector *collector, size_t index, const tare__sampled_process *process)
{
    size_t before = collector->entry_of_room;
    if (!tare__array_fit(&collector->entry_of, &collector->entry_of_room, index + 1, sizeof *collector->entry_of))
        return NULL;
    memset(collector->entry_of + before, 0, (collector->entry_of_room - before) * sizeof *collector->entry_of);
    uint32_t known = collector->entry_of[index];
    if (known && collector->processes[known - 1].pid == process->pid &&
        collector->processes[known - 1].start_time == process->start_time)
        return &collector->processes[known - 1];
    tare__process_entry *entry = find_entry(collector, process->pid, process->start_time);
    if (!entry)
        entry = add_entry(collector, process->pid, process->start_time);
    if (!entry)
        return NULL;
    entry->start_time = process->start_time;
    entry->parent = process->parent;
    collector->entry_of[index] = (uint32_t)(entry - collector->processes) + 1;
    return entry;
}

void tare__tree_update(tare__collector *collector)
{
    size_t n;
    const tare__sampled_process *list = tare__sample_processes(collector->sampling.set, &n);
    for (size_t i = 0; i < n; i++) {
        bool known = i < collector->entry_of_room && collector->entry_of[i];
        if (!list[i].alive && known)
            continue;
        tare__process_entry *entry = entry_of(collector, i, &list[i]);
        if (entry && list[i].alive)
            update_entry(collector, entry);
        else if (entry)
            name_ended(collector, entry, list[i].name);
    }
}

/* They cannot open the session: their events are not recorded, and the report says so. */
static void tell_others(tare__collector *collector)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < collector->process_count; i++)
        n += !collector->processes[i].joined && collector->processes[i].other_user;
    if (n)
        tare__text_format(&collector->notes, "%u %s ran as another user and could not record\n", n,
                          n == 1 ? "process" : "processes");
    n = 0;
    for (uint32_t i = 0; i < collector->process_count; i++)
        n += !collector->processes[i].joined && collector->processes[i].folder_hidden;
    if (n)
        tare__text_format(&collector->notes, "%u %s could not record: %s not see the session folder %.300s (a "
                          "container, a chroot or another mount)\n", n, n == 1 ? "process" : "processes",
                          n == 1 ? "it did" : "they did", collector->folder.path);
}

void tare__tree_tell(tare__collector *collector)
{
    uint32_t number = collector->joined;
    tell_others(collector);
    for (uint32_t i = 0; i < collector->process_count; i++) {
        tare__process_entry *entry = &collector->processes[i];
        if (entry->joined)
            continue;
        take_word(collector, entry);
        tare__text *fields = &collector->fields;
        tare__text_clear(fields);
        tare__field_number(fields, TARE__FIELD_PROCESS, ++number);
        tare__field_number(fields, TARE__FIELD_PID, (uint64_t)entry->pid);
        tare__field_number(fields, TARE__FIELD_PARENT_PID, (uint64_t)entry->parent);
        tare__field_bytes(fields, TARE__FIELD_PROCESS_COMMAND, entry->command, entry->command_bytes);
        tare__field_string(fields, TARE__FIELD_NOT_JOINED, entry->reason);
        tare__tell_imports(collector, entry->pid, fields);
        tare__text_clear(&collector->block);
        tare__fields_seal(TARE__BLOCK_PROCESS, number, fields, &collector->block);
        tare__writer_append(&collector->writer, &collector->block);
    }
}
