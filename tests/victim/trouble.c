/* trouble: programs with one trouble each, and their harmless twins. A few seconds each, as asked for.
 * Must not know anything of Tare but tare.h, nor what is made of it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "victim.h"

#define MIB ((size_t)1 << 20)
#define INTERVAL_MS 20

static uint64_t deadline_ns(uint64_t ms)
{
    return monotonic_ns() + ms * 1000000u;
}

static void *fill(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(98);
    memset(memory, 1, bytes);
    return memory;
}

/* ---- memory ---- */
/* leak MS MIB: so much a second, never given back */
static int leak(uint64_t ms, uint64_t mib)
{
    size_t bytes = mib * MIB * INTERVAL_MS / 1000;
    for (uint64_t end = deadline_ns(ms); monotonic_ns() < end; wait_ms(INTERVAL_MS))
        fill(bytes);
    return 0;
}

/* once MS MIB: all of it at the start, then kept */
static int once(uint64_t ms, uint64_t mib)
{
    fill(mib * MIB);
    wait_ms((unsigned)ms);
    return 0;
}

/* sawtooth MS MIB: filled in some steps, given back, and again */
static int sawtooth(uint64_t ms, uint64_t mib)
{
    enum { PARTS = 12 };
    void *parts[PARTS];
    for (uint64_t end = deadline_ns(ms); monotonic_ns() < end;) {
        for (int i = 0; i < PARTS; i++, wait_ms(INTERVAL_MS))
            parts[i] = fill(mib * MIB / PARTS);
        for (int i = 0; i < PARTS; i++)
            munmap(parts[i], mib * MIB / PARTS);
    }
    return 0;
}

/* ---- CPU ---- */
static uint64_t spin_until;

static void *spin(void *nothing)
{
    volatile uint64_t turns = 0;
    while (monotonic_ns() < spin_until)
        for (int i = 0; i < 10000; i++)
            turns++;
    return nothing;
}

/* spin MS THREADS: that many threads compute */
static int spin_threads(uint64_t ms, uint64_t threads)
{
    pthread_t others[256];
    spin_until = deadline_ns(ms);
    for (uint64_t i = 1; i < threads; i++)
        if (pthread_create(&others[i], NULL, spin, NULL))
            return 98;
    spin(NULL);
    for (uint64_t i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    return 0;
}

/* rest MS: nothing at all */
static int rest(uint64_t ms, uint64_t nothing)
{
    (void)nothing;
    wait_ms((unsigned)ms);
    return 0;
}

/* ---- disk ---- */
/* sync MS EVERY: 256 KiB at a time; waits for the disk after each EVERY, 0: never */
static int write_file(uint64_t ms, uint64_t every)
{
    static char block[256 << 10];
    int fd = open("written", O_RDWR | O_CREAT | O_TRUNC, 0600);
    uint64_t n = 0;
    if (fd < 0)
        return 98;
    for (uint64_t end = deadline_ns(ms); monotonic_ns() < end;) {
        memset(block, (int)++n, sizeof block);
        if (pwrite(fd, block, sizeof block, (off_t)(n % 64 * sizeof block)) < 0)
            return 98;
        if (every == 0)
            wait_ms(INTERVAL_MS);
        else if (n % every == 0)
            fsync(fd);
    }
    tell("blocks", n);
    close(fd);
    return 0;
}

#define READ_BYTES ((size_t)64 << 10)
#define READ_FILE  (8 * MIB)
static uint64_t read_until;

static void *read_directly(void *nothing)
{
    int fd = open("read", O_RDONLY | O_DIRECT);
    char *block = fill(READ_BYTES);
    while (fd >= 0 && monotonic_ns() < read_until)
        for (size_t at = 0; at < READ_FILE && monotonic_ns() < read_until; at += READ_BYTES)
            if (pread(fd, block, READ_BYTES, (off_t)at) < 0)
                exit(98);
    if (fd >= 0)
        close(fd);
    return nothing;
}

/* read MS THREADS: that many read the file "read" past all caches; status 97 where its place has no such reads */
static int read_file(uint64_t ms, uint64_t threads)
{
    pthread_t others[64];
    int direct = open("read", O_RDONLY | O_DIRECT);
    if (direct < 0 || threads > 64)
        return 97;
    close(direct);
    read_until = deadline_ns(ms);
    for (uint64_t i = 0; i < threads; i++)
        if (pthread_create(&others[i], NULL, read_directly, NULL))
            return 98;
    for (uint64_t i = 0; i < threads; i++)
        pthread_join(others[i], NULL);
    return 0;
}

/* ---- network ---- */
/* send MS FRAMES: so many into the device tare0, evenly; status 97 where there is none */
static int send_frames(uint64_t ms, uint64_t frames)
{
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("tare0")};
    unsigned char frame[64] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    uint64_t intervals = ms / INTERVAL_MS, sent = 0;
    if (fd < 0 || to.sll_ifindex == 0)
        return 97;
    for (uint64_t interval = 1; interval <= intervals; interval++, wait_ms(INTERVAL_MS))
        for (; sent < frames * interval / intervals; sent++)
            (void)!sendto(fd, frame, sizeof frame, 0, (struct sockaddr *)&to, sizeof to);
    close(fd);
    return 0;
}

/* ---- training: STEPS LOAD FORWARD BACKWARD FIRST SLOW EVERY, times in ms ---- */
static void span_of(tare_site *site, uint64_t ms)
{
    tare_begin(site);
    wait_ms((unsigned)ms);
    tare_end(site);
}

static int train(int argc, char **argv)
{
    static tare_site load = TARE_SITE("data_loading"), forward = TARE_SITE("forward_pass");
    static tare_site backward = TARE_SITE("backward_pass"), first = TARE_SITE("compile");
    static tare_site save = TARE_SITE("checkpoint"), optimize = TARE_SITE("optimizer");
    uint64_t steps = number_of(argc, argv, 2, 10), every = number_of(argc, argv, 8, 0);
    for (uint64_t i = 0; i < steps; i++) {
        tare_step_begin(i);
        if (i == 0 && number_of(argc, argv, 6, 0))
            span_of(&first, number_of(argc, argv, 6, 0));
        span_of(&load, number_of(argc, argv, 3, 1));
        span_of(&forward, number_of(argc, argv, 4, 1));
        span_of(&backward, number_of(argc, argv, 5, 1));
        span_of(&optimize, 10);
        if (every && i % every == every - 1)
            span_of(&save, number_of(argc, argv, 7, 0));
        tare_step_end();
    }
    return 0;
}

/* operations MS …: eight spans in one */
static int operations(int argc, char **argv)
{
    static tare_site all = TARE_SITE("all");
    static tare_site sites[] = {TARE_SITE("tokenize"), TARE_SITE("embed"), TARE_SITE("rank"),  TARE_SITE("write"),
                                TARE_SITE("read"),     TARE_SITE("sort"),  TARE_SITE("merge"), TARE_SITE("score")};
    tare_begin(&all);
    for (int i = 0; i < 8; i++)
        span_of(&sites[i], number_of(argc, argv, 2 + i, 50));
    tare_end(&all);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(uint64_t ms, uint64_t amount);
} modes[] = {
    {"leak", leak},         {"once", once}, {"sawtooth", sawtooth},
    {"spin", spin_threads}, {"rest", rest}, {"sync", write_file},
    {"read", read_file},    {"send", send_frames},
};

int main(int argc, char **argv)
{
    const char *mode = mode_of(argc, argv);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(mode, modes[i].name) == 0)
            return modes[i].run(number_of(argc, argv, 2, 2000), number_of(argc, argv, 3, 1));
    if (strcmp(mode, "train") == 0)
        return train(argc, argv);
    if (strcmp(mode, "operations") == 0)
        return operations(argc, argv);
    return unknown_mode(mode);
}
