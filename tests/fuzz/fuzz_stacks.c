/* fuzz_stacks: the reader of Python stacks on memory that has been damaged: what the input says is put over what is
 * read. Nothing may crash, hang or read outside of a buffer. The memory is the recorded one of tests/fixture/, or with
 * TARE_FUZZ_PYTHON=INTERPRETER that of a real process, which is not touched.
 * One thread. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../python_image.h"

#define SAMPLES 4

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char program[] =
    "import threading, os, sys\n"
    "sys.setrecursionlimit(5000)\n"
    "def generator(n):\n"
    "    if n: yield from generator(n - 1)\n"
    "    else: stop.wait(); yield 1\n"
    "def down(n): return down(n - 1) if n else list(generator(5))\n"
    "stop = threading.Event()\n"
    "threads = [threading.Thread(target=down, args=(n,), daemon=True) for n in (0, 10, 700)]\n"
    "for thread in threads: thread.start()\n"
    "threading.Event().wait(0.2)\n"
    "print('ready', flush=True)\n"
    "os.read(0, 1)\n";

static pid_t target;
static tare__python_read_function *read_really;
static const uint8_t *input;
static size_t input_bytes, used;

static void start(const char *const *words)
{
    int in[2], out[2];
    char ready[8];
    if (pipe(in) != 0 || pipe(out) != 0)
        return;
    target = fork();
    if (target == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        execvp(words[0], (char *const *)words);
        _exit(1);
    }
    close(out[1]);
    if (target < 0 || read(out[0], ready, sizeof ready) <= 0)
        abort();
}

static uint32_t take(void)
{
    uint32_t value = 0;
    size_t n = input_bytes - used < 4 ? input_bytes - used : 4;
    memcpy(&value, input + used, n);
    used += n;
    return value;
}

/* Each read takes a number from the input: how many values of it are replaced, where, and by what. */
static ssize_t read_damaged(pid_t pid, const struct iovec *local, unsigned long n_local, const struct iovec *remote,
                            unsigned long n_remote)
{
    ssize_t got = read_really(pid, local, n_local, remote, n_remote);
    if (got <= 0 || used >= input_bytes)
        return got;
    uint32_t how = take();
    unsigned char *bytes = local[0].iov_base;
    for (uint32_t i = 0; i < (how & 3); i++) {
        size_t at = take() % (size_t)got;
        uint32_t what = take();
        uint64_t value = what;
        size_t width = how >> 2 & 1 ? 8 : 4, from = (what >> 8) % (size_t)got;
        if (how >> 3 & 1) /* a value that is somewhere else in what was read: a pointer that is valid, and wrong */
            memcpy(&value, bytes + from, (size_t)got - from < 8 ? (size_t)got - from : 8);
        memcpy(bytes + at, &value, (size_t)got - at < width ? (size_t)got - at : width);
    }
    return how >> 4 & 7 ? got : (ssize_t)((size_t)got * (how >> 8 & 0xff) / 256); /* cut short */
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const char *chosen = getenv("TARE_FUZZ_PYTHON");
    read_really = tare__python_read_memory;
    if (chosen) {
        start((const char *const[]){chosen, "-c", program, NULL});
    } else {
        if (!python_image_open("python-3.14.image", &python_image_now))
            abort();
        read_really = python_image_read;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tare__python *python = NULL;
    const tare__python_thread *threads;
    tare__error error = {""};
    uint32_t n = 0;
    tare__python_read_memory = read_really;
    input = data;
    input_bytes = size;
    used = 0;
    uint32_t first = take();
    if (first & 1) /* also what is read to open it */
        tare__python_read_memory = read_damaged;
    int status = target ? tare__python_open(target, &python, &error) : python_image_python(&python, &error);
    tare__python_read_memory = read_damaged;
    for (int i = 0; status == 0 && i < SAMPLES; i++) {
        if (tare__python_sample(python, &threads, &n, &error) != 0)
            break;
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t frame = 0; frame < threads[k].n; frame++) {
                const tare__python_code *code = tare__python_code_at(python, threads[k].frames[frame].code);
                if (!code || strlen(code->name) + strlen(code->file) > 1 << 20)
                    abort();
            }
    }
    tare__python_close(python);
    return 0;
}
