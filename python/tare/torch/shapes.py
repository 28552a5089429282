"""Shapes, bytes and FLOPs of operators: one training step runs under a dispatch mode that inspects every call. Each is
recorded as a span "shapes: aten::mm" with its numbers; inside it, one that is named after the shapes. The step's time
is not representative: it is slower than the others."""
import atexit
import sys

from .. import _core
from ._flops_formulas import formulas

__all__ = ["prepare"]

_AFTER = 2  # calls of the optimizer: the first ones make its state
_SHOWN = 6  # tensors of a call
_TYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
          "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "b1", "complex64": "c64", "complex128": "c128"}


def _tensors(values, torch):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value, torch)


def _shape(tensor):
    name = str(tensor.dtype).replace("torch.", "")
    return "%s[%s]" % (_TYPES.get(name, name), ",".join(str(size) for size in tensor.shape))


def _bytes(tensor):
    """Bytes moved by a pass over it. A tensor that repeats its memory (expand) moves only the memory it has."""
    whole = tensor.numel() * tensor.element_size()
    try:
        return min(whole, tensor.untyped_storage().nbytes())
    except (RuntimeError, NotImplementedError):  # sparse, or on no device
        return whole


def _what(torch):
    """Forward, backward, or forward once more inside of the backward pass."""
    if torch._C._current_graph_task_id() == -1:
        return "shapes: "
    return "shapes recomputed: " if torch.is_grad_enabled() else "shapes backward: "


class _Inspector:
    def __init__(self, torch):
        from torch.utils._python_dispatch import TorchDispatchMode
        inspector = self

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                try:
                    inspector.note(func, args, kwargs or {}, result)
                except Exception:  # any error: the program's call is done, and its result is correct
                    inspector.failed += 1
                return result

        self.torch, self.mode, self.failed, self.noted = torch, Mode(), 0, 0
        self.formulas = formulas(torch)

    def note(self, func, args, kwargs, result):
        if func.namespace == "profiler":  # a range of record_function begins or ends
            return
        self.noted += 1
        numbers = {}
        formula = self.formulas.get(func.overloadpacket) or self.formulas.get(func)
        given = list(_tensors([*args, *kwargs.values()], self.torch))
        made = list(_tensors([result], self.torch))
        if formula is not None:
            numbers["flops"] = float(formula(*args, **kwargs, out_val=result))
        numbers["bytes"] = 0.0 if func.is_view else float(sum(map(_bytes, given + made)))
        shown = " ".join(map(_shape, given[:_SHOWN])) + (" …" if len(given) > _SHOWN else "")
        devices = {tensor.device.type for tensor in given + made} - {"cpu", "meta"}
        if devices:  # its times are not the CPU's, nor are its peaks
            shown += " on " + ", ".join(sorted(devices))
        with _core.span(_what(self.torch) + func._schema.name, **numbers):
            with _core.span(shown or "no tensors"):
                pass


class _Step:
    """Waits for its step, inspects it, and is removed. The mode would be visible to the program's own profiler, so it
    uses a step without one."""

    def __init__(self, torch, register):
        self.torch, self.seen, self.first, self.inspector, self.waited = torch, 0, None, None, False
        self.hook = register(self.after_step)
        atexit.register(self.at_exit)

    def after_step(self, optimizer, _args, _kwargs):
        if self.first is None:
            self.first = id(optimizer)
        if id(optimizer) != self.first:  # with several, a step is from one call of the first to the next
            return
        try:
            self.seen += 1
            if self.inspector is not None:
                self.end()
            elif self.seen >= _AFTER:
                self.begin()
        except Exception as error:
            self.give_up("%s: %s" % (type(error).__name__, error))

    def begin(self):
        from . import operators
        dynamo = sys.modules.get("torch._dynamo.utils")
        if dynamo is not None and dynamo.counters["frames"].get("total"):
            self.give_up("the program uses torch.compile, whose code a dispatch mode would change")
            return
        if operators.profiler_runs():
            self.waited = True
            return
        self.inspector = _Inspector(self.torch)
        self.was_on = operators.why_not() is None
        operators.stop()
        operators.before_profiler = self.profiler_begins
        self.inspector.mode.__enter__()

    def leave(self):
        """True: operators were reported before."""
        from . import operators
        inspector, self.inspector, operators.before_profiler = self.inspector, None, None
        inspector.mode.__exit__(None, None, None)
        return self.was_on

    def end(self):
        from . import operators
        was_on = self.leave()
        self.hook.remove()
        self.first = 0
        if was_on:
            operators.start()

    def profiler_begins(self):
        """True: operators have to be reported again when it has ended. A later step is used if none of this one was
        inspected."""
        noted, was_on, self.waited = self.inspector.noted, self.leave(), True
        if noted:
            self.give_up("the program's own torch.profiler began in the middle of the step")
        return was_on

    def give_up(self, why):
        self.hook.remove()
        self.inspector, self.first = None, 0
        _core.fact("torch.shapes.unavailable", text=why)

    def at_exit(self):
        if self.first == 0:
            return
        if self.waited:
            _core.fact("torch.shapes.unavailable", text="the program's own torch.profiler was at work in every step")
        elif self.inspector is None:
            _core.fact("torch.shapes.unavailable",
                       text="the optimizer was called %d times, and it takes %d" % (self.seen, _AFTER + 1))


def prepare():
    """Once torch is imported: the step after the second call of an optimizer will be inspected."""
    import torch
    try:
        from torch.optim.optimizer import register_optimizer_step_post_hook
    except ImportError:
        _core.fact("torch.shapes.unavailable", text="torch %s has no hook on all optimizers" % torch.__version__)
        return
    _Step(torch, register_optimizer_step_post_hook)
