"""`tare report --tensorboard`: the files are opened by the programs they are for, which must see what we see.

The readers live in environments of their own: torch-tb-profiler 0.4.3 and HolisticTraceAnalysis in one (TARE_READERS
names its interpreter; else build/readers/bin/python), xprof in another (TARE_XPROF; else build/xprof/bin/python). Where
one is not installed, its test is skipped."""
import json
import os
import pathlib
import subprocess

import pytest

import kineto
from conftest import PATIENCE, ROOT, Bench

READERS = os.environ.get("TARE_READERS", str(ROOT / "build" / "readers" / "bin" / "python"))
XPROF = os.environ.get("TARE_XPROF", str(ROOT / "build" / "xprof" / "bin" / "python"))
SCRIPT = pathlib.Path(__file__).with_name("tensorboard_readers.py")
STEP_US = kineto.STEP_US - 1


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def exported(bench, trace):
    done = bench.tare("report", "--tensorboard", "tb", trace)
    assert done.status == 0, done.err
    return bench.folder / "tb"


def gpu_trace(bench):
    (bench.folder / "in.json").write_text(kineto.document())
    assert bench.tare("import", "-o", "gpu.tare", "in.json").status == 0
    return "gpu.tare"


def seen_by(reader, module, folder):
    python = XPROF if reader == "xprof" else READERS
    if not os.path.exists(python):
        pytest.skip(f"there is no environment with {module} ({python})")
    if subprocess.run([python, "-c", f"import importlib.util as u; exit(not u.find_spec('{module}'))"]).returncode:
        pytest.skip(f"{module} is not installed for {python}")
    done = subprocess.run([python, SCRIPT, reader, folder], capture_output=True, text=True, timeout=5 * PATIENCE)
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert done.returncode == 0 and lines, done.stderr[-3000:]
    return json.loads(lines[0][5:])


def test_files(bench):
    """One Kineto file for each reader, strict JSON, the rank where HTA looks for it; one XPlane below plugins/."""
    folder = exported(bench, gpu_trace(bench))
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    start = kineto.BASE_NS + int(kineto.START_US * 1000)
    assert names == [f"hta/node7_100.{start}.json", f"node7_100.{start}.pt.trace.json",
                     "plugins/profile/2026_11_15_09_44_14/node7.xplane.pb"]
    for name, launches in zip(names, ("cuda_runtime", "runtime")):
        text = (folder / name).read_text()
        assert '"rank": 3' in text[:text.index('"traceEvents"')]
        document = json.loads(text, parse_constant=pytest.fail)
        events = [event for event in document["traceEvents"] if event["ph"] == "X"]
        count = {category: sum(event["cat"] == category for event in events) for category in
                 ("cpu_op", "user_annotation", "kernel", launches)}
        assert count == {"cpu_op": 28, "user_annotation": 4, "kernel": 20, launches: 20}
        modules = {event["args"]["Python id"]: event for event in events if event["cat"] == "python_function"}
        inner = [event for event in modules.values() if event["name"] == "nn.Module: Linear_0"]
        assert len(modules) == 8 and len(inner) == 4
        assert all(modules[event["args"]["Python parent id"]]["name"] == "nn.Module: Net_0" for event in inner)
        assert len(events) == 80 and all(isinstance(event["dur"], (int, float)) for event in events)
        memory = [event["args"] for event in document["traceEvents"] if event["name"] == "[memory]"]
        assert [(one["Device Type"], one["Device Id"], one["Bytes"], one["Total Allocated"], one["Total Reserved"])
                for one in memory] == [(1, 0, 1000, 1000 * (step + 1), 9000) for step in range(kineto.STEPS)]
        first = min(event["ts"] for event in events)
        assert document["baseTimeNanoseconds"] + round(first * 1000) == start
        kernels = {event["args"]["correlation"]: event for event in events if event["cat"] == "kernel"}
        for event in events:
            if event["cat"] == launches:
                kernel = kernels[event["args"]["correlation"]]
                assert kernel["args"]["External id"] == event["args"]["External id"] > 0


def test_the_way_round(bench):
    """What was exported is imported again: the same tables."""
    trace = gpu_trace(bench)
    folder = exported(bench, trace)
    path, = folder.glob("*.pt.trace.json")
    assert bench.tare("import", "-o", "again.tare", path).status == 0
    first, again = bench.json(trace), bench.json("again.tare")
    for table in ("steps", "tracks", "counters"):
        assert first[table] == again[table]
    keys = ("name", "kind", "calls", "total_ns", "self_ns")
    assert [[row[key] for key in keys] for row in first["spans"]] == \
        [[row[key] for key in keys] for row in again["spans"]]


def test_several_processes(bench):
    """A file each, with ranks of their own."""
    done = bench.run("forks", "fork")
    folder = exported(bench, done.trace)
    texts = [path.read_text() for path in sorted(folder.glob("hta/*.json"))]
    documents = [json.loads(text) for text in texts]
    assert len(documents) > 1
    assert sorted(one["distributedInfo"]["rank"] for one in documents) == list(range(len(documents)))
    assert sum(len([event for event in one["traceEvents"] if event["ph"] == "X"]) for one in documents) == \
        bench.json(done.trace)["run"]["spans"]


def test_torch_tb_profiler(bench):
    seen = seen_by("torch_tb_profiler", "torch_tb_profiler", exported(bench, gpu_trace(bench)))
    steps = {row[0]: dict(zip(seen["columns"][1:], row[1:])) for row in seen["steps"]}
    assert sorted(steps, key=int) == ["7", "8", "9", "10"]
    for parts in steps.values():
        # 5 kernels of 80 us; launches of 10 us outside of kernels; 100 us of loading.
        assert parts["Kernel"] == pytest.approx(400, abs=1) and parts["Runtime"] == pytest.approx(50, abs=1)
        assert parts["DataLoader"] == pytest.approx(100, abs=1)
        assert sum(parts.values()) == pytest.approx(STEP_US, abs=2)
    mm = seen["operators"]["aten::mm"]
    assert (mm["calls"], mm["host_total_duration"], mm["host_self_duration"]) == (20, 2000, 1800)
    assert mm["device_total_duration"] == 1600
    assert seen["modules"] == [["Net_0", 4, 4 * 620, 4 * 90, 4 * 400, ["Linear_0"]]]
    assert {"overall", "operator", "kernel", "trace", "memory", "module"} <= set(seen["views"])


def test_hta(bench):
    seen = seen_by("hta", "hta", exported(bench, gpu_trace(bench)) / "hta")
    # It leaves the last iteration out, and rounds times down to microseconds.
    assert seen["rank"] == 3 and seen["iterations"] == [7, 8, 9]
    assert seen["totals"]["aten::mm"][0] == 15 and seen["totals"]["aten::mm"][1] == pytest.approx(1500, rel=0.02)
    assert seen["totals"]["gemm"][0] == 15 and seen["linked"] == 15
    assert seen["breakdown"]["compute_time(us)"] == pytest.approx(1200, rel=0.02)


def test_xprof(bench):
    seen = seen_by("xprof", "xprof", exported(bench, gpu_trace(bench)))
    events = [event for event in seen["trace_viewer"]["traceEvents"] if event.get("ph") == "X"]
    steps = sorted(event["args"]["step_num"] for event in events if event["args"].get("step_num") and
                   event["name"].startswith("train"))
    assert steps == ["10", "7", "8", "9"]
    total = sum(event["dur"] for event in events if event["name"] == "aten::mm")
    assert total == pytest.approx(2000)
    kernels = [event for event in events if event["name"] == "gemm"]
    # Each kernel belongs to the step that launched it.
    assert len(kernels) >= 20 and all("group_id" in event["args"] for event in kernels)
    # Its own account of the steps: 5 kernels of 80 us in each.
    table = next(table for table in seen["input_pipeline_analyzer"] if table.get("rows") and
                 table["cols"][0]["id"] == "stepnum")
    compute = [column["id"] for column in table["cols"]].index("deviceComputeTimeMs")
    assert [row["c"][compute]["v"] for row in table["rows"]] == [pytest.approx(0.4)] * 4


def test_run_writes_them_too(bench):
    done = bench.run("forks", "fork", options=("--tensorboard", "logs"))
    folder = exported(bench, done.trace)
    for path in folder.rglob("*.json"):
        assert path.read_bytes() == (bench.folder / "logs" / path.relative_to(folder)).read_bytes()
    assert list((bench.folder / "logs").glob("plugins/profile/*/*.xplane.pb"))
