"""Every allocation and system call of collector and reader fails in turn: no crash, no hang, nothing lost unsaid."""
import json
import os
import platform

import pytest

from e2e_conftest import SANITIZER, TARE, VICTIMS

pytestmark = pytest.mark.skipif(SANITIZER != "none" or platform.machine() != "x86_64",
                                reason="interposes what a sanitizer interposes, by the names of x86-64")
LIBRARY = VICTIMS / "failing.so"
AT_MOST = int(os.environ.get("TARE_HOSTILE_TRIES", 60))  # tries of a kind; 0: all of them


def failing(kind, at=None, count=None):
    env = {"LD_PRELOAD": str(LIBRARY), "TARE_FAIL": kind}
    if at:
        env["TARE_FAIL_AT"] = str(at)
    if count:
        env["TARE_FAIL_COUNT"] = str(count)
    return env


def places(bench, kind, *command):
    """The first forty, and then ever further apart."""
    file = bench.folder / "count"
    bench.call(*command, env=failing(kind, count=file))
    total = int(file.read_text())
    assert total > 3, "the library is loaded, and counts"
    chosen = list(range(1, total + 3))
    if AT_MOST and len(chosen) > AT_MOST:
        near = AT_MOST * 2 // 3
        rest = chosen[near:]
        chosen = chosen[:near] + rest[::max(1, len(rest) // (AT_MOST - near))]
    return chosen


@pytest.mark.parametrize("kind", ["memory", "call"])
def test_a_run_whose_calls_fail(bench, kind):
    trace = bench.folder / "trace.tare"
    command = [TARE, "run", "-q", "--no-history", "-f", "-o", trace, "--", VICTIMS / "limits", "spans", 100, 5]
    for at in places(bench, kind, *command):
        trace.unlink(missing_ok=True)
        done = bench.call(*command, env=failing(kind, at), timeout=60)
        assert done.status in (2, 5, 125), (at, done.status, done.err)
        if done.status != 5:  # 2: settings that cannot be read
            assert done.err and done.out == "", (at, done.err)
            continue
        assert done.fact("made") == 100
        read = bench.tare("report", "--json", trace)
        told = done.err or read.status != 0 or '"notes":[]' not in read.out
        assert '"spans":100,' in read.out or told, (at, read.out[:1500])


@pytest.mark.parametrize("kind", ["memory", "call"])
@pytest.mark.parametrize("form", ["--json", "--html"])
def test_a_report_whose_calls_fail(bench, kind, form):
    trace = bench.run("limits", "spans", 100, options=["-q"]).trace
    before = trace.read_bytes()
    command = [TARE, "report", form, "-o", "out", trace]
    for at in places(bench, kind, *command):
        done = bench.call(*command, env=failing(kind, at), timeout=60)
        assert done.status in (0, 1, 2, 3) and (done.status == 0 or done.err), (at, done.status, done.err)
        assert trace.read_bytes() == before


OTHERS = {
    "compare": ["compare", "trace.tare", "b.json"],
    "check": ["check", "trace.tare", "--baseline", "b.json"],
    "import": ["import", "--force", "-o", "i.tare", "c.json"],
    "history import": ["history", "import", "h.jsonl"],
    "history csv": ["history", "--csv"],
    "csv": ["report", "--csv", "csv", "trace.tare"],
    "tensorboard": ["report", "--tensorboard", "tb", "trace.tare"],
}


@pytest.mark.parametrize("kind", ["memory", "call"])
@pytest.mark.parametrize("which", OTHERS)
def test_other_commands_whose_calls_fail(bench, kind, which):
    bench.run("limits", "spans", 100, options=["-q"])
    assert bench.tare("baseline", "save", "trace.tare", "-o", "b.json").status == 0
    (bench.folder / "h.jsonl").write_text(bench.tare("history", "export").out)
    event = {"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}
    (bench.folder / "c.json").write_text(json.dumps({"traceEvents": [event]}))
    command = [TARE, *OTHERS[which]]
    chosen = places(bench, kind, *command)
    for at in chosen[::3] if AT_MOST else chosen:
        done = bench.call(*command, env=failing(kind, at), timeout=60)
        assert done.status in (0, 1, 2, 3) and (done.status == 0 or done.err), (at, done.status, done.err)
