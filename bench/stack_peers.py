# stack_peers: profilers that sample stacks from outside: how each is attached, and what its output says.
# One process. Must not know what is measured with them.
"""Tare, py-spy, Austin, perf and Scalene behind one interface."""
import collections
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import time

from figures import BUILD, TARE, Void, report

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.environ.get("TARE_PEERS", next((path for path in (os.path.join(BUILD, "peers", "bin"),
                                                            os.path.join(HERE, "..", "build", "peers", "bin"))
                                           if os.path.exists(path)), ""))
PROGRAM = os.path.join(HERE, "stack_program.py")


def peer(name):
    path = os.path.join(PEERS, name)
    if not PEERS or not os.path.exists(path):
        raise Void(f"{name} is not installed: `tools/setup test` makes build/peers")
    return path


def python():
    """The interpreter of the programs: the peers' own, which has line_profiler."""
    return peer("python")


class Sampled:
    """What a profiler saw: weights of functions and of lines, in samples or seconds."""

    def __init__(self):
        self.functions, self.lines = collections.Counter(), collections.Counter()
        self.whole, self.samples = 0.0, 0

    def add(self, frames, weight, samples):
        """`frames`: (function, line) of the program's own file."""
        self.whole += weight
        self.samples += samples
        for name in {name for name, _ in frames}:
            self.functions[name] += weight
        for line in set(frames):
            self.lines[line] += weight


class Tare:
    name = "Tare"

    def __init__(self, *options):
        self.options = options

    def command(self, pid, hz, out):
        return [TARE, "attach", "-q", "-f", "-o", out, "--no-history", "--stacks", str(hz), *self.options, str(pid)]

    @staticmethod
    def read(out, within):
        """Of the call tree: nodes below the function `within`."""
        found, seen = report(out), Sampled()
        path = []
        for row in found["stacks"]:
            del path[row["depth"]:]
            path.append(row)
            names = [one["name"] for one in path]
            if within not in names:
                continue
            seen.add([(one["name"], one["line"]) for one in path if one["line"]], row["self_ns"] / 1e9, row["samples"])
        return seen


class PySpy:
    def __init__(self, *options):
        self.options = options
        self.name = " ".join(["py-spy", *(option for option in options if option == "--nonblocking")])

    def command(self, pid, hz, out):
        return [peer("py-spy"), "record", "-p", str(pid), "-r", str(hz), "-f", "raw", "-o", out, "--idle",
                *self.options]

    @staticmethod
    def read(out, within):
        seen = Sampled()
        with open(out) as lines:
            for text in lines:
                stack, _, count = text.rpartition(" ")
                frames = [re.match(r"(.*) \((.*):(\d+)\)$", frame) for frame in stack.split(";")]
                frames = [(one[1], int(one[3])) for one in frames if one]
                if within in [name for name, _ in frames]:
                    seen.add(frames, int(count), int(count))
        return seen


class Austin:
    name = "Austin 3.7"

    @staticmethod
    def command(pid, hz, out):
        return [peer("austin"), "-p", str(pid), "-i", str(round(1e6 / hz)), "-o", out]

    @staticmethod
    def read(out, within):
        seen = Sampled()
        with open(out) as lines:
            for text in lines:
                stack, _, micros = text.strip().rpartition(" ")
                frames = [frame.rsplit(":", 2) for frame in stack.split(";") if frame.count(":") >= 2]
                frames = [(one[1], int(one[2])) for one in frames if one[2].isdigit()]
                if within in [name for name, _ in frames]:
                    seen.add(frames, float(micros) / 1e6, 1)
        return seen


class Perf:
    """Knows Python functions (no lines) from CPython 3.12 on, started with `-X perf`."""
    name = "perf"

    @staticmethod
    def command(pid, hz, out):
        if not shutil.which("perf"):
            raise Void("perf is not installed")
        return ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(hz), "-g", "-p", str(pid), "-o", out]

    @staticmethod
    def read(out, within):
        seen = Sampled()
        text = subprocess.run(["perf", "script", "-i", out, "-F", "ip,sym"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout
        for stack in text.split("\n\n"):
            names = [(name, 0) for name in re.findall(r"py::([^:]*):", stack)]
            if within in [name for name, _ in names]:
                seen.add(names, 1, 1)
        return seen


def cpu_s(pid):
    """CPU time of a process and its ended threads, to the nanosecond."""
    return time.clock_gettime(ctypes.c_int32(~pid << 3 | 2).value)


def thread_cpu_s(pid, *names):
    """CPU time of the threads with these names, and their time ready without a CPU."""
    cpu, ready = 0, 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        folder = f"/proc/{pid}/task/{tid}/"
        try:
            with open(folder + "comm") as comm, open(folder + "schedstat") as scheduled:
                if comm.read().strip() in names:
                    values = scheduled.read().split()
                    cpu, ready = cpu + int(values[0]), ready + int(values[1])
        except OSError:  # it has ended
            pass
    return cpu / 1e9, ready / 1e9


class Target:
    """A program of stack_program.py, and profilers attached to it."""

    def __init__(self, name, seconds, interpreter=None, options=()):
        command = [interpreter or python(), *options, PROGRAM, name, str(seconds)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        if self.process.stdout.readline() != "ready\n":
            raise Void(f"{name} does not start")

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def result(self):
        line = self.process.stdout.readline()
        if not line:
            raise Void("the program ended")
        return json.loads(line)

    def end(self):
        try:
            self.process.communicate("\n", timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()


class Attached:
    """A profiler at work on a target."""

    def __init__(self, profiler, target, hz, out, settle_s=1.5):
        command = profiler.command(target.pid, hz, out)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        time.sleep(settle_s)
        if self.process.poll() is not None:
            raise Void(f"{profiler.name} ended: {self.process.stderr.read().strip()[-200:]}")

    def pause(self):
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)

    def end(self):
        self.go_on()
        os.kill(self.pid, signal.SIGINT)
        try:
            self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise Void(f"{self.process.args[0]} did not end") from None


def scalene(name, seconds, folder):
    """Runs the program under Scalene: (what the program measured, what Scalene saw)."""
    result, out = os.path.join(folder, "result.json"), os.path.join(folder, "scalene.json")
    subprocess.run([peer("scalene"), "run", "--cpu-only", "-o", out, PROGRAM, name, str(seconds), result],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    seen = Sampled()
    with open(out) as text, open(result) as measured:
        profile, truth = json.load(text), json.load(measured)
    for path, about in profile["files"].items():
        if os.path.basename(path) == os.path.basename(PROGRAM):
            for row in about["lines"]:
                seen.lines[row["lineno"]] += (row["n_cpu_percent_python"] + row["n_cpu_percent_c"] +
                                              row["n_sys_percent"])
    return truth, seen
