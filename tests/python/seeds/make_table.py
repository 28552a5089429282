"""Runs every snippet and writes docs/SEEDS.md of what came of it; the exit status is that of the tests."""
import os
import pathlib
import sys

import pytest

if __name__ == "__main__":
    os.environ["TARE_GOLDEN"] = "write"
    sys.exit(pytest.main(["-q", str(pathlib.Path(__file__).with_name("test_seeds.py")), *sys.argv[1:]]))
