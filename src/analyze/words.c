/* words: names of kinds of subjects and metrics and of severities, the same in every output and in rules.
 * Constant; any thread.
 * Must not know output formats. */
#include "analyze.h"

#include <string.h>

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

const char *tare__state_word(uint32_t state)
{
    static const char *const words[TARE__STATE_COUNT] = {
        "other", "running", "runnable", "gil", "lock", "disk", "network", "child", "pipe", "gpu", "sleep", "other"};
    return words[state < TARE__STATE_COUNT ? state : TARE__STATE_OTHER];
}

const char *tare__state_phrase(uint32_t state)
{
    static const char *const phrases[TARE__STATE_COUNT] = {
        [TARE__STATE_UNKNOWN] = "waiting",
        [TARE__STATE_RUNNING] = "running",
        [TARE__STATE_RUNNABLE] = "waiting for a CPU",
        [TARE__STATE_GIL] = "waiting for the GIL",
        [TARE__STATE_LOCK] = "waiting for a lock",
        [TARE__STATE_DISK] = "waiting for a disk",
        [TARE__STATE_NETWORK] = "waiting for the network",
        [TARE__STATE_CHILD] = "waiting for a process",
        [TARE__STATE_PIPE] = "waiting for a pipe",
        [TARE__STATE_GPU] = "waiting for a GPU",
        [TARE__STATE_SLEEP] = "sleeping",
        [TARE__STATE_OTHER] = "waiting",
    };
    return phrases[state < TARE__STATE_COUNT ? state : TARE__STATE_OTHER];
}

const char *tare__frame_kind_word(uint32_t kind)
{
    static const char *const words[] = {[TARE__FRAME_PYTHON] = "python",
                                        [TARE__FRAME_NATIVE] = "native",
                                        [TARE__FRAME_KERNEL] = "kernel",
                                        [TARE__FRAME_NOTE] = "note"};
    return kind < TARE__COUNT_OF(words) ? words[kind] : NULL;
}

const char *tare__source_name(const tare__analysis *of, const char *file)
{
    const char *directory = of->run.directory, *slash;
    size_t n = directory ? strlen(directory) : 0;
    if (!file)
        return "?";
    if (n > 1 && strncmp(file, directory, n) == 0 && file[n] == '/' && !strstr(file, "/site-packages/"))
        return file + n + 1;
    slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}
