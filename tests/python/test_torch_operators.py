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
from tare.torch import operators
operators.stop()  # they are on from the import of torch
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
step()  # makes the gradients
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
    assert lines[0] != "None" and lines[1] == "None"
    itself = "emit_itt" in profiler  # which tells us, too
    assert itself or lines[2] == "2"
    assert calls(done.report)["aten::addmm"] == (6 if itself else 4)


def test_a_profiler_inside_another_one(bench):
    done = recorded(bench, """
operators.start()
outer = torch.autograd.profiler.profile()
outer.__enter__()
with torch.autograd.profiler.profile():
    pass
print(operators.why_not())
outer.__exit__(None, None, None)
print(operators.why_not())
step()
""")
    inside, after = done.out.splitlines()
    assert (inside, after) == ("the program's own torch.profiler is at work", "None")
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


LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train_step():
    loss = model(data).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_modules_are_named_by_their_path(bench):
    done = recorded(bench, """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.ModuleList([torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)])

    def forward(self, batch):
        for layer in self.body:
            batch = layer(batch).relu()
        return batch

class Failing(torch.nn.Module):
    def forward(self, batch):
        raise KeyError("no")

operators.start()
net = Net()
for _ in range(4):
    net(data).sum().backward()
try:
    Failing()(data)
except KeyError:
    net(data)
""")
    modules = {row["path"]: row for row in done.report["modules"]}
    assert list(modules) == ["Net", "body.0", "body.1", "Failing"] or set(modules) == {"Net", "body.0", "body.1",
                                                                                       "Failing"}
    assert modules["Net"]["calls"] == 5 and modules["body.1"]["calls"] == 5
    assert modules["body.1"]["parent"] == list(modules).index("Net")
    for path in ("body.0", "body.1"):
        own = {(row["name"], row["direction"]): row["calls"] for row in modules[path]["operators"]}
        assert own["aten::addmm", "forward"] == 5
        assert own["autograd::engine::evaluate_function: AddmmBackward0", "backward"] == 4
    relu = next(row for row in done.report["operators"] if row["name"] == "aten::relu")
    assert relu["module"] == "Net"


def test_shapes_and_flops_are_those_of_torchs_own_counter(bench):
    done = recorded(bench, LOOP + """
operators.start()
for _ in range(6):
    train_step()
operators.stop()
from torch.utils.flop_counter import FlopCounterMode
with FlopCounterMode(display=False) as counter:
    train_step()
import json
print(json.dumps({str(key): value for key, value in counter.get_flop_counts()["Global"].items()}))
""", options=("--shapes",))
    theirs = json.loads(done.out.splitlines()[-1])
    rows = done.report["operators"]
    steps = 5  # one of the six was looked at
    for name in ("mm", "addmm"):
        mine = [row for row in rows if row["name"] == "aten::" + name]
        assert sum(row["flops"] for row in mine) == steps * theirs["aten." + name]
        assert all(row["flops_per_second"] > 0 and row["shapes_absent"] is None for row in mine)
    addmm = next(row for row in rows if row["name"] == "aten::addmm")
    assert "f32[16] f32[32,8] f32[8,16]" in addmm["shapes"]
    first, second = (16 + 32 * 8 + 8 * 16 + 32 * 16) * 4, (4 + 32 * 16 + 16 * 4 + 32 * 4) * 4
    assert addmm["bytes_estimate"] == steps * (first + second)
    linear = next(row for row in rows if row["name"] == "aten::linear")
    assert linear["flops"] is None and "the operators it calls have their own figures" in linear["shapes_absent"]
    relu = next(row for row in rows if row["name"] == "aten::relu")
    assert relu["flops"] is None and relu["bytes_estimate"] > 0
    assert done.report["run"]["peak_flops_per_second"] > 1e8
    assert done.report["run"]["peak_bytes_per_second"] > 1e7
    for row in rows:
        for name in ("of_peak_flops", "of_peak_bytes"):
            assert row[name] is None or 0 <= row[name] <= 1, row
    assert all(0 < row["of_peak_flops"] <= 1 for row in rows if row["name"] in ("aten::mm", "aten::addmm"))


def test_calls_made_again_in_the_backward_pass_stand_apart(bench):
    done = recorded(bench, LOOP.replace("model(data)", "again(model, data, use_reentrant=False)") + """
operators.start()
from torch.utils.checkpoint import checkpoint as again
for _ in range(5):
    train_step()
""", options=("--shapes",))
    rows = [row for row in done.report["operators"] if row["name"] == "aten::addmm"]
    forward = next(row for row in rows if row["direction"] != "backward")
    backward = next(row for row in rows if row["direction"] == "backward")
    assert (forward["calls"], forward["recomputed"]) == (8, 0)
    assert backward["recomputed"] == backward["calls"] > 0


@pytest.mark.parametrize("loop, reason", [
    ("step()", "the optimizer was called 0 times, and it takes 3"),
    ("train_step()", "the optimizer was called 1 times, and it takes 3"),
])
def test_shapes_that_could_not_be_taken_say_why(bench, loop, reason):
    done = recorded(bench, LOOP + "operators.start()\n" + loop, options=("--shapes",))
    assert {row["shapes_absent"] for row in done.report["operators"]} == {reason}
    assert {row["flops"] for row in done.report["operators"]} == {None}
