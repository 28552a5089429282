"""Batches, outputs and the state of torch models: splits, compares, saves and restores them."""
import contextlib
import copy
import inspect
import math
import random
import sys
import types
import weakref
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from .. import _core


def need_torch(what: str) -> Any:
    """torch, or an ImportError that says what needs it."""
    try:
        import torch
        return torch
    except ImportError:
        raise ImportError(f"{what} needs PyTorch: pip install torch") from None


def check_model(model: Any, what: str) -> Any:
    """torch, after checking the model."""
    torch = need_torch(what)
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"{what} takes a torch.nn.Module, not {type(model).__name__}")
    return torch


def device_of(model: Any) -> Any:
    """Where the model's first parameter or buffer is; the CPU when it has none."""
    import torch
    for tensor in (*model.parameters(), *model.buffers()):
        return tensor.device
    return torch.device("cpu")


def synchronize(device: Any) -> None:
    """Waits for a GPU. Only between measurements, never inside what is measured."""
    if device.type == "cuda":
        import torch
        torch.cuda.synchronize(device)


def first_line(error: BaseException) -> str:
    """A short error message: torch's can be pages long."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


# ---- batches ------------------------------------------------------------------------------------------------------

def tensors_in(value: Any) -> Iterator[Any]:
    """All tensors in nested tuples, lists and mappings."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from tensors_in(one)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from tensors_in(one)


def bytes_in(batch: Any) -> int:
    """The size of a batch's tensors and arrays in bytes."""
    if isinstance(batch, Mapping):
        return sum(bytes_in(one) for one in batch.values())
    if isinstance(batch, (tuple, list)):
        return sum(bytes_in(one) for one in batch)
    size = getattr(batch, "nbytes", 0)
    return size if isinstance(size, int) else 0


def samples_in(batch: Any) -> Optional[int]:
    """The first dimension of the batch's first array; None when it has no array."""
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (tuple, list)) else [batch]
    for one in parts:
        shape = getattr(one, "shape", None)
        if shape is not None and len(shape):
            return int(shape[0])
        if isinstance(one, (tuple, list, Mapping)):
            found = samples_in(one)
            if found is not None:
                return found
    return None


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same nested containers, with every tensor changed."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, Mapping):
        made = copy.copy(value)
        for key, one in value.items():
            made[key] = mapped(one, change)  # type: ignore[index]
        return made
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(one, change) for one in value))
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(one, change) for one in value)
    return value


def to_device(batch: Any, device: Any) -> Any:
    """The batch on the model's device."""
    return mapped(batch, lambda tensor: tensor if tensor.device == device else tensor.to(device, non_blocking=True))


def on_device(batch: Any, device: Any) -> bool:
    return all(tensor.device == device for tensor in tensors_in(batch))


def count_loaded_samples() -> bool:
    """From now on batches of torch's DataLoader count their samples in the blocks that are open. False before the
    program has loaded torch."""
    module = sys.modules.get("torch.utils.data.dataloader")
    base = getattr(module, "_BaseDataLoaderIter", None)
    taken = getattr(base, "__next__", None)
    if taken is None or getattr(base, "_tare_counts", False):
        return taken is not None

    def __next__(self: Any) -> Any:
        batch = taken(self)
        try:
            samples = samples_in(batch)
            if samples is not None:
                _core.count_loaded(samples)
        except Exception:  # samples of a batch whose shape cannot be read are not counted
            pass
        return batch
    __next__.__wrapped__ = taken  # type: ignore[attr-defined]
    base.__next__ = __next__
    base._tare_counts = True
    return True


class Call(NamedTuple):
    """A batch as a model's input: the arguments of forward, and the target if there is one."""
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    target: Any = None
    has_target: bool = False


def _positionals(model: Any) -> Tuple[int, Optional[List[str]]]:
    """How many arguments forward requires, and its names (None: it takes any)."""
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        return 1, None
    plain = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    open_ended = any(one.kind is one.VAR_KEYWORD for one in parameters)
    required = sum(1 for one in plain if one.default is one.empty)
    names = [one.name for one in parameters if one.kind != one.VAR_POSITIONAL]
    return max(1, required), None if open_ended else names


def call_of(model: Any, batch: Any) -> Call:
    """A mapping becomes keywords (those that forward knows), a sequence the arguments that forward requires and then
    the target, anything else the one argument."""
    required, names = _positionals(model)
    if isinstance(batch, Mapping):
        known = {key: one for key, one in batch.items() if names is None or key in names}
        rest = {key: one for key, one in batch.items() if key not in known}
        if not known:
            raise TypeError(f"no key of the batch ({', '.join(map(str, batch))}) is an argument of the model's "
                            f"forward ({', '.join(names or [])}); pass a step_fn")
        for name in ("labels", "label", "targets", "target", "y"):
            if name in rest:
                return Call((), known, rest[name], True)
        return Call((), known)
    if isinstance(batch, (tuple, list)):
        if not batch:
            raise ValueError("the loader gave an empty batch")
        if len(batch) > required:
            return Call(tuple(batch[:required]), {}, batch[required], True)
        return Call(tuple(batch), {})
    return Call((batch,), {})


# ---- losses -------------------------------------------------------------------------------------------------------

SURROGATE = "surrogate loss: the mean of the squared outputs (no loss_fn was given)"
SURROGATE_OPTIMIZER = "surrogate optimizer: plain SGD (none was given)"


def own_loss(output: Any) -> Any:
    """The loss that a model computes itself (`output.loss`), or None."""
    torch = sys.modules["torch"]
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    return loss if isinstance(loss, torch.Tensor) and loss.numel() == 1 else None


def surrogate_loss(output: Any) -> Any:
    found = [tensor for tensor in tensors_in(output) if tensor.is_floating_point()]
    if not found:
        raise TypeError(f"the model's output ({type(output).__name__}) has no tensor of real numbers to make a loss "
                        "of; pass a loss_fn or a step_fn")
    return sum(tensor.float().pow(2).mean() for tensor in found)


def loss_of(output: Any, call: Call, loss_fn: Optional[Callable[..., Any]]) -> Any:
    if loss_fn is not None:
        return loss_fn(output, call.target) if call.has_target else loss_fn(output)
    loss = own_loss(output)
    return surrogate_loss(output) if loss is None else loss


# ---- state --------------------------------------------------------------------------------------------------------

class _Random:
    """All generators that a training step may draw from."""

    def __init__(self, loader: Any = None) -> None:
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        self.python = random.getstate()
        self.numpy = numpy.random.get_state() if numpy is not None and hasattr(numpy, "random") else None
        self.torch = torch.get_rng_state() if torch is not None else None
        self.cuda = torch.cuda.get_rng_state_all() if torch is not None and torch.cuda.is_initialized() else None
        self.generators = [(one, one.get_state()) for one in _generators(loader)]

    def restore(self) -> None:
        torch = sys.modules.get("torch")
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)
        if self.torch is not None:
            torch.set_rng_state(self.torch)
        if self.cuda is not None:
            torch.cuda.set_rng_state_all(self.cuda)
        for generator, state in self.generators:
            generator.set_state(state)


def _generators(loader: Any) -> List[Any]:
    found: List[Any] = []
    for holder in (loader, getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)):
        generator = getattr(holder, "generator", None)
        if hasattr(generator, "get_state") and all(generator is not one for one in found):
            found.append(generator)
    return found


@contextlib.contextmanager
def kept_random(loader: Any = None) -> Iterator[None]:
    """Restores the state of random generators afterwards."""
    state = _Random(loader)
    try:
        yield
    finally:
        state.restore()


class _Model:
    """A model's weights, buffers, gradients and modes."""

    def __init__(self, model: Any) -> None:
        self.tensors = [(one, one.detach().clone()) for one in (*model.parameters(), *model.buffers())]
        self.gradients = [(one, None if one.grad is None else (one.grad, one.grad.detach().clone()))
                          for one in model.parameters()]
        self.modes = [(module, module.training) for module in model.modules()]

    def restore(self) -> None:
        import torch
        with torch.no_grad():
            for tensor, saved in self.tensors:
                tensor.copy_(saved)
            for parameter, saved in self.gradients:
                if saved is not None:
                    saved[0].copy_(saved[1])
                parameter.grad = None if saved is None else saved[0]
        for module, mode in self.modes:
            module.training = mode


@contextlib.contextmanager
def kept_state(model: Any, optimizer: Any = None) -> Iterator[None]:
    """Restores weights, buffers, gradients, modes and the optimizer's state afterwards."""
    state = _Model(model)
    of_optimizer = copy.deepcopy(optimizer.state_dict()) if optimizer is not None else None
    try:
        yield
    finally:
        state.restore()
        if of_optimizer is not None:
            optimizer.load_state_dict(of_optimizer)


def copy_of(model: Any) -> Any:
    """A copy of the model with the same weights, compiled if the model is."""
    try:
        made = copy.deepcopy(model)
    except Exception as error:  # tensors in the middle of a graph, locks, handles
        raise TypeError(f"the model cannot be copied, and so not be compared with a changed one: {error}") from error
    if getattr(model, "_compiled_call_impl", None) is not None and getattr(made, "_compiled_call_impl", None) is None:
        compile_call(made)
    return made


def compile_call(model: Any) -> None:
    """Compiles calls of the model from now on, without changing its names and weights. Module.compile() compiles
    nothing for a class of torch.nn itself (a Sequential): dynamo skips torch's own files unless called from outside."""
    import torch
    call = model._call_impl

    def run(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)
    # Dynamo counts recompilations by code object: each model has its own.
    own = types.FunctionType(run.__code__.replace(), run.__globals__, run.__name__, None, run.__closure__)
    model._compiled_call_impl = torch.compile(own)


# ---- the last input ------------------------------------------------------------------------------------------------

_last_input: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()


def remember(model: Any, batch: Any) -> None:
    """Keeps a batch that a model was run on, as long as the model lives."""
    with contextlib.suppress(TypeError):  # a model of a class that cannot be hashed
        _last_input[model] = batch


def remembered(model: Any) -> Any:
    """The last batch that the model was run on here, or None."""
    try:
        return _last_input.get(model)
    except TypeError:
        return None


# ---- outputs ------------------------------------------------------------------------------------------------------

def difference(expected: Any, got: Any) -> float:
    """Deviation of outputs: the norm of the difference relative to the norm of the expected output, worst tensor.
    Infinite if they cannot be compared: different shapes or numbers of tensors, values that became non-finite."""
    left, right = list(tensors_in(expected)), list(tensors_in(got))
    if len(left) != len(right):
        return math.inf
    return max((_apart(a, b) for a, b in zip(left, right)), default=0.0)


def _apart(a: Any, b: Any) -> float:
    import torch
    if a.shape != b.shape:
        return math.inf
    if not a.numel():
        return 0.0
    if a.is_complex() or b.is_complex():
        a, b = torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj())
    a, b = a.detach().double(), b.detach().double()
    usual = a.isfinite()
    if not torch.equal(usual, b.isfinite()):
        return math.inf
    if not torch.equal(a[~usual].nan_to_num(1), b[~usual].nan_to_num(1)):
        return math.inf
    a, b = a[usual], b[usual]
    scale, apart = float(a.norm()), float((a - b).norm())
    return apart / scale if scale > 0 else (0.0 if apart == 0 else math.inf)
