"""Nothing is lost without a sentence: damaged numbers, byte-order marks, full disks, folders that vanish, forks."""
import json
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

import traces
from e2e_conftest import BUILD, ROOT, SANITIZER, TARE, VICTIMS


@pytest.mark.parametrize("stream", [1 << 20, (1 << 20) + 1, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("option", ["--events", "--chrome", "--perfetto", "--tensorboard", "--csv"])
def test_a_wild_stream_number_costs_a_block(bench, stream, option):
    made = bench.run("ticker", bench.folder / "ledger", 1000, 20)
    data = bytearray(made.trace.read_bytes())
    at = [at for at, kind, _ in traces.blocks(bytes(data)) if kind == traces.EVENTS][0]
    data[at + 12:at + 16] = struct.pack("<I", stream)
    data[at + 60:at + 64] = struct.pack("<I", traces.crc32c(bytes(data[at:at + 60])))
    made.trace.write_bytes(data)
    words = [option] if option not in ("--tensorboard", "--csv") else [option, bench.folder / "out"]
    done = bench.report(made.trace, *words)
    assert "out of memory" not in done.err


BOM = b"\xef\xbb\xbf"


def test_a_byte_order_mark_is_skipped(bench):
    events = {"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}
    (bench.folder / "a.json").write_bytes(BOM + json.dumps(events).encode())
    done = bench.tare("import", "-o", "a.tare", "a.json")
    assert done.status == 0, done.err
    assert [span["name"] for span in bench.json(bench.folder / "a.tare")["spans"]] == ["a"]
    (bench.folder / "b.json").write_bytes(BOM + bench.report(bench.folder / "a.tare", "--json").out.encode())
    bench.tare("baseline", "save", "a.tare", "-o", "base.json")
    (bench.folder / "marked.json").write_bytes(BOM + (bench.folder / "base.json").read_bytes())
    done = bench.tare("compare", "marked.json", "a.tare")
    assert done.status == 0, done.err


def test_a_byte_order_mark_before_a_history(bench):
    bench.run("ticker", bench.folder / "ledger", 1000, 20, options=["-q"])
    (bench.folder / "h.jsonl").write_bytes(BOM + bench.tare("history", "export").out.encode())
    done = bench.tare("history", "import", "h.jsonl", env={"TARE_STORE": str(bench.folder / "second")})
    assert done.status == 0 and "1 run added" in done.err, done.err


def test_spans_that_could_not_be_written_are_in_the_report(bench):
    """A file system of 256 KiB: it fills up while the program runs."""
    small = bench.folder / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], capture_output=True).returncode:
        pytest.skip("cannot mount a small file system here")
    try:
        done = bench.tare("run", "-q", "--no-sampling", "-o", small / "t.tare", "--", VICTIMS / "flood", "pairs",
                          3000000)
        assert "could not be written" in done.err, done.err
        notes = bench.json(small / "t.tare")["notes"]
        assert any("spans could not be written" in note for note in notes), notes
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_session_folder_that_vanishes_has_its_sentence(bench):
    bench.tare("run", "-q", "-o", "t.tare", "--", "sh", "-c",
               f"rm -rf \"$TARE_SESSION\"; exec '{VICTIMS}/ticker' /dev/null 1000 50")
    notes = bench.json(bench.folder / "t.tare")["notes"]
    told = [note for note in notes if "was removed" in note]
    assert told == ["the session folder was removed during the run: processes that were not read yet, or started after "
                    "that, are missing"], notes
    assert not any("want of space" in note for note in notes), notes


FORKED = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tare.h"
static void spans(const char *name, int n)
{
    for (int i = 0; i < n; i++) {
        tare_begin_name(name);
        tare_end(NULL);
    }
}
int main(void)
{
    if (tare_start(NULL) != 0)
        return 9;
    spans("before", 10);
    pid_t child = fork();
    if (child == 0) {
        spans("child", 5);
        tare_stop();
        spans("too late", 5);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    spans("after", 20);
    return tare_stop() != 0;
}
"""


@pytest.mark.skipif(SANITIZER != "none" or not shutil.which("cc"), reason="needs a C compiler and a plain libtare")
def test_a_forked_child_stops_only_itself(bench):
    (bench.folder / "forked.c").write_text(FORKED)
    subprocess.run(["cc", "-o", "forked", "forked.c", f"-I{ROOT}/include", f"-L{BUILD}", "-ltare",
                    f"-Wl,-rpath,{BUILD}"],
                   cwd=bench.folder, check=True)
    done = bench.call("./forked", env={"TARE_HELPER": str(TARE)})
    assert done.status == 0, done.err
    trace = next(bench.folder.glob("*.tare"))
    names = [event.name for event in bench.events(trace) if event.kind == "begin"]
    assert names.count("after") == 20 and names.count("before") == 10
    assert names.count("child") == 5 and names.count("too late") == 0


def test_processes_of_another_user_are_told_of(bench, stranger):
    if not shutil.which("setpriv"):
        pytest.skip("there is no setpriv")
    for folder in [bench.folder, *bench.folder.parents]:
        if str(folder).startswith("/tmp/pytest"):
            folder.chmod(0o755)
    command = (f"exec setpriv --reuid {stranger[0]} --regid {stranger[1]} --clear-groups "
               f"'{VICTIMS}/ticker' /dev/null 1000 800")
    done = bench.tare("run", "-o", "t.tare", "--", "sh", "-c", f"{command} & {command} & wait")
    assert done.status == 0, done.err
    sentence = "processes ran as another user and could not record"
    (note,) = (note for note in bench.json(bench.folder / "t.tare")["notes"] if note.endswith(sentence))
    told = int(note.split()[0])
    assert told == 2 or (told > 2 and SANITIZER != "none")  # LeakSanitizer stops a process from another one
    assert note in " ".join(done.err.split()), done.err


@pytest.mark.parametrize("how", ["mount", "chroot"])
def test_processes_that_do_not_see_the_session_are_told_of(bench, how):
    """A container's own /dev/shm, a chroot: nothing that they record can arrive."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount and to change the root")
    if how == "mount":
        words = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /dev/shm && exec sleep 1"]
    else:
        root = bench.folder / "root"
        shutil.copytree("/lib64", root / "lib64", symlinks=False)
        shutil.copy("/bin/sleep", root / "sleep")
        library = pathlib.Path("/lib") / (os.uname().machine + "-linux-gnu") / "libc.so.6"
        (root / library.relative_to("/")).parent.mkdir(parents=True)
        shutil.copy(library, root / library.relative_to("/"))
        words = ["chroot", root, "/sleep", "1"]
    trace = bench.folder / "t.tare"
    done = bench.tare("run", "-q", "-o", trace, "--", *words)
    assert done.status == 0, done.err
    report = bench.json(trace)
    assert any("did not see the session folder" in note for note in report["notes"]), report["notes"]
    assert any("does not see the session folder" in (row["not_joined"] or "") for row in report["processes"])


def test_a_run_of_one_user_says_nothing_of_others(bench):
    bench.tare("run", "-q", "-o", "t.tare", "--", "sh", "-c", "sleep 0.5; true")
    assert not any("another user" in note for note in bench.json(bench.folder / "t.tare")["notes"])


def test_a_truncated_session_file_does_not_end_the_run(bench):
    done = bench.tare("run", "-q", "-o", "t.tare", "--", "sh", "-c",
                      'truncate -s 0 "$TARE_SESSION/session"; sleep 0.5; echo done; exit 7')
    assert (done.status, done.out) == (7, "done\n"), done.err
    assert any("session file" in note and "truncated" in note for note in bench.json(bench.folder / "t.tare")["notes"])


def test_a_truncated_ring_does_not_end_the_run(bench):
    done = bench.tare("run", "-q", "-o", "t.tare", "--", "sh", "-c",
                      f"'{VICTIMS}/ticker' '{bench.folder}/ledger' 1000 60000 & sleep 0.5; "
                      "truncate -s 0 \"$TARE_SESSION\"/*.ring; sleep 0.5; kill -9 $!; echo done; exit 7")
    assert done.status == 7 and "done" in done.out, done.err
    report = bench.json(bench.folder / "t.tare")
    rows, notes = report["processes"], " ".join(report["notes"])
    assert any("truncated" in (row["unreadable"] or "") for row in rows), rows
    assert "1 process's memory could not be read" in notes, notes
