"""`tare import`: what becomes of events of Kineto, Chrome and ONNX Runtime, in any order, gzip, whole or not."""
import gzip
import json
import os
import random

import pytest

import kineto
from conftest import SANITIZER, Bench, check_nesting

SEED = int(os.environ.get("TARE_SEED", random.SystemRandom().randrange(1 << 32)))


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def write(bench, text, name="in.json"):
    path = bench.folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def imported(bench, text, name="in.json", status=0):
    """(what import says as JSON, its standard error); the trace is out.tare."""
    done = bench.tare("import", "--json", "--force", "-o", "out.tare", write(bench, text, name))
    assert done.status == status, (done.status, done.err)
    return (json.loads(done.out) if status == 0 else None), done.err


def rows(report, name):
    """Span rows of that name, summed: calls, total and self in ns."""
    found = [row for row in report["spans"] if row["name"] == name]
    return tuple(sum(row[key] for row in found) for key in ("calls", "total_ns", "self_ns"))


def test_kineto(bench):
    told, _ = imported(bench, kineto.document())
    report = bench.json("out.tare")
    check_nesting(bench.events("out.tare"))
    assert told["format"] == "Kineto" and told["damaged"] is None
    assert (told["steps"], told["operators"], told["complete_spans"]) == (4, 20, 20)
    step, = report["steps"]
    assert (step["name"], step["count"], step["total_ns"]) == ("step", 4, 4 * 999000)
    assert sorted(one["index"] for one in step["slowest"]) == [7, 8, 9, 10]
    assert rows(report, "aten::mm") == (20, 2000000, 1800000)
    assert rows(report, "cudaLaunchKernel") == (20, 200000, 200000)
    assert rows(report, "data") == (4, 400000, 400000)
    assert rows(report, "optimizer") == (4, 200000, 200000)
    # Of each step 999 - 100 - 620 - 50 us are its own; of the outer module 620 - 230 - 3 operators.
    assert rows(report, "step") == (4, 3996000, 4 * 229000)
    assert rows(report, "Net_0") == (4, 4 * 620000, 4 * 90000)
    assert rows(report, "Linear_0") == (4, 4 * 230000, 4 * 30000)
    assert next(row["kind"] for row in report["spans"] if row["name"] == "Net_0") == "module"
    kinds = {row["name"]: row["kind"] for row in report["spans"]}
    assert (kinds["aten::mm"], kinds["step"], kinds["data"]) == ("operator", "step", "phase")
    track, = report["tracks"]
    assert "GPU 0 stream 7" in json.dumps(track)
    counters = {row["name"]: row for row in report["counters"]}
    assert counters["bytes allocated: GPU 0"]["last"] == 4000 and counters["bytes reserved: GPU 0"]["max"] == 9000
    assert report["run"]["host"] == "node7"
    assert report["processes"][0]["rank"] == 3
    assert not any("(flow)" in json.dumps(row.get("numbers")) for row in report["spans"])


def test_times_are_exact(bench):
    """To the nanosecond, and on the clock of the day."""
    imported(bench, kineto.document())
    run = bench.json("out.tare")["run"]
    assert run["start_realtime_ns"] == kineto.BASE_NS + int(kineto.START_US * 1000)


def test_any_order_gives_the_same(bench):
    events = kineto.events()
    imported(bench, kineto.document(events))
    expected = bench.report("out.tare", "--events").out
    for number in range(3):
        random.Random(SEED + number).shuffle(events)
        imported(bench, kineto.document(events))
        shuffled = bench.report("out.tare", "--events").out
        assert sorted(shuffled.splitlines()) == sorted(expected.splitlines()), SEED + number


def test_gzip(bench):
    imported(bench, kineto.document())
    expected = (bench.folder / "out.tare").read_bytes()
    packed = gzip.compress(kineto.document().encode())
    imported(bench, packed, "in.json.gz")
    assert (bench.folder / "out.tare").read_bytes() == expected
    told, err = imported(bench, packed[:-300], "cut.json.gz")
    assert told["damaged"] and "decompressed" in told["damaged"]["reason"], told
    assert "warning" in err


def test_functions_give_way(bench):
    """A context manager begins inside its own __enter__ and ends inside its own __exit__."""
    made = [kineto.x("python_function", "main", 0, 100), kineto.x("python_function", "__enter__", 10, 20),
            kineto.x("user_annotation", "ProfilerStep#1", 20, 50), kineto.x("python_function", "__exit__", 60, 20)]
    told, _ = imported(bench, kineto.document(made))
    report = bench.json("out.tare")
    check_nesting(bench.events("out.tare"))
    assert report["steps"][0]["total_ns"] == 50000
    assert rows(report, "main")[1] == 100000 and rows(report, "__enter__")[1] == 20000
    assert told["truncated_spans"] > 0 and told["overlapping"] == 0


def test_overlap_in_part(bench):
    """Two spans of a thread that overlap are no nest: the second stands beside the tree, whole."""
    made = [{"ph": "X", "name": "a", "ts": 0, "dur": 100, "pid": 1, "tid": 1},
            {"ph": "X", "name": "b", "ts": 50, "dur": 100, "pid": 1, "tid": 1}]
    told, err = imported(bench, json.dumps(made))
    assert told["overlapping"] == 1 and "on a separate track" in err
    report = bench.json("out.tare")
    assert rows(report, "a")[1] == 100000 and "100000" in json.dumps(report["tracks"])


def test_rounded_to_microseconds(bench):
    """A child that ends a microsecond behind its parent, and a neighbour that begins one too early, are nested."""
    made = [{"ph": "X", "name": "a", "ts": 0, "dur": 10, "pid": 1, "tid": 1},
            {"ph": "X", "name": "b", "ts": 5, "dur": 6, "pid": 1, "tid": 1},
            {"ph": "X", "name": "c", "ts": 20, "dur": 10, "pid": 1, "tid": 1},
            {"ph": "X", "name": "d", "ts": 29, "dur": 10, "pid": 1, "tid": 1}]
    told, _ = imported(bench, json.dumps(made))
    assert told["overlapping"] == 0
    check_nesting(bench.events("out.tare"))


def test_chrome(bench):
    made = [{"ph": "B", "name": "out", "ts": 0, "pid": 1, "tid": 1},
            {"ph": "B", "name": "in", "ts": 2, "pid": 1, "tid": 1},
            {"ph": "E", "ts": 5.5, "pid": 1, "tid": 1}, {"ph": "E", "ts": 9, "pid": 1, "tid": 1},
            {"ph": "E", "ts": 10, "pid": 1, "tid": 1}, {"ph": "B", "name": "open", "ts": 11, "pid": 1, "tid": 1},
            {"ph": "b", "cat": "r", "id": "0x1", "name": "request", "ts": 1, "pid": 1},
            {"ph": "e", "cat": "r", "id": "0x1", "name": "request", "ts": 21, "pid": 1},
            {"ph": "C", "name": "queue", "ts": 3, "pid": 1, "args": {"depth": 4}},
            {"args": {"read": 1, "write": 2}, "ph": "C", "name": "io", "ts": 4, "pid": 1},
            {"ph": "i", "name": "now", "ts": 6, "pid": 1, "tid": 1}, {"ph": "O", "name": "object"},
            {"ph": "X", "name": "no time", "pid": 1, "tid": 1}, {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1,
                                                                "args": {"name": "worker \u00e9"}}, 17]
    told, err = imported(bench, json.dumps(made))
    report = bench.json("out.tare")
    assert told["format"] == "Chrome"
    assert rows(report, "out") == (1, 9000, 5500) and rows(report, "in") == (1, 3500, 3500)
    assert (told["dropped_unmatched_ends"], told["unfinished"], told["dropped_invalid"]) == (1, 1, 2)
    assert told["unknown_phases"] == {"O": 1} and "unknown phase 'O'" in err
    counters = {row["name"]: row["last"] for row in report["counters"]}
    assert counters == {"queue": 4, "io: read": 1, "io: write": 2}
    assert report["marks"][0]["name"] == "now"
    assert "request" in json.dumps(report["tracks"])
    assert "worker \u00e9" in json.dumps(report["threads"], ensure_ascii=False)


def test_list_without_its_end(bench):
    """Chrome's list may just stop, as a killed program leaves it."""
    text = ('[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1},\n'
            '{"ph":"X","name":"b","ts":5,"dur":2,"pid":1,"tid":1},\n')
    told, _ = imported(bench, text)
    assert told["spans"] == 2 and told["damaged"] is None


def test_onnxruntime(bench):
    made = [{"cat": "Session", "pid": 5, "tid": 5, "dur": 300, "ts": 1, "ph": "X", "name": "model_run", "args": {}},
            {"cat": "Node", "pid": 5, "tid": 5, "dur": 30, "ts": 10, "ph": "X", "name": "conv1_kernel_time",
             "args": {"op_name": "Conv", "provider": "CPUExecutionProvider"}}]
    told, _ = imported(bench, json.dumps(made))
    report = bench.json("out.tare")
    kinds = {row["name"]: row["kind"] for row in report["spans"]}
    assert told["format"] == "ONNX Runtime" and told["steps"] == 1
    assert (kinds["Conv"], kinds["conv1"], kinds["model_run"]) == ("operator", "module", "step")
    assert rows(report, "Conv") == (1, 30000, 30000)


def test_quotes_nobody_escaped(bench):
    """Kineto writes names as they are. One such name must not cost the events behind it."""
    text = kineto.document().replace("SGD.step", 'the "best" SGD.step')
    with pytest.raises(json.JSONDecodeError) as wrong:
        json.loads(text)
    told, err = imported(bench, text)
    assert told["damaged"]["places"] == kineto.STEPS and not told["damaged"]["truncated"]
    assert told["damaged"]["first_byte"] == wrong.value.pos
    assert (told["steps"], told["operators"]) == (4, 20)
    assert f"byte {wrong.value.pos}" in err
    report = bench.json("out.tare")
    assert str(wrong.value.pos) in json.dumps(report["notes"] + [report["run"]])


def test_cut_anywhere(bench):
    """What was before the cut is kept, and where it was is told; nothing at all is exit status 3."""
    text = kineto.document()
    for at in range(0, len(text), 997 if SANITIZER == "none" else 4999):
        done = bench.tare("import", "--json", "--force", "-o", "out.tare", write(bench, text[:at]))
        whole = text[:at].count('"ph"')
        assert done.status in (0, 3), (at, done.err)
        if done.status == 0:
            told = json.loads(done.out)
            assert told["damaged"]["first_byte"] == at and told["damaged"]["truncated"], at
            assert whole - 1 <= told["events"] <= whole, at
        else:
            assert not text[:at].count('"X"') > 1, (at, done.err)


@pytest.mark.parametrize("text, sentence", [
    ("", "is empty"), ("hello", "not a JSON trace: byte 0"), ("{}", 'without "traceEvents"'),
    ("[]", "contains no spans"),
    ("17", "expected an object or a list"), ('{"traceEvents": 3}', 'without "traceEvents"'),
    ("[" * 1000, "nested too deeply"), (b"\x1f\x8b\x08\x00garbage", "cannot be read or decompressed"),
])
def test_nothing_to_read(bench, text, sentence):
    _, err = imported(bench, text, status=3)
    assert sentence in err, err
    assert not (bench.folder / "out.tare").exists()


def test_usage(bench):
    path = write(bench, kineto.document())
    assert bench.tare("import").status == 2
    assert bench.tare("import", path, path).status == 2
    assert bench.tare("import", "--force", path).status == 2
    assert bench.tare("import", "-o", path, path).status == 2
    assert bench.tare("import", bench.folder / "none.json").status == 3
    assert bench.tare("import", bench.folder).status == 3
    assert bench.tare("import", "-o", "/nowhere/out.tare", path).status == 1


def test_names_are_never_taken_over(bench):
    path = write(bench, kineto.document(), "job.pt.trace.json")
    for name in ("job.tare", "job.2.tare"):
        done = bench.tare("import", path)
        assert done.status == 0 and f"wrote {name}" in done.err, done.err
        assert (bench.folder / name).exists()
    quiet = bench.tare("import", "--quiet", path)
    assert quiet.status == 0 and quiet.err == "" and quiet.out == ""


def test_every_view(bench):
    imported(bench, kineto.document())
    for view in ("--html", "--json", "--chrome", "--perfetto", "--events"):
        assert bench.report("out.tare", view, "-o", "view").status == 0
    assert bench.report("out.tare", "--csv", "tables").status == 0
