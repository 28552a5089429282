# python_lines: what profiling lines costs, and whether its shares are right, against line_profiler.
# One process; both profile the same functions in turns. Must not know how either works inside.
"""Figures of line profiling, beside line_profiler's (pip install line_profiler) in the same run.

Every line of the subject does work of its own, so a share is the work's and not the tracer's. Exits 0 whatever
the figures are: a busy machine is no bug.
"""
import argparse
import linecache
import statistics
import sys
import time

import tare
import tare.lines


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
    begun = time.perf_counter()
    function(n)
    return time.perf_counter() - begun


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


def compare(function, n, rounds, limit):
    mine, theirs, bare = [], [], []
    for number in range(rounds):
        order = [(by_tare, mine), (by_line_profiler, theirs)]
        for measure, into in order if number % 2 else reversed(order):
            into.append(measure(function, n))
        bare.append(seconds(function, n))
    ours, others = min(took for took, _ in mine), min(took for took, _ in theirs)
    ratio = statistics.median(a[0] / b[0] for a, b in zip(mine, theirs))
    print(f"{function.__name__}: bare {min(bare) * 1e3:.2f} ms, tare {ours * 1e3:.2f} ms, "
          f"line_profiler {others * 1e3:.2f} ms; tare against line_profiler: median of pairs {ratio:.2f}x, "
          f"best {ours / others:.2f}x (at most 1x)")
    a, b = shares(mine), shares(theirs)
    worst = max(abs(a.get(number, 0) - b.get(number, 0)) for number in set(a) | set(b))
    print("  tare %  line_profiler %")
    for number in sorted(set(a) | set(b)):
        source = linecache.getline(__file__, number).rstrip()
        print(f"{a.get(number, 0):>8.1f} {b.get(number, 0):>16.1f}  {source}")
    held = "at most 2" if limit else "not held against a limit: lines this short show each tracer's own cost"
    print(f"  largest difference {worst:.1f} points ({held})\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 20 if parser.parse_args().quick else 100
    try:
        import line_profiler
    except ImportError:
        print("n/a: line_profiler is not installed (pip install line_profiler)")
        return
    print(f"CPython {sys.version.split()[0]}, line_profiler {line_profiler.__version__}, {rounds} rounds\n")
    compare(cheap, 5000, rounds, limit=False)
    compare(costly, 8, rounds, limit=True)
    compare(nested, 12, rounds, limit=True)


if __name__ == "__main__":
    main()
