"""Tare, a profiler for machine-learning workloads."""
from . import _core  # noqa: F401
from ._core import __version__  # noqa: F401
from ._core import (  # noqa: F401
    Aggregate, Block, Missing, Recorder, Result, Span, begin, count_samples, counter, end, epoch_begin, epoch_end,
    epoch_next, mark, output, pause, recording, resume, span, start, step_begin, step_end, step_next, stop,
    thread_name)

TYPE_CHECKING = False  # known to type checkers by its name; `typing` is 15 ms of a start that records spans only
if TYPE_CHECKING:
    from ._report import Report, Row, Table, open, report  # noqa: F401
    from .config import ProfilerAction, ProfilingConfig, create_profiling_config, load_settings  # noqa: F401
    from .integrations.notebook import load_ipython_extension, unload_ipython_extension  # noqa: F401
    from .integrations.trackers import log_to_mlflow, log_to_wandb  # noqa: F401
    from .lines import LineProfile, profile_lines  # noqa: F401
    from .profiler import record_function, schedule, tensorboard_trace_handler  # noqa: F401
    from .seeds._bottlenecks import Bottleneck  # noqa: F401
    from .seeds._compare import Comparison  # noqa: F401
    from .seeds.adaptive import AdaptiveProfiler, Coverage  # noqa: F401
    from .seeds.dataloading import DataLoadingProfiler  # noqa: F401
    from .seeds.epoch import EpochPerformanceMonitor  # noqa: F401
    from .seeds.functions import FunctionProfiler, profile_function  # noqa: F401
    from .seeds.leaks import LeakReport, detect_memory_leak  # noqa: F401
    from .seeds.metric import Metric, plain  # noqa: F401
    from .seeds.model import ModelProfiler, ProfileResults  # noqa: F401
    from .seeds.model.check import (  # noqa: F401
        CapacityPlan, ModelAlertWarning, Regression, ThresholdCheck, Trend, check_thresholds, detect_regressions,
        load_baseline, model_trend, parse_threshold, plan_capacity)
    from .seeds.monitor import PerformanceMonitor, cudnn_benchmark  # noqa: F401
    from .seeds.optimize import ModelOptimizer  # noqa: F401
    from .seeds.performance import PerformanceProfiler  # noqa: F401
    from .seeds.pipeline import CodeProfiler, PipelineReport  # noqa: F401
    from .seeds.platforms import PlatformComparison, compare_reports  # noqa: F401
    from .seeds.production import (  # noqa: F401
        PerformanceRegressionDetector, PerformanceRegressionWarning, ProductionProfiler, RegressionCheck,
        SlaViolationWarning, diagnose_performance_issues, save_baseline)
    from .seeds.recommend import Recommendation  # noqa: F401
    from .seeds.rules import Observed, Operation, bottleneck_rule, remove_rule  # noqa: F401
    from .seeds.scaling import Prediction, Scaling, ScalingModel, measure_scaling  # noqa: F401
    from .seeds.suggestions import Suggestions  # noqa: F401
    from .seeds.torchprofiler import PyTorchProfiler  # noqa: F401
    from .seeds.track import monitor_performance, track_performance  # noqa: F401
del TYPE_CHECKING

# Imported on first use: an interpreter that records spans only must not pay for them at startup.
_LATER = {name: module for module, names in {
    "_report": "Report Row Table open report",
    "config": "ProfilerAction ProfilingConfig create_profiling_config load_settings",
    "integrations.notebook": "load_ipython_extension unload_ipython_extension",
    "integrations.trackers": "log_to_mlflow log_to_wandb",
    "lines": "LineProfile profile_lines",
    "profiler": "record_function schedule tensorboard_trace_handler",
    "seeds._bottlenecks": "Bottleneck",
    "seeds._compare": "Comparison",
    "seeds.adaptive": "AdaptiveProfiler Coverage",
    "seeds.dataloading": "DataLoadingProfiler",
    "seeds.epoch": "EpochPerformanceMonitor",
    "seeds.functions": "FunctionProfiler profile_function",
    "seeds.leaks": "LeakReport detect_memory_leak",
    "seeds.metric": "Metric plain",
    "seeds.model": "ModelProfiler ProfileResults",
    "seeds.model.check": "CapacityPlan ModelAlertWarning Regression ThresholdCheck Trend check_thresholds "
                         "detect_regressions load_baseline model_trend parse_threshold plan_capacity",
    "seeds.monitor": "PerformanceMonitor cudnn_benchmark",
    "seeds.optimize": "ModelOptimizer",
    "seeds.performance": "PerformanceProfiler",
    "seeds.pipeline": "CodeProfiler PipelineReport",
    "seeds.platforms": "PlatformComparison compare_reports",
    "seeds.production": "PerformanceRegressionDetector PerformanceRegressionWarning ProductionProfiler RegressionCheck "
                        "SlaViolationWarning diagnose_performance_issues save_baseline",
    "seeds.recommend": "Recommendation",
    "seeds.rules": "Observed Operation bottleneck_rule remove_rule",
    "seeds.scaling": "Prediction Scaling ScalingModel measure_scaling",
    "seeds.suggestions": "Suggestions",
    "seeds.torchprofiler": "PyTorchProfiler",
    "seeds.track": "monitor_performance track_performance",
}.items() for name in names.split()}
_PACKAGES = ("config", "integrations", "lines", "profiler", "seeds", "torch")  # `tare.lines` works without an import


def __getattr__(name):
    from importlib import import_module
    if name in _LATER:
        value = getattr(import_module("." + _LATER[name], __name__), name)
    elif name in _PACKAGES:
        value = import_module("." + name, __name__)
    else:
        raise AttributeError(f"module 'tare' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LATER})
