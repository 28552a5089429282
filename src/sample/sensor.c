/* sensor: temperatures and power from hardware monitoring chips (hwmon) and thermal zones.
 * The set's thread owns it.
 * Must not know which temperature is too high. */
#define _GNU_SOURCE
#include "machine.h"

#include <stdio.h>

#define HWMON "/sys/class/hwmon"
#define THERMAL "/sys/class/thermal"
#define CHIPS_MAX 128
#define SENSORS_MAX 32
#define SLOW_TIMES 100 /* a sensor on a slow bus is read at intervals of this many times its response time */

/* Files of a chip; the first that has a number is used. */
typedef struct kind {
    tare__metric metric;
    const char *prefix, *suffix;
    int64_t least, most; /* valid range, in the unit of the file */
    int64_t divisor;
    const char *no; /* why there is none */
} kind;
static const kind kinds[] = {
    {TARE__M_TEMPERATURE, "temp", "_input", -50000, 150000, 1,
     "no temperature sensors found (virtual machine?)"},
    {TARE__M_POWER, "power", "_average", 0, 100000000000, 1000, "no power sensors found"},
    {TARE__M_POWER, "power", "_input", 0, 100000000000, 1000, "no power sensors found"},
};

typedef struct sensor {
    const kind *kind;
    char path[128], label[64];
    int fd;
    uint32_t series;
    uint64_t due_ns;
} sensor;

typedef struct sensor_part {
    sensor all[SENSORS_MAX];
    size_t n;
} sensor_part;

typedef struct chips {
    struct {
        char entry[24], name[32];
    } all[CHIPS_MAX];
    size_t n;
} chips;

/* ---- finding ----------------------------------------------------------------------------------------- */

static void list_chips(const char *root, chips *chips)
{
    tare__entry entries[CHIPS_MAX];
    int n = tare__machine_list(root, HWMON, "hwmon", entries, CHIPS_MAX);
    for (chips->n = 0; n > 0 && chips->n < (size_t)n; chips->n++) {
        char path[128];
        snprintf(chips->all[chips->n].entry, sizeof chips->all->entry, "%.23s", entries[chips->n].name);
        snprintf(path, sizeof path, HWMON "/%.23s/name", entries[chips->n].name);
        tare__machine_line(root, path, chips->all[chips->n].name, sizeof chips->all->name);
        if (!chips->all[chips->n].name[0])
            memcpy(chips->all[chips->n].name, chips->all[chips->n].entry, sizeof chips->all->entry);
    }
}

/* Two sensors of one label and kind (two identical disks) are distinguished by a number. */
static uint64_t same_before(const sensor_part *part, const sensor *sensor)
{
    uint64_t n = 0;
    for (size_t i = 0; i < part->n; i++)
        n += part->all[i].kind->metric == sensor->kind->metric && strcmp(part->all[i].label, sensor->label) == 0;
    return n;
}

static void add_sensor(tare__sample_set *set, sensor_part *part, const sensor *found)
{
    if (part->n == SENSORS_MAX)
        return;
    tare__subject subject = {.kind = TARE__SUBJECT_SENSOR, .key = same_before(part, found), .label = found->label};
    sensor *sensor = &part->all[part->n];
    *sensor = *found;
    sensor->fd = -1;
    sensor->series = tare__sample_series_of(set, found->kind->metric, &subject);
    part->n++;
}

static bool has_path(const sensor_part *part, const char *path, size_t bytes)
{
    for (size_t i = 0; i < part->n; i++)
        if (strncmp(part->all[i].path, path, bytes) == 0)
            return true;
    return false;
}

static void add_inputs(tare__sample_set *set, sensor_part *part, const char *chip_entry, const char *chip,
                       const kind *kind)
{
    const char *root = tare__sample_options_of(set)->root;
    char folder[64];
    tare__entry files[CHIPS_MAX];
    snprintf(folder, sizeof folder, HWMON "/%.23s", chip_entry);
    int n = tare__machine_list(root, folder, kind->prefix, files, CHIPS_MAX);
    for (int i = 0; i < n; i++) {
        char *under = strchr(files[i].name, '_');
        if (!under || strcmp(under, kind->suffix) != 0 || under - files[i].name > 16)
            continue;
        *under = '\0';
        sensor found = {.kind = kind};
        char path[128], label[32];
        int stem = snprintf(found.path, sizeof found.path, "%s/%.16s_", folder, files[i].name);
        if (has_path(part, found.path, (size_t)stem))
            continue;
        snprintf(path, sizeof path, "%s/%.16s_label", folder, files[i].name);
        snprintf(found.path, sizeof found.path, "%s/%.16s%s", folder, files[i].name, kind->suffix);
        tare__machine_line(root, path, label, sizeof label);
        snprintf(found.label, sizeof found.label, "%.30s %.31s", chip, *label ? label : files[i].name);
        add_sensor(set, part, &found);
    }
}

static void add_chips(tare__sample_set *set, sensor_part *part, const chips *chips, bool cpus)
{
    for (size_t i = 0; i < chips->n; i++)
        if (tare__sensor_is_cpu(chips->all[i].name) == cpus)
            for (size_t j = 0; j < TARE__COUNT_OF(kinds); j++)
                add_inputs(set, part, chips->all[i].entry, chips->all[i].name, &kinds[j]);
}

/* A zone often duplicates a chip of the same name (with - as _): the same sensor twice. */
static bool is_chip(const chips *chips, const char *type)
{
    char name[32];
    snprintf(name, sizeof name, "%.31s", type);
    for (char *c = name; *c; c++)
        if (*c == '-')
            *c = '_';
    for (size_t i = 0; i < chips->n; i++)
        if (strcmp(chips->all[i].name, name) == 0)
            return true;
    return false;
}

static void add_zones(tare__sample_set *set, sensor_part *part, const chips *chips)
{
    const char *root = tare__sample_options_of(set)->root;
    tare__entry zones[CHIPS_MAX];
    int n = tare__machine_list(root, THERMAL, "thermal_zone", zones, CHIPS_MAX);
    for (int i = 0; i < n; i++) {
        char path[128], type[40];
        snprintf(path, sizeof path, THERMAL "/%.40s/type", zones[i].name);
        tare__machine_line(root, path, type, sizeof type);
        if (is_chip(chips, type))
            continue;
        sensor found = {.kind = &kinds[0]};
        snprintf(found.path, sizeof found.path, THERMAL "/%.40s/temp", zones[i].name);
        snprintf(found.label, sizeof found.label, "thermal %.39s", *type ? type : zones[i].name);
        add_sensor(set, part, &found);
    }
}

static void tell_missing(tare__sample_set *set, const sensor_part *part)
{
    for (size_t i = 0; i < 2; i++) { /* temperature, power */
        bool any = false;
        for (size_t j = 0; j < part->n; j++)
            any |= part->all[j].kind->metric == kinds[i].metric;
        tare__subject nobody = {.kind = TARE__SUBJECT_SENSOR};
        if (!any)
            tare__sample_absent(set, tare__sample_series_of(set, kinds[i].metric, &nobody), kinds[i].no);
    }
}

static void open_sensor(tare__sample_set *set, void *state)
{
    sensor_part *part = state;
    chips chips;
    list_chips(tare__sample_options_of(set)->root, &chips);
    add_chips(set, part, &chips, true);
    add_chips(set, part, &chips, false);
    add_zones(set, part, &chips);
    tell_missing(set, part);
}

/* ---- reading ----------------------------------------------------------------------------------------- */

static void tick_one(tare__sample_set *set, sensor *sensor)
{
    int failure;
    char why[256];
    int64_t value = tare__machine_number(tare__sample_options_of(set)->root, sensor->path, &sensor->fd, &failure);
    if (value == TARE__SCAN_NONE)
        tare__sample_absent(set, sensor->series, tare__machine_why(failure, sensor->path, why));
    else if (value < sensor->kind->least || value > sensor->kind->most)
        tare__sample_absent(set, sensor->series, "the sensor reports implausible values");
    else
        tare__sample_put(set, sensor->series, value / sensor->kind->divisor);
}

static void tick_sensor(tare__sample_set *set, void *state, uint64_t now_ns)
{
    sensor_part *part = state;
    for (size_t i = 0; i < part->n; i++) {
        sensor *sensor = &part->all[i];
        if (now_ns < sensor->due_ns)
            continue;
        uint64_t before = tare__monotonic_ns();
        tick_one(set, sensor);
        sensor->due_ns = now_ns + (tare__monotonic_ns() - before) * SLOW_TIMES;
    }
}

static void close_sensor(void *state)
{
    sensor_part *part = state;
    for (size_t i = 0; i < part->n; i++)
        tare__machine_close(&part->all[i].fd);
}

static void doctor_sensor(const char *root, tare__sample_check_sink *sink, void *context)
{
    chips chips;
    tare__text names = {0};
    list_chips(root, &chips);
    for (size_t i = 0; i < chips.n; i++)
        tare__text_format(&names, "%s%s", i ? ", " : "", chips.all[i].name);
    if (chips.n)
        tare__machine_check(sink, context, "power", HWMON, TARE__SAMPLE_WORKS, "", "%s", names.data);
    else
        tare__machine_check(sink, context, "power", HWMON, TARE__SAMPLE_FAILS,
                            tare__machine_virtual(root) ? "" : "sudo modprobe coretemp || sudo modprobe k10temp",
                            "%s", kinds[0].no);
    tare__text_free(&names);
    tare__entry zones[CHIPS_MAX];
    int n = tare__machine_list(root, THERMAL, "thermal_zone", zones, CHIPS_MAX);
    if (n > 0)
        tare__machine_check(sink, context, "power", THERMAL, TARE__SAMPLE_WORKS, "", "%d thermal zone%s", n,
                            n == 1 ? "" : "s");
    else
        tare__machine_check(sink, context, "power", THERMAL, TARE__SAMPLE_FAILS, "",
                            "no thermal zones found");
}

const tare__sampler tare__part_sensor = {
    .name = "sensor",
    .every = 10,
    .state_bytes = sizeof(sensor_part),
    .open = open_sensor,
    .tick = tick_sensor,
    .close = close_sensor,
    .doctor = doctor_sensor,
};
