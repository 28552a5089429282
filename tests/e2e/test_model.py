"""`tare model`: what a file weighs, against published figures, onnx and onnx-tool; and files that are no models."""
import csv
import json
import os
import random
import subprocess

import pytest

from conftest import PATIENCE, ROOT, SANITIZER, TARE, scaled

ONNX = os.environ.get("TARE_ONNX", str(ROOT / "build" / "onnx" / "bin" / "python"))
HERE = os.path.dirname(os.path.abspath(__file__))


SHAPED = ["resnet50", "mobilenetv2", "vit_b_16", "bert_base", "old_style", "from_tensorflow", "quantized",
          "attention_23", "conv_transposed", "halved", "sized_by_floats", "spectrum_old", "losses"]
RUN = ["halved", "sized_by_floats", "spectrum", "spectrum_old", "classic_linear", "classic_vectors", "classic_trees",
       "texts"]
COUNTED = ["mobilenetv2", "conv_grouped"]


def has_onnx():
    probe = "import importlib.util as u; exit(not u.find_spec('onnx'))"
    return os.path.exists(ONNX) and subprocess.run([ONNX, "-c", probe]).returncode == 0


pytestmark = pytest.mark.skipif(not has_onnx(), reason=f"{ONNX} has no onnx: tools/setup test makes it")


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """Every model of onnx_models.py in a folder, and what others say of them."""
    folder = tmp_path_factory.mktemp("models")
    command = [ONNX, "-B", os.path.join(HERE, "onnx_truth.py"), str(folder), ",".join(SHAPED), ",".join(COUNTED),
               ",".join(RUN)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=PATIENCE)
    return {**json.loads(done.stdout), "folder": folder}


@pytest.fixture
def models(truth):
    return truth["folder"]


def analyze(bench, path, *options):
    done = bench.tare("model", "--static", "--json", *options, path)
    assert done.status == 0, (done.status, done.err)
    assert done.err == ""
    return json.loads(done.out)


# ---- published figures ------------------------------------------------------------------------------------------
PUBLISHED = [  # model, options, MACs, parameters
    ("resnet50", [], 4_089_184_256, 25_557_032),
    ("mobilenetv2", [], 300_774_272, 3_504_872),
    ("vit_b_16", [], 17_563_828_224, 86_567_656),
    ("bert_base", ["--dim", "sequence=128"], 11_174_215_680, 109_482_240),
    ("bert_fused", ["--dim", "sequence=128"], 11_174_215_680, 109_482_240),
    ("gpt2", ["--dim", "sequence=1024"], 291_648_307_200 // 2, 124_337_664),
]


@pytest.mark.parametrize("name, options, macs, parameters", PUBLISHED)
def test_published_figures(bench, models, name, options, macs, parameters):
    found = analyze(bench, models / f"{name}.onnx", *options)
    total = found["total"]
    assert total["macs"] == macs
    assert total["flops"] == 2 * macs
    assert total["parameters"] == parameters
    assert total["nodes_not_counted"] == 0 and total["activations_known"]
    for key in ("macs", "parameters", "other_operations", "output_bytes"):
        assert sum(row[key] for row in found["operators"]) == total[key]
        assert sum(row[key] for row in found["layers"]) == total[key]
    assert sum(row["bytes"] for row in found["weights_by_type"]) == total["weight_bytes"]
    assert sum(row["bytes"] for row in found["weights_by_use"]) == total["weight_bytes"]
    assert found["file_bytes"] == (models / f"{name}.onnx").stat().st_size
    assert found["external_bytes"] == (models / f"{name}.data").stat().st_size
    assert 0 < total["activation_peak_bytes"] < total["output_bytes"]


def test_batch_scales_the_work_and_not_the_weights(bench, models):
    one, eight = analyze(bench, models / "resnet50.onnx"), analyze(bench, models / "resnet50.onnx", "--batch", "8")
    assert eight["total"]["macs"] == 8 * one["total"]["macs"]
    assert eight["total"]["activation_peak_bytes"] == 8 * one["total"]["activation_peak_bytes"]
    assert eight["total"]["weight_bytes"] == one["total"]["weight_bytes"]
    assert one["dimensions"] == [{"name": "batch", "value": 1, "assumed": True}] and one["notes"]
    assert eight["dimensions"] == [{"name": "batch", "value": 8, "assumed": False}] and not eight["notes"]
    assert eight["outputs"][0]["shape"] == [8, 1000] and eight["outputs"][0]["symbols"] == ["batch", None]
    shaped = analyze(bench, models / "resnet50.onnx", "--shape", "image=8,3,224,224")
    assert shaped["total"] == eight["total"] and not shaped["notes"]


def test_statistics_are_no_parameters(bench, models):
    uses = {row["use"]: row for row in analyze(bench, models / "resnet50.onnx")["weights_by_use"]}
    assert uses["statistics"]["elements"] == 2 * 26_560  # running means and variances
    assert uses["parameters"]["elements"] == 25_557_032


def test_peak_of_activations_by_hand(bench, models):
    found = analyze(bench, models / "elementwise_only.onnx")["total"]
    # x (held by the caller), relu's output and the sum; the softmax comes when relu's is gone
    assert found["activation_peak_bytes"] == 3 * 64
    assert found["output_bytes"] == 3 * 64


SMALL = {  # MACs, parameters, shapes that come out
    "conv_grouped": (12 * 2 * 9 * 256, 216, [[1, 12, 16, 16]]),
    "conv_transposed": (4 * 64 * 6 * 4, 96, [[1, 6, 16, 16]]),  # by the input's places, not the output's
    "lstm": (2 * 80 * (10 + 20), 5120, [[1, 2, 1, 20], [2, 1, 20], [2, 1, 20]]),
    "einsum": (2 * 5 * 7 * 3 * 4, 0, [[2, 3, 5, 7]]),
    "elementwise_only": (0, 0, [[4, 4]]),
    "if_unknown": (2 * 2 * 4 * 32, 320, [[2, 4]]),  # as the flag that is generated says; the weights of both
    "if_computed": (2 * 2 * 4 * 8, 320, [[2, 4]]),  # the cheaper branch
    "if_known": (2 * 2 * 4 * 8, 320, [[2, 4]]),
    "loop_known": (10 * 3 * 4 * 4, 16, [[3, 4], [10, 3, 4]]),
    "loop_unknown": (3 * 4 * 4, 16, [[3, 4], [None, 3, 4]]),
    "scan": (6 * 4, 24, [[1, 4], [1, 1, 4]]),
    "function": (30 + 15, 53, [[1, 3]]),
    "shared": (3 * 2 * 16 * 16, 256, [[2, 16]]),
    "attention_23": (2 * 8 * 10 * 30 * (16 + 24), 0, [[2, 8, 10, 24]]),
    "many_heads": (4 * 10 * 30 * (16 + 8), 0, [[1, 10, 32]]),
    "group_query": (8 * 100 * (8 + 8), 0, [[1, 1, 64], [1, 2, 100, 8], [1, 2, 100, 8]]),
    "quantized": (36 * 288 + 288 * 16, 288 + 8 + 288 * 16, [[1, 16]]),
    "fused": (64 * 32 + 8 * 5 * 64, 40, [[1, 8, 5]]),
    "old_style": (100 * 108, 108, [[1, 1, 18, 22]]),
    "from_tensorflow": (25 * 216 + 72 * 5, 584, [[1, 5]]),
    "unknown_operator": (2 * 4 * 4 + 2 * 4 * 3, 28, [[2, 3]]),
    "data_dependent": (0, 3, [[None, 3]]),
    "unsorted": (0, 0, [[2, 2]]),
    "outside_tied": (2 * 2 * 16, 16, [[2, 4]]),
    "outside_missing": (32, 16, [[2, 4]]),
    "halved": (4 * 3 * 256, 12 + 16, [[1, 4, 16, 16], [1, 4, 16, 16]]),
    "sized_by_floats": (2 * 3073 * 5, 2 + 2, [[1, 2, 3073, 5]]),
    "spectrum": (23 * 201 * 80, 0, [[1, 23, 80], [1, 23, 201, 2], [1, 2049, 2], [2, 6, 100, 2]]),
    "spectrum_old": (0, 0, [[3, 64, 5, 2], [3, 64, 3, 2]]),
    "losses": (0, 0, [[], [1, 10, 7], [1, 7], []]),
    "classic_linear": (18 + 12, 0, [[1, 3], [1, 2], [1]]),
    "classic_vectors": (20 + 5 + 20 + 10, 0, [[1, 1], [1, 3], [1]]),
    "classic_trees": (0, 0, [[1, 2], [1, 1], [1, 3], [1, 1]]),
    "texts": (0, 0, [[1, 3], [1], [1, None], [1], [1]]),
}


@pytest.mark.parametrize("name", SMALL)
def test_small(bench, models, name):
    macs, parameters, shapes = SMALL[name]
    found = analyze(bench, models / f"{name}.onnx")
    assert found["total"]["macs"] == macs
    assert found["total"]["parameters"] == parameters
    assert [output["shape"] for output in found["outputs"]] == shapes


OTHER = {  # operations of one operator, by the rules of docs/MODELS.md
    ("spectrum", "STFT"): 23 * (5 * 400 * 9 // 2 + 400),
    ("spectrum", "DFT"): 5 * 4096 * 12 // 2 + 2 * 6 * 5 * 100 * 7,
    ("spectrum_old", "DFT"): 15 * (5 * 64 * 6 // 2) + 3 * 64 * (5 * 5 * 3 // 2),
    ("losses", "SoftmaxCrossEntropyLoss"): 5 * 70 + 7,
    ("losses", "NegativeLogLikelihoodLoss"): 2 * 7,
    ("classic_linear", "Scaler"): 2 * 6,
    ("classic_linear", "LinearClassifier"): 3 + 5 * 3,
    ("classic_linear", "Normalizer"): 3 * 6,
    ("classic_vectors", "SVMRegressor"): 3 * 5,
}


@pytest.mark.parametrize("name, op", OTHER)
def test_other_operations(bench, models, name, op):
    row = next(row for row in analyze(bench, models / f"{name}.onnx")["operators"] if row["op"] == op)
    assert row["other_operations"] == OTHER[name, op] and row["not_counted"] == 0


def test_weights_in_attributes_and_trees_are_told(bench, models):
    notes = analyze(bench, models / "classic_linear.onnx")["notes"]
    assert any("weights of LinearClassifier are attributes" in note for note in notes)
    rows = {row["op"]: row for row in analyze(bench, models / "classic_trees.onnx")["operators"]}
    for op in ("TreeEnsembleClassifier", "TreeEnsembleRegressor"):
        assert rows[op]["macs"] is None and "depends on its values" in rows[op]["reason"]
    assert rows["ZipMap"]["not_counted"] == 0
    rows = {row["op"]: row for row in analyze(bench, models / "texts.onnx")["operators"]}
    assert all("lengths of the texts" in row["reason"] for row in rows.values()) and len(rows) == 5


def test_what_is_not_counted_is_named(bench, models):
    found = analyze(bench, models / "unknown_operator.onnx")
    strange = next(row for row in found["operators"] if row["op"] == "Strange")
    figures = [strange[key] for key in ("domain", "nodes", "not_counted", "macs")]
    assert figures == ["some.where", 1, 1, None]
    assert "no rule" in strange["reason"] and found["total"]["nodes_not_counted"] == 1
    text = bench.tare("model", "--static", models / "unknown_operator.onnx").out
    assert "not counted: 1 of 1 some.where.Strange: no rule for this operator" in text
    assert "at least 56 MACs, 112 FLOPs" in text and found["total"]["at_least"] and found["total"]["other_at_least"]
    assert [(row["op"], row["reason"]) for row in found["not_counted"]] == [
        ("Strange", "no rule for this operator")]
    after = analyze(bench, models / "data_dependent.onnx")
    layer = next(row for row in after["layers"] if row["name"] == "after")
    assert layer["macs"] is None and layer["state"] == "no shape" and not after["total"]["activations_known"]
    assert after["total"]["at_least"] and not after["total"]["other_at_least"]  # only a product is left out
    page = bench.tare("model", "--static", "--html", models / "unknown_operator.onnx").out
    assert ">≥ 56<" in page
    bench.tare("model", "--static", "--csv", bench.folder / "tables", models / "unknown_operator.onnx")
    rows = (bench.folder / "tables" / "total.csv").read_text().splitlines()
    assert "macs,56,count," in rows and "at_least,true,," in rows


def test_loops_and_branches_are_told(bench, models):
    turn = next(row for row in analyze(bench, models / "loop_known.onnx")["layers"] if row["name"].endswith("turn"))
    assert (turn["name"], turn["times"], turn["macs"]) == ("loop/body/turn", 10, 480)
    loop, either = analyze(bench, models / "loop_unknown.onnx"), analyze(bench, models / "if_computed.onnx")
    assert any("one is counted" in note for note in loop["notes"])
    assert any("the cheaper one, is counted; else_branch costs 384 MACs more" in note for note in either["notes"])
    for found, name in ((loop, "loop"), (either, "either")):
        assert found["total"]["at_least"] and [row["name"] for row in found["not_counted"]] == [name]
    assert not either["total"]["activations_known"]
    for flag, macs in (("true", 128), ("false", 512)):
        found = analyze(bench, models / "if_unknown.onnx", "-i", f"which={flag}")
        assert (found["total"]["macs"], found["total"]["at_least"]) == (macs, False)
    for turns in (1, 7):
        found = analyze(bench, models / "loop_counted.onnx", "-i", f"often={turns}")
        assert (found["total"]["macs"], found["total"]["at_least"]) == (turns * 3 * 4 * 4, False)
    assert [row["name"] for row in analyze(bench, models / "function.onnx")["layers"]] == [
        "first/inner/product", "first/add", "second/inner/product", "second/add"]


# ---- against others ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SHAPED)
def test_shapes_are_those_of_onnx(bench, truth, name):
    theirs, compared = truth["shapes"][name], 0
    for layer in analyze(bench, truth["folder"] / f"{name}.onnx", "--batch", "3")["layers"]:
        ours, known = layer["output"]["shape"], theirs.get(layer["output"]["name"])
        if known is None:
            continue
        assert len(ours) == len(known), layer
        assert all(b is None or a == b for a, b in zip(ours, known)), (layer, known)
        compared += 1
    assert compared > 0


@pytest.mark.parametrize("name", RUN)
def test_shapes_are_those_of_the_runtime(bench, truth, name):
    if truth["ran"][name] is None:
        pytest.skip("there is no ONNX Runtime here")
    found = analyze(bench, truth["folder"] / f"{name}.onnx", "--batch", "3")
    for output, known in zip(found["outputs"], truth["ran"][name]):
        shape = output["shape"]
        assert [b if a is None and name == "texts" else a
                for a, b in zip(shape, known)] == known and len(shape) == len(known)


@pytest.mark.parametrize("name", COUNTED)
def test_macs_are_those_of_onnx_tool(bench, truth, name):
    if truth["macs"][name] is None:
        pytest.skip("there is no onnx-tool here")
    assert analyze(bench, truth["folder"] / f"{name}.onnx")["total"]["macs"] == truth["macs"][name]


def test_models_that_onnx_ships(bench, truth):
    """Exported by older tools, weights made by ConstantOfShape: the shape of everything that comes out is found."""
    files = [os.path.join(folder, name) for folder, _, names in os.walk(truth["shipped"]) for name in sorted(names)
             if name.endswith(".onnx")]
    if not files:
        pytest.skip("this onnx ships no models")
    for path in files[::1 if SANITIZER == "none" else 10]:
        done = bench.tare("model", "--static", "--json", path)
        assert done.status == 0, (path, done.err)
        found = json.loads(done.out)
        assert all(output["shape"] is not None for output in found["outputs"]), path


# ---- views ------------------------------------------------------------------------------------------------------
def test_text_fits_a_terminal(bench, models):
    for name in ("resnet50", "gpt2", "unknown_operator", "if_unknown"):
        for line in bench.tare("model", "--static", models / f"{name}.onnx").out.splitlines():
            assert len(line) <= 80, line
    text = bench.tare("model", "--static", models / "resnet50.onnx").out
    assert "4.09G MACs, 8.18G FLOPs" in text and "25.6M parameters" in text
    assert "image float32 [batch=1, 3, 224, 224]" in text and "Heaviest layers" in text
    assert len(bench.tare("model", "--static", "--all", models / "resnet50.onnx").out.splitlines()) > 175


def test_csv_and_html(bench, models):
    folder = bench.folder / "tables"
    assert bench.tare("model", "--static", "--csv", folder, models / "resnet50.onnx").status == 0
    tables = {path.name: list(csv.DictReader(path.open(newline=""))) for path in folder.iterdir()}
    assert {"model.csv", "total.csv", "operators.csv", "layers.csv", "inputs.csv", "outputs.csv",
            "weights_by_type.csv"} <= set(tables)
    assert sum(int(row["macs"]) for row in tables["layers.csv"]) == 4_089_184_256
    assert {row["key"]: row["value"] for row in tables["total.csv"]}["parameters"] == "25557032"
    page = bench.folder / "page.html"
    assert bench.tare("model", "--static", "--html", "-o", page, models / "resnet50.onnx").status == 0
    text = page.read_text()
    assert ">4089184256</dd>" in text and "<script" not in text


def test_names_are_escaped(bench, models):
    path = bench.folder / "named.onnx"
    data = (models / "unsorted.onnx").read_bytes()
    name = b"Neg_1"  # of a node and of what it makes
    assert data.count(name) > 1
    path.write_bytes(data.replace(name, b"<a>&\x1b"))
    assert "<a>" not in bench.tare("model", "--static", "--html", path).out
    assert "\x1b" not in bench.tare("model", "--static", path).out
    assert any(layer["node"] == "<a>&\x1b" for layer in analyze(bench, path)["layers"])


# ---- what the user says ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("words, sentence", [
    (["--dim", "width=3"], "no input has a dimension 'width'; there are: batch"),
    (["--shape", "picture=1,3,8,8"], "the model has no input 'picture'"),
    (["--shape", "image=1,3"], "the input 'image' has 4 dimensions, not 2"),
    (["--shape", "image"], "is not INPUT=N,N"),
    (["--shape", "image=1,,3"], "is not INPUT=N,N"),
    (["--dim", "batch"], "is not NAME=N"),
    (["--dim", "batch=-1"], "is not NAME=N"),
    (["--batch", "0"], "is not a batch size"),
    (["--batch", "four"], "is not a batch size"),
    (["--json", "--html"], "are mutually exclusive"),
    (["--nonsense"], "unknown option --nonsense"),
])
def test_wrong_words(bench, models, words, sentence):
    done = bench.tare("model", *words, models / "resnet50.onnx")
    assert done.status == 2 and sentence in done.err and done.out == ""


OTHERS = {  # what starts so, and what is said of it
    b"PK\3\4 and so on": "torch.onnx.export", b"\x80\2}q": "a pickle", b"\x89HDF\r\n": "Keras", b"\x1f\x8b\b": "gunzip",
    b"\x20\0\0\0ORTM": "ONNX Runtime's own format", b"version https://git-lfs.github.com/spec/v1": "git lfs pull",
    b"<!DOCTYPE html>": "failed download", b'\x40\0\0\0\0\0\0\0{"w":': "safetensors", b'{"a": 1}': "JSON",
    b"GGUF\3\0": "GGUF", b"\x1c\0\0\0TFL3": "TensorFlow Lite", b"some text": "or is damaged",
}


@pytest.mark.parametrize("start", OTHERS, ids=[words.split()[-1] for words in OTHERS.values()])
def test_files_of_other_kinds_are_recognized(bench, start):
    path = bench.folder / "model"
    path.write_bytes(start + bytes(64))
    done = bench.tare("model", path)
    assert done.status == 3 and done.out == "", done.err
    assert OTHERS[start] in done.err and "is not an ONNX model" in done.err, done.err


def test_a_model_that_is_cut_off(bench, models):
    path = bench.folder / "cut.onnx"
    path.write_bytes((models / "quantized.onnx").read_bytes()[:900])
    done = bench.tare("model", path)
    assert done.status == 3 and "truncated inside its graph" in done.err


def test_no_model_or_two(bench, models):
    assert bench.tare("model").status == 2
    assert bench.tare("model", "--static", models / "shared.onnx", models / "scan.onnx").status == 2
    assert bench.tare("model", "-o", models / "shared.onnx", models / "shared.onnx").status == 2


def test_shapes_that_do_not_fit_are_told(bench, models):
    found = analyze(bench, models / "shared.onnx", "--shape", "x=2,15")
    assert any(layer["reason"] and "do not match" in layer["reason"] for layer in found["layers"])


# ---- files that are no models --------------------------------------------------------------------------------------
BROKEN = {
    "broken_cycle": "the graph has a cycle", "broken_twice": "two nodes produce 'a'",
    "broken_missing": "nothing makes the input 'nowhere'",
    "broken_huge": "larger than can be counted", "broken_product": "larger than can be counted",
    "broken_recursion": "call themselves", "broken_bomb": "unfold into more than",
    "broken_short": "has 10 bytes where",
    "broken_above": "outside of the model's folder", "broken_absolute": "outside of the model's folder",
    "broken_around": "outside of the model's folder", "broken_offset": "ends before they do",
    "broken_end": "ends before they do",
    "broken_number": "the location of the data", "broken_length": "8 bytes outside",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken(bench, models, name):
    done = bench.tare("model", "--static", models / f"{name}.onnx")
    assert (done.status, done.out) == (3, "")
    assert BROKEN[name] in done.err and done.err.count("\n") == 1


def test_no_models(bench):
    (bench.folder / "empty").write_bytes(b"")
    (bench.folder / "text").write_text("import torch\n" * 100)
    (bench.folder / "noise").write_bytes(random.Random(6).randbytes(5000))
    os.mkfifo(bench.folder / "pipe")
    for name, sentence in (("empty", "it is empty"), ("text", "is not an ONNX model"),
                           ("noise", "is not an ONNX model"),
                           ("nowhere", "No such file"), (".", "a folder"), ("pipe", "a pipe, not a regular file"),
                           ("/dev/null", "a device, not a regular file")):
        done = bench.tare("model", "--static", name)
        assert (done.status, done.out) == (3, ""), name
        assert sentence in done.err and done.err.count("\n") == 1, done.err


def damaged(path, seed, folder):
    """A byte changed, some cut off the end, or a piece doubled."""
    random_of, data = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(random_of.randint(1, 3)):
        at = random_of.randrange(len(data))
        what = random_of.randrange(4)
        if what == 0:
            data[at] ^= 1 << random_of.randrange(8)
        elif what == 1:
            data[at] = random_of.randrange(256)
        elif what == 2:
            del data[max(at, 1):]
        else:
            data[at:at] = data[at:at + 9]
    (folder / "damaged.onnx").write_bytes(data)
    return folder / "damaged.onnx"


@pytest.mark.parametrize("name", ["loop_known", "function", "quantized", "from_tensorflow", "many_heads", "scan"])
def test_damaged(bench, models, name):
    for seed in range(scaled(40)):
        path = damaged(models / f"{name}.onnx", f"{name} {seed}", bench.folder)
        done = bench.tare("model", "--static", "--json", path)
        assert done.status in (0, 3), (seed, done.status, done.err)
        if done.status:
            assert done.out == "" and done.err.startswith("tare model: '"), (seed, done.err)
        else:
            json.loads(done.out)


def test_a_full_disk(bench, models):
    done = bench.tare("model", "--static", "-o", "/dev/full", models / "resnet50.onnx")
    assert done.status == 1 and "No space left" in done.err


# ---- large files -------------------------------------------------------------------------------------------------
@pytest.mark.skipif(SANITIZER != "none", reason="a sanitizer has memory of its own")
def test_weights_are_not_read(bench):
    """Half a gigabyte of weights in the file; while nobody takes the report, its writer shows what it needed."""
    subprocess.run([ONNX, os.path.join(HERE, "onnx_models.py"), "--inline", str(bench.folder), "gpt2"], check=True,
                   stdout=subprocess.DEVNULL, timeout=PATIENCE)
    path = bench.folder / "gpt2.onnx"
    assert path.stat().st_size > 490e6
    process = bench.start(TARE, "model", "--static", "--dim", "sequence=1024", "--json", path, text=False, errors=None,
                          bufsize=0)
    first = process.stdout.read(1)
    with open(f"/proc/{process.pid}/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    out, _ = process.communicate(timeout=PATIENCE)
    assert json.loads(first + out)["total"]["flops"] == 291_648_307_200
    assert peak < 32 << 10, f"{peak} KiB"
