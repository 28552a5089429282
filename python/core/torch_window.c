/* torch_window: records only the requested steps and epochs: pauses the recorder outside of them.
 * Attached to the interpreter, with its lock.
 * Must not know how steps and epochs are found. */
#include "torch.h"

static struct {
    uint64_t from_step, to_step; /* to: the first one not recorded; UINT64_MAX: all */
    uint64_t every_epochs;       /* 0: all */
    bool paused;                 /* by this file */
} window = {.to_step = UINT64_MAX};

void tare__torch_window_set(uint64_t from_step, uint64_t to_step, uint64_t every_epochs)
{
    window.from_step = from_step;
    window.to_step = to_step;
    window.every_epochs = every_epochs;
}

bool tare__torch_window_is_part(void)
{
    return window.every_epochs || window.from_step || window.to_step != UINT64_MAX;
}

void tare__torch_window_resume(void)
{
    if (window.paused)
        tare_resume();
    window.paused = false;
}

void tare__torch_window_follow(uint64_t step, uint64_t epoch)
{
    bool wanted = (!window.every_epochs || epoch % window.every_epochs == 0) && step >= window.from_step &&
                  step < window.to_step;
    if (wanted)
        tare__torch_window_resume();
    else if (!window.paused)
        tare_pause();
    window.paused = !wanted;
}
