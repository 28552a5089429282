/* names: more names than a process can have, strange ones, and long ones.
 * One thread.
 * Must not know anything of Tare but tare.h. */
#include "victim.h"

int main(int argc, char **argv)
{
    uint64_t n = number_of(argc, argv, 1, 1000);
    char name[64];
    for (int round = 0; round < 2; round++)
        for (uint64_t i = 0; i < n; i++) {
            snprintf(name, sizeof name, "request_%llu", (unsigned long long)i);
            tare_begin_name(name);
            memset(name, '#', sizeof name - 1); /* it was copied */
            tare_end(NULL);
        }
    tare_begin_name(NULL);
    tare_next_name("");
    tare_next_name("tab\there, line\nthere, \xff and \xc3\xa9");
    static char longest[10001];
    memset(longest, 'x', sizeof longest - 1);
    tare_next_name(longest);
    tare_end(NULL);
    tell("names", n);
    return 0;
}
