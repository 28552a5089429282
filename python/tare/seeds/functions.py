"""Profiles one call of a function: its time and memory, or the functions it called.

    profile = tare.profile_function(train_step, model, batch)
    print(profile["execution_time"], profile["memory_delta"])
"""
import _thread
from typing import Any, Callable, Dict, List, Optional, Set, TextIO, Tuple

from .. import _core

__all__ = ["FunctionProfile", "FunctionProfiler", "FunctionTable", "profile_function"]


class FunctionTable(List[Dict[str, Any]]):
    """Functions that were called: {"function", "file", "line", "calls", "primitive_calls", "total_s", "self_s"},
    sorted by self time, largest first. Both times include the tracer and add up to traced_time: functions that are
    called often appear slower than they are. `reason` states why an empty table is empty.

        profile = tare.FunctionProfiler(table=True)(train_step, model, batch)
        for row in profile["functions"][:10]:
            print(row["function"], row["calls"], row["self_s"])
    """
    reason: Optional[str] = None

    def print(self, limit: int = 20, file: Optional[TextIO] = None) -> None:
        """Prints the first `limit` rows of the table.

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
    """A dict with execution_time (seconds), memory_delta (MB), result, functions (a FunctionTable), traced_time
    (seconds, if a table was made) and error (the raised exception as text; else None).

    A call is either timed or traced, since a tracer slows down what it traces: by half for code with large
    operations, five times for a loop of short calls. Whichever of execution_time and traced_time was not measured is
    absent, with the reason.

        tare.profile_function(len, [1, 2])["result"]
    """

    def _repr_html_(self) -> str:
        from .._views import html_table
        rows = [(str(row["calls"]), f"{row['total_s']:.4f}", f"{row['self_s']:.4f}", row["function"])
                for row in self["functions"][:20]]
        table = html_table(("calls", "total s", "self s", "function"), rows, left=(3,))
        traced = self["traced_time"] == self["traced_time"]
        seconds = self["traced_time"] if traced else self["execution_time"]
        return f"<p>{seconds:.4f} s{' (traced)' if traced else ''}, {self['memory_delta']:.2f} MB</p>{table}"


def _row(entry: Any) -> Dict[str, Any]:
    code = entry.code
    if isinstance(code, str):  # written in C
        name, file, line = code.strip("<>"), "", 0
    else:
        name, file, line = getattr(code, "co_qualname", code.co_name), code.co_filename, code.co_firstlineno
    return {"function": name, "file": file, "line": line, "calls": entry.callcount,
            "primitive_calls": entry.callcount - entry.reccallcount, "total_s": entry.totaltime,
            "self_s": entry.inlinetime}


def _is_own(entry: Any) -> bool:
    return isinstance(entry.code, str) and ("'_lsprof.Profiler'" in entry.code or "timed_call" in entry.code)


def _table(profiler: Any, traced_s: float) -> FunctionTable:
    rows = FunctionTable(_row(entry) for entry in profiler.getstats() if not _is_own(entry))
    for row in rows:  # its clock is read a little before and after ours
        row["total_s"] = min(row["total_s"], traced_s)
    rows.sort(key=lambda row: -row["self_s"])
    return rows


class FunctionProfiler:
    """Profiles one call of a function. `last` is the last finished profile, also of a call that raised; it is kept
    until the next one.

    With table=True the standard library's profiler counts and times every function that is called. The time of the
    call is then its traced_time.

        profiler = tare.FunctionProfiler(table=True)
        profiler(train_step, batch)["functions"].print()
    """
    _threads: Set[int] = set()  # the profiler whose calls are being counted: there can be one table at a time

    def __init__(self, table: bool = False) -> None:
        self.table = table
        self.last: Optional[FunctionProfile] = None

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> FunctionProfile:
        """Calls function(*args, **kwargs). Exceptions propagate, and `last` has the profile.

            profile = tare.profile_function(sorted, data, reverse=True)
        """
        if not callable(function):
            raise TypeError(f"profile_function takes a function and its arguments, not {type(function).__name__}")
        profiler, reason = self._prepare()
        before_mb = _core.rss() / 1048576
        if profiler is not None:
            reason = self._begin(profiler)
            profiler = None if reason else profiler
        seconds, result, error = _core.timed_call(function, args, kwargs)
        if profiler is not None:
            profiler.disable()
            FunctionProfiler._threads.discard(_thread.get_ident())
        memory_mb = _core.rss() / 1048576 - before_mb
        table = FunctionTable() if profiler is None else _table(profiler, seconds)
        table.reason = reason
        # The object itself would keep its frames alive.
        reported = None if error is None else f"{type(error).__name__}: {error}"
        profile = FunctionProfile(memory_delta=memory_mb, result=result, functions=table, error=reported,
                                  **self._times(seconds, profiler is not None, reason))
        self.last = profile
        if error is not None:
            raise error
        return profile

    @staticmethod
    def _times(seconds: float, traced: bool, reason: Optional[str]) -> Dict[str, float]:
        from .. import Missing
        if traced:
            return {"execution_time": Missing("the call was traced for the table: see traced_time"),
                    "traced_time": seconds}
        if _thread.get_ident() in FunctionProfiler._threads:
            return {"execution_time": Missing(f"{reason}, under its tracer"), "traced_time": seconds}
        return {"execution_time": seconds, "traced_time": Missing(reason or "no tracer ran")}

    def _prepare(self) -> Tuple[Any, Optional[str]]:
        """The table's profiler, or the reason it is unavailable."""
        if _thread.get_ident() in FunctionProfiler._threads:
            return None, "the call is part of another one that is being profiled"
        if not self.table:
            return None, "FunctionProfiler(table=True) makes the table, with a tracer"
        import cProfile  # slow to import, and rarely needed at a program's start
        return cProfile.Profile(), None

    def _begin(self, profiler: Any) -> Optional[str]:
        """Enables it, or returns why that was not possible."""
        thread = _thread.get_ident()
        FunctionProfiler._threads.add(thread)
        try:
            profiler.enable()
            return None
        except ValueError as error:  # another profiler is active (from 3.12 on)
            FunctionProfiler._threads.discard(thread)
            return str(error)


profile_function = FunctionProfiler()
