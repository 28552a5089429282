# python_targets: what the package reads of a user's, each as a function of any bytes. Whatever they are, it is read
# or refused by a ValueError whose sentence names the file.
# One thread. Must not know where the bytes come from.
"""Targets of fuzz_python.py (guided by coverage, without end) and of tests/python/test_fuzz.py (always the same)."""
import contextlib
import json
import math
import os
import sys
import tempfile

import tare
from tare import config

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = tempfile.TemporaryDirectory(prefix="tare-fuzz-")


class Wrong(AssertionError):
    """It was neither read nor refused as it should be."""


def path_of(name):
    return os.path.join(FOLDER.name, name)


def write(name, data):
    with open(path_of(name), "wb") as file:
        file.write(data)
    return path_of(name)


@contextlib.contextmanager
def refused_by_a_sentence(*words):
    """Only a ValueError may come out, and it says where."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        if not any(word in text for word in words) or len(text) > 20000:
            raise Wrong(f"{type(error).__name__} without the place: {text[:300]!r}") from error


def text_of(data):
    return data.decode("utf-8", "replace")


def baseline(data):
    path = write("baseline.json", data)
    with refused_by_a_sentence(path):
        operations = tare.PerformanceRegressionDetector.load_baseline(None, path)
        for name, values in operations.items():
            if not math.isfinite(float(values["wall_time_s"])):
                raise Wrong(f"{name!r} was read as {values!r}")


def settings(data):
    for name in ("tare.toml", "pyproject.toml"):
        path = write(name, data)
        try:
            with refused_by_a_sentence(path):
                check_settings(tare.load_settings(FOLDER.name, {}))
        finally:
            os.remove(path)


def check_settings(found):
    for name, value in found.items():
        if not isinstance(value, config._type_of(name)) and name != "profiler_schedule":
            raise Wrong(f"{name} was read as {value!r}")


def environment(data):
    variables = {}
    for line in text_of(data).splitlines():
        name, _, value = line.partition("=")
        variables["TARE_" + name.strip().upper()] = value.strip()
    with refused_by_a_sentence("TARE_"):
        check_settings(tare.load_settings(FOLDER.name, variables))


def trainer(data):
    path = write("trainer.yaml", data)
    with refused_by_a_sentence(path):
        found = config.read_trainer_params(path, strict=False)
        if not set(found) <= set(config._TRAINER):
            raise Wrong(f"read as {found!r}")


def profiling(data):
    """Keywords of ProfilingConfig: those that are unknown or of another type are a TypeError."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(given, dict):
        return
    try:
        made = tare.create_profiling_config(**given)
    except (TypeError, ValueError) as error:
        if not any(repr(name)[1:-1] in str(error) for name in given):
            raise Wrong(f"it does not say what is wrong: {error}") from error
        return
    json.dumps(made.as_dict())


def report(data):
    path = write("trace.tare", data)
    with refused_by_a_sentence(path, "trace.tare"):
        read = tare.report(path)
        repr(read), [repr(row) for row in read.spans], read._repr_html_()


def file_seeds(*names):
    return [open(os.path.join(ROOT, "tests", name), "rb").read() for name in names]


DEEP = b"[" * 2000
TOML_SEEDS = file_seeds("fuzz/corpus/fuzz_toml/pyproject", "fuzz/corpus/fuzz_toml/tare") + [
    b'output_dir = "profiles"\nuse_compile = true\nmemory_monitor_batches = 5\n',
    b'[tool.tare]\noutput-dir = \'a\'\nwith_stack = false # no\n[tool.other]\nx = [1, 2,\n 3]\ny = {a = 1}\n',
    b"x = " + DEEP,
    b'output_dir = """a\nb"""\nprofiler_schedule = "RECORD"\nx = 1_000\n',
]
YAML_SEEDS = [
    b"trainer_params:\n  enable_memory_monitoring: true  # both\n  memory_monitor_batches: 5\n  batch_size: 32\n",
    b"enable_memory_monitoring: no\nmemory_monitor_batches: 0\n",
    b"defaults:\n  - a\n  - {b: 1}\ntrainer_params: &x\n  name: 'it''s'\n  epochs: 1e3\nother: *x\n",
    b"a: " + DEEP,
    b"a: !!int 5\nb: !!timestamp 2001-01-01\nc: |\n  text\nd: ~\ne: 0x1f\nf: 1:30\ng: !!bool yes\n",
]
JSON_WORDS = [b"NaN", b"Infinity", b"1e999", b"-1", b"version", b"wall_time_s", b"null", b"[" * 9, b"1" * 400,
              b"9" * 5000, b"\\ud800", b"\xff", b"{", b"}", b"true"]
TOML_WORDS = [b"[tool.tare]", b'"""', b"'''", b"=", b"[" * 9, b"{" * 9, b"\xff", b"9" * 5000, b"output_dir", b'""',
              b"nan", b"1979-05-27", b"\\u0000", b"\\", b".", b"#", b"\n", b"\r", b"\xc2\x85", b"_", b"1e"]
YAML_WORDS = [b"!!int", b"!!bool x", b"!!timestamp x", b"!!float x", b"!!binary x", b"[" * 9, b"&a", b"*a", b"<<: ",
              b"? ", b"- ", b": ", b"\t", b"\n", b"\r", b"---", b"#", b"  ", b"\xff", b"9" * 5000, b"'", b'"',
              b"!!set", b"!!omap", b"2001-99-99", b"1:99", b"1e5", "\u00a0".encode(), "\u0663".encode()]
# name: (function, seeds, what is likely to matter, inputs in a test)
TARGETS = {
    "baseline": (baseline, [
        DEEP,
        b'{"model_training": {"wall_time_s": 1.5}}',
        b'{"version": 1, "a": {"wall_time_s": 0}, "b": {"wall_time_s": 1e-3, "more": [null, true]}}',
    ], JSON_WORDS, 2000),
    "settings": (settings, TOML_SEEDS, TOML_WORDS, 2500),
    "environment": (environment, [
        b"output_dir=x\nuse_compile=1\nmemory_monitor_batches=3\nprofiler_schedule=RECORD\n",
    ], [b"=", b"\n", b"9" * 5000, b"-1", b"yes", "\u0663".encode(), "\u00b2".encode(), b"use_compil", b"output_dir="],
        2000),
    "trainer": (trainer, YAML_SEEDS, YAML_WORDS, 1200),
    "profiling": (profiling, [
        b'{"use_compile": true, "output_dir": "x", "profiler_schedule": "record"}',
        b'{"with_stack": false, "save_profiles": true, "monitor_gpu": true}',
    ], [b"null", b"1", b'""', b"[]", b"{}", b'"none"', b"use_", b"output_dir", b"\\u0000"], 2000),
    "report": (report, file_seeds("fixture/format-1.0.tare", "fixture/format-1.1.tare"),
               [b"\0" * 8, b"\xff" * 8, b"TARE"], 60),
}


def one(name, data):
    TARGETS[name][0](data)


if __name__ == "__main__":
    sys.exit("usage: tests/fuzz/fuzz_python.py TARGET, or pytest tests/python/test_fuzz.py")
