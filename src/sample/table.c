/* table: the samplers, in the order in which they run and are listed. Constant; any thread.
 * A new sampler is its file and a line here.
 * Must not know how anything is measured. */
#include "sample.h"

static const tare__sampler *const samplers[] = {
    &tare__sampler_process, /* the first: it determines the processes of the tree */
    &tare__sampler_system,
    &tare__sampler_container,
    &tare__sampler_power,
    &tare__sampler_nvml,
};

const tare__sampler *tare__sampler_at(size_t index)
{
    return index < TARE__COUNT_OF(samplers) ? samplers[index] : NULL;
}

void tare__sample_doctor(const char *root, tare__sample_check_sink *sink, void *context)
{
    for (size_t i = 0; i < TARE__COUNT_OF(samplers); i++)
        if (samplers[i]->doctor)
            samplers[i]->doctor(root, sink, context);
    tare__symbols_doctor(root, sink, context);
}
