"""Detects memory leaks from snapshots."""
from typing import Sequence

from .._core import Missing


def detect_memory_leak(snapshots: Sequence[float], threshold_mb: float = 100.0) -> "LeakReport":
    """Whether memory over snapshots in MB (of `get_current_memory()`) grew by more than a threshold, and grew
    throughout. Temporary memory is not growth: the minimum of each quarter of the snapshots is compared with that of
    the previous quarter (thirds below 8 snapshots; at least 3 are needed), and each has to add an eighth of the
    threshold and a quarter of the average growth. A single jump, a warm-up that ends and a sawtooth that returns to its
    minimum are not leaks: the engine decides this, by the rule of the finding `memory-growth`.

        report = tare.detect_memory_leak(snapshots)
        if report:
            print(report)
    """
    values = [float(value) for value in snapshots]
    if not threshold_mb >= 0:
        raise ValueError(f"threshold_mb is 0 or more, not {threshold_mb}")
    if len(values) < 2:
        missing = Missing("a growth needs two snapshots")
        return LeakReport(missing, missing, threshold_mb, False)
    if any(value != value for value in values):
        missing = Missing("a snapshot has no value")
        return LeakReport(missing, missing, threshold_mb, False)
    from .. import _engine  # imported only if needed: its library reads traces
    steps = [after - before for before, after in zip(values, values[1:])]
    growing = 100.0 * sum(step > 0 for step in steps) / len(steps)
    return LeakReport(values[-1] - values[0], growing, threshold_mb, _engine.grows(values, threshold_mb))


class LeakReport:
    """True if memory grew by more than the threshold, and the growth was sustained. `growing_percent` is the
    percentage of snapshots with more memory than the one before.

        report.growth_mb, report.sustained, report.growing_percent
    """

    def __init__(self, growth_mb: float, growing_percent: float, threshold_mb: float, sustained: bool) -> None:
        self.growth_mb = growth_mb
        self.growing_percent = growing_percent
        self.threshold_mb = threshold_mb
        self.sustained = sustained

    def __bool__(self) -> bool:
        return self.sustained and self.growth_mb > self.threshold_mb

    def __str__(self) -> str:
        what = "memory may leak" if self else "no leak found"
        how = ("sustained growth" if self.sustained else
               "no sustained growth" if not self.growth_mb > self.threshold_mb else
               "not sustained: a jump, a warm-up or fewer than 3 snapshots")
        return f"{what}: {self.growth_mb:+.1f} MB, {how}, up in {self.growing_percent:.0f} % of the steps"
