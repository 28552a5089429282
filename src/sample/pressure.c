/* pressure: time in which tasks waited for CPU, memory or disks (PSI), of the machine or of a control group.
 * The set's thread owns it.
 * Must not know whose pressure it is. */
#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>
#include <stdio.h>

static const char *const resources[3] = {"cpu", "memory", "io"};
static const struct {
    uint8_t resource;
    const char *word;
    tare__metric metric;
} figures[TARE__PRESSURES] = {
    {0, "some", TARE__M_PRESSURE_CPU},         {1, "some", TARE__M_PRESSURE_MEMORY},
    {1, "full", TARE__M_PRESSURE_MEMORY_FULL}, {2, "some", TARE__M_PRESSURE_IO},
    {2, "full", TARE__M_PRESSURE_IO_FULL},
};

/* Kernels differ: without CONFIG_PSI the files are missing, with psi=0 they are missing or say "not supported". */
static const char *why_not(int failure, const char *path, char out[256])
{
    if (failure != -ENOENT && failure != -EOPNOTSUPP && failure != -ENOTDIR)
        return tare__machine_why(failure, path, out);
    snprintf(out, 256, "%.120s does not exist: PSI is not built into this kernel or disabled (boot with psi=1)", path);
    return out;
}

void tare__pressure_open(tare__sample_set *set, tare__pressure *pressure, const char *folder, const char *suffix,
                         const tare__subject *subject)
{
    for (size_t i = 0; i < 3; i++) {
        pressure->fd[i] = -1;
        pressure->gone[i] = false;
        snprintf(pressure->path[i], sizeof pressure->path[i], "%s/%s%s", folder, resources[i], suffix);
    }
    for (size_t i = 0; i < TARE__PRESSURES; i++)
        pressure->series[i] = tare__sample_series_of(set, figures[i].metric, subject);
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345": microseconds. */
static bool find_total(const char *text, int bytes, const char *word, int64_t *ns)
{
    tare__scan rest = tare__scan_of(text, bytes), line;
    while (tare__scan_line(&rest, &line)) {
        if (!tare__scan_is(tare__scan_word(&line), word))
            continue;
        while (line.at < line.end) {
            int64_t total;
            tare__scan field = tare__scan_word(&line);
            if (tare__scan_skip(&field, "total="))
                return tare__scan_number(&field, &total) && field.at == field.end &&
                       tare__scan_times(total, 1000, ns);
        }
    }
    return false;
}

static void tick_resource(tare__sample_set *set, tare__pressure *pressure, uint8_t resource)
{
    char text[512], why[256];
    const char *path = pressure->path[resource];
    int got = tare__sample_pread(tare__sample_options_of(set)->root, path, &pressure->fd[resource], text,
                                 sizeof text);
    pressure->gone[resource] = got < 0;
    for (size_t i = 0; i < TARE__PRESSURES; i++) {
        int64_t ns;
        if (figures[i].resource != resource)
            continue;
        if (got > 0 && find_total(text, got, figures[i].word, &ns))
            tare__sample_put(set, pressure->series[i], ns);
        else
            tare__sample_absent(set, pressure->series[i], why_not(got < 0 ? got : 0, path, why));
    }
}

void tare__pressure_tick(tare__sample_set *set, tare__pressure *pressure)
{
    for (uint8_t i = 0; i < 3; i++)
        if (!pressure->gone[i])
            tick_resource(set, pressure, i);
}

void tare__pressure_close(tare__pressure *pressure)
{
    for (size_t i = 0; i < 3; i++)
        tare__machine_close(&pressure->fd[i]);
}

/* ---- of the machine ---------------------------------------------------------------------------------- */

static void open_pressure(tare__sample_set *set, void *state)
{
    tare__pressure_open(set, state, "/proc/pressure", "", &(tare__subject){.kind = TARE__SUBJECT_SYSTEM});
}

static void tick_pressure(tare__sample_set *set, void *state, uint64_t now_ns)
{
    (void)now_ns;
    tare__pressure_tick(set, state);
}

static void close_pressure(void *state)
{
    tare__pressure_close(state);
}

static void doctor_pressure(const char *root, tare__sample_check_sink *sink, void *context)
{
    char text[512], why[256];
    int got = tare__sample_read(root, "/proc/pressure/cpu", text, sizeof text);
    int64_t ns;
    if (got > 0 && find_total(text, got, "some", &ns))
        tare__machine_check(sink, context, "system", "/proc/pressure", TARE__SAMPLE_WORKS, "",
                            "time lost waiting for CPU, memory and disks");
    else
        tare__machine_check(sink, context, "system", "/proc/pressure", TARE__SAMPLE_FAILS,
                            got == -ENOENT || got == -EOPNOTSUPP
                                ? "sudo grubby --update-kernel=ALL --args=psi=1 (or psi=1 in /etc/default/grub), "
                                  "then reboot"
                                : "",
                            "%s", why_not(got < 0 ? got : 0, "/proc/pressure/cpu", why));
}

const tare__sampler tare__part_pressure = {
    .name = "pressure",
    .every = 1,
    .state_bytes = sizeof(tare__pressure),
    .open = open_pressure,
    .tick = tick_pressure,
    .close = close_pressure,
    .doctor = doctor_pressure,
};
