"""A drop-in replacement for torch.profiler: `import tare.profiler as profiler`; the program needs no other change.

Operators are recorded by Tare, in C. What only torch's profiler can measure (device times; shapes, memory, stacks and
FLOPs) is recorded by torch's profiler, and tables, events and traces are then torch's own."""
import functools
import os
import sys
from typing import Any, Callable, Optional

from .._core import span as _span
from . import _recording
from ._averages import Average, EventList  # noqa: F401
from ._profile import profile

try:
    from torch.profiler import ProfilerAction, ProfilerActivity
except ImportError:
    import enum

    from ..config import ProfilerAction  # type: ignore[assignment]  # noqa: F401

    class ProfilerActivity(enum.Enum):  # type: ignore[no-redef]
        """What is recorded."""
        CPU = 0
        XPU = 1
        CUDA = 2

__all__ = ["EventList", "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule",
           "supported_activities", "tensorboard_trace_handler", "trace_handler"]


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], Any]:
    """Which steps are recorded: after skip_first steps, `repeat` cycles (0: no limit) of wait, warmup and active
    steps. Steps of the warm-up are not recorded.

        schedule(wait=1, warmup=1, active=3, repeat=2)
    """
    given = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
    for name, value in given.items():
        least = 1 if name == "active" else 0
        if not isinstance(value, int) or value < least:
            raise ValueError("%s is a whole number of %d or more, not %r" % (name, least, value))
    if ProfilerAction.__module__.startswith("torch."):
        from torch.profiler import schedule as torchs
        more = {"skip_first_wait": skip_first_wait} if skip_first_wait else {}
        return torchs(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first, **more)
    length = wait + warmup + active

    def action(step: int) -> Any:
        if step < 0:
            raise ValueError("a step's number is 0 or more, not %d" % step)
        if step < skip_first:
            return ProfilerAction.NONE
        step = step - skip_first + (wait if skip_first_wait else 0)
        place = step % length
        if (repeat and step // length >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE
    return action


def _torch_records() -> bool:
    """Whether torch's own profiler is running; it records blocks only if they are reported to it."""
    switches = sys.modules.get("torch.autograd.profiler")
    return bool(getattr(switches, "_is_profiler_enabled", False))


class record_function:
    """A named block, shown beside the operators; also a decorator.

        with record_function("data_preprocessing"):
            data = preprocess(batch)
    """
    __slots__ = ("name", "args", "_span", "_torchs")

    def __init__(self, name: str, args: Optional[str] = None) -> None:
        self.name, self.args, self._span, self._torchs = name, args, _span(name), None

    def __enter__(self) -> "record_function":
        if _recording.torch_listens or _torch_records():
            _recording.blocks_in_torchs = True
            from torch.profiler import record_function as torchs
            self._torchs = torchs(self.name, self.args)
            self._torchs.__enter__()
        self._span.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._span.__exit__(None, None, None)
        if self._torchs is not None:
            self._torchs.__exit__(*exception)
            self._torchs = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def named(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)
        return named


def supported_activities() -> Any:
    """The activities that torch can record here."""
    import torch.profiler
    return torch.profiler.supported_activities()


def _file_in(folder: str, worker: Optional[str], ending: str) -> str:
    import socket
    import time
    os.makedirs(folder, exist_ok=True)
    worker = worker or "%s_%d" % (socket.gethostname(), os.getpid())
    return os.path.join(folder, "%s.%d%s" % (worker, time.time_ns(), ending))


def tensorboard_trace_handler(dir_name: str, worker_name: Optional[str] = None, use_gzip: bool = False,
                              use_python_export: bool = False) -> Callable[[Any], Any]:
    """For on_trace_ready: writes each cycle to a file in this folder, named as TensorBoard expects.

        profile(on_trace_ready=tensorboard_trace_handler("runs/profiler"))
    """
    def handle(prof: Any) -> None:
        prof.export_chrome_trace(_file_in(dir_name, worker_name, ".pt.trace.json" + (".gz" if use_gzip else "")))
    return handle


def trace_handler(dir_name: str, worker_name: Optional[str] = None) -> Callable[[Any], Any]:
    """For on_trace_ready: writes each cycle as a Tare trace, which `tare report` opens.

        profile(on_trace_ready=trace_handler("runs/profiler"))
    """
    def handle(prof: Any) -> None:
        prof.export_trace(_file_in(dir_name, worker_name, ".tare"))
    return handle


def __getattr__(name: str) -> Any:
    """All other names of torch.profiler are torch's own: itt, ExecutionTraceObserver, …"""
    if name.startswith("__"):
        raise AttributeError("module 'tare.profiler' has no attribute %r" % name)
    import torch.profiler
    try:
        return getattr(torch.profiler, name)
    except AttributeError:
        raise AttributeError("module 'tare.profiler' has no attribute %r" % name) from None
