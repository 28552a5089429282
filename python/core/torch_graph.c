/* torch_graph: holds weak references to the last few losses that a backward began from, and calls Python at intervals
 * to check whether they are still alive, and how large the graph was.
 * Attached to the interpreter, with its lock. Must not know how the answer is used. */
#include "torch.h"

#define KEPT 16u

static PyObject *roots[KEPT]; /* weak references */
static unsigned n_roots;
static uint64_t backwards;
static PyObject
    *callback; /* called with (number of the backward, earlier losses that are alive, this loss); NULL: no callback */

static PyObject *living(void)
{
    PyObject *list = PyList_New(0);
    for (unsigned i = 0; list && i < n_roots; i++) {
        PyObject *root = PyObject_CallNoArgs(roots[i]);
        if (root && root != Py_None && PyList_Append(list, root))
            Py_CLEAR(list);
        Py_XDECREF(root);
    }
    for (unsigned i = 0; i < n_roots; i++)
        Py_CLEAR(roots[i]);
    n_roots = 0;
    return list;
}

/* Whether the size of its graph was recorded. */
static bool ask(PyObject *root)
{
    torch_quiet quiet = tare__torch_quiet_begin();
    PyObject *before = living();
    PyObject *answer =
        before ? PyObject_CallFunction(callback, "KOO", (unsigned long long)backwards, before, root) : NULL;
    bool reported = answer == Py_True;
    Py_XDECREF(answer);
    Py_XDECREF(before);
    tare__torch_quiet_end(quiet);
    return reported;
}

/* The argument of autograd: a tuple of tensors to begin from. */
bool tare__torch_backward_from(PyObject *outputs)
{
    if (!callback || !PyTuple_Check(outputs) || PyTuple_GET_SIZE(outputs) == 0 || !tare_recording())
        return false;
    PyObject *root = PyTuple_GET_ITEM(outputs, 0);
    backwards++;
    bool reported = n_roots == KEPT && ask(root);
    PyObject *weak = n_roots < KEPT ? PyWeakref_NewRef(root, NULL) : NULL;
    if (weak)
        roots[n_roots++] = weak;
    PyErr_Clear();
    return reported;
}

static PyObject *watch(PyObject *module, PyObject *function)
{
    Py_XSETREF(callback, Py_NewRef(function));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"torch_graph_watch", watch, METH_O,
     "torch_graph_watch(callback)\n--\n\ncallback(number, losses that still live, loss) is called at some "
     "backwards. It returns whether it recorded the size of the loss's graph."},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_torch_graph = {.functions = functions};
