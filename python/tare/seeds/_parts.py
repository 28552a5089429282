"""The measurements that a switch of PerformanceProfiler adds to a block: each begins before the block and ends after
it."""
import time
from typing import Any, Dict, List, Optional, Tuple

from .. import _core
from .._core import Missing
from ..torch._flops_calls import NAMES as MODULE_VALUES
from ..torch._flops_calls import Calls
from .metric import MB

Values = Dict[str, Any]
CUSTOM = "custom."


class Flops:
    """estimate_flops."""
    names = ("estimated_flops", "parameters")

    def begin(self, _: Any) -> Any:
        from ..torch._flops import Counting
        counting = Counting()
        counting.start()
        return counting

    def settle(self, counting: Any) -> None:
        counting.settle()

    def end(self, counting: Any, _: Any) -> Values:
        flops, parameters = counting.stop()
        return {"estimated_flops": flops, "parameters": parameters}


class ModuleFlops:
    """Without estimate_flops: operations of calls of torch's modules, most of them estimated from the first calls."""
    names = MODULE_VALUES
    by_name = True

    def begin(self, name: str) -> Any:
        calls = Calls(name)
        calls.start()
        return calls

    def is_settled(self, calls: Any) -> bool:
        return calls.is_settled()

    def settle(self, calls: Any) -> None:
        calls.settle()

    def end(self, calls: Any, _: Any) -> Values:
        return calls.stop()


class CpuEnergy:
    """The CPU's energy counters (RAPL), each of which wraps around at its own limit.

        begun = energy.read()
        …
        joules = energy.since(begun)
    """

    def __init__(self, root: str = "") -> None:
        self.counters = _core.energy_counters(root)

    def read(self) -> Any:
        """Joules of each counter; or Missing."""
        return _core.energy_joules(self.counters)

    def since(self, begun: Any) -> float:
        """Joules since a read()."""
        now = self.read()
        if isinstance(begun, Missing) or isinstance(now, Missing):
            return begun if isinstance(begun, Missing) else now
        return sum(end - start + (limit if end < start else 0)
                   for start, end, (_, limit) in zip(begun, now, self.counters))


class Energy:
    """track_carbon."""
    names = ("cpu_joules", "gpu_joules")

    def __init__(self, device: int = 0) -> None:
        self.cpu = CpuEnergy()
        self.device = device

    def begin(self, _: Any) -> Any:
        return self.cpu.read(), _core.gpu_joules(self.device)

    def end(self, state: Any, _: Any) -> Values:
        return {"cpu_joules": self.cpu.since(state[0]), "gpu_joules": _core.gpu_joules(self.device) - state[1]}


class Sampled:
    """Samples at an interval while blocks are open."""

    def __init__(self, interval: float, what: int) -> None:
        self.sampler = _core.Sampler(interval, what)

    def begin(self, _: Any) -> Any:
        begun = time.monotonic_ns()
        self.sampler.acquire()
        return begun

    def summary(self, begun: int) -> Values:
        """Of the readings since the block began."""
        self.sampler.release()
        return self.sampler.summary(begun)


class Degrees(Sampled):
    """A temperature, sampled while blocks are open."""

    def __init__(self, read: Any) -> None:
        self.read = read
        self.sampler = _core.Sampler(0.1, 0, read)  # the number that a sampler gets from Python

    def end(self, begun: int) -> Tuple[float, float]:
        """At the end, and the largest since the begin; or why not."""
        most, now = self.summary(begun)["gpu_memory"]["max"], self.read()
        return (now, max(most, now)) if most == most and now == now else (now, now)


def cpu_degrees(root: str = "") -> Degrees:
    """The hottest sensor of the CPU."""
    files = _core.cpu_sensors(root)
    return Degrees(lambda: _core.cpu_celsius(files))


class Temperature:
    """track_cpu_temp."""
    names = ("cpu_celsius", "cpu_max_celsius")

    def __init__(self) -> None:
        self.degrees = cpu_degrees()

    def begin(self, frame: Any) -> Any:
        return self.degrees.begin(frame)

    def end(self, begun: int, _: Any) -> Values:
        return dict(zip(self.names, self.degrees.end(begun)))


class GpuPart:
    """track_gpu."""
    names = ("peak_gpu_mb", "gpu_utilization_percent", "gpu_celsius", "gpu_max_celsius")

    def __init__(self, device: int = 0) -> None:
        self.device = device
        self.degrees = Degrees(lambda: _core.gpu_celsius(device))

    def begin(self, frame: Any) -> Any:
        from ..torch import _gpu_memory
        begun = self.degrees.begin(frame) if _core.gpu_used() else None  # otherwise there is nothing to sample
        return begun, time.time(), _gpu_memory.peaks(self.device).begin()

    def settle(self, state: Any) -> None:
        from ..torch import _gpu_memory
        _gpu_memory.peaks(self.device).mark_end(state[2])  # on the device's clock: before anything else is queued

    def end(self, state: Any, _: Any) -> Values:
        from ..torch import _gpu_memory
        sampled, begun, reading = state
        _gpu_memory.peaks(self.device).end(reading)
        now = _core.gpu_celsius(self.device)
        celsius = (now, now) if sampled is None else self.degrees.end(sampled)
        return {"peak_gpu_mb": reading.peak / MB, "gpu_utilization_percent": _core.gpu_load(self.device, begun),
                "gpu_celsius": celsius[0], "gpu_max_celsius": celsius[1], "device_time": reading}


def known(value: float) -> float:
    """The value, or the reason it is unavailable."""
    return value if value == value else Missing("no sample has it")


class DetailedMemory(Sampled):
    """detailed_memory."""
    names = ("average_ram_mb", "anonymous_mb", "file_mb", "memory_samples")

    def __init__(self, interval: float) -> None:
        super().__init__(interval, _core.MACHINE_RSS)

    def end(self, begun: int, _: Any) -> Values:
        summary = self.summary(begun)
        series = self.sampler.series(begun)
        timeline = [((at - begun) / 1e9, rss / MB) for at, rss in zip(series["at_ns"], series["rss"])]
        return {"average_ram_mb": known(summary["rss"]["average"]) / MB, "memory_samples": timeline, **_kinds()}


def _kinds() -> Values:
    """The resident memory of the program itself, and of mapped files."""
    found = _core.memory_kinds()
    return {"anonymous_mb": found["RssAnon"] / MB, "file_mb": found["RssFile"] / MB}


class System(Sampled):
    """track_system."""
    names = ("peak_cpu_percent", "peak_memory_percent")

    def __init__(self, interval: float) -> None:
        super().__init__(interval, _core.MACHINE_CPU | _core.MACHINE_DISK | _core.MACHINE_MEMORY)

    def end(self, begun: int, _: Any) -> Values:
        summary = self.summary(begun)
        return {"peak_cpu_percent": known(summary["cpu"]["max"]),
                "peak_memory_percent": known(summary["memory"]["max"])}


class Lines:
    """enable_line_profiling."""
    names = ("lines",)

    def begin(self, frame: Any) -> Any:
        from .. import lines
        return lines.LineProfile.around(frame).start()

    def end(self, profile: Any, result: Any) -> Values:
        profile.stop().whole_s = result.wall_s + result.excluded_s  # it began before the block, and ends after it
        return {"lines": profile}


class Hook:
    """add_hook: user-defined measurements around a block."""

    def __init__(self, name: str, begin: Any, finish: Any) -> None:
        self.names = (CUSTOM + name,)
        self._begin, self._finish = begin, finish

    def begin(self, _: Any) -> Any:
        return self._begin() if self._begin is not None else None

    def end(self, state: Any, _: Any) -> Values:
        value = self._finish(state) if self._begin is not None else self._finish()
        if isinstance(value, dict):
            return {f"{self.names[0]}.{key}": float(one) for key, one in value.items()}
        return {self.names[0]: value if isinstance(value, Missing) else float(value)}


def custom_of(values: Any) -> Values:
    """The values of the hooks."""
    return {name[len(CUSTOM):]: value for name, value in (values or {}).items() if name.startswith(CUSTOM)}


def begin_all(parts: List[Any], frame: Any, name: str) -> List[Tuple[Any, Any, Any]]:
    """Begins all parts. An error in a part must not stop the program: its values are missing, with the reason."""
    states = []
    for part in parts:
        try:
            states.append((part, part.begin(name if hasattr(part, "by_name") else frame), None))
        except Exception as error:
            states.append((part, None, error))
    return states


def are_settled(states: List[Tuple[Any, Any, Any]]) -> bool:
    """Whether settling can wait until the block has ended."""
    for part, state, error in states:
        if error is None and hasattr(part, "settle") and not (hasattr(part, "is_settled") and part.is_settled(state)):
            return False
    return True


def settle_all(states: List[Tuple[Any, Any, Any]]) -> None:
    """Right before the block ends: parts that cost time inside it exclude the time they have not excluded yet."""
    for part, state, error in states:
        if error is None and hasattr(part, "settle"):
            part.settle(state)


def end_all(states: List[Tuple[Any, Any, Any]], result: Any) -> Values:
    """Ends them, the last first."""
    values: Values = {}
    for part, state, error in reversed(states):
        try:
            if error is None:
                values.update(part.end(state, result))
                continue
        except Exception as caught:
            error = caught
        missing = Missing(f"{type(error).__name__}: {error}")
        values.update({name: missing for name in part.names})
    return values


# ---- all blocks of a name -----------------------------------------------------------------------------------------

_SUMS = frozenset(("estimated_flops", "module_calls", "module_calls_counted", "cpu_joules", "gpu_joules"))
_MEANS = frozenset(("gpu_utilization_percent", "average_ram_mb"))
_LAST = frozenset(("lines", "memory_samples", "anonymous_mb", "file_mb", "cpu_celsius", "gpu_celsius"))


class DeviceSum:
    """Device time of several blocks: each is known once the device has reached the block's end."""
    PENDING_MAX = 10000

    def __init__(self) -> None:
        self.total = 0.0
        self.missing: Optional[Missing] = None
        self.pending: List[Any] = []

    def add(self, reading: Any) -> None:
        self.pending.append(reading)
        if len(self.pending) > self.PENDING_MAX:
            self._take(self.pending.pop(0).seconds())

    def _take(self, seconds: float) -> None:
        if isinstance(seconds, Missing):
            self.missing = seconds
        else:
            self.total += seconds

    def seconds(self) -> float:
        """The sum; Missing where one of them is, or is not known yet."""
        while self.pending:
            seconds = self.pending[0].seconds()
            if isinstance(seconds, Missing) and self.pending[0].is_pending():
                return seconds
            self._take(seconds)
            del self.pending[0]
        return self.missing if self.missing is not None else self.total


class Totals:
    """The parts' values of all blocks of a name: sums, largest ones, means over time, or the last ones."""

    def __init__(self) -> None:
        self.values: Values = {}
        self.weights: Dict[str, float] = {}

    def add(self, values: Values, seconds: float) -> None:
        for name, value in values.items():
            if name == "device_time":
                self.values.setdefault(name, DeviceSum()).add(value)
            elif name not in self.values or name in _LAST:
                self.values[name] = value
                self.weights[name] = seconds
            elif name in _SUMS:
                self.values[name] = self.values[name] + value  # a sum with a part missing is missing
            else:
                self._combine(name, value, seconds)

    def _combine(self, name: str, value: Any, seconds: float) -> None:
        before = self.values[name]
        if isinstance(value, Missing):
            return
        if isinstance(before, Missing):
            self.values[name], self.weights[name] = value, seconds
        elif name in _MEANS or name.startswith(CUSTOM):
            weight = self.weights[name] + seconds
            if weight > 0:
                self.values[name] = (before * self.weights[name] + value * seconds) / weight
            self.weights[name] = weight
        elif value > before:
            self.values[name] = value
