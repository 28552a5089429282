"""A recorded trace in Python: tables of rows, for code, pandas and notebooks."""
import os
from typing import Any, Dict, Iterator, List, Optional, Union


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


class Table:
    """A table of a trace: a sequence of rows, and an Arrow stream, so that pandas, Polars, DuckDB and PyArrow read it
    directly.

        >>> table = tare.open("train.tare").spans
        >>> table[0].name, len(table)
        >>> polars.DataFrame(table)
        >>> duckdb.sql("select name, sum(self_ns) from table group by name")
    """

    def __init__(self, name: str, reading: Any):
        self.name, self._reading = name, reading
        self._rows: Optional[List[Row]] = None

    def _all(self) -> List[Row]:
        if self._rows is None:
            self._rows = [Row(columns) for columns in self._reading.rows(self.name)]
        return self._rows

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Table, list)) and self._all() == list(other)

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {self.name}>"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table by the Arrow C stream interface; columns carry their unit and meaning as metadata."""
        return self._reading.stream(self.name)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame.

            >>> tare.open("train.tare").steps.to_pandas()
        """
        from ._check import pandas
        return pandas().DataFrame(self._reading.rows(self.name), columns=self._reading.columns(self.name))


class Report:
    """The contents of a trace; returned by tare.open.

    Its tables are attributes, by their names in docs/JSON.md: run, tare, usage and phases are single rows, all others
    sequences of rows; notes are sentences about missing data. A figure that could not be measured is a tare.Missing
    with the reason.

        >>> report = tare.report("train.tare")
        >>> for finding in report.findings:
        ...     print(finding.severity, finding.title)
    """

    path: str
    notes: List[str]
    # The tables of the schema; tools/python-docs writes this list.
    run: Row
    tare: Row
    usage: Row
    phases: Optional[Row]
    findings: Table
    groups: Table
    spans: Table
    steps: Table
    epochs: Table
    operators: Table
    modules: Table
    aggregates: Table
    counters: Table
    marks: Table
    facts: Table
    tracks: Table
    threads: Table
    processes: Table
    metrics: Table
    lines: Table
    span_lines: Table
    functions: Table
    packages: Table
    sampled_imports: Table
    sampled_threads: Table
    stacks: Table
    # The end of the list.

    def __init__(self, path: str, reading: Any):
        from . import _engine
        self.path = path
        self._reading = reading
        self._kept: Any = None  # what must live as long as the trace
        for name in _engine.SINGLES:
            rows = reading.rows(name)
            setattr(self, name, Row(_with_reasons(reading, name, rows[0])) if rows else None)
        for name in _engine.TABLES:
            setattr(self, name, Table(name, reading))
        self.notes = [row["note"] for row in reading.rows("notes")]

    def to_pandas(self, table: str = "spans") -> Any:
        """A table as a pandas DataFrame.

            >>> tare.report("train.tare").to_pandas("steps")
        """
        from . import _engine
        if table not in _engine.TABLES:
            raise ValueError(f"there is no table {table!r}; there are {', '.join(_engine.TABLES)}")
        return Table(table, self._reading).to_pandas()

    def html(self, path: Union[str, "os.PathLike[str]"]) -> str:
        """Writes the HTML report (timeline, charts, tables) and returns its path.

            >>> tare.report("train.tare").html("train.html")
        """
        from ._files import write_whole
        write_whole(path, self._reading.emit("html"))
        return os.fspath(path)

    def bottlenecks(self) -> List[Any]:
        """What the rules registered with bottleneck_rule find in this trace. (Findings of built-in rules and of rule
        files are in `findings`.)

            >>> tare.report("train.tare").bottlenecks()
        """
        from .seeds import rules
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
        return self._reading.emit("text").decode(errors="replace")

    def __repr__(self) -> str:
        return f"<tare.Report of {self.path}: {len(self.spans)} spans, {len(self.findings)} findings>"

    def _repr_html_(self) -> str:
        from . import _summary
        return _summary.page(self)


def _with_reasons(reading: Any, table: str, columns: Dict[str, Any]) -> Dict[str, Any]:
    """Absent values are Missing, with the reason."""
    from ._core import Missing
    return {key: Missing(reading.absent(table, key) or "not measured") if value is None else value
            for key, value in columns.items()}


def report(path: Optional[Union[str, "os.PathLike[str]"]] = None, *,
           rules: Optional[Union[str, "os.PathLike[str]"]] = None, within: Optional[str] = None,
           phase: Optional[str] = None, process: Optional[int] = None, thread: Optional[Union[str, int]] = None,
           gpu_idle: bool = False) -> Report:
    """Reads a trace: a file, or the one that is being written. `rules` names a file of custom rules (docs/RULES.md);
    their findings are added to the others. The other arguments restrict the tables of stack samples, as the options of
    `tare report` do: samples inside spans of a name, of a phase ("startup", "steady", "shutdown"), of a process, of a
    thread (name or id), while no GPU is busy.

        >>> tare.open("train.tare").spans[0].name
        >>> tare.report("train.tare", rules="team.rules").findings
        >>> tare.report("train.tare", within="data").lines[0]
    """
    from . import _core, _engine
    if path is None:
        path = _core.output()
        if path is None:
            raise ValueError("missing trace: no session is recording; pass one: tare.report(\"train.tare\")")
    name = os.fspath(path)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if not os.path.exists(name):
        raise FileNotFoundError(f"there is no trace {name}")
    return Report(name, _engine.open(name, None if rules is None else os.fspath(rules), within, phase,
                                     None if thread is None else str(thread), process or 0, gpu_idle))


open = report  # the usual name for it
