"""Findings of plain Python programs, which neither train nor import tare: they name the hot function and its line."""
import pathlib
import sys
import textwrap

import pytest
from conftest import TARE  # noqa: F401

PROGRAMS = {
    "quadratic": ("if item not in seen:", "dedupe", {"running", "runnable"}, """
        import time
        end = time.monotonic() + 2.5
        def dedupe(items):
            seen = []
            for item in items:
                if item not in seen:
                    seen.append(item)
            return seen
        while time.monotonic() < end:
            dedupe([str(i) for i in range(4000)])
    """),
    "regex": ("pattern.match", "search", {"running", "runnable"}, """
        import re, time
        end = time.monotonic() + 2.5
        pattern = re.compile(r"(a|aa)+$")
        def search(text):
            return pattern.match(text)
        while time.monotonic() < end:
            search("a" * 24 + "b")
    """),
    "json": ("json.loads", "parse", {"running", "runnable"}, """
        import json, time
        end = time.monotonic() + 2.5
        text = json.dumps([{"key%d" % i: [i, str(i)]} for i in range(20000)])
        def parse():
            return json.loads(text)
        while time.monotonic() < end:
            parse()
    """),
    "network": ("here.recv", "fetch", {"network"}, """
        import socket, threading, time
        server = socket.create_server(("127.0.0.1", 0))
        here = socket.create_connection(server.getsockname())
        there, _ = server.accept()
        def answer():
            for _ in range(20):
                time.sleep(0.1)
                there.send(b"x")
        threading.Thread(target=answer, daemon=True).start()
        def fetch():
            return here.recv(1)
        for _ in range(20):
            fetch()
    """),
    "sleeping": ("time.sleep", "poll", {"sleep"}, """
        import time
        def poll():
            for _ in range(20):
                time.sleep(0.1)
        poll()
    """),
    "file": ("os.fsync", "save", {"disk", "other", "running", "runnable"}, """
        import os, time
        end = time.monotonic() + 2
        def save(out):
            out.write(b"x" * 1000)
            os.fsync(out.fileno())
        with open("data", "wb", buffering=0) as out:
            while time.monotonic() < end:
                save(out)
    """),
}


def record(bench, text):
    path = bench.folder / "program.py"
    path.write_text(textwrap.dedent(text))
    done = bench.tare("run", "-q", "-f", "-o", "t.tare", "--no-history", "--stacks", "100", "--", sys.executable, path)
    assert done.status == 0, done.err[-2000:]
    return path, bench.json(bench.folder / "t.tare")


def line_of(path, text):
    return next(i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_hot_line_is_named(bench, name):
    text, function, states, code = PROGRAMS[name]
    path, report = record(bench, code)
    found = [row for row in report["findings"] if row["id"] in ("hot-code", "disk-bound")]
    assert found, [row["title"] for row in report["findings"]]
    row = found[0]
    assert row["location"] == f"{path}:{line_of(path, text)}", row
    assert row["function"].endswith(function) and row["line_state"] in states
    assert row["line_share"] > 0.1 and f"program.py:{line_of(path, text)}" in row["evidence"]
    assert not any("DataLoader" in row["advice"] for row in report["findings"])
    shown = bench.tare("report", "t.tare").out
    assert f"program.py:{line_of(path, text)}" in shown.partition("Hot lines")[0]


def test_threads_that_compete_for_the_interpreter(bench):
    path, report = record(bench, """
        import threading, time
        def work():
            end = time.monotonic() + 2
            count = 0
            while time.monotonic() < end:
                for i in range(2000):
                    count += i * i % 7
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    """)
    found = {row["id"]: row for row in report["findings"]}
    row = found["gil"]
    assert pathlib.Path(row["location"].rpartition(":")[0]) == path
    assert row["function"] == "work" and "ProcessPoolExecutor" in row["advice"]
    assert "one-core" not in found  # it would say that one thread does the work
    waiting = {figure["name"]: figure["value"] for figure in row["figures"]}
    assert 0.2 <= waiting["share"] < 0.95 and waiting["threads"] >= 6


def test_a_short_program_has_no_such_finding(bench):
    _, report = record(bench, "print('hello')")
    assert not [row for row in report["findings"] if row["id"] in ("hot-code", "gil")]
