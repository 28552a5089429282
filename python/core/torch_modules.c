/* torch_modules: calls of modules, the outermost as the phase "forward" and, where operators are recorded, each under
 * its path in the model.
 * Open calls are the thread's own; names are shared, with the interpreter's lock. Must not know what a model is. */
#include "torch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST   200u
#define NAMED_MAX 8192u

typedef struct open_call {
    bool phase;
    tare_site *site; /* NULL: it has no name */
} open_call;

typedef struct calls {
    uint32_t depth;
    open_call open[DEEPEST];
} calls;

/* A pointer: space for static thread-local data is scarce. Freed with its thread. */
static __thread calls *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
    pthread_key_create(&at_thread_end, free);
}

static calls *make_calls(void)
{
    mine = calloc(1, sizeof *mine);
    pthread_once(&once, make_key);
    pthread_setspecific(at_thread_end, mine);
    return mine;
}

static PyObject
    *name_parts; /* name_parts(module): calls torch_module_named for it and all below; NULL: no names */
static PyObject *named; /* address to capsule of a site */
static unsigned n_named;

static PyObject *key_of(const void *module)
{
    return PyLong_FromVoidPtr((void *)(uintptr_t)module);
}

static tare_site *find(PyObject *module)
{
    PyObject *key = key_of(module);
    PyObject *capsule = key ? PyDict_GetItemWithError(named, key) : NULL; /* borrowed */
    tare_site *site = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    Py_XDECREF(key);
    PyErr_Clear();
    return site;
}

static tare_site *site_of(PyObject *module, bool outermost)
{
    tare_site *site = find(module);
    if (site || !outermost)
        return site;
    torch_quiet quiet = tare__torch_quiet_begin();
    PyObject *done = PyObject_CallOneArg(name_parts, module);
    Py_XDECREF(done);
    tare__torch_quiet_end(quiet);
    return find(module);
}

/* True: torch_forward_end has to follow. */
static PyObject *forward_begin(PyObject *self, PyObject *module)
{
    torch_phase now = tare__torch_phase_now();
    bool outermost = now == NO_PHASE || now == OPTIMIZER;
    if (__builtin_expect(!outermost && !name_parts, 1))
        Py_RETURN_FALSE;
    calls *all = mine ? mine : make_calls();
    if (!all || all->depth == DEEPEST)
        Py_RETURN_FALSE;
    open_call call = {false, NULL};
    if (outermost) {
        tare__torch_forward_begins(module);
        call.phase = tare__torch_phase_begin(FORWARD);
    }
    if (name_parts && tare_recording())
        call.site = site_of(module, outermost);
    if (call.site)
        tare__py_stack_begin(call.site, Py_None);
    if (!call.phase && !call.site)
        Py_RETURN_FALSE;
    all->open[all->depth++] = call;
    Py_RETURN_TRUE;
}

static PyObject *forward_end(PyObject *self, PyObject *nothing)
{
    if (mine && mine->depth) {
        open_call call = mine->open[--mine->depth];
        if (call.site)
            tare__py_stack_end(call.site);
        if (call.phase) {
            tare__torch_phase_end(FORWARD);
            tare__torch_forward_ended();
        }
    }
    Py_RETURN_NONE;
}

static PyObject *watch(PyObject *self, PyObject *function)
{
    Py_XSETREF(name_parts, Py_NewRef(function));
    Py_RETURN_NONE;
}

static void free_site(PyObject *capsule)
{
    tare_site *site = PyCapsule_GetPointer(capsule, NULL);
    if (site)
        free((void *)(uintptr_t)site->name);
    free(site);
}

/* A path that is requested again keeps its site: it may be open. */
static PyObject *name_module(PyObject *self, PyObject *arguments)
{
    PyObject *module;
    const char *path;
    if (!PyArg_ParseTuple(arguments, "Os:torch_module_named", &module, &path))
        return NULL;
    if (n_named == NAMED_MAX || find(module))
        Py_RETURN_NONE;
    tare_site *site = malloc(sizeof *site);
    char *name = strdup(path);
    PyObject *capsule = site && name ? PyCapsule_New(site, NULL, free_site) : NULL;
    if (!capsule) {
        free(site);
        free(name);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    *site = (tare_site){0, name, NULL, 0, TARE_KIND_MODULE, 1, 0};
    PyObject *key = key_of(module);
    int status = key ? PyDict_SetItem(named, key, capsule) : -1;
    Py_XDECREF(key);
    Py_DECREF(capsule);
    if (status)
        return NULL;
    n_named++;
    Py_RETURN_NONE;
}

void tare__torch_module_forget(PyObject *address)
{
    if (PyDict_DelItem(named, address) == 0)
        n_named--;
    PyErr_Clear();
}

static PyMethodDef functions[] = {
    {"torch_forward_begin", forward_begin, METH_O,
     "torch_forward_begin(module)\n--\n\nTrue where torch_forward_end() has to follow."},
    {"torch_forward_end", forward_end, METH_NOARGS, "torch_forward_end()\n--\n\nThat call has ended."},
    {"torch_modules_watch", watch, METH_O,
     "torch_modules_watch(name_parts)\n--\n\nname_parts(module) names it and all below, by "
     "torch_module_named."},
    {"torch_module_named", name_module, METH_VARARGS,
     "torch_module_named(module, path)\n--\n\nIts calls are spans of this name."},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    named = PyDict_New();
    return named ? 0 : -1;
}

const tare__py_part tare__py_part_torch_modules = {.functions = functions, .prepare = prepare};
