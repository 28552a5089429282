/* crowd: many threads at once, each a stream of its own; for the reader's memory and the file's size.
 * Each thread records by itself; sites are made before the first of them starts.
 * Must not know how the trace is written or read.
 *
 *     crowd tree THREADS NODES TURNS       each thread has NODES places of its own in the tree
 *     crowd jitter THREADS SPANS           back-to-back spans of 1 ms +- 5 %, 1,000 names at random
 *
 * The millisecond is slept, so that one machine can record many such threads at once; waking up adds some
 * jitter of its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>

#include <tare.h>

#include "bench.h"

#define NAMES 1000u
#define THREADS_MAX 4096

static tare_site sites[NAMES];
static tare_site roots[THREADS_MAX];
static unsigned threads, nodes, turns;
static pthread_barrier_t all;
static sem_t joined;

static void make_sites(tare_site *made, unsigned n, const char *prefix)
{
    char *text = calloc(n, 24);
    if (!text)
        exit(2);
    for (unsigned i = 0; i < n; i++) {
        snprintf(text + i * 24, 24, "%s_%u", prefix, i * 7919u % 10007u);
        made[i] = (tare_site)TARE_SITE(text + i * 24);
    }
}

/* One place is the root, the others hang below it: THREADS x NODES places in all, since no two threads share
 * their root. They join one by one, start at different places of their chunks, and rest between two turns, so
 * that a thousand of them do not all want another chunk in the same millisecond. */
static void *grow_tree(void *argument)
{
    tare_site *root = argument;
    for (long i = 0; i <= (root - roots) % 64 * 28; i++) {
        tare_begin(root);
        tare_end(root);
    }
    sem_post(&joined);
    pthread_barrier_wait(&all);
    for (unsigned turn = 0; turn < turns; turn++) {
        tare_begin(root);
        for (unsigned i = 1; i < nodes; i++) {
            tare_begin(&sites[i % NAMES]);
            tare_end(&sites[i % NAMES]);
        }
        tare_end(root);
        bench_rest(20000);
    }
    pthread_barrier_wait(&all); /* all streams are open to the end */
    return NULL;
}

static void *jitter(void *argument)
{
    uint64_t seed = (uint64_t)(uintptr_t)argument;
    for (unsigned i = 0; i < nodes; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        tare_site *site = &sites[(seed >> 33) % NAMES];
        struct timespec time = {0, 950000 + (long)((seed >> 43) % 100001)};
        tare_begin(site);
        nanosleep(&time, NULL);
        tare_end(site);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int tree = argc > 2 && strcmp(argv[1], "tree") == 0;
    threads = (unsigned)bench_argument(argc, argv, 2, 1);
    nodes = (unsigned)bench_argument(argc, argv, 3, 100);
    turns = (unsigned)bench_argument(argc, argv, 4, 1);
    if ((!tree && (argc < 3 || strcmp(argv[1], "jitter") != 0)) || threads < 1 || threads > THREADS_MAX) {
        fprintf(stderr, "usage: %s tree THREADS NODES TURNS | jitter THREADS SPANS\n", argv[0]);
        return 2;
    }
    make_sites(sites, NAMES, "operator");
    make_sites(roots, threads, "root");
    pthread_barrier_init(&all, NULL, threads);
    sem_init(&joined, 0, 0);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    static pthread_t made[THREADS_MAX];
    for (unsigned i = 0; i < threads; i++) {
        if (pthread_create(&made[i], &small, tree ? grow_tree : jitter, &roots[i]) != 0) {
            fprintf(stderr, "only %u threads could be made\n", i);
            return 2;
        }
        if (tree)
            sem_wait(&joined);
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(made[i], NULL);
    return 0;
}
