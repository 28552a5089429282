"""What the end-to-end tests share: running `tare`, reading what it wrote, what must hold for any trace."""
import collections
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TARE_BUILD", ROOT / "build"))
TARE = BUILD / "tare"
VICTIMS = BUILD / "tests" / "victim"

sys.path.insert(0, str(ROOT / "tests"))
from contradictions import check_contradictions  # noqa: E402
from waiting import PATIENCE, read_page  # noqa: E402

Event = collections.namedtuple("Event", "ns pid tid kind name extras")


def built_with():
    """The sanitizer of this build: "none", "address,undefined", "thread"."""
    options = BUILD / "meson-info" / "intro-buildoptions.json"
    if not options.exists():
        return "none"
    found = [option["value"] for option in json.loads(options.read_text()) if option["name"] == "b_sanitize"]
    value = found[0] if found else "none"
    return (",".join(value) if isinstance(value, list) else value) or "none"


SANITIZER = built_with()


def scaled(n, least=1):
    """A count for the plain build, and a tenth of it where every instruction is checked."""
    return n if SANITIZER == "none" else max(n // 10, least)


class Done:
    """A finished command: status, what it printed, its `key value` lines, the trace it named."""

    def __init__(self, process, out, err):
        self.status = process.returncode
        self.out, self.err = out, err
        self.facts = collections.defaultdict(list)
        for line in out.splitlines():
            key, _, value = line.partition(" ")
            self.facts[key].append(value)

    def fact(self, key):
        return int(self.facts[key][0])


class Bench:
    """A folder of its own, with a temporary folder of its own inside."""

    def __init__(self, folder):
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()

    def env(self, changes=None):
        env = {key: value for key, value in os.environ.items() if not key.startswith("TARE_")}
        env["TMPDIR"] = str(self.temporary)
        env["TARE_STORE"] = str(self.folder / "history")  # never the user's own
        env.update(changes or {})
        return env

    def start(self, *command, env=None, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   "text": True, "errors": "replace", "cwd": self.folder, **options}
        return subprocess.Popen([str(word) for word in command], env=self.env(env), **options)

    def call(self, *command, timeout=PATIENCE, text_in=None, **options):
        if text_in is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*command, **options)
        try:
            out, err = process.communicate(text_in, timeout=timeout)
        except subprocess.TimeoutExpired as hangs:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # what it started may hold the pipes for ever
                process.communicate(timeout=5)
            raise hangs
        check_contradictions(out or "", err or "")
        return Done(process, out or "", err or "")

    def tare(self, *words, **options):
        return self.call(TARE, *words, **options)

    def run(self, victim, *words, options=(), status=0, **more):
        """A victim under `tare run`, which must end with this status; the trace is `trace`."""
        done = self.tare("run", "-o", "trace.tare", "-f", *options, "--", VICTIMS / victim, *words, **more)
        assert done.status == status, (done.status, done.out[-2000:], done.err[-2000:])
        done.trace = self.folder / "trace.tare"
        return done

    def report(self, trace, *options, status=0):
        done = self.tare("report", *options, trace)
        assert done.status == status, (done.status, done.err[-2000:])
        return done

    def json(self, trace, *options):
        return json.loads(self.report(trace, "--json", *options).out)

    def events(self, trace):
        return parse_events(self.report(trace, "--events").out)


def parse_events(text):
    events = []
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        ns, pid, tid, kind, name, *extras = line.split("\t")
        pairs = dict(extra.split("=", 1) for extra in extras)
        events.append(Event(int(ns), pid, tid, kind, name, pairs))
    return events


def by_thread(events):
    threads = collections.defaultdict(list)
    for event in events:
        threads[event.pid, event.tid].append(event)
    return threads


def spans_of(events):
    """Spans that begin in these events."""
    return sum(event.kind in ("begin", "next") for event in events)


def names_of(events, *kinds):
    kinds = kinds or ("begin", "next")
    return collections.Counter(event.name for event in events if event.kind in kinds)


def check_nesting(events, left_open=0):
    """Every thread's spans are well nested, every end has its begin, and time never goes back."""
    for thread, lines in by_thread(events).items():
        stack, last = [], None
        for event in lines:
            if event.kind == "complete":
                continue
            assert last is None or event.ns >= last, (thread, "time went back", last, event)
            last = event.ns
            if event.kind == "begin":
                assert int(event.extras["depth"]) == len(stack), (thread, stack[-3:], event)
                stack.append(event)
            elif event.kind == "end":
                assert "unmatched" not in event.extras, (thread, event)
                assert "left_open" not in event.extras, (thread, event)
                assert stack and stack[-1].name == event.name, (thread, stack[-3:], event)
                begun = stack.pop()
                assert abs(event.ns - begun.ns - int(event.extras["dur_ns"])) <= 1, (begun, event)
            elif event.kind == "next":
                if stack:
                    assert event.extras["ended"] == stack.pop().name
                stack.append(event)
            else:
                assert event.kind in ("mark", "counter", "number"), event
        assert len(stack) == left_open, (thread, "left open", stack[-3:])


@pytest.fixture(autouse=True)
def no_sessions_left(tmp_path_factory):
    """A collector that is killed leaves its session in shared memory: those of this run's folders go with the test.
    Others on this machine record, too."""
    yield
    ours = os.fsencode(str(tmp_path_factory.getbasetemp())) + b"/"
    for session in pathlib.Path("/dev/shm").glob("tare-*/session"):  # of other users, too, as root
        if ours in read_page(session):
            shutil.rmtree(session.parent, ignore_errors=True)  # its collector may be quicker


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)
