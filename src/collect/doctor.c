/* doctor: whether recording works on this machine: creates a session folder as a run would, and checks the clock.
 * One thread; leaves nothing behind.
 * Must not know how it is shown. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "collector.h"

#define MEMORY "/dev/shm"

static uint64_t free_in(const char *place)
{
    struct statvfs about;
    return statvfs(place, &about) == 0 ? (uint64_t)about.f_bavail * about.f_frsize : 0;
}

/* Memory is preferred: the kernel writes a folder on a disk back, which adds overhead. */
static void judge_place(const tare__folder *folder, tare__sample_check *check)
{
    char place[TARE__PATH_BYTES], bytes[TARE__UNIT_BYTES], pool[TARE__UNIT_BYTES];
    snprintf(place, sizeof place, "%s", folder->path);
    *strrchr(place, '/') = '\0';
    tare__unit_bytes(bytes, (double)free_in(place));
    tare__unit_bytes(pool, (double)TARE__POOL_BYTES);
    check->state = TARE__SAMPLE_WORKS;
    if (strcmp(place, MEMORY) == 0) {
        snprintf(check->detail, sizeof check->detail, MEMORY " has %s free; a process takes %s", bytes, pool);
        return;
    }
    check->state = TARE__SAMPLE_PARTLY;
    snprintf(check->detail, sizeof check->detail,
             "in %.120s (%s free): " MEMORY " is missing, not writable or has less than %u MiB free", place, bytes,
             (unsigned)(8 * ((TARE__POOL_BYTES >> 20) + 2)));
    snprintf(check->fix, sizeof check->fix, "%s",
             access("/.dockerenv", F_OK) == 0 ? "docker run --shm-size=1g …"
                                              : "sudo mount -o remount,size=1g " MEMORY);
}

static void check_folder(tare__sample_check_sink *sink, void *context)
{
    tare__folder *folder = calloc(1, sizeof *folder);
    tare__error error = {"out of memory"};
    tare__sample_check check = {.sampler = "recording", .source = "shared memory"};
    if (!folder || tare__folder_create(folder, TARE__POOL_BYTES, &error) != 0) {
        check.state = TARE__SAMPLE_FAILS;
        snprintf(check.detail, sizeof check.detail, "%.250s", error.text);
        snprintf(check.fix, sizeof check.fix, "export TMPDIR=/var/tmp   # any local folder with 16 MiB free");
    } else {
        judge_place(folder, &check);
        tare__folder_remove(folder);
    }
    free(folder);
    sink(context, &check);
}

static void check_clock(tare__sample_check_sink *sink, void *context)
{
    const char *forced = getenv("TARE_CLOCK");
    bool monotonic = forced && strcmp(forced, "monotonic") == 0;
    tare__sample_check check = {.sampler = "recording", .source = "clock", .state = TARE__SAMPLE_WORKS};
    if (!monotonic && tare__clock_choose() == TARE__CLOCK_TSC) {
        snprintf(check.detail, sizeof check.detail, "invariant TSC");
    } else {
        check.state = TARE__SAMPLE_PARTLY;
        snprintf(check.detail, sizeof check.detail,
                 monotonic ? "clock_gettime, set by TARE_CLOCK: spans have more overhead"
                           : "clock_gettime, because the TSC is not invariant: spans have more overhead");
        snprintf(check.fix, sizeof check.fix, "%s", monotonic ? "unset TARE_CLOCK" : "");
    }
    sink(context, &check);
}

typedef struct leftovers {
    unsigned count;
    uint64_t bytes;
} leftovers;

static void count_leftover(void *context, const tare__leftover *one)
{
    leftovers *all = context;
    all->count += one->state != TARE__LEFTOVER_ALIVE;
    all->bytes += one->state != TARE__LEFTOVER_ALIVE ? one->bytes : 0;
}

static void check_leftovers(tare__sample_check_sink *sink, void *context)
{
    leftovers all = {0};
    char bytes[TARE__UNIT_BYTES];
    tare__sample_check check = {.sampler = "recording", .source = "killed recordings", .state = TARE__SAMPLE_PARTLY};
    tare__leftovers_visit(count_leftover, &all);
    if (!all.count)
        return;
    snprintf(check.detail, sizeof check.detail, "%u left %s of session folders behind", all.count,
             tare__unit_bytes(bytes, (double)all.bytes));
    snprintf(check.fix, sizeof check.fix, "tare clean");
    sink(context, &check);
}

void tare__collect_doctor(tare__sample_check_sink *sink, void *context)
{
    check_folder(sink, context);
    check_clock(sink, context);
    check_leftovers(sink, context);
}
