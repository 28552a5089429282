"""torch's own profiler, used for measurements by Tare: starts it without log output, and reads its memory peak."""
import contextlib
import inspect
import itertools
import os
from typing import Any, Iterator, List, Optional, Tuple


def another_active() -> bool:
    """Whether the program runs torch's profiler itself: only one can run, and a second one would end it."""
    import torch
    return bool(getattr(torch.autograd, "_profiler_enabled", lambda: False)())


@contextlib.contextmanager
def own_profile(activities: Any, **more: Any) -> Iterator[Any]:
    """torch's profiler for a measurement of Tare: the lines that it logs when it starts and stops are not printed."""
    from torch import profiler as native
    level = "KINETO_LOG_LEVEL"
    quiet = level not in os.environ
    if quiet:
        os.environ[level] = "99"
    if "acc_events" in inspect.signature(native.profile).parameters:
        more["acc_events"] = True  # without it some versions warn that a next cycle would clear these events
    try:
        with native.profile(activities=activities, **more) as reported:
            yield reported
    finally:
        if quiet:
            os.environ.pop(level, None)


def memory_changes(profiler: Any) -> List[Tuple[int, int]]:
    """(time in ns, bytes) of every allocation and free, in order; AttributeError if torch does not report them."""
    events = profiler.profiler.kineto_results.events()  # not a public interface
    return sorted(((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"),
                  key=lambda one: one[0])


def highest(changes: List[Tuple[int, int]]) -> int:
    """The peak of the live bytes, above the initial level."""
    return max(0, *itertools.accumulate(change for _, change in changes)) if changes else 0


def peak_bytes(profiler: Any) -> Optional[int]:
    """The peak memory of tensors, above the initial level; None if torch does not report it."""
    try:
        changes = memory_changes(profiler)
    except AttributeError:
        return None
    return highest(changes) if changes else None


def is_of_device(event: Any) -> bool:
    """Whether the row is of something that ran on a device: a kernel, a copy."""
    kind = getattr(event, "device_type", None)
    return kind is not None and getattr(kind, "name", "CPU") != "CPU"


def of_device(event: Any, form: str) -> float:
    """A figure of the device, by its name in this version of torch; 0 without one."""
    for name in ("device", "cuda"):  # as it was called before torch 2.4
        value = getattr(event, form.format(name), None)
        if value is not None:
            return float(value)
    return 0.0
