"""One call of a function, looked at closely: its time, its memory, and the functions it called.

    profile = tare.profile_function(train_step, model, batch)
    print(profile["execution_time"], profile["memory_delta"])
"""
import _thread
import os
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, TextIO, Tuple

from . import _core

__all__ = ["FunctionProfile", "FunctionProfiler", "FunctionTable", "profile_function"]

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1048576


def _resident_mb() -> float:
    """This process's resident memory in MB, or an absent value that says why."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read(128).split()[1]) * _PAGE_MB
    except (OSError, IndexError, ValueError) as error:
        from . import Missing
        return Missing(f"resident memory cannot be read: {error}")


class FunctionTable(List[Dict[str, Any]]):
    """Functions that were called: {"function", "file", "line", "calls", "primitive_calls", "total_s", "self_s"},
    the one with the most time of its own first. The tracer's cost, calibrated on this machine, is subtracted from both
    times. `reason` says why an empty table is empty.

        for row in profile["functions"][:10]:
            print(row["function"], row["calls"], row["self_s"])
    """
    reason: Optional[str] = None

    def print(self, limit: int = 20, file: Optional[TextIO] = None) -> None:
        """The table as text, as far as the limit.

            profile["functions"].print(limit=5)
        """
        print(f"{'calls':>10} {'total s':>10} {'self s':>10}  function", file=file)
        for row in self[:limit]:
            place = f"  {row['file']}:{row['line']}" if row["line"] else ""
            print(f"{row['calls']:>10} {row['total_s']:>10.4f} {row['self_s']:>10.4f}  {row['function']}{place}",
                  file=file)
        if self.reason:
            print(f"n/a: {self.reason}", file=file)


class FunctionProfile(Dict[str, Any]):
    """A dict with execution_time (seconds), traced_time (seconds it took with the tracer that makes the table),
    memory_delta (MB), result, functions (a FunctionTable) and error (what it raised, as text; else None).

    execution_time is the function's own. Where a table was made, it is an estimate: traced_time less the tracer's cost
    of every call, calibrated on this machine right before. Before CPython 3.12 Python code also runs slower between
    calls while it is traced, which is not subtracted. FunctionProfiler(table=False) measures without a tracer.

        tare.profile_function(len, [1, 2])["result"]
    """

    def _repr_html_(self) -> str:
        import html
        rows = "".join(f"<tr><td>{row['calls']}</td><td>{row['total_s']:.4f}</td><td>{row['self_s']:.4f}</td>"
                       f"<td style='text-align:left'>{html.escape(row['function'])}</td></tr>"
                       for row in self["functions"][:20])
        return (f"<p>{self['execution_time']:.4f} s, {self['memory_delta']:.2f} MB</p><table><tr><th>calls</th>"
                f"<th>total s</th><th>self s</th><th>function</th></tr>{rows}</table>")


# ---- what the tracer costs -----------------------------------------------------------------------------------------

class _Cost(NamedTuple):
    """Seconds that the tracer adds to a call: to the time of the function called, and to that of its caller; and how
    many times as long a loop takes that does nothing but call: nothing is slowed down more."""
    inside: float
    outside: float
    slower: float


def _nothing() -> None:
    pass


def _call_python(count: int) -> None:
    for _ in range(count):
        _nothing()


def _call_c(count: int, call: Callable[[], Any] = _thread.get_ident) -> None:
    for _ in range(count):
        call()


_ROUNDS, _CALLS = 7, 200


def _calibrate(tracer: Callable[[], Any], loop: Callable[[int], None]) -> _Cost:
    plain, traced, inside = [], [], []
    for _ in range(_ROUNDS):
        begun = time.thread_time()
        loop(_CALLS)
        plain.append(time.thread_time() - begun)
        profiler = tracer()
        begun = time.thread_time()
        profiler.enable()
        loop(_CALLS)
        profiler.disable()
        traced.append(time.thread_time() - begun)
        inside += [entry.inlinetime for entry in profiler.getstats() if entry.callcount == _CALLS]
    with_it, without = sorted(traced)[_ROUNDS // 2], sorted(plain)[_ROUNDS // 2]
    each = max(0.0, with_it - without) / _CALLS
    part = min(each, sorted(inside)[len(inside) // 2] / _CALLS) if inside else each
    return _Cost(part, each - part, max(1.0, with_it / without) if without > 0 else 1.0)


def _ran() -> Tuple[float, float]:
    """Seconds that this thread had a CPU, and that it waited for one."""
    try:
        with open("/proc/thread-self/schedstat", "rb", buffering=0) as file:
            running, waiting = file.read(128).split()[:2]
        return int(running) / 1e9, int(waiting) / 1e9
    except (OSError, ValueError):
        return 0.0, 0.0


class _Costs:
    """The tracer's cost of every row."""

    def __init__(self, tracer: Callable[[], Any]) -> None:
        self.python, self.c = _calibrate(tracer, _call_python), _calibrate(tracer, _call_c)
        self.entries: Dict[Any, Any] = {}
        self.known: Dict[Any, float] = {}

    def stretch(self, before: Tuple[float, float], after: Tuple[float, float]) -> None:
        """What waits for a CPU takes longer, and the tracer as well."""
        running, waiting = after[0] - before[0], after[1] - before[1]
        if running > 0:
            factor = 1 + waiting / running
            self.python, self.c = (_Cost(factor * one.inside, factor * one.outside, one.slower)
                                   for one in (self.python, self.c))

    @property
    def slower(self) -> float:
        return max(self.python.slower, self.c.slower)

    def of(self, code: Any) -> _Cost:
        return self.c if isinstance(code, str) else self.python

    def self_s(self, entry: Any) -> float:
        """The row's own time without the tracer."""
        added = entry.callcount * self.of(entry.code).inside
        added += sum(sub.callcount * self.of(sub.code).outside for sub in entry.calls or ())
        return max(entry.inlinetime / self.slower, entry.inlinetime - added)

    def of_a_call(self, code: Any) -> float:
        """What the tracer adds to a call of it and to all that it calls, on average. Of a recursion: its first level."""
        if code not in self.known:
            entry, own = self.entries.get(code), self.of(code).inside
            self.known[code] = own
            if entry is not None and entry.callcount:
                below = sum(sub.callcount * (self.of(sub.code).outside + self.of_a_call(sub.code))
                            for sub in entry.calls or () if sub.code is not code)
                self.known[code] = own + below / entry.callcount
        return self.known[code]

    def total_s(self, entry: Any) -> float:
        """The row's time with what it calls, without the tracer."""
        return max(self.self_s(entry), entry.totaltime - entry.callcount * self.of_a_call(entry.code))


# ---- the table -----------------------------------------------------------------------------------------------------

def _row(entry: Any, costs: _Costs) -> Dict[str, Any]:
    code = entry.code
    if isinstance(code, str):  # written in C
        name, file, line = code.strip("<>"), "", 0
    else:
        name, file, line = getattr(code, "co_qualname", code.co_name), code.co_filename, code.co_firstlineno
    return {"function": name, "file": file, "line": line, "calls": entry.callcount,
            "primitive_calls": entry.callcount - entry.reccallcount, "total_s": costs.total_s(entry),
            "self_s": costs.self_s(entry)}


def _is_own(entry: Any) -> bool:
    return isinstance(entry.code, str) and ("'_lsprof.Profiler'" in entry.code or "timed_call" in entry.code)


def _table(profiler: Any, costs: _Costs, traced_s: float) -> Tuple[FunctionTable, float]:
    """The rows, and the seconds that the call takes without the tracer."""
    entries = [entry for entry in profiler.getstats() if not _is_own(entry)]
    costs.entries = {entry.code: entry for entry in entries}
    added = sum(entry.callcount * sum(costs.of(entry.code)[:2]) for entry in entries)
    rows = FunctionTable(_row(entry, costs) for entry in entries)
    seconds = min(traced_s, max(traced_s - added, traced_s / costs.slower, sum(row["self_s"] for row in rows)))
    for row in rows:
        row["total_s"] = min(row["total_s"], seconds)
    rows.sort(key=lambda row: -row["self_s"])
    return rows, seconds


class FunctionProfiler:
    """Calls a function once and tells about it. `last` is the last finished profile, also of a call that raised;
    it is kept until the next one.

    The table comes from the standard library's profiler, which adds to the time of every call. What it adds is
    calibrated before the call and subtracted from all times, which are estimates then. With table=False the time is
    measured without a tracer.

        profiler = tare.FunctionProfiler(table=False)
        print(profiler(train_step, batch)["execution_time"])
    """
    _threads: Set[int] = set()  # whose calls are being counted: there can be one table at a time

    def __init__(self, table: bool = True) -> None:
        self.table = table
        self.last: Optional[FunctionProfile] = None

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> FunctionProfile:
        """Calls function(*args, **kwargs). What it raises passes through, and `last` has its profile.

            profile = tare.profile_function(sorted, data, reverse=True)
        """
        if not callable(function):
            raise TypeError(f"profile_function takes a function and its arguments, not {type(function).__name__}")
        profiler, costs, reason = self._prepare()
        before_mb = _resident_mb()
        ran = _ran()
        if profiler is not None:
            reason = self._begin(profiler)
            profiler = None if reason else profiler
        traced, result, error = _core.timed_call(function, args, kwargs)
        if profiler is not None:
            profiler.disable()
            FunctionProfiler._threads.discard(_thread.get_ident())
        memory_mb = _resident_mb() - before_mb
        table, seconds = FunctionTable(), traced
        if profiler is not None and costs is not None:
            costs.stretch(ran, _ran())
            table, seconds = _table(profiler, costs, traced)
        table.reason = reason
        told = None if error is None else f"{type(error).__name__}: {error}"  # itself, it would keep its frames alive
        from . import Missing
        profile = FunctionProfile(execution_time=seconds, memory_delta=memory_mb, result=result, functions=table,
                                  traced_time=traced if profiler is not None else Missing(reason or "no tracer ran"),
                                  error=told)
        self.last = profile
        if error is not None:
            raise error
        return profile

    def _prepare(self) -> Tuple[Any, Optional[_Costs], Optional[str]]:
        """The table's profiler, and what it costs; or why there is none."""
        if not self.table:
            return None, None, "the table was not asked for"
        if _thread.get_ident() in FunctionProfiler._threads:
            return None, None, "the call is part of another one that is being profiled"
        import cProfile  # slow to import, and seldom needed where a program starts
        try:
            return cProfile.Profile(), _Costs(cProfile.Profile), None
        except ValueError as error:  # another profiler is active (from 3.12 on)
            return None, None, str(error)

    def _begin(self, profiler: Any) -> Optional[str]:
        """Switches it on; or why that was not possible."""
        thread = _thread.get_ident()
        FunctionProfiler._threads.add(thread)
        try:
            profiler.enable()
            return None
        except ValueError as error:
            FunctionProfiler._threads.discard(thread)
            return str(error)


profile_function = FunctionProfiler()
