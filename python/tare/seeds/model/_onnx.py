"""ONNX files, run by the onnxruntime package of this interpreter, which has a CUDA provider and takes arrays directly.
The cost of a file, its generated inputs, its copy in half precision and the times of its nodes come from the engine,
as in `tare model`."""
import contextlib
import functools
import json
import os
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Optional

from ... import _engine
from ..._core import Missing
from ...torch import _state
from ...torch._flops import known
from ...torch._flops_formulas import AtLeast
from ._load import SHORT, Refused, Runner, size_of

_FEW = 64  # values of an input that are passed to the engine
_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64",
          "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(int16)": "int16", "tensor(int8)": "int8",
          "tensor(uint8)": "uint8", "tensor(uint16)": "uint16", "tensor(uint32)": "uint32",
          "tensor(uint64)": "uint64", "tensor(bool)": "bool"}
_PRODUCTS = ("MatMul", "Gemm", "Conv", "Attention", "LSTM", "GRU")
_REAL = ("float16", "float32", "float64", "bfloat16")


def _need_runtime() -> Any:
    try:
        import onnxruntime
        return onnxruntime
    except ImportError:
        raise ImportError("running an ONNX file needs ONNX Runtime: pip install onnxruntime. `tare model FILE` tells "
                          "its cost without") from None


class OnnxRunner(Runner):
    """An ONNX file. The session is opened on first use: the cost of the file is known without one."""
    kind = "ONNX file"

    def __init__(self, path: str, device: Optional[str], precision: Optional[str]) -> None:
        super().__init__(os.path.basename(path), device or "cpu", precision)
        self.path = path
        self._session: Any = None
        self._threads: Optional[int] = None
        self._reported: Dict[str, Any] = {}
        self._converted: Optional["tempfile.TemporaryDirectory[str]"] = None
        self.note: Optional[str] = None
        self.generated: Dict[str, str] = {}  # what inputs were filled with, by name

    # ---- the session ------------------------------------------------------------------------------------------

    def _provider(self, runtime: Any) -> List[Any]:
        if self.device == "cpu":
            return ["CPUExecutionProvider"]
        if "CUDAExecutionProvider" not in runtime.get_available_providers():
            raise RuntimeError(f"device {self.device!r}: this onnxruntime has no CUDA provider (onnxruntime-gpu has); "
                               "device=\"cpu\" runs here")
        return [("CUDAExecutionProvider", {"device_id": int(self.device.partition(":")[2] or 0)}),
                "CPUExecutionProvider"]

    def open(self, profile_prefix: Optional[str] = None) -> Any:
        """A separate session."""
        runtime = _need_runtime()
        options = runtime.SessionOptions()
        options.log_severity_level = 3  # its messages are in its exceptions
        if self._threads:
            options.intra_op_num_threads = self._threads
        if profile_prefix is not None:
            options.enable_profiling = True
            options.profile_file_prefix = profile_prefix
        source = self._source()
        try:
            session = runtime.InferenceSession(source, options, providers=self._provider(runtime))
        except RuntimeError:
            raise
        except Exception as error:
            raise ValueError(f"{self.path} cannot be loaded: {_state.first_line(error)}") from error
        if self.device != "cpu" and "CUDAExecutionProvider" not in session.get_providers():
            raise RuntimeError(f"device {self.device!r}: onnxruntime could not load its CUDA provider and would run "
                               "the model on the CPU (CUDA's and cuDNN's libraries are needed)")
        return session

    @property
    def session(self) -> Any:
        if self._session is None:
            self._session = self.open()
        return self._session

    def _source(self) -> str:
        """The file, or a copy of it in another precision."""
        if self.precision is None:
            return self.path
        reported = self.static()
        if isinstance(reported, Missing):
            raise ValueError(f"{self.path} cannot be loaded: {reported.reason}")
        types = [one["type"] for one in (*reported["inputs"], *reported["outputs"]) if one["type"] in _REAL]
        if types[:1] == [self.precision]:
            return self.path
        if self.precision != "float16":
            raise Refused(f"an ONNX file cannot be made {SHORT.get(self.precision, self.precision)} here: export the "
                          "model in that precision")
        if self._converted is None:
            folder = tempfile.TemporaryDirectory(prefix="tare-")
            try:
                _engine.model_half(self.path, os.path.join(folder.name, "half.onnx"))
            except (ValueError, OSError, MemoryError) as error:
                raise Refused(f"{self.path} cannot be made fp16: {error}") from error
            self._converted = folder
        return os.path.join(self._converted.name, "half.onnx")

    # ---- input ------------------------------------------------------------------------------------------------

    def take(self, data: Any) -> Dict[str, Any]:
        """Arrays by the names of the model's inputs, in their types."""
        wanted = self.session.get_inputs()
        if isinstance(data, Mapping):
            given = dict(data)
        else:
            given = dict(zip((one.name for one in wanted), data if isinstance(data, (tuple, list)) else [data]))
        missing = [one.name for one in wanted if one.name not in given]
        if missing:
            raise TypeError(f"the model also needs {', '.join(missing)}; its inputs are "
                            f"{', '.join(one.name for one in wanted)}")
        return {one.name: self._array(given[one.name], one) for one in wanted}

    def _array(self, value: Any, wanted: Any) -> Any:
        import numpy
        if hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        name = _TYPES.get(wanted.type)
        if name is None:
            return numpy.asarray(value)
        try:
            array = numpy.asarray(value, dtype=name, order="C")  # a single number stays one
        except (TypeError, ValueError) as error:
            raise TypeError(f"input {wanted.name} is {name}: {error}") from None
        if array.ndim != len(wanted.shape):
            raise ValueError(f"input {wanted.name} has {len(wanted.shape)} dimensions {tuple(wanted.shape)}, "
                             f"not {array.ndim} {array.shape}")
        return array

    def generated_input(self, batch: int) -> Dict[str, Any]:
        """As `tare model` fills them: shapes and values by name, type and shape."""
        import numpy
        self.session  # a file that cannot be loaded is reported as such
        reported = self._tell(batch, [])
        if isinstance(reported, Missing):
            raise TypeError(f"no input can be generated: {reported.reason}; pass input_data")
        try:
            tensors = _engine.model_inputs(self.path, batch, 0)
            made = {name: numpy.frombuffer(data, kind).reshape(shape) for name, kind, shape, data in tensors}
        except (TypeError, ValueError, MemoryError) as error:
            raise TypeError(f"no input can be generated: {error}; pass input_data") from None
        self.generated = {one["name"]: one["fill"]["text"] for one in reported["inputs"]}
        return made

    # ---- running ----------------------------------------------------------------------------------------------

    def call(self, inputs: Any) -> Any:
        return functools.partial(self.session.run, None, inputs)

    @contextlib.contextmanager
    def threads(self, count: Optional[int]) -> Iterator[None]:
        before, self._threads, session, self._session = self._threads, count, self._session, None
        try:
            yield
        finally:
            self._threads, self._session = before, session

    def static(self, inputs: Any = None) -> Any:
        """The output of `tare model --json` for the file and these shapes; or Missing."""
        given = []
        for name, array in (inputs or {}).items():
            few = getattr(array, "dtype", None) is not None and array.dtype.kind in "iub" and 0 < array.size <= _FEW
            # Lengths, rates and flags: sizes follow from them, and branches.
            given.append((name, tuple(getattr(array, "shape", ())), array.ravel().tolist() if few else ()))
        return self._tell(0, given)

    def _tell(self, batch: int, given: List[Any]) -> Any:
        key = repr((batch, given))
        if key not in self._reported:
            try:
                reported: Any = json.loads(_engine.model_json(self.path, batch, given))
            except (ValueError, OSError, MemoryError) as error:
                reported = Missing(f"tare model does not report it: {_state.first_line(error)}")
            self._reported[key] = reported
        return self._reported[key]

    def _total(self, name: str, inputs: Any = None) -> Any:
        reported = self.static(inputs)
        if isinstance(reported, Missing):
            return reported
        value = reported["total"].get(name)
        return value if value is not None else Missing(f"tare model tells no {name} of this file")

    def facts(self) -> Dict[str, Any]:
        return {"parameters": self._total("parameters"), "parameter_bytes": self._total("weight_bytes"),
                "trainable_parameters": Missing("an ONNX file does not report it"), "size_bytes": self._size()}

    def _size(self) -> Any:
        """With the files beside it that hold weights."""
        reported = self.static()
        if isinstance(reported, Missing):
            return size_of(self.path)
        return reported["file_bytes"] + reported["external_bytes"]

    def costs(self, inputs: Any) -> Dict[str, Any]:
        reported = self.static(inputs)
        left_out = [] if isinstance(reported, Missing) else [one for one in reported["not_counted"] if one["at_least"]]
        flops, macs = self._total("flops", inputs), self._total("macs", inputs)
        if left_out:
            self.note = (f"FLOPs are at least this many; not counted: {left_out[0]['name']} ({left_out[0]['op']}: "
                         f"{left_out[0]['reason']})" + (f" and {len(left_out) - 1} more" if left_out[1:] else ""))
            names = sorted({one["op"] for one in left_out})
            flops, macs = known(AtLeast(flops, names)), known(AtLeast(macs, names))
        return {"flops": flops, "macs": macs, "by_module": {}, "at_least": bool(left_out),
                "not_counted": [{key: one[key] for key in ("name", "op", "reason")} for one in left_out],
                "executed": self.executed(inputs)}

    def activation(self, inputs: Any) -> Any:
        """From the shapes and the order in the file: the runtime may use less."""
        return self._total("activation_peak_bytes", inputs)

    def units(self, inputs: Any) -> Dict[str, Any]:
        samples = _state.samples_in(inputs)
        mask, tokens, images = inputs.get("attention_mask"), None, None
        for name, one in inputs.items():
            if getattr(one, "ndim", 0) == 2 and one.dtype.kind in "iu" and "mask" not in name and tokens is None:
                tokens = int((mask != 0).sum()) if mask is not None else int(one.size)
            if getattr(one, "ndim", 0) == 4 and one.dtype.kind == "f" and images is None and (
                    one.shape[1] in (1, 3, 4) or one.shape[3] in (1, 3, 4)):
                images = int(one.shape[0])
        return {"samples": samples, "tokens": tokens, "images": images}

    def resized(self, inputs: Any, batch: int) -> Any:
        import numpy
        now = _state.samples_in(inputs)
        if not now:
            raise Refused("the input has no first dimension to change: batch_size cannot be set")
        fixed = [one.name for one in self.session.get_inputs() if one.shape and isinstance(one.shape[0], int)
                 and one.shape[0] != batch and inputs[one.name].shape[:1] == (now,)]
        if fixed:
            raise Refused(f"the file fixes the first dimension of {', '.join(fixed)}: export it with a free batch")

        def change(array: Any) -> Any:
            if array.ndim == 0 or array.shape[0] != now:
                return array
            times = -(-batch // now)
            return numpy.ascontiguousarray(numpy.concatenate([array] * times)[:batch])
        return {name: change(array) for name, array in inputs.items()}

    # ---- ONNX Runtime's own profile -----------------------------------------------------------------------------

    def profile_runs(self, inputs: Any, runs: int) -> List[Dict[str, Any]]:
        """Nodes with their time in each run, after one warm-up run."""
        with tempfile.TemporaryDirectory(prefix="tare-") as folder:
            session = self.open(os.path.join(folder, "profile"))
            for _ in range(runs + 1):
                session.run(None, inputs)
            return _engine.runtime_profile(session.end_profiling())

    def executed(self, inputs: Any) -> Any:
        """Types that products and convolutions were actually computed in, and the casts among the nodes."""
        try:
            nodes = self.profile_runs(inputs, 1)
        except Exception as error:
            return Missing(f"ONNX Runtime's profile could not be read: {_state.first_line(error)}")
        counts: Dict[str, int] = {}
        for one in nodes:
            if one["type"] and any(word in one["op"] for word in _PRODUCTS):
                key = SHORT.get(one["type"], one["type"])
                counts[key] = counts.get(key, 0) + one["calls"]
        if not counts:
            return Missing("the model has no product or convolution to tell it by")
        return {"operators": dict(sorted(counts.items())),
                "casts": sum(one["calls"] for one in nodes if one["op"] == "Cast")}
