/* Tests of Python call stacks (src/sample/python*.c) on every interpreter of this machine: the frames against what the
 * program itself says, mixed stacks, reuse of code objects, damaged memory. One thread.
 * Must not know the samplers. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sample/python_inner.h"
#include "sample_python_programs.h"
#include "sample_python_rig.h"
#include "sample_python_truth.h"

static uint64_t seed;

static uint32_t random_number(void)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(seed >> 33);
}

/* ---- frames against the program's own -------------------------------------------------------- */
/* Whether one has returned from its report, into the read after it. */
static bool has_stopped(const tare__python *python, const tare__python_thread *threads, uint32_t n)
{
    bool found = false, torn = false;
    for (uint32_t i = 0; i < n; i++) {
        const tare__python_code *code = threads[i].n ? tare__python_code_at(python, threads[i].frames[0].code) : NULL;
        found = found || (code && strcmp(code->name, "stop") == 0);
        torn = torn || threads[i].torn;
    }
    return found && !torn;
}

static void compare(const char *interpreter, const char *name)
{
    truth expected[16] = {{0}};
    program program = start(interpreter, stops_program, name, NULL);
    pid_t pid = program.pid;
    if (strcmp(name, "forked") == 0)
        assert_int_equal(sscanf(line_of(program.output), "child %d", &pid), 1);
    size_t n = read_truth(program.output, expected, TARE__COUNT_OF(expected));
    tare__python *python = open_python(pid);
    for (int times = 0; times < 3; times++) { /* the second sample is read in another way than the first */
        const tare__python_thread *threads;
        uint32_t n_threads = take(python, &threads);
        for (int tries = 0; tries < 1000 && !has_stopped(python, threads, n_threads); tries++) {
            usleep(10000);
            n_threads = take(python, &threads);
        }
        assert_int_equal(n_threads, n);
        for (size_t i = 0; i < n; i++) {
            uint32_t at = 0;
            while (at < n_threads && threads[at].ident != expected[i].ident)
                at++;
            assert_true(at < n_threads);
            compare_thread(python, &threads[at], &expected[i]);
        }
    }
    tare__python_close(python);
    free_truth(expected, n);
    if (pid != program.pid)
        kill(pid, SIGKILL);
    finish(&program);
}

static void test_frames(void **state)
{
    (void)state;
    static const char *const names[] = {"nested", "recursion", "generator", "coroutine", "awaits", "expressions",
                                        "unicode", "executed", "threads", "forked", "constructed"};
    for (size_t i = 0; i < n_interpreters; i++)
        for (size_t k = 0; k < TARE__COUNT_OF(names); k++) {
            print_message("%s %s\n", interpreters[i], names[k]);
            compare(interpreters[i], names[k]);
        }
}

static void test_version(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_interpreters; i++) {
        program program = start(interpreters[i], "import sys, os, time\nprint(sys.version.split()[0])\n"
                                                 "print('ready', flush=True)\ntime.sleep(1000)\n", NULL, NULL);
        char version[64];
        snprintf(version, sizeof(version), "%.63s", line_of(program.output));
        wait_ready(&program);
        tare__python *python = open_python(program.pid);
        assert_string_equal(tare__python_version(python), version);
        assert_non_null(strstr(tare__python_object(python), "python"));
        tare__python_close(python);
        finish(&program);
    }
}

/* ---- offsets against the headers of the interpreter, symbols against its file ---------------------- */
typedef struct offset {
    const char *text; /* in C */
    size_t field;     /* of the layout */
    unsigned first, last; /* minor versions */
} offset;
#define OFFSET(field, first, last, text) {text, offsetof(tare__python_layout, field), first, last}
static const offset offsets[] = {
    OFFSET(runtime_interpreters, 9, 14, "offsetof(_PyRuntimeState, interpreters.head)"),
    OFFSET(runtime_gil, 9, 11, "offsetof(_PyRuntimeState, ceval.gil)"),
    OFFSET(interp_next, 9, 14, "offsetof(PyInterpreterState, next)"),
    OFFSET(interp_threads, 9, 10, "offsetof(PyInterpreterState, tstate_head)"),
    OFFSET(interp_threads, 11, 14, "offsetof(PyInterpreterState, threads.head)"),
    OFFSET(interp_collecting, 9, 14, "offsetof(PyInterpreterState, gc.collecting)"),
    OFFSET(interp_gil, 12, 14, "offsetof(PyInterpreterState, ceval.gil)"),
    OFFSET(gil_holder, 9, 14, "offsetof(struct _gil_runtime_state, last_holder)"),
    OFFSET(gil_locked, 9, 14, "offsetof(struct _gil_runtime_state, locked)"),
    OFFSET(state_next, 9, 14, "offsetof(PyThreadState, next)"),
    OFFSET(state_interp, 9, 14, "offsetof(PyThreadState, interp)"),
    OFFSET(state_frame, 9, 10, "offsetof(PyThreadState, frame)"),
    OFFSET(state_frame, 11, 12, "offsetof(PyThreadState, cframe)"),
    OFFSET(state_frame, 13, 14, "offsetof(PyThreadState, current_frame)"),
    OFFSET(state_ident, 9, 14, "offsetof(PyThreadState, thread_id)"),
    OFFSET(state_native, 11, 14, "offsetof(PyThreadState, native_thread_id)"),
    OFFSET(state_chunk, 11, 14, "offsetof(PyThreadState, datastack_chunk)"),
    OFFSET(state_chunk, 11, 14, "offsetof(PyThreadState, datastack_top) - 8"),
    OFFSET(cframe_current, 11, 12, "offsetof(_PyCFrame, current_frame)"),
    OFFSET(frame_code, 9, 10, "offsetof(PyFrameObject, f_code)"),
    OFFSET(frame_code, 11, 12, "offsetof(_PyInterpreterFrame, f_code)"),
    OFFSET(frame_code, 13, 14, "offsetof(_PyInterpreterFrame, f_executable)"),
    OFFSET(frame_previous, 9, 10, "offsetof(PyFrameObject, f_back)"),
    OFFSET(frame_previous, 11, 14, "offsetof(_PyInterpreterFrame, previous)"),
    OFFSET(frame_instruction, 9, 10, "offsetof(PyFrameObject, f_lasti)"),
    OFFSET(frame_instruction, 11, 12, "offsetof(_PyInterpreterFrame, prev_instr)"),
    OFFSET(frame_instruction, 13, 14, "offsetof(_PyInterpreterFrame, instr_ptr)"),
    OFFSET(frame_owner, 11, 14, "offsetof(_PyInterpreterFrame, owner)"),
    OFFSET(frame_entry, 11, 11, "offsetof(_PyInterpreterFrame, is_entry)"),
    OFFSET(frame_stack, 11, 13, "offsetof(_PyInterpreterFrame, stacktop)"),
    OFFSET(frame_running, 9, 9, "offsetof(PyFrameObject, f_executing)"),
    OFFSET(frame_running, 10, 10, "offsetof(PyFrameObject, f_state)"),
    OFFSET(code_name, 9, 14, "offsetof(PyCodeObject, co_name)"),
    OFFSET(code_qualname, 11, 14, "offsetof(PyCodeObject, co_qualname)"),
    OFFSET(code_file, 9, 14, "offsetof(PyCodeObject, co_filename)"),
    OFFSET(code_first_line, 9, 14, "offsetof(PyCodeObject, co_firstlineno)"),
    OFFSET(code_lines, 9, 9, "offsetof(PyCodeObject, co_lnotab)"),
    OFFSET(code_lines, 10, 14, "offsetof(PyCodeObject, co_linetable)"),
    OFFSET(code_traceable, 11, 14, "offsetof(PyCodeObject, _co_firsttraceable)"),
    OFFSET(code_start, 9, 10, "offsetof(PyCodeObject, co_code)"),
    OFFSET(code_start, 11, 14, "offsetof(PyCodeObject, co_code_adaptive)"),
    OFFSET(text_state, 9, 14, "offsetof(PyASCIIObject, state)"),
    OFFSET(text_length, 9, 14, "offsetof(PyASCIIObject, length)"),
    OFFSET(text_ascii, 9, 14, "sizeof(PyASCIIObject)"),
    OFFSET(text_compact, 9, 14, "sizeof(PyCompactUnicodeObject)"),
    OFFSET(bytes_size, 9, 14, "offsetof(PyVarObject, ob_size)"),
    OFFSET(bytes_data, 9, 14, "offsetof(PyBytesObject, ob_sval)"),
    OFFSET(object_type, 9, 14, "offsetof(PyObject, ob_type)"),
};

static void compare_offsets(const tare__python *python, const char *headers)
{
    char path[128], command[2048];
    unsigned minor = python->layout.minor;
    snprintf(path, sizeof(path), "%s/offsets.c", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#define Py_BUILD_CORE 1\n#include <Python.h>\n#include <frameobject.h>\n"
                  "#include <stddef.h>\n#include <stdio.h>\n"
                  "#include \"internal/pycore_runtime.h\"\n#include \"internal/pycore_interp.h\"\n"
                  "#include \"internal/pycore_gil.h\"\n%sint main(void)\n{\n",
            minor >= 11 ? "#include \"internal/pycore_frame.h\"\n" : "");
    for (size_t i = 0; i < TARE__COUNT_OF(offsets); i++)
        if (minor >= offsets[i].first && minor <= offsets[i].last)
            fprintf(file, "printf(\"%%zu\\n\", (size_t)(%s));\n", offsets[i].text);
    fprintf(file, "}\n");
    fclose(file);
    snprintf(command, sizeof(command), "cc -w -I%s -I%s/internal -o %s/offsets %s && %s/offsets", headers, headers,
             folder, path, folder);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    for (size_t i = 0; i < TARE__COUNT_OF(offsets); i++)
        if (minor >= offsets[i].first && minor <= offsets[i].last) {
            unsigned expected;
            uint32_t got;
            assert_int_equal(fscanf(output, "%u", &expected), 1);
            memcpy(&got, (const char *)&python->layout + offsets[i].field, sizeof(got));
            if (got != expected)
                fail_msg("3.%u: %s is %u, not %u", minor, offsets[i].text, expected, (unsigned)got);
        }
    assert_int_equal(pclose(output), 0);
}

static void test_offsets(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_interpreters; i++) {
        char headers[512], probe[600];
        program program = start(interpreters[i], stops_program, "nested", NULL);
        wait_ready(&program);
        tare__python *python = open_python(program.pid);
        snprintf(headers, sizeof(headers), "%.*s/../include/%s", (int)(strrchr(interpreters[i], '/') - interpreters[i]),
                 interpreters[i], strrchr(interpreters[i], '/') + 1);
        snprintf(probe, sizeof(probe), "%s/internal/pycore_runtime.h", headers);
        if (access(probe, R_OK) == 0 && system("cc --version > /dev/null 2>&1") == 0)
            compare_offsets(python, headers);
        else
            print_message("%s has no headers here: its offsets are not compared\n", interpreters[i]);

        int fd = open(tare__python_object(python), O_RDONLY);
        tare__python_symbols symbols;
        uint64_t base = 0;
        char path[64], line[1024];
        snprintf(path, sizeof(path), "/proc/%d/maps", (int)program.pid);
        FILE *maps = fopen(path, "r");
        while (!base && fgets(line, sizeof(line), maps))
            if (strstr(line, tare__python_object(python)))
                base = strtoull(line, NULL, 16);
        fclose(maps);
        assert_true(tare__python_elf_file(fd, base, &symbols));
        assert_true(symbols.runtime == python->symbols.runtime && symbols.code_type == python->symbols.code_type);
        close(fd);
        tare__python_close(python);
        finish(&program);
    }
}

/* The table of 3.14, which few test machines have: the numbers of the fields, and damage. */
static void test_published_offsets(void **state)
{
    (void)state;
    uint64_t table[TARE__PYTHON_OFFSETS_BYTES / 8];
    tare__python_layout layout;
    tare__error error;
    uint32_t version;
    static const uint64_t sizes[] = {3, 6, 22, 31, 39, 50, 74, 77, 81};
    for (size_t i = 0; i < TARE__COUNT_OF(table); i++)
        table[i] = 8 * (i % 16);
    for (size_t i = 0; i < TARE__COUNT_OF(sizes); i++)
        table[sizes[i]] = 256;
    memcpy(table, "xdebugpy", 8);
    table[1] = 0x030e00f0;
    table[2] = 0;
    table[16] = 8; /* the GIL in PyInterpreterState, with both of its fields after it */
    table[18] = 24;
    table[19] = 16;
    table[75] = 16; /* bytes: size, data */
    table[76] = 32;
    table[80] = 40; /* size of PyASCIIObject */
    table[78] = 32;
    table[79] = 16;
    assert_int_equal(tare__python_layout_read((unsigned char *)table, &layout, &version, &error), 0);
    assert_int_equal(version, 0x030e00f0);
    assert_int_equal(layout.minor, 14);
    assert_true(layout.tagged);
    assert_int_equal(layout.state_frame, 8 * (26 % 16));
    assert_int_equal(layout.frame_code, 8 * (33 % 16));
    assert_int_equal(layout.code_qualname, 8 * (42 % 16));
    assert_int_equal(layout.gil_holder, 8);
    assert_int_equal(layout.gil_locked, 16);
    seed = 1;
    for (int i = 0; i < 200000; i++) { /* what is accepted fits into what is read */
        uint64_t copy[TARE__COUNT_OF(table)];
        memcpy(copy, table, sizeof(copy));
        for (int k = 0; k < 3; k++)
            copy[random_number() % 90] = random_number() % 4   ? random_number() % 5000
                                         : random_number() % 2 ? (uint64_t)random_number() << 33
                                                               : (uint64_t)0 - (1u << random_number() % 6);
        if (tare__python_layout_read((unsigned char *)copy, &layout, &version, &error) == 0) {
            assert_true(layout.state_bytes <= TARE__PYTHON_STATE_BYTES && layout.state_frame + 8 <= layout.state_bytes);
            assert_true(layout.frame_bytes <= TARE__PYTHON_FRAME_BYTES && layout.frame_owner < layout.frame_bytes);
            assert_true(layout.code_bytes <= TARE__PYTHON_CODE_BYTES && layout.code_lines + 8ull <= layout.code_bytes);
            assert_true(layout.state_next + 8ull <= layout.state_bytes);
            assert_true(layout.frame_code + 8ull <= layout.frame_bytes);
            assert_true(layout.frame_previous + 8ull <= layout.frame_bytes);
            assert_true(layout.object_type + 8ull <= layout.code_bytes);
            assert_true(layout.object_size + 8ull <= layout.code_bytes);
            assert_true(layout.code_name + 8ull <= layout.code_bytes && layout.text_state + 4ull <= layout.text_ascii);
            assert_true(layout.gil_holder <= 256 && layout.bytes_size + 8ull <= layout.bytes_data);
        }
    }
    table[1] = 0x030f00f0;
    assert_int_equal(tare__python_layout_read((unsigned char *)table, &layout, &version, &error), TARE_E_VERSION);
}

/* An executable that is deleted while it runs (its image in memory has the symbols). */
static void test_deleted(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_interpreters; i++) {
        char command[1024], path[64];
        snprintf(path, sizeof(path), "%s/deleted", folder);
        snprintf(command, sizeof(command), "cp %s %s", interpreters[i], path);
        assert_int_equal(system(command), 0);
        char home[512];
        snprintf(home, sizeof(home), "%.*s/..", (int)(strrchr(interpreters[i], '/') - interpreters[i]),
                 interpreters[i]);
        setenv("PYTHONHOME", home, 1);
        program program = start(path, "import os\nos.write(1, b'ready\\n')\nos.read(0, 1)\n", NULL, NULL);
        unsetenv("PYTHONHOME");
        wait_ready(&program);
        assert_int_equal(unlink(path), 0);
        tare__python *python = open_python(program.pid);
        const tare__python_thread *threads;
        usleep(20000);
        assert_int_equal(take(python, &threads), 1);
        assert_int_equal(threads[0].n, 1);
        assert_int_equal(threads[0].frames[0].line, 3);
        tare__python_close(python);
        finish(&program);
    }
}

/* ---- garbage collection, exec, other processes ----------------------------------------------- */
static void test_collection(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_interpreters; i++) {
        program program = start(interpreters[i], stops_program, "collection", NULL);
        wait_ready(&program);
        tare__python *python = open_python(program.pid);
        const tare__python_thread *threads;
        bool seen = false;
        for (int tries = 0; tries < 200 && !seen; tries++) {
            assert_int_equal(take(python, &threads), 1);
            seen = threads[0].has_gil && threads[0].in_gc;
            usleep(1000);
        }
        assert_true(seen);
        tare__python_close(python);
        finish(&program);
    }
}

static void test_exec(void **state)
{
    (void)state;
    static const char *const names[] = {"replaced", "other_program"};
    for (size_t i = 0; i < n_interpreters * TARE__COUNT_OF(names); i++) {
        program program = start(interpreters[i / 2], stops_program, names[i % 2], NULL);
        wait_ready(&program);
        tare__python *python = open_python(program.pid);
        const tare__python_thread *threads;
        tare__error error;
        uint32_t n;
        assert_int_equal(take(python, &threads), 1);
        assert_int_equal(write(program.input, "x", 1), 1);
        int status = 0;
        for (int tries = 0; tries < 10000 && (status == 0 || status == TARE_E_BUSY); tries++) {
            status = tare__python_sample(python, &threads, &n, &error);
            usleep(1000);
        }
        assert_int_equal(status, TARE_E_SYSTEM);
        tare__python_close(python);
        finish(&program);
    }
}

static void test_others(void **state)
{
    (void)state;
    tare__error error;
    tare__python *python;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/bin/sleep", "sleep", "1000", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    for (int i = 0; i < 100; i++) { /* before and after its exec */
        status = tare__python_open(child, &python, &error);
        assert_true(status == TARE_E_INPUT || status == TARE_E_BUSY);
        usleep(1000);
    }
    assert_int_equal(status, TARE_E_INPUT);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(tare__python_open(child, &python, &error), TARE_E_SYSTEM);
    tare__python_close(NULL);
}

/* From the first instruction of the process on: try again, then stacks, and the end of the process. */
static void test_start_and_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_interpreters * 10; i++) {
        program program = start(interpreters[i / 10], "import json, argparse\n", NULL, NULL);
        tare__python *python = NULL;
        tare__error error;
        int status;
        while ((status = tare__python_open(program.pid, &python, &error)) != 0 && status != TARE_E_SYSTEM)
            continue;
        const tare__python_thread *threads;
        uint32_t n;
        while (status == 0 || status == TARE_E_BUSY)
            status = tare__python_sample(python, &threads, &n, &error);
        assert_int_equal(status, TARE_E_SYSTEM);
        tare__python_close(python);
        finish(&program);
    }
}

/* ---- stacks of a program that changes all the time ------------------------------------------- */
/* Frames of paths_program: each name is the caller's and the digit of the line that the caller is on. */
static bool is_path(const tare__python *python, const tare__python_thread *thread)
{
    const char *caller = NULL;
    int digit = 0;
    for (uint32_t i = thread->n; i-- > 0;) {
        const tare__python_code *code = tare__python_code_at(python, thread->frames[i].code);
        if (strcmp(code->file, "<paths>") != 0)
            continue;
        size_t length = strlen(code->name);
        if (caller ? strncmp(code->name, caller, length - 1) != 0 || strlen(caller) + 1 != length ||
                         code->name[length - 1] != '0' + digit
                   : strcmp(code->name, "f") != 0)
            return false;
        caller = code->name;
        digit = thread->frames[i].line - (int)code->first_line - 1;
    }
    return true;
}

static void print_stack(const tare__python *python, const tare__python_thread *thread)
{
    for (uint32_t i = 0; i < thread->n; i++) {
        const tare__python_code *code = tare__python_code_at(python, thread->frames[i].code);
        print_message("    %s:%d (from %d)\n", code->name, (int)thread->frames[i].line, (int)code->first_line);
    }
}

/* The program and this one each on a CPU, where there are two: they must run at the same time. */
static void pin(pid_t pid, bool second)
{
    cpu_set_t allowed, one;
    int cpus[2], n = 0;
    if (sched_getaffinity(getppid(), sizeof(allowed), &allowed) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            cpus[n++] = cpu;
    CPU_ZERO(&one);
    if (n == 2) {
        CPU_SET(cpus[second], &one);
        sched_setaffinity(pid, sizeof(one), &one);
    }
}

static unsigned mixed_stacks(const char *interpreter, const char *levels, const char *kinds, unsigned samples,
                             unsigned *all_torn)
{
    program program = start(interpreter, paths_program, levels, kinds);
    wait_ready(&program);
    tare__python *python = open_python(program.pid);
    const tare__python_thread *threads;
    unsigned mixed = 0, depths[64] = {0}, torn = 0;
    pin(0, false);
    pin(program.pid, true);
    for (unsigned i = 0; i < samples; i++) {
        usleep(random_number() % 128); /* on one CPU, it must run in between */
        assert_int_equal(take(python, &threads), 1);
        torn += threads[0].torn;
        depths[threads[0].n < 63 ? threads[0].n : 63]++;
        if (threads[0].torn || is_path(python, &threads[0]))
            continue;
        if (mixed++ < 3) {
            print_message("mixed stack:\n");
            print_stack(python, &threads[0]);
        }
    }
    print_message("%s, %s levels of %s: %u samples, %u torn, %u mixed; depths", interpreter, levels, kinds, samples,
                  torn, mixed);
    for (unsigned i = 0; i < 20; i++)
        print_message(" %u", depths[i]);
    print_message("\n");
    *all_torn += torn;
    tare__python_close(python);
    finish(&program);
    cpu_set_t allowed;
    if (sched_getaffinity(getppid(), sizeof(allowed), &allowed) == 0)
        sched_setaffinity(0, sizeof(allowed), &allowed);
    return mixed;
}

static void test_mixed(void **state)
{
    (void)state;
    static const char *const programs[][2] = {{"1", "p"}, {"2", "p"}, {"3", "p"}, {"8", "p"}, {"4", "pcg"}};
    const char *samples = getenv("TARE_PYTHON_SAMPLES");
    unsigned mixed = 0, torn = 0, each = samples ? (unsigned)atoi(samples) : 1000;
    for (size_t i = 0; i < n_interpreters; i++)
        for (size_t k = 0; k < TARE__COUNT_OF(programs); k++)
            mixed += mixed_stacks(interpreters[i], programs[k][0], programs[k][1], each, &torn);
    /* On an idle machine about one in 30,000 of these programs, which only call and return, passes all checks. */
    assert_true(mixed * 1000 <= each * n_interpreters * TARE__COUNT_OF(programs));
    /* Read from another CPU only, most of them would be. */
    assert_true(torn * 10 <= each * n_interpreters * TARE__COUNT_OF(programs));
}

/* nameN in fileN, at line N % 500 + 1. */
static void test_reuse(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_interpreters; i++) {
        program program = start(interpreters[i], reuse_program, NULL, NULL);
        wait_ready(&program);
        tare__python *python = open_python(program.pid);
        const tare__python_thread *threads;
        unsigned seen = 0;
        for (unsigned k = 0; k < 2000; k++) {
            usleep(100);
            take(python, &threads);
            for (uint32_t at = 0; at + 1 < threads[0].n; at++) {
                const tare__python_code *code = tare__python_code_at(python, threads[0].frames[at].code);
                int name, file;
                if (sscanf(code->name, "name%d", &name) != 1)
                    continue;
                seen++;
                assert_int_equal(sscanf(code->file, "<file%d>", &file), 1);
                assert_int_equal(name, file);
                assert_int_equal(code->first_line, name % 500 + 1);
            }
        }
        print_message("%s: %u functions seen\n", interpreters[i], seen);
        assert_true(seen > 0);
        tare__python_close(python);
        finish(&program);
    }
}

/* ---- damaged memory -------------------------------------------------------------------------- */
static tare__python_read_function *real_read;
static unsigned damage_one_in;

static ssize_t damaged_read(pid_t pid, const struct iovec *local, unsigned long n_local, const struct iovec *remote,
                            unsigned long n_remote)
{
    ssize_t got = real_read(pid, local, n_local, remote, n_remote);
    unsigned char *bytes = local[0].iov_base;
    if (got <= 0 || random_number() % damage_one_in)
        return got;
    unsigned n = 1 + random_number() % 8;
    for (unsigned i = 0; i < n; i++) {
        size_t at = random_number() % (size_t)got;
        unsigned kind = random_number() % 6;
        if (kind == 0) {
            bytes[at] = (unsigned char)random_number();
        } else if (kind == 1 && at + 8 <= (size_t)got) { /* another pointer of the same read */
            size_t from = (random_number() % (size_t)got) & ~(size_t)7;
            at &= ~(size_t)7;
            if (from + 8 <= (size_t)got && at + 8 <= (size_t)got)
                memmove(bytes + at, bytes + from, 8);
        } else if (kind == 2 && at + 8 <= (size_t)got) {
            memset(bytes + (at & ~(size_t)7), random_number() % 2 ? 255 : 0, 8);
        } else if (kind == 3) {
            return (ssize_t)at;
        } else if (kind == 4 && at + 8 <= (size_t)got) {
            bytes[at & ~(size_t)7] ^= (unsigned char)(8u << random_number() % 5);
        } else if (kind == 5 && random_number() % 8 == 0) {
            for (size_t k = 0; k < (size_t)got; k++)
                bytes[k] = (unsigned char)random_number();
        }
    }
    return got;
}

static void test_damage(void **state)
{
    (void)state;
    static const char *const names[] = {"nested", "generator", "threads", "recursion", "unicode"};
    tare__error error;
    real_read = tare__python_read_memory;
    for (size_t i = 0; i < n_interpreters * TARE__COUNT_OF(names); i++) {
        program program = start(interpreters[i / TARE__COUNT_OF(names)], stops_program,
                                names[i % TARE__COUNT_OF(names)], NULL);
        wait_ready(&program);
        tare__python_read_memory = damaged_read;
        unsigned opened = 0;
        for (unsigned k = 0; k < 60; k++) {
            tare__python *python;
            const tare__python_thread *threads;
            uint32_t n;
            seed = 1000 * i + k;
            damage_one_in = k % 2 ? 2 : 12;
            if (tare__python_open(program.pid, &python, &error) != 0)
                continue;
            opened++;
            for (unsigned sample = 0; sample < 20; sample++)
                if (tare__python_sample(python, &threads, &n, &error) == 0)
                    for (uint32_t at = 0; at < n; at++)
                        for (uint32_t frame = 0; frame < threads[at].n; frame++)
                            assert_non_null(tare__python_code_at(python, threads[at].frames[frame].code));
            tare__python_close(python);
        }
        tare__python_read_memory = real_read;
        assert_true(opened > 0);
        finish(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),    cmocka_unit_test(test_version), cmocka_unit_test(test_collection),
        cmocka_unit_test(test_exec),      cmocka_unit_test(test_others),  cmocka_unit_test(test_start_and_end),
        cmocka_unit_test(test_mixed),     cmocka_unit_test(test_reuse),   cmocka_unit_test(test_damage),
        cmocka_unit_test(test_offsets),   cmocka_unit_test(test_deleted), cmocka_unit_test(test_published_offsets),
    };
    const char *only = getenv("TARE_PYTHON_ONLY");
    if (only)
        cmocka_set_test_filter(only);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
