"""`tare model` with the real ONNX Runtime: what it measures, and what it says when it cannot.

onnx and onnxruntime live in an environment of their own (TARE_ONNX names its interpreter; else
build/onnx/bin/python)."""
import csv
import json
import os
import pathlib
import re
import socket
import subprocess

import pytest

from conftest import BUILD, PATIENCE, ROOT, scaled
from waiting import until

ONNX = os.environ.get("TARE_ONNX", str(ROOT / "build" / "onnx" / "bin" / "python"))
SCRIPT = pathlib.Path(__file__).with_name("onnx_runs.py")
FAKES = BUILD / "tests" / "fake"
QUICK = ("--runs", "40", "--warmup", "3")


def some(rows):
    """All of them; the first where every instruction is checked, and the runtime takes long to load."""
    return rows[:scaled(len(rows))]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    if not os.path.exists(ONNX) or subprocess.run([ONNX, "-c", "import onnx, onnxruntime"],
                                                  capture_output=True).returncode:
        pytest.skip(f"there is no environment with onnx and onnxruntime ({ONNX})")
    folder = tmp_path_factory.mktemp("models")
    done = subprocess.run([ONNX, SCRIPT, folder], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def runtime():
    """The folder that the wheel's library is in."""
    return str(next(pathlib.Path(ONNX).parents[1].glob("lib/python3*/site-packages/onnxruntime/capi")))


def measured(bench, *words, status=0, options=QUICK):
    done = bench.tare("model", "--json", "--runtime", runtime(), *options, *words)
    assert done.status == status, (done.status, done.err[-2000:])
    return json.loads(done.out)


# ---- what is measured -----------------------------------------------------------------------------------------------

def test_figures_of_a_run(bench, models):
    report = measured(bench, models / "images.onnx")
    found = report["measured"]
    assert found["reason"] is None and found["stored_precision"] == "fp32"
    assert re.fullmatch(r"1\.\d+\.\d+", found["runtime_version"])
    (one,) = found["configurations"]
    latency = one["latency"]
    assert latency["runs"] == len(latency["samples_ns"]) == 40 and one["warmup_runs"] == 3
    assert latency["min_ns"] <= latency["p50_ns"] <= latency["p95_ns"] <= latency["max_ns"]
    assert latency["p50_interval"]["low_ns"] <= latency["p50_ns"] <= latency["p50_interval"]["high_ns"]
    assert latency["p99_interval"]["low_ns"] is None and latency["p99_interval"]["reason"] == "needs 368 runs"
    assert latency["p99_interval"]["needed"] == 368
    rates = {rate["unit"]: rate["value"] for rate in one["throughput"]}
    assert list(rates) == ["images/s", "samples/s", "requests/s"]
    assert 0 < rates["requests/s"] <= 1e9 / latency["min_ns"]
    memory = one["memory"]
    assert memory["before_bytes"] < memory["loaded_bytes"] and memory["average_bytes"] > 0
    assert one["load_ns"] > 0 and one["first_run_ns"] > 0


def test_configurations(bench, models):
    report = measured(bench, "--batch", "1,4", "--threads", "1,2", models / "images.onnx",
                      options=(*QUICK, "--no-layers"))
    rows = {row["name"]: row for row in report["measured"]["configurations"]}
    assert list(rows) == ["batch=1,threads=1", "batch=4,threads=1", "batch=1,threads=2", "batch=4,threads=2"]
    for row in rows.values():
        rates = {rate["unit"]: rate["value"] for rate in row["throughput"]}
        assert rates["images/s"] == pytest.approx(row["batch"] * rates["requests/s"])
    # Each that is not marked is beaten by one that is, but for the 2 % that are no difference.
    costs = {name: (row["latency"]["p50_ns"], 1 / row["throughput"][0]["value"], row["memory"]["peak_bytes"])
             for name, row in rows.items()}
    best = {name for name, row in rows.items() if row["best_trade_off"]}
    assert best
    for name in set(rows) - best:
        assert any(all(a <= 1.021 * b for a, b in zip(costs[other], costs[name])) for other in best), costs
    assert report["measured"]["layers"]["reason"] == "disabled (--no-layers)"


def test_layers_against_flops(bench, models):
    report = measured(bench, "--threads", "1", models / "images.onnx")
    layers = report["measured"]["layers"]
    assert layers["runs"] >= 1 and layers["peaks"]["f32"] > 1e8
    assert [level["name"] for level in layers["peaks"]["levels"]][-1] == "memory"
    assert all(level["bytes_per_second"] > 1e7 for level in layers["peaks"]["levels"])
    rows = layers["rows"]
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    # Whatever the runtime made of the graph, it multiplies as often as the file says.
    assert sum(row["macs"] or 0 for row in rows) == report["total"]["macs"]
    convolutions = [row for row in rows if "Conv" in row["op"]]
    assert len(convolutions) == 2
    (one,) = report["measured"]["configurations"]
    assert layers["total_ns"] == pytest.approx(sum(row["time_ns"] for row in rows))
    assert layers["profile_slowdown"] == pytest.approx(layers["total_ns"] / one["latency"]["p50_ns"])
    for row in convolutions:
        if layers["profile_slowdown"] > 1.5:
            assert row["flops_per_second"] is None and row["of_roof_absent"]
        elif row["time_ns"]:
            assert row["flops_per_second"] == pytest.approx(2e9 * row["macs"] / row["time_ns"])
        if row["of_roof_absent"] is None:
            assert row["bound"] in ("compute", "memory") and 0 < row["of_roof"] <= 1
        else:
            assert row["of_roof"] is None and row["bound"] is None


@pytest.mark.parametrize("name, precision", [("blocks", "fp32"), ("blocks_unnamed", "fp32"), ("blocks", "fp16")])
def test_layers_whose_channels_the_runtime_fills_up(bench, models, name, precision):
    """By hand: of each convolution the places, times the elements of its filters."""
    report = measured(bench, "--threads", "1", "--precision", precision, models / f"{name}.onnx")
    filters = (12 * 3 * 9, 20 * 12 * 9, 20 * 12, 20 * 9, 3 * 20)
    rows = report["measured"]["layers"]["rows"]
    assert sorted(row["macs"] for row in rows if "Conv" in row["op"]) == sorted(24 * 24 * one for one in filters)
    assert sum(row["macs"] or 0 for row in rows) == report["total"]["macs"] == 24 * 24 * sum(filters)
    assert all(row["macs"] == 0 for row in rows if row["op"] in ("Softmax", "ReduceMax", "Exp", "Cast"))


def test_precision_that_is_really_executed(bench, models):
    """The CPU has no kernels for half precision: the runtime casts, and that is told."""
    report = measured(bench, "--precision", "fp16,fp32", models / "half.onnx")
    half, single = report["measured"]["configurations"]
    assert half["precision"]["requested"] == "fp16" and half["failure"] is None
    assert "float32" in half["precision"]["executed"] and half["precision"]["casts_inserted"] >= 2
    assert "stored as fp16" in single["failure"] and single["precision"]["executed"] is None
    plain = measured(bench, models / "images.onnx")["measured"]["configurations"][0]["precision"]
    assert plain == {"requested": "fp32", "converted": False, "executed": "float32", "reason": None,
                     "casts_inserted": 0, "casts_share": 0}


HALVES = """
import sys, numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
single = session.run(None, {session.get_inputs()[0].name: np.load("input.npy")})[0]
kept = np.load("outputs.npy")[0]
assert kept.dtype == np.float32 and not np.array_equal(kept, single), "nothing was rounded"
np.testing.assert_allclose(kept, single, rtol=0.02, atol=0.01 * np.abs(single).max())
"""


@pytest.mark.parametrize("model, shape",
                         some([("mixed", (1, 3, 8, 8)), ("images", (1, 3, 32, 32)), ("beside", (1, 3, 32, 32))]))
def test_conversion_to_half_precision(bench, models, model, shape):
    """Weights, constants and casts are converted, and what comes out is nearly what single precision gives."""
    make = ("import numpy as np; "
            f"np.save('input.npy', np.random.default_rng(1).standard_normal({shape}).astype(np.float32))")
    subprocess.run([ONNX, "-c", make], cwd=bench.folder, check=True)
    (bench.folder / "post.py").write_text(POST.replace('print("thanks"', '[np.lib.format.read_array(pipe) for _ in '
                                                       f'range({model == "mixed":d})]; print("thanks"'))
    report = measured(bench, "--precision", "fp16", "--input", "input.npy", "--post", f"{ONNX} post.py",
                      models / f"{model}.onnx", options=("--runs", "5", "--warmup", "1"))
    (one,) = report["measured"]["configurations"]
    assert one["failure"] is None and one["precision"]["converted"] and one["precision"]["executed"]
    done = subprocess.run([ONNX, "-c", HALVES, models / f"{model}.onnx"], cwd=bench.folder, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    assert [path for path in bench.temporary.iterdir() if "tare" in path.name] == []  # nothing is left


def test_conversion_that_is_refused(bench, models):
    report = measured(bench, "--precision", "fp32,fp16,bf16", models / "branches.onnx", options=(*QUICK, "--no-layers"))
    single, half, other = report["measured"]["configurations"]
    assert single["failure"] is None and not half["precision"]["converted"]
    assert "not converted to fp16: it has graphs inside of nodes" in half["failure"]
    assert "stored as fp32 and cannot be converted; export it as bf16" in other["failure"]


def test_ids_are_known_words(bench, models):
    """50 words: an id beyond them fails. Tokens are counted, padding is none."""
    report = measured(bench, "--batch", "4", "--dim", "sequence=32", models / "words.onnx",
                      options=(*QUICK, "--no-layers"))
    (one,) = report["measured"]["configurations"]
    assert one["failure"] is None and report["measured"]["notes"] == []
    rates = {rate["unit"]: rate["value"] for rate in one["throughput"]}
    assert rates["tokens/s"] == pytest.approx(4 * 32 * rates["requests/s"])


NUMPY = """
import numpy as np
ids = np.arange(12).reshape(3, 4) % 50
mask = np.ones((3, 4), np.int64); mask[1, 2:] = 0; mask[2, 1:] = 0
np.save("ids.npy", ids); np.save("mask.npy", mask)
np.save("short.npy", ids.astype(np.int32)); np.save("wide.npy", ids.reshape(1, 3, 4))
ids.astype("<i8").tofile("ids.bin")
np.save("beyond.npy", ids + 50)
"""


def test_inputs_from_files(bench, models):
    subprocess.run([ONNX, "-c", NUMPY], cwd=bench.folder, check=True)
    words = ("--no-layers", models / "words.onnx")
    report = measured(bench, "-i", "input_ids=ids.npy", "-i", "attention_mask=mask.npy", *words)
    rates = {rate["unit"]: rate["value"] for rate in report["measured"]["configurations"][0]["throughput"]}
    assert rates["tokens/s"] == pytest.approx(7 * rates["requests/s"])  # 4 + 2 + 1
    assert rates["samples/s"] == pytest.approx(3 * rates["requests/s"])
    assert [one["shape"] for one in report["inputs"]] == [[3, 4], [3, 4]]  # weighed as it is run
    fill = report["inputs"][0]["fill"]
    assert {key: value for key, value in fill.items() if value is not None} == {
        "source": "given", "kind": "file", "path": "ids.npy", "text": "from ids.npy"}
    both = ("--shape", "attention_mask=3,4", "--shape", "input_ids=3,4")
    report = measured(bench, *both, "-i", "input_ids=ids.bin", *words)
    assert report["measured"]["configurations"][0]["batch"] == 3
    for given, sentence in some((("input_ids=short.npy", "is int32, and input 'input_ids' is int64"),
                                 ("input_ids=none.npy", "cannot read 'none.npy'"),
                                 ("other=ids.npy", "has no input 'other'"), ("ids.npy", "say --input NAME=ids.npy"))):
        done = bench.tare("model", "--runtime", runtime(), *QUICK, *both, "-i", given, *words)
        assert done.status == 3 and sentence in done.err, (given, done.status, done.err)
    for given, sentence in some((("input_ids=wide.npy", "is ?x?, not 1x3x4"),
                                 ("input_ids=beyond.npy", "cannot be run"))):
        done = bench.tare("model", "--runtime", runtime(), *QUICK, *both, "-i", given, *words)
        assert done.status == 3 and sentence in done.err, (given, done.status, done.err)


def test_inputs_from_the_command_line(bench, models):
    words = ("--no-layers", models / "words.onnx")
    report = measured(bench, "-i", "input_ids=1,2,3", "-i", "attention_mask=1", *words)
    assert report["inputs"][0]["shape"] == [1, 3] and report["inputs"][0]["fill"]["values"] == [1, 2, 3]
    assert report["measured"]["configurations"][0]["failure"] is None
    for given, sentence in (("input_ids=1,2,3,4,5", "5 values for 12 elements"), ("other=1", "has no input 'other'"),
                            ("7", "say --input NAME=")):
        done = bench.tare("model", "--runtime", runtime(), *QUICK, "--shape", "input_ids=3,4", "-i", given, *words)
        assert done.status == 3 and sentence in done.err, (given, done.status, done.err)
    done = bench.tare("model", "--static", "-i", "other=1", models / "words.onnx")
    assert done.status == 3 and "has no input 'other'" in done.err


PRE = """
import io, sys, numpy as np
for line in sys.stdin:
    answer = io.BytesIO()  # NumPy would seek in a pipe
    np.save(answer, np.full((1, 3, 32, 32), int(line), np.float32))
    sys.stdout.buffer.write(answer.getvalue())
    sys.stdout.buffer.flush()
"""
POST = """
import sys, types, numpy as np
pipe = types.SimpleNamespace(read=sys.stdin.buffer.read)  # NumPy would seek in a file
kept = []
while True:
    try:
        kept.append(np.lib.format.read_array(pipe))
    except ValueError:
        break
    print("thanks", flush=True)
np.save("outputs.npy", np.stack(kept))
"""
TRUTH = """
import sys, numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
outputs = np.load("outputs.npy")
assert len(outputs) == 41, len(outputs)  # one for the commands to start
for number, output in enumerate(outputs):
    truth, = session.run(None, {"image": np.full((1, 3, 32, 32), number, np.float32)})
    np.testing.assert_allclose(output, truth, rtol=1e-4, atol=1e-5)
"""


def test_end_to_end_with_commands_beside_it(bench, models):
    """What the command before the model makes goes in, and what comes out is what the runtime says of it."""
    for name, text in (("pre.py", PRE), ("post.py", POST)):
        (bench.folder / name).write_text(text)
    report = measured(bench, "--pre", f"{ONNX} pre.py", "--post", f"{ONNX} post.py", "--no-layers",
                      models / "images.onnx")
    (one,) = report["measured"]["configurations"]
    assert one["failure"] is None, one["failure"]
    assert one["end_to_end"]["runs"] == one["pre"]["runs"] == one["post"]["runs"] == 40
    assert one["end_to_end"]["mean_ns"] > one["pre"]["mean_ns"] + one["post"]["mean_ns"]
    done = subprocess.run([ONNX, "-c", TRUTH, models / "images.onnx"], cwd=bench.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = bench.tare("model", "--runtime", runtime(), *QUICK, "--pre", "echo nonsense", "--no-layers",
                      models / "images.onnx")
    assert "did not answer with .npy data" in done.err or "exited before it answered" in done.err


# ---- how it is shown ------------------------------------------------------------------------------------------------

def test_text_fits_a_terminal(bench, models):
    done = bench.tare("model", "--runtime", runtime(), *QUICK, "--batch", "1,2", models / "images.onnx",
                      "--threshold", "latency:1h", "throughput:1samples/s", "memory:1TB")
    assert done.status == 0, done.err
    for line in done.out.splitlines():
        assert len(line) <= 80, line
    text = " ".join(done.out.split())  # sentences are broken where the line ends
    for word in ("Measured with ONNX Runtime", "too few runs for an interval", "executed", "Layers, timed", "kept"):
        assert word in text, word


def test_csv_and_page(bench, models):
    words = ("--runtime", runtime(), *QUICK, "--batch", "1,2", models / "images.onnx")
    assert bench.tare("model", "--csv", "tables", *words).status == 0
    rows = list(csv.DictReader(open(bench.folder / "tables" / "measured_configurations.csv", newline="")))
    assert [row["name"] for row in rows] == ["batch=1", "batch=2"]
    runs = list(csv.DictReader(open(bench.folder / "tables" / "measured_configurations_latency_samples_ns.csv",
                                    newline="")))
    assert len(runs) == 80 and all(float(row["sample_ns"]) > 0 for row in runs)
    assert len(list(csv.DictReader(open(bench.folder / "tables" / "measured_layers_rows.csv", newline="")))) > 2
    assert bench.tare("model", "--html", "-o", "page.html", *words).status == 0
    page = (bench.folder / "page.html").read_text()
    assert "<h2>Measured</h2>" in page and "<svg" in page and "best trade-off" in page and "<script" not in page


def test_figures_are_what_compare_and_check_read(bench, models):
    for name in ("base", "head"):
        (bench.folder / f"{name}.json").write_text(json.dumps(measured(bench, models / "images.onnx")))
    done = bench.tare("compare", "--json", "base.json", "head.json")
    assert done.status == 0, done.err
    assert "model.latency" in done.out and "model.macs" in done.out and "layer:" in done.out
    report = json.loads((bench.folder / "base.json").read_text())
    rows = {row["name"]: row for row in report["figures"]["figures"]}
    assert rows["model.macs"]["exact"] and rows["model.macs"]["value"] == report["total"]["macs"]
    assert len(rows["model.latency"]["samples"]) == 40 and rows["model.throughput"]["better"] == "higher"
    done = bench.tare("check", "head.json", "--baseline", "base.json", "--threshold", "model.*:10000%")
    assert done.status == 0, (done.out, done.err)


# ---- thresholds -----------------------------------------------------------------------------------------------------

def test_thresholds(bench, models):
    words = ("model", "--runtime", runtime(), *QUICK, "--no-layers", models / "images.onnx")
    done = bench.tare(*words, "--threshold", "latency:1ns", "throughput:1samples/s", "memory:2GB", "p99:1h")
    assert done.status == 1 and "1 of 4 thresholds exceeded" in done.err
    table = done.out[done.out.index("Thresholds"):]
    assert re.search(r"latency .* 1 ns +\d.*%", table) and table.count("kept") == 3
    done = bench.tare(*words, "--json", "--threshold", "throughput:1000000000images/s", "--threshold", "load:1h")
    assert done.status == 1
    broken, kept = json.loads(done.out)["measured"]["thresholds"]
    assert broken["broken"] and 0.9 < broken["broken_by"] < 1 and broken["bound"] == "at least"
    assert not kept["broken"] and kept["broken_by"] is None
    # What was not measured is not kept.
    done = bench.tare(*words, "--threshold", "end_to_end:1h")
    assert done.status == 1 and "requires --pre or --post" in done.out
    done = bench.tare(*words, "--threshold", "throughput:1tokens/s")
    assert done.status == 1 and "n/a" in done.out


@pytest.mark.parametrize("threshold", ["latency", "latency:", "latency:fast", "speed:100ms", "latency:2GB",
                                       "throughput:100ms", "latency:5%"])
def test_thresholds_that_make_no_sense(bench, threshold):
    done = bench.tare("model", "--threshold", threshold, "none.onnx")
    assert done.status == 2 and "--threshold" in done.err and done.out == ""


# ---- what goes wrong ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("words", [("--runs", "0"), ("--runs", "many"), ("--threads", "0"), ("--threads", "1,,2"),
                                   ("--precision", "fp8"), ("--duration", "0"), ("--warmup", "-1"), ("--input", "=x"),
                                   ("--static", "--runs", "5"), ("--seed", "x"), ("--pre", "")])
def test_wrong_usage(bench, words):
    done = bench.tare("model", *words, "none.onnx")
    assert done.status == 2 and words[0] in done.err and done.out == "", done.err


def test_models_that_do_not_run(bench, models):
    for model, sentence in (("fails.onnx", "the model cannot be run"), ("unknown.onnx", "cannot load the model")):
        done = bench.tare("model", "--runtime", runtime(), *QUICK, models / model)
        assert done.status == 3 and sentence in done.err, (model, done.status, done.err)
        assert "compute " in done.out and sentence.split()[-1] in done.out  # the file is weighed all the same


def test_sizes_stay_what_they_are_in_half_precision(bench, models):
    """They are computed with numbers that half precision does not have: what is resized has as many rows as before."""
    report = measured(bench, "--precision", "fp16", models / "sized_by_floats.onnx")
    (one,) = report["measured"]["configurations"]
    assert one["failure"] is None, one["failure"]
    (macs,) = [row["macs"] for row in report["measured"]["layers"]["rows"] if "Conv" in row["op"]]
    assert macs == 2 * 3073 * 5  # by hand, and as the file has it


def test_dimensions_that_only_the_weights_tell(bench, models):
    report = measured(bench, "--batch", "2", "--dim", "height=6", "--dim", "width=5", models / "open.onnx",
                      options=(*QUICK, "--no-layers"))
    assert [one["shape"] for one in report["inputs"]] == [[2, 6, 6, 5], [2, 7]]
    assert [one["shape"] for one in report["outputs"]] == [[2, 8], [2, 5]]
    assert report["total"]["macs"] == 2 * (8 * 30 * 3 * 9 + 7 * 5) and report["notes"] == []
    assert report["measured"]["configurations"][0]["failure"] is None
    # Who says otherwise is taken at their word.
    done = bench.tare("model", "--static", "--dim", "channels=4", models / "open.onnx")
    assert done.status == 0 and "channels=4" in done.out and "do not match" in done.out


@pytest.mark.parametrize("name", ["sequence", "optional", "string"])
def test_inputs_that_no_values_can_be_made_up_for(bench, models, name):
    """The model is weighed all the same; it fails only where running was asked for."""
    sentence = f"input 'x' is of type {name}, for which no values can be generated"
    done = bench.tare("model", "--runtime", runtime(), "--no-layers", models / f"{name}.onnx")
    assert done.status == 3 and sentence in done.err and "compute " in done.out  # --runtime asks for it
    done = bench.tare("model", models / f"{name}.onnx", env={"TARE_ONNXRUNTIME": runtime()})
    assert done.status == 0 and sentence in done.err and "compute " in done.out and f"x {name} [" in done.out


def test_outputs_that_are_no_tensors(bench, models):
    report = measured(bench, models / "pieces.onnx")
    assert report["outputs"][0]["type"] == "sequence" and report["outputs"][0]["shape"] is None
    assert report["measured"]["configurations"][0]["latency"]["runs"] == 40


def test_a_runtime_that_is_killed_leaves_no_folder(bench, models):
    """Nor stay those of commands that were killed themselves."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = bench.temporary / f"tare-model-{gone.pid}.abcdef"
    left.mkdir(mode=0o700)
    (left / "run_1.json").write_text("[")
    done = bench.tare("model", "--json", "--runtime", FAKES / "ort.so", *QUICK, models / "kill-profile.onnx")
    layers = json.loads(done.out)["measured"]["layers"]
    assert done.status == 0 and "killed running profiled: out of memory" in layers["reason"]
    assert [path.name for path in bench.temporary.iterdir() if path.name.startswith("tare-model")] == []


def test_batch_of_a_model_that_has_its_own(bench, models):
    done = bench.tare("model", "--runtime", runtime(), *QUICK, "--batch", "4", models / "fixed.onnx")
    assert done.status == 3 and "the model's batch is fixed at 1" in done.err
    done = bench.tare("model", "--runtime", runtime(), *QUICK, "--no-layers", "--batch", "1,4", models / "fixed.onnx")
    assert done.status == 0 and "batch=4: the model's batch is fixed at 1" in done.err  # one of them ran


def nowhere(bench):
    """A PATH whose python3 has no onnxruntime, and a loader that finds none."""
    folder = bench.folder / "bin"
    folder.mkdir()
    (folder / "python3").write_text("#!/bin/sh\nexit 1\n")
    (folder / "python3").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "VIRTUAL_ENV": "", "LD_LIBRARY_PATH": ""}


def test_no_runtime(bench, models):
    """The static report all the same, with the reason; a failure only when running was asked for."""
    env = nowhere(bench)
    done = bench.tare("model", models / "images.onnx", env=env)
    if "no ONNX Runtime was found" not in done.out and "Measured with" in done.out:
        pytest.skip("the loader of this machine finds an ONNX Runtime by itself")
    assert done.status == 0 and "compute " in done.out and "pip install onnxruntime" in done.out
    done = bench.tare("model", "--json", "--threshold", "latency:1h", models / "images.onnx", env=env)
    found = json.loads(done.out)
    assert done.status == 1 and "pip install onnxruntime" in done.err
    assert "pip install onnxruntime" in found["measured"]["reason"] and found["measured"]["configurations"] == []
    assert found["total"]["macs"] > 0 and found["measured"]["thresholds"][0]["broken"]
    done = bench.tare("model", "--json", "--static", models / "images.onnx", env=env)
    assert done.status == 0 and json.loads(done.out)["measured"] is None


def test_where_the_runtime_is_searched_for(bench, models):
    words = ("model", "--json", "--no-layers", "--runs", "5", "--warmup", "1", models / "images.onnx")
    env = nowhere(bench)
    venv = str(pathlib.Path(ONNX).parents[1])
    for changes in some(({"VIRTUAL_ENV": venv}, {"PATH": f"{venv}/bin:{env['PATH']}"}, {"TARE_ONNXRUNTIME": runtime()},
                         {"LD_LIBRARY_PATH": str(bench.folder / "lib")})):
        if "LD_LIBRARY_PATH" in changes:
            (bench.folder / "lib").mkdir()
            library = next(pathlib.Path(runtime()).glob("libonnxruntime.so.1.*"))
            os.symlink(library, bench.folder / "lib" / "libonnxruntime.so.1")
        done = bench.tare(*words, env={**env, **changes})
        assert done.status == 0, (changes, done.err)
        assert json.loads(done.out)["measured"]["reason"] is None, changes


def test_runtimes_of_no_use(bench, models):
    for library, sentence in ((FAKES / "ort_old.so", "ONNX Runtime 1.2.0"), (FAKES / "nvml.so", "has no OrtGetApiBase"),
                              (models, "no libonnxruntime.so in"),
                              ("/nowhere/ort.so", "'/nowhere/ort.so': No such file")):
        done = bench.tare("model", "--runtime", library, models / "images.onnx")
        assert done.status == 1 and sentence in done.err and "compute " in done.out, (library, done.err)


def test_what_is_no_file(bench, models):
    """Neither waited for nor read: a FIFO without a writer, a socket, a folder, a device."""
    os.mkfifo(bench.folder / "fifo")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(bench.folder / "socket"))
    (bench.folder / "folder").mkdir()
    for name, what in (("fifo", "a pipe"), ("socket", "a socket"), ("folder", "a folder"), ("/dev/zero", "a device")):
        path = bench.folder / name
        done = bench.tare("model", "--runtime", FAKES / "ort.so", *QUICK, "-i", f"image={path}", models / "images.onnx",
                          timeout=60)
        assert done.status == 3 and f"it is {what}" in done.err, (name, done.status, done.err)
        if name != "folder":  # looked into
            done = bench.tare("model", "--runtime", path, models / "images.onnx", timeout=60)
            assert done.status == 1 and f"is {what}, not a library" in done.err, (name, done.status, done.err)
        for option in ("--static", "--no-layers"):
            done = bench.tare("model", option, path, timeout=60)
            assert done.status == 3 and f"it is {what}" in done.err, (name, done.status, done.err)


def test_a_crash_of_the_runtime_keeps_the_report(bench, models):
    for word, sentence, runs in (("crash-load", "crashed loading the model", 0), ("crash-run", "crashed running", 22),
                                 ("exit-run", "ended the process", 0)):
        done = bench.tare("model", "--json", "--runtime", FAKES / "ort.so", *QUICK, models / f"{word}.onnx")
        report = json.loads(done.out)
        (one,) = report["measured"]["configurations"]
        assert done.status == 3 and sentence in one["failure"] and sentence in done.err, (word, done.err)
        assert report["total"]["macs"] == 16
        assert (one["latency"] or {"runs": 0})["runs"] == runs  # what came before the crash is kept


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_killed_while_it_runs(bench, models):
    """What is run goes with the command."""
    process = bench.start(BUILD / "tare", "model", "--runtime", runtime(), "--runs", "1000000", models / "images.onnx")
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    until(lambda: process.poll() is not None or children.read_text().strip(), "it has a child", pause=0)
    child = children.read_text().strip() if process.poll() is None else ""
    assert child, process.stderr.read()
    process.kill()
    process.communicate(timeout=PATIENCE)
    until(lambda: not runs(child), "its child has ended")
