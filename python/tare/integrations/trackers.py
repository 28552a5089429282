"""Logs measurements to an experiment tracker: MLflow, Weights & Biases."""
import math
import re
from typing import Any, Dict, Mapping, Optional

from ..seeds._metrics import _Group

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_\-. /]")


def figures_of(source: Any, prefix: str = "tare") -> Dict[str, float]:
    """The numbers of a profiler, a monitor, metrics or a report, by name; missing values are omitted.

        figures_of(profiler)["tare/training/timing.wall_time_s"]
    """
    found: Dict[str, float] = {}
    if callable(getattr(source, "recorder", None)) or hasattr(source, "recorder"):  # PerformanceProfiler
        for name in source.recorder.names():
            _gather(source.get_metrics(name).to_dict(), f"{prefix}/{name}", found)
    elif hasattr(source, "get_aggregates"):  # PerformanceMonitor
        for name, values in source.get_summary().items():
            _gather(values, f"{prefix}/machine/{name}", found)
        for name in source._recorder.names():
            one = source._recorder.aggregate(name)
            _gather({field: getattr(one, field) for field in ("count", "total_s", "mean_s", "p95_s", "max_s")},
                    f"{prefix}/{name}", found)
    elif isinstance(source, _Group):
        _gather(source.to_dict(), prefix, found)
    elif isinstance(source, Mapping):
        _gather(source, prefix, found)
    else:
        raise TypeError("what is logged is a profiler, a monitor, metrics or a report, "
                        f"not {type(source).__name__}")
    return found


def _gather(value: Any, path: str, to: Dict[str, float]) -> None:
    if isinstance(value, Mapping):
        for name, one in value.items():
            if name not in ("missing", "config"):
                _gather(one, f"{path}/{name}", to)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        to[_NOT_IN_A_NAME.sub("_", path)] = float(value)


def log_to_mlflow(source: Any, step: Optional[int] = None, *, prefix: str = "tare") -> Dict[str, float]:
    """Logs all figures as metrics of the active MLflow run (MLflow begins one where there is none), and returns them.
    ImportError without MLflow.

        with mlflow.start_run():
            tare.log_to_mlflow(profiler)
    """
    try:
        import mlflow
    except ImportError:
        raise ImportError("log_to_mlflow() needs MLflow: pip install mlflow-skinny") from None
    figures = figures_of(source, prefix)
    mlflow.log_metrics(figures, step=step)
    return figures


def log_to_wandb(source: Any, step: Optional[int] = None, *, prefix: str = "tare") -> Dict[str, float]:
    """Logs all figures to the active run of Weights & Biases, and returns them. ImportError without wandb,
    RuntimeError without a run.

        wandb.init(project="vision")
        tare.log_to_wandb(profiler)
    """
    try:
        import wandb
    except ImportError:
        raise ImportError("log_to_wandb() needs Weights & Biases: pip install wandb") from None
    if wandb.run is None:
        raise RuntimeError("there is no run to log to: wandb.init() begins one")
    figures = figures_of(source, prefix)
    wandb.run.log(figures, step=step)
    return figures
