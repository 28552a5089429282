"""Hooks into the outermost call of a module. Module.__call__ remains the same function object, which torch.compile
requires; only its code is replaced by its own source with our calls around it. All line numbers stay the same, and so
do tracebacks. Compilers that trace the code see the original behaviour, since is_dynamo_compiling is a constant
there."""
import ast
import inspect
import tokenize

from .. import _core

_AROUND = """
if _tare_is_compiling() or not _tare_forward_begin(self):
    pass
else:
    try:
        pass
    finally:
        _tare_forward_end()
"""


def _source_of(code):
    """The function's definition in its class, with the lines and columns of the file."""
    with tokenize.open(code.co_filename) as file:
        block = inspect.getblock(file.readlines()[code.co_firstlineno - 1:])
    tree = ast.parse("class _:\n" + "".join(block))
    ast.increment_lineno(tree, code.co_firstlineno - 2)
    return tree


def _code_around(code):
    """Torch's code between our calls, with torch's name and location: tracebacks and skip lists use these."""
    tree = _source_of(code)
    definition = tree.body[0].body[0]
    around = ast.parse(_AROUND).body[0]
    for node in ast.walk(around):
        ast.copy_location(node, definition)
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = code.co_firstlineno
    around.body, around.orelse[0].body = definition.body, definition.body
    definition.body = [around]
    whole = compile(tree, code.co_filename, "exec", dont_inherit=True)
    inner = next(one for one in whole.co_consts if inspect.iscode(one))
    made = next(one for one in inner.co_consts if inspect.iscode(one) and one.co_name == code.co_name)
    return made.replace(co_qualname=code.co_qualname) if hasattr(code, "co_qualname") else made


_called = {}  # listeners for calls: "spans" and "blocks", (begin, end) each


def _tell(torch, who, begin, end):
    """Calls begin(module) from now on, and end() after the calls for which begin returned true."""
    function = torch.nn.Module.__call__
    foreign, scope = function.__code__, function.__globals__
    if foreign.co_freevars or {"_compiled_call_impl", "_call_impl"} - set(foreign.co_names):
        raise TypeError("Module.__call__ is not what it was in the versions known here")
    before = dict(_called)
    _called[who] = (begin, end)
    both = _both(*_called["spans"], *_called["blocks"]) if len(_called) == 2 else (begin, end)
    scope["_tare_is_compiling"] = torch.compiler.is_dynamo_compiling
    scope["_tare_forward_begin"], scope["_tare_forward_end"] = both
    if not before:
        function.__code__ = _code_around(foreign)


def _both(begin_span, end_span, begin_block, end_block):
    def begin(module):
        spans, blocks = begin_span(module), begin_block(module)
        if spans or blocks:
            open_now.append((spans, blocks))
            return True
        return False

    def end():
        spans, blocks = open_now.pop()
        if blocks:
            end_block()
        if spans:
            end_span()
    import threading

    class Open(threading.local):
        def __init__(self):
            self.calls = []
            self.append, self.pop = self.calls.append, self.calls.pop
    open_now = Open()
    return begin, end


def attach(torch):
    _tell(torch, "spans", _core.torch_forward_begin, _core.torch_forward_end)


def tell_blocks(torch, begin, end):
    """Notifies the blocks of PerformanceProfiler."""
    if "blocks" not in _called:
        _tell(torch, "blocks", begin, end)
