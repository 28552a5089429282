"""The individual calls of a trace with their callers, for what a table of sums does not contain."""
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .._core import Missing

_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\\\": "\\"}


class Range:
    """When a call was, in microseconds from the start of the trace."""
    __slots__ = ("start", "end")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start


class Event:
    """One call of an operator or of a block of record_function, named as torch names its fields. Times are in
    microseconds and as measured."""

    def __init__(self, index: int, name: str, thread: int, start: float, parent: Optional["Event"]) -> None:
        self.id, self.name, self.thread = index, name, thread
        self.time_range = Range(start, start)
        self.cpu_parent, self.cpu_children = parent, []  # type: Optional[Event], List[Event]
        self.input_shapes: List[Any] = []
        self.stack: List[str] = []
        self.flops: Any = Missing("with_flops is off")
        self.cpu_memory_usage: Any = Missing("profile_memory is off")
        self.self_cpu_memory_usage: Any = Missing("profile_memory is off")
        self.device_time_total: Any = Missing("no device was measured")
        self.self_device_time_total: Any = self.device_time_total
        self.count, self.node_id, self.is_async, self.is_user_annotation = 1, -1, False, False

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us()

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time(self) -> Any:
        return self.device_time_total

    cuda_time = cuda_time_total = device_time

    def __repr__(self) -> str:
        return "<tare.profiler event %s, %.3f us>" % (self.name, self.cpu_time_total)


def _lines(trace: Any) -> Iterator[List[str]]:
    text = trace.emit("events").decode(errors="replace")
    for line in text.splitlines():
        if not line.startswith("#"):
            yield line.split("\t")


def _name(text: str) -> str:
    if "\\" in text:
        for escape, plain in _ESCAPES.items():
            text = text.replace(escape, plain)
    return text


def read(trace: Any, shown: Dict[str, str], within: Optional[str] = None) -> List[Event]:
    """The events of a trace in the order they began. `shown` maps the wanted names to those that are displayed;
    `within` is the span that contains them, None for the whole trace."""
    found: List[Event] = []
    open_spans: Dict[Tuple[str, str], List[Tuple[str, Optional[Event]]]] = {}
    for at, pid, tid, kind, name, *more in _lines(trace):
        stack = open_spans.setdefault((pid, tid), [])
        if kind in ("end", "next") and "unmatched=1" not in more:
            _end(stack, float(at) / 1e3)
        if kind in ("begin", "next"):
            name = _name(name)
            inside = within is None or any(one[0] == within for one in stack)
            event = None
            if name in shown and inside:
                parent = next((one[1] for one in reversed(stack) if one[1] is not None), None)
                event = Event(len(found), shown[name], int(tid), float(at) / 1e3, parent)
                if parent is not None:
                    parent.cpu_children.append(event)
                found.append(event)
            stack.append((name, event))
    found = [event for event in found if not _twice(event)]
    found.sort(key=lambda event: event.time_range.start)
    return found


def _twice(event: Event) -> bool:
    """One overload that only calls the other: torch shows such a call once. Its children are moved to the caller."""
    parent = event.cpu_parent
    if parent is None or parent.name != event.name or len(parent.cpu_children) != 1:
        return False
    parent.cpu_children = event.cpu_children
    for child in event.cpu_children:
        child.cpu_parent = parent
    return True


def _end(stack: List[Tuple[str, Optional[Event]]], at: float) -> None:
    if stack:
        event = stack.pop()[1]
        if event is not None:
            event.time_range.end = at
