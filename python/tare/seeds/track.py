"""Measures one block and prints it when it ends: track_performance, and monitor_performance for whole functions."""
import functools
import inspect
from typing import Any, Callable, Optional, TypeVar

from .. import _core
from .._core import Missing, Recorder
from ..torch import _gpu_memory
from .metric import Metric, megabytes

_F = TypeVar("_F", bound=Callable[..., Any])

_shared: Optional[Recorder] = None


def _shared_recorder() -> Recorder:
    global _shared
    if _shared is None:
        _shared = Recorder(memory=True, cpu=False, keep=1)
    return _shared


class track_performance:
    """Measures one block and prints a line when it ends; `.metric` then has the values.

        with tare.track_performance("critical_operation") as block:
            expensive()
        block.metric.duration_seconds
    """

    def __init__(self, name: str, print_result: bool = True, device: Any = 0) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a block's name is text, not {type(name).__name__}")
        self.name = name
        self.print_result = print_result
        self.device = _gpu_memory.number_of(device)
        self.metric: Optional[Metric] = None
        self._block: Any = None
        self._reading: Optional[_gpu_memory.Reading] = None

    def __enter__(self) -> "track_performance":
        if self._block is not None:
            raise RuntimeError(f"the block {self.name!r} is already open; make a new track_performance for each")
        self._reading = _gpu_memory.peaks(self.device).begin() if _core.gpu_used() else None
        self._block = _shared_recorder().block(self.name)
        self._block.__enter__()
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        block, self._block = self._block, None
        if self._reading is not None:
            _gpu_memory.peaks(self.device).mark_end(self._reading)
        block.__exit__(kind, value, trace)
        if self._reading is not None:
            _gpu_memory.peaks(self.device).end(self._reading)
        elif _core.gpu_used():
            self._reading = _gpu_memory.peaks(self.device).late()
        self.metric = Metric(_shared_recorder().last(), self._reading, self.device)
        if self.print_result:
            print(self._text(kind), flush=True)

    def _text(self, failure: Any) -> str:
        metric = self.metric
        assert metric is not None
        text = (f"[Performance] {self.name}: {metric.duration_seconds:.3f}s, "
                f"CPU {megabytes(metric.cpu_delta_mb, '+.1f')}, GPU {megabytes(metric.gpu_delta_mb, '+.1f')}")
        if failure is not None:
            text += f", failed: {failure.__name__}"
        if not isinstance(metric.gpu_peak_mb, Missing):
            text += f"\n{'':14}GPU peak: {metric.gpu_peak_mb:.1f}MB"
        if metric.host_time_only:
            text += f"\n{'':14}host time only: GPU time {metric.device_text}"
        return text


def monitor_performance(name: Any = None, device: Any = 0, print_result: bool = True) -> Any:
    """Decorates a function so that every call is measured and printed, as track_performance does. Coroutines are
    measured until they return, generators from their first item to their end.

        @tare.monitor_performance("data processing")
        def process_batch(batch): …
    """
    if callable(name):
        return monitor_performance(None)(name)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"a block's name is text, not {type(name).__name__}")
    _gpu_memory.number_of(device)  # an invalid device is reported here, not at the first call

    def decorate(function: _F) -> _F:
        if not callable(function):
            raise TypeError(f"monitor_performance decorates a function, not {type(function).__name__}")
        shown = name if name is not None else getattr(function, "__qualname__", type(function).__name__)
        return _wrap(lambda: track_performance(shown, print_result, device), function)
    return decorate


def _wrap(block: Callable[[], Any], function: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        async def wrapped(*args: Any, **kwargs: Any) -> Any:
            with block():
                return await function(*args, **kwargs)
    elif inspect.isasyncgenfunction(function):
        async def wrapped(*args: Any, **kwargs: Any) -> Any:
            with block():
                async for item in function(*args, **kwargs):
                    yield item
    elif inspect.isgeneratorfunction(function):
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with block():
                return (yield from function(*args, **kwargs))
    else:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with block():
                return function(*args, **kwargs)
    return functools.wraps(function)(wrapped)
