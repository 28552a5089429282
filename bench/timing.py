# timing: CPU time of statements, and what a `with` block adds to the work in it.
# One thread. Must not know what is timed.
"""Timing for bench/python_*.py."""
import time
import timeit

WORK = range(300)  # a few microseconds


def seconds(code, names, number):
    """For one of them; CPU time of this thread: what others do on the machine is not in it."""
    return timeit.timeit(code, globals=names, number=number, timer=time.thread_time) / number


def around_nothing(block, names, number):
    return seconds(f"with {block}: pass", names, number)


def around_work(block, names, number):
    """Seconds that a block adds to work inside it and work after it, so that nothing read at its begin is recent
    enough to serve for its end."""
    names = {"work": sum, "WORK": WORK, **names}
    bare = seconds("work(WORK)\nwork(WORK)", names, number)
    return max(seconds(f"with {block}: work(WORK)\nwork(WORK)", names, number) - bare, 1e-9)
