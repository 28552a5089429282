/* memory: memory and swap of the machine (/proc/meminfo), pages swapped (/proc/vmstat).
 * The set's thread owns it.
 * Must not know whose memory it is. */
#define _GNU_SOURCE
#include "machine.h"

#include <unistd.h>

enum { TOTAL, FREE, AVAILABLE, BUFFERS, CACHED, SWAP_TOTAL, SWAP_FREE, KEYS };
static const char *const keys[KEYS] = {"MemTotal", "MemFree", "MemAvailable", "Buffers",
                                       "Cached",   "SwapTotal", "SwapFree"};
enum { FIGURES = 6 };
static const tare__metric metrics[FIGURES] = {TARE__M_MEMORY_TOTAL,  TARE__M_MEMORY_AVAILABLE, TARE__M_MEMORY_USED,
                                              TARE__M_MEMORY_CACHED, TARE__M_SWAP_TOTAL,       TARE__M_SWAP_USED};
static const char *const swap_keys[2] = {"pswpin", "pswpout"};
static const tare__metric swap_metrics[2] = {TARE__M_SWAP_IN, TARE__M_SWAP_OUT};

typedef struct memory_part {
    int meminfo, vmstat;
    int64_t page_bytes;
    uint32_t series[FIGURES];
    tare__counter swap[2];
    bool swap_known;
    char text[16384];
} memory_part;

static void open_memory(tare__sample_set *set, void *state)
{
    memory_part *part = state;
    part->meminfo = part->vmstat = -1;
    part->page_bytes = sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < FIGURES; i++)
        part->series[i] = tare__machine_series(set, metrics[i]);
    for (size_t i = 0; i < 2; i++)
        part->swap[i].series = tare__machine_series(set, swap_metrics[i]);
}

static int64_t less(int64_t from, int64_t what)
{
    return from < 0 || what < 0 || what > from ? TARE__SCAN_NONE : from - what;
}

/* Before Linux 3.14 there is no MemAvailable: free memory, buffers and caches are an approximation. */
static int64_t used_of(const int64_t have[KEYS])
{
    if (have[AVAILABLE] >= 0)
        return less(have[TOTAL], have[AVAILABLE]);
    return less(less(less(have[TOTAL], have[FREE]), have[BUFFERS]), have[CACHED]);
}

static int64_t tick_meminfo(tare__sample_set *set, memory_part *part, const char *root)
{
    int64_t have[KEYS];
    int got = tare__sample_pread(root, "/proc/meminfo", &part->meminfo, part->text, sizeof part->text);
    tare__scan_keys(part->text, got, keys, KEYS, have);
    for (size_t i = 0; i < KEYS; i++)
        if (!tare__scan_times(have[i], 1024, &have[i]))
            have[i] = TARE__SCAN_NONE;
    const int64_t values[FIGURES] = {have[TOTAL],  have[AVAILABLE],  used_of(have),
                                     have[CACHED], have[SWAP_TOTAL], less(have[SWAP_TOTAL], have[SWAP_FREE])};
    char why[256];
    for (size_t i = 0; i < FIGURES; i++)
        if (values[i] >= 0)
            tare__sample_put(set, part->series[i], values[i]);
        else
            tare__sample_absent(set, part->series[i],
                                tare__machine_why(got < 0 ? got : 0, "/proc/meminfo", why));
    return have[SWAP_TOTAL];
}

static void tick_vmstat(tare__sample_set *set, memory_part *part, const char *root)
{
    int64_t pages[2], bytes;
    char why[256];
    int got = tare__sample_pread(root, "/proc/vmstat", &part->vmstat, part->text, sizeof part->text);
    tare__scan_keys(part->text, got, swap_keys, 2, pages);
    part->swap_known = true;
    for (size_t i = 0; i < 2; i++)
        if (tare__scan_times(pages[i], part->page_bytes, &bytes)) {
            tare__counter_hold(set, &part->swap[i], bytes);
        } else {
            part->swap_known = false;
            tare__sample_absent(set, part->swap[i].series,
                                tare__machine_why(got < 0 ? got : 0, "/proc/vmstat", why));
        }
}

static void tick_memory(tare__sample_set *set, void *state, uint64_t now_ns)
{
    (void)now_ns;
    memory_part *part = state;
    const char *root = tare__sample_options_of(set)->root;
    int64_t swap_total = tick_meminfo(set, part, root);
    if (swap_total != 0 || !part->swap_known) {
        tick_vmstat(set, part, root);
        return;
    }
    for (size_t i = 0; i < 2; i++) /* without swap they cannot have changed, and vmstat is long */
        tare__sample_put(set, part->swap[i].series, part->swap[i].last);
}

static void close_memory(void *state)
{
    memory_part *part = state;
    tare__machine_close(&part->meminfo);
    tare__machine_close(&part->vmstat);
}

static void doctor_memory(const char *root, tare__sample_check_sink *sink, void *context)
{
    char text[16384], why[256], total[TARE__UNIT_BYTES], swap[TARE__UNIT_BYTES];
    int64_t have[KEYS];
    int got = tare__sample_read(root, "/proc/meminfo", text, sizeof text);
    tare__scan_keys(text, got, keys, KEYS, have);
    if (have[TOTAL] <= 0)
        tare__machine_check(sink, context, "system", "/proc/meminfo", TARE__SAMPLE_FAILS, "", "%s",
                            tare__machine_why(got < 0 ? got : 0, "/proc/meminfo", why));
    else if (have[AVAILABLE] < 0)
        tare__machine_check(sink, context, "system", "/proc/meminfo", TARE__SAMPLE_PARTLY, "",
                            "no MemAvailable (it came with Linux 3.14): memory in use is taken from MemFree, "
                            "Buffers and Cached");
    else
        tare__machine_check(sink, context, "system", "/proc/meminfo", TARE__SAMPLE_WORKS, "",
                            "%s of memory, %s of swap",
                            tare__unit_bytes(total, (double)have[TOTAL] * 1024),
                            have[SWAP_TOTAL] > 0 ? tare__unit_bytes(swap, (double)have[SWAP_TOTAL] * 1024) : "none");
}

const tare__sampler tare__part_memory = {
    .name = "memory",
    .every = 1,
    .state_bytes = sizeof(memory_part),
    .open = open_memory,
    .tick = tick_memory,
    .close = close_memory,
    .doctor = doctor_memory,
};
