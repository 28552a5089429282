/* monitor: `with monitor.track("name")`, the part of PerformanceMonitor that runs at every block: does nothing when
 * disabled, and calls the recorder directly when no GPU is in use.
 * Any thread, attached to the interpreter. Must not know what a recorder measures. */
#include "core.h"

#include <dlfcn.h>

typedef struct tracker {
    PyObject_HEAD
    PyObject *block;  /* the recorder's method; NULL: disabled */
    PyObject *device; /* called instead where a GPU is in use; NULL: its memory is not measured */
} tracker;

static PyTypeObject tracker_type, nothing_type;
static PyObject *nothing;  /* the block shared by all disabled monitors */
static PyObject *words[2]; /* names of track's arguments */

/* ---- a block that does nothing ---------------------------------------------------------------------------- */

static PyObject *enter_nothing(PyObject *self, PyObject *none)
{
    return Py_NewRef(self);
}

static PyObject *leave_nothing(PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
    Py_RETURN_NONE;
}

static PyMethodDef nothing_methods[] = {
    {"__enter__", enter_nothing, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))leave_nothing, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject nothing_type = {
    TARE__PY_TYPE("tare._core.Nothing", PyObject, 0, "A block of a monitor that is disabled."),
    .tp_methods = nothing_methods,
};

/* ---- is a GPU in use? -------------------------------------------------------------------------------------- */
/* Checked at every block, so it must cost almost nothing where the answer is no. It imports and initializes nothing:
 * if the check initialized CUDA, forked children could not use it. */

static PyObject *cuda_ready; /* torch.cuda.is_initialized of a torch that has CUDA */
static bool cuda_here;       /* CUDA used without torch: its driver library is loaded in the process */

/* 1: torch with CUDA, its function is kept; 0: none; -1: partially imported. */
static int find_torch(PyObject *modules)
{
    PyObject *torch = PyDict_GetItemString(modules, "torch"), *version = NULL, *kind = NULL, *cuda = NULL;
    int found = torch ? -1 : 0;
    if (torch && (version = PyObject_GetAttrString(torch, "version")) &&
        (cuda = PyObject_GetAttrString(torch, "cuda")) && (kind = PyObject_GetAttrString(version, "cuda"))) {
        found = kind != Py_None;
        if (found && !(cuda_ready = PyObject_GetAttrString(cuda, "is_initialized")))
            found = -1;
    }
    Py_XDECREF(version);
    Py_XDECREF(cuda);
    Py_XDECREF(kind);
    PyErr_Clear();
    return found;
}

/* Only when a module was imported since the last check. */
static void find_cuda(void)
{
    static Py_ssize_t seen;
    PyObject *modules = PyImport_GetModuleDict();
    if (!modules || PyDict_Size(modules) == seen)
        return;
    seen = PyDict_Size(modules);
    if (find_torch(modules) < 0)
        seen = 0;
    void *handle = cuda_ready ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    cuda_here = handle != NULL;
}

static bool gpu_in_use(void)
{
    if (!cuda_ready)
        find_cuda();
    if (!cuda_ready)
        return cuda_here;
    PyObject *answer = PyObject_CallNoArgs(cuda_ready);
    bool ready = answer && PyObject_IsTrue(answer) == 1;
    Py_XDECREF(answer);
    PyErr_Clear();
    return ready;
}

static PyObject *gpu_used(PyObject *module, PyObject *none)
{
    return PyBool_FromLong(gpu_in_use());
}

/* ---- track --------------------------------------------------------------------------------------------------- */

static bool read_arguments(PyObject *const *given, Py_ssize_t n, PyObject *names, PyObject *out[2])
{
    Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < n && i < 2; i++)
        out[i] = given[i];
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int which = PyUnicode_Compare(name, words[0]) == 0 ? 0 : PyUnicode_Compare(name, words[1]) == 0 ? 1 : -1;
        if (which < 0 || out[which]) {
            PyErr_Format(PyExc_TypeError,
                         which < 0 ? "track() takes name and aggregate, not '%U'" : "track() got '%U' twice", name);
            return false;
        }
        out[which] = given[n + i];
    }
    if (n <= 2 && out[0])
        return true;
    PyErr_Format(PyExc_TypeError, "track() takes a name and aggregate=, not %zd values", n);
    return false;
}

PyDoc_STRVAR(track_doc,
             "track(name, aggregate=False)\n--\n\n"
             "A block of code that is measured. Blocks of one name are listed singly; with aggregate=True only their\n"
             "count, total, mean, minimum and maximum are kept.\n\n"
             "    with monitor.track(\"forward\", aggregate=True):\n"
             "        output = model(batch)\n");
static PyObject *track(PyObject *object, PyObject *const *given, Py_ssize_t n, PyObject *names)
{
    tracker *self = (tracker *)object;
    if (!self->block)
        return Py_NewRef(nothing);
    PyObject *both[2] = {NULL, NULL};
    if (!read_arguments(given, n, names, both))
        return NULL;
    int summed = both[1] ? PyObject_IsTrue(both[1]) : 0; /* these cannot store a GPU's values */
    if (summed < 0)
        return NULL;
    PyObject *to = !summed && self->device && gpu_in_use() ? self->device : self->block;
    return PyObject_Vectorcall(to, both, both[1] ? 2 : 1, NULL);
}

static int init(PyObject *object, PyObject *arguments, PyObject *named)
{
    tracker *self = (tracker *)object;
    static char *names[] = {"block", "device", NULL};
    PyObject *block, *device = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "O|O:Tracker", names, &block, &device))
        return -1;
    Py_XSETREF(self->block, block == Py_None ? NULL : Py_NewRef(block));
    Py_XSETREF(self->device, device == Py_None ? NULL : Py_NewRef(device));
    return 0;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    tracker *self = (tracker *)object;
    Py_VISIT(self->block);
    Py_VISIT(self->device);
    return 0;
}

static int clear(PyObject *object)
{
    tracker *self = (tracker *)object;
    Py_CLEAR(self->block);
    Py_CLEAR(self->device);
    return 0;
}

static void drop(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    clear(object);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {
    {"track", (PyCFunction)(void (*)(void))track, METH_FASTCALL | METH_KEYWORDS, track_doc},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject tracker_type = {
    TARE__PY_TYPE("tare._core.Tracker", tracker, Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                  "What PerformanceMonitor does at every block."),
    .tp_new = PyType_GenericNew,
    .tp_init = init,
    .tp_dealloc = drop,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_methods = methods,
};

static PyMethodDef functions[] = {
    {"gpu_used", gpu_used, METH_NOARGS, "gpu_used()\n--\n\nWhether this process currently uses a GPU through CUDA."},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    nothing = PyObject_New(PyObject, &nothing_type);
    words[0] = PyUnicode_InternFromString("name");
    words[1] = PyUnicode_InternFromString("aggregate");
    return nothing && words[0] && words[1] ? 0 : -1;
}

const tare__py_part tare__py_part_monitor = {&tracker_type, &nothing_type, functions, prepare};
