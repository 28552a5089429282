"""What the tests of blocks share: memory that is really there, and programs of their own."""
import mmap
import os
import subprocess
import sys

import tare

MB = 1024 * 1024
# A sanitizer keeps what is freed for a while: resident memory then says nothing of leaks.
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")


def touch(size):
    """Memory that is really there, given back to the system when it is dropped."""
    data = mmap.mmap(-1, size)  # an allocator might keep what is dropped
    for at in range(0, size, 4096):
        data[at] = 1
    return data


def run(code):
    """A program of its own with this package."""
    folder = os.path.dirname(os.path.dirname(tare.__file__))
    env = {**os.environ, "PYTHONPATH": folder}
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout
