"""Tare weighs a program and takes its own weight off the scale."""
from ._core import (  # noqa: F401
    Aggregate, Block, Missing, Recorder, Result, Span, begin, count_samples, counter, end, epoch_begin, epoch_end,
    epoch_next, mark, output, pause, recording, resume, span, start, step_begin, step_end, step_next, stop,
    thread_name)
from .performance import Comparison, LeakReport, PerformanceProfiler, detect_memory_leak  # noqa: F401
from .production import (  # noqa: F401
    PerformanceRegressionDetector, PerformanceRegressionWarning, ProductionProfiler, RegressionCheck,
    SlaViolationWarning, diagnose_performance_issues, save_baseline)
