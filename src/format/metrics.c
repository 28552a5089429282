/* metrics: the table behind the list. Constant; any thread.
 * Must not know how anything is measured. */
#include "metrics.h"

#include <string.h>

static const tare__metric_about table[] = {
#define ROW(id, name, unit, kind, what) {name, TARE__IN_##unit, TARE__METRIC_##kind, what},
    TARE__METRICS(ROW)
#undef ROW
};

const tare__metric_about *tare__metric_of(tare__metric metric)
{
    return &table[metric];
}

tare__metric tare__metric_find(const char *name, uint32_t bytes)
{
    for (int i = 0; i < TARE__METRIC_COUNT; i++)
        if (strlen(table[i].name) == bytes && memcmp(table[i].name, name, bytes) == 0)
            return (tare__metric)i;
    return TARE__METRIC_COUNT;
}
