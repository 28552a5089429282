/* text_tree: the span tree of the text report: the important rows in few lines, the rest merged and counted.
 * Owned by the calling thread.
 * Must not know how the rows were made. */
#include "parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FEW_ROWS    24u /* unless --all */
#define LEAST_ROWS  3u
#define FEW_GROUPS  5
#define OTHER_LINES 2u /* in addition to rows: the title and the line before it */
#define BAR_COLUMNS      4
#define FIGURES          (TARE__PAGE_COUNT + 5 * TARE__PAGE_CELL + 1 + BAR_COLUMNS)

typedef struct tree {
    tare__page *page;
    const tare__span_row *rows;
    size_t n;       /* rows of this tree, from its first one */
    double cut;     /* rows with a smaller share are merged */
    unsigned bar;   /* columns */
    size_t few;     /* lines that are enough, including the one that states the number of further rows */
    size_t limit;   /* lines of rows and merged rows */
    size_t printed; /* lines */
    size_t reported;    /* rows that are shown or counted in a merged row */
} tree;

/* ---- rows to show ----------------------------------------------------------------------------------- */
static bool is_small(const tree *tree, const tare__span_row *row)
{
    /* A row with an unknown share is not small; nor is the first row of a tree, which would otherwise be empty. */
    return row->share < tree->cut && row != tree->rows;
}

/* The small siblings from `first` up to `end`, in rows of the tree. */
typedef struct fold {
    size_t siblings, rows; /* rows: including all descendants */
    const char *name;      /* of the first one */
    double total_ns, share;
} fold;

static fold fold_small(const tree *tree, size_t first, size_t end)
{
    fold sum = {0};
    for (size_t i = first; i < end; i += 1 + tree->rows[i].n_rows) {
        const tare__span_row *row = &tree->rows[i];
        if (!is_small(tree, row))
            continue;
        sum.name = sum.siblings++ ? sum.name : row->name;
        sum.rows += 1 + row->n_rows;
        sum.total_ns += row->total_ns;
        sum.share += row->share;
    }
    return sum;
}

/* A single small row without children takes no more lines than the merged row would. */
static bool folds(const tree *tree, size_t first, size_t end)
{
    size_t small = 0, below = 0;
    for (size_t i = first; i < end; i += 1 + tree->rows[i].n_rows) {
        if (is_small(tree, &tree->rows[i])) {
            small++;
            below += tree->rows[i].n_rows;
        }
    }
    return small > 1 || below > 0;
}

/* Lines needed to show the tree with this cut. Siblings are sorted by total, so that small ones are adjacent and make
 * one line. */
static size_t count_lines(const tree *tree)
{
    size_t lines = 0, i = 0;
    const tare__span_row *before = NULL; /* the last one, if it was small */
    while (i < tree->n) {
        const tare__span_row *row = &tree->rows[i];
        bool small = is_small(tree, row);
        lines += !(small && before && before->depth == row->depth);
        before = small ? row : NULL;
        i += small ? 1 + row->n_rows : 1;
    }
    return lines;
}

/* ---- lines --------------------------------------------------------------------------------------- */
static void put_bar(const tree *tree, double share)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    tare__page *page = tree->page;
    double full = (share < 0 ? 0 : share > 1 ? 1 : share) * tree->bar * 8;
    unsigned parts = isnan(share) ? 0 : (unsigned)(full + 0.5);
    if (parts == 0)
        return;
    tare__text_string(page->out, " ");
    tare__page_style_on(page, TARE__PAGE_BAR);
    for (unsigned i = 0; i < parts / 8; i++)
        tare__text_string(page->out, "█");
    tare__text_string(page->out, eighths[parts % 8]);
    tare__page_style_off(page);
}

/* A defect of the calls that a reader must know before trusting the numbers. */
static const char *flaw_of(const tare__span_row *row)
{
    if (row->continued && !row->calls)
        return " (continued)"; /* these calls are counted where they began */
    return row->still_open ? " (open)" : row->end_missing ? " (end missing)" : "";
}

static void put_row(tree *tree, const tare__span_row *row)
{
    tare__page *page = tree->page;
    const char *flaw = flaw_of(row);
    tare__page_label(page, 2 * row->depth, row->name, flaw, *flaw ? TARE__PAGE_WARNING : TARE__PAGE_PLAIN);
    TARE__PAGE_CELLS(page, "ctttt%", (double)row->calls, row->total_ns,
                     page->options->raw ? row->raw_self_ns : row->self_ns, row->each.p50_ns, row->each.p95_ns,
                     row->share);
    put_bar(tree, row->share);
    tare__page_line_end(page);
    tree->printed++;
    tree->reported++;
}

/* The sum of calls of several names is not meaningful: its cell is used for the label. */
static void put_fold(tree *tree, unsigned depth, const fold *sum)
{
    tare__page wider = *tree->page;
    char label[128], cut[16];
    wider.name_columns += TARE__PAGE_COUNT;
    tare__text_double(cut, sizeof cut, 'g', 3, tree->cut * 100);
    if (sum->siblings == 1)
        snprintf(label, sizeof label, "… %.80s, %zu inside", sum->name, sum->rows - 1);
    else
        snprintf(label, sizeof label, "… %zu more under %s %%", sum->siblings, cut);
    tare__page_style_on(&wider, TARE__PAGE_FAINT);
    tare__page_label(&wider, 2 * depth, label, "", TARE__PAGE_PLAIN);
    TARE__PAGE_CELLS(&wider, "t", sum->total_ns);
    tare__page_cell(&wider, 3 * TARE__PAGE_CELL, "");
    TARE__PAGE_CELLS(&wider, "%", sum->share);
    tare__page_style_off(&wider);
    tare__page_line_end(&wider);
    tree->printed++;
    tree->reported += sum->rows;
}

/* The rows from `first` up to `end`, one level of siblings and their descendants. Each level prints a line before it
 * recurses: the recursion is no deeper than the number of lines. */
static void put_level(tree *tree, size_t first, size_t end, unsigned depth)
{
    bool folding = folds(tree, first, end);
    for (size_t i = first; i < end && tree->printed < tree->limit; i += 1 + tree->rows[i].n_rows) {
        const tare__span_row *row = &tree->rows[i];
        if (folding && is_small(tree, row))
            continue;
        put_row(tree, row);
        if (row->n_rows > 0)
            put_level(tree, i + 1, i + 1 + row->n_rows, depth + 1);
    }
    if (folding && tree->printed < tree->limit) {
        fold sum = fold_small(tree, first, end);
        put_fold(tree, depth, &sum);
    }
}

static void put_tree(tree *tree)
{
    static const double cuts[] = {0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2};
    if (tree->page->options->all) { /* in order and without recursion, so that any depth is possible */
        for (size_t i = 0; i < tree->n; i++)
            put_row(tree, &tree->rows[i]);
        return;
    }
    bool fits = false;
    for (size_t i = 0; i < TARE__COUNT_OF(cuts) && !fits; i++) {
        tree->cut = cuts[i];
        fits = count_lines(tree) <= tree->few;
    }
    tree->limit = fits ? tree->few : tree->few - 1;
    tree->printed = tree->reported = 0;
    put_level(tree, 0, tree->n, 0);
    tare__page_more(tree->page, tree->n - tree->reported, "rows");
}

/* ---- the tree ---------------------------------------------------------------------------------------- */
/* Additional columns of a wide page are used for names that need them, then for the bars. */
unsigned tare__part_lay_out(tare__page *page, const tare__analysis *analysis)
{
    unsigned width = page->options->width, names = width - FIGURES, needed = 23;
    bool bars = names >= 20;
    if (!bars)
        names = width - (FIGURES - 1 - BAR_COLUMNS);
    for (size_t i = 0; i < analysis->n_spans; i++) {
        const tare__span_row *row = &analysis->spans[i];
        size_t columns = 2 * (size_t)row->depth + tare__text_columns(row->name, strlen(row->name)) + 8;
        if (columns > needed)
            needed = columns > 60 ? 60 : (unsigned)columns;
    }
    page->name_columns = names < needed ? names : needed;
    if (!bars)
        return 0;
    unsigned bar = BAR_COLUMNS + names - page->name_columns;
    return bar > 15 ? 15 : bar;
}

static void put_group_title(tare__page *page, const tare__group_row *group)
{
    char name[TARE__EMIT_WIDTH_MAX * 4], total[TARE__UNIT_BYTES];
    tare__text_fit(name, sizeof name, group->name, page->options->width - 12);
    tare__page_style_on(page, TARE__PAGE_STRONG);
    tare__text_format(page->out, "%s, %s", name, tare__unit_time(total, group->total_ns));
    tare__page_style_off(page);
    tare__page_line_end(page);
}

/* Number of rows that may be shown in this many lines. */
static size_t rows_in(size_t lines, size_t others)
{
    size_t rows = lines > others + LEAST_ROWS ? lines - others : LEAST_ROWS;
    return rows < FEW_ROWS ? rows : FEW_ROWS;
}

static void put_groups(tree *tree, const tare__analysis *analysis)
{
    size_t shown = tare__page_rows(tree->page, analysis->n_groups, FEW_GROUPS);
    tree->few = rows_in((tree->page->lines - OTHER_LINES - 1) / (shown ? shown : 1), 1);
    for (size_t i = 0; i < shown; i++) {
        const tare__group_row *group = &analysis->groups[i];
        put_group_title(tree->page, group);
        tree->rows = analysis->spans + group->first_row;
        tree->n = group->n_rows;
        put_tree(tree);
    }
    bool threads = analysis->groups[0].thread != TARE__NO_ROW;
    tare__page_more(tree->page, analysis->n_groups - shown, threads ? "threads" : "processes");
}

void tare__part_tree(tare__page *page, const tare__analysis *analysis)
{
    tree tree = {.page = page, .rows = analysis->spans, .n = analysis->n_spans};
    tree.bar = tare__part_lay_out(page, analysis);
    tree.few = rows_in(page->lines, OTHER_LINES);
    if (analysis->n_spans == 0)
        return;
    tare__page_title(page, "Where time is spent",
                     page->options->raw ? "calls|total|raw self|p50|p95|share"
                                        : "calls|total|self|p50|p95|share");
    if (analysis->n_groups > 0)
        put_groups(&tree, analysis);
    else
        put_tree(&tree);
}
