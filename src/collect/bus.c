/* bus: if a session file or ring is truncated, the next access raises SIGBUS: private memory replaces
 * it, and the collector continues. One thread; the handler runs in it.
 * Must not know what is recorded. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector.h"

static tare__collector *watched;
static tare__session_page shadow; /* the original disposition */

static bool is_in(const void *address, const void *from, uint64_t bytes)
{
    return from && (uintptr_t)address >= (uintptr_t)from && (uintptr_t)address < (uintptr_t)from + bytes;
}

/* From the page of the address to the end of the mapping. */
static bool put_memory(void *address, void *from, uint64_t bytes)
{
    uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)address & ~(size - 1);
    uintptr_t end = ((uintptr_t)from + bytes + size - 1) & ~(size - 1);
    return mmap((void *)begin, end - begin, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static bool replace(void *address)
{
    tare__session_page *page = watched->folder.page;
    if (is_in(address, page, sizeof *page)) {
        if (!put_memory(page, page, sizeof *page))
            return false;
        memcpy(page, &shadow, sizeof shadow);
        watched->page_cut = true;
        return true;
    }
    for (uint32_t i = 0; i < watched->source_count; i++) {
        tare__source *source = watched->sources[i];
        if (!is_in(address, source->ring, source->mapped))
            continue;
        source->broken = true;
        strcpy(source->reason, "its buffer was truncated during the run");
        return put_memory(address, source->ring, source->mapped);
    }
    return false;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (!watched || !replace(info->si_addr))
        signal(number, SIG_DFL); /* a fault of another kind: it is raised again immediately */
}

void tare__bus_watch(tare__collector *collector)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
    sigemptyset(&action.sa_mask);
    /* The launched program must not inherit a changed disposition: exec resets a handler to the default. */
    if (sigaction(SIGBUS, NULL, &before) != 0 || before.sa_handler == SIG_IGN)
        return;
    memcpy(&shadow, collector->folder.page, sizeof shadow);
    watched = collector;
    sigaction(SIGBUS, &action, NULL);
}

void tare__bus_leave(void)
{
    if (watched)
        signal(SIGBUS, SIG_DFL);
    watched = NULL;
}
