/* lines_trace: before CPython 3.12, lines come from a trace function in C, on every thread; an existing tracer
 * (a debugger, coverage) is called as before.
 * Any thread, with the interpreter's lock. Must not know what is counted. */
#include "lines.h"

#if PY_VERSION_HEX < 0x030C0000

#include <frameobject.h>

/* The tracer a thread had before. */
typedef struct tracer {
    PyObject_HEAD
    Py_tracefunc function;
    PyObject *argument;
} tracer;

static void drop_tracer(PyObject *object)
{
    Py_XDECREF(((tracer *)object)->argument);
    PyObject_Free(object);
}

static PyTypeObject tracer_type = {
    TARE__PY_TYPE("tare._core.TracerBefore", tracer, 0, NULL),
    .tp_dealloc = drop_tracer,
};

static bool on, discovering;
static PyObject *new_thread;  /* called by threading in a new thread */
static PyObject *hook_before; /* the function it called before */

/* ---- events ----------------------------------------------------------------------------------------------- */

/* A generator resumes in the middle of a line, which is not reported again. A new one is at its first line. */
static int line_to_go_on(PyFrameObject *frame, PyCodeObject *code)
{
    if (!(code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)))
        return 0;
    int line = PyFrame_GetLineNumber(frame);
    return line > code->co_firstlineno ? line : 0;
}

static void tell(PyFrameObject *frame, int what)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    tare__py_function *function = tare__py_lines_find((PyObject *)code);
    if (what == PyTrace_CALL) {
        if (!function && discovering)
            function = tare__py_lines_meet((PyObject *)code);
        if (function)
            tare__py_lines_enter(function, line_to_go_on(frame, code));
    } else if (function && what == PyTrace_LINE) {
        tare__py_lines_at(function, PyFrame_GetLineNumber(frame));
    } else if (function) {
        tare__py_lines_leave(function);
    }
    Py_DECREF(code);
}

static int on_trace(PyObject *before, PyFrameObject *frame, int what, PyObject *argument)
{
    int status = 0;
    if (before) { /* first: its time is then not part of the line that begins */
        tracer *to = (tracer *)before;
        Py_INCREF(before);
        status = to->function(to->argument, frame, what, argument);
        Py_DECREF(before);
    }
    if (what == PyTrace_LINE || what == PyTrace_CALL || what == PyTrace_RETURN)
        tell(frame, what);
    return status;
}

/* ---- threads ---------------------------------------------------------------------------------------------- */

static int trace_thread(PyThreadState *thread)
{
    PyObject *before = NULL;
    if (thread->c_tracefunc == on_trace)
        return 0;
    if (thread->c_tracefunc) {
        tracer *made = PyObject_New(tracer, &tracer_type);
        if (!made)
            return -1;
        made->function = thread->c_tracefunc;
        made->argument = thread->c_traceobj;
        Py_XINCREF(made->argument);
        before = (PyObject *)made;
    }
    int status = _PyEval_SetTrace(thread, on_trace, before);
    Py_XDECREF(before);
    return status;
}

static int leave_thread(PyThreadState *thread)
{
    if (thread->c_tracefunc != on_trace)
        return 0;
    tracer *before = (tracer *)thread->c_traceobj;
    Py_XINCREF(before);
    int status = _PyEval_SetTrace(thread, before ? before->function : NULL, before ? before->argument : NULL);
    Py_XDECREF(before);
    return status;
}

static int each_thread(int (*visit)(PyThreadState *))
{
    int status = 0;
    for (PyThreadState *at = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); at; at = PyThreadState_Next(at))
        if (visit(at))
            status = -1;
    return status;
}

/* Is the new thread's tracer for one event, and puts the real one in its place. */
static PyObject *on_new_thread(PyObject *module, PyObject *arguments)
{
    PyObject *set = PySys_GetObject("settrace"); /* borrowed */
    PyObject *before = hook_before ? hook_before : Py_None;
    PyObject *result = set ? PyObject_CallFunctionObjArgs(set, before, NULL) : NULL;
    if (!result)
        return NULL;
    Py_DECREF(result);
    if (on && trace_thread(PyThreadState_Get()))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef new_thread_method = {"on_new_thread", on_new_thread, METH_VARARGS, NULL};

/* By attribute, since threading.settrace is Python, and others could run in the middle of it. */
static int hook_new_threads(PyObject *threading)
{
    PyObject *before = PyObject_GetAttrString(threading, "_trace_hook");
    if (!before)
        return -1;
    if (before == new_thread) {
        Py_DECREF(before);
        return 0;
    }
    Py_XSETREF(hook_before, before);
    return PyObject_SetAttrString(threading, "_trace_hook", new_thread);
}

/* A hook that was set in the meantime belongs to another tool and is kept. */
static int unhook_new_threads(PyObject *threading)
{
    PyObject *now = PyObject_GetAttrString(threading, "_trace_hook");
    int status = now ? 0 : -1;
    if (now == new_thread)
        status = PyObject_SetAttrString(threading, "_trace_hook", hook_before ? hook_before : Py_None);
    Py_XDECREF(now);
    return status;
}

/* ---- on and off ------------------------------------------------------------------------------------------- */

int tare__py_lines_hooks_on(bool discover)
{
    PyObject *threading = PyImport_ImportModule("threading");
    if (!threading)
        return -1;
    discovering = discover;
    int status = 0;
    if (!on) {
        on = true;
        status = hook_new_threads(threading) | each_thread(trace_thread);
    }
    Py_DECREF(threading);
    return status;
}

void tare__py_lines_hooks_off(void)
{
    if (!on)
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *threading = PyImport_ImportModule("threading");
    on = discovering = false;
    if (each_thread(leave_thread) | (threading ? unhook_new_threads(threading) : -1))
        PyErr_WriteUnraisable(new_thread);
    Py_XDECREF(threading);
    PyErr_Restore(type, value, trace);
}

int tare__py_lines_watch(PyObject *code)
{
    /* each event asks for itself */
    return 0;
}

void tare__py_lines_unwatch(PyObject *code)
{
}

int tare__py_lines_hooks_add(void)
{
    new_thread = PyCFunction_New(&new_thread_method, NULL);
    return new_thread && PyType_Ready(&tracer_type) == 0 ? 0 : -1;
}

#else
typedef int tare__py_no_trace; /* a file has something in it */
#endif
