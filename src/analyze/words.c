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
    size_t length = strlen(file);
    if (file[0] != '/' && file[0] != '<' && length > 3 && strcmp(file + length - 3, ".py") == 0)
        return strncmp(file, "./", 2) == 0 ? file + 2 : file; /* relative as the program knows it (cProfile, exec) */
    return tare__base_name(file);
}

/* ---- names of C++ functions ------------------------------------------------------------------------------- */
/* The length of the group in brackets that starts here; nested groups belong to it. */
static size_t group_length(const char *at)
{
    size_t n = 0, depth = 0;
    do {
        bool arrow = n > 0 && at[n] == '>' && at[n - 1] == '-';
        depth += at[n] == '(' || at[n] == '<' || at[n] == '{';
        depth -= (at[n] == ')' || at[n] == '>' || at[n] == '}') && !arrow;
        n++;
    } while (depth > 0 && at[n]);
    return n;
}

/* The length of "operator" with its symbols, "operator<<"; 0: something else starts here. */
static size_t operator_length(const char *name, const char *at)
{
    static const char *const symbols[] = {"()", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"};
    const size_t n = sizeof "operator" - 1;
    if (strncmp(at, "operator", n) != 0 || (at > name && at[-1] != ':' && at[-1] != ' '))
        return 0;
    for (size_t i = 0; i < TARE__COUNT_OF(symbols); i++)
        if (strncmp(at + n, symbols[i], strlen(symbols[i])) == 0)
            return n + strlen(symbols[i]);
    return 0;
}

static void append(char *out, size_t bytes, size_t *length, const char *text, size_t n)
{
    n = *length + n < bytes ? n : bytes - 1 - *length;
    memcpy(out + *length, text, n);
    out[*length += n] = '\0';
}

/* Without the type of the result: behind the last space, or the words of "operator unsigned long". */
static const char *without_result(char *text)
{
    static const char anonymous[] = "(anonymous namespace)";
    const char *from = text;
    for (const char *at = text; *at; at++) {
        if (strncmp(at, anonymous, sizeof anonymous - 1) == 0)
            at += sizeof anonymous - 2;
        else if (strncmp(at, "operator ", 9) == 0 && (at == text || at[-1] == ':' || at[-1] == ' '))
            break;
        else if (*at == ' ')
            from = at + 1;
    }
    return from;
}

const char *tare__short_function(const char *name, char *out, size_t bytes)
{
    static const char anonymous[] = "(anonymous namespace)";
    const char *brace = strchr(name, '(');
    size_t length = 0, operator_is;
    if (!brace || (brace == name && strncmp(name, anonymous, sizeof anonymous - 1) != 0) || name[0] == '<')
        return name;
    out[0] = '\0';
    for (const char *at = name; *at && strncmp(at, " [clone", 7) != 0;) {
        if (strncmp(at, anonymous, sizeof anonymous - 1) == 0) {
            append(out, bytes, &length, anonymous, sizeof anonymous - 1);
            at += sizeof anonymous - 1;
        } else if ((operator_is = operator_length(name, at)) > 0) {
            append(out, bytes, &length, at, operator_is);
            at += operator_is;
        } else if (*at == '(' || *at == '<' || *at == '{') {
            if (*at == '{')
                append(out, bytes, &length, "{lambda}", strncmp(at, "{lambda", 7) == 0 ? 8 : 0);
            bool parameters = *at == '(';
            at += group_length(at);
            while (parameters && (strncmp(at, " const", 6) == 0 || strncmp(at, " &", 2) == 0))
                at += at[1] == '&' ? 2 + (at[2] == '&') : 6;
        } else {
            append(out, bytes, &length, at++, 1);
        }
    }
    while (length > 0 && out[length - 1] == ' ')
        out[--length] = '\0';
    const char *from = without_result(out);
    return *from ? from : name;
}
