"""Whether memory grows and grows."""
from typing import Sequence

from ._core import Missing


def detect_memory_leak(snapshots: Sequence[float], threshold_mb: float = 100.0) -> "LeakReport":
    """Whether memory over snapshots in MB (of `get_current_memory()`) grew by more than a threshold.

        report = tare.detect_memory_leak(snapshots)
        if report:
            print(report)
    """
    values = [float(value) for value in snapshots]
    if not threshold_mb >= 0:
        raise ValueError(f"threshold_mb is 0 or more, not {threshold_mb}")
    if len(values) < 2:
        missing = Missing("a growth needs two snapshots")
        return LeakReport(missing, missing, threshold_mb)
    if any(value != value for value in values):
        missing = Missing("a snapshot has no value")
        return LeakReport(missing, missing, threshold_mb)
    steps = [after - before for before, after in zip(values, values[1:])]
    return LeakReport(values[-1] - values[0], 100.0 * sum(step > 0 for step in steps) / len(steps), threshold_mb)


class LeakReport:
    """True when more was grown than the threshold. `growing_percent` is how many of the steps went up: near 100, it
    never stopped growing; a single jump is rather a cache that was filled.

        report.growth_mb, report.growing_percent
    """

    def __init__(self, growth_mb: float, growing_percent: float, threshold_mb: float) -> None:
        self.growth_mb = growth_mb
        self.growing_percent = growing_percent
        self.threshold_mb = threshold_mb

    def __bool__(self) -> bool:
        return self.growth_mb > self.threshold_mb

    def __str__(self) -> str:
        what = "memory may leak" if self else "no leak to be seen"
        return f"{what}: {self.growth_mb:+.1f} MB, up in {self.growing_percent:.0f} % of the steps"
