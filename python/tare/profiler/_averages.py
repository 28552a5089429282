"""Sums of operators: rows named and ordered as in torch's key_averages()."""
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from .._core import Missing
from . import _events, _table

STEP = "ProfilerStep*"


class Wants(NamedTuple):
    """The measurements that the user requested, beside CPU times."""
    device: bool = False
    shapes: bool = False
    memory: bool = False
    stack: bool = False
    flops: bool = False


class Average:
    """All calls of one operator. Times are in microseconds, of the CPU; self times without the recorder's own cost.
    Values that were not measured are a tare.Missing with the reason."""

    def __init__(self, key: str, count: int = 0, total: float = 0.0, self_time: float = 0.0) -> None:
        self.key, self.count = key, count
        self.cpu_time_total, self.self_cpu_time_total = total, self_time
        self.device_time_total: Any = Missing("no device was measured")
        self.self_device_time_total: Any = self.device_time_total
        self.cpu_memory_usage: Any = Missing("profile_memory is off")
        self.self_cpu_memory_usage: Any = self.cpu_memory_usage
        self.device_memory_usage: Any = Missing("no device was measured")
        self.self_device_memory_usage: Any = self.device_memory_usage
        self.flops: Any = Missing("with_flops is off")
        self.input_shapes: Any = []
        self.stack: List[str] = []
        self.overload_name, self.node_id, self.is_async = "", -1, False

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> Any:
        missing = isinstance(self.device_time_total, Missing) or not self.count
        return self.device_time_total if missing else self.device_time_total / self.count

    def __getattr__(self, name: str) -> Any:
        if "cuda" in name:  # as it was called before torch 2.4
            return getattr(self, name.replace("cuda", "device"))
        if name.endswith("_str"):
            return _table.time_text(getattr(self, name[:-4]))
        raise AttributeError("an average has no %r" % name)

    def __repr__(self) -> str:
        return "<tare.profiler average %s: %d calls, %.3f us>" % (self.key, self.count, self.cpu_time_total)


_SORTS = ("cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total",
          "self_device_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage",
          "self_device_memory_usage", "flops", "count")


class EventList(List[Any]):
    """Averages or events, and their table."""

    def __init__(self, rows: Iterable[Any] = (), wants: Wants = Wants(), notes: Iterable[str] = (),
                 source: Any = None) -> None:
        super().__init__(rows)
        self._wants, self._notes, self._source = wants, list(notes), source

    @property
    def self_cpu_time_total(self) -> float:
        return sum(row.self_cpu_time_total for row in self)

    def table(self, sort_by: Optional[str] = None, row_limit: int = 100, max_src_column_width: Optional[int] = 75,
              max_name_column_width: Optional[int] = 55, max_shapes_column_width: Optional[int] = 80,
              header: Optional[str] = None, top_level_events_only: bool = False,
              time_unit: Optional[str] = None) -> str:
        """The rows as text, in torch's columns.

            print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
        """
        if time_unit not in (None, "s", "ms", "us"):
            raise ValueError("time_unit is s, ms or us, not %r" % (time_unit,))
        rows, notes = self._sorted(sort_by)
        listed = rows
        if top_level_events_only:
            listed = [row for row in rows if getattr(row, "cpu_parent", None) is None]
            header = (header + "\n" if header else "") + "This report only display top-level ops statistics"
        return _table.text(rows, listed, self._wants, header=header, row_limit=row_limit, time_unit=time_unit,
                           max_src_column_width=max_src_column_width, max_name_column_width=max_name_column_width,
                           max_shapes_column_width=max_shapes_column_width, notes=notes + self._notes)

    def _sorted(self, sort_by: Optional[str]) -> Tuple[List[Any], List[str]]:
        if sort_by is None:
            return list(self), []
        key = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        if key not in _SORTS:
            raise ValueError("a table is not sorted by %r; there are %s" % (sort_by, ", ".join(_SORTS)))
        values = {id(row): getattr(row, key, Missing("not measured")) for row in self}
        known = [row for row in self if not isinstance(values[id(row)], Missing)]
        if known or not self:
            rest = [row for row in self if isinstance(values[id(row)], Missing)]
            return sorted(known, key=lambda row: -values[id(row)]) + rest, []
        instead = key.replace("device", "cpu") if "time" in key else "self_cpu_time_total"
        note = "%s: n/a (%s); in the order of %s" % (sort_by, values[id(self[0])].reason, instead)
        return sorted(self, key=lambda row: -getattr(row, instead)), [note]

    def total_average(self) -> Average:
        """All rows in one."""
        return Average("Total", sum(row.count for row in self), self.self_cpu_time_total, self.self_cpu_time_total)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0) -> "EventList":
        """Sums of these events."""
        rows = grouped(self, group_by_input_shapes, group_by_stack_n)
        return EventList(rows, self._wants, self._notes, self._source)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the trace that these come from."""
        self._source.export_chrome_trace(path)

    def __str__(self) -> str:
        return self.table()


# ---- from the table of spans ---------------------------------------------------------------------------------------

def kinds_of(spans: List[Dict[str, Any]]) -> Dict[str, str]:
    """The name of each span in the rows: operators and blocks by their name, steps as torch names them."""
    shown = {row["name"]: row["name"] for row in spans if row["kind"] in ("operator", "span")}
    shown.update({row["name"]: STEP for row in spans if row["kind"] == "step"})
    return shown


def read(spans: List[Dict[str, Any]], within: Optional[str] = None) -> Tuple[List[Average], Dict[str, str]]:
    """The sums of a table of spans, and the names shown for them. `within` is the span that contains all of them."""
    shown = kinds_of(spans)
    if within is not None:
        shown.pop(within, None)
    sums: Dict[str, Average] = {}
    inside: List[bool] = []
    children = [0] * len(spans)
    for row in spans:
        if row["parent"] is not None:
            children[row["parent"]] += 1
    for row in spans:
        parent = row["parent"]
        inside.append(within is None or (parent is not None and (inside[parent] or spans[parent]["name"] == within)))
        if not inside[-1]:
            continue
        name, above = row["name"], row
        while above is not None and above["name"] not in shown:  # a phase's self time belongs to the span around it
            above = spans[above["parent"]] if above["parent"] is not None else None
        if above is not None and above["name"] != within:
            owner = shown[above["name"]]
            sums.setdefault(owner, Average(owner)).self_cpu_time_total += row["self_ns"] / 1e3
        twice = parent is not None and spans[parent]["name"] == name and children[parent] == 1 \
            and spans[parent]["calls"] == row["calls"]  # one overload calls the other: torch shows it once, too
        if name in shown and not twice:
            average = sums.setdefault(shown[name], Average(shown[name]))
            average.count += row["calls"]
            average.cpu_time_total += row["total_ns"] / 1e3
    return [row for row in sums.values() if row.count], shown


# ---- from torch's own ----------------------------------------------------------------------------------------------

def from_torch(one: Any, wants: Wants, no_device: Optional[str]) -> Average:
    """A row of torch's; device values are missing without a device."""
    row = Average(one.key, one.count, one.cpu_time_total, one.self_cpu_time_total)
    row.device_time_total = row.self_device_time_total = Missing(no_device or "")
    row.input_shapes, row.stack = one.input_shapes or [], list(one.stack or [])
    if wants.flops:
        row.flops = one.flops
    if wants.memory:
        row.cpu_memory_usage, row.self_cpu_memory_usage = one.cpu_memory_usage, one.self_cpu_memory_usage
    return row


# ---- from events ---------------------------------------------------------------------------------------------------

def add(to: Any, field: str, value: Any) -> None:
    """A sum with a part that is missing is missing."""
    before = getattr(to, field)
    if isinstance(value, Missing):
        setattr(to, field, value)
    elif not isinstance(before, Missing):
        setattr(to, field, before + value)


def grouped(events: Iterable[_events.Event], shapes: bool, stack_n: int) -> List[Average]:
    """Sums of events, grouped by the shapes of their inputs and by the innermost lines of their stacks."""
    sums: Dict[Any, Average] = {}
    for event in events:
        stack = event.stack[:stack_n] if stack_n > 0 else []
        key = (event.name, str(event.input_shapes) if shapes else "", tuple(stack))
        row = sums.get(key)
        if row is None:
            row = sums[key] = Average(event.name)
            row.input_shapes, row.stack = (event.input_shapes if shapes else []), stack
            row.flops = row.cpu_memory_usage = row.self_cpu_memory_usage = 0
        row.count += 1
        row.cpu_time_total += event.cpu_time_total
        row.self_cpu_time_total += event.self_cpu_time_total
        for field in ("flops", "cpu_memory_usage", "self_cpu_memory_usage"):
            add(row, field, getattr(event, field))
    return list(sums.values())
