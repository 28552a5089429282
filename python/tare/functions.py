"""One call of a function, looked at closely: its time, its memory, and the functions it called.

    profile = tare.profile_function(train_step, model, batch)
    print(profile["execution_time"], profile["memory_delta"])
"""
import _thread
import os
from typing import Any, Callable, Dict, List, Optional, Set, TextIO, Tuple

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
    the one with the most time of its own first. `reason` says why an empty table is empty.

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
    """A dict with execution_time (seconds), memory_delta (MB), result, functions (a FunctionTable) and error
    (what it raised, as text; else None).

        tare.profile_function(len, [1, 2])["result"]
    """

    def _repr_html_(self) -> str:
        import html
        rows = "".join(f"<tr><td>{row['calls']}</td><td>{row['total_s']:.4f}</td><td>{row['self_s']:.4f}</td>"
                       f"<td style='text-align:left'>{html.escape(row['function'])}</td></tr>"
                       for row in self["functions"][:20])
        return (f"<p>{self['execution_time']:.4f} s, {self['memory_delta']:.2f} MB</p><table><tr><th>calls</th>"
                f"<th>total s</th><th>self s</th><th>function</th></tr>{rows}</table>")


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


def _table(profiler: Any) -> FunctionTable:
    rows = [_row(entry) for entry in profiler.getstats() if not _is_own(entry)]
    return FunctionTable(sorted(rows, key=lambda row: -row["self_s"]))


class FunctionProfiler:
    """Calls a function once and tells about it. `last` is the last finished profile, also of a call that raised;
    it is kept until the next one.

    The table comes from the standard library's profiler, which adds to the time of every call; with table=False
    only time and memory are measured, and nothing is added.

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
        before_mb = _resident_mb()
        profiler, reason = self._begin()
        seconds, result, error = _core.timed_call(function, args, kwargs)
        if profiler is not None:
            profiler.disable()
            FunctionProfiler._threads.discard(_thread.get_ident())
        memory_mb = _resident_mb() - before_mb
        table = _table(profiler) if profiler is not None else FunctionTable()
        table.reason = reason
        told = None if error is None else f"{type(error).__name__}: {error}"  # itself, it would keep its frames alive
        profile = FunctionProfile(execution_time=seconds, memory_delta=memory_mb, result=result, functions=table,
                                  error=told)
        self.last = profile
        if error is not None:
            raise error
        return profile

    def _begin(self) -> Tuple[Any, Optional[str]]:
        """The table's profiler, switched on; or why there is none."""
        thread = _thread.get_ident()
        if not self.table:
            return None, "the table was not asked for"
        if thread in FunctionProfiler._threads:
            return None, "the call is part of another one that is being profiled"
        import cProfile  # slow to import, and seldom needed where a program starts
        profiler = cProfile.Profile()
        FunctionProfiler._threads.add(thread)
        try:
            profiler.enable()
            return profiler, None
        except ValueError as error:  # from 3.12 on
            FunctionProfiler._threads.discard(thread)
            return None, str(error)


profile_function = FunctionProfiler()
