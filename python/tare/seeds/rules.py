"""Custom bottleneck rules, evaluated wherever Tare detects bottlenecks."""
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional

from ._bottlenecks import Bottleneck


class Operation(NamedTuple):
    """Sums of all blocks of a name: seconds, and percent of the total time.

        seen.operations["forward"].mean_s
    """
    name: str
    count: int
    total_s: float
    self_s: float
    mean_s: float
    p95_s: float
    percent: float
    self_percent: float


@dataclass(frozen=True)
class Observed:
    """The input of a rule.

        seen.operations["tokenize"].self_percent
    """
    source: str  #: "monitor", "epochs" or "report"
    operations: Mapping[str, Operation] = field(default_factory=dict)
    machine: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  #: as get_summary() gives it
    usage: Any = None  #: of a report: its usage row


Rule = Callable[[Observed], Any]
_rules: Dict[str, Rule] = {}


def bottleneck_rule(rule: Optional[Rule] = None, *, name: Optional[str] = None) -> Any:
    """Registers a rule: a function of what was observed that returns nothing, a sentence, a Bottleneck, or several.
    PerformanceMonitor.bottlenecks(), EpochPerformanceMonitor.bottlenecks(), Report.bottlenecks() and suggestions
    evaluate it from then on; a rule of the same name is replaced.

        @tare.bottleneck_rule
        def slow_tokenizer(seen):
            one = seen.operations.get("tokenize")
            if one and one.self_percent > 20:
                return f"tokenize once, ahead of time: it takes {one.self_percent:.0f} %"
    """
    def register(function: Rule) -> Rule:
        if not callable(function):
            raise TypeError(f"a rule is a function of what was observed, not {type(function).__name__}")
        _rules[name or getattr(function, "__name__", repr(function))] = function
        return function
    return register if rule is None else register(rule)


def remove_rule(name: str) -> None:
    """Removes a rule. KeyError if it does not exist.

        tare.remove_rule("slow_tokenizer")
    """
    if name not in _rules:
        raise KeyError(f"there is no rule {name!r}; there are {', '.join(map(repr, _rules)) or 'none'}")
    del _rules[name]


def apply(seen: Observed) -> List[Bottleneck]:
    """The findings of the registered rules. An error in a rule is reported and does not affect the others."""
    found: List[Bottleneck] = []
    for name, rule in list(_rules.items()):
        try:
            given = rule(seen)
            some: Iterable[Any] = () if given is None else [given] if isinstance(given, (str, Bottleneck)) else given
            found += [_as_bottleneck(name, one) for one in some]
        except Exception as error:
            found.append(Bottleneck(name, "rule", "consider", float("nan"),
                                    f"the rule {name} failed: {type(error).__name__}: {error}"))
    return found


def _as_bottleneck(name: str, one: Any) -> Bottleneck:
    if isinstance(one, Bottleneck):
        return one
    if isinstance(one, str):
        return Bottleneck(name, "rule", "consider", float("nan"), one)
    raise TypeError(f"a rule gives sentences or Bottlenecks, not {type(one).__name__}")


def operation_of(aggregate: Any, total: float) -> Operation:
    """From a recorder's sums."""
    share = 100 / total if total > 0 else float("nan")
    return Operation(aggregate.name, aggregate.count, aggregate.total_s, aggregate.self_s, aggregate.mean_s,
                     aggregate.p95_s, aggregate.total_s * share, aggregate.self_s * share)
