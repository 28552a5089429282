/* breaker: makes the main thread run pending calls at its next bytecode, whichever thread added them.
 * Any thread; only finding the main thread needs the interpreter's lock.
 * Must not know what the calls are for. */
#define Py_BUILD_CORE_MODULE 1 /* before Python 3.13 there is no function for it */
#include "core.h"

#if PY_VERSION_HEX < 0x030D0000
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX >= 0x030C0000
#include <internal/pycore_gil.h>
#endif

PyThreadState *tare__py_main_thread(void)
{
    PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    while (thread && thread->thread_id != _PyRuntime.main_thread)
        thread = PyThreadState_Next(thread);
    return thread;
}

static bool holds_lock(const PyThreadState *thread)
{
#if PY_VERSION_HEX >= 0x030C0000
    const struct _gil_runtime_state *lock = thread->interp->ceval.gil;
    return __atomic_load_n((const int *)&lock->locked, __ATOMIC_RELAXED) == 1 &&
           (const PyThreadState *)__atomic_load_n((const uintptr_t *)&lock->last_holder, __ATOMIC_RELAXED) == thread;
#else
    return (const PyThreadState *)__atomic_load_n((const uintptr_t *)&_PyRuntime.gilstate.tstate_current,
                                                  __ATOMIC_RELAXED) == thread;
#endif
}

/* Py_AddPendingCall notifies the interpreter only if the calling thread could run the call itself. A call added by
 * another thread would wait until the main thread releases the lock: up to 5 ms in a loop of Python code, or forever.
 * While another thread holds the lock the main thread needs no notification, and setting the flag would make that
 * other thread check for calls at every bytecode. */
void tare__py_break(PyThreadState *main_thread)
{
    if (main_thread && holds_lock(main_thread))
        __atomic_store_n((int *)&main_thread->interp->ceval.eval_breaker, 1, __ATOMIC_SEQ_CST);
}
#else
PyThreadState *tare__py_main_thread(void)
{
    return NULL;
}

void tare__py_break(PyThreadState *main_thread)
{
}
#endif
