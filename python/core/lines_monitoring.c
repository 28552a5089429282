/* lines_monitoring: from CPython 3.12 on, lines come from sys.monitoring: events of the watched code objects only.
 * Any thread, with the interpreter's lock. Must not know what is counted. */
#include "lines.h"

#if PY_VERSION_HEX >= 0x030C0000

#include <stdlib.h>

static PyObject *monitoring, *disable;
static int tool = -1;     /* -1: the hooks are off */
static bool discovering;        /* every function that begins is reported, once */
static bool reported_to_stop; /* some code was disabled since all events were last enabled */

/* ---- events ----------------------------------------------------------------------------------------------- */

static inline PyObject *nothing(void)
{
    Py_RETURN_NONE;
}

static PyObject *not_wanted(void)
{
    if (!discovering)
        return nothing();
    reported_to_stop = true;
    return Py_NewRef(disable);
}

static PyObject *on_line(PyObject *module, PyObject *const *arguments, Py_ssize_t n)
{
    tare__py_function *function = n == 2 ? tare__py_lines_find(arguments[0]) : NULL;
    long line = function ? PyLong_AsLong(arguments[1]) : 0;
    if (line > 0 && line <= INT32_MAX)
        tare__py_lines_at(function, (int)line);
    return nothing();
}

static PyObject *on_start(PyObject *module, PyObject *const *arguments, Py_ssize_t n)
{
    tare__py_function *function = n == 2 ? tare__py_lines_find(arguments[0]) : NULL;
    if (!function && (!discovering || !(function = tare__py_lines_meet(arguments[0]))))
        return not_wanted();
    tare__py_lines_enter(function, 0);
    return nothing();
}

/* The line at which a generator resumes is not reported as an event. Finding it takes a scan of the code: done once
 * for each place. */
static int line_at(tare__py_function *function, PyObject *offset)
{
    long at = PyLong_AsLong(offset) / 2;
    Py_ssize_t units = Py_SIZE(function->code);
    if (at < 0 || at >= units)
        return 0;
    if (!function->line_of && !(function->line_of = calloc((size_t)units, sizeof *function->line_of)))
        return 0;
    int *line = &function->line_of[at];
    if (*line == 0)
        *line = PyCode_Addr2Line((PyCodeObject *)function->code, (int)at * 2);
    return *line > 0 ? *line : 0;
}

static PyObject *on_resume(PyObject *module, PyObject *const *arguments, Py_ssize_t n)
{
    tare__py_function *function = n >= 2 ? tare__py_lines_find(arguments[0]) : NULL;
    if (!function && (!discovering || !(function = tare__py_lines_meet(arguments[0]))))
        return not_wanted();
    tare__py_lines_enter(function, line_at(function, arguments[1]));
    return nothing();
}

static PyObject *on_throw(PyObject *module, PyObject *const *arguments, Py_ssize_t n)
{
    tare__py_function *function = n >= 2 ? tare__py_lines_find(arguments[0]) : NULL;
    if (function)
        tare__py_lines_enter(function, line_at(function, arguments[1]));
    return nothing();
}

static PyObject *on_leave(PyObject *module, PyObject *const *arguments, Py_ssize_t n)
{
    tare__py_function *function = n >= 1 ? tare__py_lines_find(arguments[0]) : NULL;
    if (function)
        tare__py_lines_leave(function);
    return nothing();
}

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL

enum { WATCHED, BEGINNING, EVERYWHERE, SETS }; /* EVERYWHERE: available for all code only; fires on exceptions */

static struct {
    const char *event;
    int set;
    PyMethodDef how;
    long bit;
} hooks[] = {
    {"LINE", WATCHED, {"on_line", FAST(on_line)}, 0},
    {"PY_START", BEGINNING, {"on_start", FAST(on_start)}, 0},
    {"PY_RESUME", BEGINNING, {"on_resume", FAST(on_resume)}, 0},
    {"PY_RETURN", WATCHED, {"on_return", FAST(on_leave)}, 0},
    {"PY_YIELD", WATCHED, {"on_yield", FAST(on_leave)}, 0},
    {"PY_THROW", EVERYWHERE, {"on_throw", FAST(on_throw)}, 0},
    {"PY_UNWIND", EVERYWHERE, {"on_unwind", FAST(on_leave)}, 0},
};
#define HOOKS (sizeof hooks / sizeof *hooks)
static long events_of[SETS];

/* ---- on and off ------------------------------------------------------------------------------------------- */

static int done(PyObject *result)
{
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* The interpreter has six tool numbers: 0 to 2 and 5 are reserved for debuggers, coverage, profilers and optimizers,
 * so these are tried last. */
static int take_tool(void)
{
    static const int order[] = {4, 3, 5, 2, 1, 0};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (done(PyObject_CallMethod(monitoring, "use_tool_id", "is", order[i], "tare")) == 0) {
            tool = order[i];
            return 0;
        }
        if (!PyErr_ExceptionMatches(PyExc_ValueError))
            return -1;
        PyErr_Clear();
    }
    PyErr_SetString(PyExc_RuntimeError, "lines cannot be profiled: other tools have taken all of sys.monitoring");
    return -1;
}

static int set_callbacks(bool on)
{
    for (size_t i = 0; i < HOOKS; i++) {
        PyObject *callback = on ? PyCFunction_New(&hooks[i].how, NULL) : Py_NewRef(Py_None);
        if (!callback ||
            done(PyObject_CallMethod(monitoring, "register_callback", "ilN", tool, hooks[i].bit, callback)))
            return -1;
    }
    return 0;
}

static int set_events(long events)
{
    return done(PyObject_CallMethod(monitoring, "set_events", "il", tool, events));
}

int tare__py_lines_hooks_on(bool discover)
{
    if (tool < 0 && (take_tool() || set_callbacks(true)))
        return -1;
    discovering = discover;
    if (set_events(events_of[EVERYWHERE] | (discover ? events_of[BEGINNING] : 0)))
        return -1;
    if (!reported_to_stop)
        return 0;
    reported_to_stop = false;
    return done(PyObject_CallMethod(monitoring, "restart_events", NULL));
}

void tare__py_lines_hooks_off(void)
{
    if (tool < 0)
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    discovering = false;
    if (set_events(0) || set_callbacks(false) || done(PyObject_CallMethod(monitoring, "free_tool_id", "i", tool)))
        PyErr_WriteUnraisable(monitoring);
    tool = -1;
    PyErr_Restore(type, value, trace);
}

int tare__py_lines_watch(PyObject *code)
{
    return done(PyObject_CallMethod(monitoring, "set_local_events", "iOl", tool, code,
                                    events_of[WATCHED] | events_of[BEGINNING]));
}

void tare__py_lines_unwatch(PyObject *code)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (tool >= 0 && done(PyObject_CallMethod(monitoring, "set_local_events", "iOi", tool, code, 0)))
        PyErr_WriteUnraisable(code);
    PyErr_Restore(type, value, trace);
}

static long bit_of(PyObject *events, const char *name)
{
    PyObject *value = PyObject_GetAttrString(events, name);
    long bit = value ? PyLong_AsLong(value) : -1;
    Py_XDECREF(value);
    return bit;
}

int tare__py_lines_hooks_add(void)
{
    monitoring = PySys_GetObject("monitoring"); /* borrowed */
    if (!monitoring) {
        PyErr_SetString(PyExc_ImportError, "this interpreter has no sys.monitoring");
        return -1;
    }
    Py_INCREF(monitoring);
    disable = PyObject_GetAttrString(monitoring, "DISABLE");
    PyObject *events = disable ? PyObject_GetAttrString(monitoring, "events") : NULL;
    for (size_t i = 0; events && i < HOOKS; i++) {
        hooks[i].bit = bit_of(events, hooks[i].event);
        if (hooks[i].bit < 0)
            Py_CLEAR(events);
        else
            events_of[hooks[i].set] |= hooks[i].bit;
    }
    Py_XDECREF(events);
    return events ? 0 : -1;
}

#else
typedef int tare__py_no_monitoring; /* a file has something in it */
#endif
