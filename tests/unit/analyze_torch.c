/* Tests of the rules on torch programs over tables made by hand: each fires where it should, and keeps silent where it
 * should not and where what it needs is absent.
 * One thread. Must not know how tables are made from a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_world.h"

#define PHASE TARE_KIND_PHASE

/* A training loop: ten steps in eight of the run's ten seconds. Row 0 is the step; the phases are 1 to 4. */
typedef struct torch_world {
    world *w;
    tare__fact_row facts[20];
    char keys[10][64]; /* of facts about lines */
    tare__aggregate_row lines[4];
    tare__number_row numbers[2];
} torch_world;

static torch_world *loop_of(double data, double forward, double backward, double optimizer)
{
    torch_world *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->w = world_new();
    t->w->of.facts = t->facts;
    t->w->of.aggregates = t->lines;
    t->w->of.usage.cores_allowed = 4;
    double rest = 8 - data - forward - backward - optimizer;
    add_span(t->w, "step", TARE_KIND_STEP, TARE__NO_ROW, 8, rest)->each.min_ns = 0.8 * SECOND;
    add_span(t->w, "data", PHASE, 0, data, data);
    add_span(t->w, "forward", PHASE, 0, forward, forward);
    add_span(t->w, "backward", PHASE, 0, backward, backward);
    add_span(t->w, "optimizer", PHASE, 0, optimizer, optimizer);
    return t;
}

static void loop_free(torch_world *t)
{
    world_free(t->w);
    free(t);
}

static void add_fact(torch_world *t, const char *key, double value, const char *text, const char *file, uint32_t line)
{
    size_t n = t->w->of.n_facts++;
    t->facts[n] = (tare__fact_row){.key = key, .text = text, .file = file, .line = line, .count = 1, .value = value,
                                   .first = value, .min = value, .mean = value, .max = value,
                                   .first_at_ns = (double)n, .last_at_ns = (double)n};
}

static void add_values(torch_world *t, const char *key, double first, double last, uint64_t n)
{
    add_fact(t, key, last, NULL, NULL, 0);
    tare__fact_row *row = &t->facts[t->w->of.n_facts - 1];
    row->count = n;
    row->first = first;
    row->min = fmin(first, last);
    row->mean = (first + last) / 2;
    row->max = fmax(first, last);
}

static void add_own_line(torch_world *t, const char *name, const char *file, uint32_t line, double seconds)
{
    t->lines[t->w->of.n_aggregates++] = (tare__aggregate_row){.name = name,
                                                              .file = file,
                                                              .line = line,
                                                              .every = 1,
                                                              .calls = 10,
                                                              .timed = 10,
                                                              .total_ns = seconds * SECOND};
}

/* One that the package samples: "forward @ train.py:40 main". */
static void add_line(torch_world *t, const char *name, const char *file, uint32_t line, double seconds)
{
    size_t length = (size_t)(strstr(name, " @ ") - name);
    char *key = t->keys[t->w->of.n_aggregates];
    snprintf(key, sizeof t->keys[0], "torch.line.%.*s", (int)length, name);
    add_own_line(t, name, file, line, seconds);
    add_fact(t, key, NAN, strrchr(name, ' ') + 1, file, line);
}

static void is_silent(torch_world *t, const char *id)
{
    evaluate(t->w);
    must_not_find(t->w, id);
    loop_free(t);
}

/* ---- loading ---- */
static void a_loop_that_waits_for_data(void **state)
{
    (void)state;
    torch_world *t = loop_of(4, 1, 2, 0.5);
    add_values(t, "torch.loader.workers", 0, 0, 1);
    add_line(t, "data @ train.py:12 decode", "/code/train.py", 12, 3);
    add_line(t, "data @ train.py:30 main", "/code/train.py", 30, 1);
    add_line(t, "forward @ train.py:40 main", "/code/train.py", 40, 5);
    add_own_line(t, "data @ mine.py:1 f", "/code/mine.py", 1, 100); /* an aggregate of the program */
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "loader-bound");
    assert_ptr_equal(finding, &t->w->of.findings[0]);
    ABOUT(figure_of(finding, "share"), 0.5);
    assert_non_null(strstr(finding->evidence, "/code/train.py:12, in decode"));
    assert_non_null(strstr(finding->evidence, "75"));
    assert_non_null(strstr(finding->evidence, "num_workers is 0"));
    ABOUT(finding->gain, 0.4);            /* three other cores load 4 s in 1.3 s, behind 4 s of compute */
    must_not_find(t->w, "single-worker"); /* told already */
    loop_free(t);
}

static void what_workers_cannot_hide(void **state)
{
    (void)state;
    torch_world *t = loop_of(7, 0.5, 0.5, 0);
    t->w->of.usage.cores_allowed = 2;
    add_values(t, "torch.loader.workers", 0, 0, 1);
    evaluate(t->w);
    ABOUT(must_find(t->w, "loader-bound")->gain,
          0.45); /* two workers: 7 s of loading in 3.5 s, of which 1 s is behind compute */
    loop_free(t);
}

static void a_loader_that_keeps_up(void **state)
{
    (void)state;
    torch_world *t = loop_of(1, 3, 3, 0.5);
    add_values(t, "torch.loader.workers", 4, 4, 1);
    is_silent(t, "loader-bound");
}

/* They are host time where most of them do not wait for the GPU. */
static void steps_that_only_queue(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 1, 1, 0.5);
    add_steps(t->w, 10, 0.8, 0.8, 0.8)->course.phases = true;
    assert_false(tare__steps_only_queue(&t->w->of)); /* on a CPU */
    add_row(t->w, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU_PROCESS, 42, "", gigabytes_8)->owner = 0;
    assert_true(tare__steps_only_queue(&t->w->of));
    tare__span_row *waits = add_span(t->w, "sync: .item() at train.py:42", TARE_KIND_SPAN, 0, 0.1, 0.1);
    assert_false(tare__steps_only_queue(&t->w->of)); /* in every step */
    waits->calls = 2;
    assert_true(tare__steps_only_queue(&t->w->of));
    waits->calls = 10;
    waits->parent = TARE__NO_ROW; /* behind the loop */
    assert_true(tare__steps_only_queue(&t->w->of));
    t->w->steps[0].course.phases = false; /* nobody knows what the program's own steps wait for */
    assert_false(tare__steps_only_queue(&t->w->of));
    loop_free(t);
}

static void waiting_while_a_gpu_works(void **state)
{
    (void)state;
    torch_world *t = loop_of(4, 1, 1, 0.5);
    add_row(t->w, TARE__M_GPU_BUSY, TARE__SUBJECT_GPU, 0, "H200", one);
    add_row(t->w, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU_PROCESS, 42, "", gigabytes_8)->owner = 0;
    assert_true(tare__any_gpu_used(&t->w->of));
    t->w->of.usage.gpu_busy_mean = 0.9;
    evaluate(t->w);
    must_not_find(t->w, "loader-bound");
    t->w->of.usage.gpu_busy_mean = 0.2;
    evaluate(t->w);
    must_find(t->w, "loader-bound");
    loop_free(t);
}

static void the_first_batch_is_start_up(void **state)
{
    (void)state;
    torch_world *t = loop_of(0.1, 3, 3, 0.5);
    add_span(t->w, "data", PHASE, TARE__NO_ROW, 6, 6); /* before the first step, and for evaluation */
    is_silent(t, "loader-bound");
}

static void batches_of_an_evaluation(void **state)
{
    (void)state;
    torch_world *t = loop_of(0.1, 3, 3, 0.5);
    add_span(t->w, "epoch", TARE_KIND_EPOCH, TARE__NO_ROW, 14, 0);
    add_span(t->w, "data", PHASE, 5, 6, 6); /* in the epoch, between steps that fetch their own */
    evaluate(t->w);
    must_not_find(t->w, "data-loading");
    is_silent(t, "loader-bound");
    t = loop_of(0, 3, 3, 0.5); /* steps that the program marks behind the loader */
    add_span(t->w, "epoch", TARE_KIND_EPOCH, TARE__NO_ROW, 14, 0);
    add_span(t->w, "data", PHASE, 5, 6, 6);
    evaluate(t->w);
    ABOUT(figure_of(must_find(t->w, "loader-bound"), "share"), 6.0 / 14);
    loop_free(t);
}

static void a_few_steps_say_nothing(void **state)
{
    (void)state;
    torch_world *t = loop_of(6, 1, 1, 0);
    t->w->spans[0].calls = 3;
    is_silent(t, "loader-bound");
}

static void one_worker(void **state)
{
    (void)state;
    torch_world *t = loop_of(0.8, 3, 3, 0.5);
    add_values(t, "torch.loader.workers", 1, 1, 1);
    evaluate(t->w);
    ABOUT(must_find(t->w, "single-worker")->gain, 0.08); /* one worker needs 8 s, two need 4 s: less than the compute */
    loop_free(t);
    t = loop_of(0.8, 3, 3, 0.5);
    add_values(t, "torch.loader.workers", 2, 2, 1);
    is_silent(t, "single-worker");
    is_silent(loop_of(0.8, 3, 3, 0.5), "single-worker"); /* not known */
}

/* ---- devices ---- */
static torch_world *copying(double seconds, double bytes, double unpinned)
{
    torch_world *t = loop_of(0.1, 3, 3, 0.5);
    tare__span_row *row = add_span(t->w, "copy", PHASE, 0, seconds, seconds);
    t->numbers[0] = (tare__number_row){.name = "bytes", .n = 10, .sum = bytes, .rate = NAN};
    t->numbers[1] = (tare__number_row){.name = "unpinned bytes", .n = 10, .sum = unpinned, .rate = NAN};
    row->numbers = t->numbers;
    row->n_numbers = 2;
    return t;
}

static void unpinned_copies(void **state)
{
    (void)state;
    torch_world *t = copying(0.8, GB, GB);
    evaluate(t->w);
    ABOUT(figure_of(must_find(t->w, "unpinned-copies"), "unpinned"), GB);
    loop_free(t);
    is_silent(copying(0.8, GB, 0), "unpinned-copies");
    is_silent(copying(0.05, GB, GB), "unpinned-copies"); /* they cost nothing */
}

static void sync_points(void **state)
{
    (void)state;
    torch_world *t = loop_of(0.1, 3, 3, 0.5);
    tare__span_row *row = add_span(t->w, "sync: .item() at train.py:42", TARE_KIND_SPAN, 0, 1, 1);
    row->file = "/code/train.py";
    row->line = 42;
    add_span(t->w, "sync: .cpu() at log.py:7", TARE_KIND_SPAN, 0, 0.2, 0.2);
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "sync-points");
    assert_non_null(strstr(finding->title, ".item() at train.py:42"));
    assert_non_null(strstr(finding->evidence, "/code/train.py:42"));
    ABOUT(figure_of(finding, "blocked"), 1.2);
    for (size_t i = 0; i < t->w->of.n_findings; i++)
        assert_true(strcmp(t->w->of.findings[i].id, "operation") != 0 || !strstr(t->w->of.findings[i].title, "sync: "));
    loop_free(t);
    t = loop_of(0.1, 3, 3, 0.5);
    add_span(t->w, "sync: .item() at train.py:42", TARE_KIND_SPAN, 0, 0.01, 0.01);
    add_span(t->w, "sync: .item() at eval.py:9", TARE_KIND_SPAN, TARE__NO_ROW, 1, 1); /* not in a step */
    is_silent(t, "sync-points");
}

/* ---- compute ---- */
static void small_operators_by_the_graph(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 3, 4, 0.5);
    add_values(t, "torch.graph.nodes", 20000, 20000, 4); /* 0.7 s of the fastest step over 40,000 */
    add_line(t, "forward @ net.py:16 forward", "/code/net.py", 16, 3);
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "small-operators");
    ABOUT(figure_of(finding, "each"), 17.5e-6);
    assert_true(isnan(finding->gain)); /* nobody knows what the same work takes in few operators */
    assert_non_null(strstr(finding->evidence, "/code/net.py:16, in forward"));
    assert_non_null(strstr(finding->evidence, "estimate"));
    assert_non_null(strstr(finding->title, "estimated"));
    loop_free(t);
    t = loop_of(0, 3, 4, 0.5);
    add_values(t, "torch.graph.nodes", 2000, 2000, 4); /* 175 µs each */
    is_silent(t, "small-operators");
    t = loop_of(0, 3, 4, 0.5);
    t->w->spans[0].each.min_ns = 100e3;
    add_values(t, "torch.graph.nodes", 10, 10, 4); /* few */
    is_silent(t, "small-operators");
    is_silent(loop_of(0, 3, 4, 0.5), "small-operators"); /* nothing known */
    t = loop_of(0, 3, 4, 0.5);
    t->w->spans[3].calls *= 4; /* gradient accumulation */
    add_values(t, "torch.graph.nodes", 5000, 5000, 4);
    evaluate(t->w);
    finding = must_find(t->w, "small-operators");
    ABOUT(figure_of(finding, "operators"), 40000);
    ABOUT(figure_of(finding, "each"), 17.5e-6);
    loop_free(t);
}

/* Sequences of several lengths: the fastest step has the smallest graph, and not the one that was sampled. */
static void small_operators_of_graphs_that_differ(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 3, 4, 0.5);
    t->w->spans[0].each.min_ns = 0.01 * SECOND;
    add_values(t, "torch.graph.nodes", 1000, 39000, 4);
    add_values(t, "torch.graph.backward_seconds", 0.05, 0.75, 4); /* 0.4 s and 20,000 nodes on average */
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "small-operators");
    ABOUT(figure_of(finding, "each"), 0.4 * 7 / 4 / 40000);
    ABOUT(figure_of(finding, "operators"), 40000); /* a backward takes 0.4 s on average, as those of the sampled
                                                    * losses */
    assert_non_null(strstr(finding->evidence, "in the steps of these losses"));
    add_values(t, "torch.graph.backward_cpu_seconds", 0.1, 0.1, 4); /* it had a quarter of a core */
    t->facts[1].mean = 0.8; /* longer ones than others */
    evaluate(t->w);
    finding = must_find(t->w, "small-operators");
    ABOUT(figure_of(finding, "each"), 0.1 * 7 / 4 / 40000);
    ABOUT(figure_of(finding, "operators"), 20000);
    loop_free(t);
    t = loop_of(0, 3, 4, 0.5);
    t->w->spans[0].each.min_ns = 0.01 * SECOND;
    add_values(t, "torch.graph.nodes", 100, 3900, 4); /* 175 µs each */
    add_values(t, "torch.graph.backward_seconds", 0.05, 0.75, 4);
    is_silent(t, "small-operators");
}

static void small_operators_as_recorded(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 3, 4, 0.5);
    tare__span_row *row = add_span(t->w, "aten::mul", TARE_KIND_OPERATOR, 2, 3, 3);
    row->calls = 400000;
    add_values(t, "torch.graph.nodes", 10, 10, 4); /* what was recorded counts */
    evaluate(t->w);
    ABOUT(figure_of(must_find(t->w, "small-operators"), "each"), 7.5e-6);
    assert_null(strstr(must_find(t->w, "small-operators")->title, "estimated"));
    row->calls = 4000;
    evaluate(t->w);
    must_not_find(t->w, "small-operators");
    loop_free(t);
    /* A few large ones that call many small ones, and a loader's. */
    t = loop_of(1, 3, 3, 0.5);
    uint32_t large = (uint32_t)t->w->of.n_spans;
    add_span(t->w, "aten::addmm", TARE_KIND_OPERATOR, 2, 3, 2.9)->calls = 40;
    add_span(t->w, "aten::resolve_conj", TARE_KIND_OPERATOR, large, 0.1, 0.1)->calls = 100000;
    add_span(t->w, "aten::stack", TARE_KIND_OPERATOR, 1, 0.5, 0.5)->calls = 100000;
    is_silent(t, "small-operators");
}

static void float32_where_a_faster_way_exists(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 3, 4, 0.5);
    add_fact(t, "torch.fp32", NAN, "cuda", NULL, 0);
    evaluate(t->w);
    assert_non_null(strstr(must_find(t->w, "fp32-matmul")->advice, "set_float32_matmul_precision"));
    loop_free(t);
    t = loop_of(5, 1, 1, 0.5); /* compute is not what costs */
    add_fact(t, "torch.fp32", NAN, "cuda", NULL, 0);
    is_silent(t, "fp32-matmul");
    is_silent(loop_of(0, 3, 4, 0.5), "fp32-matmul");
}

static void compiled_again_and_again(void **state)
{
    (void)state;
    static const char *const recompiled[] = {"0/1", "0/2", "0/3", "0/4", "0/5", "0/6"};
    torch_world *t = loop_of(0, 3, 4, 0.5);
    add_fact(t, "torch.compile", 1, "0/0", NULL, 0);
    add_span(t->w, "torch.recompile", TARE_KIND_SPAN, 2, 1.5, 1.5)->calls = 30; /* spans of the program */
    evaluate(t->w);
    must_not_find(t->w, "recompiles"); /* the first time has to be */
    for (size_t i = 0; i < 6; i++)
        add_fact(t, "torch.recompile", 0.2, recompiled[i], NULL, 0);
    add_fact(t, "torch.recompile", 0.3, "1/1", NULL, 0);
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "recompiles");
    ABOUT(figure_of(finding, "recompiles"), 7);
    ABOUT(finding->gain, 0.15);
    add_values(t, "torch.recompile.backward", 0.1, 0.15, 4); /* of the same seven */
    evaluate(t->w);
    finding = must_find(t->w, "recompiles");
    ABOUT(figure_of(finding, "recompiles"), 7);
    ABOUT(figure_of(finding, "spent"), 2);
    ABOUT(finding->gain, 0.2);
    loop_free(t);
}

static void optimizer_one_by_one(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 2, 3, 2);
    add_fact(t, "torch.unfused", 148, "AdamW", NULL, 0);
    evaluate(t->w);
    assert_non_null(strstr(must_find(t->w, "unfused-optimizer")->evidence, "AdamW: 148 tensors"));
    loop_free(t);
    t = loop_of(0, 3, 4, 0.5);
    add_fact(t, "torch.unfused", 148, "AdamW", NULL, 0);
    is_silent(t, "unfused-optimizer"); /* it takes no time */
    is_silent(loop_of(0, 2, 3, 2), "unfused-optimizer");
}

/* ---- the program's own profiler ---- */
static void a_profiler_of_its_own(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 2, 3, 2);
    add_values(t, "torch.profiler.seconds", 0.5, 1.5, 3);
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "own-profiler");
    ABOUT(figure_of(finding, "at_work"), 3);
    ABOUT(figure_of(finding, "times"), 3);
    assert_non_null(strstr(finding->evidence, "wrote no trace"));
    add_fact(t, TARE__FACT_PROFILER_WROTE, NAN, NULL, "/runs/a.json", 0);
    evaluate(t->w);
    assert_non_null(strstr(must_find(t->w, "own-profiler")->evidence, "not in this trace: /runs/a.json"));
    add_fact(t, TARE__FACT_PROFILER_READ, NAN, NULL, "/runs/a.json", 0);
    evaluate(t->w);
    assert_non_null(strstr(must_find(t->w, "own-profiler")->evidence, "taken from what it wrote: /runs/a.json"));
    loop_free(t);
    is_silent(loop_of(0, 2, 3, 2), "own-profiler");
}

/* ---- memory ---- */
static void losses_that_are_summed_up(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 3, 4, 0.5);
    add_fact(t, "torch.losses.summed", 33, "total", "/code/train.py", 21);
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "kept-losses");
    assert_non_null(strstr(finding->title, "/code/train.py:21"));
    assert_non_null(strstr(finding->advice, "total += loss.detach()"));
    ABOUT(figure_of(finding, "additions"), 33);
    loop_free(t);
}

/* ---- outside of the model ---- */
static void steps_that_are_spent_outside_the_model(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 1, 1, 0);
    static const char *const names[] = {"forward", "backward"};
    double parts[] = {1 * SECOND, 1 * SECOND};
    tare__course_bin bin = {.steps = 10, .from_ns = 0, .to_ns = 8 * SECOND, .total_ns = 8 * SECOND, .parts_ns = parts};
    tare__step_row *row = add_steps(t->w, 10, 0.8, 0.8, 0.8);
    row->course = (tare__step_course){.parts = names, .n_parts = 2, .phases = true, .bins = &bin, .n_bins = 1};
    add_line(t, "other @ train.py:1 imports", "train.py", 1, 9);
    add_line(t, "step @ train.py:7 load", "train.py", 7, 5);
    add_line(t, "step @ train.py:9 log", "train.py", 9, 1);
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "outside-model");
    ABOUT(figure_of(finding, "share"), 0.75);
    ABOUT(figure_of(finding, "outside"), 6);
    ABOUT(finding->gain, 0.6);
    assert_non_null(strstr(finding->evidence, "83.3 % of the stack samples there are at train.py:7, in load."));
    assert_non_null(strstr(finding->advice, "in a worker process or a thread"));
    for (size_t i = 0; i < t->w->of.n_findings; i++) /* the same time is not told twice */
        assert_null(strstr(t->w->of.findings[i].title, "step accounts for"));

    parts[0] = 5 * SECOND; /* a quarter is left */
    evaluate(t->w);
    must_not_find(t->w, "outside-model");
    parts[0] = 1 * SECOND;
    bin.steps = 3; /* too few to tell */
    evaluate(t->w);
    must_not_find(t->w, "outside-model");
    bin.steps = 10;
    row->course.phases = false; /* nobody knows what is outside */
    is_silent(t, "outside-model");
}

static void loading_is_done_elsewhere_already(void **state)
{
    (void)state;
    static const char *const names[] = {"forward", "backward"};
    static const tare__counter_row threads = {"python.threads", 1, 2, 2, 2, 2, 2, 0, 0};
    double parts[] = {1 * SECOND, 1 * SECOND};
    tare__course_bin bin = {.steps = 10, .from_ns = 0, .to_ns = 8 * SECOND, .total_ns = 8 * SECOND, .parts_ns = parts};
    for (size_t i = 0; i < 2; i++) {
        torch_world *t = loop_of(0, 1, 1, 0);
        tare__step_row *row = add_steps(t->w, 10, 0.8, 0.8, 0.8);
        row->course = (tare__step_course){.parts = names, .n_parts = 2, .phases = true, .bins = &bin, .n_bins = 1};
        if (i == 0)
            add_fact(t, "torch.loader.workers", 2, NULL, NULL, 0);
        t->w->of.counters = &threads;
        t->w->of.n_counters = i;
        evaluate(t->w);
        const tare__finding *finding = must_find(t->w, "outside-model");
        assert_null(strstr(finding->advice, "in a worker process or a thread"));
        assert_non_null(
            strstr(finding->advice, i == 0 ? "by 2 DataLoader workers already" : "waits for another thread"));
        loop_free(t);
    }
}

/* One call site in steps and behind them is one; its time is told once. */
static void checkpoints_in_steps_and_outside(void **state)
{
    (void)state;
    static const char *const names[] = {"forward", "backward"};
    double parts[] = {1 * SECOND, 1 * SECOND};
    tare__course_bin bin = {.steps = 10, .from_ns = 0, .to_ns = 8 * SECOND, .total_ns = 8 * SECOND, .parts_ns = parts};
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        torch_world *t = loop_of(0, 1, 1, 0);
        add_steps(t->w, 10, 0.8, 0.8, 0.8)->course =
            (tare__step_course){.parts = names, .n_parts = 2, .phases = true, .bins = &bin, .n_bins = 1};
        for (int outside = 0; outside < 2; outside++) {
            tare__span_row *row = add_span(t->w, "checkpoint: torch.save at train.py:5", TARE_KIND_SPAN,
                                           outside ? TARE__NO_ROW : 0, outside ? 0.5 : by_hand ? 2 : 5, 0);
            row->file = "train.py";
            row->line = 5;
        }
        add_span(t->w, "checkpoint: torch.save at train.py:9", TARE_KIND_SPAN, TARE__NO_ROW, 0.25, 0.25);
        evaluate(t->w);
        const tare__finding *finding = must_find(t->w, "checkpoints");
        ABOUT(figure_of(finding, "saving"), by_hand ? 2.75 : 5.75);
        assert_non_null(
            strstr(finding->evidence, by_hand ? "2.50 s of it at train.py:5" : "5.50 s of it at train.py:5"));
        if (by_hand)
            ABOUT(figure_of(must_find(t->w, "outside-model"), "outside"), 4); /* of 8 s in steps: no model, no
                                                                               * checkpoint */
        else
            must_not_find(t->w, "outside-model");
        loop_free(t);
    }
}

/* ---- workers that are restarted for each epoch ---- */
static void workers_that_start_anew(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        torch_world *t = loop_of(waits ? 4 : 0, 3, 4, 0.5);
        uint32_t data = TARE__NO_ROW;
        for (uint32_t i = 0; i < t->w->of.n_spans; i++)
            data = strcmp(t->w->of.spans[i].name, "data") == 0 ? i : data;
        add_fact(t, "torch.loader.workers", 2, NULL, NULL, 0);
        add_span(t->w, "workers: DataLoader at train.py:9", TARE_KIND_SPAN, TARE__NO_ROW, 2, 2)->calls = 8;
        if (waits) /* what is inside of waiting counts there */
            add_span(t->w, "workers: DataLoader at train.py:9", TARE_KIND_SPAN, data, 1, 1);
        evaluate(t->w);
        if (waits) {
            must_not_find(t->w, "worker-restarts");
            assert_non_null(
                strstr(must_find(t->w, "loader-bound")->evidence, "Starting and ending workers took 2.00 s"));
        } else {
            const tare__finding *finding = must_find(t->w, "worker-restarts");
            ABOUT(figure_of(finding, "starting"), 2);
            ABOUT(finding->gain, 2 * SECOND / t->w->of.run.elapsed_ns);
            assert_non_null(strstr(finding->advice, "persistent_workers=True"));
        }
        loop_free(t);
    }
}

/* ---- between steps ---- */
static void a_loop_that_is_mostly_outside_its_steps(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 3, 4, 0.5);
    tare__step_row *row = add_steps(t->w, 100, 0.08, 0.08, 0.08);
    row->from_first_ns = 18 * SECOND;
    row->between_ns = 10 * SECOND;
    row->longest_gap_ns = 1 * SECOND;
    row->gaps = 10;
    t->w->of.run.elapsed_ns = 20 * SECOND;
    row->between_forward_ns = 4 * SECOND;
    add_line(t, "other @ train.py:1 imports", "train.py", 1, 9);
    add_line(t, "between @ train.py:7 rollout", "train.py", 7, 3);
    add_line(t, "evaluation forward @ net.py:9 forward", "net.py", 9, 1);
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "outside-steps");
    ABOUT(figure_of(finding, "share"), 10. / 18);
    ABOUT(figure_of(finding, "outside"), 10);
    ABOUT(figure_of(finding, "forward"), 4);
    ABOUT(finding->gain, 0.5);
    assert_non_null(strstr(finding->title, "55.6 % of the time between the first and the last step is outside steps"));
    assert_non_null(strstr(finding->evidence, "75.0 % of the stack samples there are at train.py:7, in rollout."));
    row->longest_gap_ns = 9 * SECOND; /* one evaluation in the middle */
    evaluate(t->w);
    must_not_find(t->w, "outside-steps");
    row->longest_gap_ns = 1 * SECOND;
    row->between_ns = 5 * SECOND; /* evaluated now and then */
    evaluate(t->w);
    must_not_find(t->w, "outside-steps");
    row->between_ns = 10 * SECOND;
    row->between_reported_ns = 8 * SECOND; /* a loader has rules of its own */
    evaluate(t->w);
    must_not_find(t->w, "outside-steps");
    loop_free(t);
}

/* ---- ranks ---- */
static void a_rank_that_keeps_others_waiting(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 3, 4, 0.5);
    tare__process_row ranks[3] = {
        {.pid = 70, .has_rank = true, .rank = 0, .steps = 10, .steps_ns = 8 * SECOND, .backward_ns = 6 * SECOND},
        {.pid = 71, .has_rank = true, .rank = 1, .steps = 10, .steps_ns = 8 * SECOND, .backward_ns = 2 * SECOND},
        {.pid = 72, .has_rank = true, .rank = 2, .steps = 10, .steps_ns = 8 * SECOND, .backward_ns = 6 * SECOND},
    };
    t->w->of.processes = ranks;
    t->w->of.n_processes = 3;
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "straggler");
    ABOUT(figure_of(finding, "rank"), 1);
    ABOUT(figure_of(finding, "own"), 0.6);
    ABOUT(figure_of(finding, "others"), 0.2);
    ABOUT(finding->gain, 0.44); /* and a tenth more: the others need not be woken up any more */
    ranks[1].backward_ns = 5.8 * SECOND; /* some are always last */
    evaluate(t->w);
    must_not_find(t->w, "straggler");
    ranks[1].backward_ns = 2 * SECOND;
    ranks[1].steps = 3; /* too few to tell */
    evaluate(t->w);
    must_not_find(t->w, "straggler");
    ranks[1].steps = 10;
    t->w->of.n_processes = 0;
    t->w->of.processes = &ranks[1];
    t->w->of.n_processes = 1; /* nobody else */
    evaluate(t->w);
    must_not_find(t->w, "straggler");
    t->w->of.n_processes = 0;
    loop_free(t);
}

static void losses_that_are_kept(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 3, 4, 0.5);
    add_fact(t, "torch.losses.kept", 16, "history", "/code/train.py", 19);
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "kept-losses");
    assert_ptr_equal(finding, &t->w->of.findings[0]);
    assert_non_null(strstr(finding->title, "/code/train.py:19"));
    assert_non_null(strstr(finding->advice, "history.append(loss.detach())"));
    loop_free(t);
    t = loop_of(0, 3, 4, 0.5);
    add_fact(t, "torch.losses.kept", 16, "history", NULL, 0); /* no line is certain */
    evaluate(t->w);
    finding = must_find(t->w, "kept-losses");
    assert_string_equal(finding->title, "Losses are kept with their autograd graph");
    assert_non_null(strstr(finding->evidence, "they are in history."));
    loop_free(t);
    is_silent(loop_of(0, 3, 4, 0.5), "kept-losses");
}

/* What a program says by itself is no fact, whatever its words. */
static void marks_and_counters_forge_no_finding(void **state)
{
    (void)state;
    static const tare__mark_row marks[] = {{"torch.kept history at /code/train.py:19", 1, 0, 0},
                                           {"torch.summed total at /code/train.py:21", 1, 0, 0},
                                           {"torch.unfused AdamW: 148 tensors one by one", 1, 0, 0},
                                           {"torch.fp32 on cuda: TensorFloat-32 is off", 1, 0, 0},
                                           {"torch.set_num_threads(32) at /code/train.py:7", 1, 0, 0},
                                           {"torch.profiler wrote /runs/a.json", 1, 0, 0}};
    static const tare__counter_row counters[] = {{"torch.losses.kept", 8, 16, 16, 16, 16, 16, 0, 0},
                                                 {"torch.losses.summed", 1, 33, 33, 33, 33, 33, 0, 0},
                                                 {"torch.threads", 2, 4, 32, 4, 18, 32, 0, 0},
                                                 {"torch.loader.workers", 1, 0, 0, 0, 0, 0, 0, 0},
                                                 {"torch.graph.nodes", 4, 40, 50000, 40, 25000, 50000, 0, 0},
                                                 {"torch.graph.retained", 1, 1, 1, 1, 1, 1, 0, 0},
                                                 {"torch.profiler.seconds", 3, 1, 1, 1, 1, 1, 0, 0}};
    static const char *const ids[] = {"kept-losses",   "unfused-optimizer", "fp32-matmul",  "torch-threads",
                                      "growing-graph", "small-operators",   "own-profiler", "single-worker"};
    for (size_t i = 0; i < TARE__COUNT_OF(ids); i++) {
        torch_world *t = loop_of(0.4, 2, 3, 2);
        t->w->of.marks = marks;
        t->w->of.n_marks = TARE__COUNT_OF(marks);
        t->w->of.counters = counters;
        t->w->of.n_counters = TARE__COUNT_OF(counters);
        is_silent(t, ids[i]);
    }
}

/* A folder may be called anything. */
static void places_are_shown_as_they_are(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 3, 4, 0.5);
    add_fact(t, "torch.losses.kept", 16, "losses at home", "/me at work: 1/\xc3\xa9/train at 3.py", 19);
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "kept-losses");
    assert_string_equal(finding->title,
                        "Losses are kept with their autograd graph, at /me at work: 1/\xc3\xa9/train at 3.py:19");
    assert_non_null(strstr(finding->advice, "losses at home.append(loss.detach())"));
    loop_free(t);
}

static void graphs_that_grow(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 3, 4, 0.5);
    add_values(t, "torch.graph.nodes", 40, 900, 5);
    add_values(t, "torch.graph.retained", 1, 1, 1);
    evaluate(t->w);
    must_find(t->w, "growing-graph");
    loop_free(t);
    t = loop_of(0, 3, 4, 0.5);
    add_values(t, "torch.graph.nodes", 40, 900, 5); /* sequences get longer, or models deeper */
    is_silent(t, "growing-graph");
    t = loop_of(0, 3, 4, 0.5);
    add_values(t, "torch.graph.nodes", 40, 60, 5);
    is_silent(t, "growing-graph");
    t = loop_of(0, 3, 4, 0.5);
    add_values(t, "torch.graph.nodes", 900, 40, 5);
    is_silent(t, "growing-graph");
}

/* ---- threads ---- */
static void threads_for_a_larger_machine(void **state)
{
    (void)state;
    torch_world *t = loop_of(0, 3, 4, 0.5);
    add_values(t, "torch.threads", 4, 32, 2);
    add_fact(t, "torch.set_num_threads", 32, NULL, "/code/train.py", 7);
    add_steps(t->w, 10, 0.8, 0.8, 3); /* they differ, and that is why */
    evaluate(t->w);
    const tare__finding *finding = must_find(t->w, "torch-threads");
    assert_ptr_equal(finding, &t->w->of.findings[0]);
    assert_non_null(strstr(finding->evidence, "torch.set_num_threads(32) is called at /code/train.py:7"));
    must_find(t->w, "step-variance");
    loop_free(t);
    t = loop_of(0, 3, 4, 0.5);
    add_values(t, "torch.threads", 32, 4, 2);
    is_silent(t, "torch-threads");
    t = loop_of(0, 3, 4, 0.5);
    add_values(t, "torch.threads", 32, 32, 2);
    t->w->of.usage.cores_allowed = NAN;
    is_silent(t, "torch-threads");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_that_waits_for_data),
        cmocka_unit_test(what_workers_cannot_hide),
        cmocka_unit_test(a_loader_that_keeps_up),
        cmocka_unit_test(waiting_while_a_gpu_works),
        cmocka_unit_test(steps_that_only_queue),
        cmocka_unit_test(the_first_batch_is_start_up),
        cmocka_unit_test(batches_of_an_evaluation),
        cmocka_unit_test(a_few_steps_say_nothing),
        cmocka_unit_test(one_worker),
        cmocka_unit_test(unpinned_copies),
        cmocka_unit_test(sync_points),
        cmocka_unit_test(small_operators_by_the_graph),
        cmocka_unit_test(small_operators_of_graphs_that_differ),
        cmocka_unit_test(small_operators_as_recorded),
        cmocka_unit_test(checkpoints_in_steps_and_outside),
        cmocka_unit_test(float32_where_a_faster_way_exists),
        cmocka_unit_test(compiled_again_and_again),
        cmocka_unit_test(optimizer_one_by_one),
        cmocka_unit_test(a_profiler_of_its_own),
        cmocka_unit_test(losses_that_are_summed_up),
        cmocka_unit_test(steps_that_are_spent_outside_the_model),
        cmocka_unit_test(loading_is_done_elsewhere_already),
        cmocka_unit_test(workers_that_start_anew),
        cmocka_unit_test(a_loop_that_is_mostly_outside_its_steps),
        cmocka_unit_test(a_rank_that_keeps_others_waiting),
        cmocka_unit_test(losses_that_are_kept),
        cmocka_unit_test(marks_and_counters_forge_no_finding),
        cmocka_unit_test(places_are_shown_as_they_are),
        cmocka_unit_test(graphs_that_grow),
        cmocka_unit_test(threads_for_a_larger_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
