/* sample_process: processes that come, go, lose their parents and may not be read, in a made-up /proc.
 * One thread. The table of samplers is this one's alone.
 * Must not know how the sampler finds out. */
#define _GNU_SOURCE
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sample/sample.h"

#define SECOND UINT64_C(1000000000)
#define TICK (SECOND / 10)
#define SELF 999
#define TARGET 1000

const tare__sampler *tare__sampler_at(size_t index)
{
    return index == 0 ? &tare__sampler_process : NULL;
}

/* ---- a made-up /proc --------------------------------------------------------------------------------------- */
static char root[64];

typedef struct made_up {
    int pid, parent, session;
    const char *name;
    char state;
    long user, system, waited; /* clock ticks; waited: of user time */
    long waited_faults;
    int threads;
    long start, rss_kb, peak_kb, read;
    const char *children;
} made_up;

static void write_file(const char *text, const char *format, ...)
{
    char path[512], whole[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0777);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void write_thread(const made_up *p, int tid, char state, long user)
{
    char text[1024];
    snprintf(text, sizeof text, "%d (%s) %c %d %d %d 0 -1 0 11 %ld 12 0 %ld %ld %ld 0 20 0 %d 0 %ld 4096 %ld 0\n", tid,
             p->name, state, p->parent, p->pid, p->session ? p->session : 50, p->waited_faults, user, p->system,
             p->waited, p->threads ? p->threads : 1, p->start, p->rss_kb / 4);
    write_file(text, "/proc/%d/task/%d/stat", p->pid, tid);
    if (tid == p->pid)
        write_file(text, "/proc/%d/stat", p->pid);
}

static void make(const made_up *p)
{
    char text[1024];
    write_thread(p, p->pid, p->state ? p->state : 'S', p->user);
    if (p->state == 'Z')
        snprintf(text, sizeof text, "Name:\t%s\nState:\tZ (zombie)\n", p->name);
    else
        snprintf(text, sizeof text,
                 "Name:\t%s\nVmHWM:\t%ld kB\nVmRSS:\t%ld kB\nRssAnon:\t%ld kB\nRssFile:\t4 kB\nRssShmem:\t0 kB\n"
                 "VmSwap:\t0 kB\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n",
                 p->name, p->peak_kb ? p->peak_kb : p->rss_kb, p->rss_kb, p->rss_kb - 4);
    write_file(text, "/proc/%d/status", p->pid);
    snprintf(text, sizeof text, "rchar: %ld\nwchar: 1\nread_bytes: 2\nwrite_bytes: 3\n", p->read);
    write_file(text, "/proc/%d/io", p->pid);
    write_file(p->children ? p->children : "", "/proc/%d/task/%d/children", p->pid, p->pid);
    write_file("Pss: 40 kB\n", "/proc/%d/smaps_rollup", p->pid);
    write_file("", "/proc/%d/fd/0", p->pid);
    write_file("", "/proc/%d/fd/1", p->pid);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)kind, (void)place;
    if (S_ISREG(about->st_mode))
        (void)!truncate(path, 0); /* a kept descriptor of a real one reads nothing any more, either */
    return remove(path);
}

static void remove_all(const char *format, ...)
{
    char path[512], whole[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    snprintf(whole, sizeof whole, "%s%s", root, path);
    nftw(whole, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void end(int pid)
{
    remove_all("/proc/%d", pid);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/tare-process-XXXXXX");
    assert_non_null(mkdtemp(root));
    made_up self = {.pid = SELF, .parent = 50, .name = "tare", .start = 5, .rss_kb = 800, .user = 3};
    make(&self);
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    remove_all("");
    return 0;
}

/* ---- what was told ----------------------------------------------------------------------------------------- */
#define SERIES_MAX 20000
static struct {
    char metric[32], label[64], absent[256];
    uint32_t subject;
    uint64_t key, owner;
    bool has; /* a value at this tick */
    int64_t value;
    unsigned puts;
} told[SERIES_MAX];
static uint32_t told_count;
static uint64_t cost_ns, cost_step_ns;

static void hear_series(void *context, const tare__series *series)
{
    (void)context;
    assert_in_range(series->id, 1, SERIES_MAX);
    uint32_t at = series->id - 1;
    snprintf(told[at].metric, sizeof told[at].metric, "%.*s", (int)series->metric_bytes, series->metric);
    snprintf(told[at].label, sizeof told[at].label, "%.*s", (int)series->label_bytes, series->label);
    snprintf(told[at].absent, sizeof told[at].absent, "%.*s", (int)series->absent_bytes, series->absent);
    told[at].subject = series->subject;
    told[at].key = series->key;
    told[at].owner = series->owner;
    if (series->id > told_count)
        told_count = series->id;
}

static void hear_value(void *context, uint32_t series, int64_t value)
{
    (void)context;
    assert_in_range(series, 1, told_count);
    uint32_t at = series - 1;
    assert_false(told[at].has); /* once a tick */
    tare__metric metric = tare__metric_find(told[at].metric, (uint32_t)strlen(told[at].metric));
    if (tare__metric_of(metric)->kind != TARE__METRIC_GAUGE && told[at].puts && value < told[at].value)
        fail_msg("%s of %lu went back from %lld to %lld", told[at].metric, (unsigned long)told[at].key,
                 (long long)told[at].value, (long long)value);
    told[at].has = true;
    told[at].value = value;
    told[at].puts++;
}

static uint64_t fake_clock(void)
{
    return cost_ns += cost_step_ns;
}

static tare__sample_set *open_set(void)
{
    static const tare__sample_sink sink = {hear_series, hear_value, NULL};
    tare__sample_options options = {.root = root, .target = TARGET, .self = SELF, .cost_clock = fake_clock};
    memset(told, 0, sizeof told);
    told_count = 0;
    cost_ns = cost_step_ns = 0;
    tare__sample_set *set = tare__sample_open(&options, &sink);
    assert_non_null(set);
    return set;
}

static void tick(tare__sample_set *set, uint64_t at)
{
    for (uint32_t i = 0; i < told_count; i++)
        told[i].has = false;
    tare__sample_tick(set, 100 * SECOND + at * TICK);
}

static int place_of(const char *metric, uint32_t subject, uint64_t key, uint64_t owner)
{
    for (uint32_t i = 0; i < told_count; i++)
        if (strcmp(told[i].metric, metric) == 0 && told[i].subject == subject && told[i].key == key &&
            (owner == 0 || told[i].owner == owner))
            return (int)i;
    return -1;
}

static void value_is(const char *metric, uint32_t subject, uint64_t key, int64_t value, int line)
{
    int at = place_of(metric, subject, key, 0);
    if (at < 0 || !told[at].has) {
        fail_msg("line %d: %s of %d has no value: %s", line, metric, (int)key,
                 at < 0 ? "no series" : told[at].absent);
        return;
    }
    if (told[at].value != value)
        fail_msg("line %d: %s of %d is %lld, not %lld", line, metric, (int)key, (long long)told[at].value,
                 (long long)value);
}

static void absent_is(const char *metric, uint32_t subject, uint64_t key, const char *words, int line)
{
    int at = place_of(metric, subject, key, 0);
    if (at < 0) {
        fail_msg("line %d: no series %s of %d", line, metric, (int)key);
        return; /* compilers do not know that it never comes here */
    }
    if (!strstr(told[at].absent, words) || told[at].absent[0] == '\0')
        fail_msg("line %d: %s of %d is absent for \"%s\"", line, metric, (int)key, told[at].absent);
}

#define PROCESS(pid, metric, value) value_is(metric, TARE__SUBJECT_PROCESS, pid, value, __LINE__)
#define THREAD(tid, metric, value) value_is(metric, TARE__SUBJECT_THREAD, tid, value, __LINE__)
#define TREE(metric, value) value_is(metric, TARE__SUBJECT_TREE, 0, value, __LINE__)
#define ABSENT(pid, metric, words) absent_is(metric, TARE__SUBJECT_PROCESS, pid, words, __LINE__)

static int64_t ns(long ticks)
{
    return ticks * (int64_t)(SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
}

static const tare__sampled_process *listed(tare__sample_set *set, int pid, uint64_t start)
{
    size_t n;
    const tare__sampled_process *list = tare__sample_processes(set, &n);
    for (size_t i = 0; i < n; i++)
        if (list[i].pid == pid && list[i].start_time == start)
            return &list[i];
    return NULL;
}

static const made_up target = {.pid = TARGET, .parent = SELF, .name = "python3", .user = 100, .system = 20,
                               .start = 1000, .rss_kb = 4000, .peak_kb = 9000, .read = 500};

/* ---- one process ------------------------------------------------------------------------------------------- */

static void test_one_process(void **state)
{
    (void)state;
    make(&target);
    tare__sample_set *set = open_set();
    tick(set, 0);
    PROCESS(TARGET, "cpu.user", ns(100));
    PROCESS(TARGET, "cpu.system", ns(20));
    PROCESS(TARGET, "memory.rss", 4000 << 10);
    PROCESS(TARGET, "memory.rss_peak", 9000 << 10);
    PROCESS(TARGET, "memory.anon", 3996 << 10);
    PROCESS(TARGET, "memory.file", 4 << 10);
    PROCESS(TARGET, "memory.swapped", 0);
    PROCESS(TARGET, "faults.minor", 11);
    PROCESS(TARGET, "faults.major", 12);
    PROCESS(TARGET, "switches.voluntary", 5);
    PROCESS(TARGET, "switches.forced", 6);
    PROCESS(TARGET, "threads", 1);
    PROCESS(TARGET, "threads.running", 0);
    PROCESS(TARGET, "files", 2);
    PROCESS(TARGET, "io.read", 500);
    PROCESS(TARGET, "disk.write", 3);
    TREE("cpu.user", ns(100));
    TREE("processes", 1);
    TREE("memory.rss", 4000 << 10);
    value_is("memory.rss", TARE__SUBJECT_TARE, 0, 800 << 10, __LINE__);
    tick(set, 1);
    THREAD(TARGET, "cpu.user", ns(100)); /* of its only thread, without another file */
    assert_int_equal(listed(set, TARGET, 1000)->rss_peak, 9000 << 10);
    assert_string_equal(listed(set, TARGET, 1000)->name, "python3");
    tare__sample_close(set);
}

static void test_expensive_values_have_longer_intervals(void **state)
{
    (void)state;
    make(&target);
    tare__sample_set *set = open_set();
    for (uint64_t i = 0; i < 130; i++)
        tick(set, i);
    int pss = place_of("memory.pss", TARE__SUBJECT_PROCESS, TARGET, 0);
    int files = place_of("files", TARE__SUBJECT_PROCESS, TARGET, 0);
    int rss = place_of("memory.rss", TARE__SUBJECT_PROCESS, TARGET, 0);
    assert_int_equal(told[pss].puts, 3); /* at 1, 6 and 11 s */
    assert_int_equal(told[pss].value, 40 << 10);
    assert_int_equal(told[files].puts, 13);
    assert_int_equal(told[rss].puts, 130);
    tare__sample_close(set);
}

static void test_the_peak_outlives_another_program(void **state)
{
    (void)state;
    made_up p = target;
    make(&p);
    tare__sample_set *set = open_set();
    tick(set, 0);
    p.name = "other";
    p.peak_kb = 100;
    p.rss_kb = 90;
    make(&p);
    tick(set, 1);
    PROCESS(TARGET, "memory.rss_peak", 9000 << 10);
    PROCESS(TARGET, "memory.rss", 90 << 10);
    assert_string_equal(told[place_of("cpu.user", TARE__SUBJECT_PROCESS, TARGET, 0)].label, "other");
    tare__sample_close(set);
}

static void test_huge_counters(void **state)
{
    (void)state;
    make(&target);
    write_file("1000 (x) R 999 1 50 0 -1 0 9223372036854775807 0 9223372036854775806 0 9223372036854775807 "
               "9223372036854775807 9223372036854775807 9223372036854775807 20 0 1 0 1000 0 1 0\n",
               "/proc/1000/stat");
    write_file("rchar: 18446744073709551615\nwchar: 9223372036854775807\nread_bytes: 9223372036854775806\n"
               "write_bytes: 0\n", "/proc/1000/io");
    tare__sample_set *set = open_set();
    tick(set, 0);
    tick(set, 1);
    PROCESS(TARGET, "cpu.user", INT64_MAX);
    PROCESS(TARGET, "faults.major", INT64_MAX - 1);
    PROCESS(TARGET, "io.read", INT64_MAX);
    TREE("cpu.user", INT64_MAX);
    TREE("disk.read", INT64_MAX - 1);
    tare__sample_close(set);
}

/* ---- who belongs ------------------------------------------------------------------------------------------- */

static void test_children_come_and_go(void **state)
{
    (void)state;
    made_up p = target;
    made_up child = {.pid = 1001, .parent = TARGET, .name = ") (", .start = 2000, .user = 7, .rss_kb = 100};
    make(&p);
    tare__sample_set *set = open_set();
    tick(set, 0);
    make(&child);
    p.children = "1001 ";
    make(&p);
    tick(set, 1);
    PROCESS(1001, "cpu.user", ns(7));
    assert_int_equal(place_of("faults.minor", TARE__SUBJECT_PROCESS, 1001, 0), -1); /* not for one look */
    TREE("processes", 2);
    TREE("cpu.user", ns(107));
    TREE("memory.rss", 4100 << 10);
    tick(set, 2);
    PROCESS(1001, "faults.minor", 11);
    assert_string_equal(listed(set, 1001, 2000)->name, ") (");
    assert_true(listed(set, 1001, 2000)->alive);
    end(1001);
    p.children = "";
    p.waited = 9; /* waited for: what it used since we looked is there, too */
    make(&p);
    tick(set, 3);
    ABSENT(1001, "cpu.user", "ended");
    ABSENT(1001, "faults.minor", "ended");
    absent_is("cpu.user", TARE__SUBJECT_THREAD, 1001, "ended", __LINE__);
    TREE("processes", 1);
    TREE("cpu.user", ns(109));
    assert_false(listed(set, 1001, 2000)->alive);
    tare__sample_close(set);
}

static void test_nobody_waits_for_a_child(void **state)
{
    (void)state;
    made_up p = target, child = {.pid = 1001, .parent = TARGET, .name = "c", .start = 2000, .user = 70, .read = 40};
    p.children = "1001 ";
    make(&p);
    make(&child);
    tare__sample_set *set = open_set();
    tick(set, 0);
    TREE("cpu.user", ns(170));
    TREE("io.read", 540);
    end(1001);
    p.children = "";
    p.user = 101;
    p.read = 501;
    make(&p);
    tick(set, 1);
    TREE("cpu.user", ns(171)); /* kept */
    TREE("io.read", 541);
    tare__sample_close(set);
}

/* /proc/PID/io has what waited-for children did in it. */
static void test_a_waited_for_child_is_not_counted_twice(void **state)
{
    (void)state;
    made_up p = target, child = {.pid = 1001, .parent = TARGET, .name = "c", .start = 2000, .user = 70, .read = 40};
    p.children = "1001 ";
    make(&p);
    make(&child);
    tare__sample_set *set = open_set();
    tick(set, 0);
    end(1001);
    p.children = "";
    p.waited = 70;
    p.read = 560;
    make(&p);
    tick(set, 1);
    TREE("cpu.user", ns(170));
    TREE("io.read", 560);
    PROCESS(TARGET, "io.read", 520); /* 40 of the 60 are the child's */
    PROCESS(TARGET, "disk.read", 2); /* it did not grow: the child's were not added */
    tare__sample_close(set);
}

/* What its only thread did is its own, whatever children did that were never seen. */
static void test_bytes_of_children_are_not_the_parents(void **state)
{
    (void)state;
    made_up p = target;
    make(&p);
    tare__sample_set *set = open_set();
    tick(set, 0);
    PROCESS(TARGET, "io.read", 500);
    p.read = 90500;
    p.waited_faults = 200;
    make(&p);
    write_file("rchar: 510\nwchar: 1\nread_bytes: 2\nwrite_bytes: 3\n", "/proc/%d/task/%d/io", TARGET, TARGET);
    tick(set, 1);
    PROCESS(TARGET, "io.read", 510);
    TREE("io.read", 90500);
    p.threads = 2; /* from now on a thread more: what grows is its own, but for children that are seen */
    p.read = 90600;
    make(&p);
    tick(set, 2);
    PROCESS(TARGET, "io.read", 610);
    TREE("io.read", 90600);
    tare__sample_close(set);
}

static void test_a_pid_is_used_again(void **state)
{
    (void)state;
    made_up p = target, child = {.pid = 1001, .parent = TARGET, .name = "old", .start = 2000, .user = 70};
    p.children = "1001 ";
    make(&p);
    make(&child);
    tare__sample_set *set = open_set();
    tick(set, 0);
    child.name = "new";
    child.start = 3000;
    child.user = 1;
    make(&child);
    tick(set, 1);
    tick(set, 2);
    int before = place_of("cpu.user", TARE__SUBJECT_PROCESS, 1001, 2000);
    int after = place_of("cpu.user", TARE__SUBJECT_PROCESS, 1001, 3000);
    assert_string_equal(told[before].absent, "ended");
    assert_true(told[after].has);
    assert_int_equal(told[after].value, ns(1));
    TREE("cpu.user", ns(171));
    tare__sample_close(set);
}

static void test_a_zombie(void **state)
{
    (void)state;
    made_up p = target;
    make(&p);
    tare__sample_set *set = open_set();
    tick(set, 0);
    p.state = 'Z';
    p.user = 150;
    make(&p);
    tick(set, 1);
    TREE("cpu.user", ns(150)); /* its last word */
    TREE("processes", 0);
    int at = place_of("cpu.user", TARE__SUBJECT_PROCESS, TARGET, 0);
    assert_int_equal(told[at].value, ns(150));
    ABSENT(TARGET, "cpu.user", "ended");
    ABSENT(TARGET, "memory.rss", "ended");
    ABSENT(TARGET, "memory.rss_peak", "ended");
    assert_int_equal(told[place_of("memory.rss", TARE__SUBJECT_TREE, 0, 0)].puts, 1); /* not 0 bytes: nothing */
    tick(set, 2);
    assert_int_equal(told[at].puts, 2); /* said once */
    end(TARGET);
    tick(set, 3);
    TREE("cpu.user", ns(150));
    tare__sample_close(set);
}

static void test_the_first_thread_ends_before_the_others(void **state)
{
    (void)state;
    made_up p = target;
    p.state = 'Z';
    p.threads = 2;
    make(&p);
    write_thread(&p, 1002, 'R', 30);
    tare__sample_set *set = open_set();
    tick(set, 0);
    assert_true(listed(set, TARGET, 1000)->alive);
    PROCESS(TARGET, "threads.running", 1);
    tare__sample_close(set);
}

static void test_an_orphan_stays(void **state)
{
    (void)state;
    made_up p = target, child = {.pid = 1001, .parent = TARGET, .name = "c", .start = 2000, .children = "1002 "};
    made_up below = {.pid = 1002, .parent = 1001, .name = "d", .start = 2001, .user = 3};
    p.children = "1001 ";
    make(&p);
    make(&child);
    make(&below);
    tare__sample_set *set = open_set();
    tick(set, 0);
    TREE("processes", 3);
    end(1001);
    below.parent = 1; /* init has it now */
    below.user = 8;
    make(&below);
    p.children = "";
    make(&p);
    tick(set, 1);
    TREE("processes", 2);
    PROCESS(1002, "cpu.user", ns(8));
    tare__sample_close(set);
}

static void test_an_orphan_never_seen_before(void **state)
{
    (void)state;
    made_up p = target, orphan = {.pid = 1005, .parent = 1, .name = "o", .start = 2000};
    made_up older = {.pid = 800, .parent = 1, .name = "older", .start = 10};
    made_up stranger = {.pid = 1006, .parent = 1, .name = "s", .start = 2000, .session = 77};
    p.parent = 50; /* not launched by us: attached */
    make(&p);
    make(&older);
    tare__sample_set *set = open_set();
    tick(set, 0);
    TREE("processes", 1);
    make(&orphan);
    make(&stranger);
    tick(set, 11);
    TREE("processes", 2);
    assert_non_null(listed(set, 1005, 2000));
    assert_null(listed(set, 800, 10));
    assert_null(listed(set, 1006, 2000));
    assert_null(listed(set, SELF, 5));
    tare__sample_close(set);
}

static void test_an_orphan_becomes_ours(void **state)
{
    (void)state;
    make(&target);
    made_up self = {.pid = SELF, .parent = 50, .name = "tare", .start = 5, .rss_kb = 800};
    self.children = "1000 700 1007 ";
    made_up orphan = {.pid = 1007, .parent = SELF, .name = "o", .start = 2000};
    made_up older = {.pid = 700, .parent = SELF, .name = "a child before", .start = 4};
    make(&self);
    make(&orphan);
    make(&older);
    tare__sample_set *set = open_set();
    tick(set, 0);
    TREE("processes", 2);
    assert_non_null(listed(set, 1007, 2000));
    assert_null(listed(set, 700, 4));
    tare__sample_close(set);
}

static void test_a_kernel_without_children_files(void **state)
{
    (void)state;
    made_up child = {.pid = 1001, .parent = TARGET, .name = "c", .start = 2000};
    made_up below = {.pid = 1002, .parent = 1001, .name = "d", .start = 2001};
    make(&target);
    make(&child);
    remove_all("/proc/1000/task/1000/children");
    remove_all("/proc/1001/task/1001/children");
    tare__sample_set *set = open_set();
    tick(set, 0);
    assert_non_null(listed(set, 1001, 2000));
    make(&below);
    remove_all("/proc/1002/task/1002/children");
    tick(set, 11);
    TREE("processes", 3);
    tare__sample_close(set);
}

static void test_children_of_another_thread(void **state)
{
    (void)state;
    made_up p = target, child = {.pid = 1010, .parent = TARGET, .name = "c", .start = 2000};
    p.threads = 2;
    make(&p);
    write_thread(&p, 1002, 'S', 5);
    write_file("1010 ", "/proc/1000/task/1002/children");
    make(&child);
    tare__sample_set *set = open_set();
    tick(set, 0);
    TREE("processes", 2);
    tare__sample_close(set);
}

static void test_a_loop_and_a_crowd(void **state)
{
    (void)state;
    char children[8192] = "";
    made_up p = target;
    for (int i = 0; i < 300; i++) {
        /* each claims the target, and itself, as its child */
        char own[64];
        snprintf(own, sizeof own, "%d %d ", TARGET, 2000 + i);
        made_up child = {.pid = 2000 + i, .parent = TARGET, .name = "worker", .start = 2000, .user = 1, .rss_kb = 10,
                         .children = own};
        make(&child);
        sprintf(children + strlen(children), "%d ", 2000 + i);
    }
    p.children = children;
    make(&p);
    tare__sample_set *set = open_set();
    tick(set, 0);
    tick(set, 1);
    TREE("processes", 301);
    TREE("cpu.user", ns(400));
    for (int i = 0; i < 300; i++)
        end(2000 + i);
    p.waited = 300;
    p.children = "";
    make(&p);
    tick(set, 2);
    TREE("processes", 1);
    TREE("cpu.user", ns(400));
    tare__sample_close(set);
}

/* ---- what may not be read ---------------------------------------------------------------------------------- */

static void test_no_permission(void **state)
{
    (void)state;
    made_up p = target, child = {.pid = 1001, .parent = TARGET, .name = "sudo", .start = 2000, .user = 4};
    p.children = "1001 ";
    make(&p);
    make(&child);
    /* A link to itself cannot be opened by anybody, not even root. */
    remove_all("/proc/1001/io");
    char path[128];
    snprintf(path, sizeof path, "%s/proc/1001/io", root);
    assert_int_equal(symlink(path, path), 0);
    tare__sample_set *set = open_set();
    tick(set, 0);
    tick(set, 1);
    PROCESS(1001, "cpu.user", ns(4));
    ABSENT(1001, "io.read", "/proc/1001/io");
    PROCESS(TARGET, "io.read", 500);
    absent_is("io.read", TARE__SUBJECT_TREE, 0, "unavailable for sudo: /proc/1001/io", __LINE__);
    TREE("cpu.user", ns(104));
    tare__sample_close(set);
    unlink(path);
}

static void test_no_processes(void **state)
{
    (void)state;
    tare__sample_set *set = open_set();
    tick(set, 0);
    absent_is("cpu.user", TARE__SUBJECT_TREE, 0, "ended before the first sample", __LINE__);
    tick(set, 1);
    tare__sample_close(set);
}

/* ---- threads ----------------------------------------------------------------------------------------------- */

static void test_threads(void **state)
{
    (void)state;
    made_up p = target, named = target;
    p.threads = 3;
    named.threads = 3;
    named.name = "worker";
    make(&p);
    write_thread(&named, 1002, 'R', 30);
    write_thread(&named, 1003, 'D', 40);
    write_file("voluntary_ctxt_switches: 100\nnonvoluntary_ctxt_switches: 10\n", "/proc/1000/task/1002/status");
    write_file("voluntary_ctxt_switches: 200\nnonvoluntary_ctxt_switches: 20\n", "/proc/1000/task/1003/status");
    tare__sample_set *set = open_set();
    tick(set, 0);
    PROCESS(TARGET, "threads", 3);
    PROCESS(TARGET, "threads.running", 1);
    PROCESS(TARGET, "threads.disk_wait", 1);
    PROCESS(TARGET, "switches.voluntary", 300);
    tick(set, 1);
    THREAD(1002, "cpu.user", ns(30));
    THREAD(1003, "cpu.user", ns(40));
    THREAD(1003, "cpu.system", ns(20));
    assert_string_equal(told[place_of("cpu.user", TARE__SUBJECT_THREAD, 1002, TARGET)].label, "worker");
    remove_all("/proc/1000/task/1002");
    p.threads = 2;
    make(&p);
    tick(set, 2);
    absent_is("cpu.user", TARE__SUBJECT_THREAD, 1002, "ended", __LINE__);
    PROCESS(TARGET, "threads.running", 0);
    tick(set, 12);
    PROCESS(TARGET, "switches.voluntary", 300); /* those of the one that ended are kept */
    tare__sample_close(set);
}

/* ---- descriptors run out ----------------------------------------------------------------------------------- */

static struct rlimit usual_files;

static void leave_files(rlim_t n)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual_files), 0);
    int next = dup(2);
    assert_true(next >= 0);
    close(next);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next + n, usual_files.rlim_max}), 0);
}

static int restore_files(void **state)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual_files), 0);
    return remove_root(state);
}

static int make_root_and_know_files(void **state)
{
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual_files), 0);
    return make_root(state);
}

static bool has_value(const char *metric, uint32_t subject, uint64_t key)
{
    int at = place_of(metric, subject, key, 0);
    return at >= 0 && told[at].has;
}

static void test_threads_that_cannot_be_read_now(void **state)
{
    (void)state;
    made_up p = target;
    make(&p);
    write_file("voluntary_ctxt_switches: 5\nnonvoluntary_ctxt_switches: 6\n", "/proc/1000/task/1000/status");
    tare__sample_set *set = open_set();
    tick(set, 0);
    PROCESS(TARGET, "switches.forced", 6); /* of its only thread */
    p.threads = 2;
    make(&p);
    write_thread(&p, 1002, 'R', 30);
    write_file("voluntary_ctxt_switches: 100\nnonvoluntary_ctxt_switches: 10\n", "/proc/1000/task/1002/status");
    leave_files(0);
    tick(set, 12);
    assert_false(has_value("switches.forced", TARE__SUBJECT_PROCESS, TARGET));
    assert_false(has_value("threads.running", TARE__SUBJECT_PROCESS, TARGET));
    PROCESS(TARGET, "cpu.user", ns(100)); /* on a descriptor that is kept */
    setrlimit(RLIMIT_NOFILE, &usual_files);
    tick(set, 24);
    PROCESS(TARGET, "switches.forced", 16);
    PROCESS(TARGET, "threads.running", 1);
    for (uint64_t i = 36; i < 60; i += 12) { /* one that cannot be read has not ended, and is not counted twice */
        leave_files(0);
        tick(set, i);
        setrlimit(RLIMIT_NOFILE, &usual_files);
    }
    tick(set, 60);
    PROCESS(TARGET, "switches.forced", 16);
    tare__sample_close(set);
}

static void test_a_process_that_cannot_be_read_now(void **state)
{
    (void)state;
    made_up p = target, child = {.pid = 1001, .parent = TARGET, .name = "worker", .start = 2000, .user = 70};
    p.children = "1001 ";
    make(&p);
    make(&child);
    leave_files(4); /* none of which is kept */
    tare__sample_set *set = open_set();
    tick(set, 0);
    tick(set, 1);
    PROCESS(TARGET, "cpu.user", ns(100));
    PROCESS(1001, "cpu.user", ns(70));
    leave_files(0);
    tick(set, 2);
    assert_false(has_value("cpu.user", TARE__SUBJECT_PROCESS, TARGET));
    assert_false(has_value("cpu.user", TARE__SUBJECT_TREE, 0));
    assert_true(listed(set, TARGET, 1000)->alive && listed(set, 1001, 2000)->alive);
    leave_files(4);
    p.children = "";
    p.waited = 70;
    make(&p);
    end(1001);
    tick(set, 3);
    PROCESS(TARGET, "cpu.user", ns(100));
    TREE("cpu.user", ns(170));
    TREE("memory.rss", 4000 << 10);
    ABSENT(1001, "cpu.user", "ended");
    tare__sample_close(set);
}

/* Those that Tare runs inside the program are none of the program's. */
static void test_own_threads(void **state)
{
    (void)state;
    made_up p = target, own = target;
    p.threads = 3;
    own.threads = 3;
    own.name = "tare-lines";
    make(&p);
    write_thread(&own, 1002, 'R', 30);
    write_thread(&p, 1003, 'R', 30);
    tare__sample_set *set = open_set();
    tick(set, 0);
    PROCESS(TARGET, "threads", 2);
    PROCESS(TARGET, "threads.running", 1);
    tick(set, 1);
    PROCESS(TARGET, "threads", 2);
    THREAD(1002, "cpu.user", ns(30)); /* its time is told all the same */
    tare__sample_close(set);
}

static void test_threads_wait_first_when_it_gets_dear(void **state)
{
    (void)state;
    made_up p = target;
    p.threads = 2;
    make(&p);
    write_thread(&p, 1002, 'R', 30);
    tare__sample_set *set = open_set();
    cost_step_ns = 400000; /* each look at the clock: the threads alone take more than their share */
    unsigned samples = 0;
    for (uint64_t i = 0; i < 60; i++)
        tick(set, i);
    int thread = place_of("cpu.user", TARE__SUBJECT_THREAD, 1002, TARGET);
    samples = told[thread].puts;
    assert_in_range(samples, 10, 40);
    assert_int_equal(told[place_of("cpu.user", TARE__SUBJECT_PROCESS, TARGET, 0)].puts, 60);
    tare__sample_close(set);
}

/* ---- doctor ------------------------------------------------------------------------------------------------ */
static unsigned answers[3];
static char fails[512];

static void hear_check(void *context, const tare__sample_check *check)
{
    (void)context;
    assert_string_equal(check->sampler, "process");
    assert_true(check->detail[0] && check->detail[strlen(check->detail) - 1] != '.');
    answers[check->state]++;
    if (check->state != TARE__SAMPLE_WORKS) {
        strncat(fails, check->source, sizeof fails - strlen(fails) - 1);
        strncat(fails, ";", sizeof fails - strlen(fails) - 1);
    }
}

static void test_doctor(void **state)
{
    (void)state;
    tare__sampler_process.doctor("", hear_check, NULL);
    assert_true(answers[TARE__SAMPLE_WORKS] >= 3); /* this very machine */
    memset(answers, 0, sizeof answers);
    fails[0] = '\0';
    write_file("1 (x) S\n", "/proc/self/stat");
    write_file("x\n", "/proc/self/status");
    tare__sampler_process.doctor(root, hear_check, NULL);
    assert_null(strstr(fails, "/proc/PID/stat;"));
    assert_non_null(strstr(fails, "/proc/PID/io;"));
    assert_non_null(strstr(fails, "/proc/PID/smaps_rollup;"));
    assert_non_null(strstr(fails, "children;"));
    assert_non_null(strstr(fails, "processes of other users;"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_process),
        TEST(test_expensive_values_have_longer_intervals),
        TEST(test_the_peak_outlives_another_program),
        TEST(test_huge_counters),
        TEST(test_children_come_and_go),
        TEST(test_nobody_waits_for_a_child),
        TEST(test_a_waited_for_child_is_not_counted_twice),
        TEST(test_bytes_of_children_are_not_the_parents),
        TEST(test_a_pid_is_used_again),
        TEST(test_a_zombie),
        TEST(test_the_first_thread_ends_before_the_others),
        TEST(test_an_orphan_stays),
        TEST(test_an_orphan_never_seen_before),
        TEST(test_an_orphan_becomes_ours),
        TEST(test_a_kernel_without_children_files),
        TEST(test_children_of_another_thread),
        TEST(test_a_loop_and_a_crowd),
        TEST(test_no_permission),
        TEST(test_no_processes),
        TEST(test_threads), TEST(test_own_threads),
        TEST(test_threads_wait_first_when_it_gets_dear),
        cmocka_unit_test_setup_teardown(test_threads_that_cannot_be_read_now, make_root_and_know_files, restore_files),
        cmocka_unit_test_setup_teardown(test_a_process_that_cannot_be_read_now, make_root_and_know_files,
                                        restore_files),
        TEST(test_doctor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
