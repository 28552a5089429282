"""Tare weighs a program and takes its own weight off the scale."""
from ._core import (  # noqa: F401
    Aggregate, Block, Missing, Recorder, Result, Span, begin, count_samples, counter, end, epoch_begin, epoch_end,
    epoch_next, mark, output, pause, recording, resume, span, start, step_begin, step_end, step_next, stop,
    thread_name)
from typing import TYPE_CHECKING as _CHECKING

if _CHECKING:
    from .functions import FunctionProfiler, profile_function  # noqa: F401
    from .lines import LineProfile, profile_lines  # noqa: F401
    from .performance import Comparison, LeakReport, PerformanceProfiler, detect_memory_leak  # noqa: F401
    from .production import (  # noqa: F401
        PerformanceRegressionDetector, PerformanceRegressionWarning, ProductionProfiler, RegressionCheck,
        SlaViolationWarning, diagnose_performance_issues, save_baseline)

# Imported when they are first asked for: an interpreter that records spans only must not pay for them at its start.
_LATER = {
    "FunctionProfiler": "functions",
    "LineProfile": "lines",
    "profile_function": "functions",
    "profile_lines": "lines",
    "Comparison": "performance",
    "LeakReport": "performance",
    "PerformanceProfiler": "performance",
    "PerformanceRegressionDetector": "production",
    "PerformanceRegressionWarning": "production",
    "ProductionProfiler": "production",
    "RegressionCheck": "production",
    "SlaViolationWarning": "production",
    "detect_memory_leak": "performance",
    "diagnose_performance_issues": "production",
    "save_baseline": "production",
}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'tare' has no attribute {name!r}")
    from importlib import import_module
    value = getattr(import_module("." + _LATER[name], __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LATER})
