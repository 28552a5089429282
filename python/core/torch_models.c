/* torch_models: which models train and compute in the loop, and whether one of them or an optimizer is new. Without a
 * loader a new one begins another part of the program: the pause since the last step is not part of its first step. If
 * every step has a new one (meta-learning), it is part of the step.
 * Attached to the interpreter, with its lock. Must not know steps except for where they begin and end. */
#include "torch.h"

#define SEEN_MAX   8u
#define MODELS_MAX 16u

static PyObject *last;               /* weak reference to the last model that trained; NULL: none yet */
static PyObject *models[MODELS_MAX]; /* weak references to those that trained, the last ones */
static unsigned n_models;
static struct {
    bool model, optimizer; /* the step began with a new one; one was made since the step before */
    const void *computed[SEEN_MAX]; /* modules that computed without gradients while the step waited */
    unsigned n_computed;
} now, before; /* since the last step that counts; in that step */

bool tare__torch_has_trained(PyObject *module)
{
    bool found = false;
    for (unsigned i = 0; i < MODELS_MAX && !found; i++) {
        PyObject *known = tare__torch_alive(models[i]);
        Py_XDECREF(known);
        found = known == module;
    }
    return found;
}

bool tare__torch_keep_model(PyObject *module)
{
    PyObject *weak = PyWeakref_NewRef(module, NULL);
    PyErr_Clear();
    if (!weak)
        return false;
    if (!tare__torch_has_trained(module)) {
        PyObject **slot = &models[n_models++ % MODELS_MAX]; /* before 3.12 the macro evaluates its argument twice */
        Py_XSETREF(*slot, Py_NewRef(weak));
    }
    Py_XSETREF(last, weak);
    return true;
}

PyObject *tare__torch_model_in_training(void)
{
    return tare__torch_alive(last);
}

bool tare__torch_any_model_trained(void)
{
    PyObject *trained = tare__torch_alive(last);
    Py_XDECREF(trained);
    return trained != NULL;
}

bool tare__torch_trained_last(PyObject *module)
{
    PyObject *trained = tare__torch_alive(last);
    Py_XDECREF(trained);
    return trained == module;
}

bool tare__torch_will_train(void)
{
    PyObject *trained = tare__torch_gradients() ? tare__torch_alive(last) : NULL;
    bool training = trained && tare__torch_is_true(trained, "training", false);
    Py_XDECREF(trained);
    return training;
}

void tare__torch_models_step_begins(void)
{
    now.model = false;
}

void tare__torch_models_step_ended(void)
{
    before = now;
    now.optimizer = false;
    now.n_computed = 0;
}

void tare__torch_begins_with_new_model(void)
{
    now.model = true;
}

bool tare__torch_new_model_before(void)
{
    return before.model;
}

bool tare__torch_note_new_optimizer(void)
{
    now.optimizer = true;
    return !before.optimizer;
}

bool tare__torch_computes_in_every_step(const void *module)
{
    bool known = false, noted = false;
    for (unsigned i = 0; i < before.n_computed; i++)
        known |= before.computed[i] == module;
    for (unsigned i = 0; i < now.n_computed; i++)
        noted |= now.computed[i] == module;
    if (!noted && now.n_computed < SEEN_MAX)
        now.computed[now.n_computed++] = module;
    return known;
}
