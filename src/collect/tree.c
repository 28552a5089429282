/* tree: every process below the one that was launched, whether it records or not, by the samplers' list.
 * One thread. Must not know rings, nor how the list is made. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector.h"

#define KEPT_MAX 16384u /* processes, all told */
#define LOOK_AGAIN 10u  /* looks; and at each of the first few, when it may still become another program */

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

/* One that joined is known by its pid only, until the list says when it started. */
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
    size_t got = read_of(entry->pid, "environ", environment, sizeof environment);
    for (size_t at = 0; at < got && !has; at += strlen(environment + at) + 1)
        has = strncmp(environment + at, TARE__ENV_SESSION "=", sizeof TARE__ENV_SESSION) == 0;
    if (readable && !has)
        snprintf(entry->reason, sizeof entry->reason, "its environment was cleared");
    else
        snprintf(entry->reason, sizeof entry->reason, "recorded nothing");
}

/* A process that cannot join may leave word of it in the session's folder (the start-up hook of Python
 * interpreters does). */
static void take_word(const tare__collector *collector, tare__process_entry *entry)
{
    char path[TARE__PATH_BYTES + 64], text[sizeof entry->reason];
    snprintf(path, sizeof path, "%s/" TARE__WORD_PREFIX "%d-%llu", collector->folder.path, (int)entry->pid,
             (unsigned long long)entry->start_time);
    int fd = collector->folder.path[0] ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return;
    text[got] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (text[0])
        strcpy(entry->reason, text);
}

static void take_command(tare__collector *collector, tare__process_entry *entry, const char *command, size_t bytes)
{
    const char *kept = tare__arena_copy(collector->name_arena, command, bytes);
    if (!kept)
        return;
    entry->command = kept;
    entry->command_bytes = bytes;
}

static void look_at(tare__collector *collector, tare__process_entry *entry)
{
    char command[TARE__COMMAND_BYTES];
    entry->looks++;
    if (entry->joined || (entry->looks > 3 && entry->looks % LOOK_AGAIN))
        return;
    size_t bytes = read_of(entry->pid, "cmdline", command, sizeof command);
    if (bytes == 0 || (bytes == entry->command_bytes && memcmp(command, entry->command, bytes) == 0))
        return;
    take_command(collector, entry, command, bytes); /* new, or it became another program */
    find_reason(entry);
}

static void look_at_ended(tare__collector *collector, tare__process_entry *entry, const char *name)
{
    if (entry->command_bytes || entry->joined)
        return;
    take_command(collector, entry, name, strlen(name) + 1);
    snprintf(entry->reason, sizeof entry->reason, "ended before it could be looked at");
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

void tare__tree_look(tare__collector *collector)
{
    size_t n;
    const tare__sampled_process *list = tare__sample_processes(collector->sampling.set, &n);
    for (size_t i = 0; i < n; i++) {
        bool known = i < collector->entry_of_room && collector->entry_of[i];
        if (!list[i].alive && known)
            continue;
        tare__process_entry *entry = entry_of(collector, i, &list[i]);
        if (entry && list[i].alive)
            look_at(collector, entry);
        else if (entry)
            look_at_ended(collector, entry, list[i].name);
    }
}

void tare__tree_tell(tare__collector *collector)
{
    uint32_t number = collector->joined;
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
        tare__text_clear(&collector->block);
        tare__fields_seal(TARE__BLOCK_PROCESS, number, fields, &collector->block);
        tare__writer_append(&collector->writer, &collector->block);
    }
}
