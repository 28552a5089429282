"""Traces of the real torch.profiler, imported: the operators it counts, with the times it gives them."""
import collections
import gzip
import json

import pytest
from torch_parts import torch

from torch.profiler import ProfilerActivity, profile, record_function, schedule


def train(path, steps=4, **options):
    """Profiles a few steps of a small model; what torch has of each name: count, total in ns."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 32)), batch_size=8)
    seen = collections.defaultdict(lambda: [0, 0])

    def export(done):
        # Not key_averages(): that leaves out operators inside their like.
        for event in done.profiler.kineto_results.events():
            seen[event.name()][0] += 1
            seen[event.name()][1] += event.duration_ns()
        done.export_chrome_trace(str(path))

    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=steps, repeat=1),
                 on_trace_ready=export, **options) as profiler:
        for (batch, ), _ in zip(loader, range(steps + 1)):
            with record_function("forward"):
                loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()
    return seen


def imported(bench, path):
    bench.call(bench.command, "import", "--quiet", "--force", "-o", "out.tare", path)
    return json.loads(bench.call(bench.command, "report", "--json", "out.tare").out)


def by_name(report, kind):
    """Count and total in ns of the spans of a kind."""
    rows = collections.defaultdict(lambda: [0, 0])
    for row in report["spans"]:
        if row["kind"] == kind:
            rows[row["name"]][0] += row["calls"]
            rows[row["name"]][1] += row["total_ns"]
    return rows


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_operators_are_torchs(bench, name):
    path = bench.folder / name
    torchs = train(path)
    report = imported(bench, path)
    ours = by_name(report, "operator")
    assert len(ours) > 20 and "aten::addmm" in ours
    for key, row in ours.items():
        assert row == torchs[key], key
    step, = report["steps"]
    assert step["count"] == 4 and "forward" in by_name(report, "span")
    assert "optimizer" in by_name(report, "phase")


def test_with_stack_shapes_and_memory(bench):
    path = bench.folder / "trace.json"
    torchs = train(path, record_shapes=True, with_stack=True, profile_memory=True)
    report = imported(bench, path)
    for key, (count, _) in by_name(report, "operator").items():
        assert count == torchs[key][0], key
    assert report["steps"][0]["count"] == 4
    assert any(name.startswith("Linear_") for name in by_name(report, "module"))
    assert any(row["name"] == "bytes allocated: CPU" for row in report["counters"])


def test_cut_gzip(bench):
    path = bench.folder / "trace.json.gz"
    train(path)
    whole = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(whole)[:-100])
    done = bench.call(bench.command, "import", "-o", "out.tare", path)
    assert "is damaged at byte" in done.err and "events before it are in the trace" in done.err
