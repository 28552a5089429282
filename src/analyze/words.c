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
    bool known = state > TARE__STATE_UNKNOWN && state < TARE__STATE_COUNT;
    return tare__thread_state_words(known ? state : TARE__STATE_OTHER);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool tare__is_function(const char *name, const char *file, const char *module, const char *const *names, size_t n)
{
    const char *dot = name ? strrchr(name, '.') : NULL;
    for (size_t i = 0; name && file && ends_with(file, module) && i < n; i++)
        if (strcmp(dot ? dot + 1 : name, names[i]) == 0)
            return true;
    return false;
}

bool tare__waits_for_thread(uint32_t state, const char *inner, const char *inner_file)
{
    static const char *const names[] = {"wait", "wait_for", "join", "_wait_for_tstate_lock"};
    return state == TARE__STATE_LOCK &&
           tare__is_function(inner, inner_file, "/threading.py", names, TARE__COUNT_OF(names));
}

const char *tare__wait_phrase(uint32_t state, const char *inner, const char *inner_file)
{
    return tare__waits_for_thread(state, inner, inner_file) ? "waiting for another thread" : tare__state_phrase(state);
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
    const char *directory = of->run.directory;
    size_t n = directory ? strlen(directory) : 0;
    if (!file)
        return "?";
    if (n > 1 && strncmp(file, directory, n) == 0 && file[n] == '/' && !tare__module_path(file, NULL))
        return file + n + 1;
    return tare__base_name(file);
}
