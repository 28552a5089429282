/* torch: shared declarations of the files that watch torch: phases of this thread, and lines of the program's own code.
 * Everything runs attached to the interpreter, with its lock where there is one.
 * Must not know torch's C++ side: only what its Python shows. */
#ifndef TARE_PYTHON_TORCH_H
#define TARE_PYTHON_TORCH_H

#include "core.h"

typedef enum torch_phase { NO_PHASE, DATA, COPY, FORWARD, BACKWARD, OPTIMIZER, TORCH_PHASES } torch_phase;
extern const char *const tare__torch_phase_names[TORCH_PHASES];

/* ---- phases of the calling thread (torch_phases.c) ------------------------------------------------------ */
/* False: another phase is open around it and includes it. An optimizer may contain others (closures). */
bool tare__torch_phase_begin(torch_phase phase);
void tare__torch_phase_end(torch_phase phase); /* phases left open inside end too */
void tare__torch_phase_end_all(void);
torch_phase tare__torch_phase_now(void);
/* Ticks since the last call of this function in calls that have a separate span at their line, such as torch.save;
 * *kind: of which. */
uint64_t tare__torch_ticks_at_line(const char **kind);
bool tare__torch_loading(void); /* a dataset is loading, in any process (torch_around.c) */
extern bool tare__torch_loads_aside; /* this process is a loader's worker, and its batches are not trained on */
void tare__torch_phases_forked(void); /* in a child: no phase of this thread is open */

/* ---- steps and epochs, from what happens (torch_steps.c) ------------------------------------------------ */
/* A loader is asked for a batch. Pass the returned value to the end function. */
typedef struct torch_fetch {
    bool training, first, last, tells_length;
    bool opened; /* a step began with it */
    PyObject *loader; /* a new reference to what identifies the loader; NULL: unknown */
} torch_fetch;
void tare__torch_fetch_begin(PyObject *iterator, torch_fetch *fetch);
bool tare__torch_fetch_is_for_step(const torch_fetch *fetch);
void tare__torch_fetch_end(torch_fetch *fetch, bool got_batch); /* no exception is set, or it is kept */
void tare__torch_forward_begins(PyObject *module);
void tare__torch_forward_ended(void); /* the outermost one */
void tare__torch_backward_begins(void);
void tare__torch_optimizer_begins(void);
void tare__torch_optimizer_ended(const void *optimizer);
bool tare__torch_in_step(void); /* the calling thread */
bool tare__torch_in_rest(void); /* … in a step that is not counted if the program ends now */
bool tare__torch_between_steps(void); /* this is the thread whose steps are inferred, and none is open */
void tare__torch_optimizer_is_made(void);
bool tare__torch_uncounted(void); /* it is unknown which batches the externally reported steps use */
uint64_t tare__torch_steps(void); /* number of steps that have ended */

/* ---- models of the loop, and what is new (torch_models.c) ------------------------------------------------ */
bool tare__torch_has_trained(PyObject *module);
bool tare__torch_keep_model(PyObject *module);      /* it trains; false: no reference to it can be kept */
bool tare__torch_any_model_trained(void);           /* … and lives */
PyObject *tare__torch_model_in_training(void);      /* a new reference to the last of them; NULL: none lives */
bool tare__torch_trained_last(PyObject *module);    /* it is the last one that trained */
bool tare__torch_will_train(void);                  /* a batch requested now will be trained on, by that model */
void tare__torch_models_step_begins(void);
void tare__torch_models_step_ended(void);           /* and counts */
void tare__torch_begins_with_new_model(void);       /* the open step */
bool tare__torch_new_model_before(void);            /* the previous step did, too */
bool tare__torch_note_new_optimizer(void);          /* false: one was created for the previous step, too */
bool tare__torch_computes_in_every_step(const void *module); /* without gradients; notes that it does in this one */

/* ---- which steps are recorded (torch_window.c) ------------------------------------------------------------ */
void tare__torch_window_set(uint64_t from_step, uint64_t to_step, uint64_t every_epochs);
bool tare__torch_window_is_part(void);
void tare__torch_window_follow(uint64_t step, uint64_t epoch); /* the current ones, or the next */
void tare__torch_window_resume(void);

/* ---- batches and the steps that use them (torch_batches.c) ------------------------------------------------ */
void tare__torch_describe_fetch(PyObject *iterator, torch_fetch *fetch); /* what the loader states about itself */
void tare__torch_batch_came(const void *iterator, bool first, double samples); /* samples: -1 where unknown */
void tare__torch_batches_ended(const void *iterator);   /* it has no more */
void tare__torch_batches_compute(unsigned backwards);   /* a backward pass begins; number of those before it in the
                                                         * step */
bool tare__torch_batches_held(unsigned backwards);      /* of exhausted loaders: more than that are not used
                                                         * yet */
void tare__torch_batches_used(unsigned backwards);      /* a step ends: its samples are recorded inside its span */
void tare__torch_batches_unused(bool reported);             /* a supposed step is not counted; its samples are or are
                                                         * not */
void tare__torch_batches_forget(void);

/* ---- reading the program's objects (torch_ask.c) ---------------------------------------------------------- */
PyObject *tare__torch_alive(PyObject *weak); /* the referent of a weak reference, a new reference; NULL: it was freed */
bool tare__torch_is_true(PyObject *object, const char *name, bool otherwise);
void tare__torch_ask_gradients_of(PyObject *is_grad_enabled);
bool tare__torch_gradients(void);
bool tare__torch_has_parameters(PyObject *module);
Py_ssize_t tare__torch_number(PyObject *object, const char *name); /* an integer attribute's value; -1: it has none */

/* ---- what exists (torch_alive.c) ---------------------------------------------------------------------------- */
void tare__torch_optimizer_stepped(const void *optimizer);

/* ---- rounds of the loop, by its optimizers (torch_rounds.c) ----------------------------------------------- */
void tare__torch_optimizers_exist(unsigned n);
void tare__torch_round_begins(void);
bool tare__torch_round_stepped(const void *optimizer, bool fed); /* fed: by a loader. Whether the round is over */
bool tare__torch_round_updated(void);                            /* an optimizer has stepped in it */
bool tare__torch_round_is_full(void);                            /* all have */
bool tare__torch_rounds_without_optimizer(void);                 /* no optimizer steps: the program updates by hand */
void tare__torch_round_computes(void);                           /* a backward pass begins */

/* ---- names of a model's parts (torch_modules.c) ---------------------------------------------------------- */
void tare__torch_module_forget(PyObject *address); /* no exception is left */

/* ---- losses and their graphs (torch_graph.c) ------------------------------------------------------------- */
bool tare__torch_backward_from(PyObject *outputs); /* whether the size of the graph was recorded */

/* ---- lines of the program's own code (torch_lines.c) ---------------------------------------------------- */
void tare__torch_lines_drop_step(uint64_t begun); /* the step begun with this number turned out not to be one */
/* The innermost frame that is neither torch's nor of an installed package. False: there is none. */
typedef struct torch_line {
    char file[512], function[96];
    int line;
} torch_line;
bool tare__torch_line_here(torch_line *line);
const char *tare__torch_base_name(const char *path);

/* Saves a raised exception while other exceptions may be raised and cleared. */
typedef struct torch_raised {
    PyObject *type, *value, *trace;
} torch_raised;
static inline torch_raised tare__torch_put_aside(void)
{
    torch_raised raised;
    PyErr_Fetch(&raised.type, &raised.value, &raised.trace);
    return raised;
}
static inline void tare__torch_put_back(torch_raised raised)
{
    PyErr_Restore(raised.type, raised.value, raised.trace);
}

/* ---- unnoticed (torch_quiet.c) --------------------------------------------------------------------------- */
/* Between the two, the program's tracing functions and its __torch_function__s are not called. A pending exception is
 * kept; exceptions raised in between are dropped. */
typedef struct torch_quiet {
    torch_raised raised;
    PyObject *guard;
} torch_quiet;
torch_quiet tare__torch_quiet_begin(void);
void tare__torch_quiet_end(torch_quiet quiet);
PyObject *tare__torch_attribute(PyObject *object, const char *name);
PyObject *tare__torch_held(PyObject *object, const char *name); /* of the object, else of its type; no method is run */

#endif
