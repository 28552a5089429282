"""Losses that are kept with all that made them, and how large a step's graph is. Looks at one backward in seventeen,
and less and less often once nothing new is to be said."""
import gc
import linecache
import sys

from .. import _core

_MOST_NODES = 20000
_LEAST_KEPT = 13  # of the last sixteen: one or two may well be in a variable
_told = {"kept": False, "looks": 0, "every": 1}


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


def _name_of(holder):
    """(name, code) of the variable or attribute that holds this list or dict."""
    for frame in _frames():
        if "/tare/" in frame.f_code.co_filename or "/torch/" in frame.f_code.co_filename:
            continue
        for scope in (frame.f_locals, frame.f_globals):
            for name, value in list(scope.items()):
                if value is holder:
                    return name, frame.f_code
                inner = getattr(value, "__dict__", None)
                if isinstance(inner, dict):
                    for attribute, held in list(inner.items()):
                        if held is holder:
                            return attribute, frame.f_code
    return None


def _line_that_keeps(name, code):
    """The line that adds to it, as the source has it; 0 when there is none to be found."""
    lines = linecache.getlines(code.co_filename)
    for word in (name + ".append(", name + ".extend(", name + " +=", name + "[", name + " = "):
        for number, line in enumerate(lines, 1):
            if word in line:
                return number
    return 0


def _tell_kept(losses):
    for holder in gc.get_referrers(losses[0]):
        if holder is losses or not isinstance(holder, (list, dict, set, tuple)) and not hasattr(holder, "append"):
            continue
        found = _name_of(holder)
        if found:
            name, code = found
            _core.mark("torch.kept %s at %s:%d" % (name, code.co_filename, _line_that_keeps(name, code)))
            return
    place = _core.torch_line_here()
    _core.mark("torch.kept ? at %s:%d" % (place[:2] if place else ("?", 0)))


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
        from . import _facts
        _facts.tell(loss)


def attach(torch):
    _core.torch_graph_watch(_look)
