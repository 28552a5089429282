/* devices: a table of named devices with counters, which may appear and disappear while the program runs.
 * The set's thread owns it.
 * Must not know what kind of device it is. */
#define _GNU_SOURCE
#include "machine.h"

#include <stdlib.h>

/* An invalid name (binary data) would not be found again. */
static bool is_name(tare__scan name)
{
    for (const char *c = name.at; c < name.end; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return false;
    return name.end > name.at && (size_t)(name.end - name.at) < sizeof((tare__device *)0)->name;
}

static tare__device *add(tare__sample_set *set, tare__devices *devices, tare__scan name)
{
    size_t bytes = (size_t)(name.end - name.at);
    if (devices->n >= TARE__DEVICES_MAX || !is_name(name) ||
        !tare__array_fit(&devices->all, &devices->room, devices->n + 1, sizeof *devices->all))
        return NULL;
    tare__device *device = &devices->all[devices->n++];
    memset(device, 0, sizeof *device);
    memcpy(device->name, name.at, bytes);
    device->kept = devices->wanted(tare__sample_options_of(set)->root, device->name);
    return device;
}

static tare__device *find(tare__devices *devices, tare__scan name)
{
    for (size_t i = 0; i < devices->n; i++) {
        size_t at = (devices->next + i) % devices->n;
        if (tare__scan_is(name, devices->all[at].name)) {
            devices->next = at + 1;
            return &devices->all[at];
        }
    }
    return NULL;
}

tare__device *tare__devices_find(tare__sample_set *set, tare__devices *devices, tare__scan name)
{
    tare__device *device = find(devices, name);
    if (!device)
        device = add(set, devices, name);
    return device && device->kept ? device : NULL;
}

void tare__devices_put(tare__sample_set *set, tare__devices *devices, tare__device *device, const int64_t *values)
{
    if (!device->told) {
        if (devices->told == TARE__DEVICES_TOLD_MAX)
            return;
        devices->told++;
        tare__subject subject = {.kind = devices->kind, .label = device->name};
        for (size_t i = 0; i < devices->n_metrics; i++)
            device->counters[i].series = tare__sample_series_of(set, devices->metrics[i], &subject);
        device->told = true;
    }
    device->seen = true;
    for (size_t i = 0; i < devices->n_metrics; i++)
        tare__counter_count(set, &device->counters[i], values[i], 0);
}

void tare__devices_sweep(tare__sample_set *set, tare__devices *devices, const char *none)
{
    for (size_t i = 0; i < devices->n; i++) {
        tare__device *device = &devices->all[i];
        if (device->told && !device->seen)
            for (size_t j = 0; j < devices->n_metrics; j++)
                tare__sample_absent(set, device->counters[j].series, "the device was removed");
        device->seen = false;
    }
    devices->next = 0;
    if (devices->told || devices->none[0])
        return;
    for (size_t i = 0; i < devices->n_metrics; i++) {
        devices->none[i] = tare__sample_series_of(set, devices->metrics[i], &(tare__subject){.kind = devices->kind});
        tare__sample_absent(set, devices->none[i], none);
    }
}

void tare__devices_close(tare__devices *devices)
{
    free(devices->all);
}
