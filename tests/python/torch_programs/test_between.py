"""Time between steps: found where a loop spends much of it there, with the line, and not where it does not. Also the
findings beside it: the same time is told once, and loading that is done elsewhere already is not advised."""
import json
import textwrap

import pytest

pytest.importorskip("torch", reason="torch is not installed for this Python")

SETUP = """
    import queue, threading, time, torch
    from torch.utils.data import DataLoader, TensorDataset
    torch.set_num_threads(1)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    def train(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
"""

ROLLOUTS = """
    began = ended = outside = None
    spent = 0
    for _ in range(6):
        start = time.perf_counter()
        with torch.no_grad():
            for _ in range(60):
                model(torch.randn(1, 16))
                time.sleep(0.0015)    # the environment
        if began is not None:
            spent += time.perf_counter() - start
        for _ in range(20):
            if began is None:
                began = time.perf_counter()
            time.sleep(0.003)
            train(torch.randn(32, 16))
        ended = time.perf_counter()
    print(spent / (ended - began))
"""

EVALUATED = """
    for epoch in range(4):
        for x, in DataLoader(TensorDataset(torch.randn(200, 16)), batch_size=20):
            time.sleep(0.005)
            train(x)
        model.eval()
        with torch.no_grad():
            for x, in DataLoader(TensorDataset(torch.randn(20, 16)), batch_size=20):
                model(x)
        model.train()
    with torch.no_grad():             # once, at the end
        for _ in range(40):
            model(torch.randn(8, 16))
            time.sleep(0.02)
"""

ONE_PAUSE = """
    for half in range(2):
        for _ in range(20):
            time.sleep(0.005)
            train(torch.randn(32, 16))
        if half == 0:                 # one evaluation, in the middle
            with torch.no_grad():
                for _ in range(30):
                    model(torch.randn(8, 16))
                    time.sleep(0.02)
"""

PLAIN = """
    for _ in range(60):
        time.sleep(0.003)
        train(torch.randn(32, 16))
"""


def findings_of(bench, code):
    done = bench.recorded(textwrap.dedent(SETUP) + textwrap.dedent(code))
    report = bench.call(bench.command, "report", "--json", bench.folder / "trace.tare")
    return done, {finding["id"]: finding for finding in json.loads(report.out)["findings"]}


def test_rollouts_between_steps(bench):
    done, findings = findings_of(bench, ROLLOUTS)
    found = findings["outside-steps"]
    share = next(figure["value"] for figure in found["figures"] if figure["name"] == "share")
    assert share == pytest.approx(float(done.out), rel=0.15)
    lines = (bench.folder / "script.py").read_text().splitlines()
    first, last = (number for number, line in enumerate(lines, 1) if "model(torch.randn(1" in line
                   or "environment" in line)
    assert any(f"script.py:{number}" in found["evidence"] for number in range(first, last + 1)), found
    assert "computed without training" in found["evidence"]
    outside = findings.get("outside-model")  # of the steps themselves: another line
    assert not outside or not any(f"script.py:{number}," in outside["evidence"]
                                  for number in range(first, last + 1)), outside


@pytest.mark.parametrize("code", [EVALUATED, ONE_PAUSE], ids=["evaluated", "one pause"])
def test_loops_that_are_in_their_steps(bench, code):
    assert "outside-steps" not in findings_of(bench, code)[1]


def test_the_time_outside_the_model_is_told_once(bench):
    _, findings = findings_of(bench, PLAIN)
    assert "outside-steps" not in findings
    assert "in a worker process or a thread" in findings["outside-model"]["advice"]
    assert not any("step accounts for" in finding["title"] for finding in findings.values())


LOADED_ELSEWHERE = {
    "a thread": """
        batches = queue.Queue(2)
        def load():
            for _ in range(40):
                time.sleep(0.005)
                batches.put(torch.randn(32, 16))
            batches.put(None)
        threading.Thread(target=load, daemon=True).start()
        while (x := batches.get()) is not None:
            time.sleep(0.003)
            train(x)
    """,
    "workers": """
        for epoch in range(2):
            for x, in DataLoader(TensorDataset(torch.randn(400, 16)), batch_size=20, num_workers=2):
                time.sleep(0.01)
                train(x)
    """,
}


@pytest.mark.parametrize("how", sorted(LOADED_ELSEWHERE))
def test_loading_that_is_elsewhere_already_is_not_advised(bench, how):
    _, findings = findings_of(bench, LOADED_ELSEWHERE[how])
    found = findings["outside-model"]
    assert "in a DataLoader with workers, or in a thread" not in found["advice"], found


ALONE = """
    import os
    end = time.perf_counter() + 1.5
    x = torch.randn(32, 16)
    while time.perf_counter() < end:
        train(x)
    print(len(os.listdir("/proc/self/task")))
"""


def test_tares_own_threads_are_not_the_programs(bench):
    threads = int(bench.python(textwrap.dedent(SETUP) + textwrap.dedent(ALONE)).out)  # not recorded
    done, _ = findings_of(bench, ALONE)
    assert int(done.out) > threads  # one of ours is there
    usage = json.loads(bench.call(bench.command, "report", "--json", bench.folder / "trace.tare").out)["usage"]
    assert usage["threads_max"] == threads
    wanted = [row for row in done.report.metrics if row.metric == "threads.running" and row.subject == "tree"]
    assert wanted and all(row.max <= threads for row in wanted), wanted
