"""Torch models: modules, TorchScript and torch.export files, Hugging Face folders."""
import contextlib
import functools
import inspect
import os
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

from ..._command import isolated
from ..._core import Missing
from ...torch import _state
from ._load import SHORT, Refused, Runner, size_of

TOKENS = 128   # of a generated input for a language model


def _need_device(torch: Any, device: str) -> None:
    if not device.startswith("cuda"):
        return
    if not torch.cuda.is_available():
        why = ("this torch is built without CUDA" if getattr(torch.version, "cuda", None) is None
               else "torch finds no GPU")
        raise RuntimeError(f"device {device!r}: {why}; device=\"cpu\" runs here")
    index = int(device.partition(":")[2] or 0)
    if index >= torch.cuda.device_count():
        raise RuntimeError(f"device {device!r}: there are {torch.cuda.device_count()} GPUs")


def from_path(path: str, kind: str, device: Optional[str], precision: Optional[str]) -> "TorchRunner":
    torch = _state.need_torch(f"a {kind}")
    _need_device(torch, device or "cpu")
    example = None
    try:
        if kind == "TorchScript file":
            model = torch.jit.load(path, map_location="cpu")
        elif kind == "torch.export file":
            with open(path, "rb") as file:  # a path of another ending is warned of
                program = torch.export.load(file)
            model, example = _on_device(torch, program, device or "cpu").module(), program.example_inputs
        else:
            model = _from_folder(path)
    except (ImportError, Refused):
        raise
    except Exception as error:  # torch raises many kinds of exceptions for a file
        raise ValueError(f"{path} ({kind}) cannot be loaded: {_state.first_line(error)}") from error
    runner = TorchRunner(model, kind, path, device or "cpu", precision, owned=True)
    runner.example = example
    return runner


def _on_device(torch: Any, program: Any, device: str) -> Any:
    """The program with the tensors it creates on the device, too: moving a module moves its weights only."""
    if device == "cpu":
        return program
    try:
        from torch.export.passes import move_to_device_pass
    except ImportError:  # before 2.6
        return program
    return move_to_device_pass(program, device)


def _from_folder(path: str) -> Any:
    try:
        import transformers
    except ImportError:
        raise ImportError(f"{path} is a Hugging Face folder, which needs transformers: pip install transformers"
                          ) from None
    config = transformers.AutoConfig.from_pretrained(path, local_files_only=True)
    made = [getattr(transformers, name, None) for name in getattr(config, "architectures", None) or ()]
    loader = next((one for one in made if one is not None), transformers.AutoModel)
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        return loader.from_pretrained(path, local_files_only=True)
    finally:
        if shown:
            transformers.utils.logging.enable_progress_bar()


# On a processor that has the instructions for half precision but does not let this process use them (matrix tiles in
# some virtual machines), they raise SIGILL, which ends the process. So a child process tries them first.
_TRIAL = """
import torch
kind = getattr(torch, {precision!r})
with torch.inference_mode():
    torch.nn.Linear(256, 256).to(kind)(torch.randn(64, 256).to(kind))
    x = torch.randn(2, 4, 64, 64).to(kind)
    torch.nn.functional.scaled_dot_product_attention(x, x, x)
    if {convolutions}:
        torch.nn.Conv2d(16, 32, 3, padding=1).to(kind)(torch.randn(4, 16, 32, 32).to(kind))
        torch.nn.Conv2d(3, 8, 3, padding=1).to(kind)(torch.randn(4, 3, 32, 32).to(kind))
"""


@functools.lru_cache(maxsize=None)
def _trial(precision: str, convolutions: bool) -> str:
    """Why this CPU cannot compute in a precision; "" if it can, or if that could not be tested."""
    import signal
    import subprocess
    import sys
    if not sys.executable:
        return ""
    try:
        trial = _TRIAL.format(precision=precision, convolutions=convolutions)
        done = subprocess.run([sys.executable, *isolated(trial)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120)
    except (OSError, subprocess.SubprocessError):
        return ""
    if done.returncode >= 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return "" if done.returncode == 0 or "not implemented for" not in (lines or [""])[-1] else lines[-1]
    try:
        name = signal.Signals(-done.returncode).name
    except ValueError:
        name = f"signal {-done.returncode}"
    return f"a trial of it was ended by {name}"


def _try_first(precision: str, convolutions: bool) -> None:
    if precision not in ("float16", "bfloat16"):
        return
    why = _trial(precision, convolutions)
    if why:
        raise Refused(f"precision {SHORT[precision]} cannot be executed on this CPU: {why}")


def _has_convolutions(model: Any) -> bool:
    graph = getattr(model, "graph", None)
    if any("conv" in str(getattr(node, "target", "")) for node in getattr(graph, "nodes", None) or ()):
        return True
    return any("Conv" in str(getattr(one, "original_name", type(one).__name__)) for one in model.modules())


class TorchRunner(Runner):
    """A torch module. The user's module is not changed: it is copied if a change is needed."""

    def __init__(self, model: Any, kind: str, path: Optional[str], device: Optional[str], precision: Optional[str],
                 owned: bool) -> None:
        import torch
        self.kind, self.path, self.example = kind, path, None
        self.takes_gradients = False
        now = _state.device_of(model)
        if device is not None:
            _need_device(torch, device)
        wanted = torch.device(device) if device is not None else now
        if wanted.type == "cuda" and wanted.index is None:
            wanted = torch.device("cuda", torch.cuda.current_device())
        super().__init__(type(model).__name__ if path is None else os.path.basename(path.rstrip(os.sep)), str(wanted),
                         precision)
        dtype = getattr(torch, precision) if precision else None
        other = any(one.is_floating_point() and one.dtype != dtype for one in model.parameters()) if dtype else False
        if other and wanted.type == "cpu":
            _try_first(precision or "", _has_convolutions(model))
        if (other or wanted != now) and not owned:
            model = _state.copy_of(model)
        if other or wanted != now:
            model = self._moved(model, wanted, dtype)
        self.model, self.where, self.dtype = model, wanted, dtype or _main_type(model)
        self.config = getattr(model, "config", None)

    def _moved(self, model: Any, wanted: Any, dtype: Any) -> Any:
        try:
            return model.to(device=wanted, dtype=dtype) if dtype is not None else model.to(wanted)
        except Exception as error:
            raise Refused(f"the {self.kind} cannot be made {SHORT.get(self.precision or '', self.precision)} on "
                          f"{wanted}: {_state.first_line(error)}") from error

    # ---- input ------------------------------------------------------------------------------------------------

    def take(self, data: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """(arguments, keywords) of forward, on the model's device, real numbers in its precision."""
        import torch
        data = _from_numpy(torch, data)
        if isinstance(data, Mapping):
            args, kwargs = (), self._known(dict(data))
            if self.example is not None and not self.example[1]:  # an exported program takes inputs as exported
                args, kwargs = tuple(kwargs.values()), {}
        elif isinstance(data, (tuple, list)) and not _all_numbers(data):
            args, kwargs = tuple(data)[:_most_arguments(self.model)], {}
            if not args:
                raise ValueError("the input is an empty sequence")
        else:
            if not isinstance(data, torch.Tensor):
                try:
                    data = torch.as_tensor(data)
                except Exception:
                    raise TypeError(f"input_data is a tensor, an array, a sequence or a mapping of them, not "
                                    f"{type(data).__name__}") from None
            args, kwargs = (data,), {}
        return self._placed((args, kwargs))

    def _known(self, named: Dict[str, Any]) -> Dict[str, Any]:
        _, names = _state._positionals(self.model)
        if names is None:
            return named
        known = {key: one for key, one in named.items() if key in names}
        if not known:
            raise TypeError(f"no key of the input ({', '.join(map(str, named))}) is an argument of the model's forward "
                            f"({', '.join(names)})")
        return known

    def _placed(self, inputs: Any) -> Any:
        dtype = self.dtype

        def place(tensor: Any) -> Any:
            real = tensor.is_floating_point() and dtype is not None and dtype.is_floating_point
            return tensor.to(self.where, dtype) if real else tensor.to(self.where)
        return _state.mapped(inputs, place)

    def generated_input(self, batch: int) -> Any:
        import torch
        if self.example is not None:
            args, kwargs = self.example
            return dict(kwargs) if kwargs and not args else tuple(args)
        if self.config is not None and hasattr(self.model, "main_input_name"):
            return _for_hugging_face(torch, self.model, self.config, batch)
        return super().generated_input(batch)

    # ---- running ----------------------------------------------------------------------------------------------

    def call(self, inputs: Any) -> Any:
        args, kwargs = inputs
        return functools.partial(self.model, *args, **kwargs)

    def settle(self) -> Any:
        if self.where.type != "cuda":
            return None
        import torch
        return functools.partial(torch.cuda.synchronize, self.where)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        import torch
        modes = [(module, module.training) for module in self.model.modules()]
        with contextlib.suppress(NotImplementedError):  # an exported program has its mode in it
            self.model.eval()
        try:
            with torch.no_grad() if self.takes_gradients else torch.inference_mode():
                yield
        finally:
            for module, mode in modes:
                if module.training != mode:
                    module.training = mode

    def first_run(self, call: Any) -> None:
        """A model may compute gradients itself (forces from an energy), which inference mode does not allow."""
        try:
            super().first_run(call)
        except RuntimeError:
            self.takes_gradients = True
            try:
                super().first_run(call)
            except Exception:
                self.takes_gradients = False
                raise

    @contextlib.contextmanager
    def threads(self, count: Optional[int]) -> Iterator[None]:
        import torch
        before = torch.get_num_threads()
        torch.set_num_threads(count or before)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def facts(self) -> Dict[str, Any]:
        """Parameters, those that are shared once."""
        seen: Dict[Any, Any] = {}
        for one in self.model.parameters():
            seen.setdefault(_identity(one), one)
        kept: Dict[Any, Any] = dict(seen)
        for one in self.model.buffers():
            kept.setdefault(_identity(one), one)
        weights = list(seen.values())
        size = sum(one.numel() * one.element_size() for one in kept.values())
        return {"parameters": sum(one.numel() for one in weights),
                "trainable_parameters": sum(one.numel() for one in weights if one.requires_grad),
                "parameter_bytes": sum(one.numel() * one.element_size() for one in weights),
                "size_bytes": size_of(self.path) if self.path else size}

    def costs(self, inputs: Any) -> Dict[str, Any]:
        """FLOPs of one run, in all and by module; and which types were computed in."""
        import torch
        from ...torch._flops import known
        from ...torch._flops_formulas import AtLeast, counter
        try:
            counting = counter(torch)
        except ImportError:
            none = Missing("this torch has no operation counter (torch.utils.flop_counter, since 2.1)")
            return {"flops": none, "macs": none, "by_module": {}, "executed": none}
        types = _types_seen()
        call = self.call(inputs)
        with self.running():
            call()  # one-time setup of the first run is not part of the model's cost
            with types, counting:
                call()
        flops = counting.flops()
        lacking = getattr(flops, "not_counted", ())
        costs = {"flops": known(flops), "macs": known(AtLeast(flops // 2, lacking) if lacking else flops // 2),
                 "by_module": counting.by_module() if flops else {}, "executed": types.shares(),
                 "at_least": bool(lacking),
                 "not_counted": [{"name": one, "op": one, "reason": "there is no formula for it"} for one in lacking]}
        if lacking:
            self.note = f"FLOPs are at least this many; {flops.reason}"
        return costs

    def named(self, inputs: Any) -> Dict[str, Any]:
        """The input by the names of forward's arguments."""
        args, kwargs = inputs
        _, names = _state._positionals(self.model)
        return {**{names[at] if names and at < len(names) else str(at): one for at, one in enumerate(args)}, **kwargs}

    def units(self, inputs: Any) -> Dict[str, Any]:
        """The number of samples, tokens and images in one run."""
        named = self.named(inputs)
        return {"samples": _state.samples_in(inputs), "tokens": _tokens(named, self.config),
                "images": _images(named)}

    def resized(self, inputs: Any, batch: int) -> Any:
        """The same input with another number of samples: repeated, or cut."""
        now = _state.samples_in(inputs)
        if not now:
            raise Refused("the input has no first dimension to change: batch_size cannot be set")

        def change(tensor: Any) -> Any:
            if tensor.dim() == 0 or tensor.shape[0] != now:
                return tensor
            times = -(-batch // now)
            return tensor.repeat(times, *[1] * (tensor.dim() - 1))[:batch].contiguous()
        return _state.mapped(inputs, change)


def _identity(tensor: Any) -> Any:
    """Equal for tensors on the same memory: tied weights that are separate objects."""
    try:
        pointer = tensor.data_ptr()
    except Exception:
        pointer = 0
    return (pointer, tensor.numel(), str(tensor.dtype)) if pointer else id(tensor)


def _main_type(model: Any) -> Any:
    sizes: Dict[Any, int] = {}
    for one in (*model.parameters(), *model.buffers()):
        if one.is_floating_point():
            sizes[one.dtype] = sizes.get(one.dtype, 0) + one.numel()
    return max(sizes, key=lambda dtype: sizes[dtype]) if sizes else None


def _from_numpy(torch: Any, value: Any) -> Any:
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "shape"):
        return torch.as_tensor(value)
    if isinstance(value, Mapping):
        return {key: _from_numpy(torch, one) for key, one in value.items()}
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(_from_numpy(torch, one) for one in value)
    return value


def _all_numbers(data: Any) -> bool:
    """Nested lists of numbers are one tensor, not several inputs."""
    first = data[0] if data else None
    return isinstance(first, (int, float)) or (isinstance(first, (list, tuple)) and _all_numbers(first))


def _most_arguments(model: Any) -> Optional[int]:
    """The number of arguments that forward takes; further ones are not for forward: labels of a dataset. None: it takes
    any number."""
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return None
    return sum(1 for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)) or None


def _for_hugging_face(torch: Any, model: Any, config: Any, batch: int) -> Dict[str, Any]:
    name = model.main_input_name
    with _state.kept_random():
        torch.manual_seed(0)
        if name == "input_ids":
            text = config.get_text_config() if hasattr(config, "get_text_config") else config
            room = getattr(text, "max_position_embeddings", None) or 2 * TOKENS
            length = max(1, min(TOKENS, room // 2))  # the other half is for what is generated
            ids = torch.randint(0, int(getattr(text, "vocab_size", 2)), (batch, length))
            made = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            if getattr(config, "is_encoder_decoder", False):
                made["decoder_input_ids"] = ids[:, :1]
            return made
        if name == "pixel_values":
            size = getattr(config, "image_size", 224)
            height, width = size if isinstance(size, (list, tuple)) else (size, size)
            return {name: torch.rand(batch, int(getattr(config, "num_channels", 3)), int(height), int(width))}
        if name == "input_values":  # a second of sound
            return {name: torch.randn(batch, 16000)}
        if name == "input_features" and hasattr(config, "num_mel_bins") and hasattr(config, "max_source_positions"):
            made = {name: torch.randn(batch, int(config.num_mel_bins), 2 * int(config.max_source_positions))}
            if getattr(config, "is_encoder_decoder", False):
                made["decoder_input_ids"] = torch.zeros(batch, 1, dtype=torch.long)
            return made
    raise TypeError(f"no input can be generated for a model that takes {name}: pass input_data")


# ---- what an input holds -------------------------------------------------------------------------------------------

def _tokens(named: Mapping[str, Any], config: Any) -> Optional[int]:
    """Number of tokens that are not padding; None: not text."""
    mask = named.get("attention_mask")
    ids = named.get("input_ids")
    if ids is None:
        whole = [one for one in named.values() if getattr(one, "dtype", None) is not None and getattr(
            one, "ndim", 0) == 2 and not one.is_floating_point() and not one.is_complex()]
        ids = whole[0] if whole else None
    if ids is None or ids.ndim != 2:
        return None
    if mask is not None and mask.ndim == 2:
        return int((mask != 0).sum())
    pad = getattr(config, "pad_token_id", None)
    return int(ids.numel()) if pad is None else int(ids.numel()) - _padding(ids, int(pad))


def _padding(ids: Any, pad: int) -> int:
    """Runs of the padding at either end of a row; the same number inside of a text is a token."""
    is_pad = (ids == pad).int()
    right = is_pad.flip(1).cumprod(1).sum(1)
    left = is_pad.cumprod(1).sum(1)
    both = right + left
    return int(both.clamp(max=ids.shape[1]).sum())


def _images(named: Mapping[str, Any]) -> Optional[int]:
    for name, one in named.items():
        if getattr(one, "ndim", 0) == 4 and (name == "pixel_values" or (one.is_floating_point() and (
                one.shape[1] in (1, 3, 4) or one.shape[3] in (1, 3, 4)))):
            return int(one.shape[0])
    return None


# ---- types that were computed in -----------------------------------------------------------------------------------

def _types_seen() -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Types(TorchDispatchMode):
        """Counts operators by the narrowest real type among their inputs, and those that change a type."""

        def __init__(self) -> None:
            super().__init__()
            self.counts: Dict[str, int] = {}
            self.casts = 0

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            real = [one for one in _state.tensors_in((args, kwargs)) if one.is_floating_point()]
            if str(function).startswith("aten._to_copy") and real and real[0].dtype != getattr(
                    result, "dtype", real[0].dtype):
                self.casts += 1
            elif real and any(name in str(function) for name in COMPUTE):
                least = min(real, key=lambda one: one.element_size()).dtype
                key = SHORT.get(str(least).replace("torch.", ""), str(least).replace("torch.", ""))
                self.counts[key] = self.counts.get(key, 0) + 1
            return result

        def shares(self) -> Any:
            if not self.counts:
                return Missing("the model has no product or convolution to tell it by")
            return {"operators": dict(sorted(self.counts.items())), "casts": self.casts}
    return Types()


COMPUTE = ("mm", "conv", "attention", "linear", "lstm", "gru", "dot", "mv", "einsum")
