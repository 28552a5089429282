"""What comes after the last step of a loop without a loader, and before the first one of another model: no part of a
step, and no longer than what was computed in it. Each program keeps its own clock."""
import json

import pytest

pytest.importorskip("torch", reason="torch is not installed for this Python")

SETUP = """
    import json, os, sys, time, torch
    torch.set_num_threads(1)
    clock, steps = time.perf_counter, []
    def spend(seconds):
        end = clock() + seconds
        while clock() < end:
            sum(range(1000))
    def net():
        model = torch.nn.Linear(16, 4)
        return model, torch.optim.SGD(model.parameters(), lr=0.01)
    def train(model, optimizer, batches, accumulate=1):
        last = clock()
        for i in range(batches):
            time.sleep(0.005)
            model(torch.randn(8, 16)).sum().backward()
            if i % accumulate == accumulate - 1:
                optimizer.step()
                optimizer.zero_grad()
                steps.append(clock() - last)
                last = clock()
        return clock() - last
"""

ACCUMULATED = SETUP + """
    rest = train(*net(), 43, accumulate=4)
    spend(1.5)                  # after the loop
    print(json.dumps([steps, rest]))
    if sys.argv[1] == "killed":
        sys.stdout.flush()
        os._exit(0)
"""

EVALUATED = SETUP + """
    model, optimizer = net()
    for _ in range(2):
        rest = train(model, optimizer, 43, accumulate=4)
        model.eval()
        with torch.no_grad():
            model(torch.randn(8, 16))
        spend(0.75)             # what an evaluation is
        with torch.no_grad():
            model(torch.randn(8, 16))
        model.train()
    print(json.dumps([steps, rest]))
"""

SEVERAL = SETUP + """
    first, second = torch.nn.Linear(16, 4), torch.nn.Linear(16, 4)
    both = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    for model in first, second:
        train(model, both, 30)
        spend(0.5)              # between the models
    del both
    train(*net(), 30)           # one that did not exist before
    spend(0.5)
    weight = torch.zeros(16, requires_grad=True)
    train(lambda x: x @ weight, torch.optim.SGD([weight], lr=0.01), 30)   # no module, but an optimizer
    print(json.dumps([steps, 0]))
"""

EACH_NEW = SETUP + """
    import copy
    model, optimizer = net()
    for _ in range(30):         # a copy learns, the model takes its gradients
        began = clock()
        time.sleep(0.01)
        inner = copy.deepcopy(model)
        inner(torch.randn(8, 16)).sum().backward()
        for mine, its in zip(model.parameters(), inner.parameters()):
            mine.grad = its.grad.clone()
        optimizer.step()
        steps.append(clock() - began)
    print(json.dumps([steps, 0]))
"""


def run(bench, code, *words):
    done = bench.recorded(code, *words)
    steps, rest = json.loads(done.out)
    row, = done.report.steps
    assert row.count == len(steps) and row.unfinished == 0
    return done.report, row, steps, rest


def lines_of_steps(report, text, code):
    lines = [at for at, line in enumerate(code.splitlines(), 1) if text in line]
    return [row.name for row in report.aggregates if row.name.startswith("step @") and
            any("script.py:%d " % at in row.name for at in lines)]


@pytest.mark.parametrize("end", ("ended", "killed"))
def test_a_rest_ends_with_its_last_backward(bench, end):
    report, row, steps, rest = run(bench, ACCUMULATED, end)
    assert 0.7 * sum(steps) < row.total_ns / 1e9 < 1.3 * sum(steps)
    assert not [span.name for span in report.spans if span.still_open]
    outside = [span.total_ns / 1e9 for span in report.spans if span.name == "(outside steps)"]
    assert len(outside) == 1 and 0.5 * rest < outside[0] < 1.5 * rest
    if end == "ended":
        assert not lines_of_steps(report, "sum(range", ACCUMULATED)


def test_an_evaluation_after_a_rest_is_in_no_step(bench):
    report, row, steps, _ = run(bench, EVALUATED)
    assert row.total_ns / 1e9 < sum(steps) + 0.3
    assert row.max_ns / 1e9 < 0.7


def test_the_pause_before_another_model_is_in_no_step(bench):
    report, row, steps, _ = run(bench, SEVERAL)
    assert 0.7 * sum(steps) < row.total_ns / 1e9 < sum(steps) + 0.3
    assert row.max_ns / 1e9 < max(max(steps), 0.4)
    assert not lines_of_steps(report, "sum(range", SEVERAL)


def test_a_new_model_in_every_step_is_a_part_of_it(bench):
    _, row, steps, _ = run(bench, EACH_NEW)
    assert row.total_ns / 1e9 > 0.85 * sum(steps)
