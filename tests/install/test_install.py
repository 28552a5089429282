"""`make install` gives what a C programmer needs: the header, both libraries, tare.pc, the man pages."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("TARE_BUILD", str(ROOT / "build"))
PROGRAM = """
#include <stdio.h>
#include <tare.h>
int main(void)
{
    { TARE_SPAN("work"); puts("ran"); }
    return 0;
}
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    stage = tmp_path_factory.mktemp("stage")
    run("make", "install", "BUILD=" + BUILD, "PREFIX=/usr/local", f"DESTDIR={stage}", cwd=ROOT)
    return stage / "usr" / "local"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "prog.c"
    path.write_text(PROGRAM)
    return path


def pkg_config(prefix, *arguments):
    """As after a plain install: the staging folder stands for the root of the file system."""
    env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig"),
           "PKG_CONFIG_SYSROOT_DIR": str(prefix.parents[1]), "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1",
           "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}
    return run("pkg-config", *arguments, "tare", env=env).split()


def test_every_promised_file_is_there(prefix):
    promised = ["bin/tare", "include/tare.h", "lib/libtare.a", "lib/libtare.so", "lib/libtare.so.0",
                "lib/pkgconfig/tare.pc", "share/man/man1/tare.1", "share/man/man1/tare-run.1",
                "share/man/man1/tare-report.1", "share/man/man3/tare.h.3"]
    assert [path for path in promised if not (prefix / path).exists()] == []
    assert len(list((prefix / "lib").glob("libtare-engine-*.so"))) == 1
    assert sorted(path.name for path in (prefix / "include").iterdir()) == ["tare.h"]


def test_the_installed_command_runs(prefix):
    assert "run" in run(prefix / "bin" / "tare", "--help")


def test_shared_library_by_name(prefix, source, tmp_path):
    program = tmp_path / "prog"
    run("cc", "-I", prefix / "include", source, "-L", prefix / "lib", "-ltare", "-o", program)
    assert "libtare.so.0" in run("readelf", "-d", program)
    assert run(program, env={"LD_LIBRARY_PATH": str(prefix / "lib")}) == "ran\n"


def test_static_library(prefix, source, tmp_path):
    program = tmp_path / "prog"
    run("cc", "-I", prefix / "include", source, prefix / "lib" / "libtare.a", "-o", program)
    assert "libtare" not in run("readelf", "-d", program)
    assert run(program) == "ran\n"


def test_pkg_config(prefix, source, tmp_path):
    program = tmp_path / "prog"
    run("cc", *pkg_config(prefix, "--cflags"), source, *pkg_config(prefix, "--libs"), "-o", program)
    assert run(program, env={"LD_LIBRARY_PATH": str(prefix / "lib")}) == "ran\n"
