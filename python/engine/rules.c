/* rules: what the engine's rules decide, for what the package measures itself: Python states no thresholds.
 * Any thread, attached to the interpreter. Must not know what was measured. */
#include "module.h"

#include <math.h>
#include <stdbool.h>

#include "analyze/analyze.h"

PyDoc_STRVAR(phase_doc, "phase_of(name)\n--\n\n"
                        "'loading', 'forward' or 'backward', as the findings classify a span of this name; None: it\n"
                        "does not tell.");
static PyObject *phase_of(PyObject *module, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (!text)
        return NULL;
    const char *phase = tare__phase_of_name(text, TARE_KIND_SPAN);
    if (!phase)
        Py_RETURN_NONE;
    return PyUnicode_FromString(phase);
}

PyDoc_STRVAR(limit_doc, "limit(name)\n--\n\n"
                        "A threshold of the rules by its name in docs/FINDINGS.md: times in ns, memory in bytes,\n"
                        "shares from 0 to 1. KeyError if there is none of this name.");
static PyObject *limit_of(PyObject *module, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (!text)
        return NULL;
    double value = tare__limit_of(text);
    if (isnan(value)) {
        PyErr_SetObject(PyExc_KeyError, name);
        return NULL;
    }
    return PyFloat_FromDouble(value);
}

PyDoc_STRVAR(uneven_doc, "uneven(count, fastest, p50, p95, slowest)\n--\n\n"
                         "Whether durations in ns differ so much that it costs time, as the finding step-variance\n"
                         "decides. NaN: unknown; p50 is then the fastest that is known, and p95 the slowest.");
static PyObject *is_uneven(PyObject *module, PyObject *arguments)
{
    tare__evenness of = {.excess = NAN};
    if (!PyArg_ParseTuple(arguments, "ddddd:uneven", &of.count, &of.fastest_ns, &of.p50_ns, &of.p95_ns,
                          &of.slowest_ns))
        return NULL;
    of.count = isnan(of.count) ? INFINITY : of.count;
    of.fastest_ns = isnan(of.fastest_ns) ? of.p50_ns : of.fastest_ns;
    of.slowest_ns = isnan(of.slowest_ns) ? of.p95_ns : of.slowest_ns;
    return PyBool_FromLong(tare__is_uneven(&of));
}

PyDoc_STRVAR(grows_doc, "grows(snapshots, threshold)\n--\n\n"
                        "Whether memory grew throughout a series of snapshots: in each quarter of them (each third\n"
                        "below 8) by an eighth of the threshold or more, and not by a jump, a warm-up or a sawtooth.");
static PyObject *grows(PyObject *module, PyObject *arguments)
{
    PyObject *sequence;
    double threshold;
    size_t n;
    if (!PyArg_ParseTuple(arguments, "Od:grows", &sequence, &threshold))
        return NULL;
    double *snapshots = tare__py_read_numbers(sequence, &n);
    if (!snapshots)
        return NULL;
    bool answer = tare__grows_throughout(snapshots, n, threshold);
    free(snapshots);
    return PyBool_FromLong(answer);
}

PyMethodDef tare__py_rules_functions[] = {
    {"limit", limit_of, METH_O, limit_doc},
    {"uneven", is_uneven, METH_VARARGS, uneven_doc},
    {"grows", grows, METH_VARARGS, grows_doc},
    {"phase_of", phase_of, METH_O, phase_doc},
    {NULL, NULL, 0, NULL},
};
