"""Monitors operations in CI and in production: regressions against a baseline, requests against an SLA."""
import collections
import json
import math
import sys
import threading
import warnings
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Deque, Dict, Iterator, List, Mapping, Optional, Sequence

from .. import _check, _core
from .._core import Missing, open_input
from ._limits import percent
from .metric import put
from .performance import PerformanceProfiler

BASELINE_VERSION = 1
_LARGEST = sys.float_info.max  # an integer in JSON may be larger
_TIMES_KEPT = 1000  # of an operation, in a baseline


class PerformanceRegressionWarning(RuntimeWarning):
    """An operation took longer than its baseline allows."""


class SlaViolationWarning(RuntimeWarning):
    """A request took longer than the SLA allows."""


class RegressionCheck:
    """The result of a check. While the block runs, and if it raised, the values are Missing.

        check.ratio, check.regressed, check.significance
    """

    def __init__(self, operation: str, baseline_s: float, threshold: float,
                 baseline_times: Sequence[float] = ()) -> None:
        waiting = Missing("the block has not ended without an exception")
        self.operation = operation
        self.baseline_s = baseline_s
        self.threshold = threshold
        self._baseline_times = baseline_times
        self.current_s: float = waiting
        self.ratio: float = waiting
        self.regressed = False
        self.observations = 0
        self.significant: Optional[bool] = None
        self.significance = "no significance: nothing was observed"

    def _observe(self, times: List[float]) -> None:
        self.observations = len(times)
        self.current_s = times[-1]
        self.ratio = self.current_s / self.baseline_s if self.baseline_s > 0 else Missing("the baseline is 0 s")
        limit = self.baseline_s * (1 + self.threshold)
        self.regressed = self.current_s > limit
        if len(self._baseline_times) > 1 and len(times) > 1:
            self._decide(times)
            return
        low, high, needed = _core.quantile_interval(times, 0.5)
        if needed is not None:
            what = "a single observation" if len(times) == 1 else f"{len(times)} observations, {needed} are needed"
            self.significance = f"no significance: {what}"
            return
        self.significant = low > limit
        relation = "above" if self.significant else "not above"
        self.significance = (f"the median of {len(times)} observations is {low:.6g} to {high:.6g} s "
                             f"(95 %), {relation} the limit of {limit:.6g} s")

    def _decide(self, times: List[float]) -> None:
        """By the rule of `tare check`, if the baseline contains individual times."""
        from .. import _engine  # imported only if needed: this runs in the service
        verdict, why, change, p = _engine.decide([1e9 * one for one in self._baseline_times],
                                                  [1e9 * one for one in times], gate=self.threshold, unit="ns")
        of = f"{len(times)} observations against {len(self._baseline_times)} of the baseline"
        if verdict == "inconclusive":
            self.significance = f"no significance: {of}, 5 and 5 would do"
            return
        self.significant = verdict == "worse"
        self.significance = f"{of}: the median changed by {100 * change:+.3g} %, {why} (p = {p:.2g})"

    def __str__(self) -> str:
        return (f"{self.operation}: {self.current_s:.6g} s against {self.baseline_s:.6g} s, {self.ratio:.3g} times; "
                f"{self.significance}")


class PerformanceRegressionDetector:
    """Compares operations with a baseline: JSON of the form {"operation": {"wall_time_s": 1.5}}, or a file of
    `tare baseline save` or a model report, whose spans and times are operations.

    If the baseline contains individual times (save_baseline writes them), several observations are compared by the rule
    of `tare check`: a regression is significant, and larger than the threshold. `load_baseline` and
    `alert_regression` may be overridden.

        detector = tare.PerformanceRegressionDetector("baseline_metrics.json")
        with detector.check_regression("model_training", threshold=0.2) as check:
            train_model()
        print(check)
    """

    def __init__(self, baseline_metrics_path: Any) -> None:
        self.baseline: Mapping[str, Mapping[str, Any]] = self.load_baseline(baseline_metrics_path)
        self.profiler = PerformanceProfiler()
        self._times: Dict[str, Deque[float]] = {}

    def load_baseline(self, path: Any) -> Dict[str, Dict[str, Any]]:
        """The operations of a baseline file.

            detector.load_baseline("baseline_metrics.json")["model_training"]["wall_time_s"]
        """
        try:
            with open(path, encoding="utf-8", opener=open_input) as file:
                text = file.read()
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no baseline {path}; save_baseline writes one") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"the baseline {path} is not text: byte {error.start}") from None
        if not text.strip():
            raise ValueError(f"the baseline {path} is empty")
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the baseline {path} is not JSON: {error}") from None
        if _is_document(data):
            return _of_figures(text, path)
        return _check_baseline(data, path)

    @contextmanager
    def check_regression(self, operation_name: str, threshold: float = 0.2) -> Iterator[RegressionCheck]:
        """Measures a block, and alerts if it took more than (1 + threshold) times its baseline. Nothing is checked if
        the block raises.

            with detector.check_regression("inference", threshold=0.1):
                model(batch)
        """
        if not _check.number(threshold, "threshold") >= 0:
            raise ValueError(f"threshold is 0 or more, not {threshold}")
        if operation_name not in self.baseline:
            near = _check.near(operation_name, self.baseline)
            raise KeyError(f"the baseline has no operation {operation_name!r}{near}")
        known = self.baseline[operation_name]
        check = RegressionCheck(operation_name, float(known["wall_time_s"]), threshold, known.get("times_s") or ())
        block = self.profiler.profile(operation_name)
        with block:
            yield check
        times = self._times.setdefault(operation_name, collections.deque(maxlen=_TIMES_KEPT))
        times.append(block.result.wall_s)
        check._observe(list(times))
        if check.regressed:
            self.alert_regression(operation_name, check.baseline_s, check.current_s)

    def alert_regression(self, operation_name: str, baseline_time: float, current_time: float) -> None:
        """Called for a regression; warns, unless overridden.

            class Detector(tare.PerformanceRegressionDetector):
                def alert_regression(self, operation_name, baseline_time, current_time):
                    raise SystemExit(f"{operation_name} is slower")
        """
        warnings.warn(f"{operation_name} took {current_time:.6g} s, {current_time / baseline_time:.3g} times its "
                      f"baseline of {baseline_time:.6g} s" if baseline_time > 0 else
                      f"{operation_name} took {current_time:.6g} s, its baseline is 0 s",
                      PerformanceRegressionWarning, stacklevel=5)

    def save_baseline(self, path: Any) -> None:
        """Writes the measurements so far as a baseline: the median time of every operation, and its individual times.

            detector.save_baseline("baseline_metrics.json")
        """
        save_baseline(path, {name: list(times) for name, times in self._times.items()})


def save_baseline(path: Any, times: Mapping[str, List[float]]) -> None:
    """Writes a baseline of each operation's seconds.

        tare.save_baseline("baseline_metrics.json", {"inference": [0.101, 0.098, 0.104]})
    """
    if not times or not all(times.values()):
        raise ValueError("a baseline needs at least one time of every operation")
    from .._files import write_whole
    data: Dict[str, Any] = {"version": BASELINE_VERSION}
    for name, values in times.items():
        if name == "version":
            raise ValueError('an operation of a baseline cannot be named "version"')
        data[name] = {"wall_time_s": _core.quantile(list(values), 0.5), "observations": len(values),
                      "times_s": list(values)[-_TIMES_KEPT:]}
    write_whole(path, json.dumps(data, indent=1) + "\n")


def _is_time(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, (int, float)) and 0 <= value <= _LARGEST


def _is_document(data: Any) -> bool:
    """Whether it is a file of Tare: these begin with a version ("tare_baseline": 1), not with an operation."""
    return isinstance(data, dict) and any(name.startswith("tare_") and not isinstance(value, dict)
                                          for name, value in data.items())


def _of_figures(text: str, path: Any) -> Dict[str, Dict[str, Any]]:
    """The times of a baseline as Tare writes it, by the names of their spans; the engine reads it."""
    from .. import _engine  # imported only if needed: this runs in the service
    operations: Dict[str, Dict[str, Any]] = {}
    for row in json.loads(_engine.figures(text.encode(), f"the baseline {path}"))["figures"]:
        if row["unit"] != "ns" or not _is_time(row["value"]):
            continue
        name, times = row["name"], row["samples"]
        operations[name[5:] if name.startswith("span:") else name] = {
            "wall_time_s": row["value"] / 1e9, "observations": len(times) or 1,
            "times_s": [one / 1e9 for one in times if _is_time(one)]}
    return operations


def _check_baseline(data: Any, path: Any) -> Dict[str, Dict[str, Any]]:
    if not isinstance(data, dict):
        raise ValueError(f"the baseline {path} is not an object of operations but {type(data).__name__}")
    version = data.get("version", BASELINE_VERSION)
    if not isinstance(version, dict):
        data = {name: value for name, value in data.items() if name != "version"}
        if version != BASELINE_VERSION:
            raise ValueError(f"the baseline {path} was written by another version ({version!r}); "
                             f"this one reads version {BASELINE_VERSION}")
    for name, value in data.items():
        if not isinstance(value, dict) or not _is_time(value.get("wall_time_s")):
            raise ValueError(f'the baseline {path}: {name!r} has no "wall_time_s" in seconds')
        times = value.get("times_s", [])
        if not isinstance(times, list) or not all(map(_is_time, times)):
            raise ValueError(f'the baseline {path}: "times_s" of {name!r} is not a list of seconds')
    return data


class ProductionProfiler:
    """Measures requests, keeps the newest ones, and alerts when one takes longer than the SLA.

        production = tare.ProductionProfiler(sla_s=0.5)
        with production.profile_request(request_id):
            answer = model(request)
        production.log_metrics(request_id, latency)
        print(production.generate_hourly_report())
    """

    def __init__(self, sla_s: float = 2.0, max_entries: int = 100_000) -> None:
        if isinstance(sla_s, bool) or not isinstance(sla_s, (int, float)) or not sla_s > 0:
            raise ValueError(f"sla_s is a number of seconds above 0, not {sla_s!r}")
        if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
            raise ValueError(f"max_entries is a whole number of 1 or more, not {max_entries!r}")
        self.profiler = PerformanceProfiler()
        self.sla_s = float(sla_s)
        self.metrics_log: Deque[Dict[str, Any]] = collections.deque(maxlen=max_entries)
        self._lock = threading.Lock()

    def profile_request(self, request_id: Any) -> Any:
        """The block of a request.

            with production.profile_request(17):
                answer = model(request)
        """
        return self.profiler.profile(f"request_{request_id}")

    def _result_of(self, request_id: Any) -> Any:
        name = f"request_{request_id}"
        last = self.profiler.recorder.last()
        if last is not None and last.name == name:
            return last
        kept = self.profiler.recorder.results(name)
        return kept[-1] if kept else None

    def log_metrics(self, request_id: Any, user_facing_latency: float) -> Dict[str, Any]:
        """Records a request, and alerts if the latency is over the SLA. The entry can be passed to json.dumps(): a
        value that could not be measured is None, with its reason beside it ("cpu_percent_reason").

            production.log_metrics(17, time.time() - start_time)
        """
        if not 0 <= _check.number(user_facing_latency, "a latency", "a number of seconds") < math.inf:
            raise ValueError(f"a latency is 0 s or more, not {user_facing_latency}")
        result = self._result_of(request_id)
        metrics = self.profiler._of_result(result) if result is not None else None
        missing = Missing(f"no block of request {request_id} has ended, or it is no longer kept")
        entry: Dict[str, Any] = {"timestamp": datetime.now().isoformat(), "request_id": request_id}
        # An entry is written to logs: None with its reason instead of NaN, which JSON does not have.
        put(entry, "internal_latency", metrics.timing.wall_time_s if metrics else missing)
        entry["user_facing_latency"] = user_facing_latency
        put(entry, "memory_mb", metrics.memory.peak_ram_mb if metrics else missing)
        put(entry, "cpu_percent", metrics.system.cpu_percent if metrics else missing)
        with self._lock:
            self.metrics_log.append(entry)
        if user_facing_latency > self.sla_s:
            self.alert_sla_violation(entry)
        return entry

    def alert_sla_violation(self, log_entry: Dict[str, Any]) -> None:
        """Called for a request over the SLA; warns, unless overridden.

            class Production(tare.ProductionProfiler):
                def alert_sla_violation(self, log_entry):
                    page_someone(log_entry["request_id"])
        """
        warnings.warn(f"request {log_entry['request_id']} took {log_entry['user_facing_latency']:.6g} s, the SLA is "
                      f"{self.sla_s:g} s", SlaViolationWarning, stacklevel=3)

    def generate_hourly_report(self) -> Dict[str, Any]:
        """The last hour: the number of requests, their average and 95th percentile in seconds (None without requests),
        and the number of SLA violations. Can be passed to json.dumps().

            production.generate_hourly_report()["p95_latency"]
        """
        cutoff = datetime.now() - timedelta(hours=1)
        with self._lock:
            recent = [entry["user_facing_latency"] for entry in self.metrics_log
                      if datetime.fromisoformat(entry["timestamp"]) > cutoff]
        none = Missing("no request in the last hour")
        report: Dict[str, Any] = {"requests_processed": len(recent)}
        put(report, "average_latency", sum(recent) / len(recent) if recent else none)
        put(report, "p95_latency", _core.quantile(recent, 0.95) if recent else none)
        report["sla_violations"] = sum(latency > self.sla_s for latency in recent)
        return report


def diagnose_performance_issues(metrics: Any, *, ram_mb: float = 16000, cpu_percent: Optional[float] = None,
                                gpu_percent: Optional[float] = None,
                                io_wait_percent: Optional[float] = None) -> List[str]:
    """Findings in the metrics of a block, a sentence each. Missing values are skipped. The limits are those of the
    findings (docs/FINDINGS.md: CPU over 95 %, GPU under 70 %, waiting for disks over 20 %), or the given ones.

        for issue in tare.diagnose_performance_issues(profiler.get_metrics()):
            print(issue)
    """
    def value(path: str) -> float:
        found = metrics
        for name in path.split("."):
            found = getattr(found, name, Missing("not there"))
        return found

    cpu_percent = percent("CPU_WARNING") if cpu_percent is None else cpu_percent
    gpu_percent = percent("GPU_BUSY") if gpu_percent is None else gpu_percent
    io_wait_percent = percent("IOWAIT") if io_wait_percent is None else io_wait_percent
    issues = []
    ram, cpu = value("memory.peak_ram_mb"), value("system.cpu_percent")
    gpu, waiting = value("compute.gpu_utilization_percent"), value("system.disk_io_wait_percent")
    if ram > ram_mb:
        issues.append(f"High memory usage: {ram:,.0f} MB at the peak (over {ram_mb:,.0f}). A smaller batch, a "
                      "smaller model or lower precision needs less.")
    if cpu > cpu_percent:
        issues.append(f"CPU bottleneck: the CPUs were busy {cpu:.0f} % of the time (over {cpu_percent:g}). Lighter "
                      "data loading, or more machines, would help.")
    if gpu < gpu_percent:
        issues.append(f"GPU underutilized: {gpu:.0f} % (under {gpu_percent:g}). It waits for work: larger batches, "
                      "or faster loading of data.")
    if waiting > io_wait_percent:
        issues.append(f"I/O bottleneck: the CPUs waited for disks {waiting:.0f} % of the time (over "
                      f"{io_wait_percent:g}). Prefetching, caching or a faster disk would help.")
    return issues
