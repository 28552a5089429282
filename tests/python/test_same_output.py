"""A program prints, writes and returns under `tare run` exactly what it does without: standard output, standard error,
exit status and files, byte by byte, over a table of small programs. What a program prints must not depend on the run
(addresses, times, process numbers): only Tare may make a difference."""
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest
from same_output import PROGRAMS, SEEN

SECONDS = 240


def text_of(data):
    """Addresses differ from run to run, and so do the times and process numbers of torch's own log lines."""
    text = re.sub(r"0x[0-9a-f]+", "0x", data.decode(errors="replace"))
    return re.sub(r"(?:USDT|ERROR|WARNING):\S+ \S+ \d+:\d+|\[[IWE]\d{4} [\d:.]+", "LOG", text)


def installed(name):
    """Without importing it here."""
    import importlib.util
    return importlib.util.find_spec(name) is not None


def interruptible():
    """Tests that run in the background of a shell inherit that interrupts are ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Place:
    """One folder, made again for each run, so that paths in messages are the same."""

    def __init__(self, folder, bench):
        self.folder, self.bench = folder, bench

    def outcome(self, program, before=()):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for name, text in program.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        env = self.bench.env({"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
                              "HF_HUB_OFFLINE": "1", **program.env}, hooked=True)
        words = [word.replace("PYTHON", sys.executable) for word in program.words]
        done = subprocess.run([*before, *words], cwd=self.folder, env=env, input=program.text_in.encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS,
                              preexec_fn=interruptible)
        status = 128 - done.returncode if done.returncode < 0 else done.returncode  # as a shell says it
        files = {str(path.relative_to(self.folder)): path.read_bytes() if program.compares_files else b""
                 for path in sorted(self.folder.rglob("*")) if path.is_file()}
        return {"status": status, "stdout": text_of(done.stdout), "stderr": text_of(done.stderr),
                "files": files}


# gloo's threads abort a process now and then when a group is destroyed on a busy machine, with and without Tare.
ABORTS = "terminate called without an active exception"


def outcome_of(place, program, *words):
    for _ in range(4):
        outcome = place.outcome(program, *words)
        if ABORTS not in outcome["stderr"]:
            break
    return outcome


@pytest.fixture
def place(tmp_path, bench):
    return Place(tmp_path / "here", bench)


def under(bench, tmp_path, *options):
    return [bench.command, "run", "-q", "-f", "-o", str(tmp_path / "trace.tare"), *options, "--"]


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_program(place, bench, tmp_path, name):
    program = PROGRAMS[name]
    for needed in program.needs:
        if not installed(needed):
            pytest.skip("%s is not installed" % needed)
    without = outcome_of(place, program)
    for text in (program.expect, *program.joined):
        assert text in without["stdout"] + without["stderr"], without
    assert without["status"] == program.status, without
    for options in program.modes_at(list(PROGRAMS).index(name)):
        assert outcome_of(place, program, under(bench, tmp_path, *options)) == without, options
        assert (tmp_path / "trace.tare").stat().st_size > 0
        os.remove(tmp_path / "trace.tare")


def test_there_are_at_least_fifty():
    assert len(PROGRAMS) >= 50
    torch = [(at, one) for at, one in enumerate(PROGRAMS.values()) if "torch" in one.needs]
    assert len(torch) >= 20
    taken = [options for at, one in torch for options in one.modes_at(at)]
    assert {options: taken.count(options) >= 8 for options in taken if options != ("--ops",)} == {
        (): True, ("--ops", "--shapes"): True}


@pytest.mark.parametrize("line", SEEN)
def test_the_comparison_can_fail(place, bench, tmp_path, line):
    """A program that asks whether it is recorded shows a difference."""
    program = PROGRAMS["prints"].changed("import sys, os\n" + line)
    assert place.outcome(program, under(bench, tmp_path)) != place.outcome(program)
