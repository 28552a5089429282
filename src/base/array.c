/* array: growth of arrays. Owned by the calling thread.
 * Must not know what is in them. */
#include <stdlib.h>
#include <string.h>

#include "base.h"

bool tare__array_fit(void *array, size_t *room, size_t needed, size_t element_bytes)
{
    void *now, *grown;
    if (needed <= *room)
        return true;
    size_t wanted = *room ? *room : 16;
    while (wanted < needed)
        wanted = wanted > SIZE_MAX / 2 ? needed : wanted * 2;
    if (wanted > SIZE_MAX / element_bytes)
        return false;
    memcpy(&now, array, sizeof now);
    grown = realloc(now, wanted * element_bytes);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof grown);
    *room = wanted;
    return true;
}

bool tare__array_fit_zeroed(void *array, size_t *room, size_t needed, size_t element_bytes)
{
    size_t before = *room;
    char *elements;
    if (needed <= before)
        return true;
    if (!tare__array_fit(array, room, needed, element_bytes))
        return false;
    memcpy(&elements, array, sizeof elements);
    memset(elements + before * element_bytes, 0, (*room - before) * element_bytes);
    return true;
}
