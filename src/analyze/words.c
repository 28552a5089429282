/* words: names of kinds of subjects and metrics and of severities, the same in every output and in rules.
 * Constant; any thread.
 * Must not know output formats. */
#include "analyze.h"

const char *tare__subject_word(uint32_t subject)
{
    static const char *const words[] = {
        [TARE__SUBJECT_SYSTEM] = "system",
        [TARE__SUBJECT_CPU] = "cpu",
        [TARE__SUBJECT_DISK] = "disk",
        [TARE__SUBJECT_NETWORK] = "network",
        [TARE__SUBJECT_CONTAINER] = "container",
        [TARE__SUBJECT_TREE] = "tree",
        [TARE__SUBJECT_PROCESS] = "process",
        [TARE__SUBJECT_THREAD] = "thread",
        [TARE__SUBJECT_SENSOR] = "sensor",
        [TARE__SUBJECT_GPU] = "gpu",
        [TARE__SUBJECT_GPU_PROCESS] = "gpu_process",
        [TARE__SUBJECT_TARE] = "tare",
    };
    return subject < TARE__COUNT_OF(words) ? words[subject] : NULL;
}

const char *tare__metric_kind_word(uint32_t kind)
{
    static const char *const words[] = {
        [TARE__METRIC_GAUGE] = "gauge", [TARE__METRIC_TOTAL] = "total", [TARE__METRIC_PEAK] = "peak"};
    return kind < TARE__COUNT_OF(words) ? words[kind] : NULL;
}

const char *tare__severity_word(tare__severity severity)
{
    return severity >= TARE__CRITICAL ? "critical" : severity == TARE__WARNING ? "warning" : "info";
}
