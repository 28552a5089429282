# timing: CPU time of statements, and what a `with` block adds to the work in it.
# One thread. Must not know what is timed.
"""Timing for bench/python_*.py."""
import statistics
import time
import timeit

WORK = range(300)  # a few microseconds
SLICES = 10        # a measurement's: its parts take turns, since clocks change their speed


def seconds(code, names, number):
    """For one of them; CPU time of this thread: what others do on the machine is not in it."""
    return timeit.timeit(code, globals=names, number=number, timer=time.thread_time) / number


def around_nothing(block, names, number):
    return seconds(f"with {block}: pass", names, number)


def around_work(block, names, number):
    """Seconds that a block adds to work inside it and work after it, so that nothing read at its begin is recent
    enough to serve for its end."""
    return in_turn([(block, number)], names)[0]


def in_turn(blocks, names):
    """The same of several (block, number), measured beside each other."""
    names = {"work": sum, "WORK": WORK, **names}
    added = [[] for _ in blocks]
    for _ in range(SLICES):
        for slices, (block, number) in zip(added, blocks):
            part = max(number // SLICES, 1)
            bare = seconds("work(WORK)\nwork(WORK)", names, part)
            slices.append(seconds(f"with {block}: work(WORK)\nwork(WORK)", names, part) - bare)
    return [max(statistics.median(slices), 1e-9) for slices in added]
