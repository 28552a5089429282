# conftest: the package under test, and running scripts with it.
# TARE_PYTHON_SITE names the folder it was installed into; without it, the interpreter's own is taken. The command
# is TARE_BUILD's (build/ without it), else the one beside the package or on the PATH.
import os
import shutil
import subprocess
import sys

import pytest

SITE = os.environ.get("TARE_PYTHON_SITE")
if SITE:
    sys.path.insert(0, os.path.abspath(SITE))

try:
    import tare  # noqa: F401
except ImportError as error:
    raise pytest.UsageError(f"the package is not there: {error}. Install it (pip install .), or name the folder it "
                            "was installed into in TARE_PYTHON_SITE") from None

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(tare.__file__)))


def environment(**variables):
    """A script's environment: the same package, and none of our own settings."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("TARE_") or name in ("TARE_BUILD", "TARE_PYTHON_SITE")}
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, kept.get("PYTHONPATH")]))
    return {**kept, **variables}


@pytest.fixture
def run_script(tmp_path):
    """run_script(text, *arguments, before=[command], **variables): what became of it."""
    def run(text, *arguments, before=(), name="script.py", **variables):
        path = tmp_path / name
        path.write_text(text)
        return subprocess.run([*before, sys.executable, str(path), *arguments], cwd=tmp_path, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**variables),
                              timeout=120)
    return run


@pytest.fixture
def tare_command():
    build = os.environ.get("TARE_BUILD", os.path.join(os.path.dirname(__file__), "..", "..", "build"))
    for path in (os.path.join(build, "tare"), os.path.join(FOLDER, "bin", "tare"), shutil.which("tare")):
        if path and os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise FileNotFoundError("there is no tare command: build it, or name the build folder in TARE_BUILD")
