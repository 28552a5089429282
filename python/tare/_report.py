"""A recorded trace in Python: tables of rows, for code, pandas and notebooks."""
import os
from typing import Any, Dict, Iterator, List, Optional, Union

_TABLES = ("spans", "steps", "epochs", "operators", "modules", "aggregates", "counters", "marks", "tracks", "threads", "processes",
           "metrics", "findings", "groups")


class Row:
    """One row of a table: its columns are attributes, as docs/JSON.md names them.

        >>> row = tare.report("train.tare").spans[0]
        >>> row.name, row.calls, row.total_ns
    """

    def __init__(self, columns: Dict[str, Any]):
        self.__dict__.update(columns)

    def __getitem__(self, column: str) -> Any:
        return self.__dict__[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        shown = [f"{key}={value!r}" for key, value in self.__dict__.items()
                 if value is not None and not isinstance(value, (list, dict))]
        return "Row(" + ", ".join(shown) + ")"


class Report:
    """What a trace tells: made by tare.report.

    Its tables are lists of rows: spans, steps, epochs, operators, modules, aggregates, counters, marks, tracks, threads,
    processes, metrics, findings. run, tare, usage and phases are single rows; notes say what is missing. A figure that
    could not be measured is a tare.Missing that says why.

        >>> report = tare.report("train.tare")
        >>> for finding in report.findings:
        ...     print(finding.severity, finding.title)
    """

    path: str
    run: Row
    tare: Row
    usage: Row
    phases: Optional[Row]
    notes: List[str]
    spans: List[Row]
    steps: List[Row]
    epochs: List[Row]
    operators: List[Row]
    modules: List[Row]
    aggregates: List[Row]
    counters: List[Row]
    marks: List[Row]
    tracks: List[Row]
    threads: List[Row]
    processes: List[Row]
    metrics: List[Row]
    findings: List[Row]
    groups: List[Row]

    def __init__(self, path: str, tables: Dict[str, Any]):
        self.path = path
        self.run = Row(_with_reasons(tables["run"]))
        self.tare = Row(_with_reasons(tables["tare"]))
        self.usage = Row(_with_reasons(tables["usage"]))
        self.phases = Row(_with_reasons(tables["phases"])) if tables.get("phases") else None
        self.notes = tables["notes"]
        self._kept: Any = None  # what must live as long as the trace
        for name in _TABLES:
            setattr(self, name, [Row(columns) for columns in tables.get(name, [])])

    def to_pandas(self, table: str = "spans") -> Any:
        """A table as a pandas DataFrame.

            >>> tare.report("train.tare").to_pandas("steps")
        """
        if table not in _TABLES:
            raise ValueError(f"there is no table {table!r}; there are {', '.join(_TABLES)}")
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install pandas") from None
        return pandas.DataFrame([vars(row) for row in getattr(self, table)])

    def html(self, path: Union[str, "os.PathLike[str]"]) -> str:
        """Writes the whole page (timeline, charts, tables) and returns its path.

            >>> tare.report("train.tare").html("train.html")
        """
        from . import _command
        _command.call(["report", "--html", "-o", os.fspath(path), "--", self.path])
        return os.fspath(path)

    def bottlenecks(self) -> List[Any]:
        """What the rules registered with bottleneck_rule find in this trace. (What Tare's own rules and those of a
        file found is in `findings`.)

            >>> tare.report("train.tare").bottlenecks()
        """
        from . import rules
        whole = sum(row.self_ns for row in self.spans)
        operations: Dict[str, Any] = {}
        for row in self.spans:
            share = 100 / whole if whole else float("nan")
            operations[row.name] = rules.Operation(
                row.name, row.calls, row.total_ns / 1e9, row.self_ns / 1e9, row.total_ns / row.calls / 1e9
                if row.calls else float("nan"), (row.p95_ns or float("nan")) / 1e9, row.total_ns * share,
                row.self_ns * share)
        return rules.apply(rules.Observed("report", operations, {}, self.usage))

    def __str__(self) -> str:
        from . import _command
        return _command.call(["report", "--", self.path]).decode(errors="replace")

    def __repr__(self) -> str:
        return f"<tare.Report of {self.path}: {len(self.spans)} spans, {len(self.findings)} findings>"

    def _repr_html_(self) -> str:
        from . import _summary
        return _summary.page(self)


def _with_reasons(columns: Dict[str, Any]) -> Dict[str, Any]:
    """Null is Missing, with the reason."""
    from ._core import Missing
    reasons = columns.get("reasons") or {}
    return {key: Missing(reasons.get(key, "not measured")) if value is None else value for key, value in columns.items()}


def report(path: Optional[Union[str, "os.PathLike[str]"]] = None, *,
           rules: Optional[Union[str, "os.PathLike[str]"]] = None) -> Report:
    """Reads a trace: a file, or the one that is being written. `rules` names a file of rules of one's own
    (docs/RULES.md), whose findings are then among the others.

        >>> tare.report("train.tare").spans[0].name
        >>> tare.report("train.tare", rules="team.rules").findings
    """
    from . import _command, _core
    if path is None:
        path = _core.output()
        if path is None:
            raise ValueError("which trace? None is being written: tare.report(\"train.tare\")")
    name = os.fspath(path)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if not os.path.exists(name):
        raise FileNotFoundError(f"there is no trace {name}")
    import json
    own = [] if rules is None else ["--rules", os.fspath(rules)]
    return Report(name, json.loads(_command.call(["report", "--json", *own, "--", name])))
