"""The outermost call of a module. Module.__call__ stays the very function that it was, which torch.compile asks for;
only its code is another one. Whoever traces that code finds what was there before, since is_dynamo_compiling is a
constant there."""
import sys

from .. import _core

_SOURCE = """
def _wrapped_call_impl(self, *args, **kwargs):
    if _tare_is_compiling() or not _tare_forward_begin(self):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        else:
            return self._call_impl(*args, **kwargs)
    try:
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        else:
            return self._call_impl(*args, **kwargs)
    finally:
        _tare_forward_end()
"""


def _code_like(code):
    """Ours, with the name and place of theirs: tracebacks and skip lists read these."""
    found = {}
    lines = "\n" * max(0, code.co_firstlineno - 2)
    exec(compile(lines + _SOURCE, code.co_filename, "exec"), found)
    made = found["_wrapped_call_impl"].__code__
    if sys.version_info >= (3, 11):
        return made.replace(co_name=code.co_name, co_qualname=code.co_qualname)
    return made.replace(co_name=code.co_name)


def attach(torch):
    function = torch.nn.Module.__call__
    theirs = function.__code__
    if theirs.co_freevars or {"_compiled_call_impl", "_call_impl"} - set(theirs.co_names):
        raise TypeError("Module.__call__ is not what it was in the versions known here")
    scope = function.__globals__
    scope["_tare_is_compiling"] = torch.compiler.is_dynamo_compiling
    scope["_tare_forward_begin"] = _core.torch_forward_begin
    scope["_tare_forward_end"] = _core.torch_forward_end
    function.__code__ = _code_like(theirs)
