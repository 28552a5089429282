/* stacks_uses: the cells of an analysis in its arena, for questions about the time of lines within spans and threads.
 * Owned by the thread that analyzes.
 * Must not know the questions. */

#include "sampled.h"

static bool copy_names(const work *work, const sampled_nodes *from, tare__arena *arena, tare__uses *to)
{
    size_t paths = work->joined ? work->joined->n_paths : 1;
    use_line *lines = tare__arena_alloc(arena, (from->n_lines + 1) * sizeof *lines);
    use_function *functions = tare__arena_alloc(arena, (from->n_functions + 1) * sizeof *functions);
    const char **packages = tare__arena_alloc(arena, (from->n_packages + 1) * sizeof *packages);
    use_path *rows = tare__arena_alloc(arena, paths * sizeof *rows);
    if (!lines || !functions || !packages || !rows)
        return false;
    for (size_t i = 0; i < from->n_lines; i++) {
        const sampled_function *function = &from->functions[from->lines[i].function];
        lines[i] = (use_line){function->file, function->name, from->lines[i].line, from->lines[i].function,
                              function->own};
    }
    for (size_t i = 0; i < from->n_functions; i++) {
        const sampled_function *function = &from->functions[i];
        functions[i] = (use_function){function->name, function->file, function->package, function->own};
    }
    for (size_t i = 0; i < from->n_packages; i++)
        packages[i] = from->packages[i].name;
    rows[0] = (use_path){.name = ""};
    for (size_t i = 1; i < paths; i++) {
        const span_path *path = &work->joined->paths[i];
        rows[i] = (use_path){path->outer, path->kind, copied(arena, path->text)};
    }
    to->lines = lines;
    to->n_lines = from->n_lines;
    to->functions = functions;
    to->n_functions = from->n_functions;
    to->packages = packages;
    to->n_packages = from->n_packages;
    to->paths = rows;
    to->n_paths = paths;
    return true;
}

int tare__analyze_uses(const work *work, const sampled_nodes *nodes, tare__analysis *analysis)
{
    const sampled *sampled = work->sampled;
    tare__uses *to = tare__arena_alloc(analysis->arena, sizeof *to);
    use *rows = tare__arena_alloc(analysis->arena, (sampled->n_cells + 1) * sizeof *rows);
    sampled_split *splits = tare__arena_alloc(analysis->arena, (analysis->n_sampled_threads + 1) * sizeof *splits);
    if (!to || !rows || !splits || !copy_names(work, nodes, analysis->arena, to))
        return TARE_E_MEMORY;
    to->n = 0;
    for (uint32_t i = 1; i <= sampled->n_threads; i++)
        if (sampled->threads[i].samples)
            splits[sampled->threads[i].row] = tare__analyze_sampled_split(&sampled->threads[i]);
    for (size_t i = 0; i < sampled->n_cells; i++) {
        const sampled_cell *cell = &sampled->cells[i];
        const sampled_node *node = &nodes->nodes[cell->node];
        if (cell->wall_ns > 0)
            rows[to->n++] = (use){.thread = sampled->threads[cell->thread].row,
                                  .path = cell->path,
                                  .own_line = node->own_line,
                                  .line = node->self_line,
                                  .inner = node->function,
                                  .package = node->package,
                                  .imports = node->imports,
                                  .state = cell->state,
                                  .samples = cell->samples,
                                  .wall_ns = cell->wall_ns,
                                  .cpu_ns = cell->cpu_ns};
    }
    to->rows = rows;
    to->splits = splits;
    analysis->uses = to;
    return 0;
}
