"""Spans of every kind, through every view: the word for what they are, and steps taken apart by their phases."""
import csv
import json

import pytest

from conftest import TARE, VICTIMS

STEPS = 25
KINDS = {"step": "step", "data": "phase", "forward": "phase", "encoder.layers.0": "module", "aten::mm": "operator",
         "bookkeeping": "span"}


@pytest.fixture
def trace(bench):
    done = bench.call(TARE, "run", "--quiet", "-o", "t.tare", "--", VICTIMS / "phased", STEPS)
    assert done.status == 0, done.err
    return "t.tare"


def test_json_and_csv_name_the_kind(bench, trace):
    spans = bench.json(trace)["spans"]
    assert {span["name"]: span["kind"] for span in spans} == KINDS
    bench.report(trace, "--csv", "tables")
    with open(bench.folder / "tables" / "spans.csv", newline="", encoding="utf-8") as table:
        assert {row["name"]: row["kind"] for row in csv.DictReader(table)} == KINDS


def test_chrome_has_it_as_category(bench, trace):
    bench.report(trace, "--chrome", "-o", "t.json")
    with open(bench.folder / "t.json", encoding="utf-8") as exported:
        events = json.load(exported)["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["name"]: event["cat"] for event in spans} == KINDS
    assert len(spans) == STEPS * len(KINDS)


def test_perfetto_has_it_as_category(bench, trace):
    bench.report(trace, "--perfetto", "-o", "t.pftrace")
    exported = (bench.folder / "t.pftrace").read_bytes()
    for word in ("phase", "module", "operator"):
        assert exported.count(b"\x12" + bytes([len(word)]) + word.encode()) == 1  # as a string, interned once
    assert b"encoder.layers.0" in exported


def test_the_text_takes_steps_apart_by_phase(bench, trace):
    text = bench.report(trace).out
    line = next(line for line in text.splitlines() if line.strip().startswith("phases: "))
    assert "forward " in line and "data " in line and "bookkeeping" not in line
    assert all(len(each) <= 80 for each in text.splitlines())
