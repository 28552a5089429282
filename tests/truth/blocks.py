"""What the files about blocks of the Python classes share: clocks, counters and files of the kernel, read by the test
itself."""
import math
import mmap
import os
import time

from truth import bracketed

MB = 1 << 20
INSIDE = "`time.perf_counter()` just inside and just outside of the block"
CPU = "`time.thread_time()` just inside and just outside of the block"
PROCESS_CPU = "`getrusage(RUSAGE_SELF)` just inside and just outside of the block"
STATM = "`/proc/self/statm`, read by the test before and after"
MADE = "memory of a known size, mapped and touched by the test"
STAT = "`/proc/stat`, read by the test before and after"
BY_HAND = "arithmetic by hand"
SORTED = "`time.perf_counter()` around each block, sorted"
COUNT = "the program's own count"
FILES = "files of a made-up machine"
TIME, CPU_TIME = bracketed(0.02), bracketed(0.02)
PROFILER = "python:PerformanceProfiler."
MONITOR = "python:PerformanceMonitor."


def touch(size):
    data = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size, 4096):
        data[at] = 1
    return data


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB


def stat():
    with open("/proc/stat") as file:
        numbers = [int(word) for word in file.readline().split()[1:9]]
    return sum(numbers), numbers[3], numbers[4]


def machine_between(before, after):
    """(busy, waiting for disks) percent."""
    whole, idle, waiting = (new - old for new, old in zip(after, before))
    return 100 * (whole - idle - waiting) / whole, 100 * waiting / whole


def memory_percent():
    with open("/proc/meminfo") as file:
        found = {line.split(":")[0]: int(line.split()[1]) for line in file}
    return 100 * (1 - found["MemAvailable"] / found["MemTotal"])


def disks():
    with open("/proc/diskstats") as file:
        return {line.split()[2]: int(line.split()[12]) for line in file}


def traffic():
    with open("/proc/net/dev") as file:
        rows = [line.replace(":", ": ").split() for line in file if ":" in line]
    return tuple(sum(int(row[column]) for row in rows if row[0] != "lo:") for column in (1, 9))


class Timed:
    """The truth of blocks: (inside, outside) seconds by each of three clocks."""

    def __init__(self):
        self.wall, self.cpu, self.process = [], [], []

    @staticmethod
    def clocks():
        import resource
        used = resource.getrusage(resource.RUSAGE_SELF)
        return time.perf_counter(), time.thread_time(), used.ru_utime + used.ru_stime

    def run(self, block, work):
        outer = self.clocks()
        with block:
            inner = self.clocks()
            work()
            inner_end = self.clocks()
        outer_end = self.clocks()
        for at, to in enumerate((self.wall, self.cpu, self.process)):
            to.append((inner_end[at] - inner[at], outer_end[at] - outer[at]))
        return self


def added(pairs):
    return sum(low for low, _ in pairs), sum(high for _, high in pairs)


def quantile(pairs, q):
    """Nearest rank; a histogram's bucket beside it is allowed for by the bound."""
    at = max(0, math.ceil(q * len(pairs)) - 1)
    return sorted(low for low, _ in pairs)[at], sorted(high for _, high in pairs)[at]
