"""Optimizations of torch models: tried on copies, verified, measured, and applied only if they help.

    optimizer = tare.ModelOptimizer(tare.ProfilingConfig())
    faster = optimizer.optimize_model(model, {}, example_input=batch)
    print(optimizer.get_optimization_summary()["optimizations_applied"])
"""
import contextlib
import copy
import functools
import math
import signal
import subprocess
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._command import isolated
from .._core import Missing, unit
from ..config import ProfilingConfig
from ..torch import _state
from . import _benchmark
from ._limits import percent
from .dataloading import number

APPLIED = "applied, verified and measured"
NEEDS_INPUT = "needs an input to be measured: pass example_input"
EXACT, HALF = 1e-3, 5e-2  # tolerated deviation of outputs: same precision, half precision
ROUNDS = 10  # of a measurement


class Unfit(Exception):
    """Why an optimization does not suit a model."""


# ---- the optimizations ---------------------------------------------------------------------------------------------

Run = Callable[[], Any]


class Optimization(NamedTuple):
    """`apply` returns the changed model, and raises Unfit if it is not applicable. `name` may depend on the model.
    `check` raises Unfit if the model's structure rules it out. `evidence` gets the original model, the changed one
    and a function that runs the changed one; it returns how the change affected what runs, and raises Unfit if
    nothing changed."""
    name: Callable[[Any], str]
    switch: str  #: of ProfilingConfig
    tolerance: float
    apply: Callable[[Any], Any]
    check: Callable[[Any], None] = lambda model: None
    evidence: Callable[[Any, Any, Run], Dict[str, Any]] = lambda before, changed, run: {}


def _half_type(model: Any) -> Any:
    import torch
    if _state.device_of(model).type == "cuda" and not torch.cuda.is_bf16_supported():
        return torch.float16
    return torch.bfloat16


def _half_name(model: Any) -> str:
    import torch
    return "Mixed precision (FP16)" if _half_type(model) is torch.float16 else "Mixed precision (BF16)"


class _Autocast:
    """Mixed into a model's class: forward computes in half precision, and its results keep their type."""
    _tare_autocast: Optional[Tuple[str, Any]] = None  # a part of such a model, like a slice of a Sequential, has none

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        import torch
        if self._tare_autocast is None:
            return super().forward(*args, **kwargs)  # type: ignore[misc]
        device, dtype = self._tare_autocast
        with torch.autocast(device_type=device, dtype=dtype):
            output = super().forward(*args, **kwargs)  # type: ignore[misc]
        # Losses are computed outside, often with a target of full precision.
        return _state.mapped(output, lambda tensor: tensor.float() if tensor.dtype == dtype else tensor)

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = dict(self.__dict__)
        state.pop("_compiled_call_impl", None)
        return _empty, (type(self).__mro__[2],), state


@functools.lru_cache(maxsize=256)
def _autocast_class(kind: type) -> type:
    return type(kind.__name__, (_Autocast, kind), {"__module__": kind.__module__, "__qualname__": kind.__qualname__,
                                                  "__doc__": kind.__doc__})


def _empty(kind: type) -> Any:
    made = _autocast_class(kind)
    return made.__new__(made)


def _plain(model: Any) -> None:
    """Raises Unfit for anything but an ordinary module."""
    import torch
    if isinstance(model, torch.jit.ScriptModule) or type(model).__name__.startswith("GraphModule"):
        raise Unfit(f"the model is a {type(model).__name__}, whose code is fixed")
    if type(model).__name__ == "OptimizedModule":
        raise Unfit("the model is compiled already; optimize it before it is compiled")
    if isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        raise Unfit(f"the model is in {type(model).__name__}; optimize the module before it is put there")


def _check_mixed_precision(model: Any) -> None:
    import torch
    _plain(model)
    if isinstance(model, _Autocast):
        raise Unfit("the model already computes in mixed precision")
    if not any(one.dtype == torch.float32 for one in model.parameters()):
        raise Unfit("the model has no weights of 32 bits")
    reason = half_error() if _state.device_of(model).type == "cpu" else None
    if reason:
        raise Unfit(reason)


def _mixed_precision(model: Any) -> Any:
    made = copy.copy(model)  # weights and submodules stay shared
    made.__class__ = _autocast_class(type(model))
    made._tare_autocast = (_state.device_of(model).type, _half_type(model))
    return made


def _watch(run: Run, look: Callable[[str, List[Any]], None]) -> None:
    """Runs the model and inspects the tensors that each operator returned."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = function(*args, **(kwargs or {}))
            look(str(function), list(_state.tensors_in(out)))
            return out
    with Watching():
        run()


def _half_evidence(before: Any, changed: Any, run: Run) -> Dict[str, Any]:
    """Operators that returned results in half precision while the model ran."""
    half, counts = _half_type(changed), {"half_precision_operators": 0, "operators": 0}

    def look(operator: str, results: List[Any]) -> None:
        counts["operators"] += 1
        counts["half_precision_operators"] += "_to_copy" not in operator and any(one.dtype == half for one in results)
    _watch(run, look)
    if not counts["half_precision_operators"]:
        raise Unfit("no operator of the model computes in half precision under autocast")
    return counts


def _check_channels_last(model: Any) -> None:
    import torch
    _plain(model)
    weights = [one for one in model.parameters() if one.dim() == 4]
    if not weights:
        raise Unfit("the model has no 4-dimensional weights: it is no model of images")
    if all(one.is_contiguous(memory_format=torch.channels_last) for one in weights):
        raise Unfit("the weights are stored channels last already")


def _channels_last(model: Any) -> Any:
    import torch
    return model.to(memory_format=torch.channels_last)


def _is_channels_last(one: Any) -> bool:
    import torch
    return one.dim() == 4 and one.is_contiguous(memory_format=torch.channels_last) and not one.is_contiguous()


def _channels_evidence(before: Any, changed: Any, run: Run) -> Dict[str, Any]:
    """Weights with a different storage order, and results of operators in that order."""
    seen = {"channels_last_weights": sum(map(_is_channels_last, changed.parameters())), "channels_last_results": 0}

    def look(_: str, results: List[Any]) -> None:
        seen["channels_last_results"] += any(map(_is_channels_last, results))
    _watch(run, look)
    if not seen["channels_last_weights"] or not seen["channels_last_results"]:
        raise Unfit("the storage order of the weights changes no operator's result")
    return seen


# Tried in a separate process: if a virtual machine advertises instructions that it forbids, or a compiler generates
# such code, the first use ends the process, which must not be the user's.
_TRY_HALF = """
import torch
model = torch.nn.Sequential(torch.nn.Conv2d(16, 32, 3), torch.nn.Flatten(), torch.nn.Linear(32 * 36, 256))
with torch.autocast("cpu", dtype=torch.bfloat16):
    out = model(torch.randn(32, 16, 8, 8))
out.float().pow(2).mean().backward()
"""
_TRY_COMPILE = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
torch.compile(model)(torch.randn(8, 64)).sum().backward()
"""
_PATIENCE_S = 300


def _probe_error(what: str, code: str) -> Optional[str]:
    """Why the code does not run here; None: it does."""
    if not sys.executable:
        return f"{what} cannot be tried in a process of its own here: the interpreter's path is not known"
    try:
        done = subprocess.run([sys.executable, *isolated(code)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=_PATIENCE_S)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{what} could not be tried: {error}"
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return f"{what} does not work here: a process that tries it is killed by {name}"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return f"{what} does not work here: {lines[-1][:200] if lines else f'exit status {done.returncode}'}"


@functools.lru_cache(maxsize=1)
def half_error() -> Optional[str]:
    """Why bfloat16 cannot be used on this CPU; None: it can. Tried once.

        half_error() or "bfloat16 works"
    """
    return _probe_error("bfloat16", _TRY_HALF)


@functools.lru_cache(maxsize=1)
def compiler_error() -> Optional[str]:
    """Why torch.compile cannot be used here; None: it can. Tried once.

        compiler_error() or "torch.compile works"
    """
    import torch
    if not hasattr(torch, "compile"):
        return f"torch {torch.__version__} has no torch.compile"
    return _probe_error("torch.compile", _TRY_COMPILE)


def _check_compile(model: Any) -> None:
    _plain(model)
    if getattr(model, "_compiled_call_impl", None) is not None:
        raise Unfit("the model is compiled already; optimize it before it is compiled")
    reason = compiler_error()
    if reason:
        raise Unfit(reason)


def _compile(model: Any) -> Any:
    made = copy.copy(model)
    _state.compile_call(made)
    return made


def _graphs() -> Tuple[int, int]:
    from torch._dynamo.utils import counters
    return counters["stats"]["unique_graphs"], counters["stats"]["calls_captured"]


def _compile_evidence(before: Any, changed: Any, run: Run) -> Dict[str, Any]:
    """Number of graphs that dynamo compiled for the model. A model that it skips runs uncompiled."""
    _state.compile_call(changed)  # a model that already ran would have nothing left to compile
    graphs, operators = _graphs()
    run()
    now = _graphs()
    if now[0] <= graphs:
        raise Unfit("torch.compile captured no graph of this model")
    return {"graphs": now[0] - graphs, "operators_captured": now[1] - operators}


OPTIMIZATIONS: Sequence[Optimization] = (
    Optimization(lambda model: "Channels last memory format", "use_channels_last", EXACT, _channels_last,
                 _check_channels_last, _channels_evidence),
    Optimization(_half_name, "use_mixed_precision", HALF, _mixed_precision, _check_mixed_precision, _half_evidence),
    Optimization(lambda model: "torch.compile", "use_compile", EXACT, _compile, _check_compile, _compile_evidence),
)


# ---- saving memory -------------------------------------------------------------------------------------------------

class Saving(NamedTuple):
    """A change of the model itself that takes less memory; `check` and `evidence` as in Optimization."""
    name: str
    apply: Callable[[Any], Any]
    check: Callable[[Any], None]
    evidence: Callable[[Any, Any, Run], Dict[str, Any]]


def _check_checkpointing(model: Any) -> None:
    if not callable(getattr(model, "gradient_checkpointing_enable", None)):
        raise Unfit("the model has no gradient_checkpointing_enable(); "
                    "torch.utils.checkpoint can be used inside its forward")
    if getattr(model, "is_gradient_checkpointing", False) is True:
        raise Unfit("the model uses gradient checkpointing already")


def _recomputed_evidence(before: Any, changed: Any, run: Run) -> Dict[str, Any]:
    """Number of module calls in the backward pass: what checkpointing computes again."""
    from torch.nn.modules import module as modules
    calls = [0, 0]
    handle = modules.register_module_forward_pre_hook(
        lambda module, args: calls.__setitem__(_in_backward(), calls[_in_backward()] + 1))
    try:
        run()
    finally:
        handle.remove()
    if not calls[1]:
        raise Unfit("the model computes nothing again in its backward pass: checkpointing changed nothing")
    return {"module_calls_recomputed": calls[1], "module_calls": calls[0]}


def _in_backward() -> int:
    import torch
    return int(torch._C._current_graph_task_id() != -1)


def _check_attention(model: Any) -> None:
    attention = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if attention != "eager" or not callable(getattr(model, "set_attn_implementation", None)):
        raise Unfit(f"the model's attention is {attention}, not eager" if isinstance(attention, str)
                    else "the model has no attention whose implementation can be set")


def _attention_evidence(before: Any, changed: Any, run: Run) -> Dict[str, Any]:
    """Number of calls of torch's fused attention."""
    import torch
    calls = [0]

    class Counted(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls[0] += function is torch.nn.functional.scaled_dot_product_attention
            return function(*args, **(kwargs or {}))
    with Counted():
        run()
    if not calls[0]:
        raise Unfit("the model does not call scaled_dot_product_attention after the change")
    return {"scaled_dot_product_attention_calls": calls[0]}


SAVINGS: Sequence[Saving] = (
    Saving("Gradient checkpointing", lambda model: model.gradient_checkpointing_enable(), _check_checkpointing,
           _recomputed_evidence),
    Saving("Efficient attention", lambda model: model.set_attn_implementation("sdpa"), _check_attention,
           _attention_evidence),
)


# ---- applying them -------------------------------------------------------------------------------------------------

class ModelOptimizer:
    """Tries the optimizations that the config enables on copies of the model with an input, and applies only those that
    preserve the results, change what runs, and measurably help. Without an input nothing is applied: possible
    optimizations are returned as advice. The summary lists rejected ones with the reason.

        faster = profiler.model_optimizer.optimize_model(model, profile_summary, example_input=batch)
    """

    def __init__(self, config: Optional[ProfilingConfig] = None) -> None:
        self.config = config if config is not None else ProfilingConfig()
        self._forget()

    def _forget(self) -> None:
        self._applied: List[str] = []
        self._rejected: List[Dict[str, Any]] = []
        self._skipped: List[Dict[str, Any]] = []
        self._advice: List[Dict[str, Any]] = []
        self._details: List[Dict[str, Any]] = []

    def optimize_model(self, model: Any, profile_summary: Optional[Mapping[str, Any]] = None,
                       example_input: Any = None, *, tolerance: Optional[float] = None,
                       only_gains: bool = True) -> Any:
        """The model with the optimizations that help, or the model itself if none does. The returned model shares its
        weights with the given one, so existing optimizers keep working; the given model computes as before (only the
        storage order of its weights may change). example_input is a batch as returned by the loader; by default, the
        last batch that profile_training_pipeline() or benchmark_optimizations() ran this model on is used, and
        without that nothing is applied. A model in training mode is measured with its backward pass, one in
        evaluation mode without. If profile_summary has a `memory_percent` above 85, memory is optimized too.
        tolerance is the allowed deviation of outputs, as a share of their norm; only_gains=False also keeps
        optimizations that are correct but not faster.

            optimized = optimizer.optimize_model(model, {}, example_input=batch)
        """
        _state.check_model(model, "optimize_model")
        if profile_summary is not None and not isinstance(profile_summary, Mapping):
            raise TypeError("profile_summary is what get_profile_summary() gave, "
                            f"not {type(profile_summary).__name__}")
        self._forget()
        if not self.config.enable_optimizations:
            return model
        batch = example_input if example_input is not None else _state.remembered(model)
        given = model
        for one in OPTIMIZATIONS:
            if getattr(self.config, one.switch):
                model = self._try(one, model, given, batch, tolerance, only_gains)
        if number(profile_summary or {}, "memory_percent") > percent("MEMORY_INFO"):
            model = self._apply_memory_optimizations(model, batch)
        return model

    def _fits(self, name: str, check: Callable[[Any], None], model: Any, batch: Any) -> bool:
        """Whether it can be tried: inapplicable ones are skipped; without an input it becomes advice."""
        try:
            check(model)
        except Unfit as error:
            self._skipped.append({"name": name, "reason": str(error)})
            return False
        if batch is None:
            self._advice.append({"name": name, "reason": NEEDS_INPUT})
            return False
        return True

    def _try(self, one: Optimization, model: Any, reference: Any, batch: Any, tolerance: Optional[float],
             only_gains: bool) -> Any:
        name = one.name(model)
        if not self._fits(name, one.check, model, batch):
            return model
        # Compared with the original model, it includes the deviations of the optimizations before it.
        limit = max([one.tolerance, *(detail["tolerance"] for detail in self._details)])
        reported: Dict[str, Any] = {}
        try:
            with _state.kept_random():
                before, exact = _state.copy_of(model), _state.copy_of(reference)
                changed = one.apply(_state.copy_of(model))
                reported.update(verify(exact, changed, batch, limit if tolerance is None else tolerance))
                if reported["accepted"]:
                    reported.update(evidence=one.evidence(before, changed, lambda: run_as_used(changed, batch)))
                    reported.update(measure(before, changed, batch))
        except Exception as error:
            return self._failed(name, reported, error, model)
        if not reported["accepted"] or (only_gains and not reported["helps"]):
            self._rejected.append({"name": name, **reported, "reason": reported.get("reason") or _not_faster(reported)})
            return model
        return self._apply(one, model, batch, name, reported)

    def _apply(self, one: Optimization, model: Any, batch: Any, name: str, reported: Dict[str, Any]) -> Any:
        """Applies it to the model itself and records the evidence."""
        stored = [(parameter, parameter.data) for parameter in model.parameters()]
        changed = one.apply(model)
        try:
            with _state.kept_state(changed), _state.kept_random():
                reported["evidence"] = one.evidence(model, changed, lambda: run_as_used(changed, batch))
        except Exception as error:
            for parameter, data in stored:
                parameter.data = data
            return self._failed(name, reported, error, model)
        self._note(name, {**reported, "status": APPLIED})
        return changed

    def _failed(self, name: str, reported: Dict[str, Any], error: Exception, model: Any) -> Any:
        """Returns the unchanged model and records the reason."""
        if isinstance(error, Unfit):
            self._skipped.append({"name": name, "reason": str(error)})
        else:
            self._rejected.append({"name": name, **reported,
                                   "reason": f"it could not be tried: {_state.first_line(error)}"})
        return model

    def _note(self, name: str, detail: Dict[str, Any]) -> None:
        self._applied.append(name)
        self._details.append({"name": name, **detail})

    def _apply_memory_optimizations(self, model: Any, example_input: Any = None) -> Any:
        """Enables gradient checkpointing and memory-efficient attention, if the model supports them and a training step
        on the input takes measurably less memory with the same gradients. Changes the model itself, and returns it.
        The input is determined as in optimize_model(); without one nothing is changed.

            model = profiler.model_optimizer._apply_memory_optimizations(model, batch)
        """
        _state.check_model(model, "_apply_memory_optimizations")
        batch = example_input if example_input is not None else _state.remembered(model)
        for one in SAVINGS:
            if self._fits(one.name, one.check, model, batch):
                self._save(one, model, batch)
        return model

    def _save(self, one: Saving, model: Any, batch: Any) -> None:
        reported: Dict[str, Any] = {}
        try:
            with _state.kept_random():
                before, changed = (_state.copy_of(model).train() for _ in range(2))
                try:
                    one.apply(changed)
                except Exception as error:
                    raise Unfit(f"the model rejects it: {_state.first_line(error)}") from error
                reported.update(verify(before, changed, batch, EXACT, gradients=True))
                if reported["accepted"]:
                    reported.update(evidence=one.evidence(before, changed, lambda: run_as_used(changed, batch)))
                    reported.update(measure_memory(before, changed, batch), **measure(before, changed, batch, 5))
        except Exception as error:
            self._failed(one.name, reported, error, model)
            return
        if reported["accepted"] and (reported["less_memory"] or reported["helps"]):
            one.apply(model)
            self._note(one.name, {**reported, "status": APPLIED})
            return
        self._rejected.append({"name": one.name, **reported, "reason": reported.get("reason") or (
            f"a training step takes no less memory: {reported['original_mb']:.1f} MB, "
            f"{reported['optimized_mb']:.1f} MB with it")})

    def get_optimization_summary(self) -> Dict[str, Any]:
        """optimizations_applied (their names) and total_optimizations; status; details of each with the evidence;
        rejected and skipped ones with the reason; advice, which was not tried.

            print(profiler.model_optimizer.get_optimization_summary()["optimizations_applied"])
        """
        status = APPLIED if self._applied else "nothing applied"
        if not self.config.enable_optimizations:
            status = "nothing applied: enable_optimizations is off"
        elif self._advice and not self._applied:
            status = f"nothing applied: it {NEEDS_INPUT}"
        return {"optimizations_applied": list(self._applied), "total_optimizations": len(self._applied),
                "status": status, "details": copy.deepcopy(self._details), "rejected": copy.deepcopy(self._rejected),
                "skipped": copy.deepcopy(self._skipped), "advice": copy.deepcopy(self._advice)}


def _not_faster(reported: Mapping[str, Any]) -> str:
    """Why it is not kept, with figures."""
    original, changed = unit(reported["original_s"], "s"), unit(reported["optimized_s"], "s")
    figures = f"{original}, {changed} with it ({reported['speedup']:.2f}x"
    if reported["speedup"] * _benchmark.FAR_SLOWER < 1:
        return f"slower: {figures})"
    return f"not faster: {figures}; {reported['decision']['why']})"


# ---- running -------------------------------------------------------------------------------------------------------

def run_as_used(model: Any, batch: Any) -> Any:
    """One run as in the program: in training mode forward and backward pass, else the forward pass without
    gradients. Gradients are dropped afterwards."""
    import torch
    if not trains(model):
        return _run_once(model, batch)
    call = _state.call_of(model, _state.to_device(batch, _state.device_of(model)))
    with torch.enable_grad():
        output = model(*call.args, **call.kwargs)
        if any(one.requires_grad and one.is_floating_point() for one in _state.tensors_in(output)):
            _state.loss_of(output, call, None).backward()
    for one in model.parameters():
        one.grad = None
    return output


def trains(model: Any) -> bool:
    """Whether a run of it is a training step: it is in training mode and has something to train."""
    return bool(model.training) and any(one.requires_grad for one in model.parameters())


# ---- checking ------------------------------------------------------------------------------------------------------

def _run_once(model: Any, batch: Any) -> Any:
    """The model's output on a batch, without gradients."""
    import torch
    call = _state.call_of(model, _state.to_device(batch, _state.device_of(model)))
    with torch.no_grad():
        return model(*call.args, **call.kwargs)


def _gradients(model: Any, batch: Any) -> List[Any]:
    """The gradients of a training step on a batch."""
    import torch
    call = _state.call_of(model, _state.to_device(batch, _state.device_of(model)))
    with _state.kept_random(), torch.enable_grad():
        output = model(*call.args, **call.kwargs)
        _state.loss_of(output, call, None).backward()
    return [one.grad for one in model.parameters()]


def _gradients_apart(reference: Any, changed: Any, batch: Any) -> float:
    """Deviation of gradients; infinite if one has a gradient and the other has none."""
    with _state.kept_state(reference), _state.kept_state(changed):
        pairs = list(zip(_gradients(reference, batch), _gradients(changed, batch)))
        if any((one is None) != (other is None) for one, other in pairs):
            return math.inf
        left, right = ([pair[side].flatten().double() for pair in pairs if pair[0] is not None] for side in (0, 1))
        import torch
        return _state.difference(torch.cat(left), torch.cat(right)) if left else 0.0


def verify(reference: Any, changed: Any, batch: Any, tolerance: float, gradients: bool = False) -> Dict[str, Any]:
    """Whether both return the same on a batch: accepted, difference, tolerance, and the reason if not. Outputs are
    compared without dropout, gradients in the current modes of the models. An error of the reference is raised."""
    out: Dict[str, Any] = {"accepted": False, "tolerance": tolerance}
    with _modes(reference, changed), _state.kept_state(reference):
        reference.eval()
        expected = _drawn_alike(reference, batch)
        changed.eval()
        try:
            got = _drawn_alike(changed, batch)
        except Exception as error:
            out.update(difference=Missing("it does not run"),
                       reason=f"it does not run: {_state.first_line(error)}")
            return out
    out["difference"] = _state.difference(expected, got)
    if gradients:
        out["gradient_difference"] = _gradients_apart(reference, changed, batch)
    for what, apart in (("outputs", out["difference"]), ("gradients", out.get("gradient_difference", 0.0))):
        if not apart <= tolerance:
            out["reason"] = (f"it changes the results: {what} are {apart:.2g} of their norm apart, "
                             f"{tolerance:.2g} is allowed")
            return out
    out["accepted"] = True
    return out


def _drawn_alike(model: Any, batch: Any) -> Any:
    with _state.kept_random():
        return _run_once(model, batch)


@contextlib.contextmanager
def _modes(*models: Any) -> Iterator[None]:
    """Restores the training modes of models afterwards."""
    modes = [(module, module.training) for model in models for module in model.modules()]
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


# ---- measuring -----------------------------------------------------------------------------------------------------

def measure(model: Any, changed: Any, batch: Any, rounds: int = ROUNDS) -> Dict[str, Any]:
    """Runs both alternately on one batch: speedup, helps, the two medians and the decision. Short runs are repeated
    within a round; measuring a change that is far slower ends early."""
    device = _state.device_of(model)
    batch = _state.to_device(batch, device)

    def settle() -> None:
        _state.synchronize(device)
    for _ in range(2):
        for one in (model, changed):
            run_as_used(one, batch)
    trial = _benchmark.interleaved(lambda: run_as_used(model, batch), lambda: run_as_used(changed, batch), rounds,
                                   settle, repeat=True)
    what = "forward and backward pass, training mode" if trains(model) else "forward pass, evaluation mode"
    return {**trial.reported(), "measured": what}


def measure_memory(model: Any, changed: Any, batch: Any) -> Dict[str, Any]:
    """Peak memory of a training step beyond the weights, for both; less_memory: by more than 2 %."""
    batches = [_state.to_device(batch, _state.device_of(model))]
    peaks = []
    for one in (model, changed):
        with _state.kept_state(one):
            peaks.append(_benchmark.Trainee(one, batches, None).peak_mb())
    for peak in peaks:
        if math.isnan(peak):
            raise Unfit(f"its memory cannot be measured: {getattr(peak, 'reason', 'no count')}")
    return {"original_mb": peaks[0], "optimized_mb": peaks[1],
            "less_memory": _benchmark.takes_less_memory(*peaks[:2])}
