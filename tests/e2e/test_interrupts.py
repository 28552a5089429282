"""Signal handlers that record: at a high rate, and at every single instruction of the recording calls."""
import collections
import platform

import pytest

from conftest import SANITIZER, check_nesting, names_of, spans_of

STEPS = pytest.mark.skipif(platform.machine() != "x86_64" or SANITIZER != "none",
                           reason="steps through the x86-64 code that is shipped, one instruction at a time")

# Drops only where a handler meets the slow way, however late the collector is with the rest.
ROOMY = ["--buffer-size", "128M"]


def aggregate_calls(report):
    return sum(cell["calls"] for cell in report["aggregates"])


@pytest.mark.tsan
def test_a_timer_that_records_on_top_of_a_loop(bench):
    done = bench.run("handler", 50, options=["--buffer-size", "64M"])
    assert done.fact("fired") > 2 and done.fact("errno_changed") == 0
    events = bench.events(done.trace)
    check_nesting(events)
    report = bench.json(done.trace)
    dropped = report["run"]["dropped_spans"]
    recorded = 2 * done.fact("loops") + done.fact("fired")
    counted = done.fact("loops") + done.fact("fired")
    assert spans_of(events) + aggregate_calls(report) + dropped == recorded + counted
    assert done.fact("fired") - names_of(events)["handler"] <= dropped
    assert aggregate_calls(report) <= counted


class Trial:
    """A line of the victim: what one thread recorded, and how often the handler came in."""

    def __init__(self, line):
        self.tid, self.call, self.room, *numbers = line.split()
        self.fired, self.spans, self.others, self.aggregates = map(int, numbers)


OWN = {  # what a thread records but for its handlers and fillers
    "begin": ["begin outer", "begin stepped", "end stepped", "end outer"],
    "end": ["begin outer", "begin stepped", "end stepped", "end outer"],
    "next": ["begin outer", "begin stepped", "next second", "end second", "end outer"],
    "counter": ["begin outer", "counter value", "end outer"],
    "aggregate": ["begin outer", "end outer"],
    "first": ["begin outer", "end outer"],
}


def split_streams(lines, trials):
    """Thread ids come round again: what each life of one recorded, in order."""
    lives, at = [], 0
    for trial in trials:
        mine, own = [], 0
        while at < len(lines) and (own < len(OWN[trial.call]) or lines[at].name == "handler"):
            own += lines[at].name != "handler"
            mine.append(lines[at])
            at += 1
        lives.append(mine)
    assert at == len(lines), lines[at:][:5]
    return lives


def check_life(trial, lines):
    own, handlers, inside = [], 0, False
    for event in lines:
        if event.name == "handler":
            assert (event.kind == "end") == inside, (trial.__dict__, "something came into the handler's span")
            inside = event.kind == "begin"
            handlers += inside
            continue
        own.append(f"{event.kind} {event.name}")
    assert own == OWN[trial.call], trial.__dict__
    return handlers


def check_trials(bench, done, dropped_at_most, joining=False):
    """`joining`: the handler may come while its thread joins, and then has a stream of its own. Blocks of two streams
    are in the file as they were sealed, so events are put in order of time first."""
    trials = [Trial(line) for line in done.facts["thread"]]
    assert len(trials) > 5
    assert sum(trial.fired for trial in trials) >= len(trials) - 1
    report, events = bench.json(done.trace), bench.events(done.trace)
    if joining:
        events.sort(key=lambda event: event.ns)
    check_nesting(events)
    threads = collections.defaultdict(list)
    for event in events:
        if event.name != "filler":
            threads[event.tid].append(event)
    others = sum(event.kind in ("complete", "counter") for event in events)
    assert others == sum(trial.others for trial in trials) and report["run"]["dropped_others"] == 0
    kept = 0
    for tid, lines in threads.items():
        of_tid = [trial for trial in trials if trial.tid == tid]
        for trial, life in zip(of_tid, split_streams(lines, of_tid)):
            handlers = check_life(trial, life)
            assert handlers <= trial.fired, (trial.__dict__, "a handler's span is there twice")
            kept += handlers
    fired = sum(trial.fired for trial in trials)
    counted = sum(trial.aggregates for trial in trials)
    # A handler's aggregate span finds no cell while its thread is on the slow way, and counts as dropped.
    assert kept + aggregate_calls(report) + report["run"]["dropped_spans"] == fired + counted, \
        "kept and dropped are all there were"
    assert fired - kept <= dropped_at_most
    assert sum(thread["skipped_slots"] for thread in report["threads"]) == 0
    return report, trials


@STEPS
@pytest.mark.parametrize("call", ["begin", "end", "next", "counter", "aggregate"])
def test_a_handler_at_every_instruction(bench, call):
    done = bench.run("stepped", "warm", call, options=ROOMY)
    report, trials = check_trials(bench, done, dropped_at_most=0)
    assert aggregate_calls(report) == sum(trial.aggregates for trial in trials)


@STEPS
@pytest.mark.parametrize("call, room", [("begin", 0), ("end", 0), ("next", 0), ("counter", 0),
                                        ("counter", 1)])
def test_a_handler_at_every_instruction_when_the_chunk_is_full(bench, call, room):
    """Here the handler may meet the slow way below it, and its span is then dropped and counted."""
    warm = len(bench.run("stepped", "warm", call).facts["thread"])
    done = bench.run("stepped", "full", call, room, options=ROOMY)
    assert len(done.facts["thread"]) > 3 * warm, "the slow way is longer"
    check_trials(bench, done, dropped_at_most=len(done.facts["thread"]))


@STEPS
def test_a_handler_at_every_instruction_of_a_threads_first_event(bench):
    done = bench.run("stepped", "warm", "first", options=ROOMY)
    check_trials(bench, done, dropped_at_most=len(done.facts["thread"]), joining=True)


@STEPS
@pytest.mark.parametrize("trials, stride", [(60, 23), (8, 3001)])
def test_a_handler_during_a_processs_first_event(bench, trials, stride):
    done = bench.run("stepped", "process", trials, stride)
    check_trials(bench, done, dropped_at_most=100000, joining=True)


@STEPS
@pytest.mark.parametrize("call", ["begin", "end", "next", "counter"])
def test_a_handler_at_every_instruction_when_no_chunk_is_left(bench, call):
    done = bench.run("stepped", "empty", call, options=["--buffer-size", "1M"])
    [trial] = [Trial(line) for line in done.facts["thread"]]
    report, events = bench.json(done.trace), bench.events(done.trace)
    check_nesting(events)
    run = report["run"]
    assert run["dropped_others"] > 0, "the pool was to be full"
    kept = spans_of(events) + aggregate_calls(report)
    assert kept + run["dropped_spans"] == trial.spans + trial.aggregates
    others = sum(event.kind in ("mark", "counter") for event in events)
    assert others + run["dropped_others"] == trial.others
