"""`tare report --json`: its keys, and figures that agree with each other and with --events."""
import collections
import json
import pathlib

import pytest

from conftest import ROOT, Bench, names_of, spans_of

GOLDEN = pathlib.Path(ROOT / "tests" / "golden" / "train.json")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("recorded"))
    done = bench.run("kinds", "all", 120)
    return bench, done.trace


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("workers"))
    return bench, bench.run("forks", "workers", 6).trace


def keys_of(value):
    """Keys of objects at all depths, values left out; a list is its first object."""
    if isinstance(value, dict):
        return {key: keys_of(inner) for key, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [keys_of(value[0])]
    return None


def check_same_keys(ours, documented, where=""):
    assert list(ours) == list(documented), where
    for key, inner in documented.items():
        if isinstance(inner, dict) and isinstance(ours[key], dict) and key != "reasons":
            check_same_keys(ours[key], inner, where + "/" + key)
        if isinstance(inner, list) and isinstance(ours[key], list):
            check_same_keys(ours[key][0], inner[0], where + "/" + key)


def test_the_schema_of_a_real_trace_is_the_golden_one(recorded):
    bench, trace = recorded
    check_same_keys(keys_of(bench.json(trace)), keys_of(json.loads(GOLDEN.read_text())))


def test_schema_and_run(recorded):
    bench, trace = recorded
    report = bench.json(trace)
    assert report["schema"] == {"name": "tare-report", "version": 1, "minor": 7}
    run = report["run"]
    assert run["finished"] and not run["salvaged"] and run["exit_status"] == 0 and run["signal"] is None
    assert run["arguments"][1:] == ["all", "120"] and run["directory"] == str(bench.folder)
    assert run["elapsed_ns"] > 0 and run["clock_known"]


def test_json_agrees_with_events(recorded):
    bench, trace = recorded
    report, events = bench.json(trace), bench.events(trace)
    kinds = collections.Counter(event.kind for event in events)
    tare = report["tare"]
    assert kinds["begin"] + kinds["next"] == sum(span["calls"] for span in report["spans"])
    assert kinds["complete"] == tare["complete_spans"] == sum(track["calls"] for track in report["tracks"])
    assert kinds["mark"] == tare["marks"] == sum(mark["count"] for mark in report["marks"])
    assert kinds["counter"] == tare["counters"] == sum(counter["count"] for counter in report["counters"])
    assert kinds["number"] == tare["numbers"]
    assert kinds["next"] == tare["chained_spans"]
    assert report["run"]["spans"] == spans_of(events) + kinds["complete"]
    calls = collections.Counter()
    for span in report["spans"]:
        calls[span["name"]] += span["calls"]
    assert calls == names_of(events)


def test_parts_are_not_more_than_the_whole(recorded):
    bench, trace = recorded
    spans = bench.json(trace)["spans"]
    inside = collections.Counter()
    for span in spans:
        assert span["min_ns"] <= span["mean_ns"] <= span["max_ns"] <= span["total_ns"]
        assert span["min_ns"] <= span["p50_ns"] <= span["p95_ns"] <= span["p99_ns"] <= span["max_ns"]
        assert span["mean_ns"] * span["calls"] == pytest.approx(span["total_ns"], abs=span["calls"])
        assert 0 <= span["self_ns"] <= span["raw_self_ns"] <= span["total_ns"]
        assert len(span["path"]) == span["depth"] + 1 and span["path"][-1] == span["name"]
        if span["parent"] is not None:
            parent = spans[span["parent"]]
            assert parent["path"] == span["path"][:-1]
            inside[span["parent"]] += span["total_ns"]
    for index, total in inside.items():
        whole = spans[index]
        assert total <= whole["total_ns"] + 2 * whole["calls"]
        assert whole["raw_self_ns"] == pytest.approx(whole["total_ns"] - total, abs=len(spans) + 2)
    assert sum(span["share"] for span in spans if span["depth"] == 0) == pytest.approx(1, abs=0.01)


def test_steps_tell_their_distribution(recorded):
    bench, trace = recorded
    [steps] = bench.json(trace)["steps"]
    assert steps["count"] == 360 and steps["exact"] and steps["unfinished"] == 0
    interval = steps["p50_interval"]
    assert interval["low_ns"] <= steps["p50_ns"] <= interval["high_ns"]
    slowest = [step["duration_ns"] for step in steps["slowest"]]
    assert slowest == sorted(slowest, reverse=True) and slowest[0] == steps["max_ns"]


@pytest.mark.parametrize("by", ["thread", "process"])
def test_groups(workers, by):
    bench, trace = workers
    whole, report = bench.json(trace), bench.json(trace, "--by", by)
    joined = [process for process in whole["processes"] if process["joined"]]  # others may have been seen
    assert len(report["groups"]) == len(joined) == 10
    calls = collections.Counter()
    for span in report["spans"]:
        assert span["group"] is not None and 0 <= span["group"] < 10
        calls[span["name"]] += span["calls"]
    assert calls == {span["name"]: span["calls"] for span in whole["spans"]}
    assert sum(process["spans"] for process in whole["processes"]) == whole["run"]["spans"]


def test_the_text_names_what_took_the_time(recorded):
    bench, trace = recorded
    text = bench.report(trace).out
    for word in ("epoch", "step", "forward", "tare:"):
        assert word in text
    text = bench.report(trace, "--all").out
    for word in ("epoch", "step", "forward", "kernel", "aggregate", "loss", "checkpoint", "tare:"):
        assert word in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text


def test_a_report_appears_whole_or_not_at_all(recorded, tmp_path):
    bench, trace = recorded
    target = tmp_path / "r.json"
    bench.report(trace, "--json", "-o", target)
    assert json.loads(target.read_text())["schema"]["name"] == "tare-report"
    done = bench.tare("report", "--json", "-o", "/dev/full", trace)
    assert done.status == 1 and "/dev/full" in done.err
    done = bench.tare("report", "--json", "-o", trace, trace)
    assert done.status == 2 and bench.json(trace)["run"]["finished"]


@pytest.mark.parametrize("words", [[], ["--xml"], ["--json", "--events"], ["--by", "colour"], ["a", "b"]])
def test_wrong_usage(recorded, words):
    bench, trace = recorded
    done = bench.tare("report", *words, *([trace] if words and words != ["a", "b"] else []))
    assert done.status == 2 and done.out == "" and done.err
