# python_span: what a span costs in Python, against an empty context manager of C and torch's record_function, all in
# turn in one process that records.
# One thread. Must not know how a span is recorded.
"""usage: python bench/python_span.py"""
import importlib.util
import os
import statistics
import sys
import tempfile
import time

import peers
import rows
from figures import Figure

ROUNDS, LOOPS = (7, 20000) if rows.QUICK else (41, 50000)


def subject(body, **names):
    """A function of a number of loops that runs the body so often, and gives ns of CPU time for one."""
    source = (f"def run(n):\n    loops = range(n)\n    from_ns = clock()\n    for _ in loops:\n        {body}\n"
              f"    return (clock() - from_ns) / n\n")
    space = {"clock": time.thread_time_ns, **names}
    exec(source, space)
    return space["run"]


def subjects(folder):
    import tare
    empty_type = peers.empty_context(folder)
    if empty_type is None:
        return None
    empty = empty_type()
    found = {
        "loop": (subject("pass"), 1),
        "empty": (subject("with empty: pass", empty=empty), 1),
        "span": (subject("with span: pass", span=tare.span("span")), 1),
        "named": (subject("with span('named'): pass", span=tare.span), 1),
        "calls": (subject("begin(s); end(s)", begin=tare.begin, end=tare.end, s=tare.span("calls")), 1),
    }
    if importlib.util.find_spec("torch"):
        from torch.profiler import record_function
        found["torch"] = (subject("with record_function('x'): pass", record_function=record_function), 50)
    return found


def measure(found):
    """{subject: ns in each round, the loop taken off}"""
    times = {name: [] for name in found}
    for _ in range(ROUNDS):
        for name, (run, slower) in found.items():
            times[name].append(run(max(LOOPS // slower, 200)))
            time.sleep(0.003)  # the collector empties what the spans filled
    loop = statistics.median(times.pop("loop"))
    return {name: [max(one - loop, 0.1) for one in taken] for name, taken in times.items()}


def recorded(found, path):
    """The times while a trace is written, and how many spans found no room on the way to it."""
    import tare
    tare.start(path, max_bytes=64 << 20)
    times = measure(found)
    tare.stop()
    return times, tare.report(path).run.dropped_spans


def ratio(figure, above, below, absent=""):
    if not above or not below:
        figure.reason = absent
        return
    for one, other in zip(above, below):
        figure.add(one / other)
    figure.note = f"{statistics.median(above):.0f} to {statistics.median(below):.0f} ns"


def main():
    figures = [Figure("with tare.span(…) kept in a variable, against an empty one", "x", 2),
               Figure("with tare.span(\"name\"), against an empty one", "x", 2),
               Figure("tare.begin(s); tare.end(s), against an empty one", "x", 1),
               Figure("torch's record_function, against a span", "x", 5, at_least=True)]
    with tempfile.TemporaryDirectory() as folder:
        found = subjects(folder)
        if found is None:
            for one in figures:
                one.reason = "no C compiler, or no headers of this Python"
        else:
            times, dropped = recorded(found, os.path.join(folder, "span.tare"))
            if dropped:  # which costs less than to keep them
                sys.exit(f"{dropped} spans were dropped: the machine is too busy for this")
            ratio(figures[0], times["span"], times["empty"])
            ratio(figures[1], times["named"], times["empty"])
            ratio(figures[2], times["calls"], times["empty"])
            ratio(figures[3], times.get("torch"), times["named"], "torch is not installed")
    rows.show(figures)


if __name__ == "__main__":
    sys.exit(main())
