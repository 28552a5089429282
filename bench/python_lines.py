# python_lines: what profiling lines costs, and whether its shares are right, against line_profiler.
# One process; both profile the same functions in turns. Must not know how either works inside.
"""Figures of line profiling, beside line_profiler's (pip install line_profiler) in the same run.

usage: python bench/python_lines.py

Lines that do work of their own are held against a limit: their share is the work's and not the tracer's. Exits 0
whatever the figures are: a busy machine is no bug.
"""
import linecache
import sys
import time

import rows
import tare
import tare.lines
from figures import Figure

ROUNDS = 20 if rows.QUICK else 100


def busy(times):
    """Time spent in C, that no tracer adds to."""
    return sum(range(times))


def cheap(n):
    """Lines that do next to nothing: all that is seen is the tracer."""
    total = 0
    for i in range(n):
        x = i + 1
        if x & 1:
            total += x
        else:
            total -= x
    return total


def costly(n):
    for _ in range(n):
        a = sum(range(4000))
        b = sorted(range(3000, 0, -1))
        c = "-".join(map(str, range(400)))
        d = bytes(60000).count(b"\1")
    return a, b, c, d


def nested(n):
    done = 0
    for _ in range(n):
        done += busy(3000)
        done += busy(9000)
    return done


def seconds(function, n):
    """CPU time of this thread: what others do on the machine is not in it."""
    begun = time.thread_time()
    function(n)
    return time.thread_time() - begun


def by_tare(function, n):
    with tare.lines.LineProfile(function) as profile:
        took = seconds(function, n)
    return took, {line.line_number: line.time_s for line in profile.stats()}


def by_line_profiler(function, n):
    from line_profiler import LineProfiler
    profile = LineProfiler(function)
    profile.enable_by_count()
    took = seconds(function, n)
    profile.disable_by_count()
    stats = profile.get_stats()
    (lines,) = stats.timings.values()
    return took, {number: time * stats.unit for number, _, time in lines}


def shares(runs):
    """Of each line's best time over the runs, in percent: what other programs took from a line is left out."""
    best = {}
    for _, lines in runs:
        for number, time_s in lines.items():
            best[number] = min(best.get(number, time_s), time_s)
    return {number: 100 * time_s / sum(best.values()) for number, time_s in best.items()}


def compare(function, n, bare_lines):
    """(slower by, largest difference of a line's share), both against line_profiler. Lines that do nothing tell which
    tracer is slower, lines that do work whether their shares are right."""
    slower = Figure(f"profiling lines of {function.__name__}(), against line_profiler", "x", 1 if bare_lines else None)
    apart = Figure("  largest difference of a line's share", "points", None if bare_lines else 2)
    mine, theirs, bare = [], [], []
    for number in range(ROUNDS):
        order = [(by_tare, mine), (by_line_profiler, theirs)]
        for measure, into in order if number % 2 else reversed(order):
            into.append(measure(function, n))
        bare.append(seconds(function, n))
        slower.add(mine[-1][0] / theirs[-1][0])
    ours, others = min(took for took, _ in mine), min(took for took, _ in theirs)
    slower.note = f"best {ours * 1e3:.2f} to {others * 1e3:.2f} ms, {ours / others:.2f}x; bare {min(bare) * 1e3:.2f} ms"
    a, b = shares(mine), shares(theirs)
    apart.add(max(abs(a.get(number, 0) - b.get(number, 0)) for number in set(a) | set(b)),
              "lines this short show each tracer's own cost" if bare_lines else "")
    if not rows.AS_ROWS:
        show_lines(a, b)
    return [slower, apart]


def show_lines(mine, theirs):
    print("  tare %  line_profiler %")
    for number in sorted(set(mine) | set(theirs)):
        source = linecache.getline(__file__, number).rstrip()
        print(f"{mine.get(number, 0):>8.1f} {theirs.get(number, 0):>16.1f}  {source}")


def main():
    try:
        import line_profiler  # noqa: F401
    except ImportError:
        absent = Figure("profiling lines, against line_profiler", "x", 1)
        absent.reason = "line_profiler is not installed (pip install line_profiler)"
        return rows.show([absent])
    rows.show(compare(cheap, 5000, True) + compare(costly, 8, False) + compare(nested, 12, False))


if __name__ == "__main__":
    sys.exit(main())
