/* rules: the built-in rules, their order, and which of them are symptoms of which. Constant; any thread.
 * A rule is one row of TARE__RULES and one function in a rules_*.c beside this file; docs/FINDINGS.md describes each.
 * Must not know how findings are shown. */
#include <math.h>
#include <string.h>

#include "rules.h"

const limit_row tare__rule_limits[LIMIT_COUNT] = {
#define ROW(id, value) {#id, value},
    TARE__LIMITS(ROW)
#undef ROW
};

double tare__limit_of(const char *name)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        if (strcmp(tare__rule_limits[i].name, name) == 0)
            return tare__rule_limits[i].value;
    return NAN;
}

const rule tare__rule_table[] = {
#define ROW(id, endangers, whole, function) {id, endangers, whole, tare__rule_##function},
    TARE__RULES(ROW)
#undef ROW
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
    {"startup", "slow-first-step", false},
    {"cpu-throttled", "cpu-high", true},
    {"cpu-throttled", "shared-machine", true},
    {"cpu-throttled", "threads-oversubscribed", false},
    {"threads-oversubscribed", "cpu-high", false},
    {"threads-oversubscribed", "shared-machine", true},
    {"hot-code", "one-core", false}, /* the line is more specific */
    {"hot-code", "cpu-high", false},
    {"hot-code", "shared-machine", false},
    {"gil", "one-core", true}, /* several threads, one of which runs at a time */
    {"gil", "hot-code", false},
    {"disk-bound", "shared-machine", false}, /* causes that the program can fix come first */
    {"one-core", "shared-machine", false},
    {"disk-bound", "iowait", false},
    {"disk-bound", "disk-busy", false},
    {"disk-busy", "iowait", false},
    {"swap", "disk-bound", false},
    {"gpu-idle-gaps", "gpu-underused", false},
    {"data-loading", "gpu-underused", false},
    {"data-loading", "gpu-idle-gaps", false},
    {"kept-losses", "memory-growth", false},
    {"growing-graph", "memory-growth", false},
    {"loader-bound", "data-loading", true},
    {"loader-bound", "single-worker", true},
    {"loader-bound", "gpu-underused", false},
    {"loader-bound", "gpu-idle-gaps", false},
    {"loader-bound", "one-core", false},
    {"loader-bound", "operation", false},
    {"loader-bound", "step-variance", false},
    {"loader-bound", "shared-machine", false},
    {"worker-restarts", "operation", false},
    {"worker-restarts", "shared-machine", false},
    {"outside-model", "operation", false},
    {"outside-model", "shared-machine", false},
    {"outside-model", "one-core", false},
    {"outside-steps", "operation", false},
    {"outside-steps", "shared-machine", false},
    {"outside-steps", "one-core", false},
    {"sync-points", "operation", false},
    {"sync-points", "gpu-underused", false},
    {"sync-points", "gpu-idle-gaps", false},
    {"small-operators", "one-core", false},
    {"small-operators", "operation", false},
    {"small-operators", "step-variance", false},
    {"small-operators", "shared-machine", false},
    {"recompiles", "step-variance", false},
    {"checkpoints", "step-variance", false},
    {"checkpoints", "operation", false},
    {"checkpoints", "disk-bound", false},
    {"torch-threads", "threads-oversubscribed", false},
    {"torch-threads", "step-variance", false},
    {"torch-threads", "operation", false},
    {"torch-threads", "shared-machine", false},
    {"torch-threads", "one-core", false},
    {"torch-threads", "cpu-high", false},
};
const size_t tare__rule_pair_count = TARE__COUNT_OF(tare__rule_pairs);
