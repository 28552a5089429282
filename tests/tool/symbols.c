/* Shows what Tare finds at addresses of a file, for comparison with addr2line and nm.
 * usage: symbols own|foreign FILE BUILD-ID [ADDRESS…]
 *        one line per function: "ADDRESS NAME FILE LINE", separated by tabs, innermost first; addresses are
 *        hexadecimal, and read from standard input if there are none
 * One thread. Must not correct anything. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample/symbols.h"

#define OFFSETS_MAX 100000u
static uint64_t offsets[OFFSETS_MAX];
static tare__text lines[OFFSETS_MAX];

static void keep(void *context, size_t i, const tare__symbol *symbols, size_t n)
{
    (void)context;
    for (size_t k = 0; k < n; k++)
        tare__text_format(&lines[i], "%" PRIx64 "\t%s\t%s\t%u\n", offsets[i], symbols[k].name, symbols[k].file,
                          symbols[k].line);
    if (!n)
        tare__text_format(&lines[i], "%" PRIx64 "\t\t\t0\n", offsets[i]);
}

int main(int count, char **words)
{
    size_t n = 0;
    tare__error error;
    if (count < 4) {
        fprintf(stderr, "usage: symbols own|foreign FILE BUILD-ID [ADDRESS...]\n");
        return 2;
    }
    for (int i = 4; i < count && n < OFFSETS_MAX; i++)
        offsets[n++] = strtoull(words[i], NULL, 16);
    while (count == 4 && n < OFFSETS_MAX && scanf("%" SCNx64, &offsets[n]) == 1)
        n++;
    tare__symbols *symbols = tare__symbols_new(strcmp(words[1], "own") == 0);
    uint64_t start = tare__monotonic_ns();
    int status = symbols ? tare__symbols_find(symbols, words[2], words[3], offsets, n, keep, NULL, &error) : -1;
    uint64_t end = tare__monotonic_ns();
    if (status)
        fprintf(stderr, "%s\n", symbols ? error.text : "out of memory");
    for (size_t i = 0; i < n; i++) {
        fputs(lines[i].data ? lines[i].data : "", stdout);
        tare__text_free(&lines[i]);
    }
    fprintf(stderr, "%" PRIu64 " us\n", (end - start) / 1000);
    tare__symbols_free(symbols);
    return status ? 1 : 0;
}
