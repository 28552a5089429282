/* torch_steps: infers the training loop's steps and epochs from events: batches, forwards, backwards, optimizer
 * steps. Only the first thread that trains has steps; others have phases but no steps.
 * Attached to the interpreter, with its lock. Must not know how the events were detected. */
#include "torch.h"

#include <string.h>

#define OUTER_MAX 8u
#define EVALUATIONS_MAX 1000u /* in a row; then the next step is no longer waited for */

static tare_site step_site = {0, "step", NULL, 0, TARE_KIND_STEP, 1, 0};
static tare_site epoch_site = {0, "epoch", NULL, 0, TARE_KIND_EPOCH, 1, 0};
static tare_site index_site = {0, "index", NULL, 0, TARE_KIND_NUMBER, 1, 0};
/* Of the nearest step or epoch: operators that are not tracked here may be open inside it. */
static tare_site partial_site = {0, "(partial)", NULL, 0, TARE_KIND_NUMBER, 1, 0};
static tare_site outer_index_site = {0, "(index)", NULL, 0, TARE_KIND_NUMBER, 1, 0};

static struct {
    bool set_up;
    bool handed_over;     /* the program, or a framework's callback, reports steps and epochs */
    bool uncounted;       /* … the latter: it is unknown which of its batches a step uses */
    unsigned long thread; /* that trains; 0: none yet */
    bool step_open, epoch_open;
    /* A batch is requested, and its purpose is not known: nothing has trained yet, or the model that did is in
     * eval(). The step begins there, and is discarded if nothing trains on the batch. */
    bool guessed;         /* the open step began like that */
    PyObject *guess;      /* weak reference to the iterator, until something trains; NULL: there is no such step */
    PyObject *guess_loader;
    bool claimed;         /* the thread is that of the guess, and nothing has trained on it */
    bool epoch_unsure;    /* the index of the open epoch is not recorded yet: no step of it has trained */
    unsigned unfetched;   /* steps in a row that asked no loader for a batch */
    bool exhausted; /* the epoch's loader has no more batches: the epoch ends with its step */
    bool asks;      /* a loader is being asked for a batch to train on, or for one past its end */
    bool fetched;   /* the open step asked a loader for a batch */
    bool late;      /* the open step began with its compute: manual loading before it is not included */
    bool trained;   /* … and a backward or an optimizer followed */
    bool unaided;   /* … without any optimizer: the program updates by hand, which cannot be observed */
    bool by_module; /* … and a module with parameters computed for it */
    unsigned backwards;   /* in the open step, outside of optimizers */
    unsigned updated_for; /* … when an optimizer last stepped in it */
    bool accumulates;     /* the last step had several: a batch that trains need not be of a step that ends */
    /* Without a loader a step begins where the previous one ended. It may turn out not to be a step. */
    bool by_hand;   /* the last step had no loader */
    bool waiting;   /* nothing has trained in the open step yet */
    bool unsure;    /* the index of the open step is not recorded yet */
    bool reopens;   /* it begins again inside of a span that is about to begin */
    bool due;       /* it has ended except for spans of the program that are open inside it */
    unsigned evaluations;                  /* since the last step */
    const tare_site *outer[OUTER_MAX];     /* spans of the program that hold several steps */
    unsigned n_outer;
    PyObject *on_training; /* called once, when something trains */
    bool epoch_trained; /* so it did in some step of the open epoch */
    uint64_t steps, epochs;   /* that have ended */
    bool wants_model;         /* a step began, by an optimizer or a backward, and no model is known */
    PyObject *epoch_loader;   /* the loader of the open epoch, or of the next one */
    PyObject *epoch_iterator; /* weak reference: once it is freed, no more batches are requested */
} loop;

/* ---- what is recorded --------------------------------------------------------------------------------- */
static void follow_window(void)
{
    tare__torch_window_follow(loop.steps, loop.epochs);
}

/* Spans of the program matter while a step waits, and while one is due. */
static void watch_spans(void)
{
    tare__py_stack_watched.watching = loop.due || (loop.waiting && loop.n_outer);
}

static void forget_guess(void)
{
    Py_CLEAR(loop.guess);
    Py_CLEAR(loop.guess_loader);
}

static void open_step(bool waits)
{
    if (loop.step_open)
        return;
    follow_window();
    loop.waiting = waits;
    loop.unsure = true;
    loop.due = loop.reopens = false;
    tare__py_stack_watched.watching = false;
    tare__py_stack_begin(&step_site, Py_None);
    tare_number(&index_site, -1); /* it is recorded when something trains */
    loop.step_open = true;
    loop.fetched = loop.trained = loop.by_module = loop.guessed = loop.late = false;
    loop.backwards = loop.updated_for = 0;
    watch_spans();
    tare__torch_round_begins();
    tare__torch_models_step_begins();
    loop.wants_model = !tare__torch_any_model_trained();
}

/* A batch that is never trained on is not a step, and a loop over such batches is not an epoch. It begins before that
 * is known: only a real one gets an index (docs/FORMAT.md). This epoch's first step has trained. */
static void confirm_epoch(void)
{
    if (loop.epoch_open && loop.epoch_unsure)
        tare_number(&outer_index_site, (double)loop.epochs);
    loop.epoch_unsure = false;
}

static void tell_samples(void *counts)
{
    if (counts)
        tare__torch_batches_used(loop.updated_for ? loop.updated_for : loop.backwards);
    else
        tare__torch_batches_unused(!loop.epoch_open || !loop.epoch_trained);
}

static void end_step(void)
{
    if (!loop.step_open)
        return;
    bool counts = loop.trained;
    if (!counts)
        tare__torch_lines_drop_step(tare__py_stack_watched_begun);
    if (counts && loop.late && !loop.fetched)
        tare_number(&partial_site, 1);
    tare__py_stack_watched.watching = false;
    tare__py_stack_end_as(&step_site, NULL, tell_samples, counts ? &loop : NULL);
    loop.step_open = loop.waiting = loop.due = loop.guessed = false;
    tare__torch_round_begins();
    forget_guess();
    if (counts) {
        loop.accumulates = loop.backwards > 1;
        confirm_epoch();
        loop.unfetched = loop.fetched ? 0 : loop.unfetched + 1;
        loop.evaluations = 0;
        tare__torch_models_step_ended();
    }
    loop.steps += counts;
    loop.epoch_trained |= counts;
    follow_window();
}

static void begin_epoch(void)
{
    if (loop.epoch_open)
        return;
    follow_window();
    tare__py_stack_begin(&epoch_site, Py_None);
    tare_number(&index_site, -1);
    loop.epoch_open = true;
    loop.epoch_unsure = true;
    loop.exhausted = loop.epoch_trained = false;
}

/* Batches at the end of an epoch without an optimizer step are not a step, but the epoch has trained on them. */
static void take_back_rest(void)
{
    if (!loop.step_open || !loop.trained || tare__torch_round_updated() || loop.unaided)
        return;
    if (!loop.unsure)
        tare_number(&outer_index_site, -1);
    loop.epoch_trained = true;
    loop.trained = false;
}

static void end_epoch(void)
{
    if (!loop.epoch_open)
        return;
    take_back_rest();
    end_step();
    bool counts = loop.epoch_trained;
    if (counts)
        confirm_epoch();
    tare__py_stack_end(&epoch_site);
    loop.epoch_open = loop.epoch_unsure = false;
    loop.exhausted = false;
    loop.epochs += counts;
    follow_window();
}

/* Work after a step is not part of the next one: the program evaluates, or does something else. */
static void drop_waiting(void)
{
    if (loop.step_open && loop.waiting && !loop.trained)
        end_step();
}

/* ---- spans of the program that begin in one step and end in another --------------------------------------- */
/* A span around the step ends: the part of the step inside it is removed, the rest stays. */
static void step_is_cut(bool begun_again)
{
    tare_number(&outer_index_site, !begun_again || loop.unsure ? -1 : (double)loop.steps);
}

static bool is_outer(const tare_site *site)
{
    for (unsigned i = 0; i < loop.n_outer; i++)
        if (loop.outer[i] == site)
            return true;
    return false;
}

static bool is_mine(void)
{
    return loop.step_open && loop.thread == PyThread_get_thread_ident();
}

/* One that is known to hold several steps begins: the waiting step is inside of it. */
static void span_begins(const tare_site *site)
{
    if (!is_mine() || !loop.waiting || !is_outer(site))
        return;
    end_step();
    loop.reopens = true;
}

static void open_next_step(void)
{
    if (loop.by_hand && !loop.step_open && loop.evaluations < EVALUATIONS_MAX)
        open_step(true);
}

static void span_has_begun(void)
{
    if (loop.reopens && loop.thread == PyThread_get_thread_ident())
        open_next_step();
}

static void span_ended(const tare_site *site)
{
    if (!is_mine() || !loop.due || tare__py_stack_top() != &step_site)
        return;
    end_step();
    open_next_step();
}

/* The step that is due can wait no longer: the spans inside it hold the next one as well. */
static void end_due(void)
{
    if (!loop.due)
        return;
    const tare_site *inside = tare__py_stack_above(&step_site);
    if (inside && loop.n_outer < OUTER_MAX && !is_outer(inside))
        loop.outer[loop.n_outer++] = inside;
    end_step();
    open_next_step();
}

bool tare__torch_in_step(void)
{
    return is_mine();
}

bool tare__torch_between_steps(void)
{
    return loop.set_up && !loop.handed_over && !loop.step_open && !loop.asks &&
           loop.thread == PyThread_get_thread_ident();
}

uint64_t tare__torch_steps(void)
{
    return loop.steps;
}

static bool ours(void)
{
    return loop.set_up && !loop.handed_over && (!loop.thread || loop.thread == PyThread_get_thread_ident());
}

/* ---- batches ------------------------------------------------------------------------------------------ */
/* Something was updated in the open step, or may have been. */
static bool is_complete(void)
{
    return tare__torch_round_updated() || (loop.trained && loop.unaided);
}

/* The loader has no more batches, and the loop has some that it has not trained on. */
static bool reads_ahead(void)
{
    return tare__torch_batches_held(loop.step_open ? loop.backwards : 0);
}

/* The rest of a finished round ends here: evaluation and the next batch are not part of this step. */
static void end_finished_step(void)
{
    if (loop.step_open && is_complete())
        end_step();
    if (loop.exhausted && !loop.step_open && !reads_ahead())
        end_epoch();
}

static __thread bool guessing __attribute__((tls_model("initial-exec"))); /* this thread opened the guess */

/* Nothing trains on the requested batch: it began neither a step nor an epoch. */
static void drop_guess(void)
{
    if (!loop.guess)
        return;
    guessing = false;
    end_step();
    if (loop.epoch_open && loop.epoch_unsure)
        end_epoch();
    if (loop.claimed)
        loop.thread = 0;
    loop.claimed = false;
}

/* Another thread trains: what this one opened for its batches ends when it next requests one. */
static void leave_guess(void)
{
    forget_guess();
    tare__torch_batches_forget();
    loop.step_open = loop.epoch_open = loop.epoch_unsure = loop.guessed = loop.claimed = false;
    loop.thread = 0;
}

static void close_left_guess(void)
{
    if (!guessing || loop.thread == PyThread_get_thread_ident())
        return;
    guessing = false;
    if (tare__py_stack_has(&step_site))
        tare__py_stack_end(&step_site);
    if (tare__py_stack_has(&epoch_site))
        tare__py_stack_end(&epoch_site);
}

/* No more batches will be requested: the loop has ended, or was left in the middle. */
static PyObject *loop_left(PyObject *module, PyObject *weak)
{
    if (ours() && weak == loop.guess)
        drop_guess();
    else if (ours() && weak == loop.epoch_iterator)
        end_finished_step();
    Py_RETURN_NONE;
}

static bool is_deserted(void)
{
    PyObject *iterator = tare__torch_alive(loop.epoch_iterator);
    Py_XDECREF(iterator);
    return loop.epoch_iterator && !iterator;
}

static PyMethodDef when_left = {"torch_loop_left", loop_left, METH_O, NULL};

static PyObject *watched(PyObject *iterator)
{
    PyObject *callback = PyCFunction_New(&when_left, NULL);
    PyObject *weak = callback ? PyWeakref_NewRef(iterator, callback) : NULL;
    Py_XDECREF(callback);
    PyErr_Clear();
    return weak;
}

static void take_loader(PyObject *iterator, PyObject *loader)
{
    Py_XSETREF(loop.epoch_loader, Py_XNewRef(loader));
    Py_XSETREF(loop.epoch_iterator, watched(iterator));
}

/* A step, and an epoch where none is open, from the first batch of a loader on. */
static void begin_guess(PyObject *iterator, const torch_fetch *fetch)
{
    PyObject *weak = !loop.step_open && tare__torch_gradients() ? watched(iterator) : NULL;
    if (!weak)
        return;
    if (fetch->first && !loop.epoch_open) {
        take_loader(iterator, fetch->loader);
        begin_epoch();
    }
    open_step(true);
    loop.waiting = false;
    watch_spans();
    loop.guess = weak;
    Py_XINCREF(fetch->loader);
    loop.guess_loader = fetch->loader;
    loop.guessed = loop.wants_model = guessing = true;
    loop.claimed = !loop.thread;
    loop.thread = PyThread_get_thread_ident();
}

/* Whether the guess belongs to another loop: a new one over the same loader, or of a freed iterator. A second loader
 * that is asked for its first batch may alternate with the first. */
static bool guess_is_over(PyObject *iterator, const torch_fetch *fetch)
{
    PyObject *of = tare__torch_alive(loop.guess);
    Py_XDECREF(of);
    return loop.guess && of != iterator && (!of || !fetch->first || fetch->loader == loop.guess_loader);
}

void tare__torch_fetch_begin(PyObject *iterator, torch_fetch *fetch)
{
    memset(fetch, 0, sizeof *fetch);
    tare__torch_phase_end_all();
    close_left_guess();
    if (!ours())
        return;
    tare__torch_describe_fetch(iterator, fetch);
    if (guess_is_over(iterator, fetch))
        drop_guess();
    loop.asks = fetch->training = !loop.guess && tare__torch_will_train();
    end_due();
    drop_waiting();
    end_finished_step();
    bool deserted = is_deserted();
    if (deserted) /* a loop that was left in the middle; a step that only requested a batch is removed with it */
        end_epoch();
    if (fetch->training && loop.step_open && !loop.trained && !loop.fetched)
        end_step(); /* the model was called before the loop: on a dummy input, or for a summary */
    if (!fetch->training) {
        begin_guess(iterator, fetch);
        return;
    }
    if (fetch->first && (!loop.epoch_open || loop.epoch_loader == fetch->loader)) {
        end_epoch();
        take_loader(iterator, fetch->loader);
        begin_epoch();
    }
    if (!loop.step_open && !fetch->last) {
        open_step(!fetch->tells_length); /* if it is unknown, there may be no batch, and no step */
        loop.waiting = false;
        watch_spans();
        fetch->opened = true;
    }
}

bool tare__torch_fetch_is_for_step(const torch_fetch *fetch)
{
    return fetch->training || is_mine();
}

void tare__torch_fetch_end(torch_fetch *fetch, bool got_batch)
{
    if (fetch->training)
        loop.asks = false;
    if (!got_batch && fetch->opened)
        end_step();
    if (loop.guess && fetch->loader && is_mine()) {
        if (got_batch)
            loop.fetched = true;
        else if (fetch->loader == loop.guess_loader)
            drop_guess();
    }
    if (fetch->training && got_batch) {
        open_step(false);
        loop.fetched = true;
    } else if (!got_batch && loop.epoch_open && fetch->loader == loop.epoch_loader) {
        loop.exhausted = true;
        end_finished_step();
    }
    Py_CLEAR(fetch->loader);
}

/* ---- compute ------------------------------------------------------------------------------------------ */
static void tell_training(void)
{
    Py_XDECREF(PyObject_CallNoArgs(loop.on_training));
    PyErr_Clear();
    Py_CLEAR(loop.on_training);
}

/* anew: with a different model than before. */
static void begin_training(bool anew)
{
    loop.thread = PyThread_get_thread_ident();
    loop.claimed = guessing = false;
    forget_guess();
    if (loop.on_training)
        tell_training();
    bool late = !loop.step_open && (!loop.steps || anew);
    open_step(false);
    loop.late |= late;
}

/* A batch was guessed to be trained on by another thread than the one that computes. */
static void follow_thread(void)
{
    if (loop.claimed && loop.thread != PyThread_get_thread_ident())
        leave_guess();
}

/* An optimizer is created: the program is still in setup, and batches requested so far were only inspected. */
void tare__torch_optimizer_is_made(void)
{
    if (!ours())
        return;
    if (loop.guess)
        drop_guess();
    if (tare__torch_note_new_optimizer() && loop.waiting) {
        drop_waiting();
        open_next_step();
    }
}

/* The loop continues with the batch that it has: it does not iterate over the loader that returned it. */
static void end_guessed_step(void)
{
    if (loop.step_open && loop.guessed && tare__torch_round_is_full())
        end_step();
}

/* Without an optimizer and without a loader a step lasts from the forward after a backward to the next such one; where
 * no module is called, from one backward to the next. */
static void end_unfed_step(void)
{
    if (loop.step_open && loop.trained && !loop.fetched && loop.unaided)
        end_step();
}

/* A model computes without gradients between two steps: it is evaluated. But if it does so in every step it is a
 * part of the step (a teacher, a frozen encoder, a policy that acts), unless the model that trains is in
 * eval(). */
static void evaluation_begins(PyObject *module)
{
    if (!tare__torch_has_parameters(module))
        return;
    bool is_usual = tare__torch_computes_in_every_step(module);
    if (is_usual && !(tare__torch_trained_last(module) && !tare__torch_is_true(module, "training", true)))
        return;
    drop_waiting();
    end_finished_step();
    if (loop.exhausted && (!reads_ahead() || tare__torch_trained_last(module)))
        end_epoch(); /* no optimizer will step for the rest of its batches */
    if (!loop.step_open)
        loop.evaluations++;
}

void tare__torch_forward_begins(PyObject *module)
{
    if (loop.claimed)
        follow_thread();
    bool rest = loop.step_open && loop.by_hand && loop.trained && loop.unsure;
    if (!ours() || (loop.step_open && !loop.wants_model && !loop.waiting && !loop.exhausted && !is_complete() && !rest))
        return; /* nothing to decide: the fast path for all but the first of a step */
    end_due();
    if (!tare__torch_gradients() || !tare__torch_is_true(module, "training", true)) {
        if (rest && tare__torch_trained_last(module) && !tare__torch_is_true(module, "training", true)) {
            take_back_rest(); /* the model is evaluated, and no optimizer took the last gradients */
            end_step();
        }
        if (!loop.step_open || loop.waiting || loop.exhausted || is_complete())
            evaluation_begins(module);
        return;
    }
    bool within = loop.step_open && !loop.wants_model && !loop.waiting && !loop.guessed && !is_complete();
    if (within || !tare__torch_has_parameters(module))
        return;
    end_guessed_step();
    end_unfed_step();
    bool fresh = !tare__torch_has_trained(module), anew = fresh && loop.waiting && !tare__torch_new_model_before();
    if (anew)
        drop_waiting();
    loop.waiting = false;
    watch_spans();
    if (tare__torch_keep_model(module))
        loop.wants_model = false;
    if (!loop.step_open || loop.guess)
        begin_training(anew);
    loop.by_module = true;
    if (fresh)
        tare__torch_begins_with_new_model();
}

/* Without a loader the next step begins after the evaluation. */
void tare__torch_forward_ended(void)
{
    if (loop.by_hand && !loop.step_open && ours() && loop.thread)
        open_next_step();
}

static void tell_step(void)
{
    if (loop.unsure)
        tare_number(&outer_index_site, (double)loop.steps);
    loop.unsure = false;
}

/* False: another thread trains. */
static bool training_goes_on(void)
{
    if (loop.claimed)
        follow_thread();
    if (!ours())
        return false;
    end_due();
    if (!loop.by_module)
        end_unfed_step();
    if (!loop.step_open || loop.guess)
        begin_training(false);
    loop.trained = true;
    loop.unaided = tare__torch_rounds_without_optimizer();
    loop.waiting = false;
    watch_spans();
    return true;
}

void tare__torch_backward_begins(void)
{
    if (ours())
        tare__torch_round_computes();
    if (!training_goes_on())
        return;
    tare__torch_batches_compute(loop.backwards++);
    if (!loop.accumulates || loop.unaided)
        tell_step();
}

void tare__torch_optimizer_begins(void)
{
    if (!training_goes_on())
        return;
    tell_step();
    loop.updated_for = loop.backwards;
}

/* Whether no loader feeds the loop: the open step has no batch of one, and no loop over one is in progress, or it had
 * none for the previous step either. */
static bool has_no_loader(void)
{
    return !loop.fetched && (!loop.epoch_open || is_deserted() || loop.unfetched);
}

/* With a loader a step lasts until the next batch is requested: logging, and waits for a device that it causes, are
 * part of it. Without one, or after its last batch, a round is over when every existing optimizer has stepped (a
 * GAN's two make one step); one that steps twice shows that the others never will. Without a loader the next step
 * begins there: a step is a whole round of the loop, loading by hand included. */
void tare__torch_optimizer_ended(const void *optimizer)
{
    tare__torch_optimizer_stepped(optimizer);
    if (!ours() || !loop.step_open)
        return;
    if (!tare__torch_round_stepped(optimizer, loop.fetched) || (loop.fetched && !loop.exhausted))
        return;
    loop.by_hand = has_no_loader();
    if (loop.by_hand && tare__py_stack_top() != &step_site) {
        loop.due = true; /* it ends with the program's own spans inside it */
        watch_spans();
        return;
    }
    end_finished_step();
    open_next_step();
}

/* Whether the open step is the remainder after the last one, of a loop without a loader: nothing yet, a part of a
 * round, such as gradients that no optimizer used, or a step whose end is not observable, since the program updates by
 * hand. After an exception it is a step that did not end. */
bool tare__torch_in_rest(void)
{
    if (!is_mine() || loop.epoch_open || loop.fetched)
        return false;
    if (!loop.trained || loop.unaided)
        return true;
    if (PySys_GetObject("last_type"))
        return loop.unsure;
    return !tare__torch_round_updated() || (loop.steps && !tare__torch_round_is_full());
}

/* ---- for Python ------------------------------------------------------------------------------------------ */
PyDoc_STRVAR(setup_doc,
             "torch_setup(is_grad_enabled, from_step, to_step, every_epochs)\n--\n\n"
             "Starts inferring steps and epochs. to_step: -1 for no end; every_epochs: 0 for all.");
static PyObject *setup(PyObject *module, PyObject *arguments)
{
    PyObject *grad_enabled;
    unsigned long long from, every;
    long long to;
    if (!PyArg_ParseTuple(arguments, "OKLK:torch_setup", &grad_enabled, &from, &to, &every))
        return NULL;
    tare__torch_ask_gradients_of(grad_enabled);
    tare__torch_window_set(from, to < 0 ? UINT64_MAX : (uint64_t)to, every);
    loop.set_up = true;
    tare__py_stack_watched = (tare__py_stack_watcher){&step_site, step_is_cut, span_begins, span_has_begun, span_ended,
                                                      false};
    follow_window();
    Py_RETURN_NONE;
}

static PyObject *on_training(PyObject *module, PyObject *function)
{
    Py_XSETREF(loop.on_training, Py_NewRef(function));
    Py_RETURN_NONE;
}

static PyObject *counts(PyObject *module, PyObject *nothing)
{
    return Py_BuildValue("KK", (unsigned long long)loop.steps, (unsigned long long)loop.epochs);
}

/* The counts are recorded at the end, if only a part was recorded. */
static PyObject *finish(PyObject *module, PyObject *nothing)
{
    if (!ours())
        Py_RETURN_NONE;
    tare__torch_phase_end_all();
    drop_guess();
    if (tare__torch_in_rest()) { /* a reader ends it with its last event: it stays open */
        if (!loop.unsure)
            tare_number(&outer_index_site, -1);
        loop.step_open = false;
    }
    drop_waiting();
    if (loop.step_open && (is_complete() || !loop.trained)) /* or it only requested a batch, and the loop was left */
        end_step();
    if (loop.exhausted)
        end_epoch();
    if (loop.epoch_open && !loop.step_open)
        end_epoch();
    if (tare__torch_window_is_part()) {
        tare__torch_window_resume();
        tare_counter_name("torch.steps", (double)loop.steps);
        tare_counter_name("torch.epochs", (double)loop.epochs);
    }
    loop.set_up = false;
    Py_RETURN_NONE;
}

/* Everything open ends: from here on steps are reported externally, or not at all. */
void tare__torch_steps_reported(void)
{
    if (loop.handed_over)
        return;
    if (ours()) {
        tare__torch_phase_end_all();
        if (loop.step_open && !loop.epoch_open)
            end_step();
        end_epoch();
    }
    loop.handed_over = true;
}

bool tare__torch_uncounted(void)
{
    return loop.uncounted;
}

static PyObject *count_samples(PyObject *module, PyObject *object)
{
    int yes = PyObject_IsTrue(object);
    if (yes < 0)
        return NULL;
    loop.uncounted = !yes;
    Py_RETURN_NONE;
}

static PyObject *hand_over(PyObject *module, PyObject *object)
{
    int yes = PyObject_IsTrue(object);
    if (yes < 0)
        return NULL;
    bool before = loop.handed_over;
    if (yes)
        tare__torch_steps_reported();
    loop.handed_over = yes;
    return PyBool_FromLong(before);
}

/* A child of the training process: a loader's worker, or an independent program. */
static PyObject *forked(PyObject *module, PyObject *nothing)
{
    tare__torch_phases_forked();
    tare__torch_window_resume();
    tare__torch_window_set(0, UINT64_MAX, 0);
    tare__torch_batches_forget();
    loop.step_open = loop.epoch_open = loop.epoch_unsure = loop.exhausted = false;
    loop.guessed = loop.claimed = guessing = false;
    forget_guess();
    loop.by_hand = loop.waiting = loop.due = tare__py_stack_watched.watching = false;
    loop.thread = 0;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"torch_setup", setup, METH_VARARGS, setup_doc},
    {"torch_on_training", on_training, METH_O,
     "torch_on_training(function)\n--\n\nfunction() is called once, when something begins to train."},
    {"torch_counts", counts, METH_NOARGS, "torch_counts()\n--\n\n(steps, epochs) that have ended."},
    {"torch_finish", finish, METH_NOARGS, "torch_finish()\n--\n\nThe program ends."},
    {"torch_count_samples", count_samples, METH_O,
     "torch_count_samples(yes)\n--\n\nWhether the samples of batches are recorded when steps and epochs are reported "
     "externally."},
    {"torch_hand_over", hand_over, METH_O,
     "torch_hand_over(yes)\n--\n\nSteps and epochs are reported externally. Returns whether they were before."},
    {"torch_forked", forked, METH_NOARGS, "torch_forked()\n--\n\nCalled in a forked child."},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_torch_steps = {.functions = functions};
