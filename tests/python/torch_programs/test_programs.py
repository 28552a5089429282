"""Programs that use torch, under `tare run`: workers, compiled models, parts of a run, ranks."""
import json
import os
import sys

import pytest

import tare

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

PROLOGUE = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(32, 8), torch.randint(0, 3, (32,)))
    loss_fn = nn.CrossEntropyLoss()
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(loader, epochs):
        for _ in range(epochs):
            for x, y in loader:
                opt.zero_grad()
                loss_fn(model(x), y).backward()
                opt.step()
"""


def rows(report, name):
    return [row for row in report.spans if row.name == name]


def calls(report, name):
    return sum(row.calls for row in rows(report, name))


def counter(report, name):
    found = [row for row in report.counters if row.name == name]
    return found[0] if found else None


# ---- what is seen --------------------------------------------------------------------------------------

def test_nothing_changes_for_the_program(bench):
    code = PROLOGUE + """
    train(DataLoader(data, batch_size=8, shuffle=True), 2)
    import sys
    print(sum(float(p.sum()) for p in model.parameters()))
    print(torch.__spec__.loader.__class__.__name__, vars(torch.__spec__.loader).keys())
    print(nn.Module.__call__.__qualname__, nn.Module.__call__ is nn.Module._wrapped_call_impl)
    print([type(finder).__name__ for finder in sys.meta_path if "Watch" in type(finder).__name__])
    """
    plain, done = bench.python(code), bench.recorded(code)
    assert done.out == plain.out
    assert done.err == plain.err


def test_a_program_without_torch_pays_nothing(bench):
    done = bench.recorded("import sys; print('torch' in sys.modules, 'tare' in sys.modules)")
    assert done.out == "False False\n"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_tell_what_they_do(bench, method):
    done = bench.recorded(PROLOGUE + f"""
    if __name__ == "__main__":
        train(DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context="{method}"), 2)
    """)
    assert sum(row.count for row in done.report.steps) == 8
    assert calls(done.report, "load samples") == 8  # all of it in workers
    names = {thread.name for thread in done.report.threads}
    if method == "fork":  # one that is spawned has had another name before, and that may stay
        assert {"loader worker 0", "loader worker 1"} <= names
    assert [row.value for row in done.report.facts if row.key == "torch.loader.workers"] == [2]


def test_lines_without_stack_samples(bench):
    """Which line loads the data is told by the package's own samples, told apart from aggregates of the program."""
    script = bench.script(PROLOGUE + """
    import tare, time
    class Slow:
        def __len__(self): return 64
        def __getitem__(self, i):
            return decode(i)
    def decode(i):
        end = time.perf_counter() + 0.005
        while time.perf_counter() < end:
            pass
        return data[i % 32]
    with tare.span("data @ script.py:1 mine", aggregate=True):
        time.sleep(1)
    train(DataLoader(Slow(), batch_size=8), 2)
    """)
    trace = bench.folder / "trace.tare"
    bench.call(bench.command, "run", "-q", "--no-stacks", "-o", trace, "--", sys.executable, script, hooked=True)
    report = tare.report(trace)
    lines = [row for row in report.facts if row.key == "torch.line.data"]
    assert "decode" in {row.text for row in lines}, lines  # `train` too, if a batch was waited for
    assert {os.path.basename(row.file) for row in lines} == {"script.py"}
    finding = next(row for row in report.findings if row.id == "loader-bound")
    assert ", in decode" in finding.evidence and "mine" not in finding.evidence, finding


def test_samples_are_counted(bench):
    done = bench.recorded(PROLOGUE + "    train(DataLoader(data, batch_size=8), 1)\n")
    step, = [row for row in done.report.steps if row.name == "step"]
    assert [number["sum"] for number in step.numbers if number["name"] == "samples"] == [32]


def test_evaluation_is_no_training(bench):
    done = bench.recorded(PROLOGUE + """
    train(DataLoader(data, batch_size=8), 1)
    model.eval()
    with torch.no_grad():
        for x, y in DataLoader(data, batch_size=4):
            loss_fn(model(x), y)
    """)
    outside = [row for row in rows(done.report, "forward") if row.depth == 0]
    assert sum(row.calls for row in outside) == 16 and sum(row.count for row in done.report.steps) == 4


# ---- torch.compile --------------------------------------------------------------------------------------

COMPILED = """
    import json
    import torch._dynamo
    from torch._dynamo.utils import counters

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
            self.head = nn.Linear(16, 3)
            self.head.register_forward_hook(lambda module, args, out: out * 2)  # not the short way

        def forward(self, x):
            return self.head(self.body(x))

    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model = torch.compile(model, backend="eager")
    for size in (8, 8, 4, 2):
        x, y = data[:size]
        opt.zero_grad()
        loss_fn(model(x), y).backward()
        opt.step()
    whole = nn.Linear(8, 3)
    whole.compile(backend="eager")
    whole(data[:8][0])
    print(json.dumps({name: dict(values) for name, values in sorted(counters.items())}, sort_keys=True))
    again = torch.compile(opt.step, backend="eager")
    again()
    del counters["frames"]  # hooks of optimizers are read through: a frame more or less, and the same graphs
    print(json.dumps({name: dict(values) for name, values in sorted(counters.items())}, sort_keys=True))
"""


def test_compiled_models_are_compiled_as_without(bench):
    plain, done = bench.python(PROLOGUE + COMPILED), bench.recorded(PROLOGUE + COMPILED)
    found, expected = ([json.loads(line) for line in one.out.splitlines()] for one in (done, plain))
    assert found[0] == expected[0] and found[1] == expected[1]
    assert found[0]["stats"]["unique_graphs"] > 1
    assert calls(done.report, "torch.compile") > 0 and calls(done.report, "torch.recompile") > 0
    assert sum(row.count for row in done.report.steps) >= 4


def test_a_recompilation_has_a_forward_and_a_backward_graph(bench):
    """Dynamo's own count of compiled frames is the truth."""
    done = bench.recorded("""
import torch
import torch._dynamo.utils
model = torch.nn.Linear(8, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model, backend="aot_eager", dynamic=False)
for step in range(12):
    opt.zero_grad()
    compiled(torch.randn(8 + step // 3, 8)).sum().backward()
    opt.step()
print(torch._dynamo.utils.counters["frames"]["ok"])
""")
    assert int(done.out) == 4
    assert calls(done.report, "torch.compile") == 1 and calls(done.report, "torch.recompile") == 3
    assert calls(done.report, "torch.recompile backward") == 3
    facts = {key: [row for row in done.report.facts if row.key == key] for key in ("torch.compile", "torch.recompile")}
    assert [row.text for row in facts["torch.compile"] + facts["torch.recompile"]] == ["0/0", "0/1", "0/2", "0/3"]
    spent = sum(row.total_ns / 1e9 for row in done.report.spans if row.name == "torch.recompile")
    assert sum(row.value for row in facts["torch.recompile"]) == pytest.approx(spent, rel=0.05, abs=0.01)
    found = json.loads(bench.call(bench.command, "report", "--json", bench.folder / "trace.tare").out)["findings"]
    titles = [row["title"] for row in found if row["id"] == "recompiles"]
    assert titles in ([], ["torch.compile recompiled 3 times"])  # none where imports take nearly all of the run


# ---- parts of a run --------------------------------------------------------------------------------------

def recorded_part(bench, *options):
    trace = bench.folder / "trace.tare"
    script = bench.script(PROLOGUE + "    train(DataLoader(data, batch_size=8), 5)\n")
    bench.call(bench.command, "run", "-q", "-f", "-o", trace, *options, "--", sys.executable, script, hooked=True)
    import tare
    return tare.report(trace)


def test_only_some_steps(bench):
    report = recorded_part(bench, "--steps", "6:9")
    step, = [row for row in report.steps if row.name == "step"]
    assert step.count == 3
    assert calls(report, "backward") == 3 and calls(report, "optimizer") == 3
    assert sorted(slow["index"] for slow in step.slowest) == [6, 7, 8]
    assert counter(report, "torch.steps").last == 20 and counter(report, "torch.epochs").last == 5


def test_only_every_second_epoch(bench):
    report = recorded_part(bench, "--every-epochs", "2")
    assert sum(row.count for row in report.steps) == 12
    assert sum(row.count for row in report.epochs) == 3
    assert counter(report, "torch.steps").last == 20


@pytest.mark.parametrize("words", [("--steps", "x"), ("--steps", "5"), ("--steps", "7:7"), ("--steps", ":"),
                                   ("--every-epochs", "0"), ("--every-epochs", "-1")])
def test_parts_that_are_none(bench, words):
    done = bench.call(bench.command, "run", *words, "--", "true", status=2)
    assert words[0] in done.err


# ---- ranks -------------------------------------------------------------------------------------------------

def torchrun(bench, loop):
    script = bench.script("""
        import torch, torch.distributed as dist
        from torch import nn
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
""" + loop + """
        dist.destroy_process_group()
    """)
    trace = bench.folder / "trace.tare"
    bench.call(bench.command, "run", "-q", "-o", trace, "--", sys.executable, "-m", "torch.distributed.run",
               "--nproc_per_node", "2", "--master_port", "0", "--standalone", script, hooked=True)
    return trace


def test_torchrun(bench):
    trace = torchrun(bench, """
        for _ in range(3):
            model(torch.randn(8, 4)).sum().backward()
            opt.step()
    """)
    import tare
    report = tare.report(trace)
    assert sum(row.count for row in report.steps) == 6
    assert {"rank 0", "rank 1"} <= {thread.name for thread in report.threads}


def test_ranks_in_every_view(bench):
    """Two ranks; the second has more to do by itself, and the first waits for it."""
    trace = torchrun(bench, """
        import time
        for _ in range(8):
            loss = model(torch.randn(8, 4)).sum()
            time.sleep(0.4 * dist.get_rank())
            loss.backward()
            opt.step()
    """)
    report = json.loads(bench.call(bench.command, "report", "--json", "--by", "process", trace).out)
    ranks = {row["rank"]: row for row in report["processes"] if row["rank"] is not None}
    assert set(ranks) == {0, 1} and all("script.py" in row["command"] for row in ranks.values())
    groups = {row["name"].partition(" (")[0] for row in report["groups"]}
    assert {"rank 0", "rank 1"} <= groups
    steps = {report["groups"][row["group"]]["name"].partition(" (")[0]: row["count"] for row in report["steps"]}
    assert steps["rank 0"] == steps["rank 1"] == 8
    finding, = [one for one in report["findings"] if one["id"] == "straggler"]
    assert finding["title"].startswith("Rank 1 delays the others")

    text = bench.call(bench.command, "report", "--all", "--width", "120", trace).out
    assert "a step by rank: 0 " in text and "rank 0 (" in text and "rank 1 (" in text
    chrome, perfetto, page = (bench.folder / name for name in ("trace.json", "trace.pftrace", "page.html"))
    for option, path in (("--chrome", chrome), ("--perfetto", perfetto), ("--html", page)):
        bench.call(bench.command, "report", option, "-o", path, trace)
    names = [event["args"]["name"] for event in json.loads(chrome.read_text())["traceEvents"]
             if event["name"] == "process_name"]
    assert sum(name.startswith("rank 0 (") for name in names) == 1
    assert sum(name.startswith("rank 1 (") for name in names) == 1
    for name in (b"rank 0 (", b"rank 1 ("):
        assert name in perfetto.read_bytes()
    assert "rank 1" in page.read_text(encoding="utf-8")


def test_ranks_that_are_alike(bench):
    """However loaded the machine: both wait as long by themselves, which is nearly all of a step."""
    trace = torchrun(bench, """
        import time
        for _ in range(8):
            loss = model(torch.randn(8, 4)).sum()
            time.sleep(0.5)
            loss.backward()
            opt.step()
    """)
    report = json.loads(bench.call(bench.command, "report", "--json", trace).out)
    assert [one for one in report["findings"] if one["id"] == "straggler"] == []


def test_a_program_without_ranks(bench):
    done = bench.recorded(PROLOGUE + "    train(DataLoader(data, batch_size=8), 1)\n", env={"RANK": "3"})
    assert {row.rank for row in done.report.processes} == {None}  # no size: nobody has launched ranks


# ---- losses that are kept with their history ----------------------------------------------------------------

SUMS = """
    from types import SimpleNamespace
    total, kept, meter = 0.0, {"loss": 0.0}, SimpleNamespace(loss=0.0)
    for _ in range(60):
        out = torch.randn(8, 8)
        for _ in range(15):
            out = out + model[0](out)[:, :8]  # sums inside of a model are no news
        loss = loss_fn(model[2](model[0](out)), torch.zeros(8, dtype=torch.long))
        opt.zero_grad()
        %s  # here
        loss.backward()
        opt.step()
"""


def findings(bench, code):
    done = bench.recorded(PROLOGUE + code)
    rows = json.loads(bench.call(bench.command, "report", "--json", bench.folder / "trace.tare").out)["findings"]
    return {row["id"]: row for row in rows}, (bench.folder / "script.py").read_text(), done


@pytest.mark.parametrize("line, name", [("total += loss", "total"), ("total = total + loss", "total"),
                                        ('kept["loss"] += loss', "loss"), ("meter.loss += loss * 0.5", "loss")])
def test_a_sum_of_losses_with_its_history(bench, line, name):
    found, text, _ = findings(bench, SUMS % line)
    place = next(number for number, one in enumerate(text.splitlines(), 1) if "# here" in one)
    assert found["kept-losses"]["title"].endswith(f"script.py:{place}")
    assert f"{name} += loss.detach()" in found["kept-losses"]["advice"]


@pytest.mark.parametrize("line", ["total += loss.item()", "total += loss.detach()", 'kept["loss"] = loss'])
def test_a_sum_of_numbers(bench, line):
    assert "kept-losses" not in findings(bench, SUMS % line)[0]


KEPT = """
    from collections import defaultdict
    history = %s
    def evaluate(history):
        history["loss"].append(loss_fn(model(torch.randn(8, 8)), torch.zeros(8, dtype=torch.long)).item())
    def train(history):
        for i in range(60):
            opt.zero_grad()
            loss = loss_fn(model(torch.randn(8, 8)), torch.zeros(8, dtype=torch.long))
            loss.backward()
            opt.step()
            %s  # here
    train(history)
"""


@pytest.mark.parametrize("empty, line, name", [("[]", "history.append((i, loss))", "history"),
                                               ("defaultdict(list)", 'history["loss"].append(loss)', "loss")])
def test_losses_in_tuples_and_dicts(bench, empty, line, name):
    found, text, _ = findings(bench, KEPT % (empty, line))
    place = next(number for number, one in enumerate(text.splitlines(), 1) if "# here" in one)
    assert found["kept-losses"]["title"].endswith(f"script.py:{place}")
    assert f"they are in {name}." in found["kept-losses"]["evidence"]


def test_a_folder_of_any_name(bench):
    bench.folder = bench.folder / "me at home: 1 é"
    bench.folder.mkdir()
    found, text, done = findings(bench, KEPT % ("[]", "history.append(loss)"))
    place = next(number for number, one in enumerate(text.splitlines(), 1) if "# here" in one)
    assert found["kept-losses"]["title"] == \
        f"Losses are kept with their autograd graph, at {bench.folder / 'script.py'}:{place}"
    [fact] = [row for row in done.report.facts if row.key == "torch.losses.kept"]
    assert (fact.file, fact.line, fact.text) == (str(bench.folder / "script.py"), place, "history")


def test_marks_and_counters_forge_no_finding(bench):
    found, _, done = findings(bench, """
    import tare
    for text in ("torch.kept history at /x.py:1", "torch.summed total at /x.py:1", "torch.fp32 on cuda: off",
                 "torch.unfused Adam: 9 tensors one by one", "torch.profiler wrote /etc/hostname", "shapes n/a: no"):
        tare.mark(text)
    for name in ("torch.losses.kept", "torch.losses.summed", "torch.threads", "torch.graph.nodes",
                 "torch.graph.retained", "torch.profiler.seconds", "torch.rank"):
        tare.counter(name, 1e6)
    train(DataLoader(data, batch_size=8), 5)
    """)
    assert not {"kept-losses", "growing-graph", "torch-threads", "own-profiler", "fp32-matmul"} & set(found)
    assert "/x.py" not in str(found)
    assert {row.rank for row in done.report.processes} == {None}
    assert len(done.report.marks) == 7  # those, and which Python it is


@pytest.mark.parametrize("carried", [True, False])
def test_a_graph_that_grows(bench, carried):
    """A state that is carried from step to step with its graph; the same loop with longer and longer sequences has
    none."""
    found, _, _ = findings(bench, """
    cell, state = nn.GRUCell(8, 8), torch.zeros(8, 8)
    opt = torch.optim.SGD(cell.parameters(), lr=1e-4)
    for length in range(1, 100):
        state = state if %r else torch.zeros(8, 8)
        for _ in range(1 if %r else length):
            state = cell(torch.randn(8, 8), state)
        opt.zero_grad()
        state.sum().backward(retain_graph=%r)  # without a step: that changes the weights, and the next backward fails
    """ % (carried, carried, carried))
    assert ("growing-graph" in found) == carried, found
