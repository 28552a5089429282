# test_lines: hits, time and shares of lines: loops, recursion, generators, coroutines, threads, exceptions, forks.
# Times are held against what must have passed (sleeps), never against how fast the machine is.
import asyncio
import functools
import gc
import inspect
import io
import json
import os
import re
import sys
import threading
import time
import types

import pytest

import tare
from tare.lines import LineProfile

MONITORED = sys.version_info >= (3, 12)


def loop(n):
    total = 0
    for i in range(n):
        total += i
    return total


def sleepy():
    time.sleep(0.03)
    return 1


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def numbers(n):
    for i in range(n):
        got = yield i
        del got


async def naps(n):
    for _ in range(n):
        await asyncio.sleep(0.02)
    return n


def raises():
    raise KeyError("x")


def catches():
    try:
        raises()
    except KeyError:
        return 1


class Net:
    def forward(self, x):
        return self.scale(x)

    @staticmethod
    def scale(x):
        return 2 * x

    @classmethod
    def make(cls):
        return cls()

    @property
    def size(self):
        return 7


def start_of(function):
    return inspect.unwrap(function).__code__.co_firstlineno


def hits_of(profile, function):
    """{line within the function, 0 for its first: hits}"""
    first = start_of(function)
    name = function.__qualname__
    return {line.line_number - first: line.hits for line in profile.stats()
            if line.function in (name, function.__name__) and line.first_line == first}


def time_of(profile, function):
    return sum(line.time_s for line in profile.stats() if line.first_line == start_of(function))


# ---- what is counted -----------------------------------------------------------------------------------------

def test_hits_shares_and_source():
    with LineProfile(loop) as profile:
        loop(100)
        loop(50)
    assert hits_of(profile, loop) == {1: 2, 2: 152, 3: 150, 4: 2}
    lines = profile.stats()
    assert sum(line.time_percent for line in lines) == pytest.approx(100)
    assert [line.source for line in lines][2] == "        total += i"
    assert all(line.file == __file__ and line.function == "loop" for line in lines)
    assert all(line.time_s > 0 for line in lines)
    assert 0 < sum(line.time_s for line in lines) <= profile.elapsed_s


def test_time_is_inclusive_of_calls():
    def caller():
        sleepy()
        return 2
    with LineProfile(caller, sleepy) as profile:
        caller()
    assert time_of(profile, sleepy) >= 0.03
    assert [line.time_s >= 0.03 for line in profile.stats() if line.function.endswith("caller")] == [True, False]


def test_only_what_was_chosen():
    with LineProfile(loop) as profile:
        sleepy()
        loop(1)
    assert {line.function for line in profile.stats()} == {"loop"}


def test_nothing_is_counted_outside_the_profile():
    profile = LineProfile(loop)
    loop(5)
    with profile:
        loop(1)
    loop(7)
    assert hits_of(profile, loop) == {1: 1, 2: 2, 3: 1, 4: 1}


def test_a_profile_goes_on_where_it_stopped_and_clears():
    profile = LineProfile(loop)
    for _ in range(3):
        with profile:
            loop(1)
    assert hits_of(profile, loop)[1] == 3
    profile.clear()
    assert profile.stats() == []
    with profile:
        loop(1)
    assert hits_of(profile, loop)[1] == 1


def test_starts_nest():
    profile = LineProfile(loop)
    with profile:
        with profile:
            loop(1)
        assert profile.running
        loop(1)
    assert not profile.running
    assert hits_of(profile, loop)[1] == 2


def test_profiles_overlap():
    first, second = LineProfile(loop), LineProfile(loop, fib)
    with first:
        loop(1)
        with second:
            loop(1)
            fib(1)
        loop(1)
    assert hits_of(first, loop)[1] == 3
    assert hits_of(second, loop)[1] == 1
    assert hits_of(second, fib) == {1: 1, 2: 1}


def test_read_while_running():
    with LineProfile(sleepy) as profile:
        sleepy()
        assert hits_of(profile, sleepy) == {1: 1, 2: 1}
        sleepy()
    assert hits_of(profile, sleepy) == {1: 2, 2: 2}


def test_begun_in_the_middle_of_the_function():
    profile = LineProfile()

    def middle():
        profile.start()
        time.sleep(0.02)
        profile.stop()
        time.sleep(0.02)
    profile.add(middle)
    middle()
    counted = hits_of(profile, middle)
    assert counted == {2: 1, 3: 1}
    assert 0.02 <= time_of(profile, middle) < profile.elapsed_s


# ---- ways to run ---------------------------------------------------------------------------------------------

def test_recursion_counts_time_once():
    with LineProfile(fib) as profile:
        fib(12)
    calls = 465
    assert hits_of(profile, fib) == {1: calls, 2: 233, 3: 232}
    assert time_of(profile, fib) <= profile.elapsed_s


def test_recursion_goes_on_in_the_outer_call():
    def twice(depth):
        if depth:
            twice(depth - 1); time.sleep(0.02)  # noqa: E702: after the inner call, still on its line
    with LineProfile(twice) as profile:
        twice(2)
    outer = [line for line in profile.stats() if "sleep" in line.source][0]
    assert 0.04 <= outer.time_s <= profile.elapsed_s


def test_a_generator_does_not_have_its_consumers_time():
    with LineProfile(numbers) as profile:
        for _ in numbers(3):
            time.sleep(0.02)
    assert hits_of(profile, numbers) == {1: 4, 2: 3, 3: 3}
    assert time_of(profile, numbers) + 0.06 <= profile.elapsed_s


def test_a_generator_has_the_rest_of_its_line():
    def rests():
        pass
        (yield 1, time.sleep(0.02))
        [(yield 2), time.sleep(0.03)]
    with LineProfile(rests) as profile:
        list(rests())
    last = [line for line in profile.stats() if "0.03" in line.source][0]
    assert last.time_s >= 0.03


def test_a_generator_that_is_thrown_into_and_closed():
    def patient():
        try:
            yield 1
        except ValueError:
            time.sleep(0.02)
        yield 2
    with LineProfile(patient, loop) as profile:
        one = patient()
        next(one)
        assert one.throw(ValueError()) == 2
        one.close()
        other = numbers(2)
        next(other)
        with pytest.raises(ValueError):
            other.throw(ValueError())
        loop(1)
    counted = hits_of(profile, patient)
    assert (counted[2], counted[3], counted[4], counted[5]) == (1, 1, 1, 1)
    assert time_of(profile, patient) >= 0.02
    assert hits_of(profile, loop) == {1: 1, 2: 2, 3: 1, 4: 1}


def test_coroutines_do_not_have_the_time_they_wait():
    async def both():
        return await asyncio.gather(naps(2), naps(2))
    with LineProfile(naps) as profile:
        assert asyncio.run(both()) == [2, 2]
    assert hits_of(profile, naps) == {1: 6, 2: 4, 3: 2}
    with LineProfile(naps) as profile:  # one alone: of two, one may be held up on a line while the other waits
        assert asyncio.run(naps(2)) == 2
    assert time_of(profile, naps) + 0.039 <= profile.elapsed_s


def test_async_generators():
    async def ticks(n):
        for i in range(n):
            yield i

    async def main():
        return [i async for i in ticks(3)]
    with LineProfile(ticks) as profile:
        assert asyncio.run(main()) == [0, 1, 2]
    assert hits_of(profile, ticks) == {1: 4, 2: 3}


def test_threads_are_added_up():
    ready, go, seen = threading.Event(), threading.Event(), []

    def before():
        ready.set()
        go.wait()
        seen.append(loop(10))
    old = threading.Thread(target=before)
    old.start()
    ready.wait()
    with LineProfile(loop) as profile:
        new = [threading.Thread(target=loop, args=(10,)) for _ in range(4)]
        for one in new:
            one.start()
        go.set()
        for one in (*new, old):
            one.join()
    assert seen == [45]
    assert hits_of(profile, loop) == {1: 5, 2: 55, 3: 50, 4: 5}


def test_stopped_by_another_thread_while_a_line_runs():
    inside, go = threading.Event(), threading.Event()

    def waits():
        inside.set()
        go.wait()
        return 1
    profile = LineProfile(waits).start()
    thread = threading.Thread(target=waits)
    thread.start()
    inside.wait()
    profile.stop()
    counted = hits_of(profile, waits)
    go.set()
    thread.join()
    assert hits_of(profile, waits) == counted
    assert 3 not in counted


def test_exceptions_end_functions():
    with LineProfile(raises, catches, loop) as profile:
        for _ in range(5):
            catches()
        with pytest.raises(KeyError):
            raises()
        loop(1)
    assert hits_of(profile, raises) == {1: 6}
    assert hits_of(profile, catches) == {1: 5, 2: 5, 3: 5, 4: 5}
    assert hits_of(profile, loop) == {1: 1, 2: 2, 3: 1, 4: 1}
    assert time_of(profile, raises) <= profile.elapsed_s


def test_an_exception_passes_through_the_block():
    profile = LineProfile(raises)
    with pytest.raises(KeyError):
        with profile:
            raises()
    assert not profile.running
    assert hits_of(profile, raises) == {1: 1}


def test_a_forked_child_counts_its_own():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with LineProfile(loop) as profile:
            loop(1)
            reading, writing = os.pipe()
            pid = os.fork()
            if pid == 0:
                profile.clear()
                loop(3)
                os.write(writing, json.dumps(hits_of(profile, loop)).encode())
                os._exit(0)
            os.waitpid(pid, 0)
            loop(1)
        os.close(writing)
        with os.fdopen(reading) as told:
            assert json.load(told) == {"1": 1, "2": 4, "3": 3, "4": 1}
        assert hits_of(profile, loop) == {1: 2, 2: 4, 3: 2, 4: 2}
    finally:
        stop.set()
        thread.join()


# ---- what may be given ---------------------------------------------------------------------------------------

def test_methods_classes_and_modules():
    net = Net()
    with LineProfile(Net) as profile:
        net.forward(1)
        Net.make()
        assert net.size == 7
    assert {line.function for line in profile.stats()} == {"Net.forward", "Net.scale", "Net.make", "Net.size"}
    with LineProfile(net.forward, Net.make) as profile:
        net.forward(1)
        Net.make()
    assert {line.function for line in profile.stats()} == {"Net.forward", "Net.make"}
    module = types.ModuleType("made")
    exec("def one():\n    return 1\nclass Two:\n    def three(self):\n        return 3\n", module.__dict__)
    with LineProfile(module) as profile:
        module.one()
        module.Two().three()
    assert {line.function for line in profile.stats()} == {"one", "Two.three"}


def test_what_decorators_wrap():
    @functools.lru_cache(None)
    def cached(x):
        return x + 1
    with LineProfile(cached, functools.partial(loop, 3)) as profile:
        cached(1)
        cached(1)
        loop(1)
    assert hits_of(profile, cached) == {2: 1}
    assert hits_of(profile, loop)[1] == 1


def test_names():
    with LineProfile("fib", "Net.for*", "nowhere:loop") as profile:
        fib(3)
        Net().forward(1)
        loop(3)
    assert {line.function for line in profile.stats()} == {"fib", "Net.forward"}
    with LineProfile(f"{__name__}:loop", f"{__name__}.Net.scale", loop) as profile:
        Net().forward(1)
        loop(3)
        fib(2)
    assert {line.function for line in profile.stats()} == {"loop", "Net.scale"}
    assert hits_of(profile, loop)[1] == 1


def test_a_name_waits_for_its_module(tmp_path, monkeypatch):
    (tmp_path / "tare_later.py").write_text("def late(n):\n    for _ in range(n):\n        pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with LineProfile("tare_later:late") as profile:
        import tare_later
        tare_later.late(4)
    sys.modules.pop("tare_later")
    assert {line.line_number: line.hits for line in profile.stats()} == {2: 5, 3: 4}


def test_the_same_name_given_twice():
    for _ in range(3):  # what was passed over once must be seen again
        with LineProfile("nobody"):
            loop(1)
        with LineProfile("loop") as profile:
            loop(1)
        assert hits_of(profile, loop)[1] == 1
        with LineProfile(loop) as profile:
            loop(1)
        assert hits_of(profile, loop)[1] == 1


def test_around_a_block():
    def helper():
        time.sleep(0.02)
    with LineProfile.around() as profile:
        helper()
        json.dumps([1])
        sleepy()
    names = {line.function.rpartition(".")[2] for line in profile.stats()}
    assert names == {"helper", "sleepy", "test_around_a_block"}
    slow = {line.source.strip() for line in profile.stats() if line.time_percent > 30}
    assert {"time.sleep(0.02)", "time.sleep(0.03)", "helper()", "sleepy()"} == slow
    assert all(line.time_percent <= 100 for line in profile.stats())


def test_decorator():
    @tare.profile_lines
    def counted(n):
        for _ in range(n):
            pass
        return n

    @tare.profile_lines
    async def waits():
        await asyncio.sleep(0)
        return 5

    @tare.profile_lines
    def yields():
        yield 1
    assert counted(3) == 3 and counted(n=1) == 1
    assert hits_of(counted.line_profile, counted) == {2: 6, 3: 4, 4: 2}
    assert asyncio.run(waits()) == 5
    assert hits_of(waits.line_profile, waits) == {2: 1, 3: 1}
    assert list(yields()) == [1]
    assert hits_of(yields.line_profile, yields) == {2: 1}
    assert counted.__name__ == "counted"
    if MONITORED:
        for one in (counted, waits, yields):
            one.line_profile.stop()
    else:
        assert sys.gettrace() is None


# ---- showing -------------------------------------------------------------------------------------------------

def test_print():
    def shown(x):
        if x:
            return "<b>"
        return 0
    with LineProfile(shown) as profile:
        shown(1)
    out = io.StringIO()
    profile.print(file=out)
    text = out.getvalue()
    assert re.search(r"shown  .*test_lines\.py:\d+  \d", text)
    assert re.search(r"^ +\d+ +1 +\S+ .s +\S+ .s +\S+ %  +if x:$", text, re.M)
    assert re.search(r"^ +\d+ +return 0$", text, re.M), "a line that did not run is shown without numbers"
    page = profile._repr_html_()
    assert "&lt;b&gt;" in page and "<b>shown" not in page.replace("<b>" + profile.stats()[0].function, "")
    assert "LineProfile of 1 functions" in repr(profile)
    assert "'if x:'" in repr(profile.stats()[0])


def test_print_of_nothing(capsys):
    LineProfile(loop).print()
    assert capsys.readouterr().out == "none of the chosen functions ran\n"
    assert "none" in LineProfile(loop)._repr_html_()


def test_to_pandas():
    with LineProfile(loop) as profile:
        loop(2)
    try:
        import pandas  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match="pip install pandas"):
            profile.to_pandas()
    else:
        assert list(profile.to_pandas().hits) == [1, 3, 2, 1]


def test_to_pandas_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        LineProfile(loop).to_pandas()


def test_as_dict_is_json():
    with LineProfile(loop) as profile:
        loop(1)
    rows = json.loads(json.dumps([line.as_dict() for line in profile.stats()]))
    assert [row["hits"] for row in rows] == [1, 2, 1, 1]
    assert set(rows[0]) == {"file", "function", "line_number", "hits", "time_s", "time_percent", "source"}


# ---- bad input -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("given, sentence", [(3, "not of int"), (len, "len has no Python code"), (None, "NoneType")])
def test_not_a_function(given, sentence):
    with pytest.raises(TypeError, match=sentence):
        LineProfile(given)
    with pytest.raises(TypeError):
        tare.profile_lines(given)


@pytest.mark.parametrize("name", ["", " ", "module:", ":function"])
def test_a_name_without_a_function(name):
    with pytest.raises(ValueError, match="names no function"):
        LineProfile(name)


def test_stop_without_start():
    profile = LineProfile(loop)
    with pytest.raises(RuntimeError, match="does not run"):
        profile.stop()
    with profile:
        loop(1)
    assert hits_of(profile, loop)[1] == 1


def test_wrong_words():
    with pytest.raises(ValueError, match="100 %"):
        LineProfile(loop, of="day")
    with pytest.raises(TypeError):
        tare._core.LineCounts(3)
    with pytest.raises(TypeError, match="code object"):
        tare._core.LineCounts().add(loop)


def test_a_chooser_that_raises_does_not_affect_the_program(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: told.append(error.exc_type))
    profile = LineProfile(chooser=lambda code, names: 1 / 0)
    with profile:
        assert loop(3) == 3
    assert ZeroDivisionError in told
    assert profile.stats() == []


# ---- others' tracers -----------------------------------------------------------------------------------------

def test_a_tracer_that_is_there_goes_on():
    seen = []

    def tracer(frame, event, argument):
        if frame.f_code is loop.__code__:
            seen.append(event)
        return tracer
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with LineProfile(loop) as profile:
            loop(1)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert hits_of(profile, loop) == {1: 1, 2: 2, 3: 1, 4: 1}
    assert seen == ["call"] + ["line"] * 5 + ["return"]


def test_new_threads_keep_the_tracer_of_threading():
    seen = []

    def tracer(frame, event, argument):
        if frame.f_code is loop.__code__:
            seen.append(event)
        return tracer
    threading.settrace(tracer)
    try:
        with LineProfile(loop) as profile:
            thread = threading.Thread(target=loop, args=(1,))
            thread.start()
            thread.join()
        assert threading._trace_hook is tracer
    finally:
        threading.settrace(None)
    assert hits_of(profile, loop) == {1: 1, 2: 2, 3: 1, 4: 1}
    assert "line" in seen


@pytest.mark.skipif(not MONITORED, reason="sys.monitoring came with 3.12")
def test_all_tools_of_monitoring_taken():
    taken = [tool for tool in range(6) if sys.monitoring.get_tool(tool) is None]
    for tool in taken:
        sys.monitoring.use_tool_id(tool, "test")
    profile = LineProfile(loop)
    try:
        with pytest.raises(RuntimeError, match="other tools"):
            profile.start()
    finally:
        for tool in taken:
            sys.monitoring.free_tool_id(tool)
    with profile:
        loop(1)
    assert hits_of(profile, loop)[1] == 1
    assert all(sys.monitoring.get_tool(tool) is None for tool in taken)


# ---- nothing is left -----------------------------------------------------------------------------------------

def test_references_are_given_back():
    loop(1)
    gc.collect()
    before = sys.getrefcount(loop.__code__)
    for _ in range(200):
        with LineProfile(loop) as profile:
            loop(1)
        profile.stats()
        with LineProfile("loop") as named:
            loop(1)
        named.stats()
    del profile, named
    gc.collect()
    after = sys.getrefcount(loop.__code__)  # not in the assertion, which keeps what it asks
    assert after == before


def test_profiles_leave_memory_flat():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def many():
        for _ in range(3000):
            with LineProfile.around():
                loop(2)
    many()
    gc.collect()
    before = resident()
    many()
    gc.collect()
    assert resident() - before < 1 << 20


# ---- tare run --lines ------------------------------------------------------------------------------------------

SCRIPT = """
import tare.lines
tare.lines.start_from_environment()
import multiprocessing
import sys


def step(n):
    total = 0
    for i in range(n):
        total += i
    return total


if __name__ == "__main__":
    print(step(3))
    if len(sys.argv) > 1:
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            print(pool.map(step, [5] * 4))
            pool.close()
            pool.join()
"""


def stored(path):
    with open(path) as file:
        return json.load(file)


def test_environment(run_script, tmp_path):
    done = run_script(SCRIPT, TARE_LINES="step")
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert re.search(r"^ +\d+ +3 .* %  +total \+= i$", done.stderr, re.M)
    assert [name for name in os.listdir(tmp_path) if "lines.json" in name] == []


def test_environment_without_it(run_script):
    done = run_script(SCRIPT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_environment_with_a_slip(run_script):
    done = run_script(SCRIPT, TARE_LINES="module:")
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert done.stderr == ("tare: --lines: 'module:' names no function: write function, Class.method or "
                           "module:function\n")


def test_run_lines(run_script, tare_command, tmp_path):
    done = run_script(SCRIPT, before=[tare_command, "run", "-q", "--lines", "script:step", "--"])
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert "total += i" in done.stderr
    found = stored(tmp_path / "script.lines.json")
    (function,) = found["functions"]
    assert function["function"] == "step" and found["processes"] == 1
    assert [line["hits"] for line in function["lines"]] == [1, 4, 3, 1]
    assert sum(line["time_percent"] for line in function["lines"]) == pytest.approx(100)
    assert [line["source"].strip() for line in function["lines"]][2] == "total += i"


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_run_lines_of_workers(run_script, tare_command, tmp_path, how):
    done = run_script(SCRIPT, how, before=[tare_command, "run", "-q", "--lines", "script:step", "--"])
    assert (done.returncode, done.stdout) == (0, "3\n[10, 10, 10, 10]\n")
    found = stored(tmp_path / "script.lines.json")
    (function,) = found["functions"]
    assert [line["hits"] for line in function["lines"]] == [5, 28, 23, 5]
    assert found["processes"] in (2, 3)
    assert done.stderr.count("total += i") == 1, "printed once, for all processes"


def test_run_lines_of_a_program_that_fails(run_script, tare_command, tmp_path):
    done = run_script(SCRIPT.replace("print(step(3))", "step(3); sys.exit(7)"),
                      before=[tare_command, "run", "-q", "--lines", "step", "--"])
    assert done.returncode == 7
    assert stored(tmp_path / "script.lines.json")["functions"][0]["lines"][0]["hits"] == 1


@pytest.mark.parametrize("slip", ["", ",", "a,", "m:", ":f"])
def test_run_lines_with_a_slip(run_script, tare_command, slip):
    done = run_script(SCRIPT, before=[tare_command, "run", "--lines", slip, "--"])
    assert done.returncode == 2 and done.stdout == ""
    assert "is not a function name" in done.stderr


# ---- lines of findings, by samples -----------------------------------------------------------------------------------

def test_samples_are_not_moved_to_where_the_lock_is_released(bench):
    """A loop of Python code of a millisecond or two, then a call that gives up the interpreter's lock: nearly all of
    the time is in the loop, by the program's own clock."""
    done = bench.recorded("""
        import os
        import time
        import tare

        def busy():
            value = 0
            for number in range(20000):
                value += number * number % 7
            return value

        tare._core.torch_lines_start("/nowhere/")
        spent = {"busy": 0.0, "rest": 0.0}
        ends = time.perf_counter() + 2
        while time.perf_counter() < ends:
            began = time.perf_counter()
            busy()
            spent["busy"] += time.perf_counter() - began
            os.stat(".")
            spent["rest"] += time.perf_counter() - began
        tare._core.torch_lines_stop()
        print(spent["busy"] / spent["rest"])
    """)
    rows = [row for row in done.report.aggregates if " @ " in row.name]
    calls = sum(row.calls for row in rows)
    inside = sum(row.calls for row in rows if row.name.endswith(" busy"))
    assert calls >= 10 and inside / calls > float(done.out) - 0.3, rows
