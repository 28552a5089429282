"""Files that a program names and that are no files: refused at once, with a sentence."""
import json
import os
import socket
import sys

import pytest


def made(folder, kind, name):
    path = folder / name
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    return str(path)


SENTENCES = {"FIFO": "it is a pipe", "socket": "it is a socket", "folder": "it is a folder", "device": "it is a device"}


SCRIPT = """
import tare
from tare.seeds.model import _load
from tare.config import read_trainer_params

def say(name, call):
    try:
        call()
        print(name, "no error")
    except Exception as error:
        print(name, type(error).__name__, error)

say("baseline", lambda: tare.load_baseline("odd.json"))
say("detector", lambda: tare.PerformanceRegressionDetector("odd.json"))
say("reports", lambda: tare.compare_reports("good.json", "odd.json"))
say("trainer", lambda: read_trainer_params("odd.json"))
say("model", lambda: _load.kind_of("odd.json"))
say("hub", lambda: _load.kind_of("hub"))
say("onnx", lambda: _load._onnx_in("onnx"))
"""


@pytest.mark.parametrize("kind", SENTENCES)
def test_what_is_no_file(bench, kind):
    made(bench.folder, kind, "odd.json")
    os.mkdir(bench.folder / "onnx")
    made(bench.folder / "onnx", kind, "model.onnx")
    os.mkdir(bench.folder / "hub")
    (bench.folder / "hub" / "config.json").write_text("{}")
    made(bench.folder / "hub", kind, "model.safetensors")
    (bench.folder / "good.json").write_text(json.dumps({"a_ms": 1.0}))
    done = bench.python(SCRIPT)
    lines = done.out.splitlines()
    assert len(lines) == 7, done.out
    for line in lines:
        if kind == "folder" and line.split()[0] in ("model", "hub"):
            continue  # a folder may be a model, and is often among its files
        assert SENTENCES[kind] in line and "no error" not in line, line


@pytest.mark.parametrize("kind", SENTENCES)
def test_settings(bench, kind):
    for name in ("tare.toml", "pyproject.toml"):
        made(bench.folder, kind, name)
    done = bench.python("import tare\nprint(tare.load_settings(environment={}))\n")
    assert done.out.strip() == "{}", done.out
    assert done.err.count("toml: it is not a regular file") == 2, done.err


PROGRAM = """
import tare

@tare.profile_lines
def f():
    return sum(range(10))

print(f())
f.line_profile.print()
"""


def test_a_program_out_of_a_pipe(bench):
    """Its source is gone: no line is shown, and nothing waits for another."""
    os.mkfifo(bench.folder / "program.py")
    (bench.folder / "text").write_text(PROGRAM)
    done = bench.call("/bin/sh", "-c", f"cat text > program.py & exec {sys.executable} program.py")
    assert done.out.startswith("45\n") and "program.py:" in done.out and "sum(" not in done.out, (done.out, done.err)
