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


def table_of(function, *args):
    return tare.FunctionProfiler(table=True)(function, *args)


def row_of(profile, name):
    return [row for row in profile["functions"] if row["function"].rpartition(".")[2] == name][0]


def test_the_parts():
    profile = tare.profile_function(outer, 3, n=4)
    assert profile["result"] == [6, 6, 6]
    assert profile["execution_time"] >= 0.02
    assert profile["error"] is None
    assert f"{profile['execution_time']:.4f}s {profile['memory_delta']:.2f} MB"
    assert tare.profile_function.last is profile


def test_the_table():
    profile = table_of(outer, 5)
    assert profile["functions"].reason is None
    row = row_of(profile, "inner")
    assert row["calls"] == row["primitive_calls"] == 5
    assert row["file"] == __file__ and row["line"] == inner.__code__.co_firstlineno
    whole = row_of(profile, "outer")
    assert whole["total_s"] >= 0.02 > whole["self_s"] >= 0
    assert whole["total_s"] <= profile["traced_time"]
    own = [row["self_s"] for row in profile["functions"]]
    assert own == sorted(own, reverse=True)
    assert "time.sleep" in profile["functions"][0]["function"]
    assert not any(word in row["function"] for row in profile["functions"] for word in ("lsprof", "timed_call", "set"))


def test_recursion():
    row = row_of(table_of(recursive, 4), "recursive")
    assert (row["calls"], row["primitive_calls"]) == (5, 1)


def test_memory_in_mb():
    kept = tare.profile_function(lambda: b"\1" * (64 << 20))
    assert 60 <= kept["memory_delta"] <= 80
    kept.clear()


def test_what_is_raised_passes_through():
    def fails():
        inner(3)
        raise KeyError("batch")
    profiler = tare.FunctionProfiler(table=True)
    with pytest.raises(KeyError, match="batch") as raised:
        profiler(fails)
    assert traceback.extract_tb(raised.value.__traceback__)[-1].name == "fails"
    last = profiler.last
    assert last["error"] == "KeyError: 'batch'" and last["result"] is None
    assert row_of(last, "inner")["calls"] == 1
    assert last["traced_time"] > 0
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


@pytest.mark.parametrize("inside", [tare.FunctionProfiler(), tare.FunctionProfiler(table=True)])
def test_a_call_inside_a_call(inside):
    """What runs inside a traced call is traced as well: its time is no execution time."""
    profile = table_of(lambda: inside(inner, 5))
    nested = profile["result"]
    assert nested["result"] == 10
    assert nested["functions"] == [] and "another" in nested["functions"].reason
    assert isinstance(nested["execution_time"], tare.Missing) and 0 < nested["traced_time"] < profile["traced_time"]
    assert row_of(profile, "inner")["calls"] == 1
    assert table_of(inner, 5)["functions"].reason is None
    assert tare.profile_function(lambda: tare.profile_function(inner, 5))["result"]["execution_time"] > 0


def test_a_call_is_timed_or_traced():
    timed = tare.profile_function(inner, 5)
    assert timed["result"] == 10 and timed["functions"] == [] and timed["execution_time"] > 0
    assert timed["functions"].reason == "FunctionProfiler(table=True) makes the table, with a tracer"
    assert isinstance(timed["traced_time"], tare.Missing) and "<table>" not in timed._repr_html_()
    traced = table_of(inner, 5)
    assert isinstance(traced["execution_time"], tare.Missing) and "traced" in traced["execution_time"].reason
    assert traced["traced_time"] > 0


def test_no_tracer_sees_a_timed_call():
    import sys
    seen = []

    def looks():
        seen.append(sys.getprofile())
        seen.append(sys.monitoring.get_tool(2) if sys.version_info >= (3, 12) else None)
    tare.profile_function(looks)
    assert seen == [None, None]
    table_of(looks)
    assert [one for one in seen[2:] if one is not None]


def test_threads():
    found = []

    def one():
        found.append(table_of(outer, 2))
    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [profile["result"] for profile in found] == [[45, 45]] * 4
    assert all(profile["functions"] or profile["functions"].reason for profile in found)


def test_printed():
    out = io.StringIO()
    profile = table_of(outer, 2)
    profile["functions"].print(limit=3, file=out)
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["calls", "total", "s", "self", "s", "function"] and len(lines) == 4
    assert "time.sleep" in lines[1]
    assert "<table>" in profile._repr_html_() and "&lt;" not in lines[1]


def builtin_calls():
    total = 0
    for number in range(20_000):
        total += len(str(number))
    return total


def python_calls():
    for _ in range(5_000):
        recursive(0)


def no_calls():
    total = 0
    for number in range(50_000):
        total += number * 2
    return total


@pytest.mark.parametrize("function", [builtin_calls, python_calls, no_calls])
def test_the_time_is_the_functions_and_not_the_tracers(function):
    """The best of several, in turn: a busy machine delays both. Once each had a quiet moment they are alike."""
    plain, shown = [], []
    for turn in range(200):
        if turn >= 15 and 0.7 < min(shown) / min(plain) < 1.3:
            break
        begun = time.perf_counter()
        function()
        plain.append(time.perf_counter() - begun)
        shown.append(tare.profile_function(function)["execution_time"])
    assert 0.7 < min(shown) / min(plain) < 1.3  # a tracer takes 1.8 to 6 times as long on some interpreter


def test_rows_add_up_to_the_traced_time():
    profile = table_of(python_calls)
    for row in profile["functions"]:
        assert 0 <= row["self_s"] <= row["total_s"] <= profile["traced_time"]
    assert 0.5 * profile["traced_time"] < sum(row["self_s"] for row in profile["functions"]) <= profile["traced_time"]


def test_the_tracers_memory_is_not_the_functions():
    import subprocess
    import sys
    out = subprocess.run([sys.executable, "-c",
                          "import tare; print(tare.FunctionProfiler(table=True)(len, [])['memory_delta'])"],
                         stdout=subprocess.PIPE, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}).stdout
    assert float(out) < 0.3  # cProfile, imported for the first time, takes more
