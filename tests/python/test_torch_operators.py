"""Operators of real torch: recorded without a change to the program, and out of the way of its own profiler."""
import json
import sys

import pytest
import tare

torch = pytest.importorskip("torch")
if not torch.profiler.itt.is_available():
    pytest.skip("this torch has no ITT", allow_module_level=True)

MODEL = """
import torch
from tare._torch import operators
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
data = torch.randn(32, 8)

def step():
    model(data).sum().backward()
"""


def recorded(bench, code, options=("--ops",)):
    trace = bench.folder / "trace.tare"
    done = bench.call(bench.command, "run", "-q", "-f", "--no-sampling", *options, "-o", trace, "--", sys.executable,
                      bench.script(MODEL + code), hooked=True)
    done.report = json.loads(bench.call(bench.command, "report", "--json", trace).out)
    done.trace = trace
    return done


def calls(report):
    found = {}
    for row in report["operators"]:
        found[row["name"]] = found.get(row["name"], 0) + row["calls"]
    return found


def test_operators_of_a_training_step(bench):
    done = recorded(bench, """
operators.start()
for _ in range(5):
    step()
operators.stop()
step()
""")
    found = calls(done.report)
    assert found["aten::linear"] == 10 and found["aten::addmm"] == 10
    rows = {row["name"]: row for row in done.report["operators"]}
    node = rows["autograd::engine::evaluate_function: AddmmBackward0"]
    assert (node["calls"], node["paired"], node["pair"], node["unpaired"]) == (10, 10, "aten::addmm", None)
    assert node["direction"] == "backward"
    assert [row.name for row in tare.report(done.trace).operators] == [row["name"] for row in done.report["operators"]]
    assert done.err == ""  # torch warns of listeners that are left


def test_counts_are_those_of_torch_profiler(bench):
    done = recorded(bench, """
from torch.profiler import ProfilerActivity, profile
operators.start()
for _ in range(3):
    step()
operators.stop()
with profile(activities=[ProfilerActivity.CPU]) as theirs:
    for _ in range(3):
        step()
import json
print(json.dumps({row.key: row.count for row in theirs.key_averages()}))
""")
    assert calls(done.report) == json.loads(done.out.splitlines()[-1])


@pytest.mark.parametrize("profiler", [
    "torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])",
    "torch.autograd.profiler.profile()",
    "torch.autograd.profiler.emit_itt()",
])
def test_the_programs_own_profiler_goes_first(bench, profiler):
    done = recorded(bench, f"""
operators.start()
step()
with {profiler} as theirs:
    print(operators.why_not())
    step()
print(operators.why_not())
step()
if hasattr(theirs, "key_averages"):
    print({{row.key: row.count for row in theirs.key_averages()}}["aten::addmm"])
""")
    lines = done.out.splitlines()
    assert lines[:2] == ["the program's own torch.profiler is at work", "None"]
    itself = "emit_itt" in profiler  # which tells us, too
    assert itself or lines[2] == "2"
    assert calls(done.report)["aten::addmm"] == (6 if itself else 4)


def test_a_profiler_that_fails_to_start_changes_nothing(bench):
    done = recorded(bench, """
operators.start()
outer = torch.autograd.profiler.profile()
outer.__enter__()
try:
    with torch.autograd.profiler.profile():
        pass
except RuntimeError as error:
    print("raised")
outer.__exit__(None, None, None)
print(operators.why_not())
step()
""")
    assert done.out.splitlines()[-1] == "None"
    assert calls(done.report)["aten::addmm"] == 2


def test_without_a_listener_nothing_is_switched_on(bench):
    done = recorded(bench, """
print(operators.start(), operators.wanted(), operators.why_not())
with torch.profiler.profile():
    step()
""", options=())
    assert done.out.splitlines()[0] == \
        "False False no library of Tare's listens: start the program with tare run --ops"
    assert done.report["operators"] == []


def test_a_thread_asks_for_itself(bench):
    done = recorded(bench, """
import threading
operators.start()
thread = threading.Thread(target=step)
thread.start()
thread.join()
def asking():
    operators.start()
    step()
    operators.stop()
thread = threading.Thread(target=asking)
thread.start()
thread.join()
""")
    assert calls(done.report)["aten::addmm"] == 2
