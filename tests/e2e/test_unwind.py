"""Native stacks of real libraries without frame pointers, against backtrace() of the C library at the same moment."""
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT, SANITIZER
from waiting import PATIENCE

CHECK = BUILD / "tests" / "tool" / "unwind_check.so"
VENV = ROOT / "build" / "python" / "venv" / "bin" / "python"

START = """
import ctypes, sys, time
check = ctypes.CDLL(sys.argv[1])
def run(seconds, work):
    work()
    assert check.check_start(500)
    end = time.process_time() + seconds
    while time.process_time() < end:
        work()
    check.check_report(2)
"""
PROGRAMS = {
    "python": START + """
import json, re, zlib, hashlib
def work():
    text = json.dumps([{"a": i, "b": str(i)} for i in range(300)])
    json.loads(text), re.findall(r"[0-9]+", text), zlib.compress(text.encode()), sorted(text)
    hashlib.sha256(text.encode()).digest()
run(0.7, work)
""",
    # Not with LAPACK: OpenBLAS has frames of more than 64 KiB there.
    "numpy": START + """
import numpy
a = numpy.random.default_rng(0).random((160, 160))
def work():
    a @ a, numpy.sort(a), numpy.fft.fft(a), a.sum(), numpy.exp(a)
run(0.7, work)
""",
    "torch": START + """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 8))
optimizer = torch.optim.Adam(model.parameters())
x, y = torch.randn(32, 64), torch.randn(32, 8)
def work():
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
run(1.5, work)
""",
}


@pytest.mark.skipif(SANITIZER != "none", reason="the library would need the sanitizer in the interpreter")
@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_backtrace(name):
    python = VENV if VENV.exists() else sys.executable
    if name != "python" and subprocess.run([python, "-c", "import " + name], capture_output=True).returncode:
        pytest.skip("no " + name)
    done = subprocess.run([python, "-c", PROGRAMS[name], CHECK], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    found = {key: int(value) for key, value in (line.split() for line in done.stdout.splitlines())}
    print(found)
    assert found["stacks"] > 50
    assert found["wrong"] == 0, done.stderr
    assert found["whole"] <= found["equal"] + found["longer"] # where both end at code without tables, it is not whole
    assert found["whole"] >= found["equal"] * 0.9
    # backtrace() ends at code without tables; where that has frame pointers, Tare goes on.
    assert found["longer"] <= found["stacks"] / 20, done.stderr
    # What is below the stack pointer is not copied (the kernel does not either), nor more than 64 KiB.
    assert found["short"] <= found["stacks"] / 10, done.stderr
