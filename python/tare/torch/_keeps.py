"""Finds the line of a program that adds to a variable, an attribute or an entry of a dict. Read from the bytecode that
runs: it contains no other function's variable of the same name, and needs no source."""
import dis
import inspect
import re
import types

VARIABLE, GLOBAL, ATTRIBUTE, KEY = range(4)  # the kinds of names
_STORED_IN = {VARIABLE: ("FAST", "DEREF", "NAME"), GLOBAL: ("GLOBAL", "NAME"), ATTRIBUTE: ("ATTR", "METHOD"), KEY: ()}
_ADDS = frozenset(("append", "appendleft", "extend", "extendleft", "insert", "add", "add_", "update", "setdefault",
                   "push", "put"))
_VALUES = frozenset(("item", "detach", "tolist", "float"))  # their results have no graph
_FAST = re.compile("(LOAD|STORE)_FAST")  # Python 3.13 has two of them in one instruction


def _steps(code):
    """(instruction, what it names, line)"""
    line = code.co_firstlineno
    starts = dict(dis.findlinestarts(code))
    for one in dis.get_instructions(code):
        line = starts.get(one.offset) or line
        names = one.argval if isinstance(one.argval, tuple) and _FAST.match(one.opname) else (one.argval,)
        if len(names) > 1:
            yield from ((verb + "_FAST", name, line) for verb, name in zip(_FAST.findall(one.opname), names))
        else:
            yield one.opname, one.argval, line


def _statements(code):
    """The instructions up to where the value is stored, dropped or returned, or to a branch."""
    steps = []
    for step in _steps(code):
        steps.append(step)
        if step[0].startswith(("STORE_", "POP_TOP", "RETURN_", "FOR_ITER")) or "JUMP" in step[0]:
            yield steps
            steps = []


def _is(verb, step, name, kind):
    begin, _, rest = step[0].partition("_")
    if kind == KEY:
        return step[0] in ("LOAD_CONST", "STORE_SUBSCR") and begin == verb and (verb == "STORE" or step[1] == name)
    return begin == verb and rest.startswith(_STORED_IN[kind]) and step[1] == name


def _adds(steps, name, kind):
    """The line of this statement if it adds to what has this name; None: it does not."""
    loads = [i for i, step in enumerate(steps) if _is("LOAD", step, name, kind)]
    if not loads or any(type(step[1]) is str and step[1] in _VALUES for step in steps):
        return None
    last = steps[-1]
    after = 2 if kind == KEY else 1  # an entry is read before it is used
    called = any(step[0] in ("LOAD_ATTR", "LOAD_METHOD") and step[1] in _ADDS
                 for i in loads for step in steps[i + after:i + after + 1])
    read = kind != KEY or any(step[0] == "BINARY_SUBSCR" or step[0] == "BINARY_OP" for step in steps)
    if called or read and (_is("STORE", last, name, kind) or last[0] == "STORE_SUBSCR" and kind != KEY):
        return steps[loads[-1]][2]
    return None


def _inner(code):
    """The functions defined inside this one."""
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield one
            yield from _inner(one)


def _codes_in(scope, filename=None):
    """Of functions, and of methods of classes, that a namespace holds."""
    for value in list(scope.values()):
        value = inspect.unwrap(value) if type(value) is types.FunctionType else value
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        if type(value) is types.FunctionType and filename in (None, value.__code__.co_filename):
            yield value.__code__
            yield from _inner(value.__code__)
        elif filename and isinstance(value, type):
            yield from _codes_in(vars(value), filename)


def _groups(frame, frames, name, kind, owner):
    """Where to search: first where it is certainly the same variable, then where it probably is."""
    yield [frame.f_code]
    if kind == VARIABLE:
        yield list(_inner(frame.f_code))
        yield [one.f_code for one in frames if name in one.f_code.co_cellvars + one.f_code.co_freevars]
        return
    yield [one.f_code for one in frames if kind != GLOBAL or one.f_globals is frame.f_globals]
    if kind == ATTRIBUTE:
        yield [code for cls in type(owner).__mro__ for code in _codes_in(vars(cls))]
    yield list(_codes_in(frame.f_globals, frame.f_code.co_filename))


def place(frame, frames, name, kind, owner):
    """(file, line) of the one line that adds to it; None: there is none, or several might."""
    for codes in _groups(frame, frames, name, kind, owner):
        found = set()
        for code in set(codes):
            lines = (_adds(steps, name, kind) for steps in _statements(code))
            found.update((code.co_filename, line) for line in lines if line)
        if found:
            return found.pop() if len(found) == 1 else None
    return None
