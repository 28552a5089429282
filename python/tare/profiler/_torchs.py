"""A profile that torch's own profiler records, if shapes, memory, stacks, FLOPs or device times are requested. It is
torch's class with its own methods, so that no code of Tare runs while it records or appears in its stacks; Tare only
processes the results."""
import json
import os
from typing import Any, List, Optional

import torch.profiler

from .. import _core
from . import _averages, _profile, _recording
from ._averages import EventList


class TorchProfile(torch.profiler.profile, _profile.profile):
    """As torch.profiler.profile; device columns state why they are empty, and export_trace() writes a Tare trace."""

    kineto_requested = True

    def __init__(self, *, activities: Any = None, schedule: Any = None, on_trace_ready: Any = None,
                 record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False,
                 with_flops: bool = False, use_cuda: Optional[bool] = None, **more: Any) -> None:
        requested = _profile.Asked(dict(more, activities=activities, schedule=schedule, use_cuda=use_cuda,
                                    record_shapes=record_shapes, profile_memory=profile_memory,
                                    with_stack=with_stack, with_flops=with_flops))
        home = getattr(schedule, "__module__", "")
        self._inside = schedule is not None and home != torch.profiler.schedule.__module__
        if self._inside:  # a schedule defined by the program
            schedule = _translated(schedule)
        if with_stack and more.get("experimental_config") is None:
            from torch._C._profiler import _ExperimentalConfig
            more["experimental_config"] = _ExperimentalConfig(verbose=True)  # without it events have no stacks
        torch.profiler.profile.__init__(
            self, activities=requested.torch_activities(), schedule=schedule, on_trace_ready=on_trace_ready,
            record_shapes=requested.wants.shapes, profile_memory=profile_memory, with_stack=with_stack,
            with_flops=with_flops, **more)
        self._keep(requested.wants, schedule is not None, requested.no_device)
        self._exported: Any = None  # (what was exported, the file): torch writes a trace once only
        requested.tell()
        why = _profile.why_torch(requested)
        if why:
            _profile.tell("torch's own profiler records underneath, at its own cost: %s" % why)

    # ---- results ---------------------------------------------------------------------------------------------------

    def _results(self) -> Any:
        results = getattr(self.profiler, "kineto_results", None)
        if results is None:
            raise RuntimeError("nothing is recorded yet: the first cycle has not ended")
        return results

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **more: Any) -> Any:
        self._results()
        found = torch.profiler.profile.key_averages(self, group_by_input_shape, group_by_stack_n, **more)
        wants, no_device = self._setup.wants, self._setup.no_device
        if no_device is None:
            return found  # torch's own table has times of the device
        rows = [_averages.from_torch(one, wants, no_device) for one in found]
        return EventList(rows, wants, self._notes(group_by_input_shape, group_by_stack_n, False), self)

    def _notes(self, shapes: bool, stack_n: int, overloads: bool) -> List[str]:
        wants = self._setup.wants
        notes = ["CUDA times: n/a (%s)" % self._setup.no_device] if wants.device else []
        if shapes and not wants.shapes:
            notes.append("Not apart by shapes: record_shapes is off")
        if stack_n > 0 and not wants.stack:
            notes.append("Not apart by stacks: with_stack is off")
        return notes

    export_stacks = _profile.profile.export_stacks

    def _file(self) -> str:
        """The last cycle as torch writes it, kept until the next one is requested."""
        results = self._results()
        if self._exported is None or self._exported[0] is not results:
            path = os.path.join(self._folder, "torch.json")
            torch.profiler.profile.export_chrome_trace(self, path)
            if self._setup.wants.stack and (self._inside or _recording.blocks_in_torchs):
                _without_us(path)
            self._exported = (results, path)
        return self._exported[1]

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the last cycle for chrome://tracing, ui.perfetto.dev and TensorBoard; compressed where the name ends
        in .gz."""
        path = _profile.checked_path(path)
        first = self._exported is None or self._exported[0] is not self._results()
        _profile.put(self._file(), path)
        if first and _core.recording():
            # `tare run` adds it to its trace.
            _core.fact("torch.profiler.wrote", file=os.path.abspath(os.fsdecode(path)))

    def export_trace(self, path: str) -> None:
        """Writes the last cycle as a Tare trace, which `tare report` opens."""
        from .. import _engine
        _engine.import_trace(self._file(), path)


def _translated(schedule: Any) -> Any:
    """Converts Tare's actions, or their names, to torch's."""
    def action(step: int) -> Any:
        return torch.profiler.ProfilerAction[_profile.action_of(schedule, step)]
    return action


def _without_us(path: str) -> None:
    """Removes Tare's own Python functions from a trace; the functions they called are moved to their callers."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parents = {}
    kept = []
    for event in trace["traceEvents"]:
        args = event.get("args") or {}
        name = event.get("name", "")
        ours = name.startswith(("tare/", folder)) or " of tare." in name  # a file, or a method of an object
        if event.get("cat") == "python_function" and ours:
            parents[args.get("Python id")] = args.get("Python parent id")
        else:
            kept.append(event)
    for event in kept:
        args = event.get("args") or {}
        while args.get("Python parent id") in parents:
            args["Python parent id"] = parents[args["Python parent id"]]
    trace["traceEvents"] = kept
    with open(path, "w", encoding="utf-8") as file:
        json.dump(trace, file)
