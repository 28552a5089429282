/* heap: resource use of the process: the C library's heap, resident memory by kind, page faults, waits, I/O.
 * Any thread, attached to the interpreter. Must not know who allocates. */
#include "core.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "sample/files.h"

/* As in <malloc.h> since glibc 2.33; looked up at run time, since the package also runs on older versions. */
typedef struct heap_figures {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
} heap_figures;

PyDoc_STRVAR(heap_doc, "heap()\n--\n\n"
                       "(bytes of the heap, bytes of it in use, bytes mapped one by one), or None where unavailable.");
static PyObject *heap(PyObject *module, PyObject *nothing)
{
    heap_figures (*ask)(void);
    *(void **)&ask = dlsym(RTLD_DEFAULT, "mallinfo2");
    if (!ask)
        Py_RETURN_NONE;
    heap_figures reported = ask();
    if (!reported.arena && !reported.hblkhd) /* another allocator replaces it */
        Py_RETURN_NONE;
    return Py_BuildValue("nnn", (Py_ssize_t)reported.arena, (Py_ssize_t)reported.uordblks, (Py_ssize_t)reported.hblkhd);
}

/* Of this package's threads, which do not belong to the program. */
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
                        "(page faults without a disk, with one, times the process waited, times it was preempted\n"
                        "from its CPU), since it began, without those of threads that sample it.");
static PyObject *waits(PyObject *module, PyObject *nothing)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used))
        return PyErr_SetFromErrno(PyExc_OSError);
    return Py_BuildValue("llll", used.ru_minflt - own.faults, used.ru_majflt - own.from_disk,
                         used.ru_nvcsw - own.waited, used.ru_nivcsw - own.pushed);
}

/* Values of a file of /proc by name, each times `scale`; Missing for those it does not have. */
static PyObject *read_keys(const char *path, const char *const *keys, size_t n, int64_t scale)
{
    char text[4096], sentence[256];
    int64_t values[8];
    int got = tare__sample_read("", path, text, sizeof text);
    tare__scan_keys(text, got, keys, n, values);
    PyObject *made = PyDict_New();
    for (size_t i = 0; made && i < n; i++) {
        PyObject *value = values[i] < 0 ? tare__py_missing(tare__machine_why(got < 0 ? got : 0, path, sentence))
                                        : PyLong_FromLongLong(values[i] * scale);
        if (tare__py_put(made, keys[i], value))
            Py_CLEAR(made);
    }
    return made;
}

PyDoc_STRVAR(process_io_doc, "process_io()\n--\n\n"
                             "Bytes that this process has read and written, from disks (read_bytes, write_bytes) and\n"
                             "through system calls (rchar, wchar).");
static PyObject *process_io(PyObject *module, PyObject *nothing)
{
    static const char *const keys[] = {"read_bytes", "write_bytes", "rchar", "wchar"};
    return read_keys("/proc/self/io", keys, 4, 1);
}

PyDoc_STRVAR(memory_kinds_doc, "memory_kinds()\n--\n\n"
                               "Bytes of resident memory that are the program's own (RssAnon) and files' (RssFile).");
static PyObject *memory_kinds(PyObject *module, PyObject *nothing)
{
    static const char *const keys[] = {"RssAnon", "RssFile"};
    return read_keys("/proc/self/status", keys, 2, 1024);
}

PyDoc_STRVAR(run_delay_doc, "run_delay()\n--\n\n"
                            "Seconds in which this thread was runnable and did not run: the CPUs were in use.");
static PyObject *run_delay(PyObject *module, PyObject *nothing)
{
    char text[128];
    int64_t numbers[2]; /* ns on a CPU, ns of waiting for one */
    tare__scan all = tare__scan_of(text, tare__sample_read("", "/proc/thread-self/schedstat", text, sizeof text));
    if (tare__line_numbers(&all, numbers, 2) < 2)
        return tare__py_missing("the kernel keeps no account of it (/proc/thread-self/schedstat)");
    return PyFloat_FromDouble((double)numbers[1] / 1e9);
}

static PyMethodDef functions[] = {
    {"heap", heap, METH_NOARGS, heap_doc},
    {"memory_kinds", memory_kinds, METH_NOARGS, memory_kinds_doc},
    {"process_io", process_io, METH_NOARGS, process_io_doc},
    {"run_delay", run_delay, METH_NOARGS, run_delay_doc},
    {"waits", waits, METH_NOARGS, waits_doc},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_heap = {.functions = functions};
