"""Bottleneck rules of PerformanceMonitor and EpochPerformanceMonitor."""
from dataclasses import dataclass
from typing import Dict, Iterable, List, Tuple

from .._core import unit
from ._limits import limit, percent


@dataclass(frozen=True)
class Bottleneck:
    """A bottleneck: `text` states what and how much, `advice` what to do. Prints as its text.

        for found in monitor.bottlenecks():
            print(found, *found.advice, sep="\\n  ")
    """
    operation: str
    kind: str        #: "share", "loading", "forward", "backward", "variance", "first batch"
    severity: str    #: "bottleneck" or "consider"
    value: float     #: percent of the time; for variance the ratio of the slowest to the fastest
    text: str
    advice: Tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Part:
    """An operation's share of the time: self time, and including inner blocks."""
    operation: str
    self_percent: float
    percent: float


# By what the engine says that an operation of this name does: limit, display name, advice
_PHASES: Dict[str, Tuple[str, str, Tuple[str, ...]]] = {
    "loading": ("LOADING", "loading data", (
        "load in parallel: DataLoader(num_workers=4)", "copy from pinned memory: DataLoader(pin_memory=True)",
        "load ahead: DataLoader(prefetch_factor=2)")),
    "forward": ("FORWARD", "the forward pass", (
        "compute in half precision: torch.autocast", "a smaller model: fewer filters or layers, separable convolutions",
        "where memory is what limits the batch: torch.utils.checkpoint")),
    "backward": ("BACKWARD", "the backward pass", (
        "scale the loss and compute in half precision: torch.amp.GradScaler",
        "smaller batches whose gradients are accumulated", "optimizer.zero_grad(set_to_none=True)")),
}


def _phase_of(part: Part, hidden: Iterable[str]) -> Iterable[Bottleneck]:
    from .. import _engine  # imported only if needed: its library reads traces
    kind = _engine.phase_of(part.operation)
    if kind is None or kind in hidden:
        return
    name, called, advice = _PHASES[kind]
    if part.percent > percent(name):
        yield Bottleneck(part.operation, kind, "bottleneck", part.percent,
                         f"{part.operation}: {called} takes {part.percent:.1f} % of the time "
                         f"(more than {percent(name):.0f} %)", advice)


def shares(parts: Iterable[Part], hidden: Iterable[str] = ()) -> List[Bottleneck]:
    """Operations above the limits, the largest first. Rules named in `hidden` are skipped."""
    hidden = tuple(hidden)
    found: List[Bottleneck] = []
    for part in sorted(parts, key=lambda part: -part.self_percent):
        share = part.self_percent
        if share > percent("OPERATION_LARGE"):
            found.append(Bottleneck(part.operation, "share", "bottleneck", share,
                                    f"BOTTLENECK: {part.operation} ({share:.1f}%)", ("optimize this first",)))
        elif share > percent("OPERATION_INFO"):
            found.append(Bottleneck(part.operation, "share", "consider", share,
                                    f"Consider optimizing: {part.operation} ({share:.1f}%)"))
        found.extend(_phase_of(part, hidden))
    return found


def variance(operation: str, least: float, most: float, count: int) -> List[Bottleneck]:
    """A repeated operation whose slowest run took more than twice as long as its fastest."""
    if count < 2 or not least > 0 or not most / least > limit("STEP_RATIO"):
        return []
    ratio = most / least
    return [Bottleneck(operation, "variance", "consider", ratio,
                       f"{operation}: the slowest of {count} took {ratio:.1f} times the fastest "
                       f"({unit(most, 's')}, {unit(least, 's')})",
                       ("inputs of different shapes: pad them, or sort batches by size",
                        "costly random augmentation: compute it beforehand",
                        "a cold start: exclude the first ones, or warm up"))]


def first_batch(operation: str, first: float, others_mean: float, count: int) -> List[Bottleneck]:
    """A first batch that took more than twice as long as the others."""
    if count < 2 or not others_mean > 0 or not first / others_mean > limit("FIRST_STEP_RATIO"):
        return []
    ratio = first / others_mean
    return [Bottleneck(operation, "first batch", "consider", ratio,
                       f"the first {operation} took {ratio:.1f} times the others "
                       f"({unit(first, 's')}, {unit(others_mean, 's')})",
                       ("it includes startup (compilation, memory, caches): run one batch before timing",))]


def between_batches(share: float) -> List[Bottleneck]:
    """Time of epochs outside of batches: the loop waits for its loader there."""
    name, _, advice = _PHASES["loading"]
    if not share > percent(name):
        return []
    return [Bottleneck("between batches", "loading", "bottleneck", share,
                       f"{share:.1f} % of the epochs' time is outside of batches (more than {percent(name):.0f} %): "
                       "loading data, or what follows the last batch", advice)]
