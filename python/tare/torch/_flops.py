"""Floating-point operations of a block, counted as torch's operators run; and the parameters that took part. The
overhead of counting is measured and excluded from the block's times."""
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Set, Tuple, Union

from .. import _core
from .._core import Missing

NOTHING_COUNTED = ("no operator ran whose operations are counted (products, convolutions, attention, recurrent "
                   "layers): elementwise operators and work outside of torch are not")
_ROUNDS = 15
_calibrated: List[int] = []


def running_task() -> Any:
    """The running asyncio task; None: no task is running."""
    asyncio = sys.modules.get("asyncio")
    try:
        loop = asyncio._get_running_loop() if asyncio is not None else None
        return asyncio.current_task(loop) if loop is not None else None
    except (RuntimeError, AttributeError):
        return None


def known(flops: Any) -> Any:
    """The count; Missing if nothing was counted: 0 would be misleading."""
    if flops or isinstance(flops, Missing):
        return flops
    return Missing(getattr(flops, "reason", "") or NOTHING_COUNTED)


def _mode(torch: Any) -> Any:
    """A class of dispatch modes: runs each operator unchanged, adds up its formula, and excludes the time of this from
    the open blocks."""
    from torch.utils._python_dispatch import TorchDispatchMode

    from ._flops_formulas import computes
    from ._flops_formulas import formulas as table
    formulas = table(torch)
    clock, cpu_clock, thread_of = time.perf_counter_ns, time.thread_time_ns, threading.get_ident
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    composite: Dict[Any, bool] = {}  # operators composed of others, which are counted instead
    lacking: Dict[Any, str] = {}     # operators that compute and have no formula, by name; "": they do not

    class Mode(TorchDispatchMode):  # type: ignore[misc, no-any-unimported]
        supports_higher_order_operators = True

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # torch would wrap each call; the code is registered with its compiler below instead

        def __init__(self, beside_ns: int) -> None:
            super().__init__()
            self.flops = self.total_ns = self.calls = 0
            self.not_counted: Set[str] = set()
            self.elsewhere = [0, 0]
            self.left = self.cpu_left = 0  # when the last call ended
            self.beside_ns = beside_ns
            self.thread = thread_of()
            self.excludes = 1

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            begun, cpu_begun = clock(), cpu_clock()
            kwargs = kwargs or {}
            if not hasattr(func, "overloadpacket"):  # a higher-order operator: its parts are dispatched separately
                return NotImplemented
            formula = formulas.get(func.overloadpacket) or formulas.get(func)
            if formula is None and self._is_composite(func):
                with self:
                    made = func.decompose(*args, **kwargs)
                if made is not NotImplemented:
                    return made
            gap, cpu_gap = begun - self.left, cpu_begun - self.cpu_left
            cpu_called, called = cpu_clock(), clock()
            result = func(*args, **kwargs)
            ended, cpu_ended = clock(), cpu_clock()
            if formula is not None:
                self._count(func, formula, args, kwargs, result)
            elif lacking.get(func) != "":
                self._note(func)
            ns = called - begun - ended + self._beside(gap, ended - called)
            cpu_ns = cpu_called - cpu_begun - cpu_ended + self._beside(cpu_gap, cpu_ended - cpu_called)
            self._leave(ns, cpu_ns)
            return result

        def _beside(self, gap: int, inside: int) -> int:
            """The cost of torch's dispatch to this mode and back: at most the time before the call, and half of it."""
            before = min(self.beside_ns, gap)
            return before + min(self.beside_ns - before, inside // 2)

        def _is_composite(self, func: Any) -> bool:
            known = composite.get(func)
            if known is None:
                known = composite[func] = bool(has_kernel(func.name(), "CompositeImplicitAutograd"))
            return known

        def _count(self, func: Any, formula: Callable[..., Any], args: Any, kwargs: Any, result: Any) -> None:
            try:
                self.flops += int(formula(*args, **kwargs, out_val=result))
            except Exception:  # a formula that does not fit; the program's call is done, and its result is right
                self.not_counted.add(func._schema.name)

        def _note(self, func: Any) -> None:
            if func not in lacking:
                namespace, _, name = func._schema.name.partition("::")
                lacking[func] = func._schema.name if computes(name, namespace) else ""
            if lacking[func]:
                self.not_counted.add(lacking[func])

        def _leave(self, ns: int, cpu_ns: int) -> None:
            self.calls += 1
            cpu_left, left = cpu_clock(), clock()
            ns, cpu_ns = ns + left, cpu_ns + cpu_left
            if thread_of() == self.thread:
                self.total_ns += cpu_ns
                self.left, self.cpu_left = left, cpu_left
                _core.exclude(ns * self.excludes, cpu_ns * self.excludes)
            else:  # one of the backward pass, which this one waits for
                self.elsewhere[0] += ns
                self.elsewhere[1] += cpu_ns

    try:
        from torch._C._dynamo.eval_frame import skip_code
        skip_code(Mode.__torch_dispatch__.__code__)
    except (ImportError, AttributeError):  # this version works differently, or has no compiler
        pass
    return Mode


def _typical(call: Callable[[], Any], clock: Callable[[], int]) -> int:
    times = []
    for _ in range(_ROUNDS):
        begun = clock()
        call()
        times.append(clock() - begun)
    return sorted(times)[_ROUNDS // 2]


def calibrated(torch: Any, mode_class: Any) -> int:
    """Nanoseconds that a dispatched call takes beyond a plain one and beyond what the mode measures, for forward and
    backward of a small network. This also triggers torch's imports and setup on first use."""
    if _calibrated:
        return _calibrated[0]
    with torch.inference_mode(False), torch.enable_grad():
        weights = [torch.full((8, 8), 0.125, device="cpu", dtype=torch.float32, requires_grad=True) for _ in range(6)]
        bias = torch.zeros(8, device="cpu", dtype=torch.float32, requires_grad=True)
        given = torch.ones(8, 8, device="cpu", dtype=torch.float32)

        def call() -> None:
            layer = given
            for weight in weights:
                layer = torch.relu(torch.addmm(bias, layer, weight))
            torch.autograd.grad(layer.sum(), weights)

        mode = mode_class(0)
        mode.excludes = 0  # the caller excludes all of this

        def unseen() -> int:
            return time.thread_time_ns() - mode.total_ns
        for _ in range(3):
            call()
        plain = _typical(call, time.thread_time_ns)
        with mode:
            call()
            mode.calls = 0
            beside = _typical(call, unseen) - plain
    _calibrated.append(max(0, beside * _ROUNDS // mode.calls))
    return _calibrated[0]


_modes: Dict[int, Any] = {}  # by torch module, of which a program has one


def mode_class(torch: Any) -> Any:
    """The class of the counting modes."""
    return _modes.get(id(torch)) or _modes.setdefault(id(torch), _mode(torch))


class Counting:
    """Counts from start() to stop(), on this thread.

        counting = Counting()
        counting.start()
        model(batch)
        flops, parameters = counting.stop()
    """

    def __init__(self) -> None:
        self.problem = ""
        self.mode: Any = None
        self.hook: Any = None
        self.parameters: Dict[int, int] = {}
        self.thread = threading.get_ident()

    def start(self) -> None:
        """Begins, or records why it cannot."""
        torch = sys.modules.get("torch")
        if torch is None:
            self.problem = "torch was not loaded when the block began"
        elif running_task() is not None:
            self.problem = "torch counts by thread, and asyncio's tasks take turns on one"
        else:
            try:
                from torch.nn.modules.module import register_module_forward_pre_hook
                counter = mode_class(torch)
            except (ImportError, AttributeError):
                self.problem = "this torch has no operation counter (torch.utils.flop_counter, since 2.1)"
                return
            self.mode = counter(calibrated(torch, counter))
            self.hook = register_module_forward_pre_hook(self._see)
            self.mode.__enter__()

    def _see(self, module: Any, _: Any) -> None:
        begun, cpu_begun = time.perf_counter_ns(), time.thread_time_ns()
        if threading.get_ident() == self.thread:
            for parameter in module.parameters(recurse=False):
                self.parameters[id(parameter)] = parameter.numel()
            cpu_ns = time.thread_time_ns() - cpu_begun
            _core.exclude(time.perf_counter_ns() - begun, cpu_ns)

    def settle(self) -> None:
        """Excludes the remaining overhead before the block ends."""
        if self.mode is not None:
            _core.exclude(*self.mode.elsewhere)

    def stop(self) -> Tuple[Union[int, Missing], Union[int, Missing]]:
        """(operations, parameters of the modules that were called)."""
        if self.mode is None:
            missing = Missing(self.problem)
            return missing, missing
        self.mode.__exit__(None, None, None)
        self.hook.remove()
        count = sum(self.parameters.values())
        from ._flops_formulas import total
        return (known(total(self.mode.flops, self.mode.not_counted)),
                count if count else Missing("no torch module with parameters was called in the block"))
