"""Reading a file from elsewhere deletes nothing, writes nothing and runs nothing, whatever the file names."""
import hashlib
import os
import pathlib
import shutil
import struct

import pytest

import traces
from conftest import as_user
from e2e_conftest import TARE, VICTIMS

PAGE_FALLBACK = 2048  # the two paths are the last in the session page, 1024 bytes each


def tree(folder):
    """Everything in a folder: names, modes and contents."""
    return {str(path): (path.lstat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
            for path in sorted(pathlib.Path(folder).rglob("*"))}


@pytest.fixture
def documents(bench):
    folder = bench.folder / "Documents"
    (folder / "letters").mkdir(parents=True)
    (folder / "thesis.tex").write_text("years of work")
    (folder / "letters" / "one").write_text("dear")
    folder.chmod(0o700)
    return folder


def unfinished(bench, folder, session_id=None):
    """A trace without an end that says its session was in `folder`."""
    made = bench.run("ticker", bench.folder / "ledger", 1000, 20)
    data = made.trace.read_bytes()
    out = data[:traces.FILE_HEAD]
    for at, kind, payload in traces.blocks(data):
        if kind == traces.RUN:
            changes = {"f7": str(folder).encode()}
            if session_id:
                changes["f1"] = session_id
            out += traces.seal(kind, traces.with_fields(payload, **changes))
        elif kind != traces.END:
            out += data[at:at + traces.HEADER.size + len(payload)]
    path = bench.folder / "crafted.tare"
    path.write_bytes(out)
    return path


def real_page(bench):
    """The session page of a run, as bytes."""
    process = bench.start(TARE, "run", "-q", "-o", bench.folder / "page.tare", "--", VICTIMS / "rough", "sleep", 2000)
    session = pathlib.Path(process.stdout.readline().split()[1])
    page = bytearray((session / "session").read_bytes())
    process.terminate()
    process.communicate()
    return page


def with_paths(page, fallback, trace):
    page = bytearray(page)
    page[-2048:-1024] = str(fallback).encode().ljust(1024, b"\0")
    page[-1024:] = str(trace).encode().ljust(1024, b"\0")
    return bytes(page)


@pytest.mark.parametrize("how", ["named", "fallback", "both"])
def test_a_crafted_trace_deletes_nothing(bench, documents, how):
    page = real_page(bench)
    session_id = bytes(page[16:32])
    named = documents
    if how == "fallback":
        named = bench.folder / f"tare-{os.geteuid()}-abcdef"
        named.mkdir(mode=0o700)
    trace = unfinished(bench, named, session_id)
    (named / "session").write_bytes(with_paths(page, documents, trace))
    before = tree(documents)
    bench.tare("report", trace)
    bench.tare("report", named)
    bench.tare("clean")
    after = tree(documents)
    assert {name: what for name, what in after.items() if not name.endswith("/saved")} == before


def test_the_file_that_a_session_names_is_not_overwritten(bench, documents):
    """The page of a folder names a file of the user that is no trace of this session."""
    page = real_page(bench)
    folder = bench.folder / f"tare-{os.geteuid()}-abcdef"
    folder.mkdir(mode=0o700)
    for target in (documents / "thesis.tex", bench.run("ticker", bench.folder / "ledger", 1000, 20).trace):
        (folder / "session").write_bytes(with_paths(page, "", target))
        before = target.read_bytes()
        done = bench.tare("report", folder)
        assert done.status == 3 and done.err.startswith("tare report: "), done.err
        assert target.read_bytes() == before


def test_a_link_in_place_of_the_trace_or_the_folder_is_not_followed(bench, documents):
    page = real_page(bench)
    folder = bench.folder / f"tare-{os.geteuid()}-abcdef"
    folder.mkdir(mode=0o700)
    link = bench.folder / "link"
    link.symlink_to(documents / "thesis.tex")
    (folder / "session").write_bytes(with_paths(page, "", link))
    assert bench.tare("report", folder).status == 3
    to_folder = bench.folder / f"tare-{os.geteuid()}-linked"
    to_folder.symlink_to(folder)
    assert bench.tare("report", to_folder).status == 3
    assert (documents / "thesis.tex").read_text() == "years of work"


def test_root_reading_the_folder_of_another_user_changes_nothing(bench, documents, stranger, tmp_path_factory):
    """The stranger's session names root's files; neither reading the folder nor reading a trace touches them."""
    page = real_page(bench)
    theirs = pathlib.Path("/tmp") / f"tare-{stranger[0]}-abcdef"
    shutil.rmtree(theirs, ignore_errors=True)
    theirs.mkdir(mode=0o700)
    try:
        trace = unfinished(bench, theirs, bytes(page[16:32]))
        (theirs / "session").write_bytes(with_paths(page, documents, trace))
        for path in (theirs, theirs / "session"):
            os.chown(path, *stranger)
        before, trace_before = tree(documents), trace.read_bytes()
        done = bench.tare("report", theirs)
        assert done.status == 3 and "another user" in done.err
        done = bench.tare("report", trace)
        assert "another user" in done.err and done.status == 0
        assert tree(documents) == before and trace.read_bytes() == trace_before
        assert sorted(path.name for path in theirs.iterdir()) == ["session"]
    finally:
        shutil.rmtree(theirs)


def test_an_unprivileged_user_reads_a_foreign_trace_and_nothing_is_written(bench, stranger):
    made = bench.run("ticker", bench.folder / "ledger", 1000, 20)
    public = pathlib.Path("/tmp") / f"hostile-{os.getpid()}.tare"
    shutil.copy(made.trace, public)
    public.chmod(0o644)
    try:
        before = public.read_bytes()
        done = as_user(stranger, [TARE, "report", public], cwd="/")
        assert done.returncode == 0, done.stderr
        assert public.read_bytes() == before
    finally:
        public.unlink()


def test_a_session_folder_that_is_gone_has_its_sentence(bench):
    trace = unfinished(bench, f"/dev/shm/tare-{os.geteuid()}-gone12")
    done = bench.report(trace)
    assert "no longer exists" in done.out, done.out[-1500:]
    assert "may be saved by" not in done.out


@pytest.mark.parametrize("name", ["x; touch PWNED #", "x$(touch PWNED)", "x`id`", "x y"])
def test_a_hint_has_no_folder_that_a_shell_would_take_apart(bench, name):
    folder = bench.folder / name
    folder.mkdir()
    done = bench.report(unfinished(bench, folder))
    assert "`tare clean` may recover" in done.out and name not in done.out, done.out[-1500:]


@pytest.mark.parametrize("damage", [False, True], ids=["whole", "damaged"])
def test_a_hole_of_a_terabyte_is_skipped(bench, damage):
    """All reading is of the data: none of the hole, which would take hours."""
    trace = unfinished(bench, f"/dev/shm/tare-{os.geteuid()}-gone12")
    data = bytearray(trace.read_bytes())
    data[40] ^= damage
    trace.write_bytes(data)
    os.truncate(trace, 1 << 40)
    for words in (("report",), ("report", "--json")):
        done = bench.tare(*words, trace)
        assert done.status == 0 and "damaged" in done.out
    assert trace.stat().st_size == 1 << 40
