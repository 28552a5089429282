"""Sampled stacks in a file: what was put in, what a reader that shares no code with Tare finds, what Tare reads."""
import subprocess

import pytest
from conftest import BUILD
from format_reader import Damage, Stacks

TOOL = BUILD / "tests" / "tool" / "stacks"


def lines(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, check=True)
    return [line.split("\t") for line in done.stdout.decode().splitlines()]


def by_content(stacks, sample):
    thread = stacks.threads[sample.thread]
    numbers = [sample.state, sample.flags, sample.wall, sample.cpu, sample.queue]
    who = [thread.pid, thread.tid, thread.start, thread.main, thread.name.decode()]
    frames = [f"{function.kind}:{function.name.decode()}:{function.file.decode()}:{function.first_line}@{line}"
              for function, line in stacks.frames(sample.stack)]
    return ["given", *map(str, [sample.ticks, *who, *numbers]), *frames]


def as_shown(stacks):
    for number, row in sorted(stacks.functions.items()):
        yield ["function", number, row.kind, row.first_line, row.name.decode(), row.file.decode()]
    for number, row in sorted(stacks.threads.items()):
        yield ["thread", number, row.pid, row.tid, row.start, row.main, row.name.decode()]
    for number, row in sorted(stacks.stacks.items()):
        yield ["stack", number, row.caller, row.function, row.line]
    for sample in stacks.samples:
        yield ["sample", *sample]


@pytest.mark.parametrize("seed", range(20))
def test_another_reader_finds_what_was_put_in(tmp_path, seed):
    path = tmp_path / "a.tare"
    given = lines(path, seed)
    stacks = Stacks(path.read_bytes())
    assert stacks.minor == 4
    assert [by_content(stacks, sample) for sample in stacks.samples] == given
    assert [[str(word) for word in line] for line in as_shown(stacks)] == lines(path)
    # Every row once: equal content has one number.
    for rows in (stacks.functions, stacks.stacks, stacks.threads):
        assert sorted(rows) == list(range(1, len(rows) + 1)) and len(set(rows.values())) == len(rows)


def test_the_other_reader_notices_damage(tmp_path):
    path = tmp_path / "a.tare"
    lines(path, 1)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    with pytest.raises(Damage):
        Stacks(bytes(data))
