/* lines_table: counters by line number, grown as lines are met.
 * Any thread; the caller has the interpreter's lock.
 * Must not know what is counted. */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

#define LINES_MAX (1 << 24) /* a template may claim any line number; this bounds the table's memory */

static tare__py_line *make_room(tare__py_table *table, int line)
{
    int first = table->room && table->first < line ? table->first : line;
    int end = table->room && table->first + table->room > line ? table->first + table->room : line + 16;
    if (line < 1 || end - first > LINES_MAX)
        return NULL;
    tare__py_line *lines = calloc((size_t)(end - first), sizeof *lines);
    if (!lines)
        return NULL;
    if (table->room)
        memcpy(lines + (table->first - first), table->lines, (size_t)table->room * sizeof *lines);
    free(table->lines);
    *table = (tare__py_table){first, end - first, lines};
    return &lines[line - first];
}

tare__py_line *tare__py_table_at(tare__py_table *table, int line)
{
    unsigned at = (unsigned)line - (unsigned)table->first;
    if (__builtin_expect(at < (unsigned)table->room, 1))
        return &table->lines[at];
    return make_room(table, line);
}

int tare__py_table_copy(tare__py_table *to, const tare__py_table *from)
{
    tare__py_line *lines = NULL;
    if (from->room) {
        lines = malloc((size_t)from->room * sizeof *lines);
        if (!lines)
            return -1;
        memcpy(lines, from->lines, (size_t)from->room * sizeof *lines);
    }
    free(to->lines);
    *to = (tare__py_table){from->first, from->room, lines};
    return 0;
}

int tare__py_table_add(tare__py_table *to, const tare__py_table *more, const tare__py_table *less)
{
    for (int i = 0; i < more->room; i++) {
        tare__py_line sum = more->lines[i];
        unsigned before = (unsigned)(more->first + i - less->first);
        if (before < (unsigned)less->room) {
            sum.hits -= less->lines[before].hits;
            sum.ticks -= less->lines[before].ticks;
        }
        if (sum.hits == 0 && sum.ticks == 0)
            continue;
        tare__py_line *line = tare__py_table_at(to, more->first + i);
        if (!line)
            return -1;
        line->hits += sum.hits;
        line->ticks += sum.ticks;
    }
    return 0;
}

void tare__py_table_free(tare__py_table *table)
{
    free(table->lines);
    *table = (tare__py_table){0, 0, NULL};
}
