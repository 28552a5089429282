"""The profile itself: which steps are recorded, when a cycle ends, and which callbacks are called."""
import copy
import os
import shutil
import sys
import tempfile
import warnings
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Set

from .._files import write_whole
from . import _switch
from ._averages import EventList, Wants, add
from ._recording import Ours, Setup, Torchs

_reported: Set[str] = set()
_open: Optional["profile"] = None  # held: one that is dropped without stop() continues, as torch's does
_STACK_METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_device_time_total")


def _warn(sentence: str) -> None:
    """At the user's line."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, UserWarning, stacklevel=level)


def tell(sentence: str) -> None:
    """Once a process."""
    if sentence not in _reported:
        _reported.add(sentence)
        _warn(sentence)


def _every_step(step: int) -> str:
    return "RECORD"


def action_of(schedule: Callable[[int], Any], step: int) -> str:
    """An action's name, of torch's kind, of ours, or plain."""
    found = schedule(step)
    name = getattr(found, "name", found)
    if name not in ("NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"):
        raise ValueError("the schedule gave %r for step %d, which is no ProfilerAction" % (found, step))
    return name


def _names(activities: Optional[Iterable[Any]]) -> Set[str]:
    found: Set[str] = set()
    for one in activities if activities is not None else ():
        for activity in one if isinstance(one, dict) else (one,):
            name = getattr(activity, "name", activity)
            if not isinstance(name, str):
                raise TypeError("activities are of ProfilerActivity, not %r" % (activity,))
            found.add(name.upper())
    if activities is not None and not found:
        raise ValueError("activities names nothing to profile")
    return found


def _device(names: Set[str], requested: bool) -> Any:
    """(whether times of a device are wanted, the reason they are unavailable, or None)."""
    import torch
    if not requested:
        return torch.cuda.is_available(), None if torch.cuda.is_available() else "no CUDA device was requested"
    if not names - {"CPU"}:
        return False, "activities has the CPU only"
    if "CUDA" in names and torch.cuda.is_available():
        return True, None
    if "CUDA" not in names:
        return True, None  # another kind of device: torch handles it
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return True, "this torch is built without CUDA"
    return True, "torch sees no CUDA device"


class Asked:
    """The checked arguments of a profile."""

    def __init__(self, options: Dict[str, Any]) -> None:
        try:
            import torch  # noqa: F401
        except ImportError:
            raise ImportError("tare.profiler.profile needs torch: pip install torch") from None
        given = options.get("activities")
        self.activities = list(given) if given is not None else None
        self.names = _names(self.activities)
        if options.get("use_cuda"):
            self.names, self.activities = self.names | {"CPU", "CUDA"}, None
        device, self.no_device = _device(self.names, bool(self.names))
        schedule = options.get("schedule")
        if schedule is not None and not callable(schedule):
            raise TypeError("schedule is a function of the step's number: tare.profiler.schedule(wait=1, …)")
        shapes, flops = bool(options.get("record_shapes")), bool(options.get("with_flops"))
        self.wants = Wants(device, shapes or flops, bool(options.get("profile_memory")),
                           bool(options.get("with_stack")), flops)
        self.only_torchs = [name for name, value in options.items() if value is not None and name not in _OURS]

    def torch_activities(self) -> Any:
        from torch.profiler import ProfilerActivity, supported_activities
        if self.activities is None:
            return None
        if any(isinstance(one, dict) for one in self.activities):
            return self.activities
        there = supported_activities()
        requested = [ProfilerActivity.__members__.get(name) for name in self.names]
        return [one for one in requested if one in there] or [ProfilerActivity.CPU]

    def tell(self) -> None:
        if "CUDA" in self.names and self.no_device is not None:
            tell("CUDA is not available, its activity is not recorded: %s" % self.no_device)


_OURS = ("activities", "schedule", "on_trace_ready", "acc_events", "use_cuda", "record_shapes", "profile_memory",
         "with_stack", "with_flops", "with_modules")


def why_torch(requested: Asked) -> Optional[str]:
    """Why torch's own profiler has to record instead of ours: a sentence, empty if the user requested it."""
    wants = requested.wants
    asked = any((wants.shapes, wants.memory, wants.stack, wants.flops))
    if requested.no_device is None or requested.only_torchs or asked:
        return ""
    return _switch.ready()


class profile:
    """Records operators, blocks and steps: used like torch.profiler.profile.

        with tare.profiler.profile(schedule=tare.profiler.schedule(wait=1, warmup=1, active=3)) as prof:
            for batch in loader:
                train(batch)
                prof.step()
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    """

    def __new__(cls, *_words: Any, **options: Any) -> "profile":
        """A profile of Tare, or of torch's own profiler if only that can measure what was requested."""
        if not hasattr(cls, "kineto_requested") and why_torch(Asked(options)) is not None:
            from ._torchs import TorchProfile
            cls = TorchProfile if cls is profile else type(cls.__name__, (cls, TorchProfile), {})
        return object.__new__(cls)

    def __init__(self, *, activities: Optional[Iterable[Any]] = None,
                 schedule: Optional[Callable[[int], Any]] = None,
                 on_trace_ready: Optional[Callable[["profile"], Any]] = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, experimental_config: Any = None, execution_trace_observer: Any = None,
                 acc_events: bool = False, use_cuda: Optional[bool] = None, **more: Any) -> None:
        requested = Asked(dict(activities=activities, schedule=schedule, use_cuda=use_cuda))
        self._activities = requested.activities
        self._keep(requested.wants, schedule is not None, requested.no_device)
        self.schedule = schedule if schedule is not None else _every_step
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = action_of(self.schedule, 0)
        self._now: Any = None            # the cycle that is being recorded
        self._done: List[Any] = []       # those with results: the last one, or all with acc_events
        requested.tell()

    def _keep(self, wants: Wants, steps_shown: bool, no_device: Optional[str]) -> None:
        self._folder = tempfile.mkdtemp(prefix="tare-profiler-")
        self._finalizer = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._setup = Setup(wants, steps_shown, no_device, self._folder)

    # ---- as a context manager, and by hand -------------------------------------------------------------------------

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begins with the action of the current step."""
        global _open
        if _open is not None:
            raise RuntimeError("a profile is being recorded already: stop it first")
        _open = self
        try:
            self._move("NONE", self.current_action)
        except BaseException:
            _open = None
            raise

    def stop(self) -> None:
        """Ends the profile; an open cycle is passed to on_trace_ready."""
        global _open
        if _open is not self:
            return
        _open = None
        self._move(self.current_action, None)

    def step(self) -> None:
        """The next step begins."""
        before, following = self.current_action, action_of(self.schedule, self.step_num + 1)
        self.step_num += 1
        self.current_action = following
        if _open is self:
            self._move(before, following)

    def _move(self, before: str, following: Optional[str]) -> None:
        recorded, will = before.startswith("RECORD"), (following or "").startswith("RECORD")
        goes_on = before == "RECORD" and will
        if recorded and not goes_on:
            self._end(before, following)
        if before == "WARMUP" and not will and following != "WARMUP":
            self._drop()
        if following == "WARMUP" and before != "WARMUP":
            self._now = self._recorder()
        if will and not goes_on:
            if before != "WARMUP":
                self._now = self._recorder()
            self._now.begin()
        if will:
            self._now.step(self.step_num)

    def _recorder(self) -> Any:
        try:
            return Ours(self._setup)
        except (RuntimeError, OSError) as error:  # no space, a paused session, …
            tell("torch's own profiler records underneath, at its own cost: %s" % error)
            return Torchs(self._setup, Asked(dict(activities=self._activities)).torch_activities())

    def _drop(self) -> None:
        dropped, self._now = self._now, None
        dropped.drop()

    def _end(self, before: str, following: Optional[str]) -> None:
        ended, self._now = self._now, None
        ended.end()
        if not self.acc_events:
            self._done.clear()
        self._done.append(ended)
        for note in ended.notes:
            tell(note)
        if before == "RECORD_AND_SAVE" or following is None:
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        else:
            _warn("the schedule goes from RECORD to %s: this cycle is not handed to on_trace_ready" % following)

    # ---- results ---------------------------------------------------------------------------------------------------

    def _last(self) -> Any:
        if not self._done:
            raise RuntimeError("nothing is recorded yet: the first cycle has not ended")
        return self._done[-1]

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> Any:
        """Sums by operator; optionally grouped by the shapes of inputs and by the innermost lines of stacks.

            prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total")
        """
        self._last()
        notes = self._notes(group_by_input_shape, group_by_stack_n, group_by_overload_name)
        rows = [row for done in self._done for row in done.averages(group_by_input_shape, group_by_stack_n)]
        if len(self._done) > 1:
            rows = _merged(rows)
        return EventList(rows, self._setup.wants, notes, self)

    def _notes(self, shapes: bool, stack_n: int, overloads: bool) -> List[str]:
        wants, last = self._setup.wants, self._last()
        notes = list(last.notes)
        if wants.device:
            notes.append("CUDA times: n/a (%s)" % self._setup.no_device)
        if shapes and not wants.shapes:
            notes.append("Not apart by shapes: record_shapes is off")
        if stack_n > 0 and not wants.stack:
            notes.append("Not apart by stacks: with_stack is off")
        if overloads:
            notes.append("Not apart by overloads: their names are not recorded")
        return notes

    def events(self) -> Any:
        """The individual calls, in the order they began."""
        self._last()
        return EventList([event for done in self._done for event in done.events()], self._setup.wants,
                         self._notes(False, 0, False), self)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the last cycle for chrome://tracing and ui.perfetto.dev; compressed where the name ends in .gz.

            prof.export_chrome_trace("trace.json")
        """
        path = checked_path(path)
        whole = os.path.join(self._folder, "export.json")
        self._last().export_chrome_trace(whole)
        try:
            put(whole, path)
        finally:
            os.remove(whole)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the stacks of all calls with their times, for flame graphs."""
        if metric not in _STACK_METRICS:
            raise ValueError("metric is one of %s, not %r" % (", ".join(_STACK_METRICS), metric))
        if not self._setup.wants.stack:
            raise RuntimeError("there are no stacks: with_stack is off")
        if "cpu" not in metric and self._setup.no_device is not None:
            raise RuntimeError("%s: n/a (%s)" % (metric, self._setup.no_device))
        plain = str.maketrans(" ;\t\n", "____")
        lines = []
        for event in self.events():
            value = int(getattr(event, metric.replace("cuda", "device")))
            if event.stack and value > 0:
                lines.append(";".join(line.translate(plain) for line in reversed(event.stack)) + " %d\n" % value)
        write_whole(path, "".join(lines))

    def export_trace(self, path: str) -> None:
        """Writes the last cycle as a Tare trace, which `tare report` opens: the smallest file.

            prof.export_trace("steps.tare")
        """
        self._last().save(os.fspath(path))

    # ---- the rest of torch's ---------------------------------------------------------------------------------------

    def add_metadata(self, key: str, value: str) -> None:
        """Adds metadata to the trace."""
        (self._now or self._last()).add_metadata(key, value)

    add_metadata_json = preset_metadata_json = add_metadata

    def toggle_collection_dynamic(self, enable: bool, activities: Any = None) -> None:
        """Pauses and resumes the recording of operators."""
        if self._now is not None:
            self._now.toggle(enable)

    def export_memory_timeline(self, path: str, device: Optional[str] = None) -> None:
        """As torch's method, with the same requirements."""
        raise RuntimeError("a memory timeline needs profile_memory, record_shapes and with_stack")


def checked_path(path: Any) -> str:
    path = os.fspath(path)
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError("there is no folder %s" % folder)
    return path


def put(whole: str, path: str) -> None:
    """A copy; compressed where the name ends in .gz."""
    with open(whole, "rb") as plain:
        data = plain.read()
    if path.endswith(".gz"):
        import gzip
        data = gzip.compress(data)
    write_whole(path, data)


def _merged(rows: List[Any]) -> List[Any]:
    """Combines cycles."""
    sums: Any = {}
    for row in rows:
        key = (row.key, str(row.input_shapes), tuple(row.stack))
        known = sums.get(key)
        if known is None:
            sums[key] = copy.copy(row)
            continue
        known.count += row.count
        for field in ("cpu_time_total", "self_cpu_time_total", "flops", "cpu_memory_usage", "self_cpu_memory_usage"):
            add(known, field, getattr(row, field))
    return list(sums.values())
