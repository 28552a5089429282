/* heap: what the C library holds for the process, and how much of that is free.
 * Any thread, attached to the interpreter. Must not know who allocates. */
#include "core.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/resource.h>

/* As <malloc.h> has it since glibc 2.33; looked up, since the package also runs where it is not. */
typedef struct heap_figures {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
} heap_figures;

PyDoc_STRVAR(heap_doc, "heap()\n--\n\n"
                       "(bytes of the heap, bytes of it in use, bytes mapped one by one), or None where nobody tells.");
static PyObject *heap(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    heap_figures (*ask)(void);
    *(void **)&ask = dlsym(RTLD_DEFAULT, "mallinfo2");
    if (!ask)
        Py_RETURN_NONE;
    heap_figures told = ask();
    if (!told.arena && !told.hblkhd) /* another allocator has taken its place */
        Py_RETURN_NONE;
    return Py_BuildValue("nnn", (Py_ssize_t)told.arena, (Py_ssize_t)told.uordblks, (Py_ssize_t)told.hblkhd);
}

/* Of threads of this package, which are not the program's. */
static struct {
    atomic_long faults, from_disk, waited, pushed;
} own;

void tare__py_note_own_waits(void)
{
    static __thread struct rusage before __attribute__((tls_model("initial-exec")));
    struct rusage now;
    if (getrusage(RUSAGE_THREAD, &now))
        return;
    own.faults += now.ru_minflt - before.ru_minflt;
    own.from_disk += now.ru_majflt - before.ru_majflt;
    own.waited += now.ru_nvcsw - before.ru_nvcsw;
    own.pushed += now.ru_nivcsw - before.ru_nivcsw;
    before = now;
}

PyDoc_STRVAR(waits_doc, "waits()\n--\n\n"
                        "(page faults without a disk, with one, times the process waited, times it was pushed off\n"
                        "its CPU), since it began, without those of threads that sample it.");
static PyObject *waits(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used))
        return PyErr_SetFromErrno(PyExc_OSError);
    return Py_BuildValue("llll", used.ru_minflt - own.faults, used.ru_majflt - own.from_disk,
                         used.ru_nvcsw - own.waited, used.ru_nivcsw - own.pushed);
}

static PyMethodDef functions[] = {
    {"heap", heap, METH_NOARGS, heap_doc},
    {"waits", waits, METH_NOARGS, waits_doc},
    {NULL, NULL, 0, NULL},
};

int tare__py_add_heap(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
