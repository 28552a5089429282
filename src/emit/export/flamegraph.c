/* flamegraph: sampled stacks as an SVG file with zoom and search, which needs nothing but a browser. docs/EXPORT.md.
 * Owned by the calling thread. Every name is escaped; the file refers to nothing outside.
 * Must not know how the call tree was made. */
#include "flamegraph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit/escape.h"
#include "emit/flush.h"

#define WIDTH     1200
#define MARGIN    10
#define INNER     (WIDTH - 2 * MARGIN)
#define ROW       18
#define CHARACTER 7.0 /* pixels, on average */
#define LEAST     0.0001 /* of the whole: narrower boxes are not drawn */
#define FILLS     8u  /* packages with a color of their own */
#define FILL_REST 9u  /* any other */
#define FILL_TOP  10u /* processes and threads */

typedef struct package {
    const char *name;
    double self_ns;
} package;

typedef struct drawing {
    const tare__analysis *analysis;
    const tare__analysis *base; /* to compare with; NULL: none */
    const tare__emit_sink *sink;
    tare__error *error;
    tare__flame flame;
    package *packages; /* by self time descending */
    size_t n_packages, room;
    double waits_ns[TARE__STATE_COUNT];
    unsigned legend_rows;
    tare__text out, name;
} drawing;

/* ---- packages and states ------------------------------------------------------------------------------- */
static const char *package_of(const tare__flame_box *box)
{
    return box->node->package ? box->node->package : "other";
}

static bool is_frame(const tare__flame_box *box)
{
    return box->node->what != TARE__NODE_PROCESS && box->node->what != TARE__NODE_THREAD;
}

TARE__ORDER(by_self, package, TARE__FALLING(self_ns) TARE__BY_TEXT(name))

static bool sum_packages(drawing *to)
{
    tare__intern *names = tare__intern_new();
    bool fits = names != NULL;
    for (size_t i = 0; i < to->flame.n && fits; i++) {
        const tare__flame_box *box = &to->flame.boxes[i];
        if (box->state != TARE__STATE_RUNNING) {
            to->waits_ns[box->state] += box->self_ns;
            continue;
        }
        if (!is_frame(box))
            continue;
        const char *name = package_of(box);
        uint32_t at = tare__intern_add(names, name, strlen(name));
        fits = at != TARE__INTERN_NONE &&
               tare__array_fit(&to->packages, &to->room, (size_t)at + 1, sizeof *to->packages);
        if (fits && at == to->n_packages)
            to->packages[to->n_packages++] = (package){name, 0};
        if (fits)
            to->packages[at].self_ns += box->self_ns;
    }
    tare__intern_free(names);
    if (fits && to->n_packages)
        qsort(to->packages, to->n_packages, sizeof *to->packages, by_self);
    return fits;
}

/* Of the change of its share, in percentage points: -4 (10 less) to 4 (10 more). */
static double change_of(const drawing *to, const tare__flame_box *box)
{
    double before = to->flame.base_ns > 0 ? box->base_ns / to->flame.base_ns : 0;
    return box->total_ns / to->flame.total_ns - before;
}

static const double steps[] = {0.0025, 0.01, 0.03, 0.1};

static int level_of(double change)
{
    int level = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(steps); i++)
        level += fabs(change) >= steps[i];
    return change < 0 ? -level : level;
}

static unsigned fill_of(const drawing *to, const tare__flame_box *box)
{
    if (!is_frame(box))
        return FILL_TOP;
    for (unsigned i = 0; i < FILLS && i < to->n_packages; i++)
        if (strcmp(to->packages[i].name, package_of(box)) == 0)
            return i;
    return FILL_REST;
}

/* ---- text ------------------------------------------------------------------------------------------------ */
static void put_number(tare__text *out, double value)
{
    char text[32];
    tare__text_double(text, sizeof text, 'f', 5, value);
    tare__text_string(out, text);
}

/* The first characters that fit, by their number. */
static void put_fitting(drawing *to, const char *name, double pixels)
{
    size_t room = pixels > 6 ? (size_t)((pixels - 6) / CHARACTER) : 0, length = strlen(name), at = 0, n = 0;
    tare__text part = {0};
    uint32_t code;
    if (room < 2)
        return;
    for (size_t size; at < length && n < room; n++, at += size ? size : 1) {
        size = tare__utf8_decode(name + at, length - at, &code);
        if (n + 1 == room && at + (size ? size : 1) < length)
            break;
    }
    tare__text_append(&part, name, at);
    to->out.failed |= part.failed;
    if (!part.failed)
        tare__escape_xml(&to->out, part.data);
    tare__text_string(&to->out, at < length ? "…" : "");
    tare__text_free(&part);
}

static void name_box(drawing *to, const tare__flame_box *box)
{
    const tare__stack_node *node = box->node;
    tare__text *name = &to->name;
    tare__text_clear(name);
    if (box->state != TARE__STATE_RUNNING)
        tare__text_string(name, tare__state_phrase(box->state));
    else if (node->what == TARE__NODE_THREAD)
        tare__stack_thread_name(to->analysis, node, name);
    else
        tare__text_string(name, node->name);
    if (box->state == TARE__STATE_RUNNING && is_frame(box) && node->file && node->file[0])
        tare__text_format(name, " · %s", tare__base_name(node->file));
    if (!name->data)
        tare__text_string(name, "");
    to->out.failed |= name->failed;
}

static void put_share(drawing *to, const char *before, double ns)
{
    char time[TARE__UNIT_BYTES], share[TARE__UNIT_BYTES];
    tare__text_format(&to->out, "%s%s, ", before, tare__unit_time(time, ns));
    tare__escape_xml(&to->out, tare__unit_percent(share, ns / to->flame.total_ns)); /* "<0.1 %" */
}

static void put_baseline(drawing *to, const tare__flame_box *box)
{
    char time[TARE__UNIT_BYTES], share[TARE__UNIT_BYTES], change[32];
    double before = to->flame.base_ns > 0 ? box->base_ns / to->flame.base_ns : 0;
    tare__text_format(&to->out, "\nbaseline %s, ", tare__unit_time(time, box->base_ns));
    tare__escape_xml(&to->out, tare__unit_percent(share, before));
    tare__text_double(change, sizeof change, 'f', 1, 100 * change_of(to, box));
    tare__text_format(&to->out, "\nchange %s%s percentage points", change_of(to, box) > 0 ? "+" : "", change);
}

static bool has_file(const tare__flame_box *box)
{
    return box->state == TARE__STATE_RUNNING && is_frame(box) && box->node->file && box->node->file[0];
}

static bool has_package(const tare__flame_box *box)
{
    return box->state == TARE__STATE_RUNNING && is_frame(box) && box->node->package;
}

/* Words first, a line each; then figures. */
static void put_title(drawing *to, const tare__flame_box *box)
{
    const tare__stack_node *node = box->node;
    bool frame = box->state == TARE__STATE_RUNNING && is_frame(box);
    char time[TARE__UNIT_BYTES];
    tare__text_string(&to->out, "<title>");
    tare__escape_xml(&to->out, to->name.data);
    if (has_file(box)) {
        tare__text_string(&to->out, "\n");
        tare__escape_xml(&to->out, tare__stack_file(to->analysis, node->file));
        if (node->line)
            tare__text_format(&to->out, ":%u", node->line);
    }
    if (has_package(box)) {
        tare__text_string(&to->out, "\npackage ");
        tare__escape_xml(&to->out, node->package);
    }
    put_share(to, to->base ? "\ncandidate " : "\n", box->total_ns);
    if (to->base)
        put_baseline(to, box);
    if (frame)
        put_share(to, "\nself ", box->self_ns);
    if (box->state == TARE__STATE_RUNNING && box->waits_ns > 0)
        tare__text_format(&to->out, "\nwaiting %s", tare__unit_time(time, box->waits_ns));
    tare__text_string(&to->out, "</title>");
}

/* ---- boxes ----------------------------------------------------------------------------------------------- */
static void put_box(drawing *to, const tare__flame_box *box, double x)
{
    double share = box->total_ns / to->flame.total_ns, pixels = share * INNER;
    unsigned y = box->depth * ROW;
    name_box(to, box);
    if (to->out.failed)
        return;
    tare__text_string(&to->out, "<g class=\"f\" role=\"button\" data-at=\"");
    put_number(&to->out, x * 100);
    tare__text_string(&to->out, " ");
    put_number(&to->out, share * 100);
    tare__text_format(&to->out, " %u %u\" data-name=\"", box->depth, 1u + has_file(box) + has_package(box));
    tare__escape_xml(&to->out, to->name.data);
    tare__text_string(&to->out, "\">");
    put_title(to, box);
    tare__text_string(&to->out, "<rect x=\"");
    put_number(&to->out, x * 100);
    tare__text_format(&to->out, "%%\" y=\"%u\" width=\"", y);
    put_number(&to->out, share * 100);
    int level = to->base ? level_of(change_of(to, box)) : 0;
    if (to->base)
        tare__text_format(&to->out, "%%\" height=\"%d\" class=\"%s%d\"/>", ROW - 1, level < 0 ? "less" : "more",
                          level < 0 ? -level : level);
    else if (box->state != TARE__STATE_RUNNING)
        tare__text_format(&to->out, "%%\" height=\"%d\" class=\"w w-%s\"/>", ROW - 1, tare__state_word(box->state));
    else
        tare__text_format(&to->out, "%%\" height=\"%d\" class=\"c%u\"/>", ROW - 1, fill_of(to, box));
    tare__text_string(&to->out, "<text dx=\"4\" x=\"");
    put_number(&to->out, x * 100);
    tare__text_format(&to->out, "%%\" y=\"%u\">", y + 13);
    put_fitting(to, to->name.data, pixels);
    tare__text_string(&to->out, "</text></g>\n");
}

/* A box that waits to be drawn, with its place. */
typedef struct waiting_box {
    uint32_t box;
    double x;
} waiting_box;

static int put_boxes(drawing *to)
{
    size_t n = 0;
    int status = 0;
    waiting_box *open = malloc((to->flame.n + 1) * sizeof *open);
    if (!open)
        return tare__fail(to->error, TARE_E_MEMORY, "out of memory");
    if (to->flame.first != TARE__FLAME_NONE)
        open[n++] = (waiting_box){to->flame.first, 0};
    while (n && !status) {
        waiting_box one = open[--n];
        const tare__flame_box *box = &to->flame.boxes[one.box];
        double share = box->total_ns / to->flame.total_ns;
        if (share < LEAST)
            continue; /* its siblings are not larger */
        put_box(to, box, one.x);
        if (box->next != TARE__FLAME_NONE)
            open[n++] = (waiting_box){box->next, one.x + share};
        if (box->first != TARE__FLAME_NONE)
            open[n++] = (waiting_box){box->first, one.x};
        status = tare__emit_flush_piece(&to->out, to->sink, to->error);
    }
    free(open);
    return status;
}

/* ---- what is around them ----------------------------------------------------------------------------------- */
typedef struct legend {
    double x;
    unsigned row;
} legend;

static void put_key(drawing *to, legend *at, unsigned y, const char *kind, const char *name, double ns)
{
    char share[TARE__UNIT_BYTES], shown[160];
    if (!(ns >= to->flame.total_ns * 0.0005))
        return;
    tare__text_fit(shown, sizeof shown, name, 32);
    tare__unit_percent(share, ns / to->flame.total_ns);
    double wide = 16 + ((double)tare__text_columns(shown, strlen(shown)) + (double)strlen(share) + 1) * 6.4 + 14;
    if (at->x > 0 && at->x + wide > INNER)
        *at = (legend){0, at->row + 1};
    unsigned left = MARGIN + (unsigned)at->x, top = y + at->row * ROW;
    tare__text_format(&to->out, "<rect class=\"%s\" x=\"%u\" y=\"%u\" width=\"11\" height=\"11\" rx=\"2\"/>"
                                "<text class=\"key\" x=\"%u\" y=\"%u\">",
                      kind, left, top - 10, left + 16, top);
    tare__escape_xml(&to->out, shown);
    tare__text_string(&to->out, " ");
    tare__escape_xml(&to->out, share);
    tare__text_string(&to->out, "</text>\n");
    at->x += wide;
}

static void put_legend(drawing *to, unsigned y)
{
    legend at = {0, 0};
    char kind[32];
    for (unsigned i = 0; i < FILLS && i < to->n_packages; i++) {
        tare__text name = {0};
        tare__text_format(&name, "c%u", i);
        if (!name.failed)
            put_key(to, &at, y, name.data, to->packages[i].name, to->packages[i].self_ns);
        to->out.failed |= name.failed;
        tare__text_free(&name);
    }
    for (unsigned state = 0; state < TARE__STATE_COUNT; state++) {
        strcpy(kind, "w w-");
        strncat(kind, tare__state_word(state), sizeof kind - 5);
        put_key(to, &at, y, kind, tare__state_phrase(state), to->waits_ns[state]);
    }
    to->legend_rows = at.row + 1;
}

/* The scale of changes, in percentage points. */
static void put_scale(drawing *to, unsigned y)
{
    static const char *const words[] = {"-10", "-3", "-1", "-0.25", "same share", "+0.25", "+1", "+3", "+10"};
    double x = MARGIN;
    for (int i = 0; i < 9; i++) {
        int level = i - 4;
        tare__text_format(&to->out,
                          "<rect class=\"%s%d\" x=\"%u\" y=\"%u\" width=\"11\" height=\"11\" rx=\"2\"/>"
                          "<text class=\"key\" x=\"%u\" y=\"%u\">%s</text>\n",
                          level < 0 ? "less" : "more", abs(level), (unsigned)x, y - 10, (unsigned)x + 16, y, words[i]);
        x += 16 + (double)strlen(words[i]) * 6.4 + 18;
    }
    tare__text_format(&to->out, "<text class=\"key\" x=\"%u\" y=\"%u\">percentage points of active time</text>\n",
                      (unsigned)x, y);
    to->legend_rows = 1;
}

static void put_about_difference(drawing *to)
{
    char candidate[TARE__UNIT_BYTES], base[TARE__UNIT_BYTES];
    tare__text_format(&to->out,
                      "<text id=\"about\" x=\"%d\" y=\"48\">Width: share of active time of the candidate (%s). Color: "
                      "change of the share against the baseline (%s).</text>\n", MARGIN,
                      tare__unit_time(candidate, to->flame.total_ns), tare__unit_time(base, to->flame.base_ns));
}

static void put_about(drawing *to)
{
    const tare__analysis *analysis = to->analysis;
    char time[TARE__UNIT_BYTES], threads[TARE__COUNTED_BYTES], samples[TARE__COUNTED_BYTES];
    double n = 0;
    for (size_t i = 0; i < analysis->n_sampled_threads; i++)
        n += (double)analysis->sampled_threads[i].samples;
    tare__unit_counted(threads, (double)analysis->n_sampled_threads, "thread", NULL);
    tare__unit_counted(samples, n, "stack sample", NULL);
    tare__text_format(&to->out, "<text id=\"about\" x=\"%d\" y=\"48\">%s of active time, %s, %s", MARGIN,
                      tare__unit_time(time, to->flame.total_ns), threads, samples);
    if (analysis->run.host && analysis->run.host[0]) {
        tare__text_string(&to->out, ", ");
        tare__escape_xml(&to->out, analysis->run.host);
    }
    tare__text_string(&to->out, "</text>\n");
}

static void put_head(drawing *to)
{
    const char *command = to->analysis->run.command;
    tare__text_format(&to->out,
                      "<text id=\"heading\" x=\"%d\" y=\"28\">", MARGIN);
    put_fitting(to, command && command[0] ? command : "Stack samples", WIDTH * 0.45);
    tare__text_string(&to->out, "</text>\n");
    if (to->base)
        put_about_difference(to);
    else
        put_about(to);
    tare__text_format(&to->out,
                      "<foreignObject id=\"controls\" x=\"%d\" y=\"8\" width=\"330\" height=\"32\">"
                      "<div xmlns=\"http://www.w3.org/1999/xhtml\">"
                      "<input id=\"search\" type=\"search\" placeholder=\"Search functions, files, packages\" "
                      "aria-label=\"Search functions, files, packages\" autocomplete=\"off\" spellcheck=\"false\"/>"
                      "<button id=\"reset\" type=\"button\" disabled=\"disabled\">Whole run</button></div>"
                      "</foreignObject>\n<text id=\"found\" x=\"%d\" y=\"%d\"></text>\n",
                      WIDTH - MARGIN - 330, WIDTH - MARGIN - 330, to->base ? 70 : 48);
    if (to->base)
        put_scale(to, 70);
    else
        put_legend(to, 70);
}

/* The head is written first but its height is known only then: it goes to a text of its own. */
static int put_all(drawing *to)
{
    static const char hint[] = "Click a box to zoom in, click it again or press Escape to zoom out.";
    tare__text head = {0}, before = to->out;
    to->out = (tare__text){.failed = before.failed};
    put_head(to);
    head = to->out;
    to->out = before;
    to->out.failed |= head.failed;
    unsigned top = 70 + to->legend_rows * ROW - 6, inner = to->flame.depth * ROW, bottom = top + inner + 30;
    if (!to->base)
        tare__text_string(&to->out, "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n");
    tare__text_format(&to->out,
                      "<svg class=\"flamegraph\" xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" "
                      "height=\"%u\" viewBox=\"0 0 %d %u\">\n<title>Flame graph: ",
                      WIDTH, bottom, WIDTH, bottom);
    tare__escape_xml(&to->out, to->analysis->run.command ? to->analysis->run.command : "stack samples");
    tare__text_string(&to->out, "</title>\n<style><![CDATA[");
    tare__text_string(&to->out, tare__flame_style);
    tare__text_string(&to->out, "]]></style>\n<rect id=\"ground\" width=\"100%\" height=\"100%\"/>\n");
    tare__text_append(&to->out, head.data, head.length);
    tare__text_free(&head);
    tare__text_format(&to->out, "<svg id=\"frames\" x=\"%d\" y=\"%u\" width=\"%d\" height=\"%u\">\n", MARGIN, top,
                      INNER, inner);
    int status = put_boxes(to);
    tare__text_format(&to->out, "</svg>\n<text id=\"details\" x=\"%d\" y=\"%u\" data-empty=\"%s\">%s</text>\n", MARGIN,
                      bottom - 11, hint, hint);
    tare__text_string(&to->out, "<script><![CDATA[");
    tare__text_string(&to->out, tare__flame_script);
    tare__text_string(&to->out, "]]></script>\n</svg>\n");
    return status || to->base ? status : tare__emit_flush(&to->out, to->sink, to->error);
}

int tare__flame_put_difference(const tare__analysis *base, const tare__analysis *candidate, tare__text *out,
                               const tare__emit_sink *sink, tare__error *error)
{
    drawing to = {.analysis = candidate, .base = base, .sink = sink, .error = error, .out = *out};
    int status = tare__flame_compare(base, candidate, &to.flame, error);
    if (!status)
        status = put_all(&to);
    *out = to.out;
    tare__flame_free(&to.flame);
    tare__text_free(&to.name);
    return status;
}

static int emit_flamegraph(const tare__emit_input *input, const tare__emit_options *options,
                           const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    drawing to = {.analysis = input->analysis, .sink = sink, .error = error};
    int status = tare__flame_make(input->analysis, &to.flame, error);
    if (!status && !sum_packages(&to))
        status = tare__fail(error, TARE_E_MEMORY, "out of memory");
    if (!status)
        status = put_all(&to);
    tare__flame_free(&to.flame);
    free(to.packages);
    tare__text_free(&to.out);
    tare__text_free(&to.name);
    return status;
}

const tare__emitter tare__emit_flamegraph = {
    .name = "flamegraph",
    .needs = TARE__EMIT_TABLES,
    .emit = emit_flamegraph,
};
