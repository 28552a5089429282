/* power: temperature and energy of the CPU, and how many CPUs this process may use. The files with temperature and
 * energy are found once, by the rules of the samplers; a block reads these at its ends, when a sampler's interval would
 * be too coarse.
 * Attached to the interpreter. Must not know the callers. */
#include "core.h"

#include <stdio.h>

#include "machine.h"
#include "sample/files.h"

#define FILES_MAX 64

static PyObject *list_of(const char *root, const tare__power_file *files, int n, bool laps)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s", root, files[i].path);
        PyObject *row = laps ? Py_BuildValue("sd", path, files[i].lap > 0 ? (double)files[i].lap / 1e6 : 0.0)
                             : PyUnicode_DecodeFSDefault(path);
        if (tare__py_append(list, row))
            Py_CLEAR(list);
    }
    return list;
}

PyDoc_STRVAR(cpu_sensors_doc, "cpu_sensors(root='')\n--\n\nFiles of the CPU's temperature, for cpu_celsius.");
static PyObject *cpu_sensors(PyObject *module, PyObject *arguments)
{
    const char *root = "";
    tare__power_file files[FILES_MAX];
    if (!PyArg_ParseTuple(arguments, "|s:cpu_sensors", &root))
        return NULL;
    return list_of(root, files, (int)tare__power_temperatures(root, files, FILES_MAX), false);
}

PyDoc_STRVAR(energy_counters_doc, "energy_counters(root='')\n--\n\n"
                                  "(file, joules at which it wraps around) of each energy counter of the CPU.");
static PyObject *energy_counters(PyObject *module, PyObject *arguments)
{
    const char *root = "";
    tare__power_file files[FILES_MAX];
    if (!PyArg_ParseTuple(arguments, "|s:energy_counters", &root))
        return NULL;
    return list_of(root, files, tare__power_energies(root, files, FILES_MAX), true);
}

PyDoc_STRVAR(cpu_celsius_doc, "cpu_celsius(files)\n--\n\nThe hottest of these sensors; or Missing with the reason.");
static PyObject *cpu_celsius(PyObject *module, PyObject *files)
{
    int64_t most = TARE__SCAN_NONE;
    for (Py_ssize_t i = 0; PyList_Check(files) && i < PyList_GET_SIZE(files); i++) {
        int failure;
        const char *path = PyUnicode_AsUTF8(PyList_GET_ITEM(files, i));
        int64_t value = path ? tare__machine_number("", path, NULL, &failure) : TARE__SCAN_NONE;
        if (!path)
            return NULL;
        most = value > most ? value : most; /* NONE is the smallest */
    }
    if (most == TARE__SCAN_NONE)
        return tare__py_missing("no CPU temperature sensor in /sys/class/hwmon or /sys/class/thermal");
    return PyFloat_FromDouble((double)most / 1e3);
}

PyDoc_STRVAR(energy_joules_doc, "energy_joules(counters)\n--\n\n"
                                "The value of each of energy_counters(), as a list; or Missing with the reason.");
static PyObject *energy_joules(PyObject *module, PyObject *counters)
{
    Py_ssize_t n = PyList_Check(counters) ? PyList_GET_SIZE(counters) : 0;
    if (n == 0)
        return tare__py_missing("no energy counter of the CPU (" TARE__POWER_ENERGY ")");
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        const char *path;
        double lap;
        char why[256];
        int failure;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(counters, i), "sd", &path, &lap)) {
            Py_DECREF(list);
            return NULL;
        }
        int64_t value = tare__machine_number("", path, NULL, &failure);
        if (value < 0) {
            Py_DECREF(list);
            return tare__py_missing(tare__power_why(failure, path, why));
        }
        PyList_SET_ITEM(list, i, PyFloat_FromDouble((double)value / 1e6));
    }
    return list;
}

PyDoc_STRVAR(cpus_doc, "cpus()\n--\n\nCPUs that this process may use, by its affinity and its control groups.");
static PyObject *cpus(PyObject *module, PyObject *nothing)
{
    return PyLong_FromLong(tare__py_cpus());
}

static PyMethodDef functions[] = {
    {"cpus", cpus, METH_NOARGS, cpus_doc},
    {"cpu_sensors", cpu_sensors, METH_VARARGS, cpu_sensors_doc},
    {"cpu_celsius", cpu_celsius, METH_O, cpu_celsius_doc},
    {"energy_counters", energy_counters, METH_VARARGS, energy_counters_doc},
    {"energy_joules", energy_joules, METH_O, energy_joules_doc},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_power = {.functions = functions};
