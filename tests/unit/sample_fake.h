/* sample_fake: a set that only writes down what a sampler tells, and folders of made-up kernel files. Owned by the
 * test's one thread. Included after cmocka.h; takes the place of src/sample/set.c.
 * Must not know how the sampler works. */
#ifndef TARE_TEST_SAMPLE_FAKE_H
#define TARE_TEST_SAMPLE_FAKE_H

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sample/sample.h"

#define SECOND UINT64_C(1000000000)

/* ---- a root of made-up files -------------------------------------------------------------------------------- */
static char fake_root[64];

static inline void make_root(void)
{
    snprintf(fake_root, sizeof fake_root, "/tmp/tare-sample-XXXXXX");
    assert_non_null(mkdtemp(fake_root));
}

static inline void fake_path(char out[1024], const char *path)
{
    snprintf(out, 1024, "%s%s", fake_root, path);
}

static inline void make_folders(char *whole)
{
    for (char *slash = strchr(whole + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0777);
        *slash = '/';
    }
}

static inline void write_bytes(const char *path, const void *data, size_t bytes)
{
    char whole[1024];
    fake_path(whole, path);
    make_folders(whole);
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static inline void write_file(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

static inline void make_folder(const char *path)
{
    char whole[1024];
    fake_path(whole, path);
    make_folders(whole);
    mkdir(whole, 0777);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static inline void remove_file(const char *path)
{
    char whole[1024];
    fake_path(whole, path);
    nftw(whole, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- a set ---------------------------------------------------------------------------------------------------- */
typedef struct fake_series {
    tare__metric metric;
    tare__subject_kind kind;
    uint64_t key, owner;
    char label[256];
    char absent[256];
    int64_t value;
    bool has; /* a value since the last forget() */
    unsigned puts;
} fake_series;

#define FAKE_SERIES 8192
struct tare__sample_set {
    tare__sample_options options;
    fake_series series[FAKE_SERIES];
    size_t n;
    const tare__sampler *sampler;
    void *state;
    uint64_t cost_ns, cost_step_ns; /* what the clock of costs says, and how it goes on with each look */
};

const tare__sample_options *tare__sample_options_of(const tare__sample_set *set)
{
    return &set->options;
}

uint32_t tare__sample_series_of(tare__sample_set *set, tare__metric metric, const tare__subject *subject)
{
    const char *label = subject->label ? subject->label : "";
    for (size_t i = 0; i < set->n; i++) {
        const fake_series *at = &set->series[i];
        if (at->metric == metric && at->kind == subject->kind && at->key == subject->key &&
            at->owner == subject->owner && strcmp(at->label, label) == 0)
            return (uint32_t)(i + 1);
    }
    if (set->n == FAKE_SERIES)
        return 0;
    fake_series *series = &set->series[set->n++];
    *series = (fake_series){.metric = metric, .kind = subject->kind, .key = subject->key, .owner = subject->owner};
    snprintf(series->label, sizeof series->label, "%s", label);
    return (uint32_t)set->n;
}

void tare__sample_put(tare__sample_set *set, uint32_t series, int64_t value)
{
    if (series == 0)
        return;
    assert_true(series <= set->n);
    fake_series *at = &set->series[series - 1];
    tare__metric_kind kind = tare__metric_of(at->metric)->kind;
    if (kind == TARE__METRIC_TOTAL && at->puts && value < at->value)
        fail_msg("%s went back from %lld to %lld", tare__metric_of(at->metric)->name, (long long)at->value,
                 (long long)value);
    at->value = value;
    at->has = true;
    at->puts++;
    at->absent[0] = '\0';
}

void tare__sample_absent(tare__sample_set *set, uint32_t series, const char *reason)
{
    if (series == 0)
        return;
    assert_true(series <= set->n);
    assert_true(reason[0] != '\0' && reason[strlen(reason) - 1] != '.');
    fake_series *at = &set->series[series - 1];
    at->has = false;
    snprintf(at->absent, sizeof at->absent, "%s", reason);
}

uint64_t tare__sample_cost_clock(const tare__sample_set *set)
{
    tare__sample_set *own = (tare__sample_set *)set;
    return own->cost_ns += own->cost_step_ns;
}

static inline tare__sample_set *fake_open(const tare__sampler *sampler, pid_t target)
{
    tare__sample_set *set = calloc(1, sizeof *set);
    assert_non_null(set);
    set->options = (tare__sample_options){.root = fake_root, .target = target};
    set->sampler = sampler;
    set->state = calloc(1, sampler->state_bytes);
    assert_non_null(set->state);
    sampler->open(set, set->state);
    return set;
}

static inline void forget(tare__sample_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        set->series[i].has = false;
}

static inline void fake_tick(tare__sample_set *set, uint64_t now_ns)
{
    forget(set);
    set->sampler->tick(set, set->state, now_ns);
}

static inline void fake_close(tare__sample_set *set)
{
    set->sampler->close(set->state);
    free(set->state);
    free(set);
}

static inline const fake_series *series_at(const tare__sample_set *set, tare__metric metric, tare__subject_kind kind,
                                           uint64_t key, const char *label)
{
    for (size_t i = 0; i < set->n; i++) {
        const fake_series *at = &set->series[i];
        if (at->metric == metric && at->kind == kind && at->key == key && strcmp(at->label, label) == 0)
            return at;
    }
    return NULL;
}

static inline void value_is(const tare__sample_set *set, tare__metric metric, tare__subject_kind kind, uint64_t key,
                                const char *label, int64_t expected, int line)
{
    const fake_series *at = series_at(set, metric, kind, key, label);
    const char *name = tare__metric_of(metric)->name;
    if (!at)
        fail_msg("line %d: no series %s of %s", line, name, label);
    else if (!at->has)
        fail_msg("line %d: %s of %s has no value: %s", line, name, label, at->absent);
    else if (at->value != expected)
        fail_msg("line %d: %s of %s is %lld, not %lld", line, name, label, (long long)at->value, (long long)expected);
}

static inline void absent_is(const tare__sample_set *set, tare__metric metric, tare__subject_kind kind,
                                 uint64_t key, const char *label, const char *words, int line)
{
    const fake_series *at = series_at(set, metric, kind, key, label);
    const char *name = tare__metric_of(metric)->name;
    if (!at)
        fail_msg("line %d: no series %s of %s", line, name, label);
    else if (at->has)
        fail_msg("line %d: %s of %s has a value: %lld", line, name, label, (long long)at->value);
    else if (!strstr(at->absent, words))
        fail_msg("line %d: %s of %s is absent for \"%s\", not \"%s\"", line, name, label, at->absent, words);
}

#define VALUE(kind, key, label, metric, expected) \
    value_is(set, TARE__M_##metric, TARE__SUBJECT_##kind, key, label, expected, __LINE__)
#define ABSENT(kind, key, label, metric, words) \
    absent_is(set, TARE__M_##metric, TARE__SUBJECT_##kind, key, label, words, __LINE__)

/* ---- doctor --------------------------------------------------------------------------------------------------- */
static tare__sample_check checks[64];
static size_t n_checks;

static void keep_check(void *context, const tare__sample_check *check)
{
    (void)context;
    assert_true(n_checks < 64);
    assert_true(check->detail[0] != '\0');
    checks[n_checks++] = *check;
}

static inline const tare__sample_check *check_of(const tare__sampler *sampler, const char *source)
{
    n_checks = 0;
    sampler->doctor(fake_root, keep_check, NULL);
    for (size_t i = 0; i < n_checks; i++)
        if (strcmp(checks[i].source, source) == 0)
            return &checks[i];
    fail_msg("doctor tells nothing of %s", source);
    return NULL;
}

/* ---- rubbish: every file named, each kind of it, never a crash, and no nonsense as a value --------------------- */
static inline void feed_rubbish(const tare__sampler *sampler, pid_t target, const char *const *files, size_t n)
{
    static const char huge[] = "cpu 99999999999999999999999999 18446744073709551615 1 2 3 4 5 6 7 8 9 0\n"
                               "cpu0 99999999999999999999999999\n1 2 vda 99999999999999999999 1\n-5\n"
                               "eth0: 18446744073709551616 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"
                               "some avg10=0 total=99999999999999999999999\nMemTotal: 99999999999999999999 kB\n"
                               "0::/../../../../etc\n4:cpu,memory:/\n1 2 3 / /nowhere x - cgroup2 y z\n";
    char binary[4096];
    unsigned seed = 12345;
    for (size_t i = 0; i < sizeof binary; i++)
        binary[i] = (char)((seed = seed * 1103515245u + 12345u) >> 16);
    const struct {
        const char *data;
        size_t bytes;
    } kinds[] = {{"", 0},         {"\n", 1},       {"-", 1},          {":", 1},        {"\0\0\0\n", 4},
                 {huge, sizeof huge - 1}, {binary, sizeof binary}, {"cpu", 3}, {"9223372036854775807\n", 20},
                 {"max max\n", 8}};
    for (size_t k = 0; k < TARE__COUNT_OF(kinds); k++) {
        for (size_t i = 0; i < n; i++)
            write_bytes(files[i], kinds[k].data, kinds[k].bytes);
        tare__sample_set *set = fake_open(sampler, target);
        fake_tick(set, SECOND);
        fake_tick(set, 100 * SECOND);
        fake_close(set);
        n_checks = 0;
        sampler->doctor(fake_root, keep_check, NULL);
    }
}

/* A file cut short at every byte. */
static inline void feed_torn(const tare__sampler *sampler, pid_t target, const char *file, const char *text)
{
    for (size_t bytes = 0; bytes <= strlen(text); bytes++) {
        write_bytes(file, text, bytes);
        tare__sample_set *set = fake_open(sampler, target);
        fake_tick(set, SECOND);
        fake_close(set);
    }
}

#endif
