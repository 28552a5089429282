"""More than the memory holds: whole spans are dropped, all are counted, and the rest is well nested."""
import pytest

from conftest import by_thread, check_nesting, scaled, spans_of


def check_flood(bench, done, must_drop):
    events, report = bench.events(done.trace), bench.json(done.trace)
    check_nesting(events)
    lines, threads = by_thread(events), {thread["tid"]: thread for thread in report["threads"]}
    for line in done.facts["thread"]:
        tid, spans, marks = map(int, line.split())
        mine = [event for (_, t), of in lines.items() for event in of if int(t) == tid]
        thread = threads[tid]
        assert spans_of(mine) + thread["dropped_spans"] == spans
        assert sum(event.kind == "mark" for event in mine) + thread["dropped_others"] == marks
        assert thread["spans"] == spans_of(mine)
        assert thread["dropped_ends"] == 0 and thread["unmatched_ends"] == 0
    dropped = report["run"]["dropped_spans"]
    assert dropped == sum(thread["dropped_spans"] for thread in report["threads"])
    if must_drop:
        assert dropped > 0
        assert any("dropped" in note for note in report["notes"]) and "dropped" in done.err


@pytest.mark.tsan
@pytest.mark.parametrize("depth", [2, 100])
def test_a_halted_collector_loses_whole_spans_only(bench, depth):
    rounds = 100000 // depth
    done = bench.run("flood", "stop", rounds, depth, options=["--buffer-size", "1M"])
    check_flood(bench, done, must_drop=True)


def test_very_deep_spans_over_a_full_memory(bench):
    """Deeper than the reserve for ends and than the levels that are remembered one by one."""
    done = bench.run("flood", "stop", 60, 1000, options=["--buffer-size", "1M"])
    events, report = bench.events(done.trace), bench.json(done.trace)
    thread = report["threads"][0]
    assert spans_of(events) + thread["dropped_spans"] == 60 * 1003
    assert thread["dropped_spans"] > 0 and thread["unmatched_ends"] == 0


@pytest.mark.tsan
def test_four_threads_over_a_halted_collector(bench):
    done = bench.run("flood", "stop", 10000, 5, 4, options=["--buffer-size", "1M"])
    assert len(done.facts["thread"]) == 4
    check_flood(bench, done, must_drop=True)


@pytest.mark.tsan
def test_two_threads_over_a_small_memory(bench):
    done = bench.run("flood", "pattern", 30000, 1, 2, options=["--buffer-size", "1M"])
    check_flood(bench, done, must_drop=False)


def test_25_million_spans_as_fast_as_can_be(bench):
    n = scaled(25000000)
    done = bench.run("flood", "pairs", n)
    report = bench.json(done.trace)
    spans = sum(span["calls"] for span in report["spans"])
    assert spans + report["run"]["dropped_spans"] == n
    assert spans == report["run"]["spans"] == report["threads"][0]["spans"]
    assert report["threads"][0]["events"] == 2 * spans, "a begin and an end each"
    assert report["threads"][0]["dropped_ends"] == report["threads"][0]["unmatched_ends"] == 0
