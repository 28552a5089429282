/* network: bytes through each network interface except loopback (/proc/net/dev).
 * The set's thread owns it.
 * Must not know which process communicates. */
#define _GNU_SOURCE
#include "machine.h"

#include <stdlib.h>

#define TEXT_BYTES (128 * 1024)

enum { FIGURES = 3 };
static const tare__metric metrics[FIGURES] = {TARE__M_NET_RECEIVED, TARE__M_NET_SENT, TARE__M_NET_ERRORS};

typedef struct network_part {
    int fd;
    tare__devices interfaces;
    char text[TEXT_BYTES];
} network_part;

static bool is_wanted(const char *root, const char *name)
{
    (void)root;
    return strcmp(name, "lo") != 0;
}

static void open_network(tare__sample_set *set, void *state)
{
    (void)set;
    network_part *part = state;
    part->fd = -1;
    part->interfaces = (tare__devices){.kind = TARE__SUBJECT_NETWORK, .metrics = metrics, .n_metrics = FIGURES,
                                       .wanted = is_wanted};
}

static bool read_figures(tare__scan *line, int64_t values[FIGURES])
{
    int64_t columns[TARE__NET_COLUMNS];
    if (tare__line_numbers(line, columns, TARE__NET_COLUMNS) < TARE__NET_COLUMNS)
        return false;
    for (size_t i = 0; i < TARE__NET_COLUMNS; i++)
        if (columns[i] < 0)
            return false;
    values[0] = columns[TARE__NET_RECEIVED];
    values[1] = columns[TARE__NET_SENT];
    return !__builtin_add_overflow(columns[2], columns[3], &values[2]) &&
           !__builtin_add_overflow(values[2], columns[10], &values[2]) &&
           !__builtin_add_overflow(values[2], columns[11], &values[2]);
}

static void tick_network(tare__sample_set *set, void *state, uint64_t now_ns)
{
    (void)now_ns;
    network_part *part = state;
    int got = tare__sample_pread(tare__sample_options_of(set)->root, "/proc/net/dev", &part->fd, part->text,
                                 sizeof part->text);
    tare__scan text = tare__scan_of(part->text, got), line, name;
    while (tare__scan_line(&text, &line)) {
        int64_t values[FIGURES];
        if (!tare__line_network(&line, &name) || !read_figures(&line, values))
            continue;
        tare__device *interface = tare__devices_find(set, &part->interfaces, name);
        if (!interface || (!interface->told && values[0] == 0 && values[1] == 0))
            continue; /* an unused one */
        tare__devices_put(set, &part->interfaces, interface, values);
    }
    char why[256];
    tare__devices_sweep(set, &part->interfaces, got < 0 ? tare__machine_why(got, "/proc/net/dev", why)
                                                        : "no active network interfaces");
}

static void close_network(void *state)
{
    network_part *part = state;
    tare__machine_close(&part->fd);
    tare__devices_close(&part->interfaces);
}

static void doctor_network(const char *root, tare__sample_check_sink *sink, void *context)
{
    char *text = malloc(TEXT_BYTES), why[256];
    if (!text)
        return;
    tare__text names = {0};
    int got = tare__sample_read(root, "/proc/net/dev", text, TEXT_BYTES);
    tare__scan rest = tare__scan_of(text, got), line, name;
    int64_t values[FIGURES];
    while (tare__scan_line(&rest, &line))
        if (tare__line_network(&line, &name) && read_figures(&line, values) && (values[0] > 0 || values[1] > 0) &&
            !tare__scan_is(name, "lo"))
            tare__text_format(&names, "%s%.*s", names.length ? ", " : "", (int)(name.end - name.at), name.at);
    if (names.length)
        tare__machine_check(sink, context, "system", "/proc/net/dev", TARE__SAMPLE_WORKS, "", "%s", names.data);
    else
        tare__machine_check(sink, context, "system", "/proc/net/dev",
                            got < 0 ? TARE__SAMPLE_FAILS : TARE__SAMPLE_PARTLY, "", "%s",
                            got < 0 ? tare__machine_why(got, "/proc/net/dev", why)
                                    : "no active network interfaces");
    tare__text_free(&names);
    free(text);
}

const tare__sampler tare__part_network = {
    .name = "network",
    .every = 1,
    .state_bytes = sizeof(network_part),
    .open = open_network,
    .tick = tick_network,
    .close = close_network,
    .doctor = doctor_network,
};
