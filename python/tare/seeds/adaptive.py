"""AdaptiveProfiler: measures as many blocks as an overhead budget allows."""
import collections
import math
import statistics
import threading
import time
from typing import Any, Deque, Dict, NamedTuple, Optional

from .. import _check
from .._core import Missing
from .performance import PerformanceProfiler

_FIRST = 3      # blocks of a name that are always measured
_LAST = 5       # measured blocks that the decision is based on
_EVERY_MAX = 10000


class Coverage(NamedTuple):
    """How many blocks of a name were measured, and an estimate for all of them.

        coverage = profiler.get_coverage("batch")
        print(f"{coverage.measured} of {coverage.seen}, {coverage.overhead_percent:.2f} % spent on it")
    """
    seen: int              #: blocks that ran
    measured: int          #: blocks that were measured
    every: int             #: one in this many is measured now
    cost_s: float          #: cost of measuring a block, as measured
    overhead_percent: float  #: time spent measuring, of the time in all blocks (an estimate if some were skipped)
    estimated_total_s: float  #: of all blocks: the mean of the measured ones times how many there were
    note: str


class _Pace:
    """Decides for one name which block is measured next."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen = self.measured = 0
        self.left = 0  # blocks to skip before the next
        self.every = 1
        self.costs: Deque[float] = collections.deque(maxlen=_LAST)
        self.walls: Deque[float] = collections.deque(maxlen=_LAST)
        self.cost_total = self.wall_total = 0.0

    def wants(self) -> bool:
        with self.lock:
            self.seen += 1
            if self.left > 0:
                self.left -= 1
                return False
            self.measured += 1
            self.left = self.every - 1
            return True

    def learn(self, cost: float, wall: float, budget: float) -> None:
        with self.lock:
            self.costs.append(cost)
            self.walls.append(wall)
            self.cost_total += cost
            self.wall_total += wall
            if self.measured < _FIRST:
                return
            # The lowest cost: anything above it was caused by the machine, not by measuring.
            cost, wall = min(self.costs), statistics.median(self.walls)
            self.every = _EVERY_MAX if wall <= 0 else max(1, min(_EVERY_MAX, math.ceil(cost / (budget * wall))))
            self.left = self.every - 1


class _LeftOut:
    """A block that is only counted."""

    def __init__(self, name: str, samples: Optional[float]) -> None:
        self.name = name
        self.samples = samples
        self.result = None

    def __enter__(self) -> "_LeftOut":
        return self

    def __exit__(self, *exception: Any) -> None:
        return None


class _Weighed:
    """A block that is measured, and whose measuring is measured."""

    def __init__(self, block: Any, pace: _Pace, budget: float) -> None:
        self._block, self._pace, self._budget = block, pace, budget

    def __getattr__(self, name: str) -> Any:
        return getattr(self._block, name)

    def __enter__(self) -> Any:
        clock = time.perf_counter
        begun = clock()
        self._block.__enter__()
        self._inside = clock()
        self._cost = self._inside - begun
        return self._block

    def __exit__(self, *exception: Any) -> None:
        clock = time.perf_counter
        ended = clock()
        self._block.__exit__(*exception)
        self._pace.learn(self._cost + clock() - ended, ended - self._inside, self._budget)


class AdaptiveProfiler(PerformanceProfiler):
    """A PerformanceProfiler that measures one in N blocks of a name, with N such that measuring takes no more than
    `budget` of the time in these blocks. The first ones and all long blocks are always measured. get_metrics() covers
    the measured blocks; get_coverage() returns how many blocks ran, and estimates for all of them.

        profiler = tare.AdaptiveProfiler(budget=0.01, detailed_memory=True)
        for batch in loader:
            with profiler.profile("batch"):
                train(batch)
        print(profiler.get_coverage("batch"))
    """

    def __init__(self, budget: float = 0.01, **switches: Any) -> None:
        if not 0 < _check.number(budget, "budget", "a share of the time") <= 1:
            raise ValueError(f"budget is a share of the time, above 0 and up to 1, not {budget}")
        super().__init__(**switches)
        self.budget = float(budget)
        self._paces: Dict[str, _Pace] = {}

    def profile(self, name: str, samples: Optional[float] = None) -> Any:
        """A block; one in N of its name is measured.

            with profiler.profile("request"):
                answer()
        """
        pace = self._paces.get(name)
        if pace is None:
            pace = self._paces.setdefault(name, _Pace())
        if not pace.wants():
            return _LeftOut(name, samples)
        return _Weighed(super().profile(name, samples), pace, self.budget)

    def get_coverage(self, name: str) -> Coverage:
        """How many blocks of a name ran and were measured, what measuring costs, and the time of all of them.

            profiler.get_coverage("request").every
        """
        if name not in self._paces:
            self._find(name)
            raise KeyError(f"no block named {name!r} was profiled")
        pace = self._paces[name]
        with pace.lock:
            done = len(pace.costs) > 0
            none = Missing("no block has ended")
            mean = pace.wall_total / pace.measured if done else none
            total = mean * pace.seen
            overhead = 100 * pace.cost_total / total if done and total > 0 else none
            note = "every block was measured" if pace.measured == pace.seen else \
                f"an estimate: {pace.measured} of {pace.seen} blocks were measured"
            return Coverage(pace.seen, pace.measured, pace.every, min(pace.costs) if done else none, overhead, total,
                            note)
