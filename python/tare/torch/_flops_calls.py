"""Estimates floating-point operations of blocks without the switch that counts them: a module's call is counted the
first time it has arguments of such shapes, and later as often as the overhead stays low; other calls are assumed to be
equal to the last counted one.

The unit that is counted or estimated is a segment: from a module's call (or a block's begin or end) to the next one,
which includes a backward pass and an optimizer's step. The program runs unchanged, and nothing is run twice."""
import re
import sys
import threading
import time
import weakref
from typing import Any, Dict, List, Optional, Set

from .. import _core
from .._core import Missing
from . import _flops

NO_CALL = "no module of torch was called in the block; estimate_flops=True counts every operator"
COMPILES = ("torch.compile is in use, whose code runs without calls of modules; estimate_flops=True counts every "
            "operator")
OTHER_MODE = "another dispatch mode of torch is active"
NAMES = ("estimated_flops", "parameters", "module_calls", "module_calls_counted")
_KINDS_MAX = 1024
_LEAVES_MAX = 256
_BUDGET = 200  # recounting may take a 200th of the time
_classes: Dict[Any, Any] = {}
_NAMES_MAX = 4096
_names: Dict[str, str] = {}
_NOTHING: Set[str] = frozenset()  # type: ignore[assignment]
_here = threading.local()


_NO_CALL = Missing(NO_CALL)


def _alike(name: str) -> str:
    """The name without its numbers: epochs and steps are alike."""
    if len(_names) >= _NAMES_MAX:
        _names.clear()
    return _names.setdefault(name, re.sub(r"\d+", "#", name))


class _Unknown(Exception):
    """Arguments with an unknown effect."""


def _describe(value: Any, tensor: Any, out: List[Any]) -> None:
    if isinstance(value, tensor):
        out.append((tuple(value.shape), value.dtype, value.device.type, value.requires_grad))
    elif value is None or isinstance(value, (bool, int, float, str)):
        out.append(value)
    elif isinstance(value, (list, tuple)):
        out.append(len(value))
        for one in value:
            _describe(one, tensor, out)
    elif isinstance(value, dict):
        for name, one in value.items():
            out.append(name)
            _describe(one, tensor, out)
    else:
        raise _Unknown
    if len(out) > _LEAVES_MAX:
        raise _Unknown


class _Kind:
    """Segments that are assumed to be equal."""
    __slots__ = ("module", "flops", "not_counted", "parameters", "cost_ns")

    def __init__(self, module: Any) -> None:
        self.module = module
        self.flops: Optional[int] = None
        self.not_counted: Set[str] = set()
        self.parameters: Dict[int, int] = {}
        self.cost_ns = 0


class _Trainable:
    """Which parameters of a module take part in a backward pass."""

    def __init__(self, module: Any) -> None:
        self.module = weakref.ref(module)
        self.parameters = [weakref.ref(one) for one in module.parameters()]

    def flags(self) -> int:
        return hash(tuple([getattr(one(), "requires_grad", None) for one in self.parameters]))


def uses_compiler() -> bool:
    """Whether torch.compile was called."""
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    return compiler is not None and any(map(callable, getattr(compiler, "cached_backends", {0: id}).values()))


class _Watch:
    """The blocks that are open on a thread, and the segment that runs now."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.thread = threading.get_ident()
        self.open: List["Calls"] = []
        self.kinds: Dict[Any, _Kind] = {}
        self.trainable: Dict[int, _Trainable] = {}
        self.root: Any = None      # the module that is being called
        self.last: Any = None      # what the last call was like,
        self.module: Any = None    # and a weak reference to whose it was
        self.cuts = 0              # block begins and ends since
        self.kind: Optional[_Kind] = None
        self.mode: Any = None
        self.mode_ns = 0
        self.parameters: Dict[int, int] = {}
        self.since = self.used = self.spent = 0
        self.handler: Any = None   # of torch's compiler
        self.reported = False          # torch's modules report their calls

    # ---- blocks ------------------------------------------------------------------------------------------------------

    def begin(self, calls: "Calls") -> None:
        if not self.open:
            self.since = time.perf_counter_ns() - self.used
            self.last, self.cuts, self.root = None, 0, None
        self._cut()
        self.open.append(calls)
        self._go_on()

    def end(self, calls: "Calls") -> None:
        if calls in self.open:
            self._cut()
            self.open.remove(calls)
            self._go_on()
        if not self.open:
            if self.handler is not None:
                self.handler.remove_start_callback(self._compiles)
                self.handler = None
            self._leave()
            self.used = time.perf_counter_ns() - self.since

    def _go_on(self) -> None:
        """After the begin or the end of a block: the segment of the last call continues."""
        self.cuts += 1
        if self.last is not None and self.open:
            self._start((self.last, self.cuts, self.open[-1].name, len(self.open)), False)
        else:
            self._leave()

    # ---- calls -------------------------------------------------------------------------------------------------------

    def _compiles_now(self) -> bool:
        """Whether torch.compile is in use; if it is used later, that is detected then."""
        if self.handler is None:
            handler = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
            if hasattr(handler, "register_start_callback"):
                handler.register_start_callback(self._compiles)
                self.handler = handler
        return uses_compiler()

    def _compiles(self, *_: Any) -> None:
        self._stop(COMPILES)

    def _stop(self, problem: str) -> None:
        self.kind = None
        for calls in self.open:
            calls.problem = problem

    def called(self, module: Any, args: Any, kwargs: Any) -> None:
        begun, cpu_begun = time.perf_counter_ns(), time.thread_time_ns()
        self.root = module
        self._cut()
        try:
            if self._compiles_now():
                self._stop(COMPILES)
                self._leave()
            elif not self.torch._C._get_tracing_state():
                self._call(module, args, kwargs)
        except Exception as error:  # the program continues without it
            self._stop(f"{type(error).__name__}: {error}")
        cpu_ns = time.thread_time_ns() - cpu_begun
        _core.exclude(time.perf_counter_ns() - begun, cpu_ns)

    def note(self, module: Any) -> None:
        for parameter in module._parameters.values():
            if parameter is not None:
                try:
                    self.parameters[id(parameter)] = parameter.numel()
                except Exception:  # one without a size yet
                    continue

    # ---- segments ----------------------------------------------------------------------------------------------------

    def _call(self, module: Any, args: Any, kwargs: Any) -> None:
        known = self.trainable.get(id(module))
        if known is None or known.module() is not module:
            if len(self.trainable) >= _KINDS_MAX:
                self.trainable.clear()
            known = self.trainable[id(module)] = _Trainable(module)
        torch, like = self.torch, []  # type: Any, List[Any]
        like += [id(module), module.training, torch.is_grad_enabled(), torch.is_inference_mode_enabled(), known.flags()]
        alike = True
        try:
            _describe(args, torch.Tensor, like)
            _describe(kwargs, torch.Tensor, like)
        except Exception:  # _Unknown, or a tensor without a shape
            alike = False
            del like[5:]
        before, self.last, self.cuts = self.last, tuple(like), 0
        self.module = known.module
        for calls in self.open:
            calls.calls += 1
        key = (self.last, before, self.open[-1].name, len(self.open)) if alike else \
            (self.last, self.open[-1].name, len(self.open))
        self._start(key, True)

    def _cut(self) -> None:
        """Ends the current segment and adds it to the open blocks."""
        kind = self.kind
        if kind is None:
            return
        self.kind = None
        if self.mode is not None:
            kind.flops, kind.not_counted = self.mode.flops, self.mode.not_counted
            kind.parameters = self.parameters
            kind.cost_ns = self.mode.total_ns - self.mode_ns + self.mode.elsewhere[1]
            self.spent += kind.cost_ns
            _core.exclude(*self.mode.elsewhere)
            self.mode.elsewhere = [0, 0]
        for calls in self.open:
            calls.add(kind)

    def _start(self, key: Any, called: bool) -> None:
        kind, module = self.kinds.get(key), self.module()
        if kind is None or kind.module() is not module:
            if len(self.kinds) >= _KINDS_MAX:
                self.kinds.clear()
            kind = self.kinds[key] = _Kind(self.module)
        elapsed = time.perf_counter_ns() - self.since
        if kind.flops is None or (self.spent + kind.cost_ns) * _BUDGET < elapsed:
            self._enter()
        else:
            self._leave()
        if self.mode is None and kind.flops is None:
            for calls in self.open:
                calls.problem = calls.problem or OTHER_MODE
            return
        self.kind, self.parameters = kind, {}
        if self.mode is not None:
            self.mode.flops, self.mode.not_counted, self.mode_ns = 0, set(), self.mode.total_ns
            if called:
                self.note(module)
                for calls in self.open:
                    calls.counted += 1

    def in_backward(self) -> bool:
        """A backward pass restores the modes that are entered or left inside it."""
        return bool(self.torch._C._current_graph_task_id() >= 0)

    def _enter(self) -> None:
        if self.mode is None and not self.in_backward() and not self.torch._C._len_torch_dispatch_stack():
            counter = _flops.mode_class(self.torch)
            self.mode = _beside_compiler(counter)(_flops.calibrated(self.torch, counter))
            self.mode.__enter__()

    def _leave(self) -> None:
        if self.mode is None or self.in_backward():
            return
        stack = self.torch._C
        top = stack._len_torch_dispatch_stack()
        if top and stack._get_dispatch_stack_at(top - 1) is self.mode:
            self.mode.__exit__(None, None, None)
            self.mode = None


def _begin(module: Any) -> bool:
    """A module is called. True: the outermost call in an open block; _end has to be called for it."""
    watch = getattr(_here, "watch", None)
    if watch is None or not watch.open:
        return False
    if watch.root is None and not watch.in_backward():  # what a backward pass computes again is in its segment
        names = sys._getframe(1).f_locals
        if "kwargs" not in names:
            names = sys._getframe(2).f_locals  # reported to tare run, too
        watch.called(module, names.get("args"), names.get("kwargs"))
        return True
    if watch.mode is not None:
        watch.note(module)
    return False


def _end() -> None:
    _here.watch.root = None


def _beside_compiler(counter: Any) -> Any:
    """A mode like it that does not prevent torch.compile from compiling."""
    if counter not in _classes:
        _classes[counter] = type("Mode", (counter,), {"ignore_compile_internals": classmethod(lambda cls: True)})
    return _classes[counter]


class Calls:
    """Operations of a block from start() to stop(), by its calls of modules."""

    def __init__(self, name: str) -> None:
        self.name = _names.get(name) or _alike(name)
        self.problem = ""
        self.watch: Optional[_Watch] = None
        self.flops = self.calls = self.counted = self.segments = 0
        self.not_counted = _NOTHING
        self.parameters: Optional[Dict[int, int]] = None

    def start(self) -> None:
        """Begins, or records why it cannot."""
        torch = sys.modules.get("torch")
        if torch is None or not hasattr(torch, "nn"):
            self.problem = "torch was not loaded when the block began"
        elif _flops.running_task() is not None:
            self.problem = "torch counts by thread, and asyncio's tasks take turns on one"
        else:
            try:
                watch = getattr(_here, "watch", None)
                if watch is None:
                    watch = _here.watch = _Watch(torch)
                if uses_compiler():
                    self.problem = COMPILES
                    return
                if not watch.reported:
                    from ._forward import tell_blocks
                    tell_blocks(torch, _begin, _end)
                    watch.reported = True
                watch.begin(self)
                self.watch = watch
            except (ImportError, AttributeError, TypeError, OSError, SyntaxError):
                self.problem = "calls of modules are not seen in this version of torch"

    def add(self, kind: _Kind) -> None:
        self.flops += kind.flops or 0
        self.not_counted = self.not_counted | kind.not_counted if kind.not_counted else self.not_counted
        if self.parameters is None:
            self.parameters = {}
        self.parameters.update(kind.parameters)
        self.segments += 1

    def is_settled(self) -> bool:
        """Whether it has no cost in the block, so that settle() may be called after its end."""
        watch = self.watch
        return watch is None or (watch.mode is None and watch.kind is None and watch.handler is None)

    def settle(self) -> None:
        """The work that has to be done before the block ends."""
        if self.watch is not None and threading.get_ident() == self.watch.thread:
            self.watch.end(self)

    def stop(self) -> Dict[str, Any]:
        """The values of the block."""
        if self.problem or not self.segments:
            return dict.fromkeys(NAMES, Missing(self.problem) if self.problem else _NO_CALL)
        from ._flops_formulas import total
        count = sum((self.parameters or {}).values())
        return {"estimated_flops": _flops.known(total(self.flops, self.not_counted)),
                "parameters": count if count else Missing("no torch module with parameters was called in the block"),
                "module_calls": self.calls, "module_calls_counted": self.counted}
