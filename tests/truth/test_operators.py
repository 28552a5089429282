"""Operators of a training whose FLOPs are known by arithmetic, under --shapes."""
import json

import pytest
from truth import Figure, bracketed, exact, relative

FIGURES = [
    Figure("run:operators[].calls", "calls of an operator, without those of the inspected step", "the program's own count",
           exact),
    Figure("run:operators[].flops", "floating-point operations of these calls", "2mnk by hand", exact),
    Figure("run:operators[].flops_per_second", "these over the total time of the calls", "2mnk by hand and `total_ns`",
           relative(1e-6)),
    Figure("run:modules[].calls", "calls of a module", "the program's own count", exact),
    Figure("run:steps[].numbers[].sum (flops)", "floating-point operations of the inspected step", "2mnk by hand", exact),
    Figure("run:steps[].numbers[].per_second (flops)", "estimate: these over the mean duration of the other steps",
           "2mnk by hand and the program's own clock", bracketed(0.05)),
]
STEPS = 12
PROGRAM = """
import json, time, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 16))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
times, clock = [], time.perf_counter_ns
for i in range(%d):
    time.sleep(0.01)
    x = torch.randn(64, 256)
    before = clock()
    loss = model(x).square().mean()
    if not times:
        times.append((before, clock()))
    opt.zero_grad()
    loss.backward()
    before = clock()
    opt.step()
    times.append((before, clock()))
print(json.dumps(times))
""" % STEPS


def test_operators_and_their_flops(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(PROGRAM, run=("--shapes",))
    times, report = json.loads(done.out), done.json
    forward = 2 * 64 * 256 * 512 + 2 * 64 * 512 * 16
    backward = forward + 2 * 64 * 512 * 16  # of all weights, and of the second layer's input
    rows = {row["name"]: row for row in report["operators"]}
    for name, calls, flops in (("aten::addmm", 2, forward), ("aten::mm", 3, backward)):
        row = rows[name]
        truth.check("run:operators[].calls", row["calls"], calls * (STEPS - 1))
        truth.check("run:operators[].flops", row["flops"], flops * (STEPS - 1))
        truth.check("run:operators[].flops_per_second", row["flops_per_second"], 1e9 * row["flops"] / row["total_ns"])
    for module in report["modules"]:
        truth.check("run:modules[].calls", module["calls"], STEPS)
    [step] = report["steps"]
    [flops] = [number for number in step["numbers"] if number["name"] == "flops"]
    assert flops["estimated"] and flops["inspected"] == 1
    truth.check("run:steps[].numbers[].sum (flops)", flops["sum"], forward + backward)
    # The third step is the inspected one: from the second call of the optimizer to the third.
    others = [at for at in range(STEPS) if at != 2]
    longest = sum(times[at + 1][1] - times[at][0] for at in others) / len(others)
    shortest = sum(times[at + 1][0] - times[at][1] for at in others) / len(others)
    truth.check("run:steps[].numbers[].per_second (flops)", flops["per_second"],
                (1e9 * (forward + backward) / longest, 1e9 * (forward + backward) / shortest))
