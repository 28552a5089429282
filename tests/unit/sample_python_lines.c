/* Tests of Python call stacks (src/sample/python*.c) on every interpreter of this machine: lines against its tables,
 * threads that are being started, frames of the interpreter itself. One thread.
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

#include "sample/python_inner.h"
#include "sample_python_rig.h"
#include "sample_python_truth.h"

/* ---- programs -------------------------------------------------------------------------------- */
/* Line tables of the standard library, with what the interpreter says: "code FIRST BYTES TABLE", then its ranges,
 * "lines START END LINE", of line 0 where it has none. */
static const char lines_program[] =
    "import argparse, asyncio, asyncio.base_events, dis, json.decoder, sys, tarfile, threading, types\n"
    "def ranges(c):\n"
    "    if hasattr(c, 'co_lines'):\n"
    "        return [(a, b, line or 0) for a, b, line in c.co_lines() if b > a]\n"
    "    starts = list(dis.findlinestarts(c)) + [(len(c.co_code), 0)]\n"
    "    return [(a, b, line) for (a, line), (b, _) in zip(starts, starts[1:])]\n"
    "def show(c):\n"
    "    table = c.co_linetable if sys.version_info >= (3, 10) else c.co_lnotab\n"
    "    if len(table) < 4000:\n"
    "        print('code', c.co_firstlineno, len(c.co_code), table.hex() or '-')\n"
    "        for a, b, line in ranges(c):\n"
    "            print('lines', a, b, line)\n"
    "    for k in c.co_consts:\n"
    "        if isinstance(k, types.CodeType): show(k)\n"
    "for m in argparse, asyncio.base_events, json.decoder, tarfile, threading:\n"
    "    show(compile(open(m.__file__, encoding='utf8').read(), m.__file__, 'exec'))\n"
    "print('ready', flush=True)\n";

/* Starts threads that end at once, one after the other, with a thread that waits. */
static const char starts_program[] =
    "import os, threading\n"
    "def short(): pass\n"
    "def waits(): threading.Event().wait()\n"
    "threading.Thread(target=waits, daemon=True).start()\n"
    "os.write(1, b'ready\\n')\n"
    "while True:\n"
    "    t = threading.Thread(target=short)\n"
    "    t.start()\n"
    "    t.join()\n";

/* ---- lines against the interpreter's own ------------------------------------------------------ */
static tare__python_function function_of(tare__arena *memory, tare__python_table table, const char *line)
{
    unsigned first, code_bytes;
    int at;
    unsigned char bytes[4096];
    size_t n = 0;
    assert_int_equal(sscanf(line, "code %u %u %n", &first, &code_bytes, &at), 2);
    for (const char *hex = line + at; sscanf(hex, "%2hhx", &bytes[n]) == 1; hex += 2)
        n++;
    tare__python_function function = {.shown.first_line = first};
    function.lines = tare__python_lines(memory, table, bytes, n, first, code_bytes, &function.n_lines);
    assert_non_null(function.lines);
    return function;
}

/* Where it has no line, that of the instruction before. */
static void test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_interpreters; i++) {
        program program = start(interpreters[i], lines_program, NULL, NULL);
        tare__python_function function = {{0}, NULL, 0, 0};
        tare__arena *memory = tare__arena_new();
        unsigned ranges = 0, without = 0;
        const char *minor = strstr(interpreters[i], "python3.") + 8;
        tare__python_table table = atoi(minor) == 9    ? TARE__PYTHON_LNOTAB
                                   : atoi(minor) == 10 ? TARE__PYTHON_LINETABLE
                                                       : TARE__PYTHON_LOCATIONS;
        for (char *line; strcmp(line = line_of(program.output), "ready") != 0;) {
            unsigned first, end;
            int expected;
            if (sscanf(line, "lines %u %u %d", &first, &end, &expected) != 3) {
                function = function_of(memory, table, line);
                continue;
            }
            ranges++;
            without += !expected;
            if (!expected)
                expected = first ? tare__python_line_of(&function, first - 1) : (int)function.shown.first_line;
            for (unsigned at = first; at < end; at++)
                assert_int_equal(tare__python_line_of(&function, at), expected);
            assert_true(expected > 0);
        }
        print_message("%s: %u ranges of code, %u without a line\n", interpreters[i], ranges, without);
        assert_true(ranges > 1000);
        tare__arena_free(memory);
        finish(&program);
    }
}

/* ---- threads that are being started ----------------------------------------------------------- */
/* A thread that is being started has the ident of the one that starts it: it is no second sample of that one. */
static void test_starting(void **state)
{
    (void)state;
    unsigned others = 0, samples = 0, without = 0;
    for (size_t i = 0; i < n_interpreters; i++) {
        program program = start(interpreters[i], starts_program, NULL, NULL);
        wait_ready(&program);
        tare__python *python = open_python(program.pid);
        for (unsigned k = 0; k < 3000; k++) {
            const tare__python_thread *threads;
            uint32_t n = take(python, &threads), main = 0;
            for (uint32_t at = 0; at < n; at++) {
                main += threads[at].main;
                if (threads[at].main && !threads[at].torn)
                    assert_true(threads[at].n > 0);
                for (uint32_t other = 0; other < at; other++)
                    assert_true(threads[at].ident != threads[other].ident);
            }
            assert_true(main <= 1);
            others += n > 2;
            samples++;
            without += !main || n < 2; /* without the one that waits */
        }
        tare__python_close(python);
        finish(&program);
    }
    assert_true(others > 0 || !n_interpreters);
    assert_true(without * 100 <= samples); /* a list that breaks off each time it is read */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_starting),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
