/* rules: what the engine's rules decide, for the package's own measurements: no threshold of a rule is stated in Python.
 * Any thread, attached to the interpreter. Must not know what was measured. */
#include "module.h"

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

PyMethodDef tare__py_rules_functions[] = {
    {"phase_of", phase_of, METH_O, phase_doc},
    {NULL, NULL, 0, NULL},
};
