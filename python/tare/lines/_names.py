"""Matches functions by name: "function", "Class.method" or "module:function"."""
import os
from typing import Any, Dict, List, Sequence, Tuple

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def qualified_name(code: Any) -> str:
    """Class.method where the interpreter knows it (3.11), else the bare name."""
    return getattr(code, "co_qualname", code.co_name)


def _name_by_class(code: Any, names: Dict[str, Any]) -> str:
    """Before 3.11 a code object does not know its class: the module's classes are searched."""
    for owner in list(names.values()):
        if isinstance(owner, type):
            member = vars(owner).get(code.co_name)
            member = getattr(member, "__func__", member)
            if getattr(member, "__code__", None) is code:
                return f"{owner.__qualname__}.{code.co_name}"
    return code.co_name


def _module(names: Dict[str, Any]) -> str:
    """The module's name: a script is named by its file, as users do (also in a child that multiprocessing
    spawned); a module run by -m by its own name."""
    name = names.get("__name__")
    file = names.get("__file__")
    if name in ("__main__", "__mp_main__") and isinstance(file, str):
        run_by_name = getattr(names.get("__spec__"), "name", None)
        return run_by_name if run_by_name else os.path.splitext(os.path.basename(file))[0]
    return name if isinstance(name, str) else ""


class Patterns:
    """Called by the extension once for each function that begins.

        Patterns(["train:step", "Net.*"], {})(code, module.__dict__)
    """

    def __init__(self, patterns: Sequence[str], names: Dict[Any, str]) -> None:
        from fnmatch import fnmatchcase  # slow to import, and rarely needed
        self._fits = fnmatchcase
        self._names = names  # of the code objects that matched
        self._pairs: List[Tuple[str, str]] = []
        for pattern in patterns:
            module, colon, function = pattern.strip().rpartition(":")
            if not function.strip() or (colon and not module.strip()):
                raise ValueError(f"{pattern!r} names no function: write function, Class.method or module:function")
            self._pairs.append((module.strip(), function.strip()))

    def __call__(self, code: Any, names: Dict[str, Any]) -> bool:
        bare = code.co_name
        if bare.startswith("<") or code.co_filename.startswith(_OWN):
            return False
        full = qualified_name(code)
        for module, function in self._pairs:
            if not self._fits(bare, function.rpartition(".")[2]):
                continue
            if full == bare and "." in function:
                full = _name_by_class(code, names)
            if module and not self._is_module(module, names):
                continue
            if any(self._fits(name, function) for name in (bare, full, f"{_module(names)}.{full}")):
                self._names.setdefault(code, full)
                return True
        return False

    def _is_module(self, pattern: str, names: Dict[str, Any]) -> bool:
        name = _module(names)
        return any(self._fits(one, pattern) for one in (name, name.rpartition(".")[2], str(names.get("__name__"))))
