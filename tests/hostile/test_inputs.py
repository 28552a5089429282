"""What is named as an input and is not a regular file: refused with a sentence, at once; pipes of a shell go on
working."""
import gzip
import json
import os
import socket
import subprocess

import pytest

from e2e_conftest import SANITIZER, TARE, VICTIMS

CHROME = json.dumps({"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]})


@pytest.fixture
def trace(bench):
    return bench.run("ticker", bench.folder / "ledger", 1000, 5).trace


def fifo(path):
    os.mkfifo(path)


def named_socket(path):
    one = socket.socket(socket.AF_UNIX)
    one.bind(str(path))
    one.close()


KINDS = {
    "FIFO": (fifo, "is a pipe"),
    "link to a FIFO": (lambda path: (os.mkfifo(f"{path}.to"), path.symlink_to(f"{path}.to")), "is a pipe"),
    "socket": (named_socket, "is a socket"),
    "folder": (lambda path: path.mkdir(), "is a folder"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "is a device"),
}

# What reads it, with an exit status of 3 unless told.
READERS = {
    "report": lambda odd, trace: ["report", odd],
    "report rules": lambda odd, trace: ["report", "--rules", odd, trace],
    "compare": lambda odd, trace: ["compare", trace, odd],
    "check": lambda odd, trace: ["check", odd, "--baseline", trace],
    "check baseline": lambda odd, trace: ["check", trace, "--baseline", odd],
    "baseline": lambda odd, trace: ["baseline", "save", trace, odd, "-o", "b.json"],
    "import": lambda odd, trace: ["import", odd, "-o", "i.tare"],
    "history import": lambda odd, trace: ["history", "import", odd],
    "history add": lambda odd, trace: ["history", "add", odd],
    "model": lambda odd, trace: ["model", "--static", odd],
    "history": lambda odd, trace: ["history", "--store", odd],
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file(bench, trace, kind):
    make, sentence = KINDS[kind]
    odd = bench.folder / "odd.json"
    make(odd)
    for reader, command in READERS.items():
        if kind == "folder" and reader in ("compare", "check baseline", "check", "baseline", "report", "history"):
            continue  # a folder of runs, of a session, or of the history
        done = bench.tare(*command(odd, trace), timeout=30)
        assert done.status == 3, (reader, done.status, done.err)
        assert sentence in done.err and "odd.json" in done.err, (reader, done.err)


@pytest.mark.parametrize("ending", [".tare", ".json"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_runs_that_holds_one(bench, trace, kind, ending):
    make, sentence = KINDS[kind]
    runs = bench.folder / "runs"
    runs.mkdir()
    os.link(trace, runs / "a.tare")
    make(runs / f"b{ending}")
    for command in (["compare", trace, runs], ["check", trace, "--baseline", runs],
                    ["check", runs, "--baseline", trace]):
        done = bench.tare(*command, timeout=30)
        assert done.status == 3 and f"b{ending}" in done.err and sentence in done.err, done.err


@pytest.mark.parametrize("kind", KINDS)
def test_rules_and_settings_of_a_run(bench, kind):
    make, sentence = KINDS[kind]
    make(bench.folder / "odd.rules")
    run = ["run", "-q", "-f", "-o", "r.tare", "--", VICTIMS / "ticker", "/dev/null", 1000, 5]
    done = bench.tare(*run[:1], "--rules", "odd.rules", *run[1:], timeout=30)
    assert done.status in (2, 125) and sentence in done.err, (done.status, done.err)
    for name in ("tare.toml", "pyproject.toml"):
        make(bench.folder / name)
        done = bench.tare(*run, timeout=30)
        assert done.status == 0 and f"ignoring {name}: it is not a regular file" in done.err, (done.status, done.err)
        done = bench.tare("check", "r.tare", "--baseline", "r.tare", timeout=30)
        assert done.status == 0, (done.status, done.err)
        subprocess.run(["rm", "-r", bench.folder / name], check=True)


@pytest.mark.parametrize("kind", ["FIFO", "socket", "folder", "device"])
def test_a_job_summary(bench, trace, kind):
    KINDS[kind][0](bench.folder / "summary")
    done = bench.tare("check", trace, "--baseline", trace, "--github", timeout=30,
                      env={"GITHUB_STEP_SUMMARY": str(bench.folder / "summary")})
    assert done.status == 1 and "cannot write the job summary" in done.err, (done.status, done.err)


def bash(bench, line, **options):
    return bench.call("/bin/bash", "-c", line, env={"TARE": str(TARE)}, timeout=30, **options)


def test_pipes_of_a_shell_are_read(bench, trace):
    assert bench.tare("baseline", "save", trace, "-o", "b.json").status == 0
    (bench.folder / "own.rules").write_text('rule any\n  table spans\n  when calls > 0\n  say "it ran"\n')
    (bench.folder / "c.json").write_text(CHROME)
    (bench.folder / "c.json.gz").write_bytes(gzip.compress(CHROME.encode()))
    (bench.folder / "h.jsonl").write_text(bench.tare("history", "export").out)
    lines = {
        '"$TARE" compare <(cat b.json) trace.tare': 0,
        'cat b.json | "$TARE" compare /dev/stdin trace.tare': 0,
        '"$TARE" compare /dev/stdin trace.tare < b.json': 0,
        '"$TARE" compare /proc/self/fd/0 trace.tare < b.json': 0,
        '"$TARE" report /dev/stdin < trace.tare': 0,
        '"$TARE" check trace.tare --baseline <(sleep 0.3; cat b.json)': 0,
        '"$TARE" report --rules <(cat own.rules) trace.tare | grep "it ran"': 0,
        'cat own.rules | "$TARE" report --rules /dev/stdin trace.tare | grep "it ran"': 0,
        '"$TARE" import -o one.tare <(cat c.json)': 0,
        '"$TARE" import -o two.tare <(cat c.json.gz)': 0,
        'cat c.json | "$TARE" import -o three.tare /dev/stdin': 0,
        '"$TARE" history import <(cat h.jsonl)': 0,
        'cat h.jsonl | "$TARE" history import': 0,
        'cat h.jsonl | "$TARE" history import -': 0,
        'cat h.jsonl | "$TARE" history import /dev/fd/0': 0,
        '"$TARE" report <(cat trace.tare)': 3,  # a trace is read at places
    }
    for line, status in lines.items():
        done = bash(bench, line)
        assert done.status == status, (line, done.status, done.err)
    assert "is a pipe" in done.err
    for name in ("one", "two", "three"):
        assert bench.json(bench.folder / f"{name}.tare")["spans"]


@pytest.mark.skipif(SANITIZER != "none", reason="a sanitizer needs terabytes of address space")
def test_a_line_without_an_end(bench):
    """A line that is longer than any run is refused before it is in memory."""
    long = bench.folder / "long.jsonl"
    with open(long, "wb") as file:
        file.write(b'{"a":"')
        file.truncate(3 << 30)  # a hole
    done = bench.call("/bin/bash", "-c", f'ulimit -v 1500000; exec "$TARE" history import {long}',
                      env={"TARE": str(TARE)}, timeout=60)
    assert done.status == 3 and "line too long for a run" in done.err, (done.status, done.err)
