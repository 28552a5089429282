"""Which part of a model a call belongs to, by its path (encoder.layers.3.self_attn): where operators are recorded."""
import weakref

from .. import _core
from . import operators

_roots = {}  # weak reference to a model, to the addresses of its parts


def _gone(reference):
    for address in _roots.pop(reference, ()):
        _core.torch_module_forgotten(address)


def _name_parts(root):
    addresses = []
    for path, module in root.named_modules():
        _core.torch_module_named(module, path or type(root).__name__)
        addresses.append(id(module))
    _roots[weakref.ref(root, _gone)] = addresses


def attach(torch):
    if operators.wanted():
        _core.torch_modules_watch(_name_parts)
