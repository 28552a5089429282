"""The statistics against SciPy's, on samples drawn at random: same tests, same intervals, same labels.

SciPy lives in an environment of its own (TARE_SCIPY names its interpreter; else build/scipy/bin/python)."""
import json
import os
import pathlib
import subprocess

import pytest

from conftest import BUILD, PATIENCE, ROOT

SCIPY = os.environ.get("TARE_SCIPY", str(ROOT / "build" / "scipy" / "bin" / "python"))
SCRIPT = pathlib.Path(__file__).with_name("stat_reference.py")


def test_against_scipy():
    if not os.path.exists(SCIPY) or subprocess.run([SCIPY, "-c", "import scipy"], capture_output=True).returncode:
        pytest.skip(f"there is no environment with SciPy ({SCIPY})")
    done = subprocess.run([SCIPY, SCRIPT, BUILD / "tests" / "tool" / "stat"], capture_output=True, text=True,
                          timeout=5 * PATIENCE)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads(done.stdout)
    assert len(rows) > 80
    assert [row for row in rows if not row[1]] == []
