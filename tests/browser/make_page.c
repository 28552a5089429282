/* make_page: writes pages of tables made by hand, for what no test machine can record: GPUs, every finding, names
 * that attack, a hundred thousand boxes; and exports of sampled stacks.
 * usage: make_page rich|hostile|large|bare > page.html
 *        make_page folded|speedscope|pprof|flamegraph [hostile] > FILE
 * One thread. Must not know how pages are read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/emit_sample.h"
#include "../unit/emit_stack_tree.h"
#include "emit/run/html.h"

#define BOXES_MOST 120000
#define POINTS     600

static tare__box all_boxes[BOXES_MOST];
static tare__lane lanes[64];
static size_t n_boxes;

static int put(void *context, const void *data, size_t bytes)
{
    return fwrite(data, 1, bytes, context) == bytes ? 0 : -1;
}

/* The same numbers every time. */
static double noise(void)
{
    static uint32_t state = 12345;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) / (double)(1u << 24);
}

/* ---- timeline ----------------------------------------------------------------------------------- */
static const char *const span_names[] = {"train",     "epoch",  "step",         "load",
                                         "forward",   "matmul", "attention",    "backward",
                                         "optimizer", "log",    "decode image", "kernel gemm"};
enum { TRAIN, EPOCH, STEP, LOAD, FORWARD, MATMUL, ATTENTION, BACKWARD, OPTIMIZER, LOG, DECODE, GEMM };

typedef struct line {
    tare__box boxes[BOXES_MOST / 8];
    size_t n;
} line;
static line levels[8];

static void add_box(unsigned lane, unsigned depth, uint32_t name, double at, double lasts, uint64_t calls)
{
    line *to = &levels[depth];
    if (to->n == TARE__COUNT_OF(to->boxes))
        return;
    to->boxes[to->n++] = (tare__box){.lane = lane,
                                     .depth = depth,
                                     .name = name,
                                     .calls = calls,
                                     .at_ns = at,
                                     .lasts_ns = lasts,
                                     .busy_ns = calls > 1 ? lasts * 0.6 : lasts,
                                     .mixed = calls > 1 && name == LOG};
}

static void end_lane(unsigned lane, const char *name, uint64_t pid, uint32_t track_kind)
{
    uint64_t spans = 0;
    unsigned depth = 0;
    for (unsigned i = 0; i < TARE__COUNT_OF(levels); i++) {
        memcpy(all_boxes + n_boxes, levels[i].boxes, levels[i].n * sizeof *levels[i].boxes);
        n_boxes += levels[i].n;
        for (size_t k = 0; k < levels[i].n; k++)
            spans += levels[i].boxes[k].calls;
        depth = levels[i].n ? i + 1 : depth;
        levels[i].n = 0;
    }
    lanes[lane] = (tare__lane){.name = name,
                               .process = "train",
                               .pid = (int64_t)pid,
                               .tid = (int64_t)pid + lane,
                               .track_kind = track_kind,
                               .depth = depth,
                               .spans = spans};
}

static double add_step(double at, double each, uint64_t merged)
{
    double load = each * (0.10 + 0.16 * noise()), forward = each * (0.36 + 0.05 * noise()), t = at;
    add_box(0, 3, LOAD, t, load, 1);
    t += load;
    add_box(0, 3, FORWARD, t, forward, 1);
    add_box(0, 4, MATMUL, t + forward * 0.02, forward * 0.5, merged);
    add_box(0, 4, ATTENTION, t + forward * 0.55, forward * 0.4, merged);
    t += forward;
    double backward = each * (0.26 + 0.04 * noise());
    add_box(0, 3, BACKWARD, t, backward, 1);
    t += backward;
    add_box(0, 3, OPTIMIZER, t, each * 0.05, 1);
    add_box(0, 3, LOG, t + each * 0.052, each * 0.01, merged);
    t += each * 0.065;
    add_box(0, 2, STEP, at, t - at, 1);
    return t;
}

static void add_training(unsigned steps, double total, uint64_t merged)
{
    double at = 0.01 * total, each = 0.98 * total / steps / 0.93;
    add_box(0, 0, TRAIN, 0.005 * total, 0.99 * total, 1);
    for (int epoch = 0; epoch < 3; epoch++) {
        double from = at;
        for (unsigned i = 0; i < steps / 3 && at < total * 0.985; i++)
            at = add_step(at, each * (i == 0 && epoch == 0 ? 2.6 : 0.9 + 0.2 * noise()), merged);
        add_box(0, 1, EPOCH, from, at - from, 1);
    }
}

static void add_workers(unsigned from, unsigned n, double total, unsigned pieces, uint64_t merged)
{
    static const char *const names[] = {"train (4120) · loader 0", "train (4120) · loader 1",
                                        "train (4120) · loader 2", "train (4120) · loader 3"};
    for (unsigned lane = from; lane < from + n; lane++) {
        double each = total / pieces;
        for (unsigned i = 0; i < pieces; i++)
            add_box(lane, 0, DECODE, i * each + each * 0.1 * noise(), each * (0.4 + 0.4 * noise()), merged);
        end_lane(lane, names[lane - from], 4120, 0);
    }
}

static void add_stream(unsigned lane, double total, unsigned pieces, uint64_t merged)
{
    double each = total / pieces;
    for (unsigned i = 0; i < pieces; i++)
        add_box(lane, 0, GEMM, i * each, each * (0.3 + 0.2 * noise()), merged);
    end_lane(lane, "cuda:0 stream 7", 4120, TARE_TRACK_GPU);
}

/* ---- what was sampled --------------------------------------------------------------------------- */
typedef double shape(double part);
static double shape_cpu(double part)
{
    return 1.7 + 0.8 * sin(part * 40) + 0.6 * noise();
}
static double shape_system(double part)
{
    return 0.2 + 0.15 * noise() + 0.05 * sin(part * 9);
}
static double shape_leak(double part)
{
    return (0.7 + 2.6 * part + 0.05 * noise()) * 1073741824;
}
static double shape_gpu(double part)
{
    return 0.5 + 0.2 * sin(part * 60) + 0.2 * noise();
}
static double shape_bytes(double part)
{
    return part < 0.2 ? 240e6 * noise() : 9e6 * noise();
}
static double shape_watts(double part)
{
    return 180 + 60 * sin(part * 30) + 20 * noise();
}
static double shape_heat(double part)
{
    return 45 + 30 * (1 - exp(-part * 4)) + noise();
}

static tare__metric_row rows[64];
static tare__metric_point points[64][POINTS];
static size_t n_rows;

static void add_metric(const char *metric, uint32_t known, uint32_t subject, uint64_t key, const char *label,
                       tare__metric_unit unit, double total, shape *shape)
{
    tare__metric_row *row = &rows[n_rows];
    tare__metric_point *out = points[n_rows++];
    *row = (tare__metric_row){.metric = metric,
                              .subject = subject,
                              .key = key,
                              .label = label,
                              .known = known,
                              .kind = TARE__METRIC_GAUGE,
                              .unit = unit,
                              .total_unit = unit,
                              .n = POINTS,
                              .min = INFINITY,
                              .max = -INFINITY,
                              .total = NAN,
                              .points = out,
                              .n_points = POINTS};
    for (int i = 0; i < POINTS; i++) {
        double value = shape(i / (double)POINTS);
        out[i] = (tare__metric_point){i * total / POINTS, total / POINTS, value * 0.97, value, value * 1.02};
        row->mean += value / POINTS;
        row->min = fmin(row->min, out[i].min);
        if (out[i].max > row->max) {
            row->max = out[i].max;
            row->max_at_ns = out[i].at_ns + out[i].lasts_ns / 2;
        }
    }
    row->first = out[0].mean;
    row->last = out[POINTS - 1].mean;
    row->to_ns = total;
}

static void add_absent(const char *metric, uint32_t subject, const char *label, const char *why)
{
    rows[n_rows++] = (tare__metric_row){.metric = metric,
                                        .subject = subject,
                                        .label = label,
                                        .absent = why,
                                        .known = TARE__METRIC_COUNT,
                                        .min = NAN,
                                        .mean = NAN,
                                        .max = NAN,
                                        .max_at_ns = NAN,
                                        .first = NAN,
                                        .last = NAN,
                                        .total = NAN};
}

/* Busy for half of the run. */
static double shape_core(double part)
{
    return part < 0.5 ? 0.55 + 0.3 * noise() : 0.02;
}

static void add_strips(double total)
{
    for (uint64_t cpu = 0; cpu < 8; cpu++) {
        add_metric("cpu.system", TARE__M_CPU_SYSTEM, TARE__SUBJECT_CPU, cpu, "", TARE__SHOW_CORES, total,
                   shape_system);
        add_metric("cpu.user", TARE__M_CPU_USER, TARE__SUBJECT_CPU, cpu, "", TARE__SHOW_CORES, total,
                   cpu < 3 ? shape_core : shape_system);
    }
    add_metric("cpu.user", TARE__M_CPU_USER, TARE__SUBJECT_THREAD, 4121, "loader 0", TARE__SHOW_CORES, total,
               shape_system);
    rows[n_rows - 1].total = rows[n_rows - 1].mean * total / 1e9;
    add_metric("cpu.user", TARE__M_CPU_USER, TARE__SUBJECT_THREAD, 4120, "train", TARE__SHOW_CORES, total,
               shape_core);
    rows[n_rows - 1].total = rows[n_rows - 1].mean * total / 1e9;
}

static void add_metrics(double total)
{
    add_metric("cpu.user", TARE__M_CPU_USER, TARE__SUBJECT_TREE, 0, "", TARE__SHOW_CORES, total, shape_cpu);
    add_metric("cpu.system", TARE__M_CPU_SYSTEM, TARE__SUBJECT_TREE, 0, "", TARE__SHOW_CORES, total,
               shape_system);
    add_metric("memory.rss", TARE__M_RSS, TARE__SUBJECT_TREE, 0, "", TARE__SHOW_BYTES, total, shape_leak);
    add_metric("disk.read", TARE__M_DISK_READ, TARE__SUBJECT_TREE, 0, "", TARE__SHOW_BYTES_PER_S, total,
               shape_bytes);
    add_metric("cpu.user", TARE__M_CPU_USER, TARE__SUBJECT_SYSTEM, 0, "", TARE__SHOW_CORES, total, shape_cpu);
    add_metric("cpu.iowait", TARE__M_CPU_IOWAIT, TARE__SUBJECT_SYSTEM, 0, "", TARE__SHOW_CORES, total,
               shape_system);
    add_metric("net.received", TARE__M_NET_RECEIVED, TARE__SUBJECT_NETWORK, 0, "eth0", TARE__SHOW_BYTES_PER_S,
               total, shape_bytes);
    for (uint64_t gpu = 0; gpu < 2; gpu++) {
        add_metric("gpu.busy", TARE__M_GPU_BUSY, TARE__SUBJECT_GPU, gpu, "NVIDIA H100", TARE__SHOW_SHARE,
                   total, shape_gpu);
        add_metric("memory.used", TARE__M_MEMORY_USED, TARE__SUBJECT_GPU, gpu, "NVIDIA H100",
                   TARE__SHOW_BYTES, total, shape_leak);
        add_metric("power", TARE__M_POWER, TARE__SUBJECT_GPU, gpu, "NVIDIA H100", TARE__SHOW_WATTS, total,
                   shape_watts);
    }
    add_metric("temperature", TARE__M_TEMPERATURE, TARE__SUBJECT_SENSOR, 0, "coretemp Package id 0",
               TARE__SHOW_CELSIUS, total, shape_heat);
    add_strips(total);
    add_absent("energy", TARE__SUBJECT_SENSOR, "RAPL package 0",
               "only root may read RAPL; run as root or see doctor");
    add_absent("pressure.cpu", TARE__SUBJECT_SYSTEM, "", "the kernel runs without PSI: boot with psi=1");
}

static const tare__evidence growth_figures[] = {{"slope", 1.1e6, TARE__SHOW_BYTES_PER_S},
                                              {"grown", 2.6 * 1073741824, TARE__SHOW_BYTES},
                                              {"to OOM", 5210, TARE__SHOW_SECONDS}};
static const tare__evidence load_figures[] = {{"share", 0.31, TARE__SHOW_SHARE},
                                            {"GPU busy", 0.6, TARE__SHOW_SHARE}};
static const tare__finding some_findings[] = {
    {.id = "memory-growth",
     .severity = TARE__CRITICAL,
     .title = "Memory grows by 1.05 MiB a second and reaches the limit in about 1h 27m",
     .evidence =
         "Resident memory of train (4120) rose from 0.7 GiB to 3.3 GiB in 42 s, in 96 % of the samples "
         "(95 % interval of the slope: 1.01 to 1.09 MiB/s). It may use 8 GiB.",
     .advice =
         "Look for lists that keep tensors with their graph (append loss.item(), not loss), caches without a "
         "bound, and data loader workers that copy the data set.",
     .gain = NAN,
     .gain_how = "it saves memory, not time",
     .from_ns = 4e9,
     .to_ns = 41e9,
     .figures = growth_figures,
     .n_figures = 3},
    {.id = "data-loading",
     .severity = TARE__WARNING,
     .title = "Data loading takes 31 % of a step",
     .evidence =
         "600 of 600 steps begin with load: 18.4 ms of 59.1 ms at the median. The GPU is busy 60 % of the "
         "time and idle in these gaps.",
     .advice = "Use more data loader workers (num_workers is 4, the job may use 8 cores), pin memory, and "
               "prefetch.",
     .gain = 0.27,
     .gain_how = "if loading ran beside the step and only its last 4 % were waited for",
     .from_ns = 0.4e9,
     .to_ns = 41.6e9,
     .figures = load_figures,
     .n_figures = 2},
    {.id = "slow-first-step",
     .severity = TARE__INFO,
     .title = "The first step takes 2.6 times the median",
     .evidence = "154 ms against 59.1 ms: kernels are compiled and caches are filled then.",
     .advice = "Nothing to do in a long run; leave it out of measurements.",
     .gain = NAN,
     .gain_how = "it happens once",
     .from_ns = NAN,
     .to_ns = NAN},
};

/* Of the hottest lines, below. */
static const char *const code[] = {"output = model(images.to(device))",
                                   "image = image.convert(\"RGB\")",
                                   "loss.backward()  # \"</script><img src=x onerror=alert(1)>\"",
                                   "image = Image.open(path).resize((224, 224))",
                                   "for images, labels in loader:",
                                   NULL};

/* ---- pages -------------------------------------------------------------------------------------- */
static int write_page(const tare__analysis *analysis, const tare__timeline *timeline)
{
    const tare__emit_sink sink = {.write = put, .context = stdout};
    const tare__emit_options options = {.source = true};
    const tare__emit_input input = {.analysis = analysis, .timeline = timeline, .sources = code,
                                    .n_sources = analysis->n_lines ? TARE__COUNT_OF(code) : 0};
    tare__error error = {""};
    return tare__emit_html.emit(&input, &options, &sink, &error) != 0;
}

/* 600 steps, five a bar; the first ones are slow, and loading takes longer and longer. */
static void add_course(tare__step_row *steps, double total)
{
    enum { BARS = 120, EACH_BAR = 5, PARTS = 4 };
    static const char *const parts[PARTS] = {"forward", "backward", "load", "optimizer"};
    static tare__course_bin bins[BARS];
    static double times[BARS][PARTS];
    for (int i = 0; i < BARS; i++) {
        double step = steps->total_ns / 600 * (i == 0 ? 5 : 0.9 + 0.1 * noise());
        double each[PARTS] = {0.45, 0.27, 0.08 + 0.1 * i / BARS, 0.06};
        bins[i] = (tare__course_bin){.steps = EACH_BAR,
                                     .from_ns = total * (0.01 + 0.98 * i / BARS),
                                     .to_ns = total * (0.01 + 0.98 * (i + 1) / BARS),
                                     .total_ns = step * EACH_BAR,
                                     .parts_ns = times[i]};
        for (int part = 0; part < PARTS; part++)
            times[i][part] = each[part] * step * EACH_BAR;
    }
    steps->course = (tare__step_course){.parts = parts, .n_parts = PARTS, .bins = bins, .n_bins = BARS};
}

static tare__analysis stretched(double factor)
{
    static tare__span_row spans[TARE__COUNT_OF(train_spans)];
    static tare__step_row steps[1];
    tare__analysis made = train;
    memcpy(spans, train_spans, sizeof spans);
    for (size_t i = 0; i < TARE__COUNT_OF(spans); i++) {
        spans[i].total_ns *= factor;
        spans[i].self_ns *= factor;
        spans[i].each.p50_ns *= factor;
        spans[i].each.p95_ns *= factor;
        spans[i].each.p99_ns *= factor;
    }
    steps[0] = train_steps[0];
    tare__step_bins *bins = &steps[0].bins;
    *bins = (tare__step_bins){.from_ns = 3.5 * MS, .width_ns = 0.04 * MS, .over = 4};
    for (int i = 0; i < TARE__STEP_BINS; i++)
        bins->counts[i] =
            (uint64_t)(90 * exp(-(i - 13) * (i - 13) / 40.0) + 14 * exp(-(i - 24) * (i - 24) / 90.0));
    add_course(&steps[0], made.run.elapsed_ns * factor);
    made.spans = spans;
    made.steps = steps;
    made.run.elapsed_ns *= factor;
    return made;
}

static const tare__usage_table rich_usage = {
    .cpu_seconds = 96.2,
    .user_seconds = 84.1,
    .system_seconds = 12.1,
    .cores_mean = 2.29,
    .cores_max = 3.4,
    .cores_allowed = 8,
    .rss_peak_bytes = 3.31 * 1073741824,
    .rss_peak_process = "train (4120)",
    .rss_peak_at_ns = 41e9,
    .tree_rss_max_bytes = 4.02 * 1073741824,
    .memory_allowed_bytes = 8.0 * 1073741824,
    .io_read_bytes = 9.1e9,
    .io_write_bytes = 2.2e7,
    .disk_read_bytes = 1.4e9,
    .disk_write_bytes = 2.1e7,
    .net_received_bytes = 3.1e6,
    .net_sent_bytes = 8.8e5,
    .faults_major = 12,
    .switches_voluntary = 91022,
    .switches_forced = 512,
    .threads_max = 14,
    .processes_max = 5,
    .energy_joules = NAN,
    .carbon_grams = NAN,
    .carbon_intensity = 475,
    .gpu_busy_mean = 0.6,
    .gpu_memory_max_bytes = 3.4 * 1073741824,
    .absent_energy = "only root may read RAPL",
};

static stack_sample stacks;
#define TIMES_OF(ns, where) {{[TARE__STATE_RUNNING] = (ns)*0.9, [where] = (ns)*0.1}}
#define LINE(in, at, what, of_all, ns, where, callee, part)                                                           \
    {.file = in, .line = at, .function = what, .package = MINE, .own = true, .samples = (uint64_t)((ns) / 1e7),       \
     .self_ns = (ns)*0.02, .own_ns = ns, .total_ns = ns, .of = TIMES_OF(ns, where), .main = TIMES_OF(ns, where),      \
     .main_ns = ns, .main_share = of_all, .active_ns = ns, .share = of_all, .inner = callee,                          \
     .inner_ns = (callee) ? (ns) * (part) : NAN}
static const tare__line_row rich_lines[] = {
    LINE(HOME "train.py", 42, "train_epoch", 0.212, 3.525 * S, TARE__STATE_GIL, "Conv2d.forward", 0.8),
    LINE(HOME "data.py", 29, "Photos.__getitem__", 0.196, 3.221 * S, TARE__STATE_RUNNABLE, "ImageFile.load", 0.8),
    LINE(HOME "train.py", 44, "train_epoch", 0.168, 2.785 * S, TARE__STATE_GIL,
         "void at::native::(anonymous namespace)::add<float, 4>(at::Tensor const&, void (*)(int)) const", 0.8),
    LINE(HOME "data.py", 27, "Photos.__getitem__", 0.153, 2.527 * S, TARE__STATE_DISK, "Image.resize", 0.3),
    LINE(HOME "train.py", 38, "train_epoch", 0.1, 1.645 * S, TARE__STATE_PIPE, "Connection._poll", 0.8),
    LINE(HOME "storage.py", 31, "upload", 0.032, 0.536 * S, TARE__STATE_NETWORK, NULL, 0),
};

static int write_rich(unsigned steps, uint64_t merged)
{
    double total = 42 * S;
    tare__analysis analysis = stretched(total / train.run.elapsed_ns);
    static tare__metric_point loss[POINTS];
    for (int i = 0; i < POINTS; i++) {
        double value = 2.4 * exp(-i / 180.0) + 0.1 + 0.1 * noise();
        loss[i] = (tare__metric_point){i * total / POINTS, total / POINTS, value * 0.98, value, value * 1.02};
    }
    const tare__counter_line counters[] = {{"loss", loss, POINTS}};
    add_training(steps, total, merged);
    end_lane(0, "train (4120) · MainThread", 4120, 0);
    add_workers(1, 4, total, steps, merged);
    add_stream(5, total, steps * 2, merged);
    add_metrics(total);
    analysis.metrics = rows;
    analysis.n_metrics = n_rows;
    analysis.findings = some_findings;
    analysis.n_findings = TARE__COUNT_OF(some_findings);
    analysis.usage = rich_usage;
    analysis.run.kernel = "Linux 6.8.0-45-generic";
    analysis.run.system = "Ubuntu 24.04.1 LTS";
    analysis.run.revision = "3f9d2c1 (main, with changes)";
    analysis.run.gpus = "2 × NVIDIA H100 80GB HBM3, driver 550.54.15";
    analysis.run.cpu_model = "AMD EPYC 9354 32-Core Processor";
    analysis.run.cpus = 64;
    analysis.run.memory_bytes = 512.0 * 1073741824;
    add_stacks(&analysis, &stacks, stacks_made, TARE__COUNT_OF(stacks_made));
    analysis.lines = rich_lines;
    analysis.n_lines = TARE__COUNT_OF(rich_lines);
    analysis.own.sampler_cpu_ns = 120 * MS;
    analysis.own.interval_ns = 100 * MS;
    analysis.own.longest_interval_ns = 100 * MS;
    tare__timeline timeline = {.lanes = lanes,
                               .n_lanes = 6,
                               .boxes = all_boxes,
                               .n_boxes = n_boxes,
                               .names = span_names,
                               .n_names = TARE__COUNT_OF(span_names),
                               .counters = counters,
                               .n_counters = 1,
                               .resolution_ns = 1e5};
    for (size_t i = 0; i < n_boxes; i++) {
        timeline.spans += all_boxes[i].calls;
        timeline.merged_spans += all_boxes[i].calls > 1 ? all_boxes[i].calls : 0;
    }
    return write_page(&analysis, &timeline);
}

#define ATTACK "</script><img src=x onerror=alert(1)>"

/* The same text wherever text can be. */
static int write_hostile(void)
{
    static const char *const names[] = {ATTACK, "<!--<script>", "\xe2\x80\xa8\xe2\x80\xa9&amp;\"'\\"};
    static const char *const notes[] = {ATTACK};
    static const char *const arguments[] = {ATTACK};
    static tare__span_row spans[3];
    for (size_t i = 0; i < 3; i++) {
        spans[i] = train_spans[11];
        spans[i].name = names[i];
        spans[i].file = ATTACK;
    }
    const tare__finding finding = {.id = ATTACK,
                                   .severity = TARE__CRITICAL,
                                   .title = ATTACK,
                                   .evidence = ATTACK,
                                   .advice = ATTACK,
                                   .gain = NAN,
                                   .gain_how = ATTACK,
                                   .from_ns = NAN,
                                   .to_ns = NAN,
                                   .source = ATTACK};
    const tare__counter_row counter = {ATTACK, 1, 1, 1, 1, 1, 1, 0, 0};
    const tare__mark_row mark = {ATTACK, 1, 0, 0};
    tare__process_row process = train_processes[0];
    process.command = ATTACK;
    tare__thread_row thread = train_threads[0];
    thread.name = ATTACK;
    add_metric(ATTACK, TARE__METRIC_COUNT, TARE__SUBJECT_SYSTEM, 0, ATTACK, TARE__SHOW_COUNT, S, shape_cpu);
    add_metric("memory.rss", TARE__M_RSS, TARE__SUBJECT_PROCESS, 1, ATTACK, TARE__SHOW_BYTES, S, shape_leak);
    add_absent(ATTACK, TARE__SUBJECT_SENSOR, ATTACK, ATTACK);
    const tare__counter_line line = {ATTACK, points[0], POINTS};
    tare__analysis analysis = {.run = train.run,
                               .own = train.own,
                               .usage = rich_usage,
                               .spans = spans,
                               .n_spans = 3,
                               .findings = &finding,
                               .n_findings = 1,
                               .counters = &counter,
                               .n_counters = 1,
                               .marks = &mark,
                               .n_marks = 1,
                               .processes = &process,
                               .n_processes = 1,
                               .threads = &thread,
                               .n_threads = 1,
                               .metrics = rows,
                               .n_metrics = n_rows};
    analysis.run.command = analysis.run.host = analysis.run.directory = analysis.run.cpu_model = ATTACK;
    analysis.run.kernel = analysis.run.system = analysis.run.revision = analysis.run.gpus = ATTACK;
    analysis.run.writer = ATTACK;
    analysis.run.arguments = arguments;
    analysis.run.n_arguments = 1;
    analysis.run.notes = notes;
    add_stacks(&analysis, &stacks, stacks_hostile, TARE__COUNT_OF(stacks_hostile));
    analysis.usage.rss_peak_process = analysis.usage.absent_energy = analysis.usage.absent_gpu = ATTACK;
    for (uint32_t i = 0; i < 3; i++)
        add_box(0, 0, i, i * 0.3 * S, 0.2 * S, 1);
    end_lane(0, ATTACK, 1, 0);
    lanes[0].process = ATTACK;
    tare__timeline timeline = {.lanes = lanes,
                               .n_lanes = 1,
                               .boxes = all_boxes,
                               .n_boxes = n_boxes,
                               .names = names,
                               .n_names = 3,
                               .counters = &line,
                               .n_counters = 1,
                               .spans = 3};
    return write_page(&analysis, &timeline);
}

/* Nothing is known. */
static int write_bare(void)
{
    const tare__timeline timeline = {0};
    tare__analysis analysis = damaged;
    analysis.usage = (tare__usage_table){.cpu_seconds = NAN,
                                         .user_seconds = NAN,
                                         .system_seconds = NAN,
                                         .cores_mean = NAN,
                                         .cores_max = NAN,
                                         .cores_allowed = NAN,
                                         .rss_peak_bytes = NAN,
                                         .rss_peak_at_ns = NAN,
                                         .tree_rss_max_bytes = NAN,
                                         .memory_allowed_bytes = NAN,
                                         .io_read_bytes = NAN,
                                         .io_write_bytes = NAN,
                                         .disk_read_bytes = NAN,
                                         .disk_write_bytes = NAN,
                                         .net_received_bytes = NAN,
                                         .net_sent_bytes = NAN,
                                         .faults_major = NAN,
                                         .switches_voluntary = NAN,
                                         .switches_forced = NAN,
                                         .threads_max = NAN,
                                         .processes_max = NAN,
                                         .energy_joules = NAN,
                                         .carbon_grams = NAN,
                                         .carbon_intensity = NAN,
                                         .gpu_busy_mean = NAN,
                                         .gpu_memory_max_bytes = NAN,
                                         .absent_gpu = "no NVIDIA driver"};
    analysis.run.memory_bytes = NAN;
    return write_page(&analysis, &timeline);
}

/* ---- exports ------------------------------------------------------------------------------------- */
static int write_export(const tare__emitter *emitter, bool hostile)
{
    const tare__emit_sink sink = {.write = put, .context = stdout};
    const tare__emit_options options = {0};
    tare__analysis analysis = {.run = train.run};
    tare__emit_input input = {.analysis = &analysis};
    tare__error error = {""};
    analysis.run.command = hostile ? STACK_ATTACK : "python train.py --epochs 3";
    analysis.run.directory = "/home/ada/vision";
    analysis.run.elapsed_ns = 10.5 * S;
    if (hostile)
        add_stacks(&analysis, &stacks, stacks_hostile, TARE__COUNT_OF(stacks_hostile));
    else
        add_stacks(&analysis, &stacks, stacks_made, TARE__COUNT_OF(stacks_made));
    return emitter->emit(&input, &options, &sink, &error) != 0;
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    static const char *const exports[] = {"folded", "speedscope", "pprof", "flamegraph"};
    for (size_t i = 0; i < TARE__COUNT_OF(exports); i++)
        if (strcmp(which, exports[i]) == 0)
            return write_export(tare__emit_find(which), argc > 2 && strcmp(argv[2], "hostile") == 0);
    if (strcmp(which, "rich") == 0)
        return write_rich(600, 1);
    if (strcmp(which, "large") == 0) /* a million spans in a hundred thousand boxes */
        return write_rich(8000, 12);
    if (strcmp(which, "hostile") == 0)
        return write_hostile();
    if (strcmp(which, "bare") == 0)
        return write_bare();
    fprintf(stderr, "usage: make_page rich|hostile|large|bare > page.html, or of an export\n");
    return 2;
}
