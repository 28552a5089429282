/* samples: two series of measurements against each other, and one against itself: the decision of `tare check`,
 * outliers, changes, trend. Computed by the engine's own functions.
 * Any thread, attached to the interpreter. Must not know what was measured. */
#include "module.h"

#include <math.h>
#include <stdbool.h>

#include "analyze/analyze.h"
#include "stat/stat.h"

#define CHANGES_MOST 64u

typedef struct numbers {
    double *values;
    size_t n;
} numbers;

/* False with an exception. The caller frees what it allocated. */
static bool read_numbers(PyObject *sequence, numbers *out)
{
    out->values = tare__py_read_numbers(sequence, &out->n);
    return out->values != NULL;
}

PyDoc_STRVAR(outliers_doc, "outliers(numbers)\n--\n\n(mild, severe): how many there are, by Tukey's fences.");
static PyObject *outliers(PyObject *module, PyObject *sequence)
{
    numbers of = {NULL, 0};
    if (!read_numbers(sequence, &of))
        return NULL;
    tare__outlier *labels = malloc((of.n ? of.n : 1) * sizeof *labels);
    Py_ssize_t mild = 0, severe = 0;
    bool fine = labels && !tare__outliers_tukey(of.values, of.n, labels, NULL);
    for (size_t i = 0; fine && i < of.n; i++) {
        mild += labels[i] == TARE__OUTLIER_MILD;
        severe += labels[i] == TARE__OUTLIER_SEVERE;
    }
    free(labels);
    free(of.values);
    return fine ? Py_BuildValue("nn", mild, severe) : PyErr_NoMemory();
}

PyDoc_STRVAR(changes_doc, "change_points(numbers, p=0.01, magnitude=0.02)\n--\n\n"
                          "[(index of the first number on the new level, level before, level after, p)], with the\n"
                          "defaults of `tare history`; magnitude is a share of the level before.");
static PyObject *change_points(PyObject *module, PyObject *arguments)
{
    numbers of = {NULL, 0};
    PyObject *sequence;
    tare__change_options options = {.magnitude = TARE__CHANGE_LEAST};
    tare__change found[CHANGES_MOST];
    if (!PyArg_ParseTuple(arguments, "O|dd:change_points", &sequence, &options.p, &options.magnitude))
        return NULL;
    if (!read_numbers(sequence, &of))
        return NULL;
    size_t n;
    Py_BEGIN_ALLOW_THREADS
    n = tare__change_points(of.values, of.n, &options, found, CHANGES_MOST);
    Py_END_ALLOW_THREADS
    free(of.values);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < n; i++)
        if (tare__py_append(list, Py_BuildValue("nddd", (Py_ssize_t)found[i].at, found[i].before, found[i].after,
                                                found[i].p)))
            Py_CLEAR(list);
    return list;
}

/* A number alone, or samples. False with an exception. */
static bool read_side(PyObject *given, numbers *samples, double *value)
{
    *value = NAN;
    if (!PyFloat_Check(given) && !PyLong_Check(given))
        return read_numbers(given, samples);
    *value = PyFloat_AsDouble(given);
    return !(*value == -1 && PyErr_Occurred());
}

/* False with an exception. */
static bool read_better(const char *word, tare__better *better)
{
    static const char *const words[] = {
        [TARE__NEITHER] = "neither", [TARE__LOWER] = "lower", [TARE__HIGHER] = "higher"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0) {
            *better = (tare__better)i;
            return true;
        }
    PyErr_SetString(PyExc_ValueError, "better is \"lower\", \"higher\" or \"neither\"");
    return false;
}

PyDoc_STRVAR(decide_doc,
             "decide(base, head, better='lower', gate=0.05, floor=None, exact=False, unit='')\n--\n\n"
             "(verdict, why, change as a share, p) of two series, or two numbers, by the rule of\n"
             "`tare check` and `tare compare`: 'same', 'better', 'worse', 'different' or 'inconclusive'. Without a\n"
             "floor, the one of the unit: 1 us of 'ns', 1 MiB of 'bytes'.");
static PyObject *decide(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"base", "head", "better", "gate", "floor", "exact", "unit", NULL};
    PyObject *first, *second;
    const char *word = "lower";
    int exact = 0;
    numbers base = {NULL, 0}, head = {NULL, 0};
    tare__measured a, b;
    tare__allowance allowance = {.share = TARE__GATE_SHARE, .floor = NAN};
    tare__better better;
    const char *unit = "";
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|sddps:decide", names, &first, &second, &word,
                                     &allowance.share, &allowance.floor, &exact, &unit) ||
        !read_better(word, &better))
        return NULL;
    if (isnan(allowance.floor))
        allowance.floor = exact ? 0 : tare__decide_floor(unit);
    if (!(allowance.share >= 0) || !(allowance.floor >= 0)) {
        PyErr_SetString(PyExc_ValueError, "gate and floor are 0 or more");
        return NULL;
    }
    if (!read_side(first, &base, &a.value) || !read_side(second, &head, &b.value)) {
        free(base.values);
        return NULL;
    }
    a.value = isnan(a.value) ? tare__median(base.values, base.n) : a.value;
    b.value = isnan(b.value) ? tare__median(head.values, head.n) : b.value;
    a = (tare__measured){base.values, tare__decide_blocks(base.values, base.n), a.value};
    b = (tare__measured){head.values, tare__decide_blocks(head.values, head.n), b.value};
    const tare__question question = {.better = better, .exact = exact, .cannot = TARE__WHY_FEW, .gate = allowance};
    tare__decision decision;
    Py_BEGIN_ALLOW_THREADS
    decision = tare__decide(&a, &b, &question);
    Py_END_ALLOW_THREADS
    free(base.values);
    free(head.values);
    return Py_BuildValue("ssdd", tare__verdict_word(decision.verdict), tare__why_text(decision.why), decision.change,
                         decision.p);
}

static PyObject *trend_of(const double *x, size_t n, const double *y, size_t m)
{
    if (n > TARE__TREND_MAX)
        return PyErr_Format(PyExc_ValueError, "%u points at most, not %zu", TARE__TREND_MAX, n);
    if (n != m)
        return PyErr_Format(PyExc_ValueError, "%zu x and %zu y", n, m);
    for (size_t i = 1; i < n; i++)
        if (!(x[i] > x[i - 1]))
            return PyErr_Format(PyExc_ValueError, "x is ascending");
    tare__trend found = tare__trend_of(x, y, n);
    return Py_BuildValue("dddd", found.slope, found.low, found.high, found.fit);
}

PyDoc_STRVAR(trend_doc,
             "trend(x, y)\n--\n\n"
             "(slope, low, high, fit): the median slope over all pairs of points with ascending x (Theil-Sen),\n"
             "its 95 % interval (NaN below 6 points), and R squared of the least-squares line.");
static PyObject *trend(PyObject *module, PyObject *arguments)
{
    PyObject *xs, *ys;
    size_t n, m;
    if (!PyArg_ParseTuple(arguments, "OO:trend", &xs, &ys))
        return NULL;
    double *x = tare__py_read_numbers(xs, &n), *y = x ? tare__py_read_numbers(ys, &m) : NULL;
    PyObject *made = y ? trend_of(x, n, y, m) : NULL;
    free(x);
    free(y);
    return made;
}

PyMethodDef tare__py_samples_functions[] = {
    {"decide", (PyCFunction)(void (*)(void))decide, METH_VARARGS | METH_KEYWORDS, decide_doc},
    {"outliers", outliers, METH_O, outliers_doc},
    {"change_points", change_points, METH_VARARGS, changes_doc},
    {"trend", trend, METH_VARARGS, trend_doc},
    {NULL, NULL, 0, NULL},
};
