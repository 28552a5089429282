"""PerformanceMonitor: time and memory of a program's blocks, and utilization of the machine over time."""
import json
import math
import sys
import weakref
from typing import Any, Dict, List, Optional, TextIO

from .. import _check, _core
from .._core import Missing, Recorder
from .._files import write_whole
from .._views import csv_text
from ..torch import _gpu_memory
from . import _bottlenecks, _tables, rules
from ._bottlenecks import Bottleneck
from .metric import COLUMNS, GB, Metric, PathLike, plain

_DISABLED = "monitoring is disabled"


class PerformanceMonitor(_core.Tracker):
    """Time and memory of named blocks, and CPU, memory and GPU memory of the machine over time.

    `memory=False` disables memory readings; `keep` limits how many blocks are listed one by one (sums are exact
    beyond it). `reset_peak=True` makes every block's `cpu_peak_mb` exact and lowers the process's ru_maxrss (see
    Recorder). Where a GPU is in use, times are host time, and `device_seconds` is the block's time on the GPU's clock.

        monitor = tare.PerformanceMonitor()
        with monitor.track("data loading"):
            data = load()
        monitor.print_summary()

        monitor.start_monitoring(interval=0.5)
        train()
        monitor.stop_monitoring()
        print(monitor.get_summary()["cpu"]["mean"])
    """

    def __init__(self, enabled: bool = True, device: Any = 0, *, memory: bool = True, keep: int = 10000,
                 reset_peak: bool = False) -> None:
        self.enabled = bool(enabled)
        self.device = _gpu_memory.number_of(device)
        self._recorder = Recorder(memory=memory, cpu=False, keep=keep, reset_peak=reset_peak)
        self._devices = _gpu_memory.DeviceBlocks(self._recorder, self.device, keep)
        self._sampler: Optional[_core.Sampler] = None
        self._finalizer: Any = None
        super().__init__(self._recorder.block if self.enabled else None, self._devices if memory else None)

    # -- what was measured

    def get_metrics(self, name: Optional[str] = None) -> List[Metric]:
        """Finished blocks, oldest first; those of a name when one is given (KeyError for a name never seen). Blocks
        that were tracked with aggregate=True are not listed one by one: see get_aggregates().

            slowest = max(monitor.get_metrics(), key=lambda metric: metric.duration_seconds)
        """
        if name is not None:
            self._check_name(name)
        return [Metric(result, self._devices.find(result), self.device) for result in self._recorder.results(name)]

    def get_aggregates(self) -> Dict[str, Any]:
        """Operations that were tracked with aggregate=True: count, total_s, mean_s, min_s, max_s, p50_s, p95_s,
        p99_s.

            monitor.get_aggregates()["batch_forward"].p95_s
        """
        found = {name: self._recorder.aggregate(name) for name in self._recorder.names()}
        return {name: aggregate for name, aggregate in found.items() if aggregate.unkept}

    def get_total_time(self) -> float:
        """Seconds in all operations; a block inside another is not counted twice.

            share = 100 * metric.duration_seconds / monitor.get_total_time()
        """
        if not self.enabled:
            return Missing(_DISABLED)
        return math.fsum(self._recorder.aggregate(name).self_s for name in self._recorder.names())

    def get_operation_time(self, name: str) -> float:
        """Seconds in all blocks of a name, with the blocks inside them. KeyError for a name never seen.

            monitor.get_operation_time("forward")
        """
        if not self.enabled:
            return Missing(_DISABLED)
        self._check_name(name)
        return self._recorder.aggregate(name).total_s

    def clear(self) -> None:
        """Discards everything measured so far; running monitoring continues.

            monitor.clear()
        """
        self._recorder.clear()
        self._devices.readings.clear()
        if self._sampler is not None and not self._sampler.running:
            self._sampler = None

    def _check_name(self, name: str) -> None:
        names = self._recorder.names()
        if not isinstance(name, str):
            raise TypeError(f"an operation's name is text, not {type(name).__name__}")
        if name not in names and self.enabled:
            raise KeyError(f"no operation {name!r} was tracked{_check.near(name, names)}")

    def bottlenecks(self) -> List[Bottleneck]:
        """Operations that take too much time: more than 50 % or 20 % of it, loading above 30 %, forward above 50 %,
        backward above 40 %, repeated operations whose slowest run took more than twice as long as the fastest; and
        findings of custom rules (bottleneck_rule). If a GPU is in use, host time does not measure forward and
        backward passes: these two rules are then skipped.

            for found in monitor.bottlenecks():
                print(found)
        """
        total = 0.0 if not self.enabled else self.get_total_time()
        if not total > 0:
            return []
        sums = {name: self._recorder.aggregate(name) for name in self._recorder.names()}
        parts = [_bottlenecks.Part(name, 100 * one.self_s / total, 100 * one.total_s / total)
                 for name, one in sums.items()]
        found = _bottlenecks.shares(parts, ("forward", "backward") if _core.gpu_used() else ())
        for name, one in sums.items():
            found += _bottlenecks.variance(name, one.min_s, one.max_s, one.count)
        operations = {name: rules.operation_of(one, total) for name, one in sums.items()}
        return found + rules.apply(rules.Observed("monitor", operations, self.get_summary()))

    # -- display

    def summary(self, show_aggregate: bool = False) -> str:
        """The text that print_summary prints.

            logging.info(monitor.summary())
        """
        metrics, aggregates = self.get_metrics(), self.get_aggregates()
        lines: List[str] = []
        if metrics or not (show_aggregate and aggregates):
            lines += _tables.block_table(metrics, self._listed_time(metrics))
        if show_aggregate and aggregates:
            lines += _tables.aggregate_table(aggregates)
        elif aggregates:
            seconds = math.fsum(one.total_s for one in aggregates.values())
            lines.append(f"Aggregated operations: {len(aggregates)}, {seconds:.3f}s; "
                         "print_summary(show_aggregate=True) shows them")
        return "\n".join(lines)

    def print_summary(self, show_aggregate: bool = False, file: Optional[TextIO] = None) -> None:
        """Prints the table of blocks, and with show_aggregate the table of repeated operations.

            monitor.print_summary(show_aggregate=True)
        """
        if not self.enabled:
            print("Performance monitoring is disabled", file=file)
            return
        print(self.summary(show_aggregate), file=file)

    def _listed_time(self, metrics: List[Metric]) -> float:
        sums = [self._recorder.aggregate(name) for name in self._recorder.names()]
        mixed = {one.name for one in sums if one.unkept}
        return math.fsum([one.self_s for one in sums if not one.unkept]
                         + [metric.self_seconds for metric in metrics if metric.operation in mixed])

    def _repr_html_(self) -> str:
        return _tables.html_tables(self.get_metrics(), self.get_aggregates())

    # -- export

    def to_pandas(self) -> Any:
        """The blocks as a DataFrame; missing values are NaN. Needs pandas.

            monitor.to_pandas().groupby("operation").duration_seconds.describe()
        """
        rows = [[getattr(metric, name) for name in COLUMNS] for metric in self.get_metrics()]
        frame = _check.pandas().DataFrame(rows, columns=list(COLUMNS))
        return frame.astype({name: float for name in COLUMNS[1:]})

    def to_csv(self, path: Optional[PathLike] = None) -> Optional[str]:
        """The blocks as CSV: into the file, or as text without a path.

            monitor.to_csv("performance_metrics.csv")
        """
        text = csv_text(COLUMNS, [[getattr(metric, name) for name in COLUMNS] for metric in self.get_metrics()])
        if path is None:
            return text
        write_whole(path, text)
        return None

    def to_json(self, path: Optional[PathLike] = None) -> Optional[str]:
        """Blocks, aggregates and the machine's summary as JSON; missing values are null with a reason.

            json.loads(monitor.to_json())["metrics"]
        """
        fields = ("count", "failed", "total_s", "mean_s", "min_s", "max_s", "p50_s", "p95_s", "p99_s")
        out: Dict[str, Any] = {
            "metrics": self.get_metrics(),
            "aggregates": {name: {field: getattr(one, field) for field in fields}
                           for name, one in self.get_aggregates().items()},
            "total_time_s": self.get_total_time(), "cudnn_benchmark": cudnn_benchmark()}
        if self._sampler is not None:
            out["summary"] = self.get_summary()
        text = json.dumps(plain(out), indent=2, ensure_ascii=False)
        if path is None:
            return text
        write_whole(path, text + "\n")
        return None

    # -- the machine over time

    def _new_sampler(self, interval: float = 0.1) -> _core.Sampler:
        device = self.device

        def gpu() -> float:  # without self: the sampler must not keep its monitor alive
            return _gpu_memory.used_bytes(device) / GB
        nobody_knows = isinstance(_core.gpu_memory(device), str)  # and need not be read repeatedly
        return _core.Sampler(interval, _core.MACHINE_CPU | _core.MACHINE_MEMORY, None if nobody_knows else gpu)

    def start_monitoring(self, interval: float = 0.1) -> None:
        """Reads CPU, memory and GPU memory every `interval` seconds, in a thread that does not block the program.
        Earlier readings are discarded.

            monitor.start_monitoring(interval=0.5)
        """
        _check.number(interval, "interval", "a number of seconds")
        if not self.enabled:
            return
        if self._sampler is not None and self._sampler.running:
            raise RuntimeError("monitoring is already running; stop_monitoring() ends it")
        sampler = self._new_sampler(interval)
        sampler.acquire()
        self._sampler = sampler
        self._finalizer = weakref.finalize(self, sampler.release)  # also at the interpreter's end

    def record_metrics(self) -> None:
        """Reads CPU, memory and GPU memory once, now; also while monitoring runs.

            monitor.record_metrics()
        """
        if not self.enabled:
            return
        if self._sampler is None:
            self._sampler = self._new_sampler()
        self._sampler.sample()

    def stop_monitoring(self) -> None:
        """Ends start_monitoring. The readings are kept.

            monitor.stop_monitoring()
        """
        if self._finalizer is not None:
            self._finalizer()
            self._finalizer = None

    def get_summary(self) -> Dict[str, Dict[str, float]]:
        """`cpu` and `memory` of the machine in percent, `gpu_memory` in GB, each with mean, max, min, std, p95 and
        count.

            summary = monitor.get_summary()
            print(f"CPU usage: {summary['cpu']['mean']:.1f}%")
        """
        nothing = _DISABLED if not self.enabled else "nothing was recorded: start_monitoring() or record_metrics()"
        read = self._sampler.summary() if self._sampler is not None else {}
        out: Dict[str, Dict[str, float]] = {}
        for name in ("cpu", "memory", "gpu_memory"):
            values = read.get(name, {"count": 0})
            reason = nothing if self._sampler is None else self._why_none(name, values["count"])
            out[name] = {field: _or_missing(values.get(field, math.nan), reason)
                         for field in ("mean", "max", "min", "std", "p95")}
            out[name]["count"] = values["count"]
        return out

    def _why_none(self, name: str, count: int) -> str:
        if count == 1:
            return "one reading has no deviation"
        if name == "gpu_memory":
            answer = _gpu_memory.used_bytes(self.device)
            return answer.reason if isinstance(answer, Missing) else "the GPU was not read yet"
        return "two readings 50 ms apart are needed" if name == "cpu" else "the system does not report it"

    def plot_metrics(self, path: PathLike = "performance_metrics.png") -> None:
        """Plots the readings over time to an image. Needs matplotlib; OSError if it cannot be written.

            monitor.plot_metrics("performance_metrics.png")
        """
        from ..integrations import _plots
        if self._sampler is None:
            raise RuntimeError(_DISABLED if not self.enabled
                               else "there is nothing to plot: start_monitoring() or record_metrics() first")
        series: Dict[str, List[float]] = self._sampler.series()
        begun = series["at_ns"][0] if series["at_ns"] else 0
        _plots.plot_series({**series, "time_s": [(at - begun) / 1e9 for at in series["at_ns"]]}, path)


def _or_missing(value: float, reason: str) -> float:
    return Missing(reason) if math.isnan(value) else value


def cudnn_benchmark() -> Any:
    """Whether cuDNN benchmarks its algorithms (torch.backends.cudnn.benchmark), which makes first batches slow.

        tare.cudnn_benchmark()
    """
    torch = sys.modules.get("torch")
    try:
        return bool(torch.backends.cudnn.benchmark) if torch is not None else Missing("torch is not loaded")
    except AttributeError:
        return Missing("this torch does not report it")
