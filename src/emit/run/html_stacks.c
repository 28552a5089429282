/* html_stacks: the call tree of sampled stacks as the page's data: functions once, nodes packed.
 * Owned by the calling thread.
 * Must not know how the tree was made, nor how it is drawn. */
#include <stdlib.h>
#include <string.h>

#include "emit/export/stacks.h"
#include "html.h"

typedef struct packing {
    tare__html *page;
    const tare__stack_tree *tree;
    tare__intern *functions;
    uint32_t *function_of; /* by node */
    tare__text name;
} packing;

/* ---- functions -------------------------------------------------------------------------------------------- */
static void put_function(tare__html *page, const tare__stack_node *node)
{
    tare__html_open_row(page);
    tare__json_string(&page->json, node->name);
    tare__json_string(&page->json, node->file ? tare__stack_file(page->analysis, node->file) : NULL);
    tare__json_unsigned(&page->json, node->first_line);
    tare__json_string(&page->json, node->package ? node->package : "other");
    tare__html_close_row(page);
}

static bool put_functions(packing *of)
{
    tare__html_open_table(of->page, "functions", "name file first_line package");
    for (size_t i = 0; i < of->tree->n && !of->page->status; i++) {
        const tare__stack_node *node = &of->tree->nodes[i];
        uint32_t known = tare__intern_count(of->functions);
        tare__text_clear(&of->name);
        tare__text_string(&of->name, node->name);
        tare__text_append(&of->name, "", 1);
        tare__text_string(&of->name, node->file ? node->file : "");
        tare__text_append(&of->name, (const char *)&node->first_line, sizeof node->first_line);
        if (of->name.failed)
            return false;
        of->function_of[i] = tare__intern_add(of->functions, of->name.data, of->name.length);
        if (of->function_of[i] == TARE__INTERN_NONE)
            return false;
        if (of->function_of[i] == known)
            put_function(of->page, node);
    }
    tare__html_close_table(of->page, 0);
    return true;
}

/* ---- threads: the nodes at depth 1, and those above them that have no threads ---------------------------------- */
static bool is_owner(const tare__stack_node *node)
{
    return node->depth == 1 || (node->depth == 0 && node->n_rows == 0);
}

static void put_threads(packing *of)
{
    tare__html *page = of->page;
    const tare__analysis *analysis = page->analysis;
    const tare__stack_node *process = NULL;
    tare__html_open_table(page, "threads", "process number name leading");
    for (size_t i = 0; i < of->tree->n && !page->status; i++) {
        const tare__stack_node *node = &of->tree->nodes[i];
        process = node->depth == 0 ? node : process;
        if (!is_owner(node))
            continue;
        const tare__sampled_thread_row *thread =
            node->thread < analysis->n_sampled_threads ? &analysis->sampled_threads[node->thread] : NULL;
        tare__html_open_row(page);
        tare__json_string(&page->json, process->name);
        tare__json_unsigned(&page->json, (uint64_t)(process - of->tree->nodes));
        tare__text_clear(&of->name);
        tare__stack_thread_name(analysis, node, &of->name);
        tare__json_text(&page->json, of->name.data, of->name.length);
        tare__json_bool(&page->json, thread && thread->leading);
        tare__html_close_row(page);
    }
    tare__html_close_table(page, 0);
    page->text.failed |= of->name.failed;
}

/* ---- nodes ----------------------------------------------------------------------------------------------- */
/* Depth below the thread; of the outermost the thread's row; function, line, nanoseconds running, the number of other
 * states, and each with its nanoseconds. */
static void pack_node(const packing *of, size_t i, uint32_t depth, uint32_t owner, tare__text *bytes)
{
    const tare__stack_node *node = &of->tree->nodes[i];
    unsigned others = 0;
    for (unsigned state = 0; state < TARE__STATE_COUNT; state++)
        others += state != TARE__STATE_RUNNING && node->of.ns[state] >= 0.5;
    tare__pack_varint(bytes, depth);
    if (depth == 0)
        tare__pack_varint(bytes, owner);
    tare__pack_varint(bytes, of->function_of[i]);
    tare__pack_varint(bytes, node->line);
    tare__pack_varint(bytes, node->of.ns[TARE__STATE_RUNNING] + 0.5);
    tare__pack_varint(bytes, others);
    for (unsigned state = 0; state < TARE__STATE_COUNT; state++) {
        if (state == TARE__STATE_RUNNING || !(node->of.ns[state] >= 0.5))
            continue;
        tare__pack_varint(bytes, state);
        tare__pack_varint(bytes, node->of.ns[state] + 0.5);
    }
}

/* Threads with time of their own ("(other)") have it in a frame of that name. */
static void put_nodes(packing *of)
{
    tare__text bytes = {0};
    uint64_t n = 0;
    uint32_t owners = 0;
    for (size_t i = 0; i < of->tree->n; i++) {
        const tare__stack_node *node = &of->tree->nodes[i];
        owners += is_owner(node);
        if (node->depth < 2 && !(is_owner(node) && node->self_ns > 0))
            continue;
        pack_node(of, i, node->depth < 2 ? 0 : node->depth - 2, owners - 1, &bytes);
        n++;
    }
    tare__json_put_unsigned(&of->page->json, "nodes", n);
    tare__json_key(&of->page->json, "packed");
    tare__html_packed(of->page, &bytes);
    tare__text_free(&bytes);
}

static void put_states(tare__html *page)
{
    tare__json_key(&page->json, "states");
    tare__json_array(&page->json);
    for (unsigned state = 0; state < TARE__STATE_COUNT; state++) {
        tare__json_array(&page->json);
        tare__json_string(&page->json, tare__state_word(state));
        tare__json_string(&page->json, tare__state_phrase(state));
        tare__json_end_array(&page->json);
    }
    tare__json_end_array(&page->json);
}

/* Of the first rows of the table of lines. */
static void put_code(tare__html *page)
{
    tare__text line = {0};
    tare__json_key(&page->json, "code");
    tare__json_array(&page->json);
    for (size_t i = 0; i < page->n_sources; i++) {
        tare__text_clear(&line);
        tare__stack_put_line(&line, page->sources[i], page->sources[i] ? strlen(page->sources[i]) : 0);
        if (page->sources[i])
            tare__json_text(&page->json, line.data, line.length);
        else
            tare__json_null(&page->json);
    }
    tare__json_end_array(&page->json);
    page->text.failed |= line.failed;
    tare__text_free(&line);
}

static void put_tree(packing *of)
{
    tare__html *page = of->page;
    uint64_t samples = 0;
    for (size_t i = 0; i < page->analysis->n_sampled_threads; i++)
        samples += page->analysis->sampled_threads[i].samples;
    tare__json_object(&page->json);
    tare__json_put_unsigned(&page->json, "samples", samples);
    tare__html_key_ns(page, "smallest", of->tree->smallest_ns);
    put_states(page);
    put_code(page);
    put_threads(of);
    if (put_functions(of))
        put_nodes(of);
    else
        page->text.failed = true;
    tare__json_end_object(&page->json);
}

void tare__html_stacks(tare__html *page)
{
    packing of = {.page = page, .tree = &page->analysis->stacks};
    tare__json_key(&page->json, "stacks");
    if (!of.tree->n) {
        tare__json_null(&page->json);
        return;
    }
    of.functions = tare__intern_new();
    of.function_of = calloc(of.tree->n, sizeof *of.function_of);
    if (of.functions && of.function_of)
        put_tree(&of);
    else
        page->text.failed = true;
    tare__intern_free(of.functions);
    free(of.function_of);
    tare__text_free(&of.name);
}
