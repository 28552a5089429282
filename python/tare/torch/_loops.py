"""Finds the program's loops in which optimizers step, from its bytecode: several steps of one optimizer for each step
of another are an inner loop, or iterations of the same loop in which the other one steps occasionally."""
import sys
import weakref

from .. import _core

_DEPTH = 64
_PARAMETERS = 64
_GO_ON_ELSEWHERE = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "RETURN_", "RAISE_", "RERAISE")
_SAME, _OUTER, _INNER, _APART = range(4)  # as in core/torch_rounds.c

_loops_of = {}
_seen = (lambda: None, ())  # weak reference to a model, versions of its parameters


def _lines(place):
    return [call[:2] for call in place]


def _where(last):
    """Code, line and position of each active call, the outermost first; `last` itself if it is the same place. (The
    position of one call may vary by an instruction: interpreters specialize code that runs often.)"""
    frame, calls = sys._getframe(1), []
    while frame is not None and len(calls) < _DEPTH:
        calls.append((frame.f_code, frame.f_lineno, frame.f_lasti))
        frame = frame.f_back
    calls.reverse()
    return last if last is not None and _lines(last) == _lines(calls) else tuple(calls)


def _jumps(code):
    """(from, to) of all jumps that are not made for an exception: what handles one may be laid out behind the loop that
    it goes back to."""
    import dis
    instructions = list(dis.get_instructions(code))
    index = {one.offset: i for i, one in enumerate(instructions)}
    jumping = set(dis.hasjrel) | set(dis.hasjabs)
    jumps, reached, pending = [], set(), [0]
    while pending:
        i = pending.pop()
        if i in reached or i >= len(instructions):
            continue
        reached.add(i)
        one = instructions[i]
        if one.opcode in jumping and not one.opname.startswith("SETUP_"):
            pending.append(index[one.argval])
            jumps.append(one)
        if not one.opname.startswith(_GO_ON_ELSEWHERE):
            pending.append(i + 1)
    # A backward jump without a check for signals waits for another coroutine.
    return [(one.offset, one.argval) for one in jumps if "NO_INTERRUPT" not in one.opname]


def _loops(code):
    """(first, last) position of each loop."""
    if code not in _loops_of:
        last = {}
        for offset, target in _jumps(code):
            if target < offset:
                last[target] = max(offset, last.get(target, 0))
        _loops_of[code] = list(last.items())
    return _loops_of[code]


def _around(call):
    code, _, position = call
    return {loop for loop in _loops(code) if loop[0] <= position <= loop[1]}


def _compare(often, now):
    """Compares the loops of the second place with those of the first, at which steps are more frequent."""
    same = 0
    while same < min(len(often), len(now)) and often[same][:2] == now[same][:2]:
        same += 1
    often, now = often[same:], now[same:]
    while min(len(often), len(now)) > 1 and often[-1][:2] == now[-1][:2]:  # the calls that led from the step to here
        often, now = often[:-1], now[:-1]
    if not often or not now:  # at one place, in turns
        return _APART
    common = _around(often[0]) & _around(now[0]) if often[0][0] is now[0][0] else set()
    inner, outer = (sum(len(_around(call)) for call in calls) - len(common) for calls in (often, now))
    return _APART if inner and outer else _OUTER if inner else _INNER if outer else _SAME


def _parameters(module, found):
    """The first ones of a module and its children, without a call of its methods, which may be the program's own."""
    held = _core.torch_dict_of(module) or {}
    found += [p for p in (held.get("_parameters") or {}).values() if p is not None and p.requires_grad]
    for child in (held.get("_modules") or {}).values():
        if child is not None and len(found) < _PARAMETERS:
            _parameters(child, found)
    return found


def _changed(model):
    """1: parameters or their gradients were replaced since the last call, and not by an optimizer."""
    global _seen
    held = _parameters(model, [])
    versions = tuple(p._version for p in held)
    (known, before), _seen = _seen, (weakref.ref(model), versions)
    if known() is not model or not held:
        return 0
    return int(before != versions or all(p.grad is None for p in held))


def attach(torch):
    _core.torch_loops(_where, _compare, _changed)
