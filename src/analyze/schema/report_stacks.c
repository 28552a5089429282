/* report_stacks: tables of a report: sampled threads, functions, lines, packages, the call tree.
 * Constant; any thread.
 * Must not know output formats. */
#include "define.h"

/* ---- time by state ------------------------------------------------------------------------------------ */
#define STATE(named, state, what, ...) N(named, of.ns[TARE__STATE_##state], NS, NS, what, __VA_ARGS__)
#define STATES(whole)                                                                                  \
    STATE("cpu_ns", RUNNING, "of " whole ": on a CPU", .label = "CPU"),                                \
        STATE("runnable_ns", RUNNABLE, "of " whole ": ready, waiting for a CPU", HIDDEN),              \
        STATE("gil_ns", GIL, "of " whole ": waiting for the GIL", .label = "GIL", HIDDEN),             \
        STATE("lock_ns", LOCK, "of " whole ": waiting for a lock or another thread", HIDDEN),          \
        STATE("disk_ns", DISK, "of " whole ": waiting for a disk", HIDDEN),                            \
        STATE("network_ns", NETWORK, "of " whole ": waiting for the network", HIDDEN),                 \
        STATE("child_ns", CHILD, "of " whole ": waiting for the end of a process", HIDDEN),            \
        STATE("pipe_ns", PIPE, "of " whole ": waiting for data of another process", HIDDEN),           \
        STATE("gpu_ns", GPU, "of " whole ": waiting for a GPU", .label = "GPU", HIDDEN),               \
        STATE("sleep_ns", SLEEP, "of " whole ": sleeping", HIDDEN),                                    \
        STATE("other_ns", OTHER, "of " whole ": in any other system call", HIDDEN)

/* On pages all waiting is one column, with the most frequent state below it. */
static uint32_t longest_wait(const tare__state_times *of)
{
    uint32_t longest = TARE__STATE_RUNNABLE;
    for (uint32_t i = TARE__STATE_RUNNABLE; i < TARE__STATE_COUNT; i++)
        longest = of->ns[i] > of->ns[longest] ? i : longest;
    return longest;
}

static tare__value waits(const tare__state_times *of)
{
    double sum = 0;
    for (uint32_t i = TARE__STATE_RUNNABLE; i < TARE__STATE_COUNT; i++)
        sum += of->ns[i];
    return tare__value_whole(llround(sum), true);
}

static tare__value mostly(const tare__state_times *of)
{
    uint32_t wait = longest_wait(of), most = of->ns[TARE__STATE_RUNNING] >= of->ns[wait] ? TARE__STATE_RUNNING : wait;
    return of->ns[most] > 0 ? tare__value_text(tare__state_word(most)) : (tare__value){.type = TARE__TYPE_ABSENT};
}
#define WAITS(prefix, type)                          \
    MADE(prefix##_waits, type, waits(&row->of))      \
    MADE(prefix##_mostly, type, mostly(&row->of))
WAITS(thread, tare__sampled_thread_row)
WAITS(function, tare__function_row)
WAITS(line, tare__line_row)
WAITS(package, tare__package_row)
#define WAITING(prefix, whole)                                                                                       \
    M("waiting_ns", SIGNED, NS, prefix##_waits, "of " whole ": not on a CPU; the sum of the columns from "           \
      "`runnable_ns` to `other_ns`", .label = "Waiting"),                                                            \
        M("state", TEXT, NOTHING, prefix##_mostly,                                                                   \
          "state of most of it: `running`, `runnable`, `gil`, `lock`, `disk`, `network`, `child`, `pipe`, `gpu`, "   \
          "`sleep`, `other`", .absent = "no time", .label = "Mostly")

#define UNKNOWN "not known"
#define NO_LEADING "no thread leads"

/* ---- threads --------------------------------------------------------------------------------------------- */
#define R tare__sampled_thread_row
static const tare__schema_column sampled_thread_columns[] = {
    C(name, TEXT, NOTHING, "name of the thread", .key = true, .label = "Thread", .absent = UNKNOWN),
    C(pid, I64_OR_0, NOTHING, "process id", .key = true, .absent = UNKNOWN),
    C(tid, I64_OR_0, NOTHING, "thread id", .key = true, .absent = UNKNOWN),
    C(process, ROW, NOTHING, "its process; null: the process is not in that table", .table = &tare__table_processes,
      NOT_IN_PAGE),
    C(main, BOOL, NOTHING, "the first thread of its process"),
    C(leading, BOOL, NOTHING,
      "the thread whose wall time is the time of the program: the main thread of the first process, or the thread that "
      "works while that one waits for it"),
    C(samples, U64, COUNT, "samples"),
    C(torn, U64, COUNT, "of these: without a stack, because it changed while it was read", HIDDEN),
    C(from_ns, NS, NS, "begin of the time that was sampled", NOT_IN_PAGE),
    C(to_ns, NS, NS, "end of the time that was sampled", NOT_IN_PAGE),
    C(wall_ns, NS, NS, "time that the samples stand for"),
    STATES("`wall_ns`"),
    WAITING(thread, "`wall_ns`"),
    C(active_ns, NS, NS,
      "`wall_ns` of the leading thread; of another thread `cpu_ns`, `runnable_ns`, `gil_ns` and `disk_ns`: a thread "
      "that waits for work is not active", HIDDEN),
    C(no_stack_ns, NS, NS, "of `wall_ns`: in samples without a stack", HIDDEN),
    C(gc_ns, NS, NS, "of `wall_ns`: in samples during a garbage collection", .label = "Garbage collection"),
};
#undef R
const tare__table tare__table_sampled_threads =
    ROWS_OF(sampled_threads, sampled_thread_columns, tare__sampled_thread_row,
            "a thread whose stack was sampled, the leading one first, then the most active first "
            "([STACKS.md](STACKS.md))", .label = "Threads by state");

/* ---- functions ------------------------------------------------------------------------------------------- */
MADE(function_kind, tare__function_row, tare__value_text(tare__frame_kind_word(row->kind)))
#define R tare__function_row
static const tare__schema_column function_columns[] = {
    C(function, TEXT, NOTHING, "qualified name; `(no stack)`: samples without a stack; `(other)`: smaller ones, merged",
      .key = true, .label = "Function"),
    C(file, TEXT, NOTHING, "source file, or library of a native function", .key = true, .absent = UNKNOWN),
    C(line, U32_OR_0, NOTHING, "first line", .key = true, UNDER, .between = ":", .absent = UNKNOWN),
    M("kind", TEXT, NOTHING, function_kind, "`python`, `native`, `kernel` or `note` (garbage collection)", HIDDEN),
    C(package, TEXT, NOTHING, "its package, as in `packages`", .absent = "in no package"),
    C(own, BOOL, NOTHING, "code of the program itself, not of an installed package or the standard library", HIDDEN),
    C(samples, U64, COUNT, "samples in which it is the innermost frame"),
    C(self_ns, NS, NS, "time in which it is the innermost frame"),
    C(self_share, DOUBLE, SHARE, "active part of `self_ns`, of the active time of all threads", .bar = true),
    C(total_ns, NS, NS, "time in which it is on the stack, recursion counted once", .absent = "merged"),
    C(total_share, DOUBLE, SHARE, "active part of `total_ns`, of the active time of all threads", .absent = "merged",
      HIDDEN),
    STATES("`self_ns`"),
    WAITING(function, "`self_ns`"),
    C(main_ns, NS, NS, "of `self_ns`: of the leading thread", HIDDEN),
    C(active_ns, NS, NS, "active part of `self_ns`", HIDDEN),
};
#undef R
const tare__table tare__table_functions = ROWS_OF(functions, function_columns, tare__function_row,
    "a function in sampled stacks, largest active self time first ([STACKS.md](STACKS.md))");

/* ---- lines ------------------------------------------------------------------------------------------------- */
#define R tare__line_row
#define LINE_TIME "`own_ns`, or `self_ns` where that is null"
static const tare__schema_column line_columns[] = {
    C(file, TEXT, NOTHING, "source file", .key = true, .absent = UNKNOWN),
    C(line, U32_OR_0, NOTHING, "line", .key = true, UNDER, .between = ":", .absent = UNKNOWN),
    C(function, TEXT, NOTHING, "qualified name of its function", .key = true),
    C(package, TEXT, NOTHING, "its package, as in `packages`", .absent = "in no package"),
    C(own, BOOL, NOTHING, "code of the program itself, as of functions", HIDDEN),
    C(samples, U64, COUNT, "samples in which it is the innermost line; of own code, the innermost line of own code"),
    C(self_ns, NS, NS, "time in which it is the innermost line of Python code, native code that it calls included"),
    C(own_ns, NS, NS,
      "time in which it is the innermost line of own code, whatever it calls in libraries; null: not own code",
      .label = "Own code", .absent = "not own code"),
    C(total_ns, NS, NS, "time in which it is on the stack, recursion counted once"),
    C(share, DOUBLE, SHARE, "active part of " LINE_TIME ", of the active time of all threads", .bar = true),
    C(main_ns, NS, NS, "of " LINE_TIME ": of the leading thread", HIDDEN),
    C(main_share, DOUBLE, SHARE, "`main_ns` of the wall time of the leading thread", .absent = NO_LEADING),
    STATES(LINE_TIME),
    WAITING(line, LINE_TIME),
    C(active_ns, NS, NS, "active part of " LINE_TIME, HIDDEN),
    C(inner, TEXT, NOTHING, "innermost function of most of `own_ns`; null: the line's own function, or not own code",
      .label = "In", .absent = "the line itself"),
    C(inner_file, TEXT, NOTHING, "its file", HIDDEN),
    C(inner_line, U32_OR_0, NOTHING, "its first line", HIDDEN),
    C(inner_ns, NS, NS, "of `own_ns`: in it", HIDDEN),
};
#undef R
const tare__table tare__table_lines = ROWS_OF(lines, line_columns, tare__line_row,
    "a line of Python code in sampled stacks, largest active time first; at most 4000 lines ([STACKS.md](STACKS.md))");

/* ---- lines by span ------------------------------------------------------------------------------------------- */
WAITS(span_line, tare__span_line_row)
MADE(span_line_kind, tare__span_line_row, tare__value_text(tare__span_kind_word(row->kind)))
#define R tare__span_line_row
static const tare__schema_column span_line_columns[] = {
    C(span, TEXT, NOTHING, "name of the spans", .key = true, .label = "Span"),
    M("kind", TEXT, NOTHING, span_line_kind, "`span`, `step`, `epoch` or `phase`", HIDDEN),
    C(file, TEXT, NOTHING, "source file", .key = true, .absent = UNKNOWN),
    C(line, U32_OR_0, NOTHING, "line", .key = true, UNDER, .between = ":", .absent = UNKNOWN),
    C(function, TEXT, NOTHING, "qualified name of its function", .key = true),
    C(own, BOOL, NOTHING, "code of the program itself, as of functions", HIDDEN),
    C(samples, U64, COUNT, "samples that count for it"),
    C(span_ns, NS, NS, "sampled time inside spans of this name, of any thread, spans inside them included"),
    N("time_ns", ns, NS, NS,
      "of `span_ns`: the line is the innermost line of own code; in spans with hardly any own code, the innermost line",
      .label = "Time"),
    C(share, DOUBLE, SHARE, "`time_ns` of `span_ns`", .bar = true),
    STATES("`time_ns`"),
    WAITING(span_line, "`time_ns`"),
    C(inner, TEXT, NOTHING,
      "innermost function of most of it; null: the line's own function, or another one of own code", .label = "In",
      .absent = "the line itself"),
};
#undef R
const tare__table tare__table_span_lines = ROWS_OF(span_lines, span_line_columns, tare__span_line_row,
    "a line that takes time inside spans of a name, the longest spans first; at most 10 lines of each name "
    "([STACKS.md](STACKS.md))", .label = "Lines by span");

/* ---- packages ------------------------------------------------------------------------------------------------ */
#define R tare__package_row
static const tare__schema_column package_columns[] = {
    C(package, TEXT, NOTHING,
      "top-level name of an installed package or of a module of the standard library; `your code`: the program itself; "
      "the name of a library; `garbage collection`", .key = true, .label = "Package"),
    C(kind, TEXT, NOTHING, "`own`, `standard library`, `package`, `native` or `note`"),
    C(samples, U64, COUNT, "samples that count as its self time"),
    C(self_ns, NS, NS,
      "time in which it has the innermost frame; the interpreter and libraries outside of packages count as their "
      "caller"),
    C(share, DOUBLE, SHARE, "active part of `self_ns`, of the active time of all threads", .bar = true),
    C(total_ns, NS, NS, "time in which it is on the stack"),
    STATES("`self_ns`"),
    WAITING(package, "`self_ns`"),
    C(main_ns, NS, NS, "of `self_ns`: of the leading thread", HIDDEN),
    C(main_share, DOUBLE, SHARE, "`main_ns` of the wall time of the leading thread", .absent = NO_LEADING),
    C(active_ns, NS, NS, "active part of `self_ns`", HIDDEN),
};
#undef R
const tare__table tare__table_packages = ROWS_OF(packages, package_columns, tare__package_row,
    "a package in sampled stacks, largest active self time first ([STACKS.md](STACKS.md))");

/* ---- imports ------------------------------------------------------------------------------------------------ */
#define R tare__sampled_import_row
static const tare__schema_column sampled_import_columns[] = {
    C(module, TEXT, NOTHING, "name of the module; of the program itself, the name of its file", .key = true,
      .label = "Module"),
    C(file, TEXT, NOTHING, "its source file", .key = true),
    C(package, TEXT, NOTHING, "its package, as in `packages`", .absent = "in no package"),
    C(samples, U64, COUNT, "samples in which it is the innermost import"),
    C(self_ns, NS, NS,
      "time in which it is the innermost import: its own code with what that calls, finding and reading the modules "
      "that it imports, and its extension modules"),
    C(total_ns, NS, NS, "time of its import, with the modules that it imports"),
};
#undef R
const tare__table tare__table_sampled_imports = ROWS_OF(sampled_imports, sampled_import_columns,
    tare__sampled_import_row,
    "a Python module that was imported while stacks were sampled, the longest import first; at most 1000 "
    "([STACKS.md](STACKS.md))", .label = "Imports by stack samples");

/* ---- call tree --------------------------------------------------------------------------------------------------- */
static const char *const node_words[] = {NULL, "process", "thread", "frame", "other", "no_stack"};
MADE(node_what, tare__stack_node, tare__value_text(WORD(node_words, row->what)))
MADE(node_kind, tare__stack_node, tare__value_text(tare__frame_kind_word(row->kind)))
static tare__value node_id(tare__cells *cells, const void *row, size_t index)
{
    (void)cells;
    (void)row;
    return tare__value_count(index, true);
}

#define R tare__stack_node
static const tare__schema_column stack_columns[] = {
    M("id", COUNT, NOTHING, node_id, "number of the row, from 0", .key = true),
    C(parent, ROW, NOTHING, "row of its caller; null of a process", .table = &tare__table_stacks),
    C(depth, U32, COUNT, "0 of a process, 1 of a thread"),
    M("what", TEXT, NOTHING, node_what,
      "`process`, `thread`, `frame`; `other`: small rows of its parent, merged; `no_stack`: samples without a stack"),
    C(name, TEXT, NOTHING, "function, thread or process", .key = true),
    C(file, TEXT, NOTHING, "source file, or library of a native function"),
    C(line, U32_OR_0, NOTHING, "line that was executed"),
    C(first_line, U32_OR_0, NOTHING, "first line of the function"),
    M("kind", TEXT, NOTHING, node_kind, "of a frame, as in `functions`"),
    C(package, TEXT, NOTHING, "its package"),
    C(own, BOOL, NOTHING, "code of the program itself"),
    C(thread, ROW, NOTHING, "its thread; null of a process", .table = &tare__table_sampled_threads),
    C(samples, U64, COUNT, "samples in which it is the innermost frame"),
    C(total_ns, NS, NS, "time of it and of all rows below"),
    C(total_cpu_ns, NS, NS, "of `total_ns`: on a CPU"),
    C(active_ns, NS, NS, "active part of `total_ns`"),
    C(self_ns, NS, NS, "time in which it is the innermost frame"),
    STATES("`self_ns`"),
};
#undef R
const tare__table tare__table_stacks = {
    .name = "stacks",
    .shape = TARE__SHAPE_ROWS,
    .meaning = "a node of the call tree: a process, a thread, a function at a line, depth first; at most 20000 "
               "([STACKS.md](STACKS.md))",
    .columns = stack_columns,
    .n_columns = TARE__COUNT_OF(stack_columns),
    .row_bytes = sizeof(tare__stack_node),
    .at = offsetof(tare__analysis, stacks.nodes),
    .count_at = offsetof(tare__analysis, stacks.n),
    NOT_IN_PAGE};
