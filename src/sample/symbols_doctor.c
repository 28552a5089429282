/* symbols_doctor: whether native functions in stacks have lines and inlined functions on this machine.
 * Any thread; opens the library itself.
 * Must not know stacks. */
#include <stdio.h>

#include "sample.h"
#include "symbols.h"

void tare__symbols_doctor(const char *root, tare__sample_check_sink *sink, void *context)
{
    tare__sample_check check = {.sampler = "stacks", .source = "native symbols", .state = TARE__SAMPLE_WORKS};
    tare__symbols *symbols = tare__symbols_new(true);
    tare__error error = {"out of memory"};
    const char *version;
    (void)root;
    if (symbols && tare__symbols_lines(symbols, &version, &error)) {
        snprintf(check.detail, sizeof(check.detail), "libdw %.60s", version);
    } else {
        check.state = TARE__SAMPLE_PARTLY;
        snprintf(check.detail, sizeof(check.detail),
                 "names of functions only, no lines and no inlined functions: libdw unavailable (%.120s)", error.text);
        snprintf(check.fix, sizeof(check.fix), "sudo apt-get install libdw1");
    }
    sink(context, &check);
    tare__symbols_free(symbols);
}
