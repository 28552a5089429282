/* host_static: has the library in itself and loads a plugin that brings a second copy.
 * One thread.
 * Must not know anything of Tare but tare.h. */
#include <tare.h>

#include "host.h"

int main(int argc, char **argv)
{
    (void)argc;
    TARE_SPAN("host");
    for (int i = 0; i < 10; i++) {
        TARE_SPAN("host work");
    }
    return use_plugin(argv[0], 5, 20);
}
