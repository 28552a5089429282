/* host_plain: a program without Tare that loads a plugin with it.
 * One thread.
 * Must not know Tare. */
#include "host.h"

int main(int argc, char **argv)
{
    (void)argc;
    return use_plugin(argv[0], 5, 20);
}
