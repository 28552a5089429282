"""Settings of the program that have a faster alternative: precision of matrix products, optimizers. Recorded at
intervals while it trains, as facts that the findings use."""
import sys

from .. import _core

_said = set()


def _say(key, text, value=None):
    if (key, text, value) not in _said:
        _said.add((key, text, value))
        _core.fact(key, value, text=text)


def _tell_precision(torch, loss):
    if loss.dtype != torch.float32 or torch.is_autocast_enabled(loss.device.type):
        return
    if loss.is_cuda:
        if torch.get_float32_matmul_precision() == "highest" and torch.cuda.get_device_capability(loss.device)[0] >= 8:
            _say("torch.fp32", "cuda")  # TensorFloat-32 is off
    elif torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported() \
            and getattr(torch.cpu, "_is_amx_tile_supported", bool)():
        _say("torch.fp32", "cpu")  # bfloat16 units (AMX) are not used


def _tell_optimizers(stepped):
    for optimizer in stepped:
        held = _core.torch_dict_of(optimizer) or {}
        settings, groups = held.get("defaults", {}), held.get("param_groups", ())
        if "fused" not in settings:
            continue
        if not any(group.get("fused") or group.get("foreach") for group in groups):
            tensors = sum(len(group["params"]) for group in groups)
            on_gpu = any(parameter.is_cuda for group in groups for parameter in group["params"][:1])
            if settings.get("foreach") is None and on_gpu:
                continue  # torch itself uses the foreach implementation there
            _say("torch.unfused", type(optimizer).__name__, tensors)


def tell(loss):
    torch = sys.modules["torch"]
    for part, argument in ((lambda one: _tell_precision(torch, one), loss),
                           (_tell_optimizers, _core.torch_optimizers_stepped())):
        try:
            part(argument)
        except Exception:  # another version of torch: this fact is not recorded
            pass
