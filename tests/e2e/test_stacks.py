"""Sampled stacks of real Python programs: shares, lines, threads, states, processes, and what must not break."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest
from conftest import TARE, scaled
from waiting import until


def interpreters():
    """All that this machine has: shared and static builds. TARE_TEST_PYTHONS: those of this pattern instead."""
    found = {}
    if os.environ.get("TARE_TEST_PYTHONS"):
        return {pathlib.Path(place).name: place for place in glob.glob(os.environ["TARE_TEST_PYTHONS"])}
    for pattern in ("3.9.*", "3.10.*", "3.11.*", "3.12.*", "3.13.*", "3.14.*"):
        for place in sorted(pathlib.Path.home().glob(f".pyenv/versions/{pattern}/bin/python3")):
            found[place.parent.parent.name] = str(place)
    if os.path.exists("/usr/bin/python3"):
        found["system"] = "/usr/bin/python3"
    return found or {"this": sys.executable}


PYTHONS = interpreters()


@pytest.fixture(params=sorted(PYTHONS))
def python(request):
    return PYTHONS[request.param]


def write(bench, name, text):
    path = bench.folder / name
    path.write_text(textwrap.dedent(text))
    return path


def line_of(path, text):
    """Number of the line that has this text."""
    lines = path.read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def run(bench, *words, options=(), status=0, **more):
    done = bench.tare("run", "-q", "-f", "-o", "t.tare", "--no-history", *options, "--", *words, **more)
    assert done.status == status, (done.status, done.err[-2000:])
    return done, bench.json(bench.folder / "t.tare")


SHARES = """
    import time

    def spin(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    def half(): spin(0.02)       # HALF
    def third(): spin(0.012)
    def some(): spin(0.006)
    def little(): spin(0.002)

    taken = dict.fromkeys(("half", "third", "some", "little"), 0)
    for _ in range({rounds}):
        for name in taken:
            begin = time.perf_counter()
            globals()[name]()
            taken[name] += time.perf_counter() - begin
    for name, seconds in taken.items():
        print(name, seconds)
"""


def test_known_shares(bench, python):
    """50, 30, 15 and 5 % of the CPU time; the wall time by the program's own clock, since other programs run, too.
    Within the error of sampling (three standard deviations) and half a point."""
    script = write(bench, "shares.py", SHARES.format(rounds=scaled(100, 25)))
    done, report = run(bench, python, script, options=["--stacks", "500"])
    taken = {name: float(values[0]) for name, values in done.facts.items()}
    rows = {row["function"]: row for row in report["functions"] if row["file"] and row["file"].endswith("shares.py")}
    total = sum(rows[name]["total_ns"] for name in taken)
    samples = sum(row["samples"] for row in rows.values())
    for name, seconds in taken.items():
        share = seconds / sum(taken.values())
        error = 3 * (share * (1 - share) / samples) ** 0.5 + 0.005
        assert abs(rows[name]["total_ns"] / total - share) <= error, (name, rows[name]["total_ns"] / total, share)
    lines = {row["line"]: row for row in report["lines"] if row["file"] and row["file"].endswith("shares.py")}
    assert lines[line_of(script, "# HALF")]["function"] == "half"


WAITS = """
    import os, socket, subprocess, sys, threading, time

    def sleeps(): time.sleep(0.5)                          # SLEEP
    def locks(): lock.acquire(timeout=0.5)                 # LOCK
    def receives():
        try:
            here.recv(1)                                   # NETWORK
        except socket.timeout:
            pass
    def waits(): subprocess.run(["sleep", "0.5"])          # CHILD
    def reads(): os.read(pipe, 1)                          # PIPE

    lock = threading.Lock()
    lock.acquire()
    server = socket.create_server(("127.0.0.1", 0))
    here = socket.create_connection(server.getsockname())
    here.settimeout(0.5)
    pipe, other = os.pipe()
    threading.Timer(2.7, os.write, (other, b"x")).start()
    sleeps()
    locks()
    receives()
    waits()
    reads()
"""


def test_what_the_main_thread_waits_for(bench, python):
    script = write(bench, "waits.py", WAITS)
    _, report = run(bench, python, script)
    lines = {row["line"]: row for row in report["lines"] if row["file"] and row["file"].endswith("waits.py")}
    for word, column in (("SLEEP", "sleep_ns"), ("LOCK", "lock_ns"), ("NETWORK", "network_ns"), ("CHILD", None),
                         ("PIPE", "pipe_ns")):
        row = lines[line_of(script, "# " + word)]
        if column:  # a child is waited for in poll or read, in some versions
            assert row[column] >= 0.8 * row["own_ns"] > 0.3e9, (word, row)
    main = next(row for row in report["sampled_threads"] if row["main"])
    assert main["cpu_ns"] < 0.5 * main["wall_ns"]


def test_threads_of_one_interpreter_wait_for_the_gil(bench, python):
    script = write(bench, "gil.py", """
        import threading, time
        def work():
            end = time.perf_counter() + 1
            while time.perf_counter() < end:
                pass
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """)
    _, report = run(bench, python, script)
    work = next(row for row in report["functions"] if row["function"].endswith("work"))
    assert work["gil_ns"] > work["cpu_ns"], work


def test_processes_by_fork_spawn_and_exec(bench, python):
    script = write(bench, "family.py", """
        import multiprocessing, os, sys, time
        def busy(seconds):
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                pass
        def in_fork(): busy(0.7)
        def in_spawn(): busy(0.7)
        if __name__ == "__main__":
            for method, work in (("fork", in_fork), ("spawn", in_spawn)):
                child = multiprocessing.get_context(method).Process(target=work)
                child.start()
                child.join()
            os.execv(sys.executable, [sys.executable, "-c", "import time\\ndef after_exec():\\n    end = "
                     "time.perf_counter() + 0.7\\n    while time.perf_counter() < end: pass\\nafter_exec()"])
    """)
    _, report = run(bench, python, script)
    functions = {row["function"] for row in report["functions"]}
    assert {"in_fork", "in_spawn", "after_exec"} <= functions
    assert len({row["pid"] for row in report["sampled_threads"]}) >= 3


def test_recursion_generators_and_coroutines(bench, python):
    script = write(bench, "deep.py", """
        import asyncio, sys, time
        sys.setrecursionlimit(20000)
        def down(n):
            if n:
                return down(n - 1)
            bottom()
        def bottom():
            end = time.perf_counter() + 0.5
            while time.perf_counter() < end:
                pass
        def numbers():
            for i in range(3):
                in_generator()
                yield i
        def in_generator():
            end = time.perf_counter() + 0.2
            while time.perf_counter() < end:
                pass
        async def coroutine():
            await asyncio.sleep(0)
            in_coroutine()
        def in_coroutine():
            end = time.perf_counter() + 0.5
            while time.perf_counter() < end:
                pass
        down(5000)
        list(numbers())
        asyncio.run(coroutine())
    """)
    _, report = run(bench, python, script)
    rows = {row["function"]: row for row in report["functions"]}
    assert rows["down"]["total_ns"] == pytest.approx(rows["bottom"]["total_ns"], rel=0.2)
    assert rows["numbers"]["total_ns"] >= rows["in_generator"]["self_ns"] * 0.9 > 0.3e9
    assert rows["coroutine"]["total_ns"] >= rows["in_coroutine"]["self_ns"] * 0.9 > 0.2e9


def test_no_stacks(bench):
    for options in (["--no-stacks"], ["--no-sampling"]):
        _, report = run(bench, sys.executable, "-c", "import time; time.sleep(0.3)", options=options)
        assert not report["sampled_threads"] and not report["functions"]


@pytest.mark.parametrize("rate", ["0", "10001", "x", "", "nan", "-5"])
def test_a_rate_that_makes_no_sense_is_refused(bench, rate):
    done = bench.tare("run", "--stacks", rate, "--", "true")
    assert done.status == 2 and "--stacks" in done.err


def test_a_program_that_is_not_python_has_no_stacks_and_no_complaint(bench):
    done, report = run(bench, "sleep", "0.3")
    assert not report["sampled_threads"] and "stack" not in done.err


def test_dump_of_a_program_that_hangs(bench, python):
    script = write(bench, "hangs.py", """
        import threading, time
        def stuck(): lock.acquire()      # STUCK
        def other(): time.sleep(1000)    # OTHER
        lock = threading.Lock()
        lock.acquire()
        threading.Thread(target=other, daemon=True).start()
        print("ready", flush=True)
        stuck()
    """)
    process = bench.start(python, script)
    try:
        assert process.stdout.readline() == "ready\n"
        seen = []

        def hangs():
            seen[:] = [bench.tare("attach", "--dump", process.pid)]
            return seen[0].status == 0 and "waiting for a lock" in seen[0].out and "sleeping" in seen[0].out
        until(hangs, "it hangs")
        out = seen[0].out
        assert f"stuck ({script}:{line_of(script, '# STUCK')})" in out
        assert f"other ({script}:{line_of(script, '# OTHER')})" in out
        assert "MainThread" in out
    finally:
        process.kill()
        process.communicate()


def test_dump_of_what_cannot_be_dumped(bench):
    assert bench.tare("attach", "--dump", 4194304).status == 3
    sleep = bench.start("sleep", "60")
    try:
        done = bench.tare("attach", "--dump", sleep.pid)
        assert done.status == 3 and "Python" in done.err and not done.out
        done = bench.tare("top", sleep.pid)
        assert done.status == 3 and "not a Python process" in done.err and not done.out
    finally:
        sleep.kill()
        sleep.communicate()


def test_attach_and_top(bench, python):
    script = write(bench, "busy.py", """
        def busy():
            while True:
                pass
        print("ready", flush=True)
        busy()
    """)
    process = bench.start(python, script)
    try:
        assert process.stdout.readline() == "ready\n"
        done = bench.tare("attach", "-q", "-f", "-o", "t.tare", "--no-history", "--duration", "1s", process.pid)
        assert done.status == 0
        rows = bench.json(bench.folder / "t.tare")["functions"]
        assert rows[0]["function"] == "busy" and rows[0]["self_share"] > 0.9
        done = bench.tare("top", "--count", 2, process.pid)
        assert done.status == 0 and re.search(r"busy \(busy\.py:\d+\)", done.out), done.out
    finally:
        process.kill()
        process.communicate()
    assert bench.tare("top", process.pid).status == 3


def test_the_program_ends_as_it_would_without(bench, python):
    """Output, status and death by signal, at a high rate."""
    code = "import sys; print(sum(range(3000000))); sys.exit(7)"
    done, _ = run(bench, python, "-c", code, options=["--stacks", "2000"], status=7)
    assert done.out == "4499998500000\n"
    done, _ = run(bench, python, "-c", "import os; os.kill(os.getpid(), 9)", status=137)


def test_no_permission_is_said_once(bench):
    """A program of another user, which this one may see but not read."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    bench.folder.chmod(0o777)
    bench.temporary.chmod(0o777)
    for parent in bench.folder.parents:
        if parent != pathlib.Path("/tmp") and parent.stat().st_uid == 0 and "pytest" in parent.name:
            parent.chmod(parent.stat().st_mode | 0o011)
    victim = subprocess.Popen(["/usr/bin/python3", "-c", "import time; print(1, flush=True); time.sleep(60)"],
                              stdout=subprocess.PIPE)
    try:
        victim.stdout.readline()
        done = bench.call("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", TARE, "attach", "--dump",
                          victim.pid)
        assert done.status == 1 and "permission" in done.err.lower(), done.err
        done = bench.call("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", TARE, "attach", "-q",
                          "--no-history", "-o", bench.folder / "t.tare", "--duration", "1s", victim.pid)
        assert done.err.count("permission denied") == 1, done.err
        assert done.err.startswith("tare: warning: cannot read the memory of process"), done.err
    finally:
        victim.kill()
        victim.communicate()


def test_threads_and_children_that_come_and_go(bench):
    script = write(bench, "storm.py", """
        import subprocess, sys, threading, time
        def short(): sum(range(2000))
        end = time.perf_counter() + 2
        while time.perf_counter() < end:
            threads = [threading.Thread(target=short) for _ in range(20)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            subprocess.run([sys.executable, "-S", "-c", "pass"])
        print("done")
    """)
    done, report = run(bench, sys.executable, script, options=["--stacks", "1000"])
    assert done.out == "done\n" and report["functions"]


def test_many_threads(bench):
    script = write(bench, "many.py", """
        import threading, time
        stop = threading.Event()
        def idle(): stop.wait()
        threads = [threading.Thread(target=idle) for _ in range(1000)]
        for thread in threads: thread.start()
        time.sleep(2)
        stop.set()
        for thread in threads: thread.join()
        print("done")
    """)
    done, report = run(bench, sys.executable, script)
    assert done.out == "done\n"
    assert len(report["sampled_threads"]) > 900
