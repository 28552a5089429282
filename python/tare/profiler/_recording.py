"""Records a cycle of the profiler: in its own session, in an existing session (`tare run`, tare.start), or with
torch's own profiler, for what only that can measure. All three have the same interface."""
import fnmatch
import itertools
import os
import shutil
import time
from typing import Any, Dict, List, Optional

from .. import _command, _core
from .._core import Missing
from .._files import write_whole
from . import _averages, _events, _switch
from ._averages import Average, Wants

PATIENCE_S = 10.0  # for a collector to write its buffered data
_cycles = itertools.count(1)
torch_listens = 0  # number of torch's profilers that run for us: blocks of record_function are reported to them as well

blocks_in_torchs = False  # a block of tare.profiler.record_function was reported to torch's profiler


def _listen(more: int) -> None:
    global torch_listens
    torch_listens += more


class Setup:
    """The arguments of a profile, and what is the same for all its cycles."""

    def __init__(self, wants: Wants, steps_shown: bool, no_device: Optional[str], folder: str) -> None:
        self.wants, self.steps_shown = wants, steps_shown
        self.no_device = no_device  # why device times are unavailable; None: they are available
        self.folder = folder
        self.notes: List[str] = []


class Ours:
    """Records operators through torch's ITT interface into a session: a new one, or the existing one."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.steps = setup, 0
        self.notes: List[str] = []
        self._was_on = False
        self._rows: Optional[List[Average]] = None
        self._shown: Dict[str, str] = {}
        self._trace: Any = None
        number = next(_cycles)
        self._guest = _core.recording()
        self.path: Optional[str] = _core.output() if self._guest else os.path.join(setup.folder, "%d.tare" % number)
        self._around = _core.span("tare.profiler cycle %d" % number) if self._guest else None
        self._step = _core.span("ProfilerStep") if self._guest else None
        if not self._guest:
            _core.start(self.path, helper=_command.find())
            _core.pause()

    # ---- while it runs ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._was_on = _switch.is_on()
        if self._around is not None:
            _core.begin(self._around)
        else:
            _core.resume()
        why = None if self._was_on else _switch.on()
        if why is not None:
            self.notes.append("no operators: " + why)

    def step(self, number: int) -> None:
        """The next step begins."""
        if self._step is not None:
            if self.steps:
                _core.end(self._step)
            _core.begin(self._step)
        else:
            (_core.step_next if self.steps else _core.step_begin)(number)
        self.steps += 1

    def end_step(self) -> None:
        if self.steps and self._step is not None:
            _core.end(self._step)
        elif self.steps:
            _core.step_end()

    def end(self) -> None:
        if not self._was_on:
            _switch.off()
        self.end_step()
        if self._around is not None:
            _core.end(self._around)
            _core.mark(self._around.name + " ended")
        else:
            _core.stop()

    def drop(self) -> None:
        """Discards it before it began."""
        if not self._guest:
            _core.stop()

    def toggle(self, on: bool) -> None:
        if on:
            _switch.on()
        else:
            _switch.off()

    # ---- results ---------------------------------------------------------------------------------------------------

    def _load(self) -> Any:
        """The trace; of a session that continues, once its collector has written the end of the cycle."""
        from .. import _engine
        trace = _engine.open(self.path or "")
        if self._around is None:
            self.notes += [row["note"] for row in trace.rows("notes")]
            return trace
        ended, until = self._around.name + " ended", time.monotonic() + PATIENCE_S
        while all(mark["name"] != ended for mark in trace.rows("marks")):
            if time.monotonic() > until:
                self.notes.append("the end of this cycle is not in the trace yet: these figures are not whole")
                break
            time.sleep(0.1)
            trace = _engine.open(self.path or "")
        return trace

    def _read(self) -> List[Average]:
        if self._rows is None:
            self._trace = self._load()
            rows, self._shown = _averages.read(self._trace.rows("spans"), self._around.name if self._around else None)
            if self._guest:
                for row in rows:
                    row.key = _averages.STEP if row.key == "ProfilerStep" else row.key
                self._shown.update({"ProfilerStep": _averages.STEP})
            if not self.setup.steps_shown:
                rows = [row for row in rows if row.key != _averages.STEP]
                self._shown = {name: key for name, key in self._shown.items() if key != _averages.STEP}
            for row in rows:
                row.device_time_total = row.self_device_time_total = Missing(self.setup.no_device or "")
            self._rows = rows
        return self._rows

    def averages(self, shapes: bool, stack_n: int) -> List[Average]:
        rows = self._read()
        if not shapes and stack_n <= 0:
            return rows
        found = _averages.grouped(self.events(), shapes, stack_n)
        for row in found:
            row.device_time_total = row.self_device_time_total = Missing(self.setup.no_device or "not measured")
        return found

    def events(self) -> List[_events.Event]:
        self._read()
        events = _events.read(self._trace, self._shown, self._around.name if self._around else None)
        for event in events:
            event.device_time_total = event.self_device_time_total = Missing(self.setup.no_device or "")
        return events

    def export_chrome_trace(self, path: str) -> None:
        """In Kineto's form, as torch writes it: TensorBoard and others depend on its categories and names."""
        self._read()  # of a session that continues: all of it is written
        files = self._trace.emit_files("tensorboard")
        own = fnmatch.filter(files, "*_%d.*.pt.trace.json" % os.getpid())
        write_whole(path, files[own[0]])

    def save(self, path: str) -> None:
        self._read()
        shutil.copyfile(self.path or "", path)

    def add_metadata(self, key: str, value: str) -> None:
        _core.mark("%s: %s" % (key, value))


class Torchs:
    """Uses torch's own profiler, with a new object for each cycle."""

    def __init__(self, setup: Setup, activities: Any) -> None:
        import torch
        self.setup, self.notes = setup, []  # type: Setup, List[str]
        self._inner = torch.profiler._KinetoProfile(activities=activities)
        self._step: Any = None
        self._inner.prepare_trace()

    def begin(self) -> None:
        self._inner.start_trace()
        _listen(+1)

    def step(self, number: int) -> None:
        from torch.profiler import record_function
        self.end_step()
        if self.setup.steps_shown:
            self._step = record_function("ProfilerStep#%d" % number)
            self._step.__enter__()

    def end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def end(self) -> None:
        self.end_step()
        _listen(-1)
        self._inner.stop_trace()

    def drop(self) -> None:
        self._inner.start_trace()
        self._inner.stop_trace()

    def toggle(self, on: bool) -> None:
        self._inner.toggle_collection_dynamic(on, self._inner.activities)

    def averages(self, shapes: bool, stack_n: int) -> Any:
        return [_averages.from_torch(one, self.setup.wants, self.setup.no_device)
                for one in self._inner.key_averages(group_by_input_shape=shapes, group_by_stack_n=stack_n)]

    def events(self) -> Any:
        return self._inner.events()

    def export_chrome_trace(self, path: str) -> None:
        self._inner.export_chrome_trace(path)

    def save(self, path: str) -> None:
        raise RuntimeError("this cycle was recorded by torch's own profiler: export_chrome_trace writes it")

    def add_metadata(self, key: str, value: str) -> None:
        self._inner.add_metadata(key, value)
