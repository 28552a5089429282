/* disk: bytes read and written by disks, and how long they were busy (/proc/diskstats).
 * The set's thread owns it.
 * Must not know which process used the disks. */
#define _GNU_SOURCE
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>

#define SECTOR_BYTES 512 /* the unit of this file, independent of the disk */
#define MS_NS 1000000
#define TEXT_BYTES (256 * 1024)

enum { FIGURES = 6 };
static const struct {
    int8_t column;
    int32_t times;
} figures[FIGURES] = {{TARE__DISK_READ_SECTORS, SECTOR_BYTES},
                      {TARE__DISK_WRITTEN_SECTORS, SECTOR_BYTES},
                      {TARE__DISK_READS, 1},
                      {TARE__DISK_WRITES, 1},
                      {TARE__DISK_BUSY_MS, MS_NS},
                      {TARE__DISK_QUEUE_MS, MS_NS}};
static const tare__metric metrics[FIGURES] = {TARE__M_DISK_READ,   TARE__M_DISK_WRITE, TARE__M_DISK_READS,
                                              TARE__M_DISK_WRITES, TARE__M_DISK_BUSY,  TARE__M_DISK_QUEUE};

typedef struct disk_part {
    int fd;
    tare__devices disks;
    char text[TEXT_BYTES];
} disk_part;

static void open_disk(tare__sample_set *set, void *state)
{
    (void)set;
    disk_part *part = state;
    part->fd = -1;
    part->disks = (tare__devices){.kind = TARE__SUBJECT_DISK, .metrics = metrics, .n_metrics = FIGURES,
                                  .wanted = tare__disk_is_whole};
}

static bool read_figures(tare__scan *line, int64_t values[FIGURES])
{
    int64_t columns[TARE__DISK_COLUMNS];
    if (tare__line_numbers(line, columns, TARE__DISK_COLUMNS) < TARE__DISK_COLUMNS)
        return false;
    for (size_t i = 0; i < FIGURES; i++)
        if (!tare__scan_times(columns[figures[i].column], figures[i].times, &values[i]))
            return false;
    return true;
}

static void tick_disk(tare__sample_set *set, void *state, uint64_t now_ns)
{
    (void)now_ns;
    disk_part *part = state;
    int got = tare__sample_pread(tare__sample_options_of(set)->root, "/proc/diskstats", &part->fd, part->text,
                                 sizeof part->text);
    tare__scan text = tare__scan_of(part->text, got), line;
    while (tare__scan_line(&text, &line)) {
        int64_t values[FIGURES];
        tare__scan name = tare__line_disk(&line);
        tare__device *disk = tare__devices_find(set, &part->disks, name);
        if (!disk || !read_figures(&line, values))
            continue;
        if (!disk->told && tare__disk_is_spare(disk->name) && values[2] == 0 && values[3] == 0)
            continue;
        tare__devices_put(set, &part->disks, disk, values);
    }
    char why[256];
    tare__devices_sweep(set, &part->disks,
                        got < 0 ? tare__machine_why(got, "/proc/diskstats", why) : "no disks found");
}

static void close_disk(void *state)
{
    disk_part *part = state;
    tare__machine_close(&part->fd);
    tare__devices_close(&part->disks);
}

static void name_disks(const char *root, const char *text, int bytes, tare__text *names)
{
    tare__scan rest = tare__scan_of(text, bytes), line;
    while (tare__scan_line(&rest, &line)) {
        char name[64];
        tare__scan word = tare__line_disk(&line);
        snprintf(name, sizeof name, "%.*s", (int)(word.end - word.at), word.at);
        if (*name && !tare__disk_is_spare(name) && tare__disk_is_whole(root, name))
            tare__text_format(names, "%s%s", names->length ? ", " : "", name);
    }
}

static void doctor_disk(const char *root, tare__sample_check_sink *sink, void *context)
{
    char *text = malloc(TEXT_BYTES), why[256];
    if (!text)
        return;
    tare__text names = {0};
    int got = tare__sample_read(root, "/proc/diskstats", text, TEXT_BYTES);
    name_disks(root, text, got, &names);
    if (names.length)
        tare__machine_check(sink, context, "system", "/proc/diskstats", TARE__SAMPLE_WORKS, "", "%s", names.data);
    else
        tare__machine_check(sink, context, "system", "/proc/diskstats", TARE__SAMPLE_FAILS, "", "%s",
                            got < 0 ? tare__machine_why(got, "/proc/diskstats", why) : "no disks found");
    tare__text_free(&names);
    free(text);
}

const tare__sampler tare__part_disk = {
    .name = "disk",
    .every = 1,
    .state_bytes = sizeof(disk_part),
    .open = open_disk,
    .tick = tick_disk,
    .close = close_disk,
    .doctor = doctor_disk,
};
