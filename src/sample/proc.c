/* proc: parses files of /proc/PID. Pure; any thread.
 * Formats: proc(5). Unknown lines and fields are skipped.
 * Must not know where the text comes from. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "watch.h"

/* ---- numbers ------------------------------------------------------------------------------------------------ */

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

/* A number, which may be negative; *at moves past it. False: not a number. */
static bool number(const char **at, int64_t *out)
{
    const char *from = skip_blanks(*at);
    bool negative = *from == '-';
    from += negative;
    if (*from < '0' || *from > '9')
        return false;
    uint64_t value = 0;
    for (; *from >= '0' && *from <= '9'; from++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*from - '0'), &value) || value > INT64_MAX)
            value = INT64_MAX;
    *out = negative ? -(int64_t)value : (int64_t)value;
    *at = from;
    return true;
}

static int64_t kibibytes(const char *at)
{
    int64_t value;
    if (!number(&at, &value) || value < 0)
        return TARE__NO_VALUE;
    return value > INT64_MAX / 1024 ? INT64_MAX : value * 1024;
}

int64_t tare__proc_ticks_ns(int64_t ticks)
{
    static int64_t tick_ns;
    if (!tick_ns) {
        long rate = sysconf(_SC_CLK_TCK);
        tick_ns = 1000000000 / (rate > 0 ? rate : 100);
    }
    int64_t ns;
    return __builtin_mul_overflow(ticks, tick_ns, &ns) ? INT64_MAX : ns;
}

/* ---- stat -------------------------------------------------------------------------------------------------- */

/* pid (comm) state ppid …: the name may contain spaces and parentheses, the rest does not. */
bool tare__proc_stat_parse(const char *text, tare__proc_stat *out)
{
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    memset(out, 0, sizeof *out);
    if (!open || !close || close < open || close[1] != ' ' || !close[2])
        return false;
    size_t length = (size_t)(close - open - 1);
    if (length >= sizeof out->name)
        length = sizeof out->name - 1;
    memcpy(out->name, open + 1, length);
    out->state = close[2];
    int64_t field[25] = {0}; /* as proc(5) numbers them */
    const char *at = close + 3;
    for (int i = 4; i <= 24; i++)
        if (!number(&at, &field[i]))
            return false;
    out->parent = (pid_t)field[4];
    out->session = (pid_t)field[6];
    out->faults_minor = field[10];
    out->waited_faults = field[11];
    out->faults_major = field[12];
    out->user = field[14];
    out->system = field[15];
    out->waited_user = field[16];
    out->waited_system = field[17];
    out->threads = field[20];
    out->start_time = (uint64_t)field[22];
    out->rss_pages = field[24];
    return true;
}

/* ---- files of `key: value` lines --------------------------------------------------------------------------- */

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? end + 1 : at + strlen(at);
}

static const char *after_key(const char *line, const char *key, size_t length)
{
    return strncmp(line, key, length) == 0 && line[length] == ':' ? line + length + 1 : NULL;
}

typedef struct line_key {
    const char *key;
    size_t at; /* of an int64_t in the result */
    bool in_kibibytes;
} line_key;

static int read_lines(const char *text, const line_key *keys, size_t n, void *out)
{
    int found = 0;
    for (const char *line = text; *line; line = next_line(line))
        for (size_t i = 0; i < n; i++) {
            if (line[0] != keys[i].key[0])
                continue;
            const char *value = after_key(line, keys[i].key, strlen(keys[i].key));
            int64_t got;
            if (!value)
                continue;
            if (keys[i].in_kibibytes)
                got = kibibytes(value);
            else if (!number(&value, &got))
                got = TARE__NO_VALUE;
            memcpy((char *)out + keys[i].at, &got, sizeof got);
            found++;
            break;
        }
    return found;
}

static const line_key status_keys[] = {
    {"VmRSS", offsetof(tare__proc_status, rss), true},
    {"VmHWM", offsetof(tare__proc_status, rss_peak), true},
    {"RssAnon", offsetof(tare__proc_status, anon), true},
    {"RssFile", offsetof(tare__proc_status, file), true},
    {"RssShmem", offsetof(tare__proc_status, shared), true},
    {"VmSwap", offsetof(tare__proc_status, swapped), true},
    {"voluntary_ctxt_switches", offsetof(tare__proc_status, switches_voluntary), false},
    {"nonvoluntary_ctxt_switches", offsetof(tare__proc_status, switches_forced), false},
};

void tare__proc_status_parse(const char *text, tare__proc_status *out)
{
    *out = (tare__proc_status){TARE__NO_VALUE, TARE__NO_VALUE, TARE__NO_VALUE, TARE__NO_VALUE,
                               TARE__NO_VALUE, TARE__NO_VALUE, TARE__NO_VALUE, TARE__NO_VALUE};
    read_lines(text, status_keys, TARE__COUNT_OF(status_keys), out);
}

static const line_key io_keys[] = {
    {"rchar", offsetof(tare__proc_io, read), false},
    {"wchar", offsetof(tare__proc_io, write), false},
    {"read_bytes", offsetof(tare__proc_io, disk_read), false},
    {"write_bytes", offsetof(tare__proc_io, disk_write), false},
};

bool tare__proc_io_parse(const char *text, tare__proc_io *out)
{
    *out = (tare__proc_io){TARE__NO_VALUE, TARE__NO_VALUE, TARE__NO_VALUE, TARE__NO_VALUE};
    return read_lines(text, io_keys, TARE__COUNT_OF(io_keys), out) == (int)TARE__COUNT_OF(io_keys);
}

int64_t tare__proc_pss_parse(const char *text)
{
    for (const char *line = text; *line; line = next_line(line)) {
        const char *value = after_key(line, "Pss", 3);
        if (value)
            return kibibytes(value);
    }
    return TARE__NO_VALUE;
}
