"""Losses that are kept with all that made them, and how large a step's graph is. Looks at one backward in seventeen,
and less and less often once nothing new is to be said."""
import gc
import inspect
import sys

from .. import _core
from .._files import source_lines

_MOST_NODES = 20000
_LEAST_KEPT = 13  # of the last sixteen: one or two may well be in a variable
_SUMS_MOST = 4096  # of one chain
_told = {"kept": False, "looks": 0, "every": 1}
_sums = {}  # (name, code) of a variable: how long the chain of sums behind it was at the last look


def _nodes(loss):
    """How many operators autograd has noted for this loss, up to a limit."""
    seen, left = set(), [loss.grad_fn]
    while left and len(seen) < _MOST_NODES:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        left.extend(following for following, _ in node.next_functions)
    return len(seen)


def _frames():
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _locals(frame):
    """A copy. Before Python 3.13 asking leaves one in the frame, which would keep what the program deletes."""
    held = frame.f_locals
    found = dict(held)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.getrefcount(held) == 3:
        held.clear()  # nobody else has it
    return found


def _scopes(frame):
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return _locals(frame), frame.f_globals
    return (frame.f_globals,)


def _name_of(holder):
    """(name, code) of the variable or attribute that holds this list or dict."""
    for frame in _frames():
        if "/tare/" in frame.f_code.co_filename or "/torch/" in frame.f_code.co_filename:
            continue
        for scope in _scopes(frame):
            for name, value in list(scope.items()):
                if value is holder:
                    return name, frame.f_code
                for attribute, held in list((_core.torch_dict_of(value) or {}).items()):
                    if held is holder:
                        return attribute, frame.f_code
    return None


def _line_that_keeps(name, code):
    """The line that adds to it, as the source has it; 0 when there is none to be found."""
    lines = source_lines(code.co_filename)
    for word in (name + ".append(", name + ".extend(", name + " +=", name + "[", name + " = "):
        for number, line in enumerate(lines, 1):
            if word in line:
                return number
    return 0


def _tell_kept(losses):
    for holder in gc.get_referrers(losses[0]):
        kind = type(holder)  # an object's own answers are not asked for: it may print, or warn
        if holder is losses or not issubclass(kind, (list, dict, set, tuple)) and not hasattr(kind, "append"):
            continue
        found = _name_of(holder)
        if found:
            name, code = found
            _core.mark("torch.kept %s at %s:%d" % (name, code.co_filename, _line_that_keeps(name, code)))
            return
    place = _core.torch_line_here()
    _core.mark("torch.kept ? at %s:%d" % (place[:2] if place else ("?", 0)))


def _is_theirs(frame):
    name = frame.f_code.co_filename
    return "/tare/" not in name and "/torch/" not in name


def _held(scope):
    """(name, value) of variables, and of what objects and dicts among them hold by name."""
    for name, value in list(scope.items()):
        yield name, value
        inner = value if type(value) is dict else _core.torch_dict_of(value)
        if inner and len(inner) < 1000:
            for key, one in list(inner.items()):
                if type(key) is str:
                    yield key, one


def _chain(node):
    """How many sums stand one behind the other: total += loss, step after step."""
    length, name = 0, node.name()
    while node is not None and length < _SUMS_MOST:
        length += 1
        node = next((one for one, _ in node.next_functions if one is not None and one.name() == name), None)
    return length


def _line_that_sums(name, code):
    """The line that adds to it: by its name, or by its name as an attribute's or a dict's."""
    for number, line in enumerate(source_lines(code.co_filename), 1):
        head, _, rest = line.partition("+=")
        if rest and head.strip().strip("]\"'").endswith(name):
            return number
    return _line_that_keeps(name, code)


def _look_at_sums(tensor_type):
    """A sum of losses that is kept with its history grows by one addition a step; a sum within a model does not."""
    seen = set()
    for frame in filter(_is_theirs, _frames()):
        for name, value in (one for scope in _scopes(frame) for one in _held(scope)):
            if not issubclass(type(value), tensor_type) or id(value) in seen:
                continue
            seen.add(id(value))
            node = value.grad_fn
            if node is None or not node.name().startswith("Add"):
                continue
            length, key = _chain(node), (name, frame.f_code)
            if length - _sums.get(key, length) >= _LEAST_KEPT:
                _told["kept"] = True
                _core.counter("torch.losses.summed", float(length))
                _core.mark("torch.summed %s at %s:%d" % (name, frame.f_code.co_filename,
                                                         _line_that_sums(name, frame.f_code)))
                return
            _sums[key] = length


def _look(number, before, loss):
    kept = [one for one in before if one.grad_fn is not None]
    _core.counter("torch.losses.kept", float(len(kept)))
    if len(kept) >= _LEAST_KEPT and not _told["kept"]:
        _told["kept"] = True
        _tell_kept(kept)
    _told["looks"] += 1
    if _told["looks"] % _told["every"] == 0:  # at the 1st look, the 2nd, the 4th …
        _told["every"] *= 2
        _core.counter("torch.graph.nodes", float(_nodes(loss)))
        if not _told["kept"]:
            _look_at_sums(sys.modules["torch"].Tensor)
        from . import _facts
        _facts.tell(loss)


def attach(torch):
    _core.torch_graph_watch(_look)
