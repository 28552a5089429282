/* stacks_nodes: the stacks of all samples as nodes of one call tree, with the line of own code and the package of each.
 * Owned by the thread that analyzes.
 * Must not know times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampled.h"

static const char own_package[] = "your code", unknown[] = "(unknown function)", no_stack[] = "(no stack)";

/* ---- functions and packages -------------------------------------------------------------------------------- */
static uint32_t add_package(sampled_nodes *to, tare__arena *arena, sampled_origin origin, const char *name,
                            size_t length)
{
    uint32_t known = tare__intern_count(to->package_names);
    uint32_t id = tare__intern_add(to->package_names, name, length);
    if (id == TARE__INTERN_NONE || id < known)
        return id == TARE__INTERN_NONE ? TARE__NO_ROW : id;
    if (!tare__array_fit(&to->packages, &to->packages_room, (size_t)id + 1, sizeof *to->packages))
        return TARE__NO_ROW;
    to->packages[id] = (sampled_package){tare__arena_copy(arena, name, length), origin};
    to->n_packages = (size_t)id + 1;
    return to->packages[id].name ? id : TARE__NO_ROW;
}

/* The package, if it has one, in function->package. False: out of memory. */
static bool find_package(sampled_nodes *to, tare__arena *arena, sampled_function *function)
{
    const char *name;
    size_t length;
    sampled_origin origin = tare__analyze_package(function->kind, function->file ? function->file : "", &name, &length);
    if (origin == ORIGIN_NOTE) {
        name = function->name;
        length = strlen(name);
        if (*name == '(') /* a placeholder for frames */
            origin = ORIGIN_NONE;
    }
    if (origin == ORIGIN_OWN) {
        name = own_package;
        length = sizeof own_package - 1;
    }
    function->own = origin == ORIGIN_OWN;
    if (origin == ORIGIN_NONE)
        return true;
    function->package = add_package(to, arena, origin, name, length);
    return function->package != TARE__NO_ROW;
}

/* The name of a native function that is not symbolized, or nothing. */
static bool is_build_id(const char *name)
{
    size_t n = strspn(name, "0123456789abcdef");
    return name[n] == '\0' && (n == 0 || n >= 16);
}

static const char *base_name(const char *file)
{
    return *file ? tare__last_part(file) : unknown;
}

/* Its index; TARE__NO_ROW: out of memory. */
static uint32_t find_function(const work *work, sampled_nodes *to, tare__arena *arena, uint32_t number)
{
    if (to->function_of[number])
        return to->function_of[number] - 1;
    if (!tare__array_fit(&to->functions, &to->functions_room, to->n_functions + 1, sizeof *to->functions))
        return TARE__NO_ROW;
    const tare__trace_function *from = number ? tare__trace_function_at(work->trace, number) : NULL;
    const char *name = from && from->name && from->name[0] ? from->name : unknown;
    if (from && from->kind == TARE__FRAME_NATIVE && is_build_id(from->name))
        name = base_name(from->file);
    bool has_file = from && from->file && from->file[0];
    sampled_function *made = &to->functions[to->n_functions];
    *made = (sampled_function){.name = copied(arena, name),
                               .file = has_file ? copied(arena, from->file) : NULL,
                               .kind = from ? from->kind : TARE__FRAME_NOTE,
                               .first_line = from ? from->first_line : 0,
                               .package = TARE__NO_ROW};
    made->file_id = has_file ? tare__intern_add(to->files, from->file, strlen(from->file)) : 0;
    if (!made->name || (has_file && !made->file) || made->file_id == TARE__INTERN_NONE ||
        !find_package(to, arena, made))
        return TARE__NO_ROW;
    to->function_of[number] = (uint32_t)to->n_functions + 1;
    return (uint32_t)to->n_functions++;
}

/* ---- lines -------------------------------------------------------------------------------------------------- */
/* Comprehensions and generator expressions are on lines of the function around them. */
static bool is_inline(const char *function)
{
    static const char *const names[] = {"<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"};
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++)
        if (strstr(function, names[i]))
            return true;
    return false;
}

/* Before Python 3.11 their names do not say which function is around them. */
static bool is_inline_of(const char *inner, const char *function)
{
    size_t n = strlen(function);
    return is_inline(inner) && (inner[0] == '<' || (strncmp(inner, function, n) == 0 && inner[n] == '.'));
}

/* Texts that are executed have the same file and the same lines: two functions are of the same text if one is in the
 * other, or they have the same name. */
static bool is_same_text(const sampled_function *a, const sampled_function *b)
{
    return (a->first_line == b->first_line && strcmp(a->name, b->name) == 0) || is_inline_of(a->name, b->name) ||
           is_inline_of(b->name, a->name);
}

static bool is_line(const void *rows, uint32_t row, const void *key)
{
    const sampled_nodes *nodes = rows;
    const sampled_line *line = &nodes->lines[row], *wanted = key;
    const sampled_function *a = &nodes->functions[line->function], *b = &nodes->functions[wanted->function];
    return line->line == wanted->line && a->file_id == b->file_id &&
           (!a->file || a->file[0] != '<' || is_same_text(a, b));
}

static bool find_line(sampled_nodes *to, uint32_t function, uint32_t line, uint32_t *row)
{
    sampled_line key = {function, line};
    uint32_t hash = (uint32_t)tare__hash_mix(tare__hash_mix(to->functions[function].file_id, line), 1);
    *row = tare__index_find(&to->line_index, hash, is_line, to, &key);
    if (*row != TARE__INDEX_NONE) {
        sampled_line *found = &to->lines[*row];
        if (is_inline(to->functions[found->function].name) && !is_inline(to->functions[function].name))
            found->function = function;
        return true;
    }
    *row = (uint32_t)to->n_lines;
    if (!tare__array_fit(&to->lines, &to->lines_room, to->n_lines + 1, sizeof *to->lines) ||
        !tare__index_add(&to->line_index, hash, *row))
        return false;
    to->lines[to->n_lines++] = key;
    return true;
}

/* ---- nodes -------------------------------------------------------------------------------------------------- */
TARE__SAME(is_node, sampled_node, TARE__EQUAL(caller) && TARE__EQUAL(function) && TARE__EQUAL(line))

/* ---- code without a file --------------------------------------------------------------------------------------- */
static const char text_file[] = "<string>"; /* python -c, exec() and eval() of a string */

/* The innermost frame of Python code, this one included; 0: none. */
static uint32_t python_frame(const sampled_nodes *of, uint32_t node)
{
    while (node && of->functions[of->nodes[node].function].kind != TARE__FRAME_PYTHON)
        node = of->nodes[node].caller;
    return node;
}

static bool begins(const char *text, const char *part)
{
    return strncmp(text, part, strlen(part)) == 0;
}

/* Lines of .pth files, which the interpreter executes before the program, have no file, as code of the program may. */
static bool is_startup(const sampled_nodes *of, const sampled_node *caller)
{
    const char *file = of->functions[caller->function].file;
    size_t n = file ? strlen(file) : 0;
    return caller->startup || (n >= 8 && strcmp(file + n - 8, "/site.py") == 0) ||
           (file && strcmp(file, "<frozen site>") == 0);
}

/* Methods of dataclasses and named tuples: they have no source, and the line that calls them is more useful. */
static bool is_method_without_source(const char *function)
{
    const char *dot = strrchr(function, '.'), *name = dot ? dot + 1 : function;
    return begins(name, "__") || strcmp(name, "<lambda>") == 0;
}

/* Code that a library writes and compiles while the program runs. What a program compiles itself is called by its own
 * code, except if the whole program is such text. */
static bool is_generated(const sampled_nodes *of, const sampled_function *function, uint32_t caller)
{
    static const char *const files[] = {"<attrs generated", "<eval_with_key>", "<lambdifygenerated", "<decorator-gen",
                                        "<makefun-gen"};
    const char *file = function->file ? function->file : "";
    bool text = strcmp(file, text_file) == 0;
    if (text && is_startup(of, &of->nodes[caller]))
        return true;
    for (size_t i = 0; i < TARE__COUNT_OF(files); i++)
        if (begins(file, files[i]))
            return true;
    uint32_t by = text && !of->text_program ? python_frame(of, caller) : 0;
    return by && (!of->functions[of->nodes[by].function].own || is_method_without_source(function->name));
}

/* The function with lines of its own, which are no code of the program. TARE__NO_ROW: out of memory. */
static uint32_t generated_of(sampled_nodes *to, uint32_t function)
{
    char key[300];
    if (to->functions[function].generated)
        return to->functions[function].generated;
    if (!tare__array_fit(&to->functions, &to->functions_room, to->n_functions + 1, sizeof *to->functions))
        return TARE__NO_ROW;
    sampled_function *made = &to->functions[to->n_functions];
    *made = to->functions[function];
    made->own = false;
    made->package = TARE__NO_ROW;
    int n = snprintf(key, sizeof key, "%.250s (generated)", made->file);
    made->file_id = tare__intern_add(to->files, key, (size_t)n);
    if (made->file_id == TARE__INTERN_NONE)
        return TARE__NO_ROW;
    return to->functions[function].generated = (uint32_t)to->n_functions++;
}

/* Whether the program itself is a text of several lines: python -c, or embedded. Of one line, it defines no functions;
 * such processes are started by multiprocessing, too. */
static bool is_text_program(const work *work, uint32_t stack)
{
    const tare__trace_stack *from = tare__trace_stack_at(work->trace, stack);
    const tare__trace_function *function = from ? tare__trace_function_at(work->trace, from->function) : NULL;
    if (!function || function->kind != TARE__FRAME_PYTHON || from->line < 2 || strcmp(function->file, text_file) != 0)
        return false;
    for (uint32_t at = from->caller, below = stack; at && at < below; below = at, at = from->caller) {
        from = tare__trace_stack_at(work->trace, at);
        function = from ? tare__trace_function_at(work->trace, from->function) : NULL;
        if (!from || (function && function->kind == TARE__FRAME_PYTHON))
            return false;
    }
    return true;
}

/* The command line of a process that multiprocessing starts: no code of the program, which is called further in. */
static bool is_launched(const sampled_nodes *of, const sampled_function *function, uint32_t caller)
{
    uint32_t by = python_frame(of, caller);
    const char *file = by ? of->functions[of->nodes[by].function].file : NULL;
    return file && strcmp(file, text_file) == 0 && !python_frame(of, of->nodes[by].caller) && function->file &&
           strstr(function->file, "/multiprocessing/");
}

/* What a node has of its caller, and what is its own. False: out of memory. */
static bool complete(sampled_nodes *to, sampled_node *node)
{
    const sampled_function *function = &to->functions[node->function];
    const sampled_node *caller = &to->nodes[node->caller];
    static const char system[] = "<frozen importlib._bootstrap";
    /* Work that the program's own module does while it is imported is the program's. */
    node->imports = !function->own && (caller->imports || (function->file && strncmp(function->file, system,
                                                                                   sizeof system - 1) == 0));
    node->line_row = TARE__NO_ROW;
    node->self_line = caller->self_line;
    node->own_line = caller->own_line;
    node->package = caller->package;
    bool weak = function->package == TARE__NO_ROW || (to->packages[function->package].origin == ORIGIN_NATIVE &&
                                                      caller->package != TARE__NO_ROW &&
                                                      to->packages[caller->package].origin != ORIGIN_NATIVE);
    node->startup = !function->own && function->file && strcmp(function->file, text_file) == 0;
    if (!weak)
        node->package = function->package;
    if (function->kind != TARE__FRAME_PYTHON)
        return true;
    if (!find_line(to, node->function, node->line, &node->line_row))
        return false;
    node->self_line = node->line_row;
    if (function->own)
        node->own_line = node->line_row;
    else if (is_launched(to, function, node->caller))
        node->own_line = TARE__NO_ROW;
    return true;
}

/* 0: out of memory. */
static uint32_t find_node(sampled_nodes *to, uint32_t caller, uint32_t function, uint32_t line)
{
    sampled_node key = {.caller = caller, .function = function, .line = line};
    uint32_t hash = (uint32_t)tare__hash_mix(tare__hash_mix(caller, function), line);
    uint32_t row = tare__index_find(&to->node_index, hash, is_node, to->nodes, &key);
    if (row != TARE__INDEX_NONE)
        return row;
    row = (uint32_t)to->n;
    if (!tare__array_fit(&to->nodes, &to->room, to->n + 1, sizeof *to->nodes) || !complete(to, &key) ||
        !tare__index_add(&to->node_index, hash, row))
        return 0;
    to->nodes[to->n++] = key;
    return row;
}

typedef struct path { /* from a stack to its outermost caller without a node */
    uint32_t *stacks;
    size_t room;
} path;

/* Functions of the interpreter by which it calls others: they would hide what is called. */
static bool is_machinery(const tare__trace_function *function)
{
    static const char *const beginnings[] = {
        "_PyObject_Vectorcall", "PyObject_Vectorcall", "cfunction_", "method_vectorcall", "_PyObject_Call",
        "PyObject_Call",        "_PyEval_",            "_PyVectorcall", "PyVectorcall",   "_PyFunction_Vectorcall",
        "vectorcall_",          "PyEval_",             "object_vacall", "Py_DECREF",      "Py_XDECREF",
        "Py_INCREF",            "_Py_INCREF",          "_Py_DECREF",    "_Py_Dealloc",    "_PyCFunction_"};
    const char *base = function && function->kind == TARE__FRAME_NATIVE ? base_name(function->file) : "";
    if (strncmp(base, "libpython", 9) != 0 && strncmp(base, "python", 6) != 0)
        return false;
    for (size_t i = 0; i < TARE__COUNT_OF(beginnings); i++)
        if (strncmp(function->name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* The library of a function that is not symbolized is its name; the frames of a symbolized one are several nodes, where
 * functions are inlined. False: out of memory. */
static bool native_node(const work *work, sampled_nodes *to, tare__arena *arena, uint32_t caller,
                        const tare__trace_stack *from, uint32_t *made)
{
    uint32_t n, node = caller;
    const tare__stack_symbol_frame *frames = tare__trace_symbol_at(work->trace, from->function, from->line, &n);
    tare__stack_symbol_frame unknown_symbol = {from->function, 0};
    for (uint32_t i = 0; i < (frames ? n : 1); i++) {
        uint32_t number = (frames ? &frames[i] : &unknown_symbol)->function;
        if (number && is_machinery(tare__trace_function_at(work->trace, number)))
            continue;
        uint32_t function = find_function(work, to, arena, number);
        node = function == TARE__NO_ROW ? 0 : find_node(to, node, function, 0);
        if (!node)
            return false;
    }
    *made = node;
    return true;
}

static bool is_native(const work *work, uint32_t number)
{
    const tare__trace_function *function = number ? tare__trace_function_at(work->trace, number) : NULL;
    return function && (function->kind == TARE__FRAME_NATIVE || function->kind == TARE__FRAME_KERNEL);
}

/* The node of a stack, and those of its callers. False: out of memory. */
static bool make_nodes(const work *work, sampled_nodes *to, tare__arena *arena, path *path, uint32_t stack)
{
    size_t n = 0;
    for (uint32_t at = stack; at && !to->node_of[at]; n++) {
        const tare__trace_stack *from = tare__trace_stack_at(work->trace, at);
        if (!tare__array_fit(&path->stacks, &path->room, n + 1, sizeof *path->stacks))
            return false;
        path->stacks[n] = at;
        at = from && from->caller < at ? from->caller : 0;
    }
    while (n-- > 0) {
        const tare__trace_stack *from = tare__trace_stack_at(work->trace, path->stacks[n]);
        bool known = from && from->function <= tare__trace_function_count(work->trace);
        if (known && is_native(work, from->function)) {
            uint32_t above = from->caller < path->stacks[n] ? to->node_of[from->caller] : 0;
            if (!native_node(work, to, arena, above, from, &to->node_of[path->stacks[n]]))
                return false;
            continue;
        }
        uint32_t function = find_function(work, to, arena, known ? from->function : 0);
        uint32_t caller = from && from->caller < path->stacks[n] ? to->node_of[from->caller] : 0;
        if (function != TARE__NO_ROW && is_generated(to, &to->functions[function], caller))
            function = generated_of(to, function);
        if (function == TARE__NO_ROW)
            return false;
        bool python = to->functions[function].kind == TARE__FRAME_PYTHON;
        uint32_t line = from && python && from->line <= UINT32_MAX ? (uint32_t)from->line : 0;
        uint32_t node = find_node(to, caller, function, line);
        if (!node)
            return false;
        to->node_of[path->stacks[n]] = node;
    }
    return true;
}

TARE__ORDER(by_thread, sampled_cell, TARE__RISING(thread) TARE__RISING(node) TARE__RISING(state))

static bool start(const work *work, sampled_nodes *made, tare__arena *arena)
{
    uint32_t stacks = tare__trace_stack_count(work->trace);
    made->node_of = calloc((size_t)stacks + 1, sizeof *made->node_of);
    made->function_of = calloc((size_t)tare__trace_function_count(work->trace) + 1, sizeof *made->function_of);
    made->files = tare__intern_new();
    made->package_names = tare__intern_new();
    if (!made->node_of || !made->function_of || !made->files || !made->package_names ||
        !tare__array_fit(&made->nodes, &made->room, 1, sizeof *made->nodes) ||
        !tare__array_fit(&made->functions, &made->functions_room, 1, sizeof *made->functions) ||
        tare__intern_add(made->files, "", 0) == TARE__INTERN_NONE) /* 0: no file */
        return false;
    made->functions[made->n_functions++] = (sampled_function){
        .name = copied(arena, no_stack), .kind = TARE__FRAME_NOTE, .package = TARE__NO_ROW};
    for (uint32_t i = 1; i <= stacks && !made->text_program; i++)
        made->text_program = is_text_program(work, i);
    made->nodes[made->n++] = (sampled_node){.line_row = TARE__NO_ROW,
                                            .self_line = TARE__NO_ROW,
                                            .own_line = TARE__NO_ROW,
                                            .package = TARE__NO_ROW};
    return made->functions[0].name;
}

int tare__analyze_sampled_nodes(const work *work, sampled *sampled, tare__arena *arena, sampled_nodes *made)
{
    path path = {0};
    uint32_t stacks = tare__trace_stack_count(work->trace);
    bool fine = start(work, made, arena);
    for (size_t i = 0; i < sampled->n_cells && fine; i++) {
        sampled_cell *cell = &sampled->cells[i];
        uint32_t stack = cell->stack <= stacks ? cell->stack : 0;
        fine = make_nodes(work, made, arena, &path, stack);
        cell->node = fine ? made->node_of[stack] : 0;
    }
    free(path.stacks);
    if (fine)
        qsort(sampled->cells, sampled->n_cells, sizeof *sampled->cells, by_thread);
    return fine ? 0 : TARE_E_MEMORY;
}

void tare__analyze_free_sampled_nodes(sampled_nodes *nodes)
{
    tare__index_free(&nodes->node_index);
    tare__index_free(&nodes->line_index);
    tare__intern_free(nodes->files);
    tare__intern_free(nodes->package_names);
    free(nodes->nodes);
    free(nodes->node_of);
    free(nodes->functions);
    free(nodes->function_of);
    free(nodes->packages);
    free(nodes->lines);
}
