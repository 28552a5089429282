/* operators_shapes: shapes, bytes and FLOPs recorded in one step, assigned to the operators of all steps.
 * Owned by the thread that analyzes.
 * Must not know how they were recorded, nor how rows are displayed. */
#include "operators.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHAPES_SHOWN 4u

/* Prefixes of the spans of that step: their subject follows. */
static const struct {
    const char *prefix;
    bool backward, recomputed;
} inspections[] = {{"shapes: ", false, false}, {"shapes backward: ", true, false}, {"shapes recomputed: ", true, true}};
static const char refusal[] = "torch.shapes.unavailable";

/* Which of them a name is, and the operator's name; -1: none. */
static int inspection_of(const char *text, const char **name)
{
    for (size_t i = 0; i < TARE__COUNT_OF(inspections); i++) {
        size_t length = strlen(inspections[i].prefix);
        if (strncmp(text, inspections[i].prefix, length) == 0) {
            *name = text + length;
            return (int)i;
        }
    }
    return -1;
}

bool tare__analyze_is_inspection(const char *name)
{
    const char *operator;
    return inspection_of(name, &operator) >= 0;
}

static double number_of(const operators *all, const node *node, const char *name)
{
    for (const number_cell *cell = node->numbers; cell; cell = cell->next)
        if (strcmp(all->work->names.rows[cell->name].text, name) == 0)
            return cell->sum;
    return NAN;
}

static operator_sum *sum_of(const operators *all, const char *name, uint32_t phase, tare__direction direction)
{
    for (size_t i = 0; i < all->sums.n; i++) {
        operator_sum *sum = &SUMS(all)[i];
        if (sum->phase == phase && sum->direction == direction &&
            strcmp(all->work->names.rows[sum->name].text, name) == 0)
            return sum;
    }
    return NULL;
}

static void add_shapes(const operators *all, operator_sum *sum, const node *inspection)
{
    for (const node *shape = inspection->children; shape; shape = shape->sibling) {
        const char *text = all->work->names.rows[shape->name].text;
        if (sum->shapes.data && strstr(sum->shapes.data, text))
            continue; /* the same operator in another module */
        if (sum->n_shapes++ < SHAPES_SHOWN)
            tare__text_format(&sum->shapes, "%s%s", sum->shapes.length ? "; " : "", text);
        else if (sum->n_shapes == SHAPES_SHOWN + 1)
            tare__text_string(&sum->shapes, "; …");
    }
}

static int take(operators *all, const node *node)
{
    const canon *canon = &all->work->names.rows[node->name];
    const char *name;
    int kind = node->parent && canon->kind == TARE_KIND_SPAN ? inspection_of(canon->text, &name) : -1;
    if (kind < 0)
        return 0;
    const place *place = &all->places[node->id - 1];
    tare__direction direction =
        inspections[kind].backward ? TARE__BACKWARD : tare__operators_direction(all, node, place);
    operator_sum *sum = sum_of(all, name, place->phase, direction);
    if (!sum)
        return 0;
    double flops = number_of(all, node, "flops"), bytes = number_of(all, node, "bytes");
    sum->flops = sum->inspected ? sum->flops + flops : flops;
    sum->bytes = sum->inspected ? sum->bytes + bytes : bytes;
    sum->inspected += node->hist.total;
    sum->recomputed += inspections[kind].recomputed ? node->hist.total : 0;
    add_shapes(all, sum, node);
    return sum->shapes.failed ? TARE_E_MEMORY : 0;
}

int tare__operators_take_shapes(operators *all)
{
    int status = 0;
    for (uint32_t i = 0; i < all->work->nodes.n && !status; i++)
        status = take(all, all->work->nodes.all[i]);
    for (size_t i = 0; i < all->sums.n; i++)
        all->has_shapes |= SUMS(all)[i].inspected > 0;
    size_t n;
    const tare__trace_fact *facts = tare__trace_facts(all->work->trace, &n);
    for (size_t i = 0; i < n && !all->refused; i++)
        if (tare__trace_fact_is(all->work->trace, &facts[i], refusal))
            all->refused = tare__trace_fact_text(all->work->trace, facts[i].text);
    return status;
}

static const char *why_absent(const operators *all, const operator_sum *sum, char words[256])
{
    if (!all->has_shapes)
        return all->refused ? all->refused : "not recorded (tare run --shapes)";
    if (!sum->inspected)
        return "not measured in the inspected step; the operators it calls have their own figures";
    char times[TARE__COUNTED_BYTES];
    if (sum->calls % sum->inspected == 0)
        return NULL;
    snprintf(words, 256, "it is called %s, not a multiple of the %" PRIu64 " calls in the inspected step",
             tare__unit_counted(times, (double)sum->calls, "time", NULL), sum->inspected);
    return words;
}

void tare__operators_put_shapes(const operators *all, const operator_sum *sum, tare__arena *arena,
                                tare__operator_row *row)
{
    char words[256];
    row->shapes_absent = copied(arena, why_absent(all, sum, words));
    row->flops = row->bytes = row->flops_per_s = row->bytes_per_s = NAN;
    if (row->shapes_absent)
        return;
    double times = (double)(sum->calls / sum->inspected);
    row->recomputed = sum->recomputed * (sum->calls / sum->inspected);
    row->flops = sum->flops * times;
    row->bytes = sum->bytes * times;
    if (row->total_ns > 0) {
        row->flops_per_s = row->flops / (row->total_ns / 1e9);
        row->bytes_per_s = row->bytes / (row->total_ns / 1e9);
    }
    row->shapes = copied(arena, sum->shapes.data ? sum->shapes.data : "");
}
