"""Time of each line of selected functions.

A line's time includes the calls it makes. In a recursive function, time is counted for the lines of the inner
call, so that the lines of a function add up to the time it ran. Threads are added up; a generator's or coroutine's
time is the time between resuming and yielding.

    with tare.lines.LineProfile(train_step) as profile:
        train_step(batch)
    profile.print()
"""
import functools
import os
import sys
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, TextIO, Tuple, TypeVar

from .. import _core
from .._core import unit
from .._files import source_lines
from ._names import Patterns, qualified_name

__all__ = ["Line", "LineProfile", "Lines", "profile_lines", "start_from_environment"]

_F = TypeVar("_F", bound=Callable[..., Any])


def _source(file: str, number: int) -> str:
    lines = source_lines(file)
    return lines[number - 1].rstrip() if 1 <= number <= len(lines) else ""


def _missing(reason: str) -> float:
    from .. import Missing
    return Missing(reason)


class Line:
    """One line that ran.

        line.file, line.function, line.line_number, line.source
        line.hits          # how often it began
        line.time_s        # seconds, calls included
        line.time_percent  # share of its function's time, or of the block's
    """
    __slots__ = ("file", "function", "first_line", "line_number", "hits", "time_s", "time_percent", "source")

    def __init__(self, file: str, function: str, first_line: int, line_number: int, hits: int, time_s: float,
                 time_percent: float, source: str) -> None:
        self.file, self.function, self.first_line = file, function, first_line
        self.line_number, self.hits, self.source = line_number, hits, source
        self.time_s, self.time_percent = time_s, time_percent

    @property
    def per_hit_s(self) -> float:
        """Seconds per hit; absent for a line that was already running when the profile began."""
        return self.time_s / self.hits if self.hits else _missing("the line began before the profile did")

    def as_dict(self) -> Dict[str, Any]:
        """The line's values by name.

            json.dumps([line.as_dict() for line in profile.stats()])
        """
        percent = self.time_percent
        return {"file": self.file, "function": self.function, "line_number": self.line_number, "hits": self.hits,
                "time_s": self.time_s, "time_percent": percent if percent == percent else None,
                "source": self.source}

    def __repr__(self) -> str:
        return (f"Line({os.path.basename(self.file)}:{self.line_number} {self.source.strip()!r}, hits={self.hits}, "
                f"time_s={self.time_s:.6f}, time_percent={self.time_percent:.1f})")


class Lines(List[Line]):
    """Lines in the order of their functions and numbers; displayed as a table in a notebook.

        slow = [line for line in profile.stats() if line.time_percent > 10]
    """

    def functions(self) -> Iterator[Tuple[str, str, int, "Lines"]]:
        """(file, function, its first line, its lines), the one with the most time first.

            for file, function, first_line, lines in profile.stats().functions():
                print(function, sum(line.time_s for line in lines))
        """
        groups: Dict[Tuple[str, str, int], Lines] = {}
        for line in self:
            groups.setdefault((line.file, line.function, line.first_line), Lines()).append(line)
        for key in sorted(groups, key=lambda key: -sum(line.time_s for line in groups[key])):
            yield (*key, groups[key])

    def print(self, file: Optional[TextIO] = None) -> None:
        """Prints each function's source with hits, time and share beside it; by default to standard output.

            profile.stats().print(file=sys.stderr)
        """
        out = sys.stdout if file is None else file
        for path, function, first_line, lines in self.functions():
            total = sum(line.time_s for line in lines)
            out.write(f"{function}  {path}:{first_line}  {unit(total, 's')}\n")
            out.write(f"{'line':>6} {'hits':>10} {'time':>10} {'per hit':>10} {'share':>7}  source\n")
            known = {line.line_number: line for line in lines}
            for number in _range(path, first_line, known):
                line = known.get(number)
                text = _source(path, number)
                row = (f"{number:>6} {line.hits:>10} {unit(line.time_s, 's'):>10} {unit(line.per_hit_s, 's'):>10} "
                       f"{unit(line.time_percent / 100, 'share'):>7}" if line else f"{number:>6}{'':>41}")
                out.write(f"{row}  {text}".rstrip() + "\n")
            out.write("\n")
        if not self:
            out.write("none of the chosen functions ran\n")

    def to_pandas(self) -> Any:
        """A DataFrame with a row a line; needs pandas.

            profile.stats().to_pandas().nlargest(10, "time_s")
        """
        from .._check import pandas
        names = ["file", "function", "line_number", "hits", "time_s", "time_percent", "source"]
        return pandas().DataFrame([{name: getattr(line, name) for name in names} for line in self], columns=names)

    def _repr_html_(self) -> str:
        import html

        from .._views import Cell, html_table
        parts = []
        for path, function, first_line, lines in self.functions():
            rows = []
            for line in lines:
                share = line.time_percent if line.time_percent == line.time_percent else 0
                bar = f"background:linear-gradient(90deg,#f6c9a8 {share:.0f}%,transparent {share:.0f}%)"
                rows.append((str(line.line_number), str(line.hits), unit(line.time_s, "s"),
                             Cell(unit(line.time_percent / 100, "share"), style=bar), line.source))
            parts += [f"<p><b>{html.escape(function)}</b> {html.escape(path)}:{first_line}</p>",
                      html_table(("line", "hits", "time", "share", "source"), rows, left=(4,))]
        return "".join(parts) or "<p>none of the chosen functions ran</p>"


def _range(path: str, first_line: int, known: Dict[int, Line]) -> List[int]:
    """The numbers of a function's lines, if its source is available; of a module: only lines that ran."""
    import inspect  # as html below: slow to import, and rarely needed at a program's start
    numbers = sorted(known)
    rest = source_lines(path)[first_line - 1:]
    if not rest or known[numbers[0]].function.startswith("<"):
        return numbers
    try:
        length = len(inspect.getblock(rest))
    except (SyntaxError, IndentationError):
        length = 1
    return sorted(set(numbers) | set(range(first_line, first_line + length)))


def _codes(target: Any, names: Dict[Any, str]) -> Iterator[types.CodeType]:
    """The code objects of a function, method, property, class or module."""
    if isinstance(target, types.CodeType):
        yield target
    elif isinstance(target, (staticmethod, classmethod)):
        yield from _codes(target.__func__, names)
    elif isinstance(target, functools.partial):
        yield from _codes(target.func, names)
    elif isinstance(target, property):
        for part in (target.fget, target.fset, target.fdel):
            if part is not None:
                yield from _codes(part, names)
    elif isinstance(target, (type, types.ModuleType)):
        yield from _members(target, names)
    else:
        function = _unwrap(target)
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if isinstance(code, types.CodeType):
            names.setdefault(code, getattr(function, "__qualname__", code.co_name))
            yield code
        elif callable(target):
            name = getattr(target, "__name__", None) or type(target).__name__
            raise TypeError(f"{name} has no Python code, so it has no lines to profile")
        else:
            raise TypeError(f"lines are profiled of functions, not of {type(target).__name__}")


def _unwrap(target: Any) -> Any:
    """The function that a decorator states to have wrapped."""
    seen = set()
    while hasattr(target, "__wrapped__") and id(target) not in seen:
        seen.add(id(target))
        target = target.__wrapped__
    return target


def _members(owner: Any, names: Dict[Any, str]) -> Iterator[types.CodeType]:
    module = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
    for member in list(vars(owner).values()):
        plain = getattr(member, "__func__", member)
        if isinstance(member, property) or isinstance(_unwrap(plain), types.FunctionType):
            if isinstance(member, property) or getattr(plain, "__module__", module) == module:
                yield from _codes(member, names)
        elif isinstance(owner, types.ModuleType) and isinstance(member, type) and member.__module__ == module:
            yield from _members(member, names)


class LineProfile:
    """Profiles functions line by line while it runs: between `with` and its end, or start() and stop().

    Functions may be given as functions, methods, classes or modules (all functions defined there), or by name:
    "function", "Class.method", "module:function", with * as a wildcard. A name is matched against the functions that
    begin while the profile runs, so its module may be imported later. Other code has no overhead on CPython 3.12 and
    later, and a check for each line on earlier versions.

        with tare.lines.LineProfile(load, "model:Net.*") as profile:
            main()
        profile.print()
    """

    def __init__(self, *functions: Any, chooser: Optional[Callable[[Any, Dict[str, Any]], bool]] = None,
                 of: str = "function") -> None:
        if of not in ("function", "block"):
            raise ValueError('of is "function" or "block": what 100 % is')
        self._names: Dict[Any, str] = {}
        self._of = of
        self.whole_s: Optional[float] = None  #: duration that is 100 % of a block; None: the time the profile ran
        patterns = [name for name in functions if isinstance(name, str)]
        if patterns and chooser is not None:
            raise ValueError("names and a chooser do not go together")
        self._patterns = Patterns(patterns, self._names) if patterns else None
        self._counts = _core.LineCounts(self._patterns or chooser)
        for function in functions:
            if not isinstance(function, str):
                self.add(function)

    @classmethod
    def around(cls, frame: Optional[types.FrameType] = None) -> "LineProfile":
        """A profile of a block: the lines of the frame's code from then on, and of every function of the same file
        that begins meanwhile. Shares are of the time the profile runs. The default frame is the caller's.

            with tare.lines.LineProfile.around() as profile:
                slow_function()
            profile.print()
        """
        code = (frame or sys._getframe(1)).f_code
        file = code.co_filename
        profile = cls(chooser=lambda met, names: met.co_filename == file, of="block")
        profile.add(code)
        return profile

    def add(self, function: _F) -> _F:
        """Adds this function to the profile and returns it, for use as a decorator.

            profile = tare.lines.LineProfile()

            @profile.add
            def load(path): ...
        """
        for code in list(_codes(function, self._names)):
            self._counts.add(code)
        return function

    def start(self) -> "LineProfile":
        """Starts counting. Each start() needs a stop().

            profile.start()
        """
        self._counts.start()
        return self

    def stop(self) -> "LineProfile":
        """Ends the matching start().

            profile.stop().print()
        """
        self._counts.stop()
        return self

    def clear(self) -> None:
        """Resets all counts.

            profile.clear()
        """
        self._counts.clear()

    @property
    def running(self) -> bool:
        """True between start and stop.

            assert not profile.running
        """
        return self._counts.running

    @property
    def elapsed_s(self) -> float:
        """Seconds for which it has run.

            print(profile.elapsed_s)
        """
        return self._counts.elapsed_s

    def __enter__(self) -> "LineProfile":
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stats(self) -> Lines:
        """The lines that ran, up to now.

            for line in profile.stats():
                print(line.line_number, line.hits, line.time_s, f"{line.time_percent:.1f} %", line.source)
        """
        merged: Dict[Tuple[str, str, int], Dict[int, Tuple[int, float]]] = {}
        for code, rows in self._counts.read():
            name = self._names.get(code) or qualified_name(code)
            lines = merged.setdefault((code.co_filename, name, code.co_firstlineno), {})
            for number, hits, time_s in rows:  # a function that is redefined counts as the same function
                before = lines.get(number, (0, 0.0))
                lines[number] = (before[0] + hits, before[1] + time_s)
        if self._of != "block":
            return _lines(merged, None)
        return _lines(merged, self.elapsed_s if self.whole_s is None else self.whole_s)

    def print(self, file: Optional[TextIO] = None) -> None:
        """Prints each function's source with hits, time and share beside it.

            profile.print()
        """
        self.stats().print(file)

    def to_pandas(self) -> Any:
        """A DataFrame with a row a line; needs pandas.

            profile.to_pandas()
        """
        return self.stats().to_pandas()

    def _repr_html_(self) -> str:
        return self.stats()._repr_html_()

    def __repr__(self) -> str:
        return f"<LineProfile of {len(self._counts.read())} functions{', running' if self.running else ''}>"


def _lines(merged: Dict[Tuple[str, str, int], Dict[int, Tuple[int, float]]], whole_s: Optional[float]) -> Lines:
    found = Lines()
    for (file, function, first_line), lines in merged.items():
        total = sum(time_s for _, time_s in lines.values()) if whole_s is None else whole_s
        for number in sorted(lines):
            hits, time_s = lines[number]
            share = min(100.0, 100 * time_s / total) if total > 0 else _missing("the function took no measurable time")
            source = _source(file, number)
            found.append(Line(file, function, first_line, number, hits, time_s, share, source))
    return found


def profile_lines(function: _F) -> _F:
    """A decorator: the function's lines are profiled from now on; the profile is its `line_profile`.

    On CPython 3.12 and later it returns the function itself. On earlier versions it returns a wrapper, so that the
    trace function is installed only while the function runs.

        @tare.profile_lines
        def step(batch): ...

        step(batch)
        step.line_profile.print()
    """
    profile = LineProfile(function)
    wrapped: Any = function
    if sys.version_info >= (3, 12):
        profile.start()
    else:
        from .._wrap import wrap
        wrapped = wrap(profile, function)
    wrapped.line_profile = profile
    return wrapped


def start_from_environment() -> Optional[LineProfile]:
    """Starts the profile requested by `tare run --lines FUNC`; None if there is no such request.

        tare.lines.start_from_environment()
    """
    from . import _report
    return _report.start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_core.lines_forked)
