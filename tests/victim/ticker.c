/* ticker: numbered records at a steady pace until killed. Beside Tare it keeps a ledger of its own, written
 * after each record, so that the test knows what must be there.
 * One thread.
 * Must not know anything of Tare but tare.h. */
#include <fcntl.h>
#include <unistd.h>

#include "victim.h"

int main(int argc, char **argv)
{
    if (argc < 4)
        return 98;
    int ledger = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    uint64_t gap_us = number_of(argc, argv, 2, 200), ms = number_of(argc, argv, 3, 1000);
    uint64_t until = monotonic_ns() + ms * 1000000;
    tell_session();
    tell("pid", (uint64_t)getpid());
    TARE_SPAN("all of it");
    for (uint64_t n = 1; monotonic_ns() < until; n++) {
        {
            TARE_SPAN("tick");
            TARE_COUNTER("n", n);
        }
        uint64_t line[2] = {n, monotonic_ns()};
        if (write(ledger, line, sizeof line) != (ssize_t)sizeof line)
            return 97;
        struct timespec pause = {0, (long)gap_us * 1000};
        if (gap_us)
            nanosleep(&pause, NULL);
    }
    return 0;
}
