"""The line that adds to a variable, by the bytecode of the function that runs. The truth is a comment in its source."""
import sys

import pytest

from tare.torch import _keeps

# Each has the same names in another function before it, and one line that keeps a loss.
PROGRAMS = {
    "variable": ("total", _keeps.VARIABLE, """
def before(total, loss):
    total += loss.item()
def train(loss, stop):
    total = 0
    total += loss  # here
    stop()
    return total
train(1, stop)
"""),
    "no_blanks": ("tot", _keeps.GLOBAL, "tot=0\ntot=tot+1;stop()  # here\n"),
    "the_other_way": ("tot", _keeps.GLOBAL, "tot=0\ntot = (1 +\n  tot)  # here\nstop()\n"),
    "first_then_sum": ("tot", _keeps.VARIABLE, """
def train(loss):
    tot = None
    for one in range(3):
        if tot is None:
            tot = loss
        else:
            tot = tot + loss  # here
    stop()
train(1)
"""),
    "chosen": ("tot", _keeps.VARIABLE, """
def train(loss, tot=None):
    tot = loss if tot is None else tot + loss  # here
    stop()
train(1)
"""),
    "list": ("losses", _keeps.VARIABLE, """
def evaluate(losses, loss):
    losses.append(loss.item())
def train(loss, losses):
    losses.append(  # here
        loss)
    mean = sum(losses) / len(losses)
    stop()
train(1, [])
"""),
    "numbers_beside": ("losses", _keeps.GLOBAL, """
losses = []
if not losses:
    losses.append(1)  # here
else:
    losses.append(losses[0].item())
stop()
"""),
    "longer": ("losses", _keeps.VARIABLE, """
def train(loss, losses):
    losses += [loss]  # here
    stop()
train(1, [])
"""),
    "by_index": ("losses", _keeps.VARIABLE, """
def train(loss, losses):
    for i in range(3):
        losses[i] = loss  # here
    stop()
train(1, {})
"""),
    "records": ("log", _keeps.GLOBAL, """
log = []
def train(loss, step):
    log.append({"loss": loss, "step": step})  # here
    stop()
train(1, 2)
"""),
    "caller_adds": ("log", _keeps.GLOBAL, """
log = []
def other(log):
    log.append(2)
def step():
    stop()
    return 1
for _ in range(2):
    log.append(step())  # here
"""),
    "helper_adds": ("log", _keeps.GLOBAL, """
log = []
def note(loss):
    log.append(loss)  # here
def other():
    log = []
    log.append(1)
def train():
    note(1)
    stop()
train()
"""),
    "closure": ("log", _keeps.VARIABLE, """
def train():
    log = []
    def note(loss):
        log.append(loss)  # here
    note(1)
    stop()
train()
"""),
    "attribute": ("total", _keeps.ATTRIBUTE, """
class Trainer:
    total = 0
    def fit(self):
        for _ in range(2):
            self.total += self.step()  # here
    def step(self):
        stop()
        return 1
Trainer().fit()
"""),
    "meter": ("sum", _keeps.ATTRIBUTE, """
class Meter:
    def __init__(self):
        self.sum = 0
    def update(self, value, n):
        self.sum += value * n  # here
        self.mean = self.sum / n
def train(owner):
    owner.update(1, 2)
    stop()
train(Meter())
"""),
    "entry": ("loss", _keeps.KEY, """
def train(loss, sums):
    sums["loss"] += loss  # here
    stop()
train(1, {"loss": 0})
"""),
    "list_in_a_dict": ("loss", _keeps.KEY, """
def train(loss, sums):
    sums["loss"].append(loss)  # here
    stop()
train(1, {"loss": []})
"""),
    "two_lines": ("log", _keeps.GLOBAL, "log = []\nlog.append(1)\nlog.append(2)\nstop()\n"),
    "only_numbers": ("log", _keeps.GLOBAL, "log = []\nfor x in ():\n    log.append(x.item())\nstop()\n"),
    "not_added_to": ("log", _keeps.GLOBAL, "log = []\nn = len(log)\nstop()\n"),
}


@pytest.mark.parametrize("which", PROGRAMS)
def test_the_line_that_adds(which):
    name, kind, text = PROGRAMS[which]
    found = []

    def stop():
        frames, frame = [], sys._getframe(1)
        while frame.f_code.co_filename == "program.py":
            frames.append(frame)
            frame = frame.f_back
        held = frames[0].f_locals
        owner = held.get("owner") or held.get("self")
        found.append(_keeps.place(frames[0], frames, name, kind, owner))

    exec(compile(text, "program.py", "exec"), {"stop": stop, "__name__": "program"})
    expected = [number for number, line in enumerate(text.splitlines(), 1) if "# here" in line]
    if not expected:
        assert found == [None]
        return
    assert set(found) == {("program.py", expected[0])}
