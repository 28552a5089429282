"""Tare, a profiler for machine-learning workloads."""
from . import _core  # noqa: F401
from ._core import __version__  # noqa: F401
from ._core import (  # noqa: F401
    Aggregate, Block, Missing, Recorder, Result, Span, begin, count_samples, counter, end, epoch_begin, epoch_end,
    epoch_next, mark, output, pause, recording, resume, span, start, step_begin, step_end, step_next, stop,
    thread_name)

TYPE_CHECKING = False  # known to type checkers by its name; `typing` is 15 ms of a start that records spans only
if TYPE_CHECKING:
    from ._bottlenecks import Bottleneck  # noqa: F401
    from ._report import Report, Row, Table, open, report  # noqa: F401
    from ._torchprofiler import PyTorchProfiler  # noqa: F401
    from .config import ProfilerAction, ProfilingConfig, create_profiling_config, load_settings  # noqa: F401
    from .dataloading import DataLoadingProfiler  # noqa: F401
    from .epoch import EpochPerformanceMonitor  # noqa: F401
    from .functions import FunctionProfiler, profile_function  # noqa: F401
    from .lines import LineProfile, profile_lines  # noqa: F401
    from .metric import Metric, plain  # noqa: F401
    from .model import (  # noqa: F401
        CapacityPlan, ModelAlertWarning, ModelProfiler, ProfileResults, Regression, ThresholdCheck, Trend,
        check_thresholds, detect_regressions, load_baseline, model_trend, parse_threshold, plan_capacity)
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
    from .profiler import record_function, schedule, tensorboard_trace_handler  # noqa: F401
    from .recommend import Recommendation  # noqa: F401
    from .adaptive import AdaptiveProfiler, Coverage  # noqa: F401
    from .platforms import PlatformComparison, compare_reports  # noqa: F401
    from .rules import Observed, Operation, bottleneck_rule, remove_rule  # noqa: F401
    from .scaling import Prediction, Scaling, ScalingModel, measure_scaling  # noqa: F401
    from .suggestions import Suggestions  # noqa: F401
    from .trackers import log_to_mlflow, log_to_wandb  # noqa: F401
    from .track import monitor_performance, track_performance  # noqa: F401
del TYPE_CHECKING

# Imported when they are first asked for: an interpreter that records spans only must not pay for them at its start.
_LATER = {
    "AdaptiveProfiler": "adaptive",
    "Bottleneck": "_bottlenecks",
    "CapacityPlan": "model_check",
    "CodeProfiler": "pipeline",
    "Comparison": "_compare",
    "Coverage": "adaptive",
    "DataLoadingProfiler": "dataloading",
    "EpochPerformanceMonitor": "epoch",
    "FunctionProfiler": "functions",
    "LeakReport": "leaks",
    "LineProfile": "lines",
    "Metric": "metric",
    "ModelAlertWarning": "model_check",
    "ModelOptimizer": "optimize",
    "ModelProfiler": "model",
    "Observed": "rules",
    "Operation": "rules",
    "PerformanceMonitor": "monitor",
    "PerformanceProfiler": "performance",
    "PerformanceRegressionDetector": "production",
    "PerformanceRegressionWarning": "production",
    "PipelineReport": "pipeline",
    "PlatformComparison": "platforms",
    "Prediction": "scaling",
    "ProductionProfiler": "production",
    "ProfileResults": "model",
    "ProfilerAction": "config",
    "ProfilingConfig": "config",
    "PyTorchProfiler": "_torchprofiler",
    "Recommendation": "recommend",
    "Regression": "model_check",
    "RegressionCheck": "production",
    "Report": "_report",
    "Row": "_report",
    "Scaling": "scaling",
    "ScalingModel": "scaling",
    "SlaViolationWarning": "production",
    "Suggestions": "suggestions",
    "Table": "_report",
    "ThresholdCheck": "model_check",
    "Trend": "model_check",
    "bottleneck_rule": "rules",
    "check_thresholds": "model_check",
    "compare_reports": "platforms",
    "create_profiling_config": "config",
    "cudnn_benchmark": "monitor",
    "detect_memory_leak": "leaks",
    "detect_regressions": "model_check",
    "diagnose_performance_issues": "production",
    "load_baseline": "model_check",
    "load_ipython_extension": "notebook",
    "load_settings": "config",
    "log_to_mlflow": "trackers",
    "log_to_wandb": "trackers",
    "measure_scaling": "scaling",
    "model_trend": "model_check",
    "open": "_report",
    "monitor_performance": "track",
    "parse_threshold": "model_check",
    "plain": "metric",
    "plan_capacity": "model_check",
    "profile_function": "functions",
    "profile_lines": "lines",
    "record_function": "profiler",
    "remove_rule": "rules",
    "report": "_report",
    "save_baseline": "production",
    "schedule": "profiler",
    "tensorboard_trace_handler": "profiler",
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
