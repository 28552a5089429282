"""Libraries and programs of other people, in the current folder or in places that others can write, are not taken."""
import os
import pwd
import shutil
import subprocess

import pytest

needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
ASK = "from tare import _core\nprint(repr(_core.gpu_memory(0)), getattr(_core.gpu_memory(0), 'reason', ''))\n"


@pytest.fixture
def library(bench):
    """A folder of ours with a driver's library that leaves evidence when it is loaded."""
    folder = bench.folder / "lib"
    folder.mkdir()
    bench.evidence = bench.folder / "evidence"
    source = bench.folder / "evil.c"
    source.write_text('#include <stdio.h>\n__attribute__((constructor)) static void ran(void) '
                      '{ FILE *f = fopen("%s", "a"); if (f) { fputs("ran", f); fclose(f); } }\n' % bench.evidence)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(source)], check=True)
    return folder / "libnvidia-ml.so.1"


@needs_cc
def test_a_library_of_ones_own_is_loaded(bench, library):
    done = bench.python(ASK, env={"LD_LIBRARY_PATH": str(library.parent)})
    assert bench.evidence.exists(), (done.out, done.err)  # the trap works


@needs_cc
@pytest.mark.parametrize("how", ["world writable", "a stranger's", "in the current folder", "below the current folder"])
def test_a_library_of_others_is_not_loaded(bench, library, how):
    env, words = {"LD_LIBRARY_PATH": str(library.parent)}, ""
    if how == "world writable":
        library.parent.chmod(0o777)
        words = "is writable by others"
    elif how == "a stranger's":
        if os.geteuid() != 0:
            pytest.skip("needs root to give a file away")
        os.chown(library, pwd.getpwnam("nobody").pw_uid, -1)
        words = "belongs to another user"
    elif how == "in the current folder":
        library.rename(bench.folder / library.name)
        env["LD_LIBRARY_PATH"], words = "/nonexistent:", "in the current directory is not loaded"
    else:
        env["LD_LIBRARY_PATH"], words = "lib", "in the current directory is not loaded"
    done = bench.python(ASK, env=env)
    assert not bench.evidence.exists() and words in done.out, (done.out, done.err)


def test_a_pipe_named_as_the_library_is_not_waited_for(bench):
    os.mkfifo(bench.folder / "nvml.so")
    done = bench.python(ASK, env={"TARE_NVML": str(bench.folder / "nvml.so")})
    assert "is a pipe, not a library" in done.out, (done.out, done.err)


@pytest.mark.parametrize("path", ["", ".", "bin"])
def test_programs_of_the_current_folder_are_not_run(bench, path):
    evidence = bench.folder / "evidence"
    (bench.folder / "bin").mkdir()
    for folder in (bench.folder, bench.folder / "bin"):
        for name in ("git", "tare"):
            (folder / name).write_text(f"#!/bin/sh\necho ran >> {evidence}\n")
            (folder / name).chmod(0o755)
    done = bench.python("""
        import os
        from tare import _command
        from tare.seeds.model._figures import machine
        print(machine()["revision"])
        access = os.access
        os.access = lambda path, mode: access(path, mode) and "/../" not in path and not path.endswith("bin/tare")
        try:
            print(_command.find())
        except FileNotFoundError as error:
            print(error)
        """, env={"PATH": path + os.pathsep + os.environ["PATH"]})
    found = done.out.splitlines()[1]
    assert not evidence.exists() and (os.path.isabs(found) or "not installed" in found), (done.out, done.err)
