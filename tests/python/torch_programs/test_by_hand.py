"""Training loops without a DataLoader: a step is a whole iteration, from one optimizer step to the next. Each loop
keeps its own clock; the steps in the trace are compared with that."""
import json
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

PROLOGUE = """
    import contextlib, json, time, torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    import tare
    torch.manual_seed(0)
    torch.set_num_threads(1)
    found = {}

    class Slow(nn.Module):  # a model whose forward takes its time
        def __init__(self, seconds):
            super().__init__()
            self.seconds, self.inner = seconds, nn.Linear(8, 8)
        def forward(self, x):
            time.sleep(self.seconds)
            return self.inner(x)

    def net():
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def load(seconds=0.02):
        time.sleep(seconds)
        return torch.randn(4, 8)

    class Clock:  # true: seconds of each iteration but the first, whose begin nobody can know
        def __init__(self):
            self.true, self.last = [], None
        def stepped(self):
            now = time.perf_counter()
            if self.last is not None:
                self.true.append(now - self.last)
            self.last = now
        def resumes(self):  # what came since the last step is no part of one
            self.last = time.perf_counter()

    def loop(function):
        clock, before = Clock(), tare._core.torch_counts()[0]
        tare.mark("begins " + function.__name__)
        function(clock)
        with torch.no_grad():
            net()(torch.randn(4, 8))  # whatever comes next, no step of this loop waits any more
        tare.mark("ends " + function.__name__)
        found[function.__name__] = [tare._core.torch_counts()[0] - before, clock.true]
        return function
"""

LOOPS = """
    def train(model, opt, x):
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()

    def made(model=None):
        model = model or net()
        return model, torch.optim.SGD(model.parameters(), lr=0.01)

    @loop
    def loaded_by_hand(clock):
        model, opt = made()
        for _ in range(8):
            train(model, opt, load())
            clock.stepped()

    @loop
    def from_a_generator(clock):
        def batches():
            for _ in range(8):
                yield load()
        model, opt = made()
        for x in batches():
            train(model, opt, x)
            clock.stepped()

    @loop
    def several_epochs(clock):
        model, opt = made()
        for _ in range(3):
            for _ in range(3):
                train(model, opt, load())
                clock.stepped()

    @loop
    def evaluated(clock):
        model, opt = made()
        for index in range(9):
            x = load()
            train(model, opt, x)
            clock.stepped()
            if index % 3 == 2:
                model.eval()
                with torch.no_grad():
                    for _ in range(3):
                        model(load(0.05))
                model.train()
                clock.resumes()

    @loop
    def evaluated_in_train_mode(clock):
        model, opt = made()
        for index in range(9):
            train(model, opt, load())
            clock.stepped()
            if index % 3 == 2:
                with torch.no_grad():
                    for _ in range(3):
                        model(load(0.05))
                clock.resumes()

    @loop
    def evaluated_by_a_loader(clock):
        model, opt = made()
        loader = DataLoader(TensorDataset(torch.randn(16, 8)), batch_size=4)
        for index in range(9):
            train(model, opt, load())
            clock.stepped()
            if index % 3 == 2:
                model.eval()
                with torch.inference_mode():
                    for x, in loader:
                        time.sleep(0.02)
                        model(x)
                model.train()
                clock.resumes()

    @loop
    def a_copy_evaluated(clock):
        model, opt = made()
        copy = net().eval()
        for index in range(9):
            train(model, opt, load())
            clock.stepped()
            if index % 4 == 3:
                with torch.no_grad():
                    for _ in range(3):
                        copy(load(0.05))
                clock.resumes()

    @loop
    def taught(clock):
        model, opt = made()
        teacher = Slow(0.01).eval()
        for _ in range(8):
            x = load(0.01)
            with torch.no_grad():
                target = teacher(x)
            opt.zero_grad()
            (model(x).sum() - target.sum()).backward()
            opt.step()
            clock.stepped()

    @loop
    def accumulated(clock):
        model, opt = made()
        for _ in range(5):
            for _ in range(3):
                model(load(0.01)).sum().backward()
            opt.step()
            opt.zero_grad()
            clock.stepped()

    @loop
    def two_optimizers(clock):
        maker, judge = net(), nn.Linear(3, 1)
        one, other = torch.optim.Adam(judge.parameters()), torch.optim.Adam(maker.parameters())
        for _ in range(6):
            x = load()
            judge(maker(x).detach()).mean().backward()
            one.step()
            judge(maker(x)).mean().backward()
            other.step()
            clock.stepped()

    @loop
    def closure(clock):
        model = net()
        opt = torch.optim.LBFGS(model.parameters(), max_iter=2)
        for _ in range(6):
            x = load()
            def again():
                opt.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                return loss
            opt.step(again)
            clock.stepped()

    @loop
    def scaled(clock):
        model, opt = made()
        scaler = torch.amp.GradScaler("cpu")
        for index in range(6):
            x = load()
            opt.zero_grad()
            scaler.scale(model(x).sum() * (float("inf") if index == 3 else 1)).backward()
            scaler.step(opt)
            scaler.update()
            clock.stepped()

    @loop
    def without_a_module(clock):
        weight = torch.randn(8, 3, requires_grad=True)
        opt = torch.optim.SGD([weight], lr=0.1)
        for _ in range(6):
            (load() @ weight).sum().backward()
            opt.step()
            clock.stepped()

    @loop
    def failing(clock):
        model, opt = made()
        for index in range(6):
            try:
                x = load()
                train(model, opt, x[:, :3] if index == 3 else x)
            except RuntimeError:
                continue
            clock.stepped()

    @loop
    def in_a_span(clock):
        model, opt = made()
        for _ in range(8):
            with tare.span("iteration"):
                train(model, opt, load())
            clock.stepped()

    @loop
    def in_parts(clock):
        model, opt = made()
        for _ in range(8):
            with tare.span("loading"):
                x = load()
            with tare.span("compute"):
                train(model, opt, x)
            clock.stepped()

    @loop
    def in_pieces(clock):
        model, opt = made()
        for _ in range(8):
            x = load()
            with tare.span("ahead"):
                y = model(x).sum()
            with tare.span("back"):
                y.backward()
            opt.step()
            clock.stepped()

    @loop
    def in_spans_of_epochs(clock):
        model, opt = made()
        for _ in range(4):
            with tare.span("my epoch"):
                for _ in range(3):
                    train(model, opt, load())
                    clock.stepped()

    @loop
    def updated_by_hand(clock):
        model = net()
        for index in range(8):
            x = load()
            if index:  # without an optimizer a step lasts from forward to forward
                clock.stepped()
            model.zero_grad()
            model(x).sum().backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.01 * p.grad
        clock.stepped()

    @loop
    def tensors_updated_by_hand(clock):
        weight = torch.randn(8, 3, requires_grad=True)
        for index in range(8):
            loss = (load() @ weight).sum()
            if index:
                clock.stepped()
            loss.backward()
            with torch.no_grad():
                weight -= 0.01 * weight.grad
            weight.grad = None
        clock.stepped()

    @loop
    def overfit_one_batch(clock):
        model, opt = made()
        x, = next(iter(DataLoader(TensorDataset(torch.randn(16, 8)), batch_size=4)))
        for _ in range(6):
            time.sleep(0.02)
            train(model, opt, x)
            clock.stepped()
    print(json.dumps(found))
"""

# Iterations, and those whose length the trace may not have: a step is the first of its kind there.
EXPECTED = {"loaded_by_hand": (8, 0), "from_a_generator": (8, 0), "several_epochs": (9, 0), "evaluated": (9, 0),
            "evaluated_in_train_mode": (9, 0), "evaluated_by_a_loader": (9, 0), "a_copy_evaluated": (9, 0),
            "taught": (8, 1), "accumulated": (5, 0), "two_optimizers": (6, 0), "closure": (6, 0), "scaled": (6, 0),
            "without_a_module": (6, 0), "failing": (5, 0), "in_a_span": (8, 0), "in_parts": (8, 0), "in_pieces": (8, 0),
            "in_spans_of_epochs": (12, 1), "updated_by_hand": (8, 0),
            "tensors_updated_by_hand": (8, 0), "overfit_one_batch": (6, 0)}
SPANS = {"iteration": 8, "loading": 8, "compute": 8, "ahead": 8, "back": 8, "my epoch": 4}


def steps_by_loop(events):
    """{loop: seconds of its steps}, from the raw stream: a step counts by the last index that it was given."""
    found, loop, open_steps = {}, None, []
    for line in events.splitlines():
        if line.startswith("#"):
            continue
        kind, name, *extras = line.split("\t")[3:]
        more = dict(word.split("=", 1) for word in extras if "=" in word)
        if kind == "mark" and name.startswith("begins "):
            loop = name.split()[1]
        elif kind == "begin" and name == "step":
            open_steps.append(None)
        elif kind == "number" and name in ("index", "(index)") and open_steps:
            open_steps[-1] = float(more["value"])
        elif kind == "end" and name == "step" and open_steps:
            index = open_steps.pop()
            if index is not None and index >= 0:
                found.setdefault(loop, []).append(int(more["dur_ns"]) / 1e9)
    return found


@pytest.fixture(scope="module")
def loops(tmp_path_factory):
    from conftest import Bench
    bench = Bench(tmp_path_factory.mktemp("by_hand"))
    done = bench.recorded(PROLOGUE + LOOPS)
    assert done.err == ""
    done.found = json.loads(done.out)
    done.steps = steps_by_loop(bench.call(bench.command, "report", "--events", bench.folder / "trace.tare").out)
    return done


def test_every_loop_is_checked(loops):
    assert sorted(loops.found) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_step_is_a_whole_iteration(loops, name):
    count, learned = EXPECTED[name]
    counted, true = loops.found[name]
    steps = loops.steps[name]
    assert counted == len(steps) == count
    assert len(true) == count - 1
    off = [abs(one - other) / other for one, other in zip(steps[1:], true)]
    # Between the end of a step and the program's own reading of the clock a busy machine may do anything.
    assert sorted(off)[-1 - learned - len(off) // 4] < 0.15, (steps, true)
    assert sum(steps[1:]) < 1.3 * sum(true) and sum(steps[1:]) > 0.7 * sum(true), (steps, true)


def test_with_operators_the_steps_are_the_same(bench):
    """A step ends inside of the operator that torch reports for an optimizer's step, which begins before its hooks."""
    code = PROLOGUE + LOOPS.split("    @loop\n    def several_epochs")[0] + """
    @loop
    def closure(clock):""" + LOOPS.split("def closure(clock):")[1].split("    @loop")[0] + """
    print(json.dumps(found))
"""
    trace = bench.folder / "trace.tare"
    done = bench.call(bench.command, "run", "-q", "-f", "--ops", "-o", trace, "--", sys.executable, bench.script(code),
                      hooked=True)
    found = json.loads(done.out)
    report = json.loads(bench.call(bench.command, "report", "--json", trace).out)
    assert [counted for counted, _ in found.values()] == [8, 8, 6]
    row, = report["steps"]
    assert (row["count"], row["unfinished"]) == (22, 0)
    true = sum(sum(seconds) for _, seconds in found.values()) * 1e9
    assert 0.7 * true < row["total_ns"] < 1.5 * true  # first steps are in the one and not in the other


def test_spans_of_the_program_stay_whole(loops):
    calls = {}
    for row in loops.report.spans:
        if row.name in SPANS:
            calls[row.name] = calls.get(row.name, 0) + row.calls
    assert calls == SPANS


def test_tables_have_the_same_steps(loops):
    row, = [row for row in loops.report.steps if row.name == "step"]
    assert row.count == sum(count for count, _ in EXPECTED.values())
    assert row.count == sum(row.calls for row in loops.report.spans if row.kind == "step")
    assert row.unfinished == 0
