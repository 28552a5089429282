# figures: a benchmark's figures beside their limits, and running programs bare or recorded.
# One process. Must not know how tare works inside: it runs programs and reads `tare report --json`.
"""What the files of bench/ share."""
import json
import math
import os
import statistics
import subprocess
import sys
import time

BUILD = os.path.abspath(os.environ.get("TARE_BUILD", "build"))
TARE = os.path.join(BUILD, "tare")
CPUS = sorted(os.sched_getaffinity(0))
RETRIES = 6
NO_SECOND_CPU = "n/a: needs two CPUs"


class Void(Exception):
    """No valid run came about; says why."""


def program(name, *arguments):
    return [os.path.join(BUILD, "bench", name), *map(str, arguments)]


def plain(command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


class Recorder:
    """Runs programs under `tare run`, the collector on any CPU but the first."""

    def __init__(self, folder):
        self.folder = folder
        self.voided = 0

    def path(self, name):
        return os.path.join(self.folder, name + ".tare")

    def once(self, command, name="round", apart=True, options=()):
        """Output, summary of the run."""
        elsewhere = set(CPUS[1:]) if apart and len(CPUS) > 1 else set(CPUS)
        done = subprocess.run([TARE, "run", "-q", "-f", "-o", self.path(name), *options, "--", *command],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, elsewhere))
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
        return done.stdout, report(self.path(name))["run"]

    def whole(self, command, name="round", apart=True, options=()):
        """The same until nothing is dropped."""
        for _ in range(RETRIES):
            output, run = self.once(command, name, apart, options)
            if run["dropped_spans"] == 0 and run["dropped_others"] == 0:
                return output, run
            self.voided += 1
        os.remove(self.path(name))
        raise Void(f"spans were dropped in each of {RETRIES} runs")


def peak_of(command, field):
    """Bytes: the largest value of that line of /proc/PID/status seen while a command runs. The kernel's own peak will
    not do: a process takes that of the one which started it along."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as status:
                seen = [line.split()[1] for line in status if line.startswith(field + ":")]
        except OSError:
            seen = []
        peak = max([peak] + [int(kib) * 1024 for kib in seen])
        time.sleep(0.0005)
    if process.returncode != 0:
        raise Void(f"{' '.join(command[:3])}: exit status {process.returncode}")
    return peak


def report(path):
    return json.loads(plain([TARE, "report", "--json", path]))


# ---- figures -------------------------------------------------------------------------------------

class Figure:
    """A row: values of the rounds, and the limit its median is held against."""

    def __init__(self, name, unit, limit=None, at_least=False, within=None):
        self.name, self.unit, self.limit, self.at_least, self.within = name, unit, limit, at_least, within
        self.values, self.note, self.reason = [], "", ""

    def add(self, value, note=None):
        self.values.append(value)
        if note is not None:
            self.note = note

    def verdict(self):
        if not self.values:
            return "n/a"
        if self.limit is None:
            return ""
        value = statistics.median(self.values)
        if self.within is not None:
            return "pass" if abs(value - self.limit) <= self.within else "MISS"
        return "pass" if (value >= self.limit if self.at_least else value <= self.limit) else "MISS"

    def cells(self):
        if not self.values:
            return [self.name, "n/a", self.limit_text(), "n/a", self.reason or "not run"]
        low, middle, high = min(self.values), statistics.median(self.values), max(self.values)
        spread = f"{show(low, self.unit)} .. {show(high, self.unit)}" if len(self.values) > 1 else ""
        text = "; ".join(part for part in (spread, self.note) if part)
        return [self.name, show(middle, self.unit), self.limit_text(), self.verdict(), text]

    def limit_text(self):
        if self.limit is None:
            return ""
        if self.within is not None:
            return f"{show(self.limit, self.unit)} ± {self.within:g}"
        return ("at least " if self.at_least else "at most ") + show(self.limit, self.unit)


def show(value, unit):
    if unit == "M/s":
        return f"{value / 1e6:.1f} M/s"
    if unit == "MiB":
        return f"{value / 1048576:.1f} MiB"
    return f"{value:.2f}{unit if unit == 'x' else ' ' + unit}".rstrip()


def at(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def interval(values):
    """Of the median, 95 % by order statistics; None where there are too few values for one."""
    ordered, n = sorted(values), len(values)
    below, rank = 0.0, 0
    while below + math.comb(n, rank) / 2 ** n <= 0.025:
        below += math.comb(n, rank) / 2 ** n
        rank += 1
    return (ordered[rank - 1], ordered[n - rank]) if rank else None
