# test_functions: profile_function: time, memory, result, the table of functions, and calls that raise.
import io
import threading
import time
import traceback

import pytest

import tare


def inner(n):
    return sum(range(n))


def outer(times, n=10):
    time.sleep(0.02)
    return [inner(n) for _ in range(times)]


def recursive(n):
    return n if n == 0 else recursive(n - 1)


def row_of(profile, name):
    return [row for row in profile["functions"] if row["function"].rpartition(".")[2] == name][0]


def test_the_parts():
    profile = tare.profile_function(outer, 3, n=4)
    assert profile["result"] == [6, 6, 6]
    assert profile["execution_time"] >= 0.02
    assert profile["error"] is None and profile["functions"].reason is None
    assert f"{profile['execution_time']:.4f}s {profile['memory_delta']:.2f} MB"
    assert tare.profile_function.last is profile


def test_the_table():
    profile = tare.profile_function(outer, 5)
    row = row_of(profile, "inner")
    assert row["calls"] == row["primitive_calls"] == 5
    assert row["file"] == __file__ and row["line"] == inner.__code__.co_firstlineno
    whole = row_of(profile, "outer")
    assert whole["total_s"] >= 0.02 > whole["self_s"] >= 0
    assert whole["total_s"] <= profile["execution_time"]
    own = [row["self_s"] for row in profile["functions"]]
    assert own == sorted(own, reverse=True)
    assert "time.sleep" in profile["functions"][0]["function"]
    assert not any(word in row["function"] for row in profile["functions"] for word in ("lsprof", "timed_call", "set"))


def test_recursion():
    row = row_of(tare.profile_function(recursive, 4), "recursive")
    assert (row["calls"], row["primitive_calls"]) == (5, 1)


def test_memory_in_mb():
    kept = tare.profile_function(lambda: b"\1" * (64 << 20))
    assert 60 <= kept["memory_delta"] <= 80
    kept.clear()


def test_what_is_raised_passes_through():
    def fails():
        inner(3)
        raise KeyError("batch")
    profiler = tare.FunctionProfiler()
    with pytest.raises(KeyError, match="batch") as raised:
        profiler(fails)
    assert traceback.extract_tb(raised.value.__traceback__)[-1].name == "fails"
    last = profiler.last
    assert last["error"] == "KeyError: 'batch'" and last["result"] is None
    assert row_of(last, "inner")["calls"] == 1
    assert last["execution_time"] > 0
    assert profiler(inner, 3)["result"] == 3
    with pytest.raises(SystemExit):
        profiler(exit_now)
    assert profiler.last["error"] == "SystemExit: 3"


def exit_now():
    raise SystemExit(3)


@pytest.mark.parametrize("given", [3, None, "inner"])
def test_not_callable(given):
    before = tare.profile_function.last
    with pytest.raises(TypeError, match=f"not {type(given).__name__}"):
        tare.profile_function(given)
    assert tare.profile_function.last is before
    with pytest.raises(TypeError):
        tare.profile_function()


def test_arguments_of_any_name():
    def takes(function, self=0, **more):
        return function, self, more
    assert tare.profile_function(takes, function=1, self=2, table=3)["result"] == (1, 2, {"table": 3})


def test_a_call_inside_a_call():
    def calls():
        return tare.profile_function(inner, 5)
    profile = tare.profile_function(calls)
    assert profile["result"]["result"] == 10
    assert profile["result"]["functions"] == [] and "another" in profile["result"]["functions"].reason
    assert row_of(profile, "inner")["calls"] == 1
    assert tare.profile_function(inner, 5)["functions"].reason is None


def test_without_a_table():
    profile = tare.FunctionProfiler(table=False)(inner, 5)
    assert profile["result"] == 10 and profile["functions"] == []
    assert profile["functions"].reason == "the table was not asked for"


def test_threads():
    found = []

    def one():
        found.append(tare.FunctionProfiler()(outer, 2))
    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [profile["result"] for profile in found] == [[45, 45]] * 4
    assert all(profile["functions"] or profile["functions"].reason for profile in found)


def test_printed():
    out = io.StringIO()
    profile = tare.profile_function(outer, 2)
    profile["functions"].print(limit=3, file=out)
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["calls", "total", "s", "self", "s", "function"] and len(lines) == 4
    assert "time.sleep" in lines[1]
    assert "<table>" in profile._repr_html_() and "&lt;" not in lines[1]


def test_the_time_is_the_functions_and_not_the_tracers():
    def calls(count):
        for _ in range(count):
            inner(0)

    def plain():
        begun = time.thread_time()
        calls(20_000)
        return time.thread_time() - begun
    times, shares = [], []
    for _ in range(7):
        times.append(plain())
        profile = tare.profile_function(calls, 20_000)
        assert 0 < profile["execution_time"] < profile["traced_time"]
        shares.append(profile["execution_time"] / profile["traced_time"])
        for row in profile["functions"]:
            assert 0 <= row["self_s"] <= row["total_s"] <= profile["execution_time"]
        assert sum(row["self_s"] for row in profile["functions"]) <= 1.001 * profile["execution_time"]
    assert sorted(shares)[3] < 0.75  # the tracer takes more than half of it
    untraced = tare.FunctionProfiler(table=False)(calls, 2000)
    assert isinstance(untraced["traced_time"], tare.Missing) and untraced["execution_time"] > 0


def test_the_tracers_memory_is_not_the_functions():
    import subprocess
    import sys
    out = subprocess.run([sys.executable, "-c", "import tare; print(tare.profile_function(len, [])['memory_delta'])"],
                         stdout=subprocess.PIPE, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}).stdout
    assert float(out) < 0.3  # cProfile, imported for the first time, takes more
