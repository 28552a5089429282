/* session: marks, counters, steps, and starting and ending a recording, as the package offers them.
 * Any thread, attached to the interpreter. Must not know spans. */
#include "core.h"

#include <math.h>

static PyObject *raise_status(int status, const char *what)
{
    if (status == TARE_E_MEMORY)
        return PyErr_NoMemory();
    return PyErr_Format(status == TARE_E_USAGE ? PyExc_ValueError : PyExc_RuntimeError, "%s: %s", what,
                        tare_status_text(status));
}

PyDoc_STRVAR(mark_doc, "mark(name)\n--\n\nAn instant worth seeing on the timeline.\n\n"
                       "    tare.mark(\"checkpoint written\")\n");
static PyObject *mark(PyObject *module, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (!text)
        return NULL;
    tare_mark_name(text);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(counter_doc, "counter(name, value)\n--\n\nA value over time: a loss, a queue's length.\n\n"
                          "    tare.counter(\"loss\", loss.item())\n");
static PyObject *counter(PyObject *module, PyObject *arguments)
{
    const char *name;
    double value;
    if (!PyArg_ParseTuple(arguments, "sd:counter", &name, &value))
        return NULL;
    tare_counter_name(name, value);
    Py_RETURN_NONE;
}

/* NULL: an exception is set. None and NULL are fine: *kept is NULL then. A path is passed on as the file system
 * has it, whatever its bytes are. */
static const char *fact_bytes(PyObject *object, bool is_path, PyObject **kept)
{
    *kept = NULL;
    if (!object || object == Py_None)
        return "";
    *kept = is_path ? PyUnicode_EncodeFSDefault(object)
                    : PyUnicode_AsEncodedString(object, "utf-8", "backslashreplace");
    return *kept ? PyBytes_AS_STRING(*kept) : NULL;
}

PyDoc_STRVAR(fact_doc, "fact(key, value=None, *, text=None, file=None, line=0)\n--\n\n"
                       "Records a fact about the program that findings are based on. Texts have up to 4,000 bytes.");
static PyObject *fact(PyObject *module, PyObject *words, PyObject *named)
{
    static char *keywords[] = {"key", "value", "text", "file", "line", NULL};
    const char *key;
    PyObject *value = Py_None, *text = NULL, *file = NULL, *text_kept, *file_kept = NULL;
    unsigned line = 0;
    if (!PyArg_ParseTupleAndKeywords(words, named, "s|O$OOI:fact", keywords, &key, &value, &text, &file, &line))
        return NULL;
    double number = value == Py_None ? NAN : PyFloat_AsDouble(value);
    if (PyErr_Occurred())
        return NULL;
    bool ready = fact_bytes(text, false, &text_kept) && fact_bytes(file, true, &file_kept);
    if (ready)
        tare__fact_tell(key, file_kept ? PyBytes_AS_STRING(file_kept) : NULL, line, number,
                        text_kept ? PyBytes_AS_STRING(text_kept) : NULL);
    Py_XDECREF(text_kept);
    Py_XDECREF(file_kept);
    if (!ready)
        return NULL;
    Py_RETURN_NONE;
}

static bool read_index(PyObject *object, unsigned long long *index)
{
    *index = PyLong_AsUnsignedLongLong(object);
    if (!PyErr_Occurred())
        return true;
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_SetString(PyExc_ValueError, "a step's index is a whole number of 0 or more");
    return false;
}

#define INDEXED(name, kind, way, call)                        \
    static PyObject *name(PyObject *module, PyObject *object) \
    {                                                         \
        unsigned long long index;                             \
        if (!read_index(object, &index))                      \
            return NULL;                                      \
        tare__torch_steps_reported();                             \
        way(kind, call, index);                               \
        Py_RETURN_NONE;                                       \
    }
INDEXED(step_begin, TARE_KIND_STEP, tare__py_mark_begin, tare_step_begin)
INDEXED(step_next, TARE_KIND_STEP, tare__py_mark_next, tare_step_next)
INDEXED(epoch_begin, TARE_KIND_EPOCH, tare__py_mark_begin, tare_epoch_begin)
INDEXED(epoch_next, TARE_KIND_EPOCH, tare__py_mark_next, tare_epoch_next)

#define PLAIN(name, call)                                      \
    static PyObject *name(PyObject *module, PyObject *nothing) \
    {                                                          \
        call;                                                  \
        Py_RETURN_NONE;                                        \
    }
PLAIN(step_end, tare__py_mark_end(TARE_KIND_STEP, tare_step_end))
PLAIN(epoch_end, tare__py_mark_end(TARE_KIND_EPOCH, tare_epoch_end))
PLAIN(pause_now, tare_pause())
PLAIN(resume_now, tare_resume())

unsigned tare__py_sessions;

PyDoc_STRVAR(
    start_doc,
    "start(output=None, *, max_bytes=0, last_seconds=0, helper=None)\n--\n\n"
    "Records this process without `tare run`: a helper process writes the trace, and samples process and\n"
    "machine as `tare run` does (TARE_INTERVAL and other sampling settings apply; TARE_NO_SAMPLING=1 disables it).\n\n"
    "    tare.start(\"train.tare\")\n"
    "    …\n"
    "    tare.stop()\n");
static PyObject *start(PyObject *module, PyObject *arguments, PyObject *named)
{
    static char *words[] = {"output", "max_bytes", "last_seconds", "helper", NULL};
    const char *output = NULL, *helper = NULL;
    unsigned long long max_bytes = 0;
    double last = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "|z$Kdz:start", words, &output, &max_bytes, &last, &helper))
        return NULL;
    if (!(last >= 0))
        return PyErr_Format(PyExc_ValueError, "last_seconds is 0 or more");
    tare_options options = {.size = sizeof options, .output = output, .helper = helper, .max_bytes = max_bytes,
                            .last_ns = (uint64_t)(last * 1e9)};
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = tare_start(&options);
    Py_END_ALLOW_THREADS
    if (status && status != TARE_E_MEMORY && *tare_start_error())
        return PyErr_Format(status == TARE_E_USAGE ? PyExc_ValueError : PyExc_RuntimeError, "tare.start: %s",
                            tare_start_error());
    if (status)
        return raise_status(status, "tare.start");
    tare__py_sessions++;
    tare__py_introduce();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(stop_doc, "stop()\n--\n\nEnds the recording of tare.start and completes the trace.\n\n    tare.stop()\n");
static PyObject *stop(PyObject *module, PyObject *nothing)
{
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = tare_stop();
    Py_END_ALLOW_THREADS
    if (status)
        return raise_status(status, "tare.stop");
    Py_RETURN_NONE;
}

static PyObject *recording(PyObject *module, PyObject *nothing)
{
    return PyBool_FromLong(tare_recording());
}

static PyObject *output(PyObject *module, PyObject *nothing)
{
    const char *path = tare_output();
    if (!*path)
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(path);
}

static PyObject *thread_name(PyObject *module, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (!text)
        return NULL;
    tare_thread_name(text);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"mark", mark, METH_O, mark_doc},
    {"counter", counter, METH_VARARGS, counter_doc},
    {"fact", (PyCFunction)(void (*)(void))fact, METH_VARARGS | METH_KEYWORDS, fact_doc},
    {"step_begin", step_begin, METH_O, "step_begin(index)\n--\n\nBegins a training loop's iteration.\n\n"
     "A generator may keep a span open that began inside a step. One that began before must not end inside the step:\n"
     "the step ends with it and is not counted.\n\n"
     "    tare.step_begin(0)\n"},
    {"step_next", step_next, METH_O, "step_next(index)\n--\n\nEnds the open step and begins the next one.\n\n"
     "    for index, batch in enumerate(loader):\n        tare.step_next(index)\n"},
    {"step_end", step_end, METH_NOARGS, "step_end()\n--\n\nEnds the open step.\n\n    tare.step_end()\n"},
    {"epoch_begin", epoch_begin, METH_O, "epoch_begin(index)\n--\n\nBegins an epoch.\n\n    tare.epoch_begin(0)\n"},
    {"epoch_next", epoch_next, METH_O, "epoch_next(index)\n--\n\nEnds the open epoch and begins the next one.\n\n"
     "    tare.epoch_next(epoch)\n"},
    {"epoch_end", epoch_end, METH_NOARGS, "epoch_end()\n--\n\nEnds the open epoch.\n\n    tare.epoch_end()\n"},
    {"pause", pause_now, METH_NOARGS, "pause()\n--\n\nRecords nothing until tare.resume().\n\n    tare.pause()\n"},
    {"resume", resume_now, METH_NOARGS, "resume()\n--\n\nRecords again after tare.pause().\n\n    tare.resume()\n"},
    {"recording", recording, METH_NOARGS, "recording()\n--\n\nTrue while events are being kept.\n\n"
     "    if tare.recording():\n        tare.counter(\"loss\", loss.item())\n"},
    {"output", output, METH_NOARGS,
     "output()\n--\n\nThe path of the trace of this process; None when there is none.\n\n"
     "    tare.report(tare.output())\n"},
    {"thread_name", thread_name, METH_O, "thread_name(name)\n--\n\nThis thread's name in the views.\n\n"
     "    tare.thread_name(\"loader\")\n"},
    {"start", (PyCFunction)(void (*)(void))start, METH_VARARGS | METH_KEYWORDS, start_doc},
    {"stop", stop, METH_NOARGS, stop_doc},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_session = {.functions = functions};
