"""The unwinder on aarch64, by a cross compiler and an emulator, with and without signed return addresses."""
import glob
import shutil
import subprocess

import pytest
from conftest import ROOT
from waiting import PATIENCE

COMPILER = "aarch64-linux-gnu-gcc"
BASE = ("arena", "array", "cpu", "error", "file", "index", "input", "intern", "text", "time", "utf8")


@pytest.mark.parametrize("options", ["-fomit-frame-pointer", "-mbranch-protection=standard", "-Os"])
def test_equals_backtrace(tmp_path, options):
    if not shutil.which(COMPILER) or not shutil.which("qemu-aarch64"):
        pytest.skip("no %s, or no qemu-aarch64" % COMPILER)
    sources = [ROOT / "tests" / "tool" / "unwind_aarch64.c", ROOT / "src" / "sample" / "elf_image.c",
               *glob.glob(str(ROOT / "src" / "sample" / "unwind*.c")),
               *(ROOT / "src" / "base" / (name + ".c") for name in BASE)]
    program = tmp_path / "program"
    subprocess.run([COMPILER, "-std=gnu11", "-O2", "-fasynchronous-unwind-tables", options, "-I", ROOT / "src", "-I",
                    ROOT / "include", *sources, "-o", program], check=True, timeout=PATIENCE)
    done = subprocess.run(["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", program], capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [name + " equal" for name in
                                        ("qsort", "calls", "alloca", "signal", "interrupted")]
