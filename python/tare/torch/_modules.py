"""Which part of a model a call belongs to, by its path (encoder.layers.3.self_attn): where operators are recorded."""
from .. import _core
from . import operators


def _parts(module, path, seen):
    """As listed by named_modules(), but without calling the program's own methods."""
    if id(module) in seen:
        return
    seen.add(id(module))
    yield path, module
    inner = (_core.torch_dict_of(module) or {}).get("_modules")
    for name, part in list(inner.items()) if isinstance(inner, dict) else ():
        if part is not None:
            yield from _parts(part, path + "." + name if path else name, seen)


def _name_parts(root):
    addresses = []
    for path, module in _parts(root, "", set()):
        _core.torch_module_named(module, path or type(root).__name__)
        addresses.append(id(module))
    _core.torch_model_named(root, addresses)


def attach(torch):
    if operators.wanted():
        _core.torch_modules_watch(_name_parts)
