"""Traces of older versions: read for ever, with the same result."""
from conftest import ROOT


def test_format_1_0(bench):
    trace = ROOT / "tests" / "fixture" / "format-1.0.tare"
    report = bench.json(trace)
    assert report["run"]["exit_status"] == 3 and report["notes"] == []
    assert {span["name"]: span["calls"] for span in report["spans"]} == {"step": 5, "load": 5, "forward": 5}
    assert report["steps"][0]["count"] == 5 and report["aggregates"][0]["calls"] == 5
    assert report["counters"][0]["last"] == 0.2 and report["marks"][0]["name"] == "done"
    numbers = {n["name"]: n["sum"] for span in report["spans"] for n in span["numbers"]}
    assert numbers["samples"] == 160
    kinds = [event.kind for event in bench.events(trace)]
    assert kinds.count("begin") == 10 and kinds.count("next") == 5 and kinds.count("end") == 10


def test_format_1_1(bench):
    trace = ROOT / "tests" / "fixture" / "format-1.1.tare"
    report = bench.json(trace)
    assert report["run"]["exit_status"] == 4 and report["notes"] == []
    assert {span["name"]: span["calls"] for span in report["spans"]} == {"step": 6, "load": 6, "work": 6}
    usage = report["usage"]
    assert usage["rss_peak_bytes"] > 48 << 20 and usage["rss_peak_process"] == "t2"
    assert not usage["rss_peak_at_least"] and usage["carbon_intensity"] == 123.5
    assert usage["energy_joules"] is None and "RAPL" in usage["reasons"]["energy_joules"]
    tree = {row["metric"]: row for row in report["metrics"] if row["subject"] == "tree"}
    assert tree["memory.rss"]["samples"] > 20 and tree["memory.rss"]["max"] > 45 << 20
    assert tree["memory.rss"]["last"] > tree["memory.rss"]["first"]
    assert 0 < tree["cpu.user"]["total"] <= usage["user_seconds"] * 1.01


def test_format_1_2(bench):
    trace = ROOT / "tests" / "fixture" / "format-1.2.tare"
    report = bench.json(trace)
    assert report["run"]["exit_status"] == 5 and report["notes"] == []
    assert {span["name"]: span["calls"] for span in report["spans"]} == {"step": 4, "load": 4}
    workers, kept = report["facts"]
    assert (workers["key"], workers["line"], workers["value"], workers["text"], workers["count"]) == (
        "torch.loader.workers", 31, 4, "DataLoader", 4)
    assert (kept["key"], kept["file"], kept["value"], kept["text"]) == (
        "torch.losses.kept", "/home/user/train.py", 3, None)


def test_format_1_4(bench):
    report = bench.json(ROOT / "tests" / "fixture" / "format-1.4.tare")
    assert report["run"]["exit_status"] == 6 and report["notes"] == []
    samples = {row["function"]: row["samples"] for row in report["functions"] if row["kind"] == "native"}
    shares = [samples[name] for name in ("half", "third", "sixth", "twentieth")]
    assert shares == sorted(shares, reverse=True) and 0.4 < shares[0] / sum(shares) < 0.6
    assert [row["name"] for row in report["stacks"][2:7]] == [
        "_start", "__libc_start_main_impl", "__libc_start_call_main", "main", "work"]
