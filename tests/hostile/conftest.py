"""Hostile tests share what the end-to-end tests have: running `tare`, reading what it wrote."""
import importlib.util
import os
import pathlib
import pwd
import subprocess
import sys

import pytest

_PATH = pathlib.Path(__file__).resolve().parents[1] / "e2e" / "conftest.py"
_spec = importlib.util.spec_from_file_location("e2e_conftest", _PATH)
e2e = importlib.util.module_from_spec(_spec)
sys.modules["e2e_conftest"] = e2e
_spec.loader.exec_module(e2e)

no_sessions_left = e2e.no_sessions_left
bench = e2e.bench


@pytest.fixture
def stranger():
    """Another user of this machine, who owns nothing of ours: (uid, gid)."""
    if os.geteuid() != 0:
        pytest.skip("needs root to act as another user")
    try:
        other = pwd.getpwnam("nobody")
    except KeyError:
        pytest.skip("there is no user `nobody`")
    return other.pw_uid, other.pw_gid


def as_user(user, command, **options):
    uid, gid = user
    return subprocess.run([str(word) for word in command], user=uid, group=gid, extra_groups=[], capture_output=True,
                          text=True, errors="replace", timeout=120, **options)
