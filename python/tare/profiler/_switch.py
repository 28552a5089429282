"""Makes torch report its operators to our library. With `tare run --ops` the library is loaded before torch; here
torch is loaded first, and its stubs are replaced by ours instead."""
import contextlib
import os
import re
from typing import Iterator, Optional

from ..torch import operators

_VARIABLE, _LIBRARY = "INTEL_LIBITTNOTIFY64", "libtare-itt.so"
# The order of the virtual functions that are replaced, as in torch's header.
_ORDER = ["record", "elapsed", "mark", "rangePush", "rangePop", "enabled", "onEachDevice", "synchronize"]
_joined: Optional[str] = None


def _library() -> Optional[str]:
    from .. import _command
    folders = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
    with contextlib.suppress(FileNotFoundError):
        beside = os.path.dirname(os.path.realpath(_command.find()))
        folders += [beside, os.path.join(beside, "..", "lib"), os.path.join(beside, "..", "lib64")]
    paths = (os.path.normpath(os.path.join(folder, _LIBRARY)) for folder in folders)
    return next((path for path in paths if os.path.exists(path)), None)


def _stubs_known(torch: object) -> bool:
    """Whether this torch's stubs have the layout that our library expects."""
    folder = os.path.dirname(os.path.abspath(torch.__file__))  # type: ignore[attr-defined]
    path = os.path.join(folder, "include", "torch", "csrc", "profiler", "stubs", "base.h")
    try:
        with open(path, encoding="utf-8", errors="replace") as header:
            body = re.search(r"struct[^{;]*\bProfilerStubs\b[^{;]*\{(.*?)\n\};", header.read(), re.S)
    except OSError:
        return False
    return body is not None and re.findall(r"virtual\s+[\w:]+\s+(\w+)\(", body.group(1)) == _ORDER


def _join(torch: object) -> Optional[str]:
    """None: our library receives torch's reports. Else a sentence why not."""
    global _joined
    path = _library()
    if path is None:
        return "%s is not installed beside the package" % _LIBRARY
    if _joined == path:
        return None
    if not _stubs_known(torch):
        return "this torch passes its operators on in a way that is not known here"
    import ctypes
    try:
        status = ctypes.CDLL(path).tare_inject_torch()
    except (OSError, AttributeError) as error:
        return "%s could not be loaded: %s" % (_LIBRARY, error)
    if status != 0:
        return "this torch has no ITT interface"
    _joined = path
    return None


@contextlib.contextmanager
def _named() -> Iterator[None]:
    """Sets the environment variable that identifies our listener while torch reads it: children need not inherit it."""
    before = os.environ.get(_VARIABLE)
    if _joined is not None:
        os.environ[_VARIABLE] = _joined
    try:
        yield
    finally:
        if _joined is not None:
            if before is None:
                del os.environ[_VARIABLE]
            else:
                os.environ[_VARIABLE] = before


def is_on() -> bool:
    return operators.why_not() is None


def ready() -> Optional[str]:
    """None: operators of this torch can be recorded. Else a sentence why not."""
    import torch
    if os.path.basename(os.environ.get(_VARIABLE, "")) == _LIBRARY and operators.wanted():
        return None
    return _join(torch)


def on() -> Optional[str]:
    """None: operators are recorded from now on. Else a sentence why not."""
    why = ready()
    if why is None:
        with _named():
            operators.start()
        why = operators.why_not()
    return why


off = operators.stop
