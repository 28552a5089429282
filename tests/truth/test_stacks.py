"""Sampled stacks against the program's own clocks: how long each function took, and what it did in that time."""
import pytest
import tare
from truth import Figure, absolute, bracketed, exact

OWN = "the program's own `perf_counter()` around the call, 0.25 s"
CPU = "the program's own `thread_time()` around the call, 0.25 s"
SLACK = absolute(0.25e9, "ns")
STATES = ("cpu", "runnable", "gil", "lock", "disk", "network", "child", "pipe", "gpu", "sleep", "other")
WAITS = {"sleep": "sleeps", "lock": "locks", "network": "receives", "child": "waits", "pipe": "reads",
         "other": "signals"}
TABLES = {"functions": "a function", "lines": "a line", "packages": "a package", "sampled_threads": "a thread",
          "stacks": "a node of the call tree", "span_lines": "a line inside spans of a name"}


def state_figure(table, state):
    path, of = f"run:{table}[].{state}_ns", TABLES[table]
    if state == "cpu":
        return Figure(path, f"CPU time of {of}", CPU, SLACK)
    if state == "gpu":
        return Figure(path, f"time of {of} waiting for a GPU", "0: the program uses none", exact)
    if state in WAITS:
        return Figure(path, f"time of {of} in the state `{state}`", OWN, SLACK)
    return Figure(path, f"time of {of} in the state `{state}`",
                  "at most the wall time without the CPU time, by the program's own clocks", bracketed(0))


FIGURES = [state_figure(table, state) for table in TABLES for state in STATES]
FIGURES += [
    Figure("run:functions[].self_ns", "time in which a function is the innermost", OWN, SLACK),
    Figure("run:functions[].total_ns", "time in which a function is on the stack", OWN, SLACK),
    Figure("run:functions[].main_ns", "of it: of the leading thread", OWN, SLACK),
    Figure("run:functions[].active_ns", "active part of it", OWN, SLACK),
    Figure("run:functions[].waiting_ns", "time not on a CPU", "both clocks of the program, 0.25 s", SLACK),
    Figure("run:functions[].self_share", "share of the active time of all threads", "its time by the program's own "
           "clock, of the elapsed time", absolute(0.05)),
    Figure("run:functions[].total_share", "share of the active time of all threads", "its time by the program's own "
           "clock, of the elapsed time", absolute(0.05)),
    Figure("run:functions[].samples", "samples", "at most twice the rate times the program's own time", bracketed(0)),
    Figure("run:lines[].self_ns", "time in which a line is the innermost", OWN, SLACK),
    Figure("run:lines[].own_ns", "time in which a line is the innermost of the program's own code", OWN, SLACK),
    Figure("run:lines[].total_ns", "time in which a line is on the stack", OWN, SLACK),
    Figure("run:lines[].main_ns", "of it: of the leading thread", OWN, SLACK),
    Figure("run:lines[].active_ns", "active part of it", OWN, SLACK),
    Figure("run:lines[].inner_ns", "time in the function that it calls most", OWN, SLACK),
    Figure("run:lines[].waiting_ns", "time not on a CPU", "both clocks of the program, 0.25 s", SLACK),
    Figure("run:lines[].share", "share of the active time of all threads", "its time by the program's own clock, of "
           "the elapsed time", absolute(0.05)),
    Figure("run:lines[].main_share", "share of the wall time of the leading thread", "its time by the program's own "
           "clock, of the elapsed time", absolute(0.05)),
    Figure("run:lines[].samples", "samples", "at most twice the rate times the program's own time", bracketed(0)),
    Figure("run:packages[].self_ns", "time in code of a package", OWN, absolute(0.4e9, "ns")),
    Figure("run:packages[].total_ns", "time with code of a package on the stack", OWN, absolute(0.4e9, "ns")),
    Figure("run:packages[].main_ns", "of it: of the leading thread", OWN, absolute(0.4e9, "ns")),
    Figure("run:packages[].active_ns", "active part of it", OWN, absolute(0.4e9, "ns")),
    Figure("run:packages[].waiting_ns", "time not on a CPU", "both clocks of the program, 0.4 s",
           absolute(0.4e9, "ns")),
    Figure("run:packages[].share", "share of the active time of all threads", "the program's own clock",
           absolute(0.08)),
    Figure("run:packages[].main_share", "share of the wall time of the leading thread", "the program's own clock",
           absolute(0.08)),
    Figure("run:packages[].samples", "samples", "at most twice the rate times the program's own time", bracketed(0)),
    Figure("run:sampled_threads[].wall_ns", "time that was sampled", "the program's own clock, 0.25 s", SLACK),
    Figure("run:sampled_threads[].active_ns", "active part of it", "the program's own clock, 0.25 s", SLACK),
    Figure("run:sampled_threads[].waiting_ns", "time not on a CPU", "both clocks of the program, 0.25 s", SLACK),
    Figure("run:sampled_threads[].from_ns", "begin of the time that was sampled", "not before the run", bracketed(0)),
    Figure("run:sampled_threads[].to_ns", "end of the time that was sampled", "not after the run", bracketed(0)),
    Figure("run:sampled_threads[].no_stack_ns", "time without a stack", "at most a twentieth of the program's own "
           "time", bracketed(0)),
    Figure("run:sampled_threads[].gc_ns", "time in garbage collections", "the program's own `gc.callbacks`", SLACK),
    Figure("run:sampled_threads[].samples", "samples", "at most twice the rate times the program's own time",
           bracketed(0)),
    Figure("run:stacks[].total_ns", "time in which a node is on the stack", OWN, SLACK),
    Figure("run:stacks[].total_cpu_ns", "of it: on a CPU", CPU, SLACK),
    Figure("run:stacks[].self_ns", "time in which a node is the innermost", OWN, SLACK),
    Figure("run:stacks[].active_ns", "active part of it", OWN, SLACK),
    Figure("run:span_lines[].time_ns", "time of a line inside spans of a name", OWN, SLACK),
    Figure("run:span_lines[].span_ns", "sampled time inside spans of a name", OWN, SLACK),
    Figure("run:span_lines[].waiting_ns", "time not on a CPU", "both clocks of the program, 0.25 s", SLACK),
    Figure("run:span_lines[].share", "share of a line in the time inside spans of a name", "both times by the "
           "program's own clock", absolute(0.1)),
    Figure("run:span_lines[].samples", "samples", "at most twice the rate times the program's own time", bracketed(0)),
    Figure("run:findings[].line_share", "share of a line in the time that a finding is about", "its time in the span "
           "by the program's own clock, of that of the span", absolute(0.1)),
    Figure("run:sampled_imports[].self_ns", "time of an import, without the modules that it imports", OWN, SLACK),
    Figure("run:sampled_imports[].total_ns", "time of an import", OWN, SLACK),
    Figure("run:sampled_imports[].samples", "samples", "at most twice the rate times the program's own time",
           bracketed(0)),
    Figure("run:stacks[].samples", "samples", "at most twice the rate times the program's own time", bracketed(0)),
]

PROGRAM = """
import gc, os, signal, socket, subprocess, threading, time

def spin():
    end = time.thread_time() + 0.8
    while time.thread_time() < end:
        pass
def sleeps(): time.sleep(0.8)
def locks(): lock.acquire(timeout=0.8)
def receives():
    try:
        here.recv(1)
    except socket.timeout:
        pass
def waits(): os.waitpid(child.pid, 0)
def reads(): os.read(pipe, 1)
def signals(): signal.sigtimedwait([signal.SIGUSR1], 0.8)

def timed(function):
    wall, cpu = time.perf_counter(), time.thread_time()
    function()
    print(function.__name__, time.perf_counter() - wall, time.thread_time() - cpu, flush=True)

begin, began_cpu = time.perf_counter(), time.thread_time()
gc.disable()
lock = threading.Lock()
lock.acquire()
server = socket.create_server(("127.0.0.1", 0))
here = socket.create_connection(server.getsockname())
here.settimeout(0.8)
timed(spin)
timed(sleeps)
timed(locks)
timed(receives)
child = subprocess.Popen(["sleep", "0.8"])
timed(waits)
pipe, other = os.pipe()
writer = subprocess.Popen(["sh", "-c", "sleep 0.8; echo >&%d" % other], pass_fds=[other])
timed(reads)
timed(signals)
print("whole", time.perf_counter() - begin, time.thread_time() - began_cpu, flush=True)
"""
HZ = 100


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    from conftest import Bench
    bench = Bench(tmp_path_factory.mktemp("stacks"))
    done = bench.measured(PROGRAM, run=["--stacks", str(HZ)])
    clocks = {}
    for line in done.out.splitlines():
        name, wall, cpu = line.split()
        clocks[name] = (1e9 * float(wall), 1e9 * float(cpu))
    return done.json, clocks


def check_states(truth, table, row, wall, cpu, waits_in):
    """`waits_in`: state to the time in it."""
    truth.check(f"run:{table}[].cpu_ns", row["cpu_ns"], cpu)
    truth.check(f"run:{table}[].gpu_ns", row["gpu_ns"], 0)
    for state in ("runnable", "gil", "disk"):
        truth.check(f"run:{table}[].{state}_ns", row[f"{state}_ns"], (0, max(wall - cpu, 0) + 0.25e9))
    for state in WAITS:
        truth.check(f"run:{table}[].{state}_ns", row[f"{state}_ns"], waits_in.get(state, 0))
    if "waiting_ns" in row:
        truth.check(f"run:{table}[].waiting_ns", row["waiting_ns"], wall - cpu)


def check_count(truth, table, row, wall):
    truth.check(f"run:{table}[].samples", row["samples"], (1, 2 * HZ * wall / 1e9 + 10))


def test_functions_lines_and_nodes(measured, truth):
    report, clocks = measured
    elapsed = clocks["whole"][0]
    for name in ("spin", *WAITS.values()):
        wall, cpu = clocks[name]
        states = {state: wall for state, function in WAITS.items() if function == name}
        function = next(row for row in report["functions"] if row["function"] == name)
        node = max((row for row in report["stacks"] if row["name"] == name), key=lambda row: row["total_ns"])
        for table, row in (("functions", function), ("stacks", node)):
            check_states(truth, table, row, wall, cpu, states)
            check_count(truth, table, row, wall)
            for column in ("self_ns", "total_ns", "active_ns"):
                truth.check(f"run:{table}[].{column}", row[column], wall)
        truth.check("run:stacks[].total_cpu_ns", node["total_cpu_ns"], cpu)
        truth.check("run:functions[].main_ns", function["main_ns"], wall)
        for column in ("self_share", "total_share"):
            truth.check(f"run:functions[].{column}", function[column], wall / elapsed)
        rows = [row for row in report["lines"] if row["function"] == name]
        line = {column: sum(row[column] or 0 for row in rows) for column in rows[0]
                if all(row[column] is None or isinstance(row[column], (int, float)) for row in rows)}
        check_states(truth, "lines", line, wall, cpu, states)
        check_count(truth, "lines", line, wall)
        for column in ("self_ns", "own_ns", "total_ns", "main_ns", "active_ns"):
            truth.check(f"run:lines[].{column}", line[column], wall)
        for column in ("share", "main_share"):
            truth.check(f"run:lines[].{column}", line[column], wall / elapsed)
    inner = next(row for row in report["lines"] if row["inner_ns"] and row["own"])
    truth.check("run:lines[].inner_ns", inner["inner_ns"], inner["own_ns"] - inner["self_ns"])


def test_threads_and_packages(measured, truth):
    report, clocks = measured
    wall, cpu = clocks["whole"]
    states = {state: clocks[name][0] for state, name in WAITS.items()}
    thread = next(row for row in report["sampled_threads"] if row["main"] and row["leading"])
    check_states(truth, "sampled_threads", thread, wall, cpu, states)
    check_count(truth, "sampled_threads", thread, wall)
    elapsed = report["run"]["elapsed_ns"]
    for column in ("wall_ns", "active_ns"):
        truth.check(f"run:sampled_threads[].{column}", thread[column], wall)
    truth.check("run:sampled_threads[].from_ns", thread["from_ns"], (0, elapsed))
    truth.check("run:sampled_threads[].to_ns", thread["to_ns"], (thread["from_ns"], elapsed))
    truth.check("run:sampled_threads[].no_stack_ns", thread["no_stack_ns"], (0, wall / 20))
    truth.check("run:sampled_threads[].gc_ns", thread["gc_ns"], 0)
    own = next(row for row in report["packages"] if row["kind"] == "own")
    done = sum(clocks[name][0] for name in ("spin", *WAITS.values()))
    busy = sum(clocks[name][1] for name in ("spin", *WAITS.values()))
    check_states(truth, "packages", own, done, busy, states)
    check_count(truth, "packages", own, wall)
    for column in ("self_ns", "total_ns", "main_ns", "active_ns"):
        truth.check(f"run:packages[].{column}", own[column], done)
    for column in ("share", "main_share"):
        truth.check(f"run:packages[].{column}", own[column], done / wall)


SPANS = """
import time, tare

def timed(span, function):
    wall, cpu = time.perf_counter(), time.thread_time()
    function()
    print(span, function.__name__, time.perf_counter() - wall, time.thread_time() - cpu, flush=True)

def spin():
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
def sleeps(): time.sleep(0.1)

for _ in range(4):
    with tare.span("first"):
        timed("first", spin)
        timed("first", sleeps)
    timed("none", sleeps)
    with tare.span("second"):
        with tare.span("inner"):
            timed("second", sleeps)
        timed("second", sleeps)
        timed("second", spin)
        timed("second", sleeps)
"""


@pytest.fixture(scope="module")
def spans(tmp_path_factory):
    from conftest import Bench
    bench = Bench(tmp_path_factory.mktemp("spans"))
    done = bench.measured(SPANS, run=["--stacks", str(HZ)])
    clocks = {}
    for line in done.out.splitlines():
        span, name, wall, cpu = line.split()
        sums = clocks.setdefault((span, name), [0, 0])
        sums[0] += 1e9 * float(wall)
        sums[1] += 1e9 * float(cpu)
    return bench, done, clocks


def sum_of(rows):
    """One row of the lines of a function."""
    return {column: sum(row[column] or 0 for row in rows) for column in rows[0]
            if all(row[column] is None or isinstance(row[column], (int, float)) for row in rows)}


def test_lines_within_spans(spans, truth):
    _, done, clocks = spans
    for span in ("first", "second"):
        whole = sum(wall for (of, _), (wall, _) in clocks.items() if of == span)
        for name in ("spin", "sleeps"):
            wall, cpu = clocks[span, name]
            rows = [row for row in done.json["span_lines"] if row["span"] == span and row["function"] == name]
            line = sum_of(rows)
            check_states(truth, "span_lines", line, wall, cpu, {"sleep": wall} if name == "sleeps" else {})
            check_count(truth, "span_lines", line, wall)
            truth.check("run:span_lines[].time_ns", line["time_ns"], wall)
            truth.check("run:span_lines[].span_ns", rows[0]["span_ns"], whole)
            truth.check("run:span_lines[].share", line["share"], wall / whole)


def test_tables_within_a_span(spans):
    """The same shares in every view of a span: tables, folded stacks."""
    bench, done, clocks = spans
    whole = sum(wall for (of, _), (wall, _) in clocks.items() if of == "second")
    only = bench.report(done.trace, "--within", "second")
    line = sum_of([row for row in only["lines"] if row["function"] == "sleeps"])
    assert abs(line["own_ns"] - clocks["second", "sleeps"][0]) < 0.25e9
    assert abs(only["sampled_threads"][0]["wall_ns"] - whole) < 0.25e9
    in_python = tare.report(done.trace, within="second", thread="MainThread")
    assert sum(row.own_ns for row in in_python.lines if row.function == "sleeps") == pytest.approx(line["own_ns"])
    with pytest.raises(ValueError, match="third"):
        tare.report(done.trace, within="third")
    folded = bench.folder / "out.folded"
    bench.call(bench.command, "report", "--within", "second", "--folded", folded, done.trace)
    rows = [line.rsplit(" ", 1) for line in folded.read_text().splitlines()]
    assert abs(1e3 * sum(int(count) for _, count in rows) - whole) < 0.25e9
    assert abs(1e3 * sum(int(count) for stack, count in rows if "sleeps" in stack) -
               clocks["second", "sleeps"][0]) < 0.25e9


def test_the_line_of_a_finding(spans, truth):
    _, done, clocks = spans
    found = [row for row in done.json["findings"] if row["line_share"] is not None and row["id"] == "operation"]
    assert found
    for row in found:
        span = row["title"].split()[0]
        assert row["function"] in ("spin", "sleeps") and span in ("first", "second", "inner")
        if span == "first":
            whole = clocks["first", "spin"][0] + clocks["first", "sleeps"][0]
            truth.check("run:findings[].line_share", row["line_share"], clocks["first", row["function"]][0] / whole)


OUTER = """
import time
begin = time.perf_counter()
time.sleep(0.5)
before = time.perf_counter()
import inner_module
between = time.perf_counter() - before
time.sleep(0.3)
whole = time.perf_counter() - begin
"""
INNER = "import time\ntime.sleep(0.8)\n"
IMPORTS = """
import sys
sys.path.insert(0, sys.argv[1])
import outer_module
print(outer_module.whole, outer_module.between, flush=True)
"""


def test_imports(tmp_path, truth):
    from conftest import Bench
    bench = Bench(tmp_path)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "outer_module.py").write_text(OUTER)
    (tmp_path / "modules" / "inner_module.py").write_text(INNER)
    done = bench.measured(IMPORTS, tmp_path / "modules", run=["--stacks", str(HZ)])
    whole, between = (1e9 * float(word) for word in done.out.split())
    rows = {row["module"]: row for row in done.json["sampled_imports"]}
    for name, own, total in (("outer_module", whole - between, whole), ("inner_module", between, between)):
        truth.check("run:sampled_imports[].self_ns", rows[name]["self_ns"], own)
        truth.check("run:sampled_imports[].total_ns", rows[name]["total_ns"], total)
        check_count(truth, "sampled_imports", rows[name], own)
