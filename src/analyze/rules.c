/* rules: the built-in rules, their order, and which of them are symptoms of which. Constant; any thread.
 * A rule is one row here and one function in a rules_*.c beside this file; docs/FINDINGS.md tells each.
 * Must not know how findings are shown. */
#include "rules.h"

const limit_row tare__rule_limits[LIMIT_COUNT] = {
#define ROW(id, value) {#id, value},
    TARE__LIMITS(ROW)
#undef ROW
};

const rule tare__rule_table[] = {
    {"killed-oom", true, tare__rule_killed},
    {"memory-growth", true, tare__rule_memory_growth},
    {"memory-high", true, tare__rule_memory_high},
    {"gpu-memory-errors", true, tare__rule_gpu_errors},
    {"gpu-memory-high", true, tare__rule_gpu_memory},
    {"spans-dropped", true, tare__rule_dropped},
    {"cpu-throttled", false, tare__rule_throttled},
    {"swap", false, tare__rule_swap},
    {"disk-bound", false, tare__rule_disk_bound},
    {"data-loading", false, tare__rule_loading},
    {"gpu-idle-gaps", false, tare__rule_gpu_gaps},
    {"gpu-underused", false, tare__rule_gpu_busy},
    {"threads-oversubscribed", false, tare__rule_crowded},
    {"one-core", false, tare__rule_one_core},
    {"shared-machine", false, tare__rule_shared_machine},
    {"disk-busy", false, tare__rule_disk_busy},
    {"iowait", false, tare__rule_iowait},
    {"cpu-hot", false, tare__rule_cpu_hot},
    {"gpu-hot", false, tare__rule_gpu_hot},
    {"cpu-high", false, tare__rule_cpu_high},
    {"step-variance", false, tare__rule_step_variance},
    {"slow-first-step", false, tare__rule_first_step},
    {"forward", false, tare__rule_forward},
    {"backward", false, tare__rule_backward},
    {"operation", false, tare__rule_operations},
    {"network-errors", false, tare__rule_network_errors},
    {"memory-large", false, tare__rule_memory_large},
    {"ended-by-signal", false, tare__rule_ended_by_signal},
    {"exit-status", false, tare__rule_exit_status},
};
const size_t tare__rule_count = TARE__COUNT_OF(tare__rule_table);

const rule_pair tare__rule_pairs[] = {
    {"killed-oom", "memory-high", true},
    {"killed-oom", "ended-by-signal", true},
    {"killed-oom", "exit-status", true},
    {"killed-oom", "memory-growth", false},
    {"memory-growth", "memory-high", false},
    {"memory-growth", "swap", false},
    {"memory-high", "swap", false},
    {"ended-by-signal", "exit-status", true},
    {"cpu-throttled", "cpu-high", true},
    {"cpu-throttled", "shared-machine", true},
    {"cpu-throttled", "threads-oversubscribed", false},
    {"threads-oversubscribed", "cpu-high", false},
    {"threads-oversubscribed", "shared-machine", true},
    {"disk-bound", "shared-machine", false}, /* what the program can do about it goes before what it cannot */
    {"one-core", "shared-machine", false},
    {"disk-bound", "iowait", false},
    {"disk-bound", "disk-busy", false},
    {"disk-busy", "iowait", false},
    {"swap", "disk-bound", false},
    {"gpu-idle-gaps", "gpu-underused", false},
    {"data-loading", "gpu-underused", false},
    {"data-loading", "gpu-idle-gaps", false},
};
const size_t tare__rule_pair_count = TARE__COUNT_OF(tare__rule_pairs);
