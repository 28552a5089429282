"""Optimizations of torch models, applied, checked against the model as it was, and measured.

    optimizer = tare.ModelOptimizer(tare.ProfilingConfig())
    faster = optimizer.optimize_model(model, {}, example_input=batch)
    print(optimizer.get_optimization_summary()["optimizations_applied"])
"""
import copy
import functools
import os
import signal
import subprocess
import sys
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _benchmark, _torchstate
from ._core import Missing, quantile
from .config import ProfilingConfig

UNVERIFIED = "applied, neither verified nor measured"
MEMORY_PERCENT = 85.0
EXACT, HALF = 1e-3, 5e-2  # how far outputs may be apart: same precision, half precision


class Unfit(Exception):
    """Why an optimization does not suit a model."""


# ---- the optimizations ---------------------------------------------------------------------------------------------

class Optimization(NamedTuple):
    """`apply` returns the changed model, and raises Unfit where it does not suit. `name` may depend on the model."""
    name: Callable[[Any], str]
    switch: str  #: of ProfilingConfig
    tolerance: float
    apply: Callable[[Any], Any]


def _half_type(model: Any) -> Any:
    import torch
    if _torchstate.device_of(model).type == "cuda" and not torch.cuda.is_bf16_supported():
        return torch.float16
    return torch.bfloat16


def _half_name(model: Any) -> str:
    import torch
    return "Mixed precision (FP16)" if _half_type(model) is torch.float16 else "Mixed precision (BF16)"


class _Autocast:
    """Mixed into a model's class: forward computes in half precision, and its results are as before."""
    _tare_autocast: Optional[Tuple[str, Any]] = None  # a part of such a model, as a slice of a Sequential, has none

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        import torch
        if self._tare_autocast is None:
            return super().forward(*args, **kwargs)  # type: ignore[misc]
        device, dtype = self._tare_autocast
        with torch.autocast(device_type=device, dtype=dtype):
            output = super().forward(*args, **kwargs)  # type: ignore[misc]
        # Losses are computed outside, often with a target of full precision.
        return _torchstate.mapped(output, lambda tensor: tensor.float() if tensor.dtype == dtype else tensor)

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
    """Raises Unfit for what is no ordinary module."""
    import torch
    if isinstance(model, torch.jit.ScriptModule) or type(model).__name__.startswith("GraphModule"):
        raise Unfit(f"the model is a {type(model).__name__}, whose code is fixed")
    if type(model).__name__ == "OptimizedModule":
        raise Unfit("the model is compiled already; optimize it before it is compiled")
    if isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        raise Unfit(f"the model is in {type(model).__name__}; optimize the module before it is put there")


def _mixed_precision(model: Any) -> Any:
    import torch
    _plain(model)
    if isinstance(model, _Autocast):
        raise Unfit("the model already computes in mixed precision")
    if not any(one.dtype == torch.float32 for one in model.parameters()):
        raise Unfit("the model has no weights of 32 bits")
    trouble = half_trouble() if _torchstate.device_of(model).type == "cpu" else None
    if trouble:
        raise Unfit(trouble)
    made = copy.copy(model)  # weights and submodules stay shared
    made.__class__ = _autocast_class(type(model))
    made._tare_autocast = (_torchstate.device_of(model).type, _half_type(model))
    return made


def _channels_last(model: Any) -> Any:
    import torch
    _plain(model)
    weights = [one for one in model.parameters() if one.dim() == 4]
    if not weights:
        raise Unfit("the model has no 4-dimensional weights: it is no model of images")
    if all(one.is_contiguous(memory_format=torch.channels_last) for one in weights):
        raise Unfit("the weights are stored channels last already")
    return model.to(memory_format=torch.channels_last)


# Tried in a process of their own: where a virtual machine advertises instructions that it forbids, or a compiler
# makes such code, the first use ends the process, and that must not be the user's.
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


def _trouble_with(what: str, code: str) -> Optional[str]:
    """Why the code does not run here; None: it does."""
    if not sys.executable:
        return f"{what} cannot be tried in a process of its own here: the interpreter's path is not known"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
    try:
        done = subprocess.run([sys.executable, "-c", code], env=environment, stdin=subprocess.DEVNULL,
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
def half_trouble() -> Optional[str]:
    """Why bfloat16 cannot be used on this CPU; None: it can. Tried once.

        half_trouble() or "bfloat16 works"
    """
    return _trouble_with("bfloat16", _TRY_HALF)


@functools.lru_cache(maxsize=1)
def compiler_trouble() -> Optional[str]:
    """Why torch.compile cannot be used here; None: it can. Tried once.

        compiler_trouble() or "torch.compile works"
    """
    import torch
    if not hasattr(torch, "compile"):
        return f"torch {torch.__version__} has no torch.compile"
    return _trouble_with("torch.compile", _TRY_COMPILE)


def _compile(model: Any) -> Any:
    import torch
    _plain(model)
    if getattr(model, "_compiled_call_impl", None) is not None:
        raise Unfit("the model is compiled already; optimize it before it is compiled")
    trouble = compiler_trouble()
    if trouble:
        raise Unfit(trouble)
    if not hasattr(model, "compile"):  # before torch 2.2
        return torch.compile(model)
    made = copy.copy(model)
    made.compile()
    return made


OPTIMIZATIONS: Sequence[Optimization] = (
    Optimization(lambda model: "Channels last memory format", "use_channels_last", EXACT, _channels_last),
    Optimization(_half_name, "use_mixed_precision", HALF, _mixed_precision),
    Optimization(lambda model: "torch.compile", "use_compile", EXACT, _compile),
)


# ---- applying them -------------------------------------------------------------------------------------------------

class ModelOptimizer:
    """Applies what the config switches on. With an input to run, only what leaves the results as they were and is
    measured to help is kept; the summary says what was rejected, and why.

        faster = profiler.model_optimizer.optimize_model(model, profile_summary, example_input=batch)
    """

    def __init__(self, config: Optional[ProfilingConfig] = None) -> None:
        self.config = config if config is not None else ProfilingConfig()
        self._forget()

    def _forget(self) -> None:
        self._applied: List[str] = []
        self._rejected: List[Dict[str, Any]] = []
        self._skipped: List[Dict[str, Any]] = []
        self._details: List[Dict[str, Any]] = []

    def optimize_model(self, model: Any, profile_summary: Optional[Mapping[str, Any]] = None,
                       example_input: Any = None, *, tolerance: Optional[float] = None,
                       only_gains: bool = True) -> Any:
        """The model with the optimizations on. It shares its weights with the one given, so optimizers go on working;
        the one given computes as before (only the storage order of its weights may change). example_input is a batch
        as the loader gives it: with it every optimization is run and compared with the model as it was. Where
        profile_summary has a `memory_percent` above 85, memory is saved too. tolerance is how far outputs may be
        apart, as a share of their norm; only_gains=False keeps what is right but not faster.

            optimized = optimizer.optimize_model(model, {})
        """
        _torchstate.check_model(model, "optimize_model")
        if profile_summary is not None and not isinstance(profile_summary, Mapping):
            raise TypeError("profile_summary is what get_profile_summary() gave, "
                            f"not {type(profile_summary).__name__}")
        self._forget()
        if not self.config.enable_optimizations:
            return model
        reference = model
        for one in OPTIMIZATIONS:
            if getattr(self.config, one.switch):
                model = self._try(one, model, reference, example_input, tolerance, only_gains)
        if number_of(profile_summary, "memory_percent") > MEMORY_PERCENT:
            model = self._apply_memory_optimizations(model)
        return model

    def _try(self, one: Optimization, model: Any, reference: Any, batch: Any, tolerance: Optional[float],
             only_gains: bool) -> Any:
        name = one.name(model)
        try:
            changed = one.apply(model if batch is None else _torchstate.copy_of(model))
        except Unfit as error:
            self._skipped.append({"name": name, "reason": str(error)})
            return model
        if batch is None:
            self._note(name, {"status": UNVERIFIED})
            return changed
        # Compared with the model as it was, it has the deviations of those before it too.
        limit = max([one.tolerance, *(detail["tolerance"] for detail in self._details)])
        told = verify(reference, changed, batch, limit if tolerance is None else tolerance)
        if told["accepted"]:
            told.update(measure_forward(model, changed, batch))
        if not told["accepted"] or (only_gains and not told["helps"]):
            reason = told["reason"] if not told["accepted"] else f"not faster: {told['speedup']:.2f}x when measured"
            self._rejected.append({"name": name, **told, "reason": reason})
            return model
        self._note(name, {**told, "status": "applied, verified and measured"})
        return one.apply(model)

    def _note(self, name: str, detail: Dict[str, Any]) -> None:
        self._applied.append(name)
        self._details.append({"name": name, **detail})

    def _apply_memory_optimizations(self, model: Any) -> Any:
        """Gradient checkpointing and memory-efficient attention, where the model offers them. Changes the model
        itself, and returns it.

            model = profiler.model_optimizer._apply_memory_optimizations(model)
        """
        _torchstate.check_model(model, "_apply_memory_optimizations")
        if callable(getattr(model, "gradient_checkpointing_enable", None)):
            self._call("Gradient checkpointing", model.gradient_checkpointing_enable)
        else:
            self._skipped.append({"name": "Gradient checkpointing",
                                  "reason": "the model has no gradient_checkpointing_enable(); "
                                            "torch.utils.checkpoint can be used inside its forward"})
        attention = getattr(getattr(model, "config", None), "_attn_implementation", None)
        if attention == "eager" and callable(getattr(model, "set_attn_implementation", None)):
            self._call("Efficient attention", functools.partial(model.set_attn_implementation, "sdpa"))
        return model

    def _call(self, name: str, function: Callable[[], Any]) -> None:
        try:
            function()
        except Exception as error:
            self._skipped.append({"name": name, "reason": f"the model refuses: {error}"})
            return
        self._note(name, {"status": UNVERIFIED})

    def get_optimization_summary(self) -> Dict[str, Any]:
        """optimizations_applied (their names) and total_optimizations; status; details of each, and what was rejected
        or skipped with the reason.

            print(profiler.model_optimizer.get_optimization_summary()["optimizations_applied"])
        """
        states = {detail["status"] for detail in self._details}
        if not self.config.enable_optimizations:
            status = "nothing applied: enable_optimizations is off"
        elif not states:
            status = "nothing applied"
        else:
            status = states.pop() if len(states) == 1 else "applied, some of them neither verified nor measured"
        return {"optimizations_applied": list(self._applied), "total_optimizations": len(self._applied),
                "status": status, "details": copy.deepcopy(self._details), "rejected": copy.deepcopy(self._rejected),
                "skipped": copy.deepcopy(self._skipped)}


def number_of(summary: Optional[Mapping[str, Any]], name: str) -> float:
    value = (summary or {}).get(name)
    return value if isinstance(value, (int, float)) else Missing(f"there is no {name}")


# ---- checking ------------------------------------------------------------------------------------------------------

def _run_once(model: Any, batch: Any) -> Any:
    """The model's output on a batch, without dropout and gradients."""
    import torch
    call = _torchstate.call_of(model, _torchstate.to_device(batch, _torchstate.device_of(model)))
    with torch.no_grad():
        return model(*call.args, **call.kwargs)


def verify(reference: Any, changed: Any, batch: Any, tolerance: float) -> Dict[str, Any]:
    """Whether both give the same on a batch: accepted, difference, tolerance, and the reason when not."""
    out: Dict[str, Any] = {"accepted": False, "tolerance": tolerance}
    with _modes(reference, changed):
        reference.eval()
        expected = _drawn_alike(reference, batch)
        changed.eval()
        try:
            got = _drawn_alike(changed, batch)
        except Exception as error:
            out.update(difference=Missing("it does not run"),
                       reason=f"it does not run: {_torchstate.first_line(error)}")
            return out
    out["difference"] = _torchstate.difference(expected, got)
    out["accepted"] = out["difference"] <= tolerance
    if not out["accepted"]:
        out["reason"] = (f"it changes the results: outputs are {out['difference']:.2g} of their norm apart, "
                         f"{tolerance:.2g} is allowed")
    return out


def _drawn_alike(model: Any, batch: Any) -> Any:
    with _torchstate.kept_random():
        return _run_once(model, batch)


class _modes:
    """Training modes of models, as they were afterwards."""

    def __init__(self, *models: Any) -> None:
        self.modes = [(module, module.training) for model in models for module in model.modules()]

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: Any) -> None:
        for module, mode in self.modes:
            module.training = mode


# ---- measuring -----------------------------------------------------------------------------------------------------

def measure_forward(model: Any, changed: Any, batch: Any, rounds: int = 8) -> Dict[str, Any]:
    """Forward passes of both on one batch: speedup, helps, and the two medians."""
    device = _torchstate.device_of(model)
    batch = _torchstate.to_device(batch, device)
    with _modes(model, changed), _torchstate.kept_random():
        model.eval(), changed.eval()
        for one in (model, changed):
            _run_once(one, batch)
        trial = _benchmark.interleaved(lambda: _run_once(model, batch), lambda: _run_once(changed, batch), rounds,
                            lambda: _torchstate.synchronize(device))
    return {"speedup": trial.speedup, "helps": trial.helps, "original_s": quantile(trial.first, 0.5),
            "optimized_s": quantile(trial.second, 0.5), "rounds": rounds}
