"""Programs that have a torch.profiler of their own, by hand or through a framework, under `tare run`: theirs works as
without Tare, and what it wrote is in our trace."""
import collections
import gzip
import json
import sys

import pytest
import tare
from test_frameworks import LIGHTNING, TRAINER

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")
if not torch.profiler.itt.is_available():
    pytest.skip("this torch has no ITT", allow_module_level=True)

DIRECT = """
    import torch
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(32, 8)

    def step():
        optimizer.zero_grad()
        model(data).sum().backward()
        optimizer.step()

    def schedule():
        return torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
"""

BY_HAND = DIRECT + """
    for _ in range(3):
        step()
    with torch.profiler.profile() as theirs:
        for _ in range(4):
            step()
    theirs.export_chrome_trace("theirs.json")
    step()
"""

SCHEDULED = DIRECT + """
    ready = torch.profiler.tensorboard_trace_handler("logs", worker_name="w", use_gzip=True)
    with torch.profiler.profile(schedule=schedule(), on_trace_ready=ready) as theirs:
        for _ in range(10):
            step()
            theirs.step()
"""

LIGHTNINGS = LIGHTNING.replace("callbacks = []", """callbacks = []
    from lightning.pytorch.profilers import PyTorchProfiler
    theirs = PyTorchProfiler(dirpath="logs", filename="table", schedule=torch.profiler.schedule(
        wait=1, warmup=1, active=2))""").replace("callbacks=callbacks", "callbacks=callbacks, profiler=theirs")

TRAINERS = TRAINER.replace("callbacks = []", """from transformers import TrainerCallback

    class Profile(TrainerCallback):
        def on_train_begin(self, *words, **named):
            self.theirs = torch.profiler.profile(
                schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
                on_trace_ready=torch.profiler.tensorboard_trace_handler("logs", worker_name="w"))
            self.theirs.start()

        def on_step_end(self, *words, **named):
            self.theirs.step()

        def on_train_end(self, *words, **named):
            self.theirs.stop()

    callbacks = [Profile()]""")

PROGRAMS = {  # name: (package, program, steps)
    "by hand": (None, BY_HAND, 8),
    "scheduled": (None, SCHEDULED, 10),
    "lightning": ("lightning", LIGHTNINGS, 8),
    "trainer": ("transformers", TRAINERS, 8),
}


def written(folder):
    """Calls of operators in all the files that their profiler wrote, by name."""
    calls = collections.Counter()
    for path in [*folder.glob("*.json"), *folder.glob("logs/*.json"), *folder.glob("logs/*.json.gz")]:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as text:
            calls.update(event["name"] for event in json.load(text)["traceEvents"] if event.get("cat") == "cpu_op")
    return calls


def recorded(bench, code, *options):
    trace = bench.folder / "trace.tare"
    done = bench.call(bench.command, "run", "-q", "-f", "--no-sampling", *options, "-o", trace, "--", sys.executable,
                      bench.script(code), hooked=True)
    done.report = json.loads(bench.call(bench.command, "report", "--json", trace).out)
    done.rows = tare.report(trace)
    return done


def operators(report):
    calls = collections.Counter()
    for row in report["operators"]:
        calls[row["name"]] += row["calls"]
    return calls


def forget(folder):
    for path in [*folder.glob("*.json"), *folder.glob("logs/*")]:
        path.unlink()


@pytest.mark.parametrize("name", PROGRAMS)
def test_theirs_works_as_without(bench, name):
    package, program, steps = PROGRAMS[name]
    if package:
        pytest.importorskip(package, reason=f"{package} is not installed for this Python")
    bench.python(program)
    alone = written(bench.folder)
    assert alone["aten::addmm"] > 0
    forget(bench.folder)
    done = recorded(bench, program, "--ops")
    assert written(bench.folder) == alone
    assert sum(row.count for row in done.rows.steps) == steps  # theirs are not counted once more
    ours = operators(done.report)
    for operator, calls in alone.items():  # what it saw, and what we saw before and after it
        assert ours[operator] >= calls, operator
    finding, = [one for one in done.report["findings"] if one["id"] == "own-profiler"]
    assert "taken from what it wrote" in finding["evidence"] and "not in the trace" not in done.err


def test_every_call_is_there_once(bench):
    done = recorded(bench, BY_HAND, "--ops")
    assert operators(done.report)["aten::addmm"] == 2 * 8
    assert operators(done.report)["aten::linear"] == 2 * 8


def test_without_ops_theirs_are_shown(bench):
    done = recorded(bench, BY_HAND + """
    import json
    rows = [row for row in theirs.key_averages() if not row.key.startswith("Optimizer.")]  # no operators, but remarks
    print(json.dumps({row.key: row.count for row in rows}))
""")
    assert operators(done.report) == json.loads(done.out.splitlines()[-1])


def test_theirs_stand_where_they_were(bench):
    """Operators of theirs lie in time between the first of ours and the last, and in the same process."""
    done = recorded(bench, BY_HAND, "--ops")
    threads = {thread.name: thread for thread in done.rows.threads}
    theirs, = [thread for name, thread in threads.items() if name and name.startswith("torch.profiler")]
    ours = max((thread for thread in threads.values() if thread is not theirs), key=lambda thread: thread.spans)
    assert ours.first_at_ns < theirs.first_at_ns < theirs.last_at_ns < ours.last_at_ns
    assert theirs.process == ours.process


def test_a_profile_that_is_not_written(bench):
    done = recorded(bench, BY_HAND.replace('theirs.export_chrome_trace("theirs.json")', "pass"), "--ops")
    finding, = [one for one in done.report["findings"] if one["id"] == "own-profiler"]
    assert "wrote no trace" in finding["evidence"]
    assert operators(done.report)["aten::addmm"] == 2 * 4


@pytest.mark.parametrize("damage", ["cut", "no trace", "gone"])
def test_a_file_that_is_damaged_meanwhile(bench, damage):
    change = {"cut": 'open("theirs.json", "r+").truncate(20)', "no trace": 'open("theirs.json", "w").write("[1, 2]")',
              "gone": 'import os; os.remove("theirs.json")'}[damage]
    done = recorded(bench, BY_HAND + f"    {change}\n", "--ops")
    assert ("was not imported" in done.err) == (damage != "gone")
    assert operators(done.report)["aten::addmm"] == 2 * 4
    assert sum(row.count for row in done.rows.steps) == 8
    finding, = [one for one in done.report["findings"] if one["id"] == "own-profiler"]
    assert "not in this trace" in finding["evidence"]


def test_a_file_that_must_stay_small(bench):
    done = recorded(bench, BY_HAND, "--ops", "--max-size", "50M")
    assert "is not imported" in done.err and operators(done.report)["aten::addmm"] == 2 * 4
