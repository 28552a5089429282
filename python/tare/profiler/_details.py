"""Shapes, FLOPs, memory and stacks of operators: what torch's reports to us do not carry. They are taken from one
step of the warm-up, which nobody times, by torch's own profiler; the k-th call of an operator in a recorded step is
then the k-th call of it in that step. Where the numbers of calls differ, there are none, and the reason is told."""
from typing import Any, Dict, List, NamedTuple, Optional

FIELDS = ("input_shapes", "flops", "cpu_memory_usage", "self_cpu_memory_usage", "stack")


class Call(NamedTuple):
    """One call of an operator in the step that was looked at."""
    input_shapes: List[Any]
    flops: int
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    stack: List[str]


class Details:
    """The calls of one step, by operator and in their order."""

    def __init__(self, torch_events: Any) -> None:
        self.calls: Dict[str, List[Call]] = {}
        for event in sorted(torch_events, key=lambda event: (event.time_range.start, -event.time_range.end)):
            self.calls.setdefault(event.name, []).append(Call(
                list(event.input_shapes or []), int(event.flops or 0), int(event.cpu_memory_usage),
                int(event.self_cpu_memory_usage), list(event.stack or [])))

    def why_not(self, name: str, count: int, steps: int) -> Optional[str]:
        """A sentence where so many calls in so many steps are not that step again and again."""
        seen = len(self.calls.get(name, ()))
        if not seen:
            return "the warm-up step, from which it would be, did not call it"
        if count % seen or count // seen > steps:
            return "the warm-up step called it %d times, the %d recorded steps %d times" % (seen, steps, count)
        return None

    def sum(self, name: str, field: str, count: int) -> int:
        """Over so many calls, which are that step several times."""
        calls = self.calls[name]
        return sum(getattr(call, field) for call in calls) * (count // len(calls))

    def call(self, name: str, index: int) -> Call:
        """What the index-th of all recorded calls was."""
        calls = self.calls[name]
        return calls[index % len(calls)]


class Look:
    """torch's own profiler around one step."""

    def __init__(self, options: Dict[str, Any]) -> None:
        import torch
        self._inner = torch.profiler._KinetoProfile(activities=[torch.profiler.ProfilerActivity.CPU], **options)
        self._inner.prepare_trace()
        self._inner.start_trace()

    def end(self) -> Details:
        self._inner.stop_trace()
        return Details(self._inner.events())

    def drop(self) -> None:
        self._inner.stop_trace()
