/* unheard: a process whose hello never arrives, so that the collector finds its ring by a scan of the folder. While the
 * collector is stopped it records more than the ring holds, and starts another thread, for which the ring grows.
 * Two threads, one after the other.
 * Must not know anything of Tare but tare.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "victim.h"

static tare_site site = TARE_SITE("unheard");

/* In place of the C library's. */
int socket(int domain, int type, int protocol)
{
    (void)domain, (void)type, (void)protocol;
    errno = EMFILE;
    return -1;
}

static int has_mapped_a_ring(int pid)
{
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *file = fopen(path, "r");
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file))
        found = strstr(line, ".ring") != NULL;
    if (file)
        fclose(file);
    return found;
}

static void record(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        tare_begin(&site);
        tare_end(&site);
    }
}

static void *join(void *argument)
{
    record(1);
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    uint64_t spans = number_of(argc, argv, 1, 1000);
    int collector = getppid();
    record(1);
    for (int i = 0; i < 3000 && !has_mapped_a_ring(collector); i++)
        wait_ms(10);
    kill(collector, SIGSTOP);
    record(spans - 2);
    if (pthread_create(&thread, NULL, join, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 98;
    kill(collector, SIGCONT);
    tell("made", spans);
    return 0;
}
