"""Models in `tare history`: what `tare model` measured is kept, listed, shown, followed and compared, in SQLite and in
PostgreSQL. The runtime is a look-alike: what is kept does not depend on how fast it is."""
import json

import pytest
from conftest import BUILD
from test_history import history, local, server, store  # noqa: F401  fixtures
from test_model_run import models  # noqa: F401

FAKE = BUILD / "tests" / "fake" / "ort.so"


def measure(history, path, *options, status=0, runs=20):
    words = ("--json", "--runtime", FAKE, "--runs", runs, "--warmup", 2, *options, path)
    return json.loads(history.tare("model", *words, status=status).out)


def test_a_model_is_kept_with_its_figures(history, models):
    report = measure(history, models / "plain.onnx", "--tag", "one", "--tag", "two")
    (row,) = history.runs("--kind", "model")
    assert (row["kind"], row["exit_status"], row["tags"]) == ("model", 0, ["one", "two"])
    assert row["command"] == f"tare model {models / 'plain.onnx'}" and row["trace"] == str(models / "plain.onnx")
    assert row["machine"] and row["host"] and row["elapsed_ns"] is None
    shown = json.loads(history("show", row["id"][:8], "--json").out)["figures"]["figures"]
    kept, told = ({figure["name"]: figure for figure in figures} for figures in (shown, report["figures"]["figures"]))
    assert set(kept) == set(told) and {"model.latency", "model.macs", "model.memory.peak"} <= set(kept)
    for name, figure in kept.items():
        assert figure["value"] == pytest.approx(told[name]["value"]) and figure["n"] == told[name]["n"], name
    assert kept["model.macs"]["exact"] and kept["model.macs"]["value"] == 16
    assert len(kept["model.latency"]["samples"]) == 20
    text = history("show", "last").out
    assert text.startswith(f"model {row['id']}") and "model.latency" in text and "model.macs" in text


def test_runs_and_models_are_told_apart(history, models):
    history.run("true")
    measure(history, models / "plain.onnx")
    assert [row["kind"] for row in history.runs()] == ["model", "run"]
    assert [row["kind"] for row in history.runs("--kind", "run")] == ["run"]
    assert [row["kind"] for row in history.runs("--command", "plain.onnx")] == ["model"]
    assert "tare model" in history("list").out


def test_what_is_not_kept(local, models):
    local.tare("model", "--static", models / "plain.onnx")
    measure(local, models / "plain.onnx", "--no-history")
    measure(local, models / "plain.onnx", "--store", "off")
    assert local.runs() == []


def test_models_that_failed_are_kept_with_their_status(local, models):
    measure(local, models / "crash-load.onnx", status=3)
    measure(local, models / "plain.onnx", "--threshold", "latency:1ns", status=1)
    broken, crashed = local.runs()
    assert (crashed["exit_status"], broken["exit_status"]) == (3, 1)
    names = {row["name"] for row in json.loads(local("show", crashed["id"], "--json").out)["figures"]["figures"]}
    assert "model.macs" in names and "model.latency" not in names  # weighed, and not run


def test_the_course_of_a_model(history, models):
    for _ in range(4):
        measure(history, models / "plain.onnx", "--no-layers")
    (trend,) = json.loads(history("trend", "model.latency", "--json").out)["trends"]
    assert trend["name"] == "model.latency" and trend["better"] == "lower" and len(trend["points"]) == 4
    values = [point["value"] for point in trend["points"]]
    shown = [json.loads(history("show", f"last~{i}", "--json").out)["figures"]["figures"] for i in range(4)]
    latest = [next(row["value"] for row in rows if row["name"] == "model.latency") for rows in reversed(shown)]
    assert values == pytest.approx(latest)
    assert "4 runs" in history("trend", "model.latency").out


def test_models_are_compared(history, models):
    for _ in range(3):
        measure(history, models / "plain.onnx", "--no-layers")
    done = history("compare", "last")
    assert "different things" not in done.out and "the 2 runs before" in done.out
    rows = {row["name"]: row for row in json.loads(history("compare", "last", "--json").out)["figures"]}
    assert rows["model.macs"]["verdict"] == rows["model.parameters"]["verdict"] == "same"
    assert rows["model.latency"]["baseline"] > 0 and rows["model.latency"]["candidate"] > 0
    two = history("compare", "last~2", "last").out
    assert "different" not in two and "model.latency" in two


def test_other_shapes_are_another_measurement(local, models):
    measure(local, models / "plain.onnx", "--no-layers")
    measure(local, models / "plain.onnx", "--no-layers", "--dim", "batch=3")
    measure(local, models / "plain.onnx", "--no-layers", "--shape", "x=5,4")
    shaped, dim, plain = (row["command"] for row in local.runs())
    path = models / "plain.onnx"
    assert (plain, dim, shaped) == (f"tare model {path}", f"tare model --dim batch=3 {path}",
                                    f"tare model --shape x=5,4 {path}")
    assert "different commands" in local("compare", "last~1", "last").out
    # Batches are figures of their own.
    measure(local, path, "--no-layers", "--batch", "1,2")
    names = {row["name"] for row in json.loads(local("show", "last", "--json").out)["figures"]["figures"]}
    assert {"model.latency[batch=1]", "model.latency[batch=2]"} <= names


def test_models_are_exported_and_imported(local, models):
    measure(local, models / "plain.onnx", "--tag", "kept")
    local("export", "-o", "runs.jsonl")
    before = local.runs()
    local.store = str(local.bench.folder / "elsewhere")
    local("import", "runs.jsonl")
    assert local.runs() == before and before[0]["kind"] == "model"


def test_a_history_that_cannot_be_kept_costs_a_line(local, models):
    (local.bench.folder / "file").write_text("no folder")
    done = local.tare("model", "--runtime", FAKE, "--runs", "5", "--warmup", "1", "--store",
                      local.bench.folder / "file" / "inside", models / "plain.onnx")
    assert "Measured with" in done.out and len(done.err.strip().splitlines()) == 1, done.err
