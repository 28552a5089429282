"""Names side by side, and rows as text, CSV and DataFrames."""
from typing import Any, Dict, List, Optional, Sequence

from .. import _check
from .._core import Missing
from .._files import write_whole
from .._views import Cell, csv_text, html_table
from ._metrics import Metrics, show
from .metric import plain_apart


def deliver(text: str, path: Any) -> str:
    """Writes atomically."""
    if path is not None:
        write_whole(path, text)
    return text


def csv_of(rows: Sequence[Dict[str, Any]], columns: Sequence[str]) -> str:
    """The rows as CSV text: n/a for missing values, the reasons in the last column."""
    lines = []
    for row in rows:
        reasons: Dict[str, str] = {}
        values = plain_apart(row, reasons)
        cells = ["n/a" if name in reasons else values[name] for name in columns]
        lines.append([*cells, "; ".join(f"{name}: {reason}" for name, reason in reasons.items())])
    return csv_text([*columns, "missing"], lines)


def frame_of(rows: Sequence[Dict[str, Any]], columns: Sequence[str]) -> Any:
    """The rows as a DataFrame, NaN for missing values."""
    values = [[float(row[name]) if isinstance(row[name], Missing) else row[name] for name in columns] for row in rows]
    return _check.pandas().DataFrame(values, columns=list(columns))


class Comparison:
    """A table that compares names: counts, times, memory and throughput.

        table = profiler.compare(["batch_16", "batch_32"])
        best = table.best("throughput")
    """
    COLUMNS = ("name", "count", "time_s", "mean_s", "p95_s", "self_percent", "peak_ram_mb", "peak_gpu_mb", "flops",
               "throughput")

    def __init__(self, metrics: List[Metrics]) -> None:
        whole = sum(item.timing.self_time_s for item in metrics)
        self.rows: List[Dict[str, Any]] = [{
            "name": item.name, "count": item.timing.count, "time_s": item.timing.wall_time_s,
            "mean_s": item.timing.mean_s, "p95_s": item.timing.p95_s,
            "self_percent": item.timing.self_time_s / whole * 100 if whole > 0 else Missing("no time was measured"),
            "peak_ram_mb": item.memory.peak_ram_mb, "peak_gpu_mb": item.memory.peak_gpu_mb,
            "flops": item.compute.estimated_flops, "throughput": item.throughput} for item in metrics]

    def best(self, column: str) -> str:
        """The name with the highest throughput, or with the lowest value of another column.

            profiler.compare().best("mean_s")
        """
        if column not in self.COLUMNS[1:]:
            raise ValueError(f"no column {column!r}; there are {', '.join(self.COLUMNS[1:])}")
        known = [row for row in self.rows if not isinstance(row[column], Missing)]
        if not known:
            raise ValueError(f"{column} is missing everywhere: {self.rows[0][column].reason}" if self.rows
                             else "there is nothing to compare")
        return (max if column == "throughput" else min)(known, key=lambda row: row[column])["name"]

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each name; needs pandas.

            profiler.compare().to_pandas()
        """
        return frame_of(self.rows, self.COLUMNS)

    def to_csv(self, path: Optional[str] = None) -> str:
        """The table as CSV text; with a path, also writes it there.

            profiler.compare().to_csv("comparison.csv")
        """
        return deliver(csv_of(self.rows, self.COLUMNS), path)

    def __str__(self) -> str:
        table = [list(self.COLUMNS)] + [[show(row[name]) for name in self.COLUMNS] for row in self.rows]
        widths = [max(len(line[i]) for line in table) for i in range(len(self.COLUMNS))]
        return "\n".join("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                                   for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in table)

    def _repr_html_(self) -> str:
        rows = [[Cell(show(row[name]), row[name].reason if isinstance(row[name], Missing) else "")
                 for name in self.COLUMNS] for row in self.rows]
        return html_table(self.COLUMNS, rows)
