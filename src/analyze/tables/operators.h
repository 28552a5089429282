/* operators: intermediate state of the tables of operators and modules, between the walk over all nodes and the rows.
 * Owned by the thread that analyzes.
 * Must not know output formats. */
#ifndef TARE_ANALYZE_OPERATORS_H
#define TARE_ANALYZE_OPERATORS_H

#include "analyze/inner.h"

typedef struct place { /* of a node: what contains it */
    uint32_t phase;    /* canon; 0: none */
    uint32_t module;   /* index + 1 of the nearest module; 0: none */
    uint32_t row;      /* of an operator: its index in operators, + 1 */
    tare__direction direction;
    bool in_step, on_track;
} place;

typedef struct operator_sum {
    uint32_t name, phase;
    tare__direction direction;
    uint64_t calls, timed, total, self, min, max;
    double step_self; /* minus the recorder's overhead */
    uint64_t sum; /* of all durations, including those nested in others of that name */
    double own;   /* the recorder's overhead in self */
    tare__hist hist;
    uint32_t module, modules; /* module: index + 1 of the first one */
    uint32_t pair;            /* canon; 0: none */
    uint64_t paired, pair_total;
    uint64_t inspected, recomputed; /* calls in the step whose shapes were recorded */
    double flops, bytes;            /* of these; flops NaN: no formula */
    tare__text shapes;
    unsigned n_shapes;
} operator_sum;

typedef struct module_sum {
    uint32_t name, parent; /* parent: index + 1 */
    uint64_t calls, total, inside; /* inside: total of the modules directly inside it */
    uint64_t backward, backward_calls;
    double operators; /* self time of its operators */
    uint32_t row;     /* in the table */
} module_sum;

typedef struct module_operator {
    uint32_t module, name; /* module: index in modules */
    tare__direction direction;
    uint64_t calls, total;
    double self; /* NaN: not known */
} module_operator;

/* Rows indexed by a key of three numbers. */
typedef struct keyed {
    tare__intern *index;
    void *rows;
    size_t n, room;
} keyed;

typedef struct operators {
    work *work;
    uint64_t *totals; /* by node, as id - 1 */
    place *places;
    keyed sums, modules, cells, seen;
    cost cost;
    bool has_shapes;         /* a step recorded shapes */
    const char *refused; /* why no step recorded shapes; NULL: not requested */
} operators;

#define SUMS(all)    ((operator_sum *)(all)->sums.rows)
#define MODULES(all) ((module_sum *)(all)->modules.rows)
#define CELLS(all)   ((module_operator *)(all)->cells.rows)

/* Assigns the shapes recorded in one step to the operators, by how often each is called. */
int tare__operators_take_shapes(operators *all);
void tare__operators_put_shapes(const operators *all, const operator_sum *sum, tare__arena *arena,
                                tare__operator_row *row);
tare__direction tare__operators_direction(const operators *all, const node *node, const place *place);

int tare__operators_modules_table(operators *all, tare__analysis *analysis);

#endif
