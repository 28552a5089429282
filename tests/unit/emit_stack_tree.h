/* A call tree as an analysis would make it: a training with data loader workers, and one whose every name attacks.
 * One thread. Included after emit_sample.h. */
#ifndef TARE_TEST_EMIT_STACK_TREE_H
#define TARE_TEST_EMIT_STACK_TREE_H

#include <string.h>

#include "analyze/analyze.h"

/* A node: its depth, then what it is; times of its own in milliseconds: running, and in one other state. */
typedef struct stack_made {
    uint32_t depth;
    tare__stack_node_kind what;
    const char *name, *file;
    uint32_t first_line, line;
    const char *package;
    uint32_t thread; /* of a thread */
    double running, waiting;
    uint32_t state;
} stack_made;

#define HOME "/home/ada/vision/"
#define SITE "/home/ada/.venv/lib/python3.12/site-packages/"
#define LIB  "/usr/lib/python3.12/"
#define PROCESS(name)       {0, TARE__NODE_PROCESS, name, NULL, 0, 0, NULL, TARE__NO_ROW, 0, 0, 0}
#define THREAD(name, row)   {1, TARE__NODE_THREAD, name, NULL, 0, 0, NULL, row, 0, 0, 0}
#define FRAME(depth, name, file, first, line, package, ...) \
    {depth, TARE__NODE_FRAME, name, file, first, line, package, 0, __VA_ARGS__}
#define MINE "your code"

static const stack_made stacks_made[] = {
    PROCESS("train.py (4120)"),
    THREAD("MainThread", 0),
    FRAME(2, "<module>", HOME "train.py", 1, 88, MINE, 3, 0, 0),
    FRAME(3, "main", HOME "train.py", 61, 74, MINE, 12, 0, 0),
    FRAME(4, "train_epoch", HOME "train.py", 30, 42, MINE, 40, 0, 0),
    FRAME(5, "Module._wrapped_call_impl", SITE "torch/nn/modules/module.py", 1731, 1739, "torch", 30, 0, 0),
    FRAME(6, "ResNet.forward", HOME "model.py", 52, 57, MINE, 55, 0, 0),
    FRAME(7, "Module._wrapped_call_impl", SITE "torch/nn/modules/module.py", 1731, 1739, "torch", 25, 0, 0),
    FRAME(8, "Conv2d.forward", SITE "torch/nn/modules/conv.py", 548, 549, "torch", 2450, 35, TARE__STATE_GIL),
    FRAME(8, "BatchNorm2d.forward", SITE "torch/nn/modules/batchnorm.py", 141, 193, "torch", 610, 0, 0),
    FRAME(7, "relu", SITE "torch/nn/functional.py", 1704, 1712, "torch", 320, 0, 0),
    FRAME(5, "Tensor.backward", SITE "torch/_tensor.py", 570, 648, "torch", 15, 0, 0),
    FRAME(6, "_engine_run_backward", SITE "torch/autograd/graph.py", 816, 823, "torch", 2710, 60, TARE__STATE_GIL),
    FRAME(5, "train_epoch", HOME "train.py", 30, 49, MINE, 0, 190, TARE__STATE_GPU),
    FRAME(4, "train_epoch", HOME "train.py", 30, 38, MINE, 5, 0, 0),
    FRAME(5, "_BaseDataLoaderIter.__next__", SITE "torch/utils/data/dataloader.py", 720, 733, "torch", 20, 0, 0),
    FRAME(6, "Queue.get", LIB "multiprocessing/queues.py", 93, 113, "multiprocessing", 30, 0, 0),
    FRAME(7, "Connection._poll", LIB "multiprocessing/connection.py", 434, 440, "multiprocessing", 10, 1580,
          TARE__STATE_PIPE),
    FRAME(4, "save_checkpoint", HOME "train.py", 12, 19, MINE, 4, 0, 0),
    FRAME(5, "save", SITE "torch/serialization.py", 885, 941, "torch", 90, 310, TARE__STATE_DISK),
    FRAME(4, "upload", HOME "storage.py", 8, 31, MINE, 2, 0, 0),
    FRAME(5, "Session.request", SITE "requests/sessions.py", 500, 589, "requests", 8, 0, 0),
    FRAME(6, "SSLSocket.read", LIB "ssl.py", 1100, 1104, "ssl", 6, 520, TARE__STATE_NETWORK),
    FRAME(4, "log_metrics", HOME "train.py", 22, 25, MINE, 3, 0, 0),
    FRAME(5, "dumps", LIB "json/__init__.py", 183, 231, "json", 85, 0, 0),
    FRAME(6, "JSONEncoder.encode", LIB "json/encoder.py", 183, 200, "json", 140, 0, 0),
    FRAME(4, "<module>", HOME "model.py", 1, 3, MINE, 0, 0, 0),
    FRAME(5, "<module>", SITE "torch/__init__.py", 1, 2475, "torch", 420, 130, TARE__STATE_DISK),
    {2, TARE__NODE_NO_STACK, "(no stack)", NULL, 0, 0, NULL, 0, 8, 0, 0},
    THREAD("pin_memory", 1),
    FRAME(2, "Thread._bootstrap", LIB "threading.py", 1020, 1032, "threading", 1, 0, 0),
    FRAME(3, "_pin_memory_loop", SITE "torch/utils/data/_utils/pin_memory.py", 17, 52, "torch", 210, 8100,
          TARE__STATE_LOCK),
    PROCESS("train.py (4133)"),
    THREAD("MainThread", 2),
    FRAME(2, "_worker_loop", SITE "torch/utils/data/_utils/worker.py", 244, 351, "torch", 15, 0, 0),
    FRAME(3, "Photos.__getitem__", HOME "data.py", 20, 27, MINE, 22, 0, 0),
    FRAME(4, "open", SITE "PIL/Image.py", 3400, 3463, "PIL", 75, 180, TARE__STATE_DISK),
    FRAME(4, "Image.resize", SITE "PIL/Image.py", 2236, 2329, "PIL", 2250, 0, 0),
    FRAME(3, "Photos.__getitem__", HOME "data.py", 20, 29, MINE, 6, 0, 0),
    FRAME(4, "ImageFile.load", SITE "PIL/ImageFile.py", 180, 293, "PIL", 3120, 95, TARE__STATE_RUNNABLE),
    FRAME(3, "Photos.__getitem__", HOME "data.py", 20, 31, MINE, 310, 0, 0),
    FRAME(3, "Queue.get", LIB "multiprocessing/queues.py", 93, 113, "multiprocessing", 2, 1900, TARE__STATE_PIPE),
    {3, TARE__NODE_OTHER, "(other)", NULL, 0, 0, NULL, 0, 21, 0, 0},
};

#define STACK_ATTACK "</script>]]></svg><img src=x onerror=alert(1)>;\"'&\n\x1b[31m\xff 7"
static const stack_made stacks_hostile[] = {
    PROCESS(STACK_ATTACK),
    THREAD(STACK_ATTACK, 0),
    FRAME(2, STACK_ATTACK, "/" STACK_ATTACK ".py", 1, 5, STACK_ATTACK, 600, 0, 0),
    FRAME(3, "<lambda>", STACK_ATTACK, 1, 6, "<!--", 300, 100, TARE__STATE_NETWORK),
    FRAME(3, "javascript:alert(1)", "javascript:alert(1)", 0, 0, NULL, 50, 0, 0),
};

#define STACK_THREADS 3
typedef struct stack_sample {
    tare__stack_node nodes[64];
    tare__sampled_thread_row threads[STACK_THREADS];
    tare__line_row lines[8];
    size_t n_lines;
} stack_sample;

static inline void stack_totals(stack_sample *to, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        tare__stack_node *node = &to->nodes[i];
        node->total_ns += node->self_ns;
        node->total_cpu_ns += node->of.ns[TARE__STATE_RUNNING];
        if (node->parent == TARE__NO_ROW)
            continue;
        tare__stack_node *parent = &to->nodes[node->parent];
        parent->total_ns += node->total_ns;
        parent->total_cpu_ns += node->total_cpu_ns;
        parent->n_rows += node->n_rows + 1;
    }
}

/* Adds tree and threads to an analysis; `to` has them, for as long as it is used. */
static inline void add_stacks(tare__analysis *analysis, stack_sample *to, const stack_made *made, size_t n)
{
    uint32_t open[16] = {0}, thread = TARE__NO_ROW;
    static const char *const names[STACK_THREADS] = {"MainThread", "pin_memory", "MainThread"};
    memset(to, 0, sizeof *to);
    for (uint32_t i = 0; i < n; i++) {
        const stack_made *from = &made[i];
        tare__stack_node *node = &to->nodes[i];
        if (from->what == TARE__NODE_THREAD || from->what == TARE__NODE_PROCESS)
            thread = from->thread;
        open[from->depth] = i;
        *node = (tare__stack_node){.what = from->what,
                                   .name = from->name,
                                   .file = from->file,
                                   .line = from->line,
                                   .first_line = from->first_line,
                                   .kind = from->what == TARE__NODE_FRAME ? TARE__FRAME_PYTHON : 0,
                                   .package = from->package,
                                   .own = from->package && strcmp(from->package, MINE) == 0,
                                   .thread = thread,
                                   .parent = from->depth ? open[from->depth - 1] : TARE__NO_ROW,
                                   .depth = from->depth,
                                   .samples = (uint64_t)((from->running + from->waiting) / 10),
                                   .self_ns = (from->running + from->waiting) * 1e6};
        node->of.ns[TARE__STATE_RUNNING] = from->running * 1e6;
        if (from->waiting > 0)
            node->of.ns[from->state] = from->waiting * 1e6;
    }
    stack_totals(to, n);
    for (uint32_t i = 0; i < n; i++) {
        const tare__stack_node *node = &to->nodes[i];
        analysis->stacks.wall_ns += node->depth == 0 ? node->total_ns : 0;
        if (node->what == TARE__NODE_THREAD)
            to->threads[node->thread] = (tare__sampled_thread_row){.pid = node->thread < 2 ? 4120 : 4133,
                                                                   .tid = 4120 + node->thread * 7,
                                                                   .name = names[node->thread],
                                                                   .process = TARE__NO_ROW,
                                                                   .main = node->thread != 1,
                                                                   .leading = node->thread == 0,
                                                                   .samples = (uint64_t)(node->total_ns / 1e7),
                                                                   .wall_ns = node->total_ns,
                                                                   .to_ns = node->total_ns};
    }
    analysis->stacks.nodes = to->nodes;
    analysis->stacks.n = n;
    analysis->sampled_threads = to->threads;
    analysis->n_sampled_threads = 0;
    for (uint32_t i = 0; i < STACK_THREADS; i++)
        analysis->n_sampled_threads += to->threads[i].wall_ns > 0;
}

#endif
