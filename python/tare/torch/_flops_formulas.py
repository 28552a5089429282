"""FLOPs of torch's operators: one table, used wherever operations are counted. A multiply-add is two; elementwise work
is not counted. Operators that compute products and have no formula are listed: a total without them is "at least"."""
import re
from typing import Any, Callable, Dict, List, Tuple

Formula = Callable[..., int]

# Operators without a formula that compute products: a total without them is "at least". Elementwise operators, copies
# and reductions are not counted.
_COMPUTES = re.compile(r"(?:^|_)(?:\w*mm|mv|v?dot|matmul|baddbmm|conv\w*|convolution\w*|linear\w*|bilinear|trilinear"
                       r"|einsum|rnn\w*|lstm\w*|gru\w*|attention\w*|multi_head\w*|transformer\w*|fft\w*|cdist\w*"
                       r"|euclidean_dist|cholesky\w*|lu_\w+|svd|qr"
                       r"|eigh?|inv\w*|solve\w*|det|lstsq|geqrf|kron|householder_\w+|stft|istft)(?:_|$)")
_NEVER = re.compile(r"prepack|unpack|pack_|_pack|reorder|_size|_workspace|_use_|params|is_|fused_(?:lstm|gru)_cell"
                    r"|linalg_vector_norm|fill|copy|_view|fft_(?:fftshift|ifftshift|freq|rfftfreq)|solve_out_info"
                    r"|convert")


_TORCH = frozenset(("aten", "prim", "prims", "quantized", "quantized_decomposed", "mkldnn", "mkl", "onednn",
                    "torchvision", "inductor"))
_BESIDE = frozenset(("profiler", "c10d", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "rngprims",
                     "fsdp", "streams", "debugprims", "image", "io", "tare"))


class AtLeast(int):
    """A count that lacks something: `not_counted` names the operators without a formula. Otherwise a plain number."""
    at_least = True
    not_counted: Tuple[str, ...]

    def __new__(cls, value: Any, not_counted: Any = ()) -> "AtLeast":
        made = super().__new__(cls, value)
        made.not_counted = tuple(not_counted)
        return made

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        names = dict.fromkeys((*self.not_counted, *getattr(other, "not_counted", ())))
        return AtLeast(int(self) + int(other), names)

    __radd__ = __add__

    def __reduce__(self) -> Any:
        return AtLeast, (int(self), self.not_counted)

    @property
    def reason(self) -> str:
        return "not counted: " + ", ".join(self.not_counted)


def computes(name: str, namespace: str) -> bool:
    """Whether an operator without a formula may do work that a total should include."""
    if _NEVER.search(name):
        return False
    if namespace in _BESIDE:
        return False
    return namespace not in _TORCH or bool(_COMPUTES.search(name))  # it is unknown what a custom operator does


def _flat(values: Any) -> Any:
    for value in values.values() if isinstance(values, dict) else values or ():
        if isinstance(value, (list, tuple, dict)):
            yield from _flat(value)
        else:
            yield value


def _numel(tensor: Any) -> int:
    """Elements, of nested tensors too."""
    if getattr(tensor, "is_nested", False):
        if str(tensor.layout) == "torch.jagged":
            return int(tensor.values().numel())
        return int(tensor._nested_tensor_size().prod(1).sum())
    return int(tensor.numel())


def _lengths(tensor: Any) -> Tuple[int, int, int]:
    """(samples, rows of all, rows of the longest) of what has the shape (samples, rows, width)."""
    if getattr(tensor, "is_nested", False):
        sizes = tensor._nested_tensor_size()[:, 0]
        return len(sizes), int(sizes.sum()), int(sizes.max())
    return int(tensor.shape[0]), int(tensor.shape[0] * tensor.shape[1]), int(tensor.shape[1])


# ---- products ------------------------------------------------------------------------------------------------------

def _linear(x: Any, *_: Any, out_val: Any = None, **__: Any) -> int:
    """Every element of the input is multiplied with a column of the weights, however these are stored."""
    return 2 * _numel(x) * int(out_val.shape[-1])


def _linear_weight(x: Any, weight: Any, *_: Any, **__: Any) -> int:
    return 2 * _numel(x) * int(weight.shape[0])


def _mm(a: Any, b: Any, *_: Any, **__: Any) -> int:
    return 2 * _numel(a) * int(b.shape[-1])


def _add_mm(_: Any, a: Any, b: Any, *__: Any, **___: Any) -> int:
    return 2 * _numel(a) * int(b.shape[-1])


def _mv(a: Any, *_: Any, **__: Any) -> int:
    return 2 * _numel(a)


def _add_mv(_: Any, a: Any, *__: Any, **___: Any) -> int:
    return 2 * _numel(a)


def _grouped(a: Any, b: Any, *_: Any, **__: Any) -> int:
    """Each row, or each column, belongs to one group: with groups in both, to the one of its place."""
    return 2 * _numel(a) * int(b.shape[-1])


# ---- convolutions whose weights are packed --------------------------------------------------------------------------

def _packed_convolution(unpack: Any, transposed: bool) -> Formula:
    def flops(x: Any, packed: Any, *_: Any, out_val: Any = None, **__: Any) -> int:
        weight = unpack(packed)[0]
        if transposed:
            return 2 * int(x.numel()) * int(weight.numel()) // int(weight.shape[0])
        return 2 * int(out_val.numel()) * int(weight.numel()) // int(weight.shape[0])
    return flops


def _convolution_backward(gradient: Any, x: Any, weight: Any, *more: Any, **kwargs: Any) -> int:
    """Of the input and of the weights, each as many as forward; torch's own formula counts grouped ones several times.
    What follows: bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask."""
    transposed, mask = more[4], more[7]
    forward = 2 * int((x if transposed else gradient).numel()) * int(weight.numel()) // int(weight.shape[0])
    return forward * (bool(mask[0]) + bool(mask[1]))


def _mkldnn_convolution(x: Any, *more: Any, out_val: Any = None, **_: Any) -> int:
    """The weight is the first argument with as many dimensions that does not have the output's shape: `.binary` has
    another argument before it."""
    weights = [one for one in more if hasattr(one, "dim") and one.dim() == x.dim()]
    return 2 * int(out_val.numel()) * int(weights[-1].numel()) // int(weights[-1].shape[0])


# ---- attention -------------------------------------------------------------------------------------------------------

def attention(query: Any, key: Any, value: Any) -> int:
    """Both products of scaled dot-product attention by shape; a causal mask does not reduce them."""
    batch, heads, queries, width = query
    return int(2 * batch * heads * queries * key[2] * (width + value[3]))


def _attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return attention(query.shape, key.shape, value.shape)


def _attention_backward(_: Any, query: Any, key: Any, value: Any, *__: Any, **___: Any) -> int:
    """Scores once more, and the gradients of the scores, of value, of query and of key."""
    batch, heads, queries, width = query.shape
    return int(2 * batch * heads * queries * key.shape[2] * (3 * width + 2 * value.shape[3]))


def _multi_head(query: Any, key: Any, value: Any, width: int, heads: int, qkv: Any, qkv_bias: Any, projection: Any,
                *_: Any, **__: Any) -> int:
    samples, rows, longest = _lengths(query)
    _, key_rows, key_longest = _lengths(key)
    products = 2 * (rows * width * width + 2 * key_rows * width * width + rows * _numel(projection))
    return int(products + 4 * samples * longest * key_longest * width)


def _encoder_layer(source: Any, width: int, heads: int, qkv: Any, qkv_bias: Any, projection: Any, *more: Any,
                   **_: Any) -> int:
    """nn.TransformerEncoderLayer in one operator: projections, attention, two linear layers."""
    samples, rows, longest = _lengths(source)
    inner = [one for one in more if hasattr(one, "dim") and one.dim() == 2][:2]
    products = 2 * rows * (_numel(qkv) + _numel(projection) + sum(map(_numel, inner)))
    return int(products + 4 * samples * longest * longest * width)


# ---- recurrent layers ------------------------------------------------------------------------------------------------

def _rows(x: Any) -> int:
    return int(x.numel()) // max(1, int(x.shape[-1]))


def _rnn_layer(x: Any, input_weight: Any, hidden_weight: Any, *_: Any, **__: Any) -> int:
    return 2 * _rows(x) * (int(input_weight.numel()) + int(hidden_weight.numel()))


def _rnn_layer_backward(x: Any, input_weight: Any, hidden_weight: Any, *_: Any, **__: Any) -> int:
    """Gradients of the inputs and of the weights."""
    return 2 * _rnn_layer(x, input_weight, hidden_weight)


def _cudnn_rnn(x: Any, weights: Any, *_: Any, **__: Any) -> int:
    return 2 * _rows(x) * sum(int(one.numel()) for one in weights if one.dim() == 2)


def _cudnn_rnn_backward(x: Any, weights: Any, *_: Any, **__: Any) -> int:
    return 2 * _cudnn_rnn(x, weights)


def _quantized_rnn(gates: int) -> Formula:
    """All layers and directions, by the sizes of the input and of the hidden state: the weights are packed."""
    def flops(x: Any, *more: Any, **_: Any) -> int:
        packed = hasattr(more[0], "dim") and more[0].dim() == 1  # batch_sizes
        state = more[1] if packed else more[0]
        options = more[3:] if packed else more[2:]
        first = state[0] if isinstance(state, (list, tuple)) else state
        bidirectional = bool(options[4])
        ways = 2 if bidirectional else 1
        layers, hidden = int(first.shape[0]) // ways, int(first.shape[-1])
        widths = [int(x.shape[-1])] + [hidden * ways] * (layers - 1)
        return 2 * _rows(x) * ways * sum(gates * hidden * (width + hidden) for width in widths)
    return flops


def _quantized_cell(x: Any, state: Any, _: Any, __: Any, bias: Any, *___: Any, **____: Any) -> int:
    first = state[0] if isinstance(state, (list, tuple)) else state
    return 2 * _rows(x) * int(bias.shape[0]) * int(x.shape[-1] + first.shape[-1])


# ---- the table -------------------------------------------------------------------------------------------------------

def _own(torch: Any) -> List[Tuple[str, str, Formula]]:
    rows: List[Tuple[str, str, Formula]] = [
        ("aten", "_scaled_dot_product_flash_attention_for_cpu", _attention),
        ("aten", "_scaled_dot_product_flash_attention_for_cpu_backward", _attention_backward),
        ("aten", "_native_multi_head_attention", _multi_head), ("aten", "convolution_backward", _convolution_backward),
        ("aten", "_transformer_encoder_layer_fwd", _encoder_layer),
        ("aten", "mkldnn_rnn_layer", _rnn_layer), ("aten", "mkldnn_rnn_layer_backward", _rnn_layer_backward),
        ("aten", "_cudnn_rnn", _cudnn_rnn), ("aten", "_cudnn_rnn_backward", _cudnn_rnn_backward),
        ("aten", "miopen_rnn", _cudnn_rnn), ("aten", "miopen_rnn_backward", _cudnn_rnn_backward),
        ("aten", "quantized_lstm", _quantized_rnn(4)), ("aten", "quantized_gru", _quantized_rnn(3)),
        ("aten", "linear", _linear_weight), ("aten", "mkldnn_linear", _linear_weight),
        ("aten", "_grouped_mm", _grouped), ("aten", "_int_mm", _mm), ("aten", "_addmm_activation", _add_mm),
        ("aten", "addbmm", _add_mm), ("aten", "mv", _mv), ("aten", "addmv", _add_mv), ("aten", "dot", _mv),
        ("aten", "vdot", _mv), ("aten", "_weight_int8pack_mm", _linear), ("aten", "_weight_int4pack_mm", _linear),
        ("aten", "_weight_int4pack_mm_for_cpu", _linear), ("aten", "_dyn_quant_matmul_4bit", _linear),
        ("aten", "mkldnn_convolution", _mkldnn_convolution), ("mkldnn", "_linear_pointwise", _linear),
        ("mkldnn", "_convolution_pointwise", _mkldnn_convolution), ("mkl", "_mkl_linear", _linear),
        ("onednn", "qlinear_pointwise", _linear)]
    for name in ("linear", "linear_relu", "linear_dynamic", "linear_relu_dynamic", "linear_dynamic_fp16",
                 "linear_relu_dynamic_fp16", "linear_leaky_relu", "linear_tanh",
                 "linear_with_input_q_dq_qweight_dq_output_fp32"):
        rows.append(("quantized", name, _linear))
    for name in ("lstm", "gru", "rnn_relu", "rnn_tanh"):
        rows.append(("quantized", f"quantized_{name}_cell_dynamic", _quantized_cell))
    for size in (1, 2, 3):
        for transposed in (False, True):
            base = f"conv_transpose{size}d" if transposed else f"conv{size}d"
            unpack = getattr(torch.ops.quantized, base + "_unpack", None)
            for tail in ("", "_relu", "_dynamic", "_add", "_add_relu"):
                rows.append(("quantized", base + tail, _packed_convolution(unpack, transposed)))
    return rows


def formulas(torch: Any) -> Dict[Any, Formula]:
    """{operator (an OpOverloadPacket): FLOPs of (arguments, out_val=result)}: torch's own formulas, and ours for other
    operators."""
    from torch.utils.flop_counter import flop_registry
    found: Dict[Any, Formula] = {packet: _raw(formula) for packet, formula in flop_registry.items()}
    for namespace, name, formula in _own(torch):
        packet = getattr(getattr(torch.ops, namespace), name, None)
        if packet is not None:
            found[packet] = _raw(formula)
    return found


def _raw(formula: Formula) -> Formula:
    """As torch's table marks those that take tensors rather than shapes. A product of complex numbers is four of real
    ones."""
    def flops(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        first = out_val[0] if isinstance(out_val, (tuple, list)) and out_val else out_val
        factor = 4 if hasattr(first, "is_complex") and first.is_complex() else 1
        return factor * formula(*args, out_val=out_val, **kwargs)
    flops._get_raw = True  # type: ignore[attr-defined]
    return flops


def total(count: int, not_counted: Any) -> int:
    return AtLeast(count, sorted(not_counted)) if not_counted else int(count)


def counter(torch: Any) -> Any:
    """A mode that counts like torch's FlopCounterMode (also by module), with the whole table; an operator that computes
    and is not in the table is in `not_counted`. The program's call is executed whatever fails here."""
    from torch.utils.flop_counter import FlopCounterMode, _FlopCounterMode
    from torch.utils.module_tracker import ModuleTracker

    class Tracker(ModuleTracker):  # type: ignore[misc]
        """Without hooks for a backward: none follows here, and torch's hooks fail on parameters in inference mode, and
        on models that compute gradients themselves."""

        def _fw_pre_hook(self, mod: Any, input: Any) -> None:
            super()._fw_pre_hook(mod, ())

        def _fw_post_hook(self, mod: Any, input: Any, output: Any) -> None:
            super()._fw_post_hook(mod, input, ())

    class Mode(_FlopCounterMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            """Nested tensors have no sizes, or symbolic ones: torch's mode would fail on them, and thus the program."""
            if not any(getattr(one, "is_nested", False) for one in _flat((args, kwargs))):
                return super().__torch_dispatch__(func, types, args, kwargs)
            out = func(*args, **(kwargs or {}))
            packet = getattr(func, "_overloadpacket", None)
            return self.counter._count_flops(packet, out, args, kwargs or {}) if packet is not None else out

    class Counter(FlopCounterMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(display=False)
            self.mod_tracker = Tracker()
            self.flop_registry = formulas(torch)
            self.not_counted: Dict[str, Any] = {}  # by module

        def __enter__(self) -> Any:
            self.flop_counts.clear()
            self.not_counted.clear()
            self.mod_tracker.__enter__()
            self.mode = Mode(self)
            self.mode.__enter__()
            return self

        def _count_flops(self, packet: Any, out: Any, args: Any, kwargs: Any) -> Any:
            namespace, _, name = str(getattr(packet, "_qualified_op_name", packet)).partition("::")
            try:
                if packet in self.flop_registry:
                    return super()._count_flops(packet, out, args, kwargs)
                lacking = computes(name, namespace)
            except Exception:  # a formula that does not fit these arguments
                lacking = True
            if lacking:
                for parent in set(self.mod_tracker.parents):
                    self.not_counted.setdefault(parent, set()).add(f"{namespace}::{name}")
            return out

        def flops(self) -> int:
            return total(int(self.get_total_flops()), self.not_counted.get("Global"))

        def by_module(self) -> Dict[str, int]:
            counted = {name: int(sum(one.values())) for name, one in self.get_flop_counts().items()}
            return {name: total(counted.get(name, 0), self.not_counted.get(name))
                    for name in {*counted, *self.not_counted} if name != "Global"}

    return Counter()
