"""PerformanceProfiler: time, memory, machine and compute of named blocks."""
import json
import sys
import threading
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, TypeVar, Union

from .. import _check, _core
from .._core import Aggregate, Missing, Recorder, Result
from ..torch._flops import running_task
from . import _parts
from ._compare import Comparison, csv_of, deliver, frame_of
from ._metrics import (
    CarbonMetrics, ComputeMetrics, EnergyMetrics, MemoryMetrics, Metrics, NetworkMetrics, SystemMetrics,
    SystemReport, SystemStats, TemperatureMetrics, TimingMetrics)
from .metric import MB, plain_apart

_F = TypeVar("_F", bound=Callable[..., Any])

OTHER_NAMES = "(other names)"
_NAMES_MAX = 4096
_HEAVY_MAX = 64  # number of blocks whose lines and timelines are kept
_FORMAT_VERSION = 1
_core.machine_now()  # the first call then covers the time since the import

# Which switch each value of a part needs.
_SWITCHES = {
    "estimated_flops": "estimate_flops", "parameters": "estimate_flops",
    "module_calls": "estimate_flops", "module_calls_counted": "estimate_flops", "peak_gpu_mb": "track_gpu",
    "gpu_utilization_percent": "track_gpu", "gpu_celsius": "track_gpu", "gpu_max_celsius": "track_gpu",
    "device_time": "track_gpu", "cpu_joules": "track_carbon",
    "gpu_joules": "track_carbon", "cpu_celsius": "track_cpu_temp", "cpu_max_celsius": "track_cpu_temp",
    "average_ram_mb": "detailed_memory", "anonymous_mb": "detailed_memory", "file_mb": "detailed_memory",
    "memory_samples": "detailed_memory", "peak_cpu_percent": "track_system", "peak_memory_percent": "track_system",
    "lines": "enable_line_profiling",
}

_ROW = ("name", "started", "wall_s", "self_s", "excluded_s", "cpu_s", "process_cpu_s", "rss_before", "rss_after",
        "rss_peak", "rss_peak_note", "samples", "throughput", "cpu_percent", "process_cpu_percent", "iowait_percent",
        "depth", "parent", "thread", "task", "failed")


def environment() -> Dict[str, Any]:
    """The platform of saved results, for comparing them with those of another one.

        environment()["machine"]
    """
    import os
    import platform
    torch = sys.modules.get("torch")
    return {"python": platform.python_version(), "machine": platform.machine(), "system": platform.platform(),
            "cpus": os.cpu_count(), "torch": getattr(torch, "__version__", None)}


class _Profiled:
    """A block with the measurements of the switches. May be entered again, and from several threads at once."""
    __slots__ = ("_profiler", "_block", "_open")

    def __init__(self, profiler: "PerformanceProfiler", block: Any) -> None:
        self._profiler = profiler
        self._block = block
        self._open: List[Tuple[Tuple[int, int], Any]] = []

    @property
    def name(self) -> str:
        return self._block.name

    @property
    def samples(self) -> Optional[float]:
        return self._block.samples

    @samples.setter
    def samples(self, value: Optional[float]) -> None:
        self._block.samples = value

    @property
    def result(self) -> Optional[Result]:
        return self._block.result

    def __enter__(self) -> "_Profiled":
        begun = _core.measuring()
        where = _where()
        states = _parts.begin_all(self._profiler._parts, sys._getframe(1), self._block.name)
        self._open.append((where, states))
        _core.exclude_since(begun)  # from the blocks around this one
        self._block.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        begun, states = None, None
        if len(self._open) != 1 or not _parts.are_settled(self._open[0][1]):
            begun, states = _core.measuring(), self._states()
            _parts.settle_all(states)
            _core.exclude_since(begun)
        self._block.__exit__(*exception)
        begun = _core.measuring()
        if states is None:
            states = self._open.pop(0)[1]  # another thread may have entered meanwhile
            _parts.settle_all(states)
        result = self._block.result
        self._profiler._add_extra(result, _parts.end_all(states, result))
        _core.exclude_since(begun)

    def _states(self) -> Any:
        """Removes and returns the state of the block that this thread or task entered last."""
        where = _where()
        at = next((i for i in reversed(range(len(self._open))) if self._open[i][0] == where), -1)
        return self._open.pop(at)[1]

    def __call__(self, function: _F) -> _F:
        from .._wrap import wrap
        return wrap(self, function)


_loaders: List[Any] = [None]  # torch's module whose batches are counted


def _count_loaded_samples() -> None:
    from ..torch._state import count_loaded_samples
    if count_loaded_samples():
        _loaders[0] = sys.modules.get("torch.utils.data.dataloader")


def _where() -> Tuple[int, int]:
    return threading.get_ident(), id(running_task())


class PerformanceProfiler:
    """Measures named blocks of code.

    Time, CPU time and memory are always measured; switches add further measurements:
    `track_gpu` GPU memory, load and temperature; `track_carbon` joules, and grams of CO2 at `carbon_intensity` (grams
    per kWh; reading a GPU's energy takes about 4 ms, before and after the block);
    `detailed_memory` memory every `memory_interval` seconds and what it consists of; `track_cpu_temp` degrees;
    `track_network` bytes; `track_system` the machine every `system_interval` seconds; `enable_line_profiling` time of
    every line; `estimate_flops` operations of torch, every operator as it runs. By default (None) they are estimated
    from calls of torch modules: the first call with given argument shapes is counted until the next call, with its
    backward pass, and later ones are assumed to be equal; False disables that. A value whose switch is off is Missing
    with that reason. The cost of a switch inside a block is subtracted from its times (`timing.excluded_s`).

    A block's peak memory is exact if it is above the earlier peak of the process, else it is sampled every 5 ms and a
    lower bound (`memory.peak_ram_note`). `reset_peak=True` makes every peak exact by resetting the kernel's high-water
    mark; it also lowers the ru_maxrss that wait4 and /usr/bin/time report for the whole process.

        profiler = tare.PerformanceProfiler()
        with profiler.profile("training", samples=len(data)):
            train(data)
        metrics = profiler.get_metrics()
        print(f"{metrics.timing.wall_time_s:.3f} s, {metrics.memory.peak_ram_mb:.1f} MB, {metrics.throughput:.0f}/s")
    """

    def __init__(self, track_gpu: bool = False, track_carbon: bool = False, detailed_memory: bool = False,
                 memory_interval: float = 0.1, track_cpu_temp: bool = False, track_network: bool = False,
                 track_system: bool = False, system_interval: float = 1.0, enable_line_profiling: bool = False,
                 estimate_flops: Optional[bool] = None, *, carbon_intensity: float = 475.0, device: Any = 0,
                 keep: int = 10000, reset_peak: bool = False) -> None:
        memory_interval = _check.seconds(memory_interval, "memory_interval")
        system_interval = _check.seconds(system_interval, "system_interval")
        if not isinstance(carbon_intensity, (int, float)) or not carbon_intensity >= 0:
            raise ValueError(f"carbon_intensity is grams of CO2 a kWh, 0 or more, not {carbon_intensity!r}")
        from ..torch._gpu_memory import number_of
        number = number_of(device)
        self.carbon_intensity = float(carbon_intensity)
        self.device = number
        self._switches = {
            "track_gpu": track_gpu, "track_carbon": track_carbon, "detailed_memory": detailed_memory,
            "track_cpu_temp": track_cpu_temp, "track_network": track_network, "track_system": track_system,
            "enable_line_profiling": enable_line_profiling, "estimate_flops": estimate_flops is None or estimate_flops}
        system = _core.MACHINE_CPU | _core.MACHINE_MEMORY
        system |= _core.MACHINE_DISK if track_system else 0
        system |= _core.MACHINE_NETWORK if track_network else 0
        self.recorder = Recorder(keep=keep, system=system, reset_peak=reset_peak)
        self._system = _parts.System(system_interval) if track_system else None
        self._parts: List[Any] = [part for part in (
            self._system,
            _parts.DetailedMemory(memory_interval) if detailed_memory else None,
            _parts.Temperature() if track_cpu_temp else None,
            _parts.Energy(number) if track_carbon else None,
            _parts.GpuPart(number) if track_gpu else None,
            _parts.Flops() if estimate_flops else _parts.ModuleFlops() if estimate_flops is None else None,
            _parts.Lines() if enable_line_profiling else None,  # begins last: it measures none of the others
        ) if part is not None]
        self._by_modules = estimate_flops is None
        self._totals: Dict[str, _parts.Totals] = {}
        self._heavy: List[Dict[str, Any]] = []
        self._lock = threading.Lock()

    # ---- measuring ------------------------------------------------------------------------------------------------

    def profile(self, name: str, samples: Optional[float] = None) -> Any:
        """A block to measure, as a context manager or a decorator; nested, in any thread or task.

            with profiler.profile("epoch"):
                with profiler.profile("forward", samples=32) as block:
                    output = model(batch)
        """
        if samples is None and sys.modules.get("torch.utils.data.dataloader") is not _loaders[0]:
            _count_loaded_samples()
        block = self.recorder.block(name, False, samples)
        if not self._parts or ("torch.nn.modules.module" not in sys.modules
                               and all(hasattr(part, "by_name") for part in self._parts)):
            return block
        return _Profiled(self, block)

    def add_hook(self, name: str, begin: Optional[Callable[[], Any]] = None, *,
                 end: Callable[..., Any]) -> None:
        """Adds a custom measurement around every block from now on: begin() is called before it, end(result of begin)
        after it (without begin: end()). The number that end returns, or a dict of numbers, is `metrics.custom[name]`,
        for several blocks their mean over time. If a hook raises, only its value is missing.

            profiler.add_hook("queue", lambda: queue.qsize(), end=lambda before: queue.qsize() - before)
            profiler.get_metrics("training").custom["queue"]
        """
        if not isinstance(name, str) or not name:
            raise TypeError("a hook's name is text")
        for what, one in (("begin", begin), ("end", end)):
            if not callable(one) and not (what == "begin" and one is None):
                raise TypeError(f"{what} is a function, not {type(one).__name__}")
        if any(_parts.CUSTOM + name in part.names for part in self._parts):
            raise ValueError(f"there is a hook {name!r} already")
        self._parts.insert(0, _parts.Hook(name, begin, end))  # ends last: it measures none of the others' work

    def _add_extra(self, result: Result, values: Dict[str, Any]) -> None:
        result.extra = values
        with self._lock:
            if "lines" in values or "memory_samples" in values:
                self._heavy.append(values)
            if len(self._heavy) > _HEAVY_MAX:
                for name in ("lines", "memory_samples"):
                    self._heavy[0].pop(name, None)
                del self._heavy[0]
            name = result.name
            if name not in self._totals and len(self._totals) >= _NAMES_MAX:
                name = OTHER_NAMES
            self._totals.setdefault(name, _parts.Totals()).add(values, result.wall_s)

    def clear(self) -> None:
        """Discards all finished blocks.

            profiler.clear()
        """
        self.recorder.clear()
        with self._lock:
            self._totals.clear()
            self._heavy.clear()

    # ---- results --------------------------------------------------------------------------------------------------

    def get_metrics(self, name: Optional[str] = None) -> Metrics:
        """The last finished block of this thread or task; with a name, all finished blocks of that name together.

            profiler.get_metrics().timing.wall_time_s
            profiler.get_metrics("inference").timing.p95_s
        """
        if name is None:
            result = self.recorder.last()
            if result is None:
                raise RuntimeError("no profiled block of this thread or task has ended yet")
            return self._of_result(result)
        aggregate = self._find(name)
        totals = self._totals.get(name)
        newest = self.recorder.results(name)[-1:]
        return self._of_aggregate(aggregate, totals.values if totals else {}, newest[0] if newest else None)

    def _find(self, name: str) -> Aggregate:
        try:
            return self.recorder.aggregate(name)
        except KeyError:
            raise KeyError(f"no block named {name!r} has ended{_check.near(name, self.recorder.names())}") from None

    def _off(self, switch: str) -> Missing:
        return Missing(f"{switch}=False")

    def _extra(self, values: Optional[Dict[str, Any]], name: str) -> Any:
        switch = _SWITCHES[name]
        if not self._switches[switch]:
            return self._off(switch)
        if not values and self._by_modules and switch == "estimate_flops":
            return Missing("torch was not loaded when the block began")
        if name.startswith("module_calls") and not self._by_modules:
            return Missing("every operator was counted")
        return (values or {}).get(name, Missing("not measured for this block, or no longer kept"))

    def _device_time(self, values: Optional[Dict[str, Any]]) -> float:
        """Time on the GPU's clock, if it is known now; else why the block has host time only."""
        if not self._switches["track_gpu"]:
            return Missing("host time only: work queued on a GPU is not in these times; track_gpu=True reads its clock"
                           if _core.gpu_used() else "track_gpu=False")
        reading = (values or {}).get("device_time")
        return reading.seconds() if reading is not None else self._extra(values, "device_time")

    def _of_result(self, result: Result) -> Metrics:
        wall = result.wall_s
        timing = TimingMetrics(wall, result.cpu_s, result.process_cpu_s, result.self_s, self._device_time(result.extra),
                               result.excluded_s, 1, int(result.failed), wall, wall, wall, wall, wall, wall)
        return self._metrics(result, timing, result.extra, result, wall)

    def _of_aggregate(self, sums: Aggregate, extra: Dict[str, Any], newest: Optional[Result]) -> Metrics:
        timing = TimingMetrics(sums.total_s, sums.cpu_s, sums.process_cpu_s, sums.self_s, self._device_time(extra),
                               sums.excluded_s, sums.count, sums.failed, sums.mean_s, sums.min_s, sums.max_s,
                               sums.p50_s, sums.p95_s, sums.p99_s)
        return self._metrics(sums, timing, extra, newest, sums.total_s)

    def _metrics(self, of: Union[Result, Aggregate], timing: TimingMetrics, extra: Optional[Dict[str, Any]],
                 newest: Optional[Result], wall: float) -> Metrics:
        flops, parameters = self._extra(extra, "estimated_flops"), self._extra(extra, "parameters")
        unknown, still = Missing("the block is no longer kept"), Missing("the clock did not move")
        return Metrics(
            name=of.name,
            memory=MemoryMetrics(
                of.rss_peak / MB, self._extra(extra, "peak_gpu_mb"),
                newest.rss_before / MB if newest else unknown, newest.rss_after / MB if newest else unknown,
                of.rss_delta / MB, self._extra(extra, "average_ram_mb"), self._extra(extra, "anonymous_mb"),
                self._extra(extra, "file_mb"), of.rss_peak_note),
            timing=timing,
            compute=ComputeMetrics(
                flops, flops / parameters, flops / wall if wall > 0 else still, parameters,
                self._extra(extra, "gpu_utilization_percent"), bool(getattr(flops, "at_least", False)),
                tuple(getattr(flops, "not_counted", ())), self._extra(extra, "module_calls"),
                self._extra(extra, "module_calls_counted")),
            system=SystemMetrics(
                of.cpu_percent, of.process_cpu_percent,
                of.iowait_percent, of.disk_percent if self._switches["track_system"] else self._off("track_system"),
                newest.memory_percent if newest else unknown, self._extra(extra, "peak_cpu_percent"),
                self._extra(extra, "peak_memory_percent")),
            throughput=of.throughput,
            samples=of.samples,
            temperature=TemperatureMetrics(
                self._extra(extra, "cpu_celsius"), self._extra(extra, "cpu_max_celsius"),
                self._extra(extra, "gpu_celsius"), self._extra(extra, "gpu_max_celsius")),
            network=self._network(of),
            custom=_parts.custom_of(extra),
            **self._energy(extra))

    def _network(self, of: Union[Result, Aggregate]) -> NetworkMetrics:
        if not self._switches["track_network"]:
            return NetworkMetrics(self._off("track_network"), self._off("track_network"))
        return NetworkMetrics(of.received, of.sent)

    def _energy(self, extra: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        parts = {"CPU package": self._extra(extra, "cpu_joules"), "GPU": self._extra(extra, "gpu_joules")}
        known = {name: value for name, value in parts.items() if not isinstance(value, Missing)}
        total: float = sum(known.values()) if known else next(iter(parts.values()))
        grams = total / 3.6e6 * self.carbon_intensity
        return {"energy": EnergyMetrics(parts["CPU package"], parts["GPU"], total, tuple(known)),
                "carbon": CarbonMetrics(grams, self.carbon_intensity)}

    def get_timing_breakdown(self) -> Dict[str, float]:
        """Seconds by name without the time of inner blocks, the largest first: they add up to the time in all blocks.

            for operation, seconds in profiler.get_timing_breakdown().items():
                print(operation, seconds)
        """
        times = {name: self.recorder.aggregate(name).self_s for name in self.recorder.names()}
        return dict(sorted(times.items(), key=lambda item: -item[1]))

    def get_line_profile(self, name: Optional[str] = None) -> Any:
        """Time by line of the last finished block (of a name): `line_number`, `time_percent`, `time_s`, `hits`,
        `source`. Needs `enable_line_profiling=True`.

            slow = [line for line in profiler.get_line_profile() if line.time_percent > 10]
        """
        if not self._switches["enable_line_profiling"]:
            raise RuntimeError("lines are not profiled: PerformanceProfiler(enable_line_profiling=True) does")
        if name is None:
            result = self.recorder.last()
            if result is None:
                raise RuntimeError("no profiled block of this thread or task has ended yet")
            profile = self._extra(result.extra, "lines")
        else:
            self._find(name)
            totals = self._totals.get(name)
            profile = self._extra(totals.values if totals else None, "lines")
        if isinstance(profile, Missing):
            raise RuntimeError(f"no lines: {profile.reason}")
        return profile.stats()

    # ---- now ------------------------------------------------------------------------------------------------------

    def get_current_memory(self) -> float:
        """Resident memory of this process now, in MB.

            before = profiler.get_current_memory()
        """
        return _core.rss() / MB

    def get_current_gpu_memory(self) -> float:
        """The share of the GPU's memory in use now by all processes, between 0 and 1: 1 - free/total.

            if profiler.get_current_gpu_memory() > 0.9:
                print("the GPU is nearly full")
        """
        if not self._switches["track_gpu"]:
            return self._off("track_gpu")
        from ..torch._gpu_memory import fraction_used
        return fraction_used(self.device)

    def get_current_system_stats(self) -> SystemStats:
        """The machine between the last call of this method and now.

            stats = profiler.get_current_system_stats()
            print(stats.cpu_percent, stats.memory_percent, stats.disk_io_percent)
        """
        cpu, waiting, disk, memory = _core.machine_now()
        return SystemStats(cpu, memory, disk, waiting)

    def get_system_report(self) -> SystemReport:
        """The machine while blocks ran, over all samples. Needs `track_system=True`.

            print(profiler.get_system_report().peak_memory_percent)
        """
        if self._system is None:
            off = self._off("track_system")
            return SystemReport(off, off, off, off, off, off, 0)
        sampler = self._system.sampler
        summary = sampler.summary()
        values = [_parts.known(summary[name][field]) for name in ("cpu", "memory", "disk")
                  for field in ("average", "max")]
        return SystemReport(*values, samples=sampler.count)

    def get_memory_timeline(self) -> List[Tuple[float, float]]:
        """(seconds since it began, MB) of the last finished block. Needs `detailed_memory=True`.

            seconds, megabytes = zip(*profiler.get_memory_timeline())
        """
        if not self._switches["detailed_memory"]:
            raise RuntimeError("memory is not sampled: PerformanceProfiler(detailed_memory=True) does")
        result = self.recorder.last()
        if result is None:
            raise RuntimeError("no profiled block of this thread or task has ended yet")
        return list((result.extra or {}).get("memory_samples", ()))

    # ---- tables ---------------------------------------------------------------------------------------------------

    def compare(self, names: Optional[Iterable[str]] = None) -> Comparison:
        """Compares names: architectures, batch sizes, learning rates.

            print(profiler.compare(["mlp_training", "cnn_training"]))
        """
        chosen = list(names) if names is not None else self.recorder.names()
        return Comparison([self.get_metrics(name) for name in chosen])

    def _rows(self) -> List[Dict[str, Any]]:
        return [{name: getattr(result, name) for name in _ROW} for result in self.recorder.results()]

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each kept block; needs pandas.

            profiler.to_pandas().groupby("name").wall_s.describe()
        """
        return frame_of(self._rows(), _ROW)

    def to_json(self, path: Optional[str] = None) -> str:
        """All kept blocks and all names as JSON text; with a path, also writes it there.

            profiler.to_json("run.json")
        """
        reasons: Dict[str, str] = {}
        blocks = plain_apart(self._rows(), reasons, "blocks")
        names = {name: self.get_metrics(name).to_dict() for name in self.recorder.names()}
        text = json.dumps({"version": _FORMAT_VERSION, "own_s": self.recorder.own_s, "environment": environment(),
                           "names": names, "blocks": blocks,
                           "missing": reasons}, indent=1, ensure_ascii=False)
        return deliver(text + "\n", path)

    def to_csv(self, path: Optional[str] = None) -> str:
        """All kept blocks as CSV text, n/a for missing values and the reasons in the last column; with a path, also
        writes it there.

            profiler.to_csv("run.csv")
        """
        return deliver(csv_of(self._rows(), _ROW), path)

    def _repr_html_(self) -> str:
        return self.compare()._repr_html_()

    def __repr__(self) -> str:
        on = ", ".join(f"{name}=True" for name, value in self._switches.items()
                       if value and not (name == "estimate_flops" and self._by_modules))
        return f"PerformanceProfiler({on})"
