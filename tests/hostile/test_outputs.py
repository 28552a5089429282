"""Every file that Tare writes: new, whole, its owner's only, and never through a name that somebody else prepared."""
import json
import os
import pathlib
import shutil
import stat
import subprocess

import pytest

from e2e_conftest import SANITIZER, TARE, VICTIMS


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.fixture
def trace(bench):
    return bench.run("ticker", bench.folder / "ledger", 1000, 20).trace


# A name for the output, and the command that writes it.
WRITERS = {
    "html": lambda out, trace: ["report", "--html", "-o", out, trace],
    "json": lambda out, trace: ["report", "--json", "-o", out, trace],
    "text": lambda out, trace: ["report", "-o", out, trace],
    "events": lambda out, trace: ["report", "--events", "-o", out, trace],
    "chrome": lambda out, trace: ["report", "--chrome", "-o", out, trace],
    "perfetto": lambda out, trace: ["report", "--perfetto", "-o", out, trace],
    "compare": lambda out, trace: ["compare", "-o", out, trace, trace],
    "junit": lambda out, trace: ["check", "--baseline", trace, "--junit", out, trace],
    "markdown": lambda out, trace: ["check", "--baseline", trace, "--markdown", out, trace],
    "baseline": lambda out, trace: ["baseline", "save", trace, "-o", out],
    "history": lambda out, trace: ["history", "export", "-o", out],
    "run": lambda out, trace: ["run", "-q", "-f", "-o", out, "--", VICTIMS / "ticker", "/dev/null", "1000", "5"],
    "run html": lambda out, trace: ["run", "-q", "-o", "other.tare", "--html", out, "--", VICTIMS / "ticker",
                                    "/dev/null", "1000", "5"],
}


@pytest.mark.parametrize("what", WRITERS)
def test_modes_links_and_what_was_there(bench, trace, what):
    out = bench.folder / "out"
    old = os.umask(0o022)
    try:
        done = bench.tare(*WRITERS[what](out, trace))
        assert out.is_file(), done.err
        assert mode(out) == 0o600, oct(mode(out))
        # A file that is there, with another mode: nothing of it stays, and whoever has it open keeps the old one.
        out.unlink()
        out.write_text("old")
        out.chmod(0o666)
        with open(out) as held:
            done = bench.tare(*WRITERS[what](out, trace))
            assert mode(out) == 0o600 and held.read() == "old", done.err
        # A link is replaced; what it points to is not written to.
        precious = bench.folder / "precious"
        precious.write_text("mine")
        out.unlink()
        out.symlink_to(precious)
        bench.tare(*WRITERS[what](out, trace))
        assert precious.read_text() == "mine" and not out.is_symlink() and mode(out) == 0o600
        left = [path.name for path in bench.folder.iterdir() if path.name.startswith("out.")]
        assert left == []
    finally:
        os.umask(old)


@pytest.mark.parametrize("option", ["--csv", "--tensorboard"])
def test_files_in_folders(bench, trace, option):
    folder = bench.folder / "tables"
    bench.report(trace, option, folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files and all(mode(path) == 0o600 for path in files), {path.name: oct(mode(path)) for path in files}


def test_imported_traces(bench):
    (bench.folder / "a.json").write_text(json.dumps({"traceEvents": [
        {"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}))
    bench.tare("import", "-o", "a.tare", "a.json")
    assert mode(bench.folder / "a.tare") == 0o600


def test_readable_is_for_all_of_it(bench):
    old = os.umask(0o022)
    try:
        bench.tare("run", "-q", "--readable", "-o", "r.tare", "--html", "r.html", "--", VICTIMS / "ticker", "/dev/null",
                   1000, 5)
    finally:
        os.umask(old)
    assert mode(bench.folder / "r.tare") == mode(bench.folder / "r.html") == 0o644


def test_a_name_that_was_prepared_for_the_rotated_trace_is_not_used(bench):
    """--max-size rewrites the trace: through a file with a random name, not NAME.part."""
    precious = bench.folder / "precious"
    precious.write_text("mine")
    (bench.folder / "r.tare.part").symlink_to(precious)
    done = bench.tare("run", "-q", "--max-size", "64KiB", "-o", "r.tare", "--", VICTIMS / "ticker", "/dev/null", 0, 300)
    assert done.status == 0 and precious.read_text() == "mine"
    assert bench.json(bench.folder / "r.tare")["run"]["rotated_spans"] > 0
    assert sorted(path.name for path in bench.folder.glob("r.tare*")) == ["r.tare", "r.tare.part"]


def test_standard_output_by_its_name(bench, trace):
    with open(bench.folder / "there", "w") as there:
        process = bench.start(TARE, "report", "--json", "-o", "/dev/stdout", trace, stdout=there)
        assert process.wait(60) == 0, process.stderr.read()
    assert json.loads((bench.folder / "there").read_text())["run"]["finished"]
    assert os.path.islink("/dev/stdout")


def test_shared_memory_is_a_folder_as_any(bench, trace):
    """Files below /dev/shm are replaced as files elsewhere: /dev/shm belongs to everybody."""
    import tempfile
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="hostile-") as folder:
        out, precious = pathlib.Path(folder) / "out", bench.folder / "precious"
        precious.write_text("mine")
        out.symlink_to(precious)
        bench.tare("report", "--json", "-o", out, trace)
        assert precious.read_text() == "mine" and not out.is_symlink() and mode(out) == 0o600
        out.write_text("x" * 1000000)
        out.chmod(0o666)
        with open(out) as held:
            bench.tare("report", "--json", "-o", out, trace)
            assert held.read(1) == "x"
        assert mode(out) == 0o600 and json.loads(out.read_text())["run"]["finished"]
        assert os.listdir(folder) == ["out"]


@pytest.mark.parametrize("name", ["/dev/fd/1", "/proc/self/fd/1", "/dev/stdout"])
def test_a_descriptor_is_written_where_it_stands(bench, trace, name):
    with open(bench.folder / "there", "w") as there:
        there.write("before\n")
        there.flush()
        process = bench.start(TARE, "report", "--json", "-o", name, trace, stdout=there)
        assert process.wait(60) == 0, process.stderr.read()
    before, after = (bench.folder / "there").read_text().split("\n", 1)
    assert before == "before" and json.loads(after)["run"]["finished"]


def test_a_pipe_of_another_user_is_not_written_to(bench, trace, stranger):
    pipe = bench.folder / "pipe"
    os.mkfifo(pipe)
    os.chown(pipe, *stranger)
    done = bench.tare("report", "--json", "-o", pipe, trace)
    assert done.status != 0 and "another user" in done.err


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_link_of_another_user_in_a_public_folder_is_not_followed(bench, trace, stranger, slash):
    """Also where fs.protected_symlinks is off."""
    public, precious, link = bench.folder / "public", bench.folder / "precious", bench.folder / "public" / "tables"
    public.mkdir()
    public.chmod(0o1777)
    precious.mkdir()
    link.symlink_to(precious)
    os.lchown(link, *stranger)
    done = bench.tare("report", "--csv", f"{link}{slash}", trace)
    assert done.status != 0 and not list(precious.iterdir()), done.err
    os.lchown(link, os.geteuid(), os.getegid())
    assert bench.tare("report", "--csv", f"{link}{slash}", trace).status == 0 and list(precious.iterdir())


# ---- a folder that somebody replaces by a link meanwhile ----

SWAP = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void swap(const char *after, const char *path)
{
    const char *when = getenv("SWAP_AFTER"), *name = strrchr(path, '/');
    if (!when || strcmp(when, after) != 0 || strcmp(name ? name + 1 : path, "plugins") != 0)
        return;
    rename("tb/plugins", "tb/aside");
    if (symlink(getenv("SWAP_TO"), "tb/plugins") != 0)
        _exit(99);
}

int mkdir(const char *path, mode_t mode)
{
    int (*real)(const char *, mode_t) = dlsym(RTLD_NEXT, "mkdir");
    int got = real(path, mode);
    swap("mkdir", path);
    return got;
}

int mkdirat(int in, const char *path, mode_t mode)
{
    int (*real)(int, const char *, mode_t) = dlsym(RTLD_NEXT, "mkdirat");
    int got = real(in, path, mode);
    swap("mkdir", path);
    return got;
}

int openat(int in, const char *path, int flags, ...)
{
    int (*real)(int, const char *, int, mode_t) = dlsym(RTLD_NEXT, "openat");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    int got = real(in, path, flags, mode);
    swap("openat", path);
    return got;
}
"""


@pytest.mark.parametrize("after", ["mkdir", "openat"])
@pytest.mark.skipif(SANITIZER != "none" or not shutil.which("cc"), reason="interposes; needs a C compiler")
def test_a_folder_that_becomes_a_link_meanwhile(bench, trace, after):
    (bench.folder / "swap.c").write_text(SWAP)
    subprocess.run(["cc", "-shared", "-fPIC", "-D_FILE_OFFSET_BITS=64", "-o", "swap.so", "swap.c"], cwd=bench.folder,
                   check=True)
    outside = bench.folder / "outside"
    outside.mkdir()
    done = bench.tare("report", "--tensorboard", "tb", trace,
                      env={"LD_PRELOAD": str(bench.folder / "swap.so"), "SWAP_AFTER": after, "SWAP_TO": str(outside)})
    assert (bench.folder / "tb" / "plugins").is_symlink(), "the folder was replaced"
    assert not list(outside.rglob("*")), (done.status, done.err)
    if after == "mkdir":
        assert done.status == 1 and "is a symbolic link; links are not followed" in done.err, (done.status, done.err)
    else:  # what was opened is written to, wherever it is now
        assert done.status == 0 and [path for path in (bench.folder / "tb" / "aside").rglob("*") if path.is_file()]


@pytest.mark.parametrize("option", ["--csv", "--tensorboard"])
def test_what_is_no_file_in_a_folder_is_replaced(bench, trace, option):
    """A FIFO by the name of a table is not waited for."""
    folder = bench.folder / "tables"
    bench.report(trace, option, folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        path.unlink()
        os.mkfifo(path)
    done = bench.tare("report", option, folder, trace, timeout=30)
    assert done.status == 0 and files and all(path.is_file() for path in files), (done.status, done.err)
