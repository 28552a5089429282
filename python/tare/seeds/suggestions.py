"""Suggestions while a program runs: new findings are reported immediately."""
import threading
import weakref
from typing import Any, Callable, List, Optional, Set

from .. import _check
from ._bottlenecks import Bottleneck


def _key(one: Any) -> str:
    """Figures change from check to check; the subject of a finding does not."""
    return f"{one.kind}:{one.operation}" if isinstance(one, Bottleneck) else f"{one.id}:{one.title}"


def _collect(source: Any) -> List[Any]:
    if callable(getattr(source, "bottlenecks", None)):
        return list(source.bottlenecks())
    from .._report import report
    read = report(source)
    return [*read.findings, *read.bottlenecks()]


class Suggestions:
    """Checks a monitor (or the trace that is being written) every `interval` seconds, in a separate thread, and calls
    `tell` with each new bottleneck or finding. `reported` lists those so far; `error` is the last error, which
    does not affect the program.

        with tare.Suggestions(monitor, print, interval=5):
            train()
    """

    def __init__(self, source: Any = None, tell: Optional[Callable[[Any], Any]] = None, interval: float = 5.0) -> None:
        _check.seconds(interval, "interval", 0.01)
        if tell is not None and not callable(tell):
            raise TypeError(f"tell is a function of a finding, not {type(tell).__name__}")
        self.source = source
        self.tell = tell
        self.interval = float(interval)
        self.reported: List[Any] = []
        self.error: Optional[str] = None
        self._known: Set[str] = set()
        self._end = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._lock = threading.Lock()

    def check(self) -> List[Any]:
        """Checks once, now; reports and returns new findings.

            suggestions.check()
        """
        fresh = []
        with self._lock:
            for one in _collect(self.source):
                if _key(one) not in self._known:
                    self._known.add(_key(one))
                    fresh.append(one)
            self.reported += fresh
        for one in fresh:
            if self.tell is not None:
                self.tell(one)
        return fresh

    def start(self) -> "Suggestions":
        """Starts checking. RuntimeError if it is already running.

            suggestions = tare.Suggestions(monitor, print).start()
        """
        if self._thread is not None and self._thread.is_alive():
            raise RuntimeError("suggestions are already being made; stop() ends it")
        self._end.clear()
        self._thread = threading.Thread(target=_watch, args=(weakref.ref(self), self._end, self.interval),
                                        name="tare-suggestions", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Checks a last time and ends.

            suggestions.stop()
        """
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            _check_safely(self)

    def __enter__(self) -> "Suggestions":
        return self.start()

    def __exit__(self, *exception: Any) -> None:
        self.stop()


def _check_safely(suggestions: Suggestions) -> None:
    try:
        suggestions.check()
    except Exception as error:  # nothing in this thread could catch it, and the program must not be affected
        suggestions.error = f"{type(error).__name__}: {error}"


def _watch(of: "weakref.ref[Suggestions]", end: threading.Event, interval: float) -> None:
    while not end.wait(interval):
        suggestions = of()
        if suggestions is None:  # dropped by the program
            return
        _check_safely(suggestions)
        del suggestions
