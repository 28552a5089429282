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
