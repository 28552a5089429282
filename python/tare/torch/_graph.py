"""Losses that are kept with their autograd graph, and the size of a step's graph. Checks one backward in seventeen,
and less and less often once nothing new is found."""
import gc
import inspect
import os
import sys

from .. import _core
from . import _keeps

_MOST_NODES = 20000
_LEAST_KEPT = 13  # of the last sixteen: one or two may well be in a variable
_SUMS_MOST = 4096  # of one chain
_reported = {"kept": False, "samples": 0, "every": 1}
_OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_sums = {}  # (name, code) of a variable: length of the chain of sums behind it at the last check


def _nodes(loss):
    """Number of operators that autograd has recorded for this loss, up to a limit."""
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
    """A copy. Before Python 3.13 reading the locals stores a dict in the frame, which would keep objects alive that the
    program deletes."""
    held = frame.f_locals
    found = dict(held)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.getrefcount(held) == 3:
        held.clear()  # no other reference to it exists
    return found


def _scopes(frame):
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return _locals(frame), frame.f_globals
    return (frame.f_globals,)


def _is_foreign(frame):
    """Neither code of Tare nor of torch. By the folders of these packages: a program may be in one with such a name."""
    torch = os.path.join(os.path.dirname(sys.modules["torch"].__file__), "")
    return not frame.f_code.co_filename.startswith((_OWN, torch))


def _held(frame):
    """(name, kind of name, its owner, value) of variables, and of the contents of objects and dicts among them."""
    for scope in _scopes(frame):
        kind = _keeps.GLOBAL if scope is frame.f_globals else _keeps.VARIABLE
        for name, value in list(scope.items()):
            yield name, kind, None, value
            is_dict = issubclass(type(value), dict)
            inner = value if is_dict else _core.torch_dict_of(value)
            if inner and dict.__len__(inner) < 1000:
                for key, one in list(dict.items(inner)):
                    if type(key) is str:
                        yield key, _keeps.KEY if is_dict else _keeps.ATTRIBUTE, value, one


def _tell(key, value, name, frame, frames, kind, owner):
    file, line = _keeps.place(frame, frames, name, kind, owner) or (None, 0)
    _core.fact(key, value, text=name, file=file, line=line)


def _tell_named(kept, frames, holders):
    """The name of the variable, the attribute or the entry that holds one of these, preferably with a known line."""
    wanted = set(map(id, holders))
    found = [(name, frame, frames, kind, owner) for frame in frames for name, kind, owner, value in _held(frame)
             if id(value) in wanted]
    if found:
        best = next((one for one in found if _keeps.place(one[1], frames, one[0], *one[3:])), found[0])
        _tell("torch.losses.kept", kept, *best)
    return bool(found)


def _tell_kept(losses):
    frames = list(filter(_is_foreign, _frames()))
    holders = losses[:1]
    for _ in range(2):  # in a list; or in a tuple or a dict that is in one
        about = gc.get_referrers(*holders)
        # No method of an object is called: it might print, or warn.
        holders = [one for one in about if one is not losses and one is not holders and
                   (issubclass(type(one), (list, dict, set, tuple)) or hasattr(type(one), "append"))]
        del about
        if _tell_named(len(losses), frames, holders):
            return
    _core.fact("torch.losses.kept", len(losses))


def _chain(node):
    """The number of chained sums: total += loss, step after step."""
    length, name = 0, node.name()
    while node is not None and length < _SUMS_MOST:
        length += 1
        node = next((one for one, _ in node.next_functions if one is not None and one.name() == name), None)
    return length


def _check_sums(tensor_type):
    """A sum of losses that is kept with its history grows by one addition a step; a sum within a model does not."""
    seen, frames = set(), list(filter(_is_foreign, _frames()))
    for frame in frames:
        for name, kind, owner, value in _held(frame):
            if not issubclass(type(value), tensor_type) or id(value) in seen:
                continue
            seen.add(id(value))
            node = value.grad_fn
            if node is None or not node.name().startswith("Add"):
                continue
            length, key = _chain(node), (name, frame.f_code)
            if length - _sums.get(key, length) >= _LEAST_KEPT:
                _reported["kept"] = True
                _tell("torch.losses.summed", length, name, frame, frames, kind, owner)
                return
            _sums[key] = length


def _sample(number, before, loss):
    """Whether the size of the graph was recorded."""
    kept = [one for one in before if one.grad_fn is not None]
    _core.counter("torch.losses.kept", float(len(kept)))
    if len(kept) >= _LEAST_KEPT and not _reported["kept"]:
        _reported["kept"] = True
        _tell_kept(kept)
    _reported["samples"] += 1
    tells = _reported["samples"] % _reported["every"] == 0  # at the 1st check, the 2nd, the 4th …
    if tells:
        _reported["every"] *= 2
        _core.fact("torch.graph.nodes", _nodes(loss))
        if not _reported["kept"]:
            _check_sums(sys.modules["torch"].Tensor)
        from . import _facts
        _facts.tell(loss)
    return tells


def attach(torch):
    _core.torch_graph_watch(_sample)
