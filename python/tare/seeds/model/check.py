"""Compares results with limits, with a baseline, with earlier runs, and with an expected load."""
import json
import math
import os
import warnings
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ... import _core, _engine
from ..._core import Missing, open_input, unit

COUNTED = "model.activations"     # the same in every run, though not on every machine


class ModelAlertWarning(RuntimeWarning):
    """A model's figure is over its limit."""


# ---- thresholds -------------------------------------------------------------------------------------------------

# name: (where it is, its unit as the engine has it, whether less is better)
_LIMITS: Dict[str, Tuple[Tuple[str, ...], str, bool]] = {
    "latency": (("latency", "p50"), "ns", True),
    **{name: (("latency", name), "ns", True) for name in ("mean", "min", "max", "p50", "p90", "p95", "p99")},
    "end_to_end": (("end_to_end", "p50"), "ns", True),
    "first_token": (("generation", "time_to_first_token", "p50"), "ns", True),
    "between_tokens": (("generation", "time_between_tokens", "p50"), "ns", True),
    "throughput": (("throughput",), "/s", False),
    "memory": (("memory", "peak"), "bytes", True),
    "activation": (("memory", "activation"), "bytes", True),
    "size": (("model", "size_bytes"), "bytes", True),
    "parameters": (("model", "parameters"), "", True),
    "flops": (("model", "flops"), "", True),
}


class Threshold(NamedTuple):
    """A limit that was parsed."""
    text: str
    name: str
    limit: float
    unit: str
    path: Tuple[str, ...]
    less_is_better: bool


class ThresholdCheck(NamedTuple):
    """A limit and the measured value. A missing value breaks the limit, since it cannot be verified.

        check.broken, check.value, check.limit, check.percent
    """
    threshold: str
    value: float
    limit: float
    unit: str
    broken: bool
    percent: float  #: how far over it, of the limit

    def __str__(self) -> str:
        if isinstance(self.value, Missing):
            return f"{self.threshold}: n/a ({self.value.reason})"
        how = f", {self.percent:.1f} % over the limit" if self.broken else ""
        return f"{self.threshold}: {self.value:,.6g} {self.unit}{how}".rstrip()


def parse_threshold(text: str) -> Threshold:
    """A limit like "latency:100ms", "throughput:1000samples/s", "p99:120ms", "memory:2GB". ValueError with the
    reason.

        tare.parse_threshold("p99:120ms").limit
    """
    if not isinstance(text, str):
        raise TypeError(f"a threshold is text like \"latency:100ms\", not {type(text).__name__}")
    name = text.rpartition(":")[0]
    if name and name not in _LIMITS:
        raise ValueError(f"the threshold {text!r}: a model has no figure {name!r}; it has {', '.join(_LIMITS)}")
    path, unit, less = _LIMITS.get(name, ((), "", True))
    value, written = _engine.threshold(text, unit)
    if unit == "/s":
        what = written.partition("/")[0] or "samples"
        return Threshold(text, name, value, f"{what}/s", (*path, f"{what}_per_second"), less)
    if unit == "ns":
        return Threshold(text, name, value / 1e6, "ms", path, less)
    return Threshold(text, name, value, unit, path, less)


def _lookup(results: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = results
    for name in path:
        if isinstance(value, Missing):
            return value
        if not isinstance(value, Mapping) or name not in value:
            return Missing(f"there is no {'.'.join(path)} in the results")
        value = value[name]
    return Missing("it was not measured") if value is None else value


def check_thresholds(results: Mapping[str, Any], thresholds: Iterable[str]) -> List[ThresholdCheck]:
    """Each limit against the results.

        tare.check_thresholds(results, ["latency:100ms", "throughput:1000samples/s"])
    """
    checks = []
    for one in [parse_threshold(text) for text in ([thresholds] if isinstance(thresholds, str) else thresholds)]:
        value = _lookup(results, one.path)
        if isinstance(value, Missing):
            checks.append(ThresholdCheck(one.text, value, one.limit, one.unit, True, Missing(value.reason)))
            continue
        if getattr(value, "at_least", False) and value <= one.limit:
            why = Missing(f"it is at least {int(value):,}: {value.reason}")
            checks.append(ThresholdCheck(one.text, why, one.limit, one.unit, True, why))
            continue
        over = value - one.limit if one.less_is_better else one.limit - value
        percent = 100 * over / one.limit if one.limit else (math.inf if over > 0 else 0.0)
        checks.append(ThresholdCheck(one.text, float(value), one.limit, one.unit, over > 0, percent))
    return checks


# ---- baselines --------------------------------------------------------------------------------------------------

class Regression(NamedTuple):
    """A figure that became worse.

        regression.name, regression.change_percent, regression.significance
    """
    name: str
    baseline: float
    current: float
    unit: str
    change_percent: float
    p_value: float
    significance: str

    def __str__(self) -> str:
        return (f"{self.name}: {self.current:,.6g} against {self.baseline:,.6g} {self.unit}".rstrip()
                + f" ({self.change_percent:+.1f} %; {self.significance})")

    __repr__ = __str__


def load_baseline(path: Any) -> Dict[str, Any]:
    """The figures of a file that export_json or `tare baseline` wrote.

        baseline = tare.load_baseline("baseline_profiling.json")
    """
    try:
        with open(path, "rb", opener=open_input) as file:
            data = file.read()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no baseline {path}; export_json writes one") from None
    return json.loads(_engine.figures(data, str(path)))


def _figures(given: Any) -> Dict[str, Any]:
    if isinstance(given, (str, os.PathLike)):
        return load_baseline(given)
    if not isinstance(given, Mapping):
        raise TypeError(f"results of profile(), a baseline or its path, not {type(given).__name__}")
    if "latency" in given and "machine" in given:
        from ._figures import baseline_of
        return baseline_of(given)
    return json.loads(_engine.figures(json.dumps(dict(given)).encode(), "the baseline"))


def detect_regressions(baseline: Any, current: Any, threshold: Optional[float] = None,
                       thresholds: Optional[Mapping[str, float]] = None) -> List[Regression]:
    """Regressions, by the rule and the gates of `tare check`; an empty list if there are none. A time or a rate has
    regressed if its median is worse by more than the threshold (5 % between several runs per side on one machine; else
    10 %, with a warning for different machines), significantly (Mann-Whitney, p at most 0.02), and by more than a
    floor; parameters, size and operations if they grew at all. Memory is that of the tensors; the process's memory is
    compared only if thresholds, which maps names of figures to limits, contains it.

        for regression in tare.detect_regressions("baseline.json", profiler.profile(batch)):
            print(regression)
    """
    if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, (int, float))
                                  or not threshold >= 0):
        raise ValueError(f"threshold is a share of 0 or more, like 0.05, not {threshold!r}")
    own = dict(thresholds or {})
    before, after = _figures(baseline), _figures(current)
    check = json.loads(_engine.check(json.dumps(before).encode(), json.dumps(after).encode(),
                                     math.nan if threshold is None else threshold, own))
    if check["other_machine"]:
        warnings.warn("the baseline is of another machine: times differ for that alone", UserWarning, stacklevel=2)
    old, new = ({row["name"]: row for row in side["figures"]} for side in (before, after))
    if all(new[name].get("exact") for name in new if name in old):
        raise ValueError("there is nothing to compare: the baseline has "
                         f"{', '.join(sorted(old)[:4]) or 'no figures'}, the current results have "
                         f"{', '.join(sorted(new)[:4]) or 'none'}")
    worse = [_regression(row, old[row["name"]], new[row["name"]]) for row in check["figures"]
             if row["name"] in old and row["name"] in new and _is_regression(row, row["name"] in own)]
    return sorted(worse, key=lambda one: -one.change_percent)


def _is_regression(row: Mapping[str, Any], requested: bool) -> bool:
    """Figures that failed the check; and of those with one value per side, which it cannot decide, the ones that were
    requested or are counts: a process's memory alone is not evidence."""
    return row["outcome"] == "failed" or (row["outcome"] == "inconclusive"
                                          and (requested or row["name"].startswith(COUNTED)))


def _regression(row: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> Regression:
    if row["outcome"] != "failed":
        reported = "counted, not timed" if row["name"].startswith(COUNTED) else f"no significance: {row['reason']}"
    elif row["p"] is None:
        reported = "exact"
    else:
        reported = f"p = {row['p']:.2g}, {len(old.get('samples') or [])} and {len(new.get('samples') or [])} samples"
    if row["low"] is not None:
        reported = f"{100 * row['low']:+.1f} to {100 * row['high']:+.1f} % at 95 %, " + reported
    change = math.inf if row["change"] is None else 100 * row["change"]
    p = Missing("it is exact" if new.get("exact") else row["reason"]) if row["p"] is None else row["p"]
    return Regression(row["name"], row["baseline"], row["candidate"], row["unit"], change, p, reported)


# ---- earlier runs -------------------------------------------------------------------------------------------------

class Trend(NamedTuple):
    """The trend of a figure from run to run.

        print(trend.percent_per_run, trend.changes)
    """
    name: str
    values: List[float]
    percent_per_run: float  #: of the median
    low: float
    high: float
    changes: List[Dict[str, float]]  #: sudden ones: at, before, after, p

    def __str__(self) -> str:
        if len(self.values) < 2:
            return f"{self.name}: {len(self.values)} values have no trend"
        text = f"{self.name}: {self.percent_per_run:+.2f} % a run"
        if not math.isnan(self.low):
            text += f" ({self.low:+.2f} to {self.high:+.2f} at 95 %)"
            text += ", which may be nothing" if self.low <= 0 <= self.high else ""
        for one in self.changes:
            text += f"; at run {one['at'] + 1} from {one['before']:,.6g} to {one['after']:,.6g}"
        return text


def model_trend(history: Any, name: str = "model.latency") -> Trend:
    """The trend of a figure over results, baselines, their paths in order, or a folder of them (by creation
    time): its slope with an interval, and sudden changes.

        print(tare.model_trend("profiling_history/"))
    """
    runs = sorted((_figures(one) for one in _in_history(history)), key=lambda one: one.get("when_ns") or 0)
    values: List[float] = []
    for run in runs:
        row = next((row for row in run["figures"] if row["name"] == name or row["name"].startswith(name + "[")), None)
        if row is not None and row.get("value") is not None:
            values.append(float(row["value"]))
    if not values:
        raise ValueError(f"no run has the figure {name!r}")
    late = values[-64:]
    slope, low, high, _ = _engine.trend(list(range(len(late))), late) if len(late) > 1 else (math.nan,) * 4
    typical = _core.quantile(late, 0.5)
    scale = 100 / typical if typical else math.nan
    changes = [{"at": at, "before": before, "after": after, "p": p}
               for at, before, after, p in _engine.change_points(values)]
    return Trend(name, values, slope * scale, low * scale, high * scale, changes)


def _in_history(history: Any) -> List[Any]:
    if isinstance(history, (str, os.PathLike)):
        folder = os.fspath(history)
        if not os.path.isdir(folder):
            raise NotADirectoryError(f"{folder} is no folder of results")
        found = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".json")]
        if not found:
            raise FileNotFoundError(f"there are no results (*.json) in {folder}")
        return found
    return list(history)


# ---- expected load -------------------------------------------------------------------------------------------------

def _ms(value: float) -> str:
    return unit(value * 1e6, "ns")


class CapacityPlan(NamedTuple):
    """How many replicas of a model a load needs. An estimate: throughput and latency are measured, the arrival of
    requests is not.

        print(plan.replicas, plan.batch_size, plan.memory_bytes)
    """
    replicas: int
    batch_size: float
    requests_per_second: float
    per_replica: float       #: requests per second of one, at the requested utilization
    utilization: float       #: of all of them
    latency_ms: float        #: of a run
    filling_ms: float        #: until the batch of a request is full, on average
    waiting_ms: float        #: for a free replica, on average, if requests arrive at random
    response_ms: float       #: the sum of the three, which is compared with a limit
    memory_bytes: float      #: of all of them
    note: str

    def __str__(self) -> str:
        replicas = "1 replica" if self.replicas == 1 else f"{self.replicas} replicas"
        return (f"{replicas} with batches of {self.batch_size:g} for {self.requests_per_second:g} "
                f"requests/s: {unit(self.utilization, 'share')} busy, a response after about {_ms(self.response_ms)} "
                f"on average ({_ms(self.filling_ms)} until the batch is full, {_ms(self.waiting_ms)} of waiting for a "
                f"free replica, {_ms(self.latency_ms)} a run), {unit(self.memory_bytes, 'bytes')} of memory (an "
                f"estimate). {self.note}").rstrip()


def plan_capacity(results: Mapping[str, Any], requests_per_second: float, latency_ms: Optional[float] = None,
                  utilization: float = 0.7, benchmarks: Sequence[Mapping[str, Any]] = ()) -> CapacityPlan:
    """The cheapest of the measured configurations that serves a load: one request is one sample, batches are filled
    by arriving requests, each of which is sent to a random replica. latency_ms limits the mean time of filling a
    batch, waiting for a free replica and running it. Instead of results, a dict of numbers is accepted: throughput in
    samples per second, latency in ms, and optionally std in ms, memory in bytes and batch_size.

        print(tare.plan_capacity(results, requests_per_second=500, latency_ms=50))
        print(tare.plan_capacity({"throughput": 120.0, "latency": 8.0}, requests_per_second=500))
    """
    for name, value in (("requests_per_second", requests_per_second), ("utilization", utilization)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise ValueError(f"{name} is a number above 0, not {value!r}")
    if utilization > 1:
        raise ValueError(f"utilization is a share of 1 at most, not {utilization!r}")
    if not isinstance(results, Mapping):
        raise TypeError(f"results of profile(), or a dict of numbers, not {type(results).__name__}")
    rows = [results, *(row for row in benchmarks if row.get("status") == "measured")]
    plans = [_plan(row, float(requests_per_second), float(utilization)) for row in rows]
    fitting = [one for one in plans if latency_ms is None or one.response_ms <= latency_ms]
    if not fitting:
        best = min(plans, key=lambda one: one.response_ms)
        raise ValueError(f"no measured configuration answers within {latency_ms:g} ms: the fastest, batches of "
                         f"{best.batch_size:g}, takes {_ms(best.response_ms)}")
    return min(fitting, key=lambda one: (one.replicas, one.response_ms))


def waiting_of(busy: float, batch: float, varies: float) -> float:
    """Mean time that a full batch waits for its replica, in mean runs; `varies` is the squared coefficient of variation
    of a run. Requests arrive at random, so that full batches arrive more regularly the larger they are: Pollaczek and
    Khinchine's formula for batches of one, Kraemer and Langenbach-Belz's for larger ones.

        waiting_of(0.5, 1, 0.0)
    """
    if not busy < 1:
        return math.inf
    comes = 1 / batch
    spread = comes + varies
    regular = math.exp(-2 * (1 - busy) * (1 - comes) ** 2 / (3 * busy * spread)) if comes < 1 and busy > 0 else 1.0
    return busy / (1 - busy) * spread / 2 * regular


def _number(row: Mapping[str, Any], part: str, *names: str) -> float:
    """Of a part of results, by its first name that is known; or the part itself, where it is a number."""
    value = row.get(part)
    found = [value] if not isinstance(value, Mapping) else [value.get(name) for name in names]
    for one in found:
        if isinstance(one, (int, float)) and not isinstance(one, (bool, Missing)) and one == one:
            return one
    reasons = [one for one in found if isinstance(one, Missing)]
    return reasons[0] if reasons else Missing(f"there is no {part} in the results")


def _plan(row: Mapping[str, Any], load: float, utilization: float) -> CapacityPlan:
    rate = _number(row, "throughput", "samples_per_second", "requests_per_second")
    mean, latency = _number(row, "latency", "mean", "p50"), _number(row, "latency", "p50", "mean")
    for what, value in (("throughput in samples/s", rate), ("latency in ms", latency)):
        if isinstance(value, Missing) or not value > 0:
            raise ValueError(f"a plan needs a {what} above 0: {getattr(value, 'reason', value)}")
    batch = _number(row, "input", "batch_size") if "input" in row else _number(row, "batch_size")
    size = 1 if isinstance(batch, Missing) else batch
    replicas = max(1, math.ceil(load / (rate * utilization)))
    busy = load / (rate * replicas)
    std = _number(row, "latency", "std") if isinstance(row.get("latency"), Mapping) else _number(row, "std")
    varies = (std / mean) ** 2 if std == std else 0.0
    waiting = waiting_of(busy, size, varies) * mean
    filling = 1e3 * (size - 1) / 2 * replicas / load
    note = f"One copy does {unit(rate, 'samples/s')} here, alone on the machine."
    if std != std:
        note += " How run times vary is not known: they are taken to be equal."
    return CapacityPlan(replicas, size, load, rate * utilization, busy, latency, filling, waiting,
                        filling + waiting + latency, replicas * _number(row, "memory", "peak"), note)
