"""The thresholds of the rules, by their names in docs/FINDINGS.md. The engine states them; it is loaded when a rule is
evaluated, not into a program that is only measured."""


def limit(name: str) -> float:
    """Times in ns, memory in bytes, shares from 0 to 1."""
    from .. import _engine
    return _engine.limit(name)


def seconds(name: str) -> float:
    return limit(name) / 1e9


def percent(name: str) -> float:
    return 100 * limit(name)


def uneven(count: float, fastest_s: float, p50_s: float, p95_s: float, slowest_s: float) -> bool:
    """Whether durations differ so much that it costs time; NaN: unknown."""
    from .. import _engine
    return _engine.uneven(count, *(1e9 * one for one in (fastest_s, p50_s, p95_s, slowest_s)))
