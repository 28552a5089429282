/* threads: many that come and go, many alive at once, and spans from their destructors.
 * A thread each; the main one counts.
 * Must not know anything of Tare but tare.h. */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "victim.h"

#define SPANS_EACH 5

static tare_site life = TARE_SITE("life"), work = TARE_SITE("work"), after = TARE_SITE("after death");
static pthread_key_t key;
static sem_t all_here, may_go;

static void destructor(void *value)
{
    (void)value;
    tare_begin(&after);
    tare_end(&after);
}

static void *live(void *argument)
{
    char name[32];
    snprintf(name, sizeof name, "worker %u", (unsigned)(uintptr_t)argument);
    tare_thread_name(name);
    pthread_setspecific(key, name);
    tare_begin(&life);
    for (int i = 0; i < SPANS_EACH; i++) {
        tare_begin(&work);
        tare_end(&work);
    }
    tare_end(&life);
    return NULL;
}

static void *live_together(void *argument)
{
    live(argument);
    sem_post(&all_here);
    sem_wait(&may_go);
    return live(argument);
}

/* `width` at a time, `n` in all. */
static int crowd(uint64_t n, uint64_t width, void *(*body)(void *))
{
    pthread_t *threads = calloc(width, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    for (uint64_t done = 0; done < n;) {
        uint64_t now = 0;
        for (; now < width && done < n; now++, done++)
            if (pthread_create(&threads[now], &small, body, (void *)(uintptr_t)(done + 1)) != 0)
                return 98;
        for (uint64_t i = 0; i < now && body == live_together; i++)
            sem_wait(&all_here);
        for (uint64_t i = 0; i < now && body == live_together; i++)
            sem_post(&may_go);
        for (uint64_t i = 0; i < now; i++)
            pthread_join(threads[i], NULL);
    }
    free(threads);
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = mode_of(argc, argv);
    uint64_t n = number_of(argc, argv, 2, 100);
    pthread_key_create(&key, destructor);
    sem_init(&all_here, 0, 0);
    sem_init(&may_go, 0, 0);
    tell_session();
    tell("threads", n);
    if (strcmp(mode, "short") == 0)
        return crowd(n, 8, live);
    if (strcmp(mode, "alive") == 0)
        return crowd(n, n, live_together);
    return unknown_mode(mode);
}
