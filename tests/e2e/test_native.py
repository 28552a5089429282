"""Native stacks: of programs in C and C++, and below the lines of Python code that call native functions."""
import collections
import json
import math
import os
import shutil
import signal
import subprocess

import pytest
from conftest import SANITIZER, TARE, VICTIMS
from test_stacks import PYTHONS, python, write  # noqa: F401
from waiting import until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 and int(open("/proc/sys/kernel/perf_event_paranoid").read()) > 2, reason="no performance events")


def run(bench, *words, options=("--native",), status=0, **more):
    done = bench.tare("run", "-f", "-o", "t.tare", "--no-history", *options, "--", *words, **more)
    assert done.status == status, (done.status, done.err[-2000:])
    return done, bench.json(bench.folder / "t.tare")


def stacks_of(report):
    """All stacks as ([(function, kind, line)], self time), outermost first."""
    path = []
    for row in report["stacks"]:
        del path[row["depth"]:]
        path.append((row["name"], row["kind"], row["line"]))
        if row["self_ns"]:
            yield path[2:], row["self_ns"]


def natives_below(report, function):
    """Names of native functions by time in stacks where this Python function is the innermost one."""
    found = collections.Counter()
    for path, ns in stacks_of(report):
        last = max((i for i, frame in enumerate(path) if frame[1] == "python"), default=-1)
        if last >= 0 and path[last][0].split(".")[-1] == function:
            for name in {frame[0] for frame in path[last + 1:] if frame[1] == "native"}:
                found[name] += ns
            found["(all)"] += ns
    return found


def test_shares_of_a_c_program(bench):
    done, report = run(bench, VICTIMS / "shares", "4")
    truth = dict(zip(("half", "third", "sixth", "twentieth"), map(float, done.out.split()[:4])))
    counts = {row["function"]: row["samples"] for row in report["functions"] if row["kind"] == "native"}
    n = sum(counts.get(name, 0) for name in truth)
    assert n > 100
    for name, seconds in truth.items():
        share = seconds / sum(truth.values())
        assert abs(counts.get(name, 0) / n - share) < 4 * math.sqrt(share * (1 - share) / n) + 0.005, (counts, truth)
    for path, _ in stacks_of(report):
        names = [name for name, _, _ in path]
        if "half" in names:
            assert names[:names.index("half")][-2:] == ["main", "work"] or "work" in names
    assert "Functions by CPU time" in done.err
    thread = report["sampled_threads"][0]
    assert thread["wall_ns"] <= report["run"]["elapsed_ns"] * 1.001
    assert thread["no_stack_ns"] < 0.2 * thread["wall_ns"]


def test_functions_of_cpp_have_their_names(bench):
    _, report = run(bench, VICTIMS / "natives", "threads", "4")
    names = {row["function"] for row in report["functions"]}
    assert any(name.startswith("parts::Worker<unsigned long>::spin") for name in names), names
    assert any(name.startswith("in_thread(double)") for name in names), names


def test_threads_that_compete_for_a_cpu(bench):
    """A thread that has just got its CPU back has its next stack soon, to which its time belongs."""
    cpu = str(min(os.sched_getaffinity(0)))
    others = [subprocess.Popen(["taskset", "-c", cpu, VICTIMS / "natives", "threads", "1", "60"]) for _ in range(3)]
    try:
        _, report = run(bench, "taskset", "-c", cpu, VICTIMS / "natives", "threads", "1", "0.6",
                        options=("--native", "--stacks", "1000"))
    finally:
        for other in others:
            other.kill()
            other.wait()
    thread = max(report["sampled_threads"], key=lambda row: row["cpu_ns"])
    without = sum(row["cpu_ns"] for row in report["functions"] if row["function"] == "(no stack)")
    assert thread["samples"] > 50 and without < 0.04 * thread["cpu_ns"], (without, thread)


def test_200_threads(bench):
    done, report = run(bench, VICTIMS / "natives", "threads", "200", "0.1")
    assert len(report["sampled_threads"]) > 20
    assert sum(row["samples"] for row in report["functions"] if "spin" in row["function"]) > 20


def test_threads_that_end_at_once(bench):
    done, report = run(bench, VICTIMS / "natives", "storm", "400")
    assert report["sampled_threads"]


def test_forked_process(bench):
    _, report = run(bench, VICTIMS / "natives", "fork", "0.6")
    assert any("in_child" in row["function"] for row in report["functions"])
    assert len({row["pid"] for row in report["sampled_threads"]}) == 2


def test_exec_while_sampled(bench):
    _, report = run(bench, VICTIMS / "natives", "exec", "0.4", VICTIMS / "shares", "0.6")
    names = {row["function"] for row in report["functions"]}
    assert any("in_thread" in name for name in names) and "half" in names, names


def test_thread_that_waits(bench):
    _, report = run(bench, VICTIMS / "natives", "wait", "0.6")
    waiting = [path for path, ns in stacks_of(report) if any("waits(double)" in frame[0] for frame in path)]
    assert waiting, list(stacks_of(report))
    row = max(report["functions"], key=lambda row: row["self_ns"])
    assert row["state"] == "sleep" and "nanosleep" in row["function"], row


def test_generated_code(bench):
    done, report = run(bench, VICTIMS / "natives", "generated", "0.5")
    rows = {row["function"]: row for row in report["functions"]}
    assert rows["(code without a file)"]["samples"] > 5, rows


def test_program_that_is_deleted(bench):
    program = bench.folder / "gone"
    shutil.copy(VICTIMS / "natives", program)
    _, report = run(bench, program, "gone", "0.5")
    assert any(row["function"] == "gone" and row["kind"] == "native" for row in report["functions"])


def test_trace_has_the_names_itself(bench):
    program = bench.folder / "moved"
    shutil.copy(VICTIMS / "shares", program)
    run(bench, program, "0.5")
    program.unlink()
    names = {row["function"] for row in bench.json(bench.folder / "t.tare")["functions"]}
    assert {"half", "third"} <= names


def test_attach(bench):
    program = subprocess.Popen([VICTIMS / "natives", "spin", "60"], cwd=bench.folder)
    try:
        bench.tare("attach", "-q", "-f", "-o", "t.tare", "--no-history", "--native", "--duration", "2s",
                   str(program.pid))
        report = bench.json(bench.folder / "t.tare")
        assert any("in_thread" in row["function"] for row in report["functions"])
    finally:
        program.kill()
        program.wait()


def test_without_native_nothing_is_native(bench):
    _, report = run(bench, VICTIMS / "shares", "0.2", options=())
    assert report["functions"] == []


def test_native_needs_stacks(bench):
    done = bench.tare("run", "--native", "--no-stacks", "--", "true")
    assert done.status == 2 and "--native and --no-stacks are mutually exclusive" in done.err


PARTS = """
    import ctypes
    import time
    import zlib

    data = bytes(range(256)) * 4000

    def checksum():
        for _ in range(8):
            zlib.adler32(data)               # ADLER

    def compress():
        zlib.compress(data[:200000], 9)      # COMPRESS

    def key(x):
        return sum(range(x % 40))

    def sort():
        sorted(range(6000), key=key)         # SORT

    Compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    libc = ctypes.CDLL(None)

    def compare(a, b):
        return sum(range(30)) * 0 + a[0] - b[0]

    callback = Compare(compare)

    def quick():
        values = (ctypes.c_int * 700)(*[(i * 7919) % 701 for i in range(700)])
        libc.qsort(values, 700, 4, callback)  # QSORT

    def numbers():
        for i in range(300):
            yield zlib.crc32(data[:20000])

    def generator():
        for _ in numbers():
            pass

    end = time.process_time() + SECONDS
    while time.process_time() < end:
        checksum()
        compress()
        sort()
        quick()
        generator()
"""


def test_native_frames_are_below_their_line(bench, python):  # noqa: F811
    program = write(bench, "parts.py", PARTS.replace("SECONDS", "2.5"))
    _, report = run(bench, python, program)
    below = {name: natives_below(report, name) for name in ("checksum", "compress", "numbers", "sort", "key", "quick")}
    total = sum(found["(all)"] for found in below.values())
    # What zlib does is below the function that called it, and nowhere else.
    for function, own, others in (("checksum", "adler32", ("deflate", "crc32")), ("compress", "deflate", ("crc32",)),
                                  ("numbers", "crc32", ("deflate", "adler32"))):
        found = below[function]
        mine = sum(ns for name, ns in found.items() if own in name)
        wrong = sum(ns for name, ns in found.items() if any(other in name for other in others))
        assert found["(all)"] < 0.05 * total or mine > 0.2 * found["(all)"], (function, found)
        assert wrong <= 0.02 * total, (function, found)
    # The comparison is called by qsort, and that by the line with qsort.
    through = 0
    for path, ns in stacks_of(report):
        names = [name for name, _, _ in path]
        if "compare" in names and "quick" in names:
            between = names[names.index("quick") + 1:names.index("compare")]
            through += ns if any("qsort" in name for name in between) else 0
            assert not any("PyEval" in name or "PyObject_Call" in name for name in between), between
    assert through > 0
    # Python functions keep their callers.
    for path, _ in stacks_of(report):
        names = [name for name, kind, _ in path if kind == "python"]
        for name, caller in (("key", "sort"), ("compare", "quick")):
            if name in names:
                assert names[names.index(name) - 1] == caller, names


def test_numpy(bench, python):  # noqa: F811
    if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode:
        pytest.skip("no numpy")
    program = write(bench, "product.py", """
        import time
        import numpy
        a = numpy.random.rand(300, 300)

        def product():
            return numpy.dot(a, a)

        end = time.process_time() + 2
        while time.process_time() < end:
            product()
    """)
    _, report = run(bench, python, program, env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    assert any("gemm" in name for name in natives_below(report, "product"))


def test_multiprocessing(bench):
    program = write(bench, "workers.py", """
        import multiprocessing, zlib, sys, time

        def work(seconds):
            data, end = bytes(2000000), time.process_time() + seconds
            while time.process_time() < end:
                zlib.crc32(data)

        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    pool.map(work, [0.5, 0.5])
    """)
    _, report = run(bench, max(PYTHONS.values()), program)
    assert any("crc32" in name for name in natives_below(report, "work"))


def test_killed_recording_is_read(bench):
    trace = bench.folder / "t.tare"
    collector = bench.start(TARE, "run", "-q", "-f", "-o", trace, "--no-history", "--native", "--", VICTIMS / "shares",
                            "20")

    def has_native():
        done = bench.tare("report", "--json", trace) if trace.exists() else None
        return done and done.status == 0 and any(row["kind"] == "native" for row in json.loads(done.out)["functions"])

    until(has_native, "native frames in the trace")
    collector.send_signal(signal.SIGKILL)
    collector.wait()
    assert any(row["kind"] == "native" for row in bench.json(trace)["functions"])


@pytest.mark.skipif(SANITIZER != "none", reason="the library would need the sanitizer in the interpreter")
def test_without_permission(bench):
    """Threads that wait have native stacks, those that run have a note that says why not."""
    env = {"LD_PRELOAD": str(VICTIMS / "no_events.so")}
    done, report = run(bench, VICTIMS / "natives", "wait", "0.6", env=env)
    assert any("native stacks of running threads were not sampled" in note for note in report["notes"]), report["notes"]
    assert any("waits(double)" in row["function"] for row in report["functions"])
    program = write(bench, "busy.py", "import time\nwhile time.process_time() < 0.4: pass\n")
    _, report = run(bench, max(PYTHONS.values()), program, env=env)
    assert any(row["kind"] == "python" and row["self_ns"] for row in report["functions"])
    assert "native stacks (--native)" in bench.tare("doctor", env=env).out
