"""One finished block, and the formatting of values: as JSON, and with their unit."""
import collections
import dataclasses
import math
import os
from typing import Any, Callable, Dict, Mapping, Optional, Union

from .._core import Missing
from ..torch import _gpu_memory

MB = 1024.0 * 1024.0
GB = 1024.0 * MB
COLUMNS = ("operation", "duration_seconds", "cpu_delta_mb", "gpu_delta_mb", "gpu_peak_mb", "device_seconds")

PathLike = Union[str, "os.PathLike[str]"]


def put(target: Dict[str, Any], name: str, value: Any) -> None:
    """A value for JSON: null and the reason if it is missing."""
    if isinstance(value, Missing):
        target[name] = None
        target[name + "_reason"] = value.reason
    else:
        target[name] = None if isinstance(value, float) and not math.isfinite(value) else value


def plain(value: Any) -> Any:
    """A value of this package for JSON: None for a missing value, with the reason beside it under the name and
    "_reason". Without this, json.dumps() writes missing values as NaN, which is not JSON.

        json.dumps(tare.plain(profiler.data_loading_profiler.profile_dataloader(loader)), allow_nan=False)
    """
    return _walk(value, None, "")


def plain_apart(value: Any, reasons: Dict[str, str], path: str = "") -> Any:
    """The same, with the reasons under the paths of their values in `reasons`."""
    return _walk(value, reasons, path)


def _walk(value: Any, reasons: Optional[Dict[str, str]], path: str) -> Any:
    if reasons is not None and dataclasses.is_dataclass(value):  # its own to_dict() has a place for reasons
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        out: Dict[str, Any] = {}
        for name, one in value.items():
            if reasons is None and isinstance(one, float):
                put(out, str(name), one)
            else:
                out[str(name)] = _walk(one, reasons, f"{path}.{name}" if path else str(name))
        return out
    for method in ("as_dict", "to_dict"):
        if callable(getattr(value, method, None)):
            return _walk(getattr(value, method)(), reasons, path)
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return [_walk(one, reasons, f"{path}[{index}]") for index, one in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        if reasons is not None:
            reasons[path] = (value.reason if isinstance(value, Missing) else
                             "not a number" if value != value else "infinite")
        return None
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def megabytes(value: float, form: str = ".1f") -> str:
    """"23.1MB", or n/a without a unit."""
    return "n/a" if isinstance(value, Missing) else f"{value:{form}}MB"


class Metric:
    """One finished block. Memory is in MB; what could not be measured is a `tare.Missing`.

        for metric in monitor.get_metrics():
            print(metric.operation, metric.duration_seconds, metric.cpu_delta_mb)
    """
    __slots__ = ("_result", "_reading", "_device")

    def __init__(self, result: Any, reading: Optional[_gpu_memory.Reading] = None, device: int = 0) -> None:
        self._result = result
        self._reading = reading
        self._device = device

    @property
    def operation(self) -> str:
        return self._result.name

    @property
    def duration_seconds(self) -> float:
        """Host time: does not include work that a GPU does later (see device_seconds)."""
        return self._result.wall_s

    @property
    def self_seconds(self) -> float:
        """Without the blocks inside it."""
        return self._result.self_s

    @property
    def device_seconds(self) -> float:
        """Time between the block's begin and end on the GPU's clock; missing until the GPU has reached the end."""
        return self._of_device(lambda reading: reading.seconds())

    @property
    def host_time_only(self) -> bool:
        """Whether duration_seconds lacks time on the GPU: the GPU took longer, or its time is unknown."""
        if self._reading is None or not self._reading.used:
            return False
        seconds = self.device_seconds
        return isinstance(seconds, Missing) or seconds > self.duration_seconds

    @property
    def device_text(self) -> str:
        """device_seconds with its unit, or why it is missing."""
        seconds = self.device_seconds
        return f"n/a ({seconds.reason})" if isinstance(seconds, Missing) else f"{seconds:.3f}s"

    @property
    def cpu_delta_mb(self) -> float:
        """Growth of the process's memory."""
        return self._result.rss_delta / MB

    @property
    def cpu_peak_mb(self) -> float:
        """Peak resident memory of the process in the block; cpu_peak_note states whether it is a lower bound."""
        return self._result.rss_peak / MB

    @property
    def cpu_peak_note(self) -> Optional[str]:
        """Why cpu_peak_mb is a lower bound, and its upper bound; None: it is exact."""
        return self._result.rss_peak_note

    @property
    def gpu_delta_mb(self) -> float:
        return self._of_device(lambda reading: reading.delta / MB)

    @property
    def gpu_peak_mb(self) -> float:
        """The block's own peak."""
        return self._of_device(lambda reading: reading.peak / MB)

    @property
    def failed(self) -> bool:
        """Whether an exception left the block."""
        return self._result.failed

    @property
    def started(self) -> float:
        """As time.time()."""
        return self._result.started

    def _of_device(self, what: Callable[[_gpu_memory.Reading], float]) -> float:
        return Missing(_gpu_memory.why_not(self._device)) if self._reading is None else what(self._reading)

    def as_dict(self) -> Dict[str, Any]:
        """As a dict for JSON: null and a reason for missing values."""
        out: Dict[str, Any] = {"operation": self.operation}
        for name in COLUMNS[1:]:
            put(out, name, getattr(self, name))
        out["failed"] = self.failed
        return out

    def __repr__(self) -> str:
        return f"<tare.Metric {self.operation!r}: {self.duration_seconds:.6f} s>"
