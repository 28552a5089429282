"""Spans of one process: loops, depth, recursion, wrong ends, threads, names, every kind of record, pauses."""
import collections
import math

import pytest

from conftest import by_thread, check_nesting, names_of, scaled, spans_of


def check_no_drops(report):
    assert report["run"]["dropped_spans"] == 0 and report["run"]["dropped_others"] == 0
    assert report["run"]["damaged_blocks"] == 0
    assert [thread["skipped_slots"] for thread in report["threads"] if thread["skipped_slots"]] == []


@pytest.mark.tsan
def test_a_tight_loop_is_recorded_exactly(bench):
    n = 10000  # less than the memory holds, however late the collector is
    done = bench.run("nest", "loop", n)
    events = bench.events(done.trace)
    check_nesting(events)
    assert names_of(events) == {"outer": n, "inner": 2 * n}
    # outer begin, inner begin, inner end, next ends outer, inner end: the chain is a sibling of outer.
    assert collections.Counter(event.kind for event in events) == {"begin": 2 * n, "end": 2 * n, "next": n}
    check_no_drops(bench.json(done.trace))


@pytest.mark.parametrize("levels, times", [(64, 500), (1000, 20), (20000, 3)])
def test_deep_nesting(bench, levels, times):
    done = bench.run("nest", "deep", levels, times)
    events = bench.events(done.trace)
    check_nesting(events)
    assert names_of(events) == {"level": levels * times}
    assert max(int(event.extras["depth"]) for event in events) == levels - 1
    assert sum(span["calls"] for span in bench.json(done.trace)["spans"]) == levels * times


def test_recursion(bench):
    done = bench.run("nest", "recurse", 18)
    assert done.fact("result") == 2584
    events = bench.events(done.trace)
    check_nesting(events)
    assert names_of(events) == {"recurse": 8361}  # calls of the naive fib(18)


def test_ends_without_begin_and_begins_without_end(bench):
    done = bench.run("nest", "wrong")
    seen = [(event.kind, event.name, "unmatched" in event.extras, "left_open" in event.extras)
            for event in bench.events(done.trace)]
    assert seen == [
        ("end", "never begun", True, False),
        ("begin", "outer", False, False),
        ("end", "never begun", True, False),
        ("begin", "left open", False, False),
        ("begin", "left open", False, False),
        ("end", "left open", False, True),
        ("end", "left open", False, True),
        ("end", "outer", False, False),
        ("end", "(not known)", True, False),
        ("next", "inner", False, False),
        ("next", "outer", False, False),
        ("end", "outer", False, False),
        ("end", "outer", True, False),
    ]
    report = bench.json(done.trace)
    assert report["threads"][0]["unmatched_ends"] == 4
    spans = {tuple(span["path"]): span for span in report["spans"]}
    assert spans["outer",]["calls"] == 2 and spans["inner",]["calls"] == 1
    assert spans["outer", "left open", "left open"]["left_open"] == 1


def test_spans_open_at_exit_are_there_and_said_to_be_open(bench):
    done = bench.run("nest", "open", 3)
    events = bench.events(done.trace)
    check_nesting(events, left_open=3)
    assert names_of(events) == {"left open": 3}
    report = bench.json(done.trace)
    assert sum(span["still_open"] for span in report["spans"]) == 3


def test_constructors_atexit_and_destructors_record(bench):
    done = bench.run("early")
    events = bench.events(done.trace)
    check_nesting(events)
    assert [event.name for event in events if event.kind == "begin"] == [
        "preinit", "first_constructor", "plain_constructor", "main", "at_exit", "plain_destructor",
        "last_destructor"]


@pytest.mark.tsan
def test_threads_that_come_and_go_by_the_thousand(bench):
    n = scaled(5000)
    done = bench.run("threads", "short", n)
    report = bench.json(done.trace)
    assert names_of(bench.events(done.trace)) == {"life": n, "work": 5 * n, "after death": n}
    check_no_drops(report)
    named = [thread for thread in report["threads"] if thread["name"].startswith("worker ")]
    assert len({thread["name"] for thread in named}) == n
    assert sum(thread["spans"] for thread in report["threads"]) == 7 * n


@pytest.mark.tsan
def test_three_hundred_threads_at_once(bench):
    n = scaled(300)
    done = bench.run("threads", "alive", n)
    events = bench.events(done.trace)
    # What a thread records after its own destructors ran is another stream, of the same thread id.
    check_nesting([event for event in events if event.name != "after death"])
    assert names_of(events) == {"life": 2 * n, "work": 10 * n, "after death": n}
    assert len(by_thread(events)) == n
    check_no_drops(bench.json(done.trace))


def test_names_beyond_the_limit_share_one(bench):
    n = scaled(100000, 50000)
    done = bench.run("names", n, options=["--buffer-size", "64M"])  # nothing is dropped on a busy machine either
    events = bench.events(done.trace)
    check_nesting(events)
    assert spans_of(events) == 2 * n + 4
    names = names_of(events)
    kept = {name: calls for name, calls in names.items() if name.startswith("request_")}
    assert len(kept) >= 20000 and set(kept.values()) == {2}
    last = sum(name not in kept and name != "(more names)" for name in names)  # short ones may still fit in
    assert names["(more names)"] == 2 * (n - len(kept)) + 4 - last
    assert "#" not in "".join(names)
    report = bench.json(done.trace)
    assert report["run"]["names_refused"] > 0 and any("name" in note for note in report["notes"])


def test_strange_names(bench):
    done = bench.run("names", 10)
    names = names_of(bench.events(done.trace))
    assert names["(null)"] == 1 and names[""] == 1
    assert names["tab\\there, line\\nthere, \\xff and \u00e9"] == 1
    assert names["x" * 4000] == 1


def test_steps_epochs_numbers_counters_marks(bench):
    done = bench.run("kinds", "training", 50)
    events = bench.events(done.trace)
    check_nesting(events)
    assert names_of(events) == {"epoch": 3, "step": 150, "load": 150, "forward": 150, "backward": 150}
    assert names_of(events, "number") == {"index": 153, "samples": 150}
    assert names_of(events, "counter") == {"loss": 150, "odd": 4}
    assert names_of(events, "mark") == {"checkpoint": 3}
    odd = [float(event.extras["value"]) for event in events if event.name == "odd"]
    assert odd[0] == 0 and odd[1] == 1e300
    assert math.isnan(odd[2]) and odd[3] == math.inf
    report = bench.json(done.trace)
    assert report["steps"][0]["count"] == 150 and report["epochs"][0]["count"] == 3
    samples = [number for number in report["steps"][0]["numbers"] if number["name"] == "samples"]
    assert samples[0]["sum"] == 150 * 32


def test_complete_spans_overlap_and_come_late(bench):
    n = 400
    done = bench.run("kinds", "complete", n)
    events = [event for event in bench.events(done.trace) if event.kind == "complete"]
    kernels = [event for event in events if event.name == "kernel"]
    assert [int(event.extras["id"]) for event in kernels] == list(range(1, n + 1))
    assert [int(event.extras.get("parent", 0)) for event in kernels] == list(range(n))
    assert [int(event.extras["flow"]) for event in kernels] == [i // 10 + 1 for i in range(n)]
    assert [event.extras["track"] for event in kernels] == [f"track {i % 4}" for i in range(n)]
    assert all(a.ns > b.ns for a, b in zip(kernels, kernels[1:])), "each was reported after a later one"
    lengths = {int(event.extras["dur_ns"]) for event in kernels}
    assert max(lengths) - min(lengths) <= 1 and min(lengths) > 0
    step = (kernels[0].ns - kernels[-1].ns) / (n - 1)
    assert min(lengths) / step == pytest.approx(1.5, rel=0.02), "1,500 ticks long, 1,000 apart: they overlap"
    others = {event.name: event for event in events if event.name != "kernel"}
    assert "track" not in others["on this thread"].extras
    assert others["backwards"].extras["dur_ns"] == "0"
    tracks = bench.json(done.trace)["tracks"]
    assert sum(track["calls"] for track in tracks) == n + 2
    kinds = {track["track"]: track["track_kind"] for track in tracks}
    assert (kinds["track 0"], kinds["track 1"], kinds["track 2"]) == ("task", "gpu", "request")


@pytest.mark.tsan
def test_aggregates_count_exactly(bench):
    n = scaled(300000)
    done = bench.run("kinds", "aggregate", n)
    assert bench.events(done.trace) == []
    cells = {cell["name"]: cell for cell in bench.json(done.trace)["aggregates"]}
    assert cells["aggregate"]["calls"] == cells["aggregate"]["timed"] == n
    assert not cells["aggregate"]["estimated"]
    sampled = cells["sampled"]
    assert sampled["calls"] == n and sampled["every"] == 16 and sampled["estimated"]
    assert n / 16 * 0.9 < sampled["timed"] < n / 16 * 1.1
    assert sampled["min_ns"] <= sampled["p50_ns"] <= sampled["p99_ns"] <= sampled["max_ns"]


def test_a_pause_leaves_out_whole_spans(bench):
    done = bench.run("kinds", "pauses")
    assert done.facts["recording"] == ["0", "1"]
    events = bench.events(done.trace)
    check_nesting(events)
    assert [(event.kind, event.name) for event in events] == [
        ("begin", "around"), ("begin", "shown"), ("end", "shown"), ("end", "around"), ("begin", "shown"),
        ("end", "shown")]
    report = bench.json(done.trace)
    assert report["run"]["dropped_spans"] == 0, "paused is not dropped"
    assert [cell for cell in report["aggregates"] if cell["calls"]] == []


def test_errno_is_never_changed(bench):
    assert bench.run("rough", "errno").facts.get("changed", []) == []


@pytest.mark.parametrize("mode", ["deep", "training", "complete"])
def test_the_other_clock_gives_the_same(bench, mode):
    victim = "nest" if mode == "deep" else "kinds"
    seen = []
    for env in ({}, {"TARE_CLOCK": "monotonic"}):
        done = bench.run(victim, mode, 100, env=env)
        events = bench.events(done.trace)
        check_nesting(events)
        timeless = {"dur_ns"}
        seen.append([(event.kind, event.name, {key: value for key, value in event.extras.items()
                                               if key not in timeless}) for event in events])
    assert str(seen[0]) == str(seen[1])  # NaN is not itself
