/* Tables as an analysis would make them: a training run with everything in it, a damaged one with nothing
 * known, and one too large for a page. One thread. */
#ifndef TARE_TEST_EMIT_SAMPLE_H
#define TARE_TEST_EMIT_SAMPLE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/analyze.h"

#define US           1e3
#define MS           1e6
#define S            1e9
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define EACH(p50, p95, max)                                                                            \
    {                                                                                                  \
        .min_ns = (p50)*0.8, .mean_ns = (p50)*1.05, .max_ns = (max), .p50_ns = (p50), .p95_ns = (p95), \
        .p99_ns = (max)*0.95                                                                           \
    }

static const tare__number_row forward_numbers[] = {{"flops", 600, 1.872e12, 1.36e12, false, 0},
                                                   {"bytes", 600, 6.4e9, 4.66e9, false, 0}};
static const tare__number_row load_numbers[] = {{"bytes", 600, 38.4 * 1048576, 1.21e8, false, 0},
                                                {"images", 600, 38400, NAN, false, 0}};
static const tare__number_row step_numbers[] = {{"samples", 600, 38400, 15894.0, false, 0},
                                                {"tokens", 600, 4.9e6, 2.03e6, false, 0}};

static const tare__span_row train_spans[] = {
    {.name = "train",
     .file = "train.c",
     .line = 12,
     .kind = TARE_KIND_SPAN,
     .group = TARE__NO_ROW,
     .parent = TARE__NO_ROW,
     .depth = 0,
     .n_rows = 10,
     .calls = 1,
     .still_open = 1,
     .total_ns = 2.46 * S,
     .self_ns = 1.2 * MS,
     .raw_self_ns = 1.25 * MS,
     .share = 0.97,
     .each = EACH(2.46 * S, 2.46 * S, 2.46 * S)},
    {.name = "epoch",
     .kind = TARE_KIND_EPOCH,
     .group = TARE__NO_ROW,
     .parent = 0,
     .depth = 1,
     .n_rows = 8,
     .calls = 3,
     .total_ns = 2.44 * S,
     .self_ns = 8.0 * MS,
     .raw_self_ns = 8.1 * MS,
     .share = 0.962,
     .each = EACH(0.81 * S, 0.83 * S, 0.83 * S)},
    {.name = "step",
     .kind = TARE_KIND_STEP,
     .group = TARE__NO_ROW,
     .parent = 1,
     .depth = 2,
     .n_rows = 7,
     .calls = 600,
     .total_ns = 2.416 * S,
     .self_ns = 21.0 * MS,
     .raw_self_ns = 21.1 * MS,
     .share = 0.953,
     .each = EACH(4.01 * MS, 4.32 * MS, 11.3 * MS),
     .numbers = step_numbers,
     .n_numbers = 1},
    {.name = "forward",
     .file = "train.c",
     .line = 40,
     .kind = TARE_KIND_SPAN,
     .group = TARE__NO_ROW,
     .parent = 2,
     .depth = 3,
     .n_rows = 2,
     .calls = 600,
     .total_ns = 1.374 * S,
     .self_ns = 96.0 * MS,
     .raw_self_ns = 97.0 * MS,
     .share = 0.542,
     .each = EACH(2.29 * MS, 2.41 * MS, 4.4 * MS),
     .numbers = forward_numbers,
     .n_numbers = 2},
    {.name = "matmul",
     .kind = TARE_KIND_SPAN,
     .group = TARE__NO_ROW,
     .parent = 3,
     .depth = 4,
     .n_rows = 0,
     .calls = 1200,
     .total_ns = 1.27 * S,
     .self_ns = 1.27 * S,
     .raw_self_ns = 1.27 * S,
     .share = 0.501,
     .each = EACH(1.05 * MS, 1.12 * MS, 2.1 * MS)},
    {.name = "attention/scaled_dot_product_with_causal_mask",
     .kind = TARE_KIND_SPAN,
     .group = TARE__NO_ROW,
     .parent = 3,
     .depth = 4,
     .n_rows = 0,
     .calls = 600,
     .total_ns = 8.0 * MS,
     .self_ns = 8.0 * MS,
     .raw_self_ns = 8.0 * MS,
     .share = 0.0032,
     .each = EACH(13.0 * US, 15.0 * US, 40.0 * US)},
    {.name = "backward",
     .kind = TARE_KIND_SPAN,
     .group = TARE__NO_ROW,
     .parent = 2,
     .depth = 3,
     .n_rows = 0,
     .calls = 600,
     .total_ns = 0.69 * S,
     .self_ns = 0.69 * S,
     .raw_self_ns = 0.69 * S,
     .share = 0.272,
     .each = EACH(1.14 * MS, 1.3 * MS, 5.2 * MS)},
    {.name = "load",
     .kind = TARE_KIND_SPAN,
     .group = TARE__NO_ROW,
     .parent = 2,
     .depth = 3,
     .n_rows = 0,
     .calls = 600,
     .total_ns = 0.317 * S,
     .self_ns = 0.317 * S,
     .raw_self_ns = 0.317 * S,
     .share = 0.125,
     .each = EACH(0.5 * MS, 0.7 * MS, 1.9 * MS),
     .numbers = load_numbers,
     .n_numbers = 2},
    {.name = "optimizer",
     .kind = TARE_KIND_SPAN,
     .group = TARE__NO_ROW,
     .parent = 2,
     .depth = 3,
     .n_rows = 0,
     .calls = 600,
     .total_ns = 9.1 * MS,
     .self_ns = 9.1 * MS,
     .raw_self_ns = 9.1 * MS,
     .share = 0.0036,
     .each = EACH(15.0 * US, 17.0 * US, 71.0 * US)},
    {.name = "log",
     .kind = TARE_KIND_SPAN,
     .group = TARE__NO_ROW,
     .parent = 2,
     .depth = 3,
     .n_rows = 0,
     .calls = 600,
     .left_open = 2,
     .total_ns = 4.9 * MS,
     .self_ns = 4.9 * MS,
     .raw_self_ns = 4.9 * MS,
     .share = 0.0019,
     .each = EACH(8.0 * US, 9.0 * US, 31.0 * US)},
    {.name = "(others)",
     .kind = 0,
     .group = TARE__NO_ROW,
     .parent = 0,
     .depth = 1,
     .n_rows = 0,
     .calls = 12,
     .total_ns = 18.8 * MS,
     .self_ns = 18.8 * MS,
     .raw_self_ns = 18.8 * MS,
     .share = 0.0074,
     .each = EACH(1.5 * MS, 2.0 * MS, 2.5 * MS)},
    {.name = "\xe5\x8a\xa0\xe8\xbd\xbd \"caf\xc3\xa9\"\x1b[31m\tred",
     .kind = TARE_KIND_SPAN,
     .group = TARE__NO_ROW,
     .parent = TARE__NO_ROW,
     .depth = 0,
     .n_rows = 0,
     .calls = 123456,
     .end_missing = 1,
     .total_ns = 76.0 * MS,
     .self_ns = 72.0 * MS,
     .raw_self_ns = 76.0 * MS,
     .share = 0.03,
     .each = EACH(600.0, 912.0, 31.0 * US)},
};

static const tare__step_row train_steps[] = {
    {.name = "step",
     .group = TARE__NO_ROW,
     .count = 600, .job_count = 600,
     .unfinished = 1,
     .total_ns = 2.416 * S,
     .each = EACH(4.01 * MS, 4.32 * MS, 11.3 * MS),
     .exact = true,
     .p50 = {3.99 * MS, 4.03 * MS, 0},
     .p95 = {4.28 * MS, 4.41 * MS, 0},
     .per_second = 244.9,
     .first_ns = 11.3 * MS,
     .rest_p50_ns = 4.01 * MS,
     .slowest = {{11.3 * MS, 1.0 * MS, 0, true, false, 0},
                 {6.1 * MS, 0.9 * S, 201, true, false, 0},
                 {5.0 * MS, 1.1 * S, 0, false, false, 0}},
     .n_slowest = 3,
     .numbers = step_numbers,
     .n_numbers = 2},
};
static const tare__step_row train_epochs[] = {
    {.name = "epoch",
     .group = TARE__NO_ROW,
     .count = 3,
     .total_ns = 2.44 * S,
     .each = EACH(0.81 * S, 0.83 * S, 0.83 * S),
     .exact = true,
     .p50 = {NAN, NAN, 6},
     .p95 = {NAN, NAN, 72},
     .per_second = 1.23,
     .first_ns = 0.83 * S,
     .rest_p50_ns = 0.805 * S,
     .slowest = {{0.83 * S, 0.5 * MS, 0, true, false, 0}},
     .n_slowest = 1},
};
static const tare__aggregate_row train_aggregates[] = {
    {.name = "allocate",
     .file = "pool.c",
     .line = 88,
     .every = 1,
     .calls = 2400000,
     .timed = 2400000,
     .total_ns = 98.0 * MS,
     .each = EACH(38.0, 61.0, 210.0 * US)},
    {.name = "hash",
     .every = 64,
     .calls = 9100000,
     .timed = 142187,
     .estimated = true,
     .total_ns = 0.41 * S,
     .each = EACH(44.0, 52.0, 9.0 * US)},
    {.name = "rare",
     .every = 1000,
     .calls = 12,
     .estimated = true,
     .total_ns = NAN,
     .each = {NAN, NAN, NAN, NAN, NAN, NAN}},
};
static const tare__counter_row train_counters[] = {
    {"learning rate", 600, 0.003, 0.0001, 0.0001, 0.0012, 0.003, 1.0 * MS, 2.4 * S},
    {"loss", 600, 2.31, 0.184, 0.181, 0.52, 2.31, 1.0 * MS, 2.4 * S},
};
static const tare__mark_row train_marks[] = {{"checkpoint", 3, 0.83 * S, 2.44 * S}};
static const tare__fact_row train_facts[] = {
    {"torch.loader.workers", NULL, NULL, 0, 0, 2, 4, 0, 0, 2, 4, 0.1 * S, 1.1 * S},
    {"torch.losses.kept", "/home/ada at work/train.py", "history", 19, 0, 1, 16, 16, 16, 16, 16, 0.9 * S, 0.9 * S},
    {"torch.shapes.unavailable", NULL, "torch 1.9 has no hook on all optimizers", 0, TARE__NO_ROW, 1, NAN, NAN, NAN,
     NAN, NAN, 0.2 * S, 0.2 * S},
};
static const tare__track_row train_tracks[] = {
    {"cuda:0 stream 7", TARE_TRACK_GPU, "gemm", 1200, 1.1 * S, 1.1 * S, EACH(0.9 * MS, 1.0 * MS, 1.4 * MS),
     1200, 0},
    {"cuda:0 stream 7", TARE_TRACK_GPU, "softmax", 600, 12.0 * MS, 12.0 * MS,
     EACH(20.0 * US, 22.0 * US, 30.0 * US), 0, 600},
    {"", 0, "wait", 4, 5.0 * MS, 5.0 * MS, EACH(1.2 * MS, 1.5 * MS, 1.6 * MS), 0, 0},
};
static const tare__process_row train_processes[] = {
    {.number = 1,
     .pid = 4120,
     .parent_pid = 4119,
     .command = "./train --epochs 3",
     .label = "./train --epochs 3",
     .joined = true,
     .joined_at_ns = 0,
     .left_at_ns = 2.5 * S,
     .has_exit_status = true,
     .exit_status = 0,
     .threads = 2,
     .spans = 132066,
     .dropped_spans = 41,
     .busy_ns = 2.536 * S,
     .used = {2.25, 512e6, 3, 1.5e6, NAN}},
    {.number = 2,
     .pid = 4133,
     .parent_pid = 4120,
     .inner_pid = 1,
     .command = "sudo nvidia-smi",
     .label = "sudo nvidia-smi",
     .joined = false,
     .not_joined = "it runs as another user, who may not open the session",
     .joined_at_ns = NAN,
     .left_at_ns = NAN,
     .used = {NAN, NAN, NAN, NAN, NAN}},
};
static const tare__thread_row train_threads[] = {
    {.process = 0,
     .stream = 1,
     .tid = 4120,
     .name = "train",
     .spans = 8610,
     .events = 19420,
     .busy_ns = 2.46 * S,
     .first_at_ns = 0.4 * MS,
     .last_at_ns = 2.49 * S},
    {.process = 0,
     .stream = 2,
     .tid = 4121,
     .name = NULL,
     .spans = 123456,
     .events = 246912,
     .busy_ns = 76.0 * MS,
     .first_at_ns = 3.0 * MS,
     .last_at_ns = 2.48 * S,
     .dropped_spans = 41,
     .dropped_ends = 1},
};
/* ---- what was sampled */
static const tare__metric_point train_user_points[] = {
    {0, 0.5 * S, 0.2, 0.4, 0.6},  {0.5 * S, 0.5 * S, 1.1, 1.5, 1.9}, {1.0 * S, 0.5 * S, 1.6, 1.8, 1.9},
    {1.5 * S, 0.5 * S, 0.9, 1.2, 1.6}, {2.0 * S, 0.5 * S, 0.1, 0.9, 1.7},
};
static const tare__metric_point train_system_points[] = {
    {0, 1.25 * S, 0.01, 0.05, 0.1}, {1.25 * S, 1.25 * S, 0.02, 0.03, 0.08}};
static const tare__metric_point train_rss_points[] = {
    {0, 0.8 * S, 20e6, 100e6, 210e6},
    {0.8 * S, 0.8 * S, 210e6, 420e6, 640e6},
    {1.6 * S, 0.9 * S, 640e6, 860e6, 980e6},
};
static const tare__metric_point train_thread_points[] = {{0, 2.5 * S, 0.9, 0.95, 1.0}};
#define NO_VALUES                                                                                              \
    .min = NAN, .mean = NAN, .max = NAN, .max_at_ns = NAN, .first = NAN, .last = NAN, .total = NAN,            \
    .from_ns = NAN, .to_ns = NAN
#define TOTAL_OF(id, text, sum, average, most)                                                                 \
    .metric = text, .known = TARE__M_##id, .kind = TARE__METRIC_TOTAL, .unit = TARE__SHOW_CORES,               \
    .total_unit = TARE__SHOW_SECONDS, .n = 25, .min = 0.01, .mean = (average), .max = (most),                  \
    .max_at_ns = 1.1 * S, .first = NAN, .last = NAN, .total = (sum), .from_ns = 1 * MS, .to_ns = 2.5 * S
#define BYTES_OF(id, text, of_kind, most, end)                                                                 \
    .metric = text, .known = TARE__M_##id, .kind = (of_kind), .unit = TARE__SHOW_BYTES,                        \
    .total_unit = TARE__SHOW_BYTES, .n = 25, .min = 20e6, .mean = 450e6, .max = (most), .max_at_ns = 2.3 * S,  \
    .first = 20e6, .last = (end), .total = NAN, .from_ns = 1 * MS, .to_ns = 2.5 * S
static const tare__metric_row train_metrics[] = {
    {TOTAL_OF(CPU_USER, "cpu.user", 2.9, 1.16, 1.9), .subject = TARE__SUBJECT_TREE, .label = "",
     .points = train_user_points, .n_points = COUNT(train_user_points)},
    {TOTAL_OF(CPU_SYSTEM, "cpu.system", 0.1, 0.04, 0.1), .subject = TARE__SUBJECT_TREE, .label = "",
     .points = train_system_points, .n_points = COUNT(train_system_points)},
    {BYTES_OF(RSS, "memory.rss", TARE__METRIC_GAUGE, 980e6, 971e6), .subject = TARE__SUBJECT_TREE, .label = "",
     .points = train_rss_points, .n_points = COUNT(train_rss_points)},
    {TOTAL_OF(CPU_USER, "cpu.user", 2.81, 1.12, 1.8), .subject = TARE__SUBJECT_PROCESS, .key = 4120,
     .owner = 881234, .label = "train"},
    {BYTES_OF(RSS_PEAK, "memory.rss_peak", TARE__METRIC_PEAK, 1010e6, 1010e6), .subject = TARE__SUBJECT_PROCESS,
     .key = 4120, .owner = 881234, .label = "train"},
    {.metric = "threads", .known = TARE__M_THREADS, .kind = TARE__METRIC_GAUGE, .unit = TARE__SHOW_COUNT,
     .subject = TARE__SUBJECT_PROCESS, .key = 4120, .owner = 881234, .label = "train", .n = 25, .min = 1,
     .mean = 1.9, .max = 2, .max_at_ns = 10 * MS, .first = 1, .last = 2, .total = NAN, .from_ns = 1 * MS,
     .to_ns = 2.5 * S},
    {TOTAL_OF(CPU_USER, "cpu.user", 0.09, 0.04, 0.3), .subject = TARE__SUBJECT_PROCESS, .key = 4133,
     .owner = 881240, .label = "sudo"},
    {.metric = "io.read", .known = TARE__M_IO_READ, .kind = TARE__METRIC_TOTAL, .unit = TARE__SHOW_BYTES_PER_S,
     .total_unit = TARE__SHOW_BYTES, .subject = TARE__SUBJECT_PROCESS, .key = 4133, .owner = 881240,
     .label = "sudo", .absent = "it belongs to another user", NO_VALUES},
    {TOTAL_OF(CPU_USER, "cpu.user", 2.3, 0.92, 1.0), .subject = TARE__SUBJECT_THREAD, .key = 4120, .owner = 4120,
     .label = "train", .points = train_thread_points, .n_points = 1},
    {.metric = "gpu.wobble", .known = TARE__METRIC_COUNT, .kind = 9, .unit = TARE__SHOW_COUNT, .subject = 99,
     .label = "", .absent = "of a newer version", NO_VALUES},
};
static const tare__evidence train_figures[] = {{"data loading", 0.431, TARE__SHOW_SHARE},
                                             {"limit", 2147483648.0, TARE__SHOW_BYTES}};
static const tare__finding train_findings[] = {
    {"memory-growth", TARE__CRITICAL, "Memory grows by 392 MiB a second and has 2.9 s to its limit",
     "Resident memory of train (4120) grew from 20.0 MB to 980 MB in 2.50 s, steadily (R² 0.99); the limit of its "
     "container is 2.00 GiB.",
     "Look for tensors that are kept from step to step: a loss added up without .item(), a list of outputs, a cache "
     "without a bound. Take a memory snapshot at two steps and compare.",
     NAN, "a leak costs no time until the program is killed", 0.8 * S, 2.5 * S, train_figures + 1, 1, NULL, NULL,
     NULL, 0, NAN, 0, NULL},
    {"data-loading", TARE__WARNING, "Data loading takes 43.1 % of the steps",
     "load takes 1.04 s of 2.42 s of steps.", "Use more workers (num_workers), pin_memory and prefetch_factor.", 0.37,
     "if loading were hidden behind compute", NAN, NAN, train_figures, 1, NULL, "/home/user/train/data.py",
     "Images.__getitem__", 57, 0.81, TARE__STATE_DISK, "Image.open"},
    {"slow-tokenizer", TARE__INFO, "tokenize takes 12 % of the run", "", "tokenize once, ahead of time", 0.0, NULL,
     NAN, NAN, NULL, 0, "rules.tare:3", NULL, NULL, 0, NAN, 0, NULL},
};
static const char *const train_arguments[] = {"./train", "--epochs", "3"};
static const char *const train_notes[] = {
    "41 spans and 0 other events were dropped because a buffer was full",
};

static const tare__analysis train = {
    .run = {.arguments = train_arguments,
            .n_arguments = 3,
            .command = "./train --epochs 3",
            .host = "node17",
            .directory = "/home/ada/mnist",
            .writer = "tare 0.1.0",
            .cpu_model = "Xeon",
            .cpus = 2,
            .start_realtime_ns = UINT64_C(1767323045000000000),
            .elapsed_ns = 2.5 * S,
            .finished = true,
            .clock_known = true,
            .status = 0,
            .kernel = "6.8.0-45",
            .system = "Debian GNU/Linux 12",
            .revision = "0b5c0ffee",
            .memory_bytes = 16.0 * 1073741824,
            .spans = 132066,
            .dropped_spans = 41,
            .rotated_before_at_ns = NAN,
            .notes = train_notes,
            .n_notes = COUNT(train_notes)},
    .own = {.spans = 131466,
            .chained_spans = 600,
            .marks = 3,
            .counters = 1200,
            .numbers = 1800,
            .complete_spans = 1804,
            .aggregate_calls = 11500012,
            .aggregate_timed = 2542187,
            .pair_ns = 24.6,
            .inner_ns = 12.1,
            .next_ns = 12.9,
            .aggregate_ns = 14.25,
            .own_ns = 39.9 * MS,
            .subtracted_ns = 4.2 * MS,
            .collector_cpu_ns = 31.0 * MS,
            .sampler_cpu_ns = 11.0 * MS,
            .interval_ns = 100.0 * MS,
            .longest_interval_ns = 120.0 * MS,
            .recorded_ns = 2.536 * S,
            .share = 0.0157},
    .spans = train_spans,
    .n_spans = COUNT(train_spans),
    .steps = train_steps,
    .n_steps = 1,
    .epochs = train_epochs,
    .n_epochs = 1,
    .aggregates = train_aggregates,
    .n_aggregates = COUNT(train_aggregates),
    .counters = train_counters,
    .n_counters = COUNT(train_counters),
    .marks = train_marks,
    .n_marks = 1,
    .facts = train_facts,
    .n_facts = 3,
    .tracks = train_tracks,
    .n_tracks = COUNT(train_tracks),
    .processes = train_processes,
    .n_processes = COUNT(train_processes),
    .threads = train_threads,
    .n_threads = COUNT(train_threads),
    .metrics = train_metrics,
    .n_metrics = COUNT(train_metrics),
    .usage = {.cpu_seconds = 3.0,
              .user_seconds = 2.9,
              .system_seconds = 0.1,
              .cores_mean = 1.2,
              .cores_max = 1.95,
              .cores_allowed = 2,
              .rss_peak_bytes = 1010e6,
              .rss_peak_process = "train",
              .rss_peak_at_ns = 2.3 * S,
              .tree_rss_max_bytes = 980e6,
              .memory_allowed_bytes = 2.0 * 1073741824,
              .io_read_bytes = 3.4e9,
              .io_write_bytes = 12e6,
              .disk_read_bytes = 1.2e9,
              .disk_write_bytes = 8192,
              .net_received_bytes = 3.1e6,
              .net_sent_bytes = 120e3,
              .faults_major = 4,
              .switches_voluntary = 12345,
              .switches_forced = 88,
              .threads_max = 2,
              .processes_max = 2,
              .energy_joules = 120.5,
              .carbon_grams = 0.0159,
              .carbon_intensity = 475,
              .gpu_busy_mean = NAN,
              .gpu_memory_max_bytes = NAN,
              .absent_gpu = "no NVIDIA driver (libnvidia-ml.so.1 was not found)"},
    .findings = train_findings,
    .n_findings = COUNT(train_findings),
};

#define NO_USAGE                                                                                             \
    {                                                                                                        \
        .cpu_seconds = NAN, .user_seconds = NAN, .system_seconds = NAN, .cores_mean = NAN, .cores_max = NAN, \
        .cores_allowed = NAN, .rss_peak_bytes = NAN, .rss_peak_at_ns = NAN, .tree_rss_max_bytes = NAN,       \
        .memory_allowed_bytes = NAN, .io_read_bytes = NAN, .io_write_bytes = NAN, .disk_read_bytes = NAN,    \
        .disk_write_bytes = NAN, .net_received_bytes = NAN, .net_sent_bytes = NAN, .faults_major = NAN,      \
        .switches_voluntary = NAN, .switches_forced = NAN, .threads_max = NAN, .processes_max = NAN,         \
        .energy_joules = NAN, .carbon_grams = NAN, .carbon_intensity = NAN, .gpu_busy_mean = NAN,            \
        .gpu_memory_max_bytes = NAN, .absent_cpu = "not sampled", .absent_memory = "not sampled",            \
        .absent_disk = "not sampled", .absent_energy = "not sampled", .absent_gpu = "not sampled"            \
    }

/* ---- nothing is known ---------------------------------------------------------------------------- */
static const char *const damaged_notes[] = {
    "3 blocks were damaged, 4,711 bytes in all, the first at byte 1,024; how many spans were in them is not "
    "known",
    "the file ends inside the block at byte 90,112: what came after is missing",
};
static const tare__step_row damaged_steps[] = {
    {.name = "step",
     .group = TARE__NO_ROW,
     .unfinished = 2,
     .each = {NAN, NAN, NAN, NAN, NAN, NAN},
     .p50 = {NAN, NAN, 6},
     .p95 = {NAN, NAN, 72},
     .per_second = NAN,
     .first_ns = NAN,
     .rest_p50_ns = NAN},
};
static const tare__analysis damaged = {
    .run = {.status = -1,
            .elapsed_ns = NAN,
            .memory_bytes = NAN,
            .rotated_before_at_ns = NAN,
            .damaged_blocks = 3,
            .damaged_bytes = 4711,
            .notes = damaged_notes,
            .n_notes = COUNT(damaged_notes)},
    .own = {.pair_ns = NAN,
            .inner_ns = NAN,
            .next_ns = NAN,
            .aggregate_ns = NAN,
            .own_ns = NAN,
            .subtracted_ns = NAN,
            .collector_cpu_ns = NAN,
            .sampler_cpu_ns = NAN,
            .interval_ns = NAN,
            .longest_interval_ns = NAN,
            .recorded_ns = 0,
            .share = NAN},
    .usage = NO_USAGE,
    .steps = damaged_steps,
    .n_steps = 1,
};

/* ---- a thousand threads, thousands of spans ------------------------------------------------------ */
typedef struct crowd {
    tare__analysis tables;
    tare__span_row *spans;
    tare__thread_row *threads;
    tare__group_row *groups;
    char names[64][16];
} crowd;

#define CROWD_TREES   40
#define CROWD_DEPTH   50
#define CROWD_THREADS 1000

/* Forty top-level spans, the largest first, each a chain fifty deep. */
static inline crowd *make_crowd(bool grouped)
{
    crowd *made = calloc(1, sizeof *made);
    made->spans = calloc(CROWD_TREES * CROWD_DEPTH, sizeof *made->spans);
    made->threads = calloc(CROWD_THREADS, sizeof *made->threads);
    made->groups = calloc(CROWD_TREES, sizeof *made->groups);
    for (int i = 0; i < 64; i++)
        snprintf(made->names[i], sizeof made->names[i], "span%d", i);
    for (int i = 0; i < CROWD_TREES * CROWD_DEPTH; i++) {
        int tree = i / CROWD_DEPTH, depth = i % CROWD_DEPTH;
        double total = S / (double)(1 << (tree < 20 ? tree : 20)) * (1 - depth / 100.0);
        made->spans[i] = (tare__span_row){.name = made->names[depth ? depth : tree],
                                          .kind = TARE_KIND_SPAN,
                                          .group = grouped ? (uint32_t)tree : TARE__NO_ROW,
                                          .depth = (uint32_t)depth,
                                          .parent = depth ? (uint32_t)i - 1 : TARE__NO_ROW,
                                          .n_rows = (uint32_t)(CROWD_DEPTH - 1 - depth),
                                          .calls = 10,
                                          .total_ns = total,
                                          .self_ns = total / 100,
                                          .raw_self_ns = total / 100,
                                          .share = total / (2 * S),
                                          .each = EACH(total / 10, total / 9, total / 5)};
    }
    for (int i = 0; i < CROWD_THREADS; i++)
        made->threads[i] = (tare__thread_row){.process = 0,
                                              .stream = (uint32_t)i + 1,
                                              .tid = 100 + i,
                                              .name = i == 0        ? "main"
                                                      : i % 10 == 3 ? "writer"
                                                                    : "loader",
                                              .spans = 10,
                                              .events = 20,
                                              .busy_ns = 1 * MS,
                                              .first_at_ns = i == 7 ? NAN : i * MS,
                                              .last_at_ns = i == 7 ? NAN : (i + 1) * MS};
    for (int i = 0; i < CROWD_TREES; i++)
        made->groups[i] = (tare__group_row){.name = i ? "loader" : "main",
                                            .thread = (uint32_t)i,
                                            .first_row = (uint32_t)(i * CROWD_DEPTH),
                                            .n_rows = CROWD_DEPTH,
                                            .total_ns = made->spans[i * CROWD_DEPTH].total_ns};
    made->tables = damaged;
    made->tables.run.notes = NULL;
    made->tables.run.n_notes = 0;
    made->tables.n_steps = 0;
    made->tables.spans = made->spans;
    made->tables.n_spans = CROWD_TREES * CROWD_DEPTH;
    made->tables.threads = made->threads;
    made->tables.n_threads = CROWD_THREADS;
    made->tables.groups = made->groups;
    made->tables.n_groups = grouped ? CROWD_TREES : 0;
    return made;
}

static inline void free_crowd(crowd *made)
{
    free(made->spans);
    free(made->threads);
    free(made->groups);
    free(made);
}

#endif
