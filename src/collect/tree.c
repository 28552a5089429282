/* tree: every process below the one that was launched, whether it records or not, as /proc shows them.
 * One thread. Must not know rings. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector.h"

#define TREE_SCAN_NS 200000000u
#define SEEN_MAX 4096u /* processes kept that never join */

static size_t read_file(const char *path, char *out, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t got = 0;
    if (fd < 0)
        return 0;
    for (ssize_t n; got + 1 < room && (n = read(fd, out + got, room - 1 - got)) > 0; got += (size_t)n)
        ;
    close(fd);
    out[got] = '\0';
    return got;
}

static size_t read_of(pid_t pid, const char *file, char *out, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    return read_file(path, out, room);
}

static uint64_t start_time(pid_t pid)
{
    char stat[1024];
    if (!read_of(pid, "stat", stat, sizeof stat))
        return 0;
    char *at = strrchr(stat, ')'); /* the command's name may hold anything */
    unsigned long long start = 0;
    if (at)
        sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &start);
    return start;
}

tare__process_entry *tare__process_by_pid(tare__collector *collector, pid_t pid)
{
    for (uint32_t i = collector->process_count; i > 0; i--)
        if (collector->processes[i - 1].pid == pid)
            return &collector->processes[i - 1];
    return NULL;
}

/* Why it has not joined (yet), from what can be seen of it now. */
static void find_reason(tare__process_entry *entry)
{
    static char environment[1 << 17];
    char path[64];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%d", (int)entry->pid);
    if (stat(path, &about) == 0 && about.st_uid != geteuid()) {
        snprintf(entry->reason, sizeof entry->reason, "runs as another user (uid %u)", (unsigned)about.st_uid);
        return;
    }
    snprintf(path, sizeof path, "/proc/%d/environ", (int)entry->pid);
    bool readable = access(path, R_OK) == 0, has = false;
    size_t got = read_file(path, environment, sizeof environment);
    for (size_t at = 0; at < got && !has; at += strlen(environment + at) + 1)
        has = strncmp(environment + at, TARE__ENV_SESSION "=", sizeof TARE__ENV_SESSION) == 0;
    if (readable && !has)
        snprintf(entry->reason, sizeof entry->reason, "its environment was cleared");
    else
        snprintf(entry->reason, sizeof entry->reason, "recorded nothing");
}

tare__process_entry *tare__process_add(tare__collector *collector, pid_t pid)
{
    uint64_t start = start_time(pid);
    tare__process_entry *known = tare__process_by_pid(collector, pid);
    if (known && (known->start_time == start || start == 0)) {
        char command[TARE__COMMAND_BYTES];
        size_t bytes = read_of(pid, "cmdline", command, sizeof command);
        if (bytes && !known->joined && (bytes != known->command_bytes || memcmp(command, known->command, bytes))) {
            memcpy(known->command, command, bytes); /* it became another program */
            known->command_bytes = bytes;
            find_reason(known);
        }
        return known;
    }
    if (collector->process_count >= SEEN_MAX)
        return NULL;
    if (!tare__array_fit(&collector->processes, &collector->process_room, collector->process_count + 1,
                         sizeof *collector->processes))
        return NULL;
    tare__process_entry *entry = &collector->processes[collector->process_count++];
    memset(entry, 0, sizeof *entry);
    entry->pid = pid;
    entry->start_time = start;
    entry->command_bytes = read_of(pid, "cmdline", entry->command, sizeof entry->command);
    find_reason(entry);
    for (uint32_t i = 0; i < collector->source_count; i++)
        if (collector->sources[i]->pid == pid)
            entry->joined = true;
    return entry;
}

static void scan_below(tare__collector *collector, pid_t pid, pid_t parent, int depth)
{
    tare__process_entry *entry = tare__process_add(collector, pid);
    if (entry && !entry->parent)
        entry->parent = parent;
    if (depth > 64)
        return;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    if (!threads)
        return;
    struct dirent *thread;
    while ((thread = readdir(threads)) != NULL) {
        if (thread->d_name[0] == '.')
            continue;
        char file[320], children[4096];
        snprintf(file, sizeof file, "/proc/%d/task/%s/children", (int)pid, thread->d_name);
        if (!read_file(file, children, sizeof children))
            continue;
        char *at = children, *end;
        for (long child; (child = strtol(at, &end, 10)) > 0; at = end)
            scan_below(collector, (pid_t)child, pid, depth + 1);
    }
    closedir(threads);
}

void tare__tree_scan(tare__collector *collector)
{
    uint64_t now = tare__monotonic_ns();
    if (now - collector->tree_scan_ns < TREE_SCAN_NS || collector->root_pid <= 0)
        return;
    collector->tree_scan_ns = now;
    scan_below(collector, collector->root_pid, getpid(), 0);
}

void tare__tree_tell(tare__collector *collector)
{
    uint32_t number = collector->joined;
    for (uint32_t i = 0; i < collector->process_count; i++) {
        tare__process_entry *entry = &collector->processes[i];
        if (entry->joined)
            continue;
        tare__text *fields = &collector->fields;
        tare__text_clear(fields);
        tare__field_number(fields, TARE__FIELD_PROCESS, ++number);
        tare__field_number(fields, TARE__FIELD_PID, (uint64_t)entry->pid);
        tare__field_number(fields, TARE__FIELD_PARENT_PID, (uint64_t)entry->parent);
        tare__field_bytes(fields, TARE__FIELD_PROCESS_COMMAND, entry->command, entry->command_bytes);
        tare__field_string(fields, TARE__FIELD_NOT_JOINED, entry->reason);
        tare__text_clear(&collector->block);
        tare__fields_seal(TARE__BLOCK_PROCESS, number, fields, &collector->block);
        tare__writer_append(&collector->writer, &collector->block);
    }
}
