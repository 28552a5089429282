"""One interface to run models of every kind: detects the kind, loads the model, and moves it to its device."""
import os
import zipfile
from typing import Any, Dict, List, Optional

from ..._core import open_input

PRECISIONS = {"fp32": "float32", "float32": "float32", "float": "float32", "fp16": "float16", "float16": "float16",
              "half": "float16", "bf16": "bfloat16", "bfloat16": "bfloat16", "fp64": "float64", "float64": "float64",
              "double": "float64"}
SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}
_KINDS = "an ONNX file, a TorchScript or torch.export file, or a Hugging Face folder"


class Refused(ValueError):
    """The requested configuration cannot be executed here; the message states why."""


def precision_of(word: Optional[str]) -> Optional[str]:
    """"float16" for "fp16"; None stays None: as the model is."""
    if word is None:
        return None
    if not isinstance(word, str):
        raise TypeError(f"precision is a word like \"fp16\", not {type(word).__name__}")
    if word.lower() in ("int8", "uint8", "int4", "fp8"):
        raise Refused(f"precision {word!r}: casting weights is no quantization; quantize the model, and profile that")
    if word.lower() not in PRECISIONS:
        raise ValueError(f"precision is fp32, fp16, bf16 or fp64, not {word!r}")
    return PRECISIONS[word.lower()]


class Runner:
    """A model that can be called. Values that a kind of model does not provide are Missing.

        runner = load(model, "cpu", None)
        call = runner.call(runner.take(batch))
    """
    kind = "model"
    path: Optional[str] = None

    def __init__(self, name: str, device: str, precision: Optional[str]) -> None:
        self.name = name
        self.device = device
        self.precision = precision  # "float16", …; None: the model's own

    def take(self, data: Any) -> Any:
        """The input in the types that the model expects, on its device."""
        raise NotImplementedError

    def call(self, inputs: Any) -> Any:
        """A function without arguments that runs the model once."""
        raise NotImplementedError

    def generated_input(self, batch: int) -> Any:
        """Input generated from the shapes that the model declares; TypeError if it declares none."""
        raise TypeError(f"{self.kind} does not state the shapes of its inputs: pass input_data")

    def named(self, inputs: Any) -> Any:
        """The input by name, to be shown."""
        return inputs

    def settle(self) -> Any:
        """A function that waits for the device; None: a call has completed its work when it returns."""
        return None

    def running(self) -> Any:
        """The state that the model runs in: no gradients, no dropout; restored afterwards."""
        import contextlib
        return contextlib.nullcontext()

    def first_run(self, call: Any) -> None:
        """Runs the model once, in that state."""
        with self.running():
            call()

    def threads(self, count: Optional[int]) -> Any:
        """A context in which the model runs on this number of threads."""
        raise Refused(f"threads cannot be set for {self.kind}")


def load(model: Any, device: Any = None, precision: Optional[str] = None) -> Runner:
    """A runner for a module, a function, or a path."""
    wanted = precision_of(precision)
    where = device_name(device)
    if isinstance(model, (str, os.PathLike)):
        return _load_path(os.fspath(model), where, wanted)
    if _is_module(model):
        from ._torch import TorchRunner
        return TorchRunner(model, "torch module", None, where, wanted, owned=False)
    if callable(model):
        from ._function import FunctionRunner
        return FunctionRunner(model, where, wanted)
    raise TypeError(f"a model is {_KINDS}, a torch.nn.Module or a function, not {type(model).__name__}")


def device_name(device: Any) -> Optional[str]:
    """"cpu", "cuda" or "cuda:N"; None: where the model is."""
    if device is None:
        return None
    text = str(device)
    kind, _, index = text.partition(":")
    if kind not in ("cpu", "cuda") or (index and not index.isdecimal()) or (kind == "cpu" and index not in ("", "0")):
        raise ValueError(f"device is \"cpu\", \"cuda\" or \"cuda:N\", not {text!r}")
    return "cpu" if kind == "cpu" else text


def _is_module(model: Any) -> bool:
    import sys
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _load_path(path: str, device: Optional[str], precision: Optional[str]) -> Runner:
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no model {path}: {_KINDS} (nothing is downloaded)")
    kind = kind_of(path)
    if kind == "ONNX file":
        from ._onnx import OnnxRunner
        return OnnxRunner(_onnx_in(path), device, precision)
    from . import _torch
    return _torch.from_path(path, kind, device, precision)


def _onnx_in(path: str) -> str:
    if not os.path.isdir(path):
        return path
    path = os.path.join(path, _onnx_names(path)[0])
    os.close(open_input(path))
    return path


def _onnx_names(folder: str) -> List[str]:
    names = sorted(name for name in os.listdir(folder) if name.endswith(".onnx"))
    return sorted(names, key=lambda name: name != "model.onnx")


def kind_of(path: str) -> str:
    """The kind of model at a path, by its content. ValueError with what was found instead."""
    if os.path.isdir(path):
        if os.path.isfile(os.path.join(path, "config.json")):
            for name in os.listdir(path):  # transformers opens some of them, and would wait for a FIFO
                if not os.path.isdir(os.path.join(path, name)):
                    os.close(open_input(os.path.join(path, name)))
            return "Hugging Face folder"
        found = _onnx_names(path)
        if len(found) == 1 or found[:1] == ["model.onnx"]:
            return "ONNX file"
        if found:
            raise ValueError(f"{path} has {len(found)} ONNX files; name one of them")
        raise ValueError(f"{path} has neither a config.json (Hugging Face) nor an ONNX file")
    os.close(open_input(path))
    if zipfile.is_zipfile(path):
        return _kind_of_archive(path)
    if os.path.getsize(path) == 0:
        raise ValueError(f"{path} is empty")
    with open(path, "rb") as file:
        head = file.read(2)
    if path.endswith(".onnx") or head[:1] == b"\x08":  # ir_version, the first field of an ONNX file
        return "ONNX file"
    raise ValueError(f"{path} is not {_KINDS}")


def _kind_of_archive(path: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    inner = [name.partition("/")[2] for name in names]
    if any(name == "models/model.json" or name.startswith("serialized_exported_program") for name in inner + names):
        return "torch.export file"
    if any(name.startswith("code/") for name in inner) and "data.pkl" in inner:
        return "TorchScript file"
    if "data.pkl" in inner:
        raise ValueError(f"{path} holds weights or pickled objects without the model's code: make the model, load "
                         "them into it, and pass that; or save it with torch.jit.save or torch.export.save")
    raise ValueError(f"{path} is an archive, but not {_KINDS}")


def size_of(path: Optional[str]) -> Optional[int]:
    """Bytes on disk, for a folder those of all its files; None without a path."""
    if path is None:
        return None
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names
               if os.path.isfile(os.path.join(folder, name)))


def shapes_in(inputs: Any) -> List[Dict[str, Any]]:
    """Names, shapes and types of all arrays in an input."""
    found: List[Dict[str, Any]] = []

    def visit(value: Any, name: str) -> None:
        shape = getattr(value, "shape", None)
        if shape is not None and hasattr(value, "dtype"):
            found.append({"name": name, "shape": [int(one) for one in shape],
                          "type": str(value.dtype).replace("torch.", "")})
        elif isinstance(value, dict) or hasattr(value, "items"):
            for key, one in value.items():
                visit(one, f"{name}.{key}" if name else str(key))
        elif isinstance(value, (tuple, list)):
            for at, one in enumerate(value):
                visit(one, f"{name}[{at}]" if name else str(at))
    visit(inputs, "")
    return found
