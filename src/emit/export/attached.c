/* attached: the numbers of a span that is still open, summed by name as the span table does.
 * Owned by the calling thread.
 * Must not know the formats. */
#include "attached.h"

#include <stdlib.h>
#include <string.h>

#include "tare.h"

static tare__attached *make_room(tare__attached *list)
{
    uint32_t room = list ? list->room * 2 : 2;
    tare__attached *grown = realloc(list, sizeof *grown + room * sizeof grown->numbers[0]);
    if (grown && !list)
        *grown = (tare__attached){.n = 0};
    if (grown)
        grown->room = room;
    return grown;
}

/* Two call sites may have created separate ids for one name. */
static bool same_name(const tare__trace *trace, uint32_t left, uint32_t right)
{
    if (left == right)
        return true;
    const tare__trace_name *a = tare__trace_name_at(trace, left), *b = tare__trace_name_at(trace, right);
    return a && b && a->text && b->text && strcmp(a->text, b->text) == 0;
}

int tare__emit_attach(const tare__trace *trace, void **own, uint32_t name, double value)
{
    tare__attached *list = *own;
    for (uint32_t i = 0; list && i < list->n; i++) {
        if (same_name(trace, list->numbers[i].name, name)) {
            list->numbers[i].sum += value;
            return 0;
        }
    }
    if (list && list->n == TARE__ATTACHED_MAX) {
        list->left_out++;
        return 0;
    }
    if (!list || list->n == list->room) {
        list = make_room(list);
        if (!list)
            return TARE_E_MEMORY;
        *own = list;
    }
    list->numbers[list->n++] = (struct tare__attached_number){value, name};
    return 0;
}
