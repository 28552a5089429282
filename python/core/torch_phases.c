/* torch_phases: which phase of a training step a thread is in, as nested spans.
 * The state is the thread's own. Must not know what begins a phase. */
#include "torch.h"

const char *const tare__torch_phase_names[TORCH_PHASES] = {"",        "data",     "copy",
                                                           "forward", "backward", "optimizer"};

static tare_site sites[TORCH_PHASES] = {
    {0},
    TARE_SITE_OF("data", TARE_KIND_PHASE, 1),
    TARE_SITE_OF("copy", TARE_KIND_PHASE, 1),
    TARE_SITE_OF("forward", TARE_KIND_PHASE, 1),
    TARE_SITE_OF("backward", TARE_KIND_PHASE, 1),
    TARE_SITE_OF("optimizer", TARE_KIND_PHASE, 1),
};

/* A phase inside an optimizer's closure inside …: programs do not nest deeper. */
#define DEEPEST 8
static __thread struct {
    uint8_t depth;
    uint8_t open[DEEPEST];
} mine __attribute__((tls_model("initial-exec")));

torch_phase tare__torch_phase_now(void)
{
    return mine.depth ? (torch_phase)mine.open[mine.depth - 1] : NO_PHASE;
}

bool tare__torch_phase_begin(torch_phase phase)
{
    torch_phase now = tare__torch_phase_now();
    if ((now != NO_PHASE && now != OPTIMIZER) || now == phase || mine.depth == DEEPEST)
        return false;
    sites[phase].file = NULL; /* this file is not part of the user's code */
    tare__py_stack_begin(&sites[phase], Py_None);
    mine.open[mine.depth++] = (uint8_t)phase;
    return true;
}

static void end_innermost(void)
{
    torch_phase phase = (torch_phase)mine.open[--mine.depth];
    tare__py_stack_end(&sites[phase]);
}

void tare__torch_phase_end(torch_phase phase)
{
    for (uint8_t at = mine.depth; at > 0; at--)
        if (mine.open[at - 1] == phase) {
            while (mine.depth >= at)
                end_innermost();
            return;
        }
}

void tare__torch_phase_end_all(void)
{
    while (mine.depth)
        end_innermost();
}

void tare__torch_phases_forked(void)
{
    mine.depth = 0;
}
