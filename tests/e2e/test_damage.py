"""Real traces, damaged: a sentence with the place and exit 3, or a report that says what is missing."""
import concurrent.futures
import json
import os
import random
import re
import resource
import struct
import subprocess

import pytest

from conftest import BUILD, SANITIZER, TARE, VICTIMS, Bench, names_of, parse_events

SEED = int(os.environ.get("TARE_SEED", random.SystemRandom().randrange(1 << 32)))
CUTS = BUILD / "tests" / "tool" / "cuts"
HEADER = 16
BLOCK_HEADER = 64


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def blocks_of(data):
    """(offset, bytes, kind) of each block."""
    found, at = [], HEADER
    while at < len(data):
        magic, kind, _, payload = struct.unpack_from("<IHHI", data, at)
        assert magic == 0x4B4C4254
        found.append((at, BLOCK_HEADER + payload, kind))
        at += BLOCK_HEADER + payload
    return found


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("trace"))
    done = bench.run("kinds", "all", 200)
    assert len(bench.events(done.trace)) > 2000
    return done.trace.read_bytes()


@pytest.fixture(scope="module")
def plain(trace, tmp_path_factory):
    """The whole trace's events, to compare with."""
    return report_of(tmp_path_factory.mktemp("plain"), trace, "--events").stdout


def report_of(folder, data, *options, name="damaged.tare"):
    path = folder / name
    path.write_bytes(data)
    return subprocess.run([TARE, "report", *options, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", timeout=60, preexec_fn=bounded)


def bounded():
    """More address space than this, and the report fails for want of memory."""
    if SANITIZER == "none":
        resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))


def check_outcome(done):
    """Never a crash: a report, or exit 3 with one sentence that says where."""
    assert done.returncode in (0, 3), (done.returncode, done.stderr[-2000:])
    if done.returncode == 3:
        assert len(done.stderr.splitlines()) == 1 and re.search(r"byte \d", done.stderr), done.stderr
        assert done.stdout == ""
    assert "runtime error" not in done.stderr and "Sanitizer" not in done.stderr


def timeless(text):
    """Events without their times, which the last clock sync of a trace still refines."""
    return [(event.kind, event.name, {key: value for key, value in event.extras.items() if key != "dur_ns"})
            for event in parse_events(text)]


def says_what_is_missing(folder, data):
    report = json.loads(report_of(folder, data, "--json").stdout)
    run = report["run"]
    missing = [note for note in report["notes"] if re.search(r"byte|damage|unfinished|missing", note)]
    return bool(missing) and (run["damaged_blocks"] > 0 or not run["finished"] or bool(run["damaged_bytes"]))


def in_parallel(tmp_path, cases, check):
    """check(folder, case) for each, in folders of their own; what failed."""
    def job(number_and_case):
        number, case = number_and_case
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            check(folder, case)
            return None
        except AssertionError as failed:
            return case, str(failed)[:500]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return [failed for failed in pool.map(job, enumerate(cases)) if failed]


def test_cut_at_every_byte(bench):
    """In one process: what the command line shows of a cut is checked below for some."""
    done = bench.run("kinds", "all", 20)
    assert {6, 7, 8} <= {kind for _, _, kind in blocks_of(done.trace.read_bytes())}
    step = 1 if SANITIZER == "none" else 7
    swept = bench.call(CUTS, done.trace, step)
    cuts = -(-done.trace.stat().st_size // step)
    assert (swept.status, swept.out) == (0, f"{cuts} cuts, 0 broken\n"), swept.err[-2000:]


def test_cut_around_the_borders_of_blocks(tmp_path, trace, plain):
    whole = timeless(plain)
    borders = [at for at, _, _ in blocks_of(trace)][-6 if SANITIZER == "none" else -3:]
    cuts = sorted({border + near for border in borders for near in (-1, 0, 1, BLOCK_HEADER - 1, BLOCK_HEADER)}
                  | {len(trace) - 1})

    def check(folder, cut):
        done = report_of(folder, trace[:cut], "--events")
        check_outcome(done)
        assert done.returncode == 0
        seen = timeless(done.stdout)
        assert seen == whole[:len(seen)]
        assert says_what_is_missing(folder, trace[:cut]), cut

    assert in_parallel(tmp_path, cuts, check) == []


def test_cut_at_the_start(tmp_path, trace):
    def check(folder, cut):
        done = report_of(folder, trace[:cut])
        check_outcome(done)
        if cut < HEADER:
            assert done.returncode == 3 and f"byte {cut}" in done.stderr
    assert in_parallel(tmp_path, range(0, HEADER + BLOCK_HEADER + 20), check) == []


def test_flipped_bits(tmp_path, trace, plain):
    dice = random.Random(SEED)
    flips = [dice.randrange(8 * len(trace)) for _ in range(300 if SANITIZER == "none" else 60)]
    whole = set(plain.splitlines())

    def check(folder, bit):
        damaged = bytearray(trace)
        damaged[bit // 8] ^= 1 << bit % 8
        done = report_of(folder, damaged, "--events")
        check_outcome(done)
        if done.returncode == 0 and bit // 8 >= HEADER:
            assert says_what_is_missing(folder, damaged), f"bit {bit}: nobody noticed"
        # Names and times may be what was lost; a span that was not recorded must not appear.
        lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
        assert len(lines) <= len(whole)

    assert in_parallel(tmp_path, flips, check) == [], f"TARE_SEED={SEED}"


def test_a_lost_block_of_events_loses_only_itself(tmp_path, trace, plain):
    at, length, _ = next(block for block in blocks_of(trace) if block[2] == 6)
    damaged = bytearray(trace)
    damaged[at + BLOCK_HEADER + length // 3] ^= 0xFF
    done = report_of(tmp_path, damaged, "--events")
    check_outcome(done)
    assert f"byte {at}" in done.stdout
    kept = names_of(parse_events(done.stdout), "complete")
    assert kept == names_of(parse_events(plain), "complete")
    report = json.loads(report_of(tmp_path, damaged, "--json").stdout)
    assert report["run"]["damaged_blocks"] == 1 and report["run"]["finished"]
    assert any(f"byte {at}" in note.replace(",", "") for note in report["notes"]), report["notes"]


def test_blocks_of_garbage_in_the_middle(tmp_path, trace):
    dice = random.Random(SEED)
    at, _, _ = blocks_of(trace)[len(blocks_of(trace)) // 2]
    damaged = trace[:at] + dice.randbytes(5000) + trace[at:]
    check_outcome(report_of(tmp_path, damaged))
    assert says_what_is_missing(tmp_path, damaged)
    report = json.loads(report_of(tmp_path, damaged, "--json").stdout)
    assert report["run"]["finished"], "the end was found again"


def with_version(trace, major, minor):
    head = trace[:8] + struct.pack("<HH", major, minor)
    return head + struct.pack("<I", crc32c(head)) + trace[HEADER:]


def test_versions(tmp_path, trace, plain):
    assert with_version(trace, 1, 4) == trace
    done = report_of(tmp_path, with_version(trace, 2, 0))
    assert done.returncode == 3 and "version 2" in done.stderr and "byte 8" in done.stderr
    for minor in 0, 9:
        done = report_of(tmp_path, with_version(trace, 1, minor), "--events")
        assert done.returncode == 0 and done.stdout == plain


FOREIGN = {
    "empty": b"",
    "a PNG": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "a text": b"epoch,loss\n0,2.31\n1,0.18\n" * 50,
    "JSON": b'{"traceEvents": []}',
    "zeros": bytes(1 << 20),
    "ones": b"\xff" * (1 << 20),
    "an ELF": None,
    "random": random.Random(1).randbytes(1 << 20),
    "our magic and garbage": b"\x89TARE\r\n\x1a" + random.Random(2).randbytes(100000),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_foreign_files(tmp_path, what):
    data = (VICTIMS / "nest").read_bytes() if FOREIGN[what] is None else FOREIGN[what]
    for options in ((), ("--json",), ("--events",)):
        done = report_of(tmp_path, data, *options)
        check_outcome(done)
        assert done.returncode == 3, what
        assert "damaged.tare" in done.stderr


def test_no_such_file(tmp_path):
    done = subprocess.run([TARE, "report", tmp_path / "none.tare"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and "none.tare" in done.stderr and done.stdout == ""


def test_huge_garbage_needs_no_memory(tmp_path, trace):
    """Headers with right checksums that claim what is not there."""
    huge = bytearray(trace)
    for at, length, kind in blocks_of(trace):
        header = bytearray(huge[at:at + BLOCK_HEADER])
        struct.pack_into("<I", header, 12, 0xFFFFFFF0)  # stream
        struct.pack_into("<I", header, 16, 0xFFFFFFFF)  # count
        struct.pack_into("<I", header, 60, crc32c(bytes(header[:60])))
        huge[at:at + BLOCK_HEADER] = header
    garbage = trace + random.Random(3).randbytes(32 << 20) + trace
    for file in (huge, garbage):
        for options in ([], ["--json"], ["--events"]):
            check_outcome(report_of(tmp_path, file, *options))
