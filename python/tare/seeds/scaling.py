"""Measures how time and memory grow with a size (batch size, sequence length), and predicts other sizes."""
import statistics
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Sequence

from .. import _check, _engine
from .._core import Missing
from ._limits import limit
from .performance import PerformanceProfiler

NEEDED = 6        # sizes, for an interval


class Prediction(NamedTuple):
    """A predicted value: an estimate between low and high. `note` describes its reliability.

        answer = model.predict(512)
        print(f"{answer.value:.2f} ({answer.low:.2f} to {answer.high:.2f}): {answer.note}")
    """
    value: float
    low: float
    high: float
    note: str


class ScalingModel:
    """A straight line through (size, value), robust against single outliers, with a 95 % interval of its slope.

        model = tare.ScalingModel([8, 16, 32, 64, 128, 256], seconds, "s")
        print(model.predict(512))
    """

    def __init__(self, sizes: Sequence[float], values: Sequence[float], unit: str = "") -> None:
        pairs = sorted(zip(sizes, values))
        if len(sizes) != len(values):
            raise ValueError(f"{len(sizes)} sizes and {len(values)} values")
        if len(pairs) < 2:
            raise ValueError("a line needs two sizes or more")
        if any(not isinstance(one, (int, float)) or one != one for pair in pairs for one in pair):
            raise ValueError("sizes and values are numbers")
        if len({size for size, _ in pairs}) < len(pairs):
            raise ValueError("a size is given twice")
        self.unit = unit
        self.sizes = [float(size) for size, _ in pairs]
        self.values = [float(value) for _, value in pairs]
        self.slope, self._low, self._high, self.fit = _engine.trend(self.sizes, self.values)
        self.intercept = self._through(self.slope)
        self.residual = max(abs(value - self._at(size)) for size, value in pairs)

    def _through(self, slope: float) -> float:
        return statistics.median(value - slope * size for size, value in zip(self.sizes, self.values))

    def _at(self, size: float) -> float:
        return self.intercept + self.slope * size

    def predict(self, size: float) -> Prediction:
        """The value at a size. The interval contains the lines of the slope's 95 % interval, widened by the largest
        distance of a measured value from the line; with fewer than 6 sizes it is missing.

            seconds = model.predict(1024)
        """
        _check.number(size, "size")
        if self._low != self._low:
            none = Missing(f"{len(self.sizes)} sizes were measured; an interval needs {NEEDED}")
            return Prediction(self._at(size), none, none, self._note(size))
        ends = [self._at(size)] + [self._through(slope) + slope * size for slope in (self._low, self._high)]
        return Prediction(ends[0], min(ends) - self.residual, max(ends) + self.residual, self._note(size))

    def _note(self, size: float) -> str:
        notes = ["an estimate"]
        if self.fit < limit("SCALING_FIT"):
            notes.append(f"the measured values are no straight line (R squared {self.fit:.2f})")
        far = limit("SCALING_FURTHEST")
        if size > far * self.sizes[-1] or size < self.sizes[0] / far:
            notes.append(f"far from what was measured ({self.sizes[0]:g} to {self.sizes[-1]:g})")
        return "; ".join(notes)

    def largest(self, limit: float) -> float:
        """The largest size whose upper bound stays below a limit: the largest batch that fits.

            model.largest(0.9 * free_memory_mb)
        """
        top = self.predict(0).high
        if isinstance(top, Missing):
            return top
        if not self._high > 0:
            return Missing("the value does not grow with the size")
        if self.predict(self.sizes[0]).high > limit and self.predict(0).high > limit:
            return Missing("no size is below the limit")
        low, high = 0.0, self.sizes[-1]
        while self.predict(high).high <= limit and high < 1e15:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.predict(middle).high <= limit else (low, middle)
        return low

    def __repr__(self) -> str:
        return f"ScalingModel({self.intercept:.4g} + {self.slope:.4g} * size {self.unit}, R squared {self.fit:.3f})"


class Scaling(NamedTuple):
    """The result of measure_scaling: time in seconds, memory in MB that a call adds at its peak.

        print(scaling.time, scaling.memory.predict(64).value)
    """
    sizes: List[float]
    time: ScalingModel
    memory: ScalingModel
    rows: List[Dict[str, float]]


def measure_scaling(function: Callable[[Any], Any], sizes: Iterable[Any], repeats: int = 5) -> Scaling:
    """Calls function(size) for each size, `repeats` times after one untimed call, alternating between sizes, so that
    variations of the machine affect all sizes equally; fits lines through the median times and peaks. Exact peaks of
    resident memory (see Recorder) are preferred to lower bounds.

        scaling = tare.measure_scaling(lambda n: model(torch.randn(n, 3, 224, 224)), [1, 2, 4, 8, 16, 32])
        print(scaling.time.predict(64), scaling.memory.largest(16000))
    """
    if not callable(function):
        raise TypeError(f"function is called with a size, not {type(function).__name__}")
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise ValueError(f"repeats is a number from 1, not {repeats!r}")
    chosen = sorted(sizes)
    profiler = PerformanceProfiler()
    seconds: Dict[Any, List[float]] = {size: [] for size in chosen}
    memory: Dict[Any, List[float]] = {size: [] for size in chosen}
    exact: Dict[Any, List[float]] = {size: [] for size in chosen}

    def call(size: Any) -> float:
        with profiler.profile(f"size {size}"):
            function(size)
        reported = profiler.get_metrics()
        added = reported.memory.peak_ram_mb - reported.memory.ram_before_mb
        (memory if reported.memory.peak_ram_note else exact)[size].append(added)
        return reported.timing.wall_time_s
    function(chosen[0])
    for size in chosen:  # from small to large, each exceeds the earlier peaks: these peaks are exact
        call(size)
    for _ in range(repeats):
        for size in chosen:
            seconds[size].append(call(size))
    memory = {size: exact[size] or memory[size] for size in chosen}
    rows = [{"size": size, "median_s": statistics.median(seconds[size]), "min_s": min(seconds[size]),
             "max_s": max(seconds[size]), "peak_mb": statistics.median(memory[size])} for size in chosen]
    return Scaling([float(size) for size in chosen], ScalingModel(chosen, [row["median_s"] for row in rows], "s"),
                   ScalingModel(chosen, [row["peak_mb"] for row in rows], "MB"), rows)
