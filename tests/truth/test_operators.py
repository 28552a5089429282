"""Operators and modules: of a training whose FLOPs are known by arithmetic, under --shapes, and of one whose operators,
modules and backward pass sleep and read the clock themselves."""
import json
import math
import statistics

import pytest
from truth import Figure, bracketed, exact, relative

CLOCK = "`time.perf_counter_ns()` in the program, just inside and just outside of each call"
TIME, QUANTILE = bracketed(0.005), bracketed(0.02)
SUMS = "arithmetic on the program's own times"
FIGURES = [
    Figure("run:operators[].calls", "calls of an operator, without those of the inspected step",
           "the program's own count", exact),
    Figure("run:operators[].flops", "floating-point operations of these calls", "2mnk by hand", exact),
    Figure("run:operators[].flops_per_second", "these over the total time of the calls", "2mnk by hand and `total_ns`",
           relative(1e-6)),
    Figure("run:operators[].bytes_per_second_estimate", "bytes of the tensors over the total time of the calls",
           "sizes by hand and `total_ns`", relative(1e-6)),
    Figure("run:operators[].total_ns", "time of all calls of an operator", CLOCK, TIME),
    Figure("run:operators[].self_ns", "total less the operators inside, less the recorder's cost", CLOCK, TIME),
    Figure("run:operators[].raw_self_ns", "total less the operators inside", CLOCK, TIME),
    Figure("run:operators[].min_ns", "shortest call", CLOCK, TIME),
    Figure("run:operators[].mean_ns", "mean of all calls", CLOCK, TIME),
    Figure("run:operators[].max_ns", "longest call", CLOCK, TIME),
    Figure("run:operators[].p50_ns", "median of all calls", CLOCK + ", sorted", QUANTILE),
    Figure("run:operators[].p95_ns", "95th percentile of all calls", CLOCK + ", sorted", QUANTILE),
    Figure("run:operators[].p99_ns", "99th percentile of all calls", CLOCK + ", sorted", QUANTILE),
    Figure("run:operators[].share", "self time, of that of all operators",
           SUMS + "; others took what is left of the loop", bracketed(0.005)),
    Figure("run:operators[].step_self_ns", "self time inside of steps", CLOCK + "; some calls are in no step", TIME),
    Figure("run:operators[].per_step_ns", "that, for each step", CLOCK + ", over the program's own count", TIME),
    Figure("run:operators[].step_share", "that, of the steps' time", SUMS, TIME),
    Figure("run:operators[].paired", "calls whose counterpart in the other direction is known",
           "the program's own count of calls with gradients", exact),
    Figure("run:operators[].pair_total_ns", "time of the counterparts",
           "`time.perf_counter_ns()` in the backward function and around `backward()`", TIME),
    Figure("run:operators[].recomputed", "of the calls: forward once more in the backward pass",
           "the program's own count of checkpointed calls", exact),
    Figure("run:modules[].calls", "calls of a module", "the program's own count", exact),
    Figure("run:modules[].total_ns", "time of all calls of a module", CLOCK, TIME),
    Figure("run:modules[].self_ns", "total less the modules inside", CLOCK, TIME),
    Figure("run:modules[].operators_ns", "of that: self time of operators", CLOCK, TIME),
    Figure("run:modules[].share", "total, of all modules at the top", SUMS, TIME),
    Figure("run:modules[].backward_calls", "nodes of the backward pass whose forward operator ran in it or below",
           "walk over `grad_fn` in the program, times its steps", exact),
    Figure("run:modules[].backward_ns", "their time",
           "`time.perf_counter_ns()` in the backward function and around `backward()`", TIME),
    Figure("run:modules[].operators[].calls", "calls of an operator in a module", "the program's own count", exact),
    Figure("run:modules[].operators[].total_ns", "their time", CLOCK, TIME),
    Figure("run:modules[].operators[].self_ns", "total less the operators inside", CLOCK, TIME),
    Figure("run:steps[].numbers[].sum (flops)", "floating-point operations of the inspected step", "2mnk by hand",
           exact),
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
        truth.check("run:operators[].flops_per_second", row["flops_per_second"],
                    1e9 * flops * (STEPS - 1) / row["total_ns"])
        truth.check("run:operators[].bytes_per_second_estimate", row["bytes_per_second_estimate"],
                    1e9 * row["bytes_estimate"] / row["total_ns"])
    for module in report["modules"]:
        truth.check("run:modules[].calls", module["calls"], STEPS)
    [step] = report["steps"]
    [flops] = [number for number in step["numbers"] if number["name"] == "flops"]
    assert flops["estimated"] and flops["inspected"] == 1
    truth.check("run:steps[].numbers[].sum (flops)", flops["sum"], forward + backward)
    # The third step is the inspected one: from the second call of the optimizer to the third. The first is partial: it
    # begins with its forward.
    assert step["partial"] == 1
    others = [at for at in range(STEPS) if at not in (0, 2)]
    longest = sum(times[at + 1][1] - times[at][0] for at in others) / len(others)
    shortest = sum(times[at + 1][0] - times[at][1] for at in others) / len(others)
    truth.check("run:steps[].numbers[].per_second (flops)", flops["per_second"],
                (1e9 * (forward + backward) / longest, 1e9 * (forward + backward) / shortest))


# Times are pairs: inside and outside. An operator of Python code sleeps, so that what torch adds around it is small.
TIMED = """
import json, time, torch
clock = time.perf_counter_ns
torch.set_num_threads(1)
told = {name: [] for name in ("Inner", "Inner in Outer", "Outer", "Outer alone", "child", "model", "backward", "steps")}

def slept(seconds):
    before = clock()
    time.sleep(seconds)
    return clock() - before

class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, i):
        Inner.took = slept(0.004 + 0.0008 * (i % 5))
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        Inner.backward_took = slept(0.006)
        return grad, None

def inner(name, x, i):
    before = clock()
    result = Inner.apply(x, i)
    told[name].append((Inner.took, clock() - before))
    return result

class Outer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, i):
        before = clock()
        told["Outer alone"].append(slept(0.005))
        for _ in range(2):
            inner("Inner in Outer", x, i)
        Outer.took = clock() - before
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        return grad, None

class Child(torch.nn.Module):
    def forward(self, x, i):
        before = clock()
        x = inner("Inner", x, i)
        self.took = clock() - before
        return x

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.child = Child()
        self.weight = torch.nn.Parameter(torch.ones(8))
    def forward(self, x, i):
        begun = clock()
        time.sleep(0.003)
        before = clock()
        x = Outer.apply(x * self.weight, i)
        told["Outer"].append((Outer.took, clock() - before))
        before = clock()
        x = self.child(x, i)
        told["child"].append((self.child.took, clock() - before))
        self.took = clock() - begun
        return x

def nodes(node, seen):
    if node is not None and node not in seen:
        seen.add(node)
        for inside, _ in node.next_functions:
            nodes(inside, seen)
    return seen

x = torch.ones(4, 8)
with torch.no_grad():
    for i in range(3):  # in no step
        inner("Inner", x, i)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(20):
    before = clock()
    result = model(x, i)
    told["model"].append((model.took, clock() - before))
    if not told["steps"]:
        told["steps"].append((before, clock()))
        told["nodes"] = sorted(node.name() for node in nodes(result.grad_fn, set()))
    optimizer.zero_grad()
    loss = result.sum()
    before = clock()
    loss.backward()
    told["backward"].append((Inner.backward_took, clock() - before))
    before = clock()
    optimizer.step()
    told["steps"].append((before, clock()))
print(json.dumps(told))
"""


def sides(pairs):
    return [low for low, _ in pairs], [high for _, high in pairs]


def between(pairs, of=sum):
    low, high = sides(pairs)
    return of(low), of(high)


def at(share, side):
    """Any common definition of a quantile lies between its two sides."""
    def of(values):
        place = (len(values) - 1) * share
        return sorted(values)[(math.floor, math.ceil)[side](place)]
    return of


def test_times_of_operators_and_modules(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(TIMED, run=("--ops",))
    own, report = json.loads(done.out), done.json
    # The three calls in no step are in no phase either: a row of their own.
    rows = {(row["name"], row["phase"]): row for row in report["operators"]}
    inner, outer, first = rows["Inner", "forward"], rows["Outer", "forward"], rows["Inner", None]
    early, child = own["Inner"][:3], own["Inner"][3:]
    both = child + own["Inner in Outer"]
    alone = (sum(own["Outer alone"]), between(own["Outer"])[1] - between(own["Inner in Outer"])[0])
    for row, pairs, own_time in ((inner, both, between(both)), (outer, own["Outer"], alone),
                                 (first, early, between(early))):
        truth.check("run:operators[].calls", row["calls"], len(pairs))
        for key, of in (("total_ns", sum), ("min_ns", min), ("max_ns", max), ("mean_ns", statistics.mean)):
            truth.check("run:operators[]." + key, row[key], between(pairs, of))
        low, high = sides(pairs)
        for key, share in (("p50_ns", 0.5), ("p95_ns", 0.95), ("p99_ns", 0.99)):
            truth.check("run:operators[]." + key, row[key], (at(share, 0)(low), at(share, 1)(high)))
        for key in ("self_ns", "raw_self_ns"):
            truth.check("run:operators[]." + key, row[key], own_time)
    # Shares of all operators: these and the backward pass slept most of the time, the rest cannot exceed the loop's.
    begun, ended = own["steps"][0][0], own["steps"][-1][1]
    known = between(both)[0] + alone[0] + between(early)[0] + between(own["backward"])[0]
    everything = (known, ended - begun + between(early)[1])
    for row, own_time in ((inner, between(both)), (outer, alone)):
        truth.check("run:operators[].share", row["share"], (own_time[0] / everything[1], own_time[1] / everything[0]))
        for key in ("step_self_ns", "per_step_ns"):
            steps = 20 if key == "per_step_ns" else 1
            truth.check("run:operators[]." + key, row[key], (own_time[0] / steps, own_time[1] / steps))
        truth.check("run:operators[].step_share", row["step_share"],
                    (own_time[0] / (ended - begun), own_time[1] / (own["steps"][-1][0] - own["steps"][0][1])))
    truth.check("run:operators[].step_self_ns", first["step_self_ns"], (0, 0))
    assert sum(row["share"] for row in report["operators"]) == pytest.approx(1, abs=1e-6)
    # Without gradients, and inside of another function, a call has no counterpart.
    truth.check("run:operators[].paired", [inner["paired"], outer["paired"], first["paired"]], [20, 20, 0])
    truth.check("run:operators[].pair_total_ns", inner["pair_total_ns"], between(own["backward"]))
    back = rows["autograd::engine::evaluate_function: InnerBackward", "backward"]
    truth.check("run:operators[].pair_total_ns", back["pair_total_ns"], between(child))
    truth.check("run:operators[].recomputed", inner["recomputed"], 0)

    [model, below] = report["modules"]
    assert (model["path"], below["path"]) == ("Model", "child")
    truth.check("run:modules[].calls", [model["calls"], below["calls"]], [20, 20])
    truth.check("run:modules[].total_ns", model["total_ns"], between(own["model"]))
    truth.check("run:modules[].total_ns", below["total_ns"], between(own["child"]))
    truth.check("run:modules[].self_ns", model["self_ns"], (between(own["model"])[0] - between(own["child"])[1],
                                                            between(own["model"])[1] - between(own["child"])[0]))
    truth.check("run:modules[].self_ns", below["self_ns"], between(own["child"]))
    truth.check("run:modules[].operators_ns", below["operators_ns"], between(child))
    truth.check("run:modules[].operators_ns", model["operators_ns"],
                (between(own["Outer"])[0], between(own["model"])[1] - between(own["child"])[0] - 20 * 0.003e9))
    truth.check("run:modules[].share", model["share"], (1, 1))
    truth.check("run:modules[].share", below["share"], (between(own["child"])[0] / between(own["model"])[1],
                                                        between(own["child"])[1] / between(own["model"])[0]))
    # All nodes of the graph but the one that adds to the parameter's gradient came of an operator of the model.
    assert sum("AccumulateGrad" in name for name in own["nodes"]) == 1
    truth.check("run:modules[].backward_calls", model["backward_calls"], 20 * (len(own["nodes"]) - 1))
    truth.check("run:modules[].backward_calls", below["backward_calls"], 20)
    for row in (model, below):
        truth.check("run:modules[].backward_ns", row["backward_ns"], between(own["backward"]))
    inside = {row["name"]: row for row in model["operators"] if row["direction"] == "forward"}
    for row, pairs, own_time in ((inside["Inner"], own["Inner in Outer"], between(own["Inner in Outer"])),
                                 (inside["Outer"], own["Outer"], alone),
                                 ({row["name"]: row for row in below["operators"]}["Inner"], child, between(child))):
        truth.check("run:modules[].operators[].calls", row["calls"], len(pairs))
        truth.check("run:modules[].operators[].total_ns", row["total_ns"], between(pairs))
        truth.check("run:modules[].operators[].self_ns", row["self_ns"], own_time)


CHECKPOINTED = """
import torch
from torch.utils.checkpoint import checkpoint
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(4)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(%d):
    x = torch.ones(8, 32, requires_grad=True)
    x = checkpoint(model[0], x, use_reentrant=False)
    x = checkpoint(model[1:3], x, use_reentrant=False)
    optimizer.zero_grad()
    model[3](x).sum().backward()
    optimizer.step()
""" % STEPS


def test_recomputed_operators(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    rows = bench.measured(CHECKPOINTED, run=("--shapes",)).json["operators"]
    # Three of the four layers are checkpointed.
    for phase, again in (("forward", 0), ("backward", 3)):
        [row] = [row for row in rows if row["name"] == "aten::addmm" and row["phase"] == phase]
        truth.check("run:operators[].calls", row["calls"], (again or 4) * (STEPS - 1))
        truth.check("run:operators[].recomputed", row["recomputed"], again * (STEPS - 1))
