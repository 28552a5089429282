"""Compares two saved reports, of two machines or of one: differences of the platform and of the figures."""
import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple, Union

from .._core import Missing, open_input
from ._compare import csv_of, deliver, frame_of
from ._metrics import show

PathLike = Union[str, "os.PathLike[str]"]
_SKIPPED = ("config", "environment", "saved", "missing", "recommendation_details")


class _Saved(NamedTuple):
    platform: Dict[str, Any]
    figures: Dict[str, float]


class PlatformComparison:
    """Returned by compare_reports: `platform` has the differences of the platforms, `rows` the figures that both have,
    with the ratio of the second to the first. It prints as a table.

        print(tare.compare_reports("laptop.json", "server.json"))
    """
    COLUMNS = ("figure", "base", "other", "ratio")

    def __init__(self, base: _Saved, other: _Saved) -> None:
        names = sorted({*base.platform, *other.platform})
        self.platform: Dict[str, Tuple[Any, Any]] = {
            name: (base.platform.get(name), other.platform.get(name)) for name in names
            if base.platform.get(name) != other.platform.get(name)}
        self.rows: List[Dict[str, Any]] = []
        for name in base.figures:
            if name in other.figures:
                first, second = base.figures[name], other.figures[name]
                ratio = second / first if first else Missing("the first is 0")
                self.rows.append({"figure": name, "base": first, "other": second, "ratio": ratio})
        self.only_base = sorted(set(base.figures) - set(other.figures))
        self.only_other = sorted(set(other.figures) - set(base.figures))
        self.notes = ["one run each: no significance"]
        if self.platform:
            self.notes.append(f"not the same platform: {', '.join(self.platform)}; "
                              "a ratio is between machines as much as between programs")

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each figure; needs pandas.

            tare.compare_reports("a.json", "b.json").to_pandas()
        """
        return frame_of(self.rows, self.COLUMNS)

    def to_csv(self, path: Any = None) -> str:
        """The table as CSV text; with a path, also writes it there.

            tare.compare_reports("a.json", "b.json").to_csv("comparison.csv")
        """
        return deliver(csv_of(self.rows, self.COLUMNS), path)

    def __str__(self) -> str:
        lines = [f"{name}: {first} | {second}" for name, (first, second) in self.platform.items()]
        width = max([len(row["figure"]) for row in self.rows] or [6])
        lines += [f"{row['figure']:<{width}}  {show(row['base']):>14}  {show(row['other']):>14}  "
                  f"{show(row['ratio']):>8}x" for row in self.rows]
        return "\n".join(lines + self.notes)


def compare_reports(base: PathLike, other: PathLike) -> PlatformComparison:
    """Compares two saved reports of the same kind: JSON of CodeProfiler (profiling_report.json), of
    PerformanceProfiler.to_json(), or traces. OSError and ValueError for unreadable and other files.

        print(tare.compare_reports("profiles/laptop.json", "profiles/server.json"))
    """
    first, second = _read(base), _read(other)
    result = PlatformComparison(first, second)
    if not result.rows:
        raise ValueError(f"{os.fspath(base)} and {os.fspath(other)} have no figure in common")
    return result


def _read(path: PathLike) -> _Saved:
    with open(path, "rb", opener=open_input) as file:
        head = file.read(1)
    if head != b"{":
        return _of_trace(path)
    try:
        with open(path, encoding="utf-8", opener=open_input) as file:
            data = json.load(file)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} is not a saved report: {error}") from None
    figures: Dict[str, float] = {}
    if "names" in data and "blocks" in data:  # PerformanceProfiler
        _gather(data["names"], "", figures)
    else:
        _gather({name: value for name, value in data.items() if name not in _SKIPPED}, "", figures)
    environment = data.get("environment") or data.get("platform") or {}
    return _Saved({name: value for name, value in environment.items() if not isinstance(value, (dict, list))}, figures)


def _gather(value: Any, path: str, to: Dict[str, float]) -> None:
    if isinstance(value, Mapping):
        for name, one in value.items():
            if name != "missing":
                _gather(one, f"{path}.{name}" if path else str(name), to)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        to[path] = float(value)


def _of_trace(path: PathLike) -> _Saved:
    from .._report import report
    read = report(path)
    platform = {name: read.run[name] for name in ("host", "cpu_model", "cpus", "memory_bytes", "gpus", "kernel",
                                                  "system", "writer", "revision") if name in read.run}
    figures: Dict[str, float] = {"run.elapsed_s": read.run.elapsed_ns / 1e9}
    for row in read.spans:
        name = "/".join(row.path) if isinstance(row.path, list) else row.name
        figures[f"{name}.mean_s"] = row.total_ns / row.calls / 1e9 if row.calls else 0.0
        figures[f"{name}.calls"] = float(row.calls)
    for name in ("cpu_seconds", "rss_peak_bytes", "gpu_busy_mean", "gpu_memory_max_bytes", "energy_joules"):
        value = getattr(read.usage, name, None)
        if isinstance(value, (int, float)) and value == value:
            figures[f"usage.{name}"] = float(value)
    return _Saved(platform, figures)
