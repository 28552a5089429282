"""Tare weighs a program and takes its own weight off the scale."""
from . import _core  # noqa: F401
from ._core import __version__  # noqa: F401
from ._core import (  # noqa: F401
    Aggregate, Block, Missing, Recorder, Result, Span, begin, count_samples, counter, end, epoch_begin, epoch_end,
    epoch_next, mark, output, pause, recording, resume, span, start, step_begin, step_end, step_next, stop,
    thread_name)

TYPE_CHECKING = False  # known to type checkers by its name; `typing` is 15 ms of a start that records spans only
if TYPE_CHECKING:
    from ._bottlenecks import Bottleneck  # noqa: F401
    from ._report import Report, Row, report  # noqa: F401
    from ._torchprofiler import PyTorchProfiler  # noqa: F401
    from .config import ProfilerAction, ProfilingConfig, create_profiling_config, load_settings  # noqa: F401
    from .dataloading import DataLoadingProfiler  # noqa: F401
    from .epoch import EpochPerformanceMonitor  # noqa: F401
    from .functions import FunctionProfiler, profile_function  # noqa: F401
    from .lines import LineProfile, profile_lines  # noqa: F401
    from .metric import Metric  # noqa: F401
    from .monitor import PerformanceMonitor, cudnn_benchmark  # noqa: F401
    from .notebook import load_ipython_extension, unload_ipython_extension  # noqa: F401
    from .optimize import ModelOptimizer  # noqa: F401
    from ._compare import Comparison  # noqa: F401
    from .leaks import LeakReport, detect_memory_leak  # noqa: F401
    from .performance import PerformanceProfiler  # noqa: F401
    from .pipeline import CodeProfiler, PipelineReport  # noqa: F401
    from .production import (  # noqa: F401
        PerformanceRegressionDetector, PerformanceRegressionWarning, ProductionProfiler, RegressionCheck,
        SlaViolationWarning, diagnose_performance_issues, save_baseline)
    from .recommend import Recommendation  # noqa: F401
    from .track import monitor_performance, track_performance  # noqa: F401
del TYPE_CHECKING

# Imported when they are first asked for: an interpreter that records spans only must not pay for them at its start.
_LATER = {
    "Bottleneck": "_bottlenecks",
    "CodeProfiler": "pipeline",
    "Comparison": "_compare",
    "DataLoadingProfiler": "dataloading",
    "EpochPerformanceMonitor": "epoch",
    "FunctionProfiler": "functions",
    "LeakReport": "leaks",
    "LineProfile": "lines",
    "Metric": "metric",
    "ModelOptimizer": "optimize",
    "PerformanceMonitor": "monitor",
    "PerformanceProfiler": "performance",
    "PerformanceRegressionDetector": "production",
    "PerformanceRegressionWarning": "production",
    "PipelineReport": "pipeline",
    "ProductionProfiler": "production",
    "ProfilerAction": "config",
    "ProfilingConfig": "config",
    "PyTorchProfiler": "_torchprofiler",
    "Recommendation": "recommend",
    "RegressionCheck": "production",
    "Report": "_report",
    "Row": "_report",
    "SlaViolationWarning": "production",
    "create_profiling_config": "config",
    "cudnn_benchmark": "monitor",
    "detect_memory_leak": "leaks",
    "diagnose_performance_issues": "production",
    "load_ipython_extension": "notebook",
    "load_settings": "config",
    "monitor_performance": "track",
    "profile_function": "functions",
    "profile_lines": "lines",
    "report": "_report",
    "save_baseline": "production",
    "track_performance": "track",
    "unload_ipython_extension": "notebook",
}


def __getattr__(name):
    from importlib import import_module
    if name in _LATER:
        value = getattr(import_module("." + _LATER[name], __name__), name)
    elif name in _LATER.values() and not name.startswith("_"):
        value = import_module("." + name, __name__)  # `tare.lines` without an import of its own
    else:
        raise AttributeError(f"module 'tare' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LATER})
