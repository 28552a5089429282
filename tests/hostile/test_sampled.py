"""Programs whose memory was made to mislead or to harm the reader of their call stacks."""
import contextlib
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from e2e_conftest import VICTIMS
from test_secrets import check_harmless, on_terminal

NAMES = ["\x1b]0;owned\x07\x1b[8m", "a\n::error::y", "a\nThread 1 (MainThread): running", "##[error]y",
         "x\r\n##vso[task.setvariable]y", "\n"]
OFFSETS = [5, 8, 9, 10, 14, 18, *range(21, 27), *range(29, 34), *range(35, 40), 43, 45, 65, 66, 68, 69, 72]


@contextlib.contextmanager
def forged(bench, *words):
    process = bench.start(VICTIMS / "forged", *words)
    try:
        assert int(process.stdout.readline()) == process.pid
        yield process.pid
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def test_a_forged_interpreter_is_read(bench):
    """What the other tests change is otherwise a Python process."""
    with forged(bench, "stack", "known") as pid:
        done = bench.tare("attach", "--dump", pid)
        assert done.status == 0 and done.out.count("    known (/forged/file.py:7)\n") == 3, done.out + done.err


@pytest.mark.parametrize("number", OFFSETS)
def test_offsets_that_reach_outside_of_their_struct(bench, number):
    """An offset shortly before 2^64 ends within its struct if the sum wraps."""
    with forged(bench, "offset", number) as pid:
        done = bench.tare("attach", "--dump", pid)
        assert done.status == 3 and "not plausible" in done.err, (done.status, done.out, done.err)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_functions_stay_on_their_line(bench, name):
    with forged(bench, "stack", name) as pid:
        dumped, shown = bench.tare("attach", "--dump", pid), bench.tare("top", "--count", 1, pid)
        seen, _ = on_terminal(bench, "attach", "--dump", pid)
        for done in dumped, shown, seen:
            assert done.status == 0, done.err
            check_harmless(done.out.replace("\r\n", "\n"))
            assert "\n::" not in done.out and "\nThread 1 " not in done.out
        assert len(dumped.out.splitlines()) == 6, dumped.out
        assert shown.out.count("file.py") == 1 and "(file.py:7)" in shown.out, shown.out
        bench.tare("attach", "-q", "-f", "-o", "t.tare", "--no-history", "--duration", "300ms", pid)
        check_harmless(bench.report(bench.folder / "t.tare", "--all").out)
        folded = bench.folder / "t.folded"
        bench.report(bench.folder / "t.tare", "--folded", folded)
        for line in folded.read_text().splitlines():
            assert line.rpartition(" ")[2].isdigit() and line.startswith("forged "), line


def test_stacks_that_are_all_over_the_memory_do_not_hold_the_reader(bench):
    """240 million frames, none of them near another one, which took many minutes: a sample reads a part of them."""
    with forged(bench, "scattered", 4000, 60000) as pid:
        done = bench.tare("attach", "-q", "-f", "-o", "t.tare", "--no-history", "--duration", "300ms", pid)
        assert done.status == 0, done.err
        done = bench.tare("attach", "--dump", pid)
        assert done.status == 0 and "changes too fast" in done.out, done.err


def test_symbols_of_another_user_are_not_demangled(bench, stranger):
    """A short name can stand for one of gigabytes."""
    with tempfile.TemporaryDirectory() as place:
        pathlib.Path(place).chmod(0o755)
        victim = shutil.copy(VICTIMS / "forged", place)
        process = subprocess.Popen([victim, "native"], user=stranger[0], group=stranger[1], extra_groups=[],
                                   stdout=subprocess.PIPE, cwd="/")
        try:
            assert int(process.stdout.readline()) == process.pid
            done = bench.tare("attach", "-q", "-f", "-o", "t.tare", "--no-history", "--native", "--duration", "1s",
                              process.pid)
            assert done.status == 0, done.err
        finally:
            process.kill()
            process.communicate()
    names = [row["function"] for row in bench.json(bench.folder / "t.tare")["functions"]]
    assert any(name.startswith("_Z1f1pIiiES_I") for name in names), names
