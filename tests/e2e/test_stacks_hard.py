"""Sampled stacks where they are hard to get: embedded and unusual interpreters, sub-interpreters, namespaces, code that
is replaced all the time, processes that are stopped or have ended, and versions that are not supported."""
import fcntl
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios

import pytest
import test_native
from conftest import TARE, scaled
from test_stacks import PYTHONS, python, run, write  # noqa: F401: a fixture
from waiting import until

BUSY = """
    import time
    def busy():
        end = time.perf_counter() + 0.7
        while time.perf_counter() < end:
            sum(range(500))
    busy()
"""


def function(report, name):
    return next((row for row in report["functions"] if row["function"] == name), None)


def version_of(interpreter):
    code = "import sys; print(*sys.version_info[:2])"
    out = subprocess.run([interpreter, "-c", code], stdout=subprocess.PIPE, text=True).stdout
    return tuple(map(int, out.split()))


@pytest.mark.parametrize("rate", ["100", "2000", "10000"])
def test_cpu_time_and_waits_for_a_cpu_at_any_rate(bench, rate):
    """A program that only computes, with others that want its CPU: it is on a CPU for as long as its own clock says,
    and waits for one for the rest. The kernel counts both later than the samples to which they belong."""
    script = write(bench, "spin.py", """
        import os, time
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        def spin():
            end = time.perf_counter() + 1.5
            while time.perf_counter() < end:
                sum(range(500))
        rivals = [os.fork() for _ in range(2)]
        if 0 in rivals:
            spin()
            os._exit(0)
        begin, cpu = time.perf_counter(), time.thread_time()
        spin()
        print("spin", time.perf_counter() - begin, time.thread_time() - cpu)
        for rival in rivals:
            if rival:
                os.waitpid(rival, 0)
    """)
    done, report = run(bench, sys.executable, script, options=["--stacks", rate])
    wall, cpu = (1e9 * float(value) for value in next(line for line in done.out.splitlines()
                                                     if line.startswith("spin")).split()[1:])
    main = next(row for row in report["sampled_threads"] if row["leading"])
    nodes = [row for row in report["stacks"] if row["name"] == "spin" and row["depth"] == 3]
    row = max(nodes, key=lambda row: row["total_cpu_ns"] if row["thread"] == main.get("thread") else 0)
    assert row["total_ns"] == pytest.approx(wall, rel=0.1)
    assert main["cpu_ns"] == pytest.approx(cpu, abs=0.15e9)
    assert main["runnable_ns"] >= 0.8 * (wall - cpu) - 0.1e9
    assert main["other_ns"] <= 0.1 * wall, main


def test_sub_interpreters(bench, python):  # noqa: F811
    script = write(bench, "sub.py", """
        import threading, time
        try:
            import _interpreters as interpreters
            execute = interpreters.exec
        except ImportError:
            import _xxsubinterpreters as interpreters
            execute = interpreters.run_string
        CODE = '''if 1:
            import time
            def in_sub():
                end = time.perf_counter() + 1
                while time.perf_counter() < end:
                    sum(range(500))
            in_sub()
        '''
        def runs(number):
            execute(number, CODE)
        def in_main():
            end = time.perf_counter() + 1
            while time.perf_counter() < end:
                sum(range(500))
        numbers = [interpreters.create() for _ in range(2)]
        if hasattr(interpreters, "exec"):
            threads = [threading.Thread(target=runs, args=(number,)) for number in numbers]
            for thread in threads: thread.start()
            in_main()
            for thread in threads: thread.join()
        else:  # threads in sub-interpreters may deadlock
            in_main()
            runs(numbers[0])
    """)
    done, report = run(bench, python, script)
    main, = [row for row in report["sampled_threads"] if row["main"]]
    assert main["samples"] <= 130 * main["wall_ns"] / 1e9 + 10
    assert function(report, "in_main")["main_ns"] > 0.5e9
    assert function(report, "in_sub")["samples"] > 10
    assert main["no_stack_ns"] < 0.2 * main["wall_ns"]
    if version_of(python) >= (3, 13):
        names = {row["name"]: row["total_ns"] for row in report["stacks"]}
        assert names["runs"] >= 0.8 * names["in_sub"]
    assert not any(row["name"].startswith("thread 0") for row in report["sampled_threads"])


def test_code_that_is_replaced_all_the_time(bench, python):  # noqa: F811
    """Function N is in file N, from line N: never in another one, although their addresses are used again."""
    script = write(bench, "replaced.py", """
        import time
        end, n = time.perf_counter() + 1.5, 0
        while time.perf_counter() < end:
            n = (n + 1) % 400
            text = "\\n" * n + f"def made_{n}():\\n    s = 0\\n    for i in range(2000): s += i\\nmade_{n}()\\n"
            exec(compile(text, f"made_{n}.py", "exec"), {})
    """)
    _, report = run(bench, python, script, options=["--stacks", "2000"])
    made = [row for row in report["lines"] if (row["function"] or "").startswith("made_")]
    assert len(made) > 10
    for row in made:
        number = int(row["function"][5:])
        assert row["file"].endswith(f"made_{number}.py") and number < row["line"] <= number + 4, row


def test_recursion_10000_deep_with_generators(bench, python):  # noqa: F811
    script = write(bench, "deep.py", """
        import sys, threading, time
        sys.setrecursionlimit(30000)
        threading.stack_size(512 << 20)
        def down(n):
            if n:
                return down(n - 1)
            return list(numbers(300))
        def numbers(n):
            if n:
                yield from numbers(n - 1)
            else:
                bottom()
                yield 1
        def bottom():
            end = time.perf_counter() + 1
            while time.perf_counter() < end:
                sum(range(500))
        thread = threading.Thread(target=down, args=(10000,))
        thread.start()
        thread.join()
        print("done")
    """)
    done, report = run(bench, python, script)
    assert "done" in done.out
    assert function(report, "bottom")["self_ns"] > 0.5e9 and function(report, "down")["total_ns"] > 0.5e9


EMBEDDED = """
#include <Python.h>
#include <unistd.h>
int main(void)
{
    sleep(1);
    for (int i = 0; i < 2; i++) {
        Py_Initialize();
        PyRun_SimpleString("import time\\ndef embedded():\\n    end = time.perf_counter() + 0.7\\n"
                           "    while time.perf_counter() < end: sum(range(500))\\nembedded()\\n");
        Py_FinalizeEx();
    }
    return 0;
}
"""


def test_embedded_interpreter(bench, python):  # noqa: F811
    """A C program that starts an interpreter late, and twice; linked with a libpython of its version."""
    about = subprocess.run([python, "-c", "import sysconfig as s; print(s.get_path('include')); print(s.get_config_var("
                                          "'LIBDIR')); print(s.get_config_var('LDVERSION')); print(s.get_config_var("
                                          "'LIBPL')); print(s.get_config_var('LIBS'), s.get_config_var('SYSLIBS')); "
                                          "import sys; print(sys.base_prefix)"], stdout=subprocess.PIPE, text=True)
    include, folder, version, static, libraries, prefix = about.stdout.splitlines()
    (bench.folder / "embed.c").write_text(EMBEDDED)
    shared = os.path.exists(f"{folder}/libpython{version}.so")
    archive = f"{static}/libpython{version}.a"
    if not shutil.which("cc") or not os.path.exists(f"{include}/Python.h") or not (shared or os.path.exists(archive)):
        pytest.skip("no compiler, or no headers and library of this Python")
    link = [archive, "-no-pie", "-rdynamic", *libraries.split(), "-lz", "-lexpat", "-lm"]
    if shared:
        link = [f"-L{folder}", f"-lpython{version}", f"-Wl,-rpath,{folder}"]
    program = bench.folder / "embed"
    built = subprocess.run(["cc", bench.folder / "embed.c", "-o", program, f"-I{include}", *link],
                           stderr=subprocess.PIPE, text=True)
    if built.returncode:
        pytest.skip(f"cannot be linked: {built.stderr[-300:]}")
    _, report = run(bench, "env", f"PYTHONHOME={prefix}", program)
    assert function(report, "embedded")["self_ns"] > 1e9


@pytest.mark.parametrize("way", ["-c", "-m", "zip", "stripped", "importtime"])
def test_ways_to_start_a_program(bench, way):
    script = write(bench, "busy.py", BUSY)
    base = PYTHONS.get("system", sys.executable)
    words = {"-c": [base, "-c", script.read_text()], "-m": [base, "-m", "busy"],
             "importtime": [base, "-X", "importtime", script]}.get(way)
    if way == "zip":
        (bench.folder / "app").mkdir()
        shutil.copy(script, bench.folder / "app" / "__main__.py")
        subprocess.run([base, "-m", "zipapp", bench.folder / "app", "-o", bench.folder / "app.pyz"], check=True)
        words = [base, bench.folder / "app.pyz"]
    if way == "stripped":
        if not shutil.which("strip"):
            pytest.skip("no strip")
        real = os.path.realpath(base)
        subprocess.run(["strip", "-s", "-o", bench.folder / "model-server", real], check=True)
        words = [bench.folder / "model-server", script]
    done = bench.tare("run", "-q", "-f", "-o", "t.tare", "--no-history", "--stacks", "100", "--", *words,
                      cwd=bench.folder)
    assert done.status == 0, done.err
    assert function(bench.json(bench.folder / "t.tare"), "busy")["self_ns"] > 0.4e9


@pytest.mark.parametrize("words", [["unshare", "-p", "-f", "--mount-proc"], ["unshare", "-U", "-r"], ["unshare", "-m"]])
def test_namespaces(bench, python, words):  # noqa: F811
    script = write(bench, "threads.py", """
        import threading, time
        def work():
            end = time.perf_counter() + 0.8
            while time.perf_counter() < end:
                sum(range(500))
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """)
    if not shutil.which("unshare") or subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("this needs the permission to make a namespace")
    _, report = run(bench, *words, python, script)
    threads = [row for row in report["sampled_threads"] if not row["main"]]
    assert len(threads) == 2 and all(row["tid"] > 0 and row["wall_ns"] > 0.3e9 for row in threads), threads
    assert function(report, "work")["samples"] > 40


def test_dump_of_a_stopped_process_and_of_one_that_has_ended(bench):
    process = bench.start(sys.executable, "-c", "import os, time\nchild = os.fork()\nif not child: os._exit(0)\n"
                                                "print(child, flush=True)\ndef waits(): time.sleep(1000)\nwaits()")
    try:
        zombie = int(process.stdout.readline())
        until(lambda: "waits" in bench.tare("attach", "--dump", process.pid).out, "it waits")
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: "stopped" in bench.tare("attach", "--dump", process.pid).out, "it is stopped")
        assert "waits (<string>" in bench.tare("attach", "--dump", process.pid).out
        os.kill(process.pid, signal.SIGCONT)
        until(lambda: "sleeping" in bench.tare("attach", "--dump", process.pid).out, "it goes on")
        done = bench.tare("attach", "--dump", zombie)
        assert done.status == 3 and "has ended" in done.err and not done.out
        done = bench.tare("top", "--count", 1, zombie)
        assert done.status == 3 and "has ended" in done.err and not done.out
    finally:
        process.kill()
        process.communicate()


def unsupported():
    found = {}
    for version, pattern in (("2.7", "2.7.*"), ("3.6", "3.6.*"), ("3.8", "3.8.*")):
        for place in pathlib.Path.home().glob(f".pyenv/versions/{pattern}/bin/python"):
            found[f"Python {version}"] = str(place)
    pypy = shutil.which("pypy3")
    return {**found, **({"PyPy": pypy} if pypy else {})}


@pytest.mark.parametrize("name", sorted(unsupported()))
def test_what_is_not_supported_is_said(bench, name):
    program = unsupported()[name]
    code = "import time\nprint('ready')\nend = time.time() + 0.5\nwhile time.time() < end: sum(range(99))"
    done, report = run(bench, program, "-u", "-c", code)
    assert done.out == "ready\n" and not report["sampled_threads"]
    note, = [note for note in report["notes"] if "not supported" in note]
    assert re.search(rf"stacks of {name}\b", note), note
    process = bench.start(program, "-u", "-c", code + "\ntime.sleep(60)")
    try:
        assert process.stdout.readline() == "ready\n"
        for words in (["attach", "--dump"], ["top", "--count", "1"]):
            done = bench.tare(*words, process.pid)
            assert done.status == 1 and "not supported" in done.err and not done.out, done
    finally:
        process.kill()
        process.communicate()


def test_workers_of_every_kind(bench, python):  # noqa: F811
    seconds = scaled(1, 0.7)
    script = write(bench, "workers.py", f"""
        import multiprocessing, time
        def work(number):
            end = time.perf_counter() + {seconds}
            while time.perf_counter() < end:
                sum(range(500))
        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    pool.map(work, range(2))
    """)
    _, report = run(bench, python, script)
    row = function(report, "work")  # a busy machine has fewer samples, and each stands for more time
    assert row["samples"] > 20 and row["total_ns"] > 0.6 * 6 * seconds * 1e9, row
    pids = {report["sampled_threads"][row["thread"]]["pid"] for row in report["stacks"] if row["name"] == "work"}
    assert len(pids) >= 3, report["sampled_threads"]  # a worker may do the work of both
    names = [row["name"] for row in report["stacks"] if row["what"] == "process"]
    assert re.fullmatch(re.escape(script.name) + r" \(\d+\)", names[0]) and not any("/" in name[:8] for name in names)


def test_top_fits_a_terminal(bench):
    """Of 80 columns and 24 rows, then of 19 and 6: the table replaces the one before, and no row is wider."""
    script = write(bench, "names.py", """
        import time
        class NameOfAClassThatIsLongerThanMostOthers:
            def name_of_a_method_that_does_not_fit_into_a_row_of_the_table(self):
                end = time.perf_counter() + 0.01
                while time.perf_counter() < end:
                    sum(range(500))
        def down(n):
            if n: down(n - 1)
            else: NameOfAClassThatIsLongerThanMostOthers().name_of_a_method_that_does_not_fit_into_a_row_of_the_table()
        for n in range(40):
            exec(f"def called_{n}(): " + (f"called_{n - 1}()" if n else "down(3)"))
        print("ready", flush=True)
        while True: called_39()
    """)
    process = bench.start(sys.executable, script)
    main, side = pty.openpty()
    try:
        assert process.stdout.readline() == "ready\n"
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        top = subprocess.Popen([TARE, "top", "--count", "4", str(process.pid)], stdin=side, stdout=side)
        os.close(side)
        shown = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:
                break
            if not part:
                break
            if b"function" in part:
                fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("HHHH", 6, 19, 0, 0))
            shown += part
        assert top.wait() == 0
    finally:
        os.close(main)
        process.kill()
        process.communicate()
    text = shown.decode()
    assert "u001b" not in text
    before, *screens = text.split("\x1b[H\x1b[J")
    assert before == "" and len(screens) == 4
    rows = screens.pop().rstrip("\r\n").split("\r\n")
    assert len(rows) <= 5 and all(len(row) <= 19 for row in rows), rows
    del screens[1:]
    for screen in screens:
        rows = screen.rstrip("\r\n").split("\r\n")
        assert rows[0].startswith(f"Process {process.pid}") and len(rows) <= 23
        assert all(len(row) <= 80 for row in rows), rows
        assert any("NameOfAClass" in row and "names.py" in row for row in rows), rows


def test_a_thread_that_the_first_one_only_waits_for_leads(bench, python):  # noqa: F811
    """The first samples of a run are taken before the process is in a list of processes. Its threads belong to one
    process all the same: this program computes, it does not just wait in Thread.join."""
    script = write(bench, "joined.py", """
        import threading, time
        def computes():
            end = time.thread_time() + 1.5
            while time.thread_time() < end:
                sum(range(500))
        thread = threading.Thread(target=computes)
        thread.start()
        thread.join()
    """)
    report = run(bench, python, script)[1]
    leading, = [row for row in report["sampled_threads"] if row["leading"]]
    assert not leading["main"], report["sampled_threads"]


def test_cpu_time_without_stack_samples_is_stated(bench):
    """Of programs that are not Python, or end before they are sampled."""
    count = "i=0; while [ $i -lt {} ]; do i=$((i + 1)); done"
    script = write(bench, "starts.py", f"""
        import subprocess, sys, time
        if sys.argv[1] == "alone":
            while time.process_time() < 1:
                sum(range(500))
        else:
            subprocess.run(["sh", "-c", "{count.format(2000000)}"])
    """)
    about = "stack samples have "
    report = run(bench, sys.executable, script, "sh")[1]
    note, = [note for note in report["notes"] if note.startswith(about)]
    assert "processes that ended too soon to be sampled or are not Python programs" in note and "--native" in note
    sampled = sum(row["cpu_ns"] for row in report["sampled_threads"])
    assert sampled < 0.5e9 * report["usage"]["cpu_seconds"]
    report = run(bench, sys.executable, script, "alone")[1]
    assert not [note for note in report["notes"] if note.startswith(about)]


RHYTHM = """
    import time
    def waits_first(until):
        time.sleep(max(0, until - time.monotonic()))
    def waits_then(until):
        time.sleep(max(0, until - time.monotonic()))
    def runs_first(until):
        while time.thread_time() < until: pass
    def runs_then(until):
        while time.thread_time() < until: pass
    def turns(clock, first, then):
        begin, took = clock(), 0
        for i in range(400):
            start = clock()
            first(begin + 0.01 * i + 0.005)
            took += clock() - start
            then(begin + 0.01 * i + 0.01)
        print("took", took / (clock() - begin))
    TURNS
"""


@pytest.mark.parametrize("options, column, clock, names", [
    ((), "total_ns", "time.monotonic", ("waits_first", "waits_then")),
    pytest.param(("--native",), "cpu_ns", "time.thread_time", ("runs_first", "runs_then"),
                 marks=test_native.pytestmark)])
def test_a_program_in_the_rhythm_of_the_samples(bench, options, column, clock, names):
    """About 5 ms here, 5 ms there, 100 times a second, as often as samples are taken."""
    script = write(bench, "rhythm.py", RHYTHM.replace("TURNS", f"turns({clock}, {names[0]}, {names[1]})"))
    done, report = run(bench, sys.executable, script, options=options)
    share = float(re.search(r"^took (.*)", done.out, re.MULTILINE).group(1))
    first, then = (sum(row[column] for row in report["lines"] if row["function"] == name) for name in names)
    assert first / (first + then) == pytest.approx(share, abs=0.12), (first, then)


def test_top_of_two_processes_has_the_states_of_the_first(bench):
    script = write(bench, "two.py", """
        import os, time
        child = os.fork()
        if child:
            print(child, flush=True)
        while True:
            sum(range(500))
    """)
    process = bench.start(sys.executable, script)
    child = int(process.stdout.readline())
    try:
        done = bench.tare("top", "--count", 2, process.pid)
        head = done.out.splitlines()
        assert re.fullmatch(rf"Process {process.pid} · MainThread (running|waiting for a CPU) .* %", head[0])
        assert "and 1 more Python process" in head
    finally:
        os.kill(child, signal.SIGKILL)
        process.kill()
        process.communicate()
