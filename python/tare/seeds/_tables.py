"""The two tables of PerformanceMonitor, as text and as HTML."""
from typing import Any, Dict, List

from .._views import html_table
from .metric import Metric

WIDTH = 90
ROWS = 500  # of a table of blocks


def _short(name: str) -> str:
    return name if len(name) <= 30 else name[:29] + "…"


def block_table(metrics: List[Metric], total: float) -> List[str]:
    """The lines of the table of blocks."""
    lines = ["=" * WIDTH, "PERFORMANCE SUMMARY", "=" * WIDTH,
             f"{'Operation':<30} {'Time (s)':<12} {'CPU (MB)':<15} {'GPU (MB)':<15} GPU Peak", "-" * WIDTH]
    if len(metrics) > ROWS:
        lines.append(f"({len(metrics) - ROWS} earlier blocks are not shown)")
    for metric in metrics[-ROWS:]:
        lines.append(f"{_short(metric.operation):<30} {metric.duration_seconds:>10.3f} "
                     f"{metric.cpu_delta_mb:>+14.1f} {metric.gpu_delta_mb:>+14.1f} {metric.gpu_peak_mb:>11.1f}")
    lines += ["-" * WIDTH, f"{'TOTAL':<30} {total:>10.3f}s", "=" * WIDTH]
    return lines + _host_time(metrics[-ROWS:])


HOST_TIME = "Time (s) is host time. These blocks queued work that the GPU did later; time on its clock:"


def _host_time(metrics: List[Metric]) -> List[str]:
    """Names the blocks whose times do not include their work on the GPU."""
    found = [metric for metric in metrics if metric.host_time_only]
    lines = [f"  {_short(metric.operation):<30} {metric.device_text}" for metric in found[-10:]]
    return [HOST_TIME, *lines] if found else []


def aggregate_table(aggregates: Dict[str, Any]) -> List[str]:
    """The lines of the table of repeated operations."""
    lines = ["=" * WIDTH, "AGGREGATE STATISTICS (for repeated operations)", "=" * WIDTH,
             f"{'Operation':<30} {'Count':<8} {'Total (s)':<12} {'Mean (s)':<12} {'Min (s)':<12} Max (s)",
             "-" * WIDTH]
    for name, one in aggregates.items():
        total = f"{one.total_s:6.3f}"
        lines.append(f"{_short(name):<30} {one.count:<8} {total:<12} {one.mean_s:<12.3f} {one.min_s:<12.3f} "
                     f"{one.max_s:.3f}")
    return lines + ["=" * WIDTH]


def html_tables(metrics: List[Metric], aggregates: Dict[str, Any]) -> str:
    """Both, for a notebook."""
    return html_table(("Operation", "Time (s)", "CPU (MB)", "GPU (MB)", "GPU Peak (MB)"), [
        (metric.operation, f"{metric.duration_seconds:.3f}", f"{metric.cpu_delta_mb:+.1f}",
         f"{metric.gpu_delta_mb:+.1f}", f"{metric.gpu_peak_mb:.1f}") for metric in metrics[-ROWS:]]) + html_table(
        ("Operation", "Count", "Total (s)", "Mean (s)", "Min (s)", "Max (s)"), [
            (name, str(one.count), *(f"{value:.3f}" for value in (one.total_s, one.mean_s, one.min_s, one.max_s)))
            for name, one in aggregates.items()])
