"""What the Python tests share. They run on an installed package: in the interpreter's environment, or in the folder
that TARE_PYTHON_SITE names."""
import contextlib
import os
import subprocess
import sys
import textwrap

import pytest

SITE = os.environ.get("TARE_PYTHON_SITE")
os.environ["TARE_STORE"] = "off"  # sessions of these interpreters: never into the user's own history
if SITE:
    sys.path.insert(0, os.path.abspath(SITE))
try:
    import tare
except ImportError as error:
    pytest.exit(f"the package is not installed for this Python ({error}); tools/test python installs and tests it",
                returncode=3)

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from contradictions import check_contradictions  # noqa: E402
from waiting import PATIENCE  # noqa: E402
from tare import _command  # noqa: E402


def without_lock_warning(text):
    """A free-threaded Python says on loading the package that it takes its lock back; that is its own to say."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if "The global interpreter lock (GIL) has been enabled" not in line)


class Done:
    """A program that has ended."""

    def __init__(self, process, out, err):
        self.status, self.out, self.err = process.returncode, out, without_lock_warning(err)


class Bench:
    """A folder of its own, interpreters started in it, and `tare run` around them."""

    def __init__(self, folder):
        self.folder = folder
        self.command = _command.find()

    def env(self, changes=None, hooked=False):
        env = {key: value for key, value in os.environ.items()
               if not key.startswith("TARE_") and key not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
        env["TARE_STORE"] = str(self.folder / "history")  # never the user's own
        if SITE and not hooked:  # with the hook, it is the hook that has to find the package
            env["PYTHONPATH"] = os.path.abspath(SITE)
        env.update(changes or {})
        return {key: value for key, value in env.items() if value is not None}

    def call(self, *words, env=None, status=0, hooked=False, text_in=None):
        process = subprocess.Popen([str(word) for word in words], env=self.env(env, hooked), cwd=str(self.folder),
                                   stdin=subprocess.PIPE if text_in else subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = process.communicate(text_in, timeout=PATIENCE)
        except subprocess.TimeoutExpired as hangs:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # what it started may hold the pipes for ever
                process.communicate(timeout=5)
            raise hangs
        done = Done(process, out, err)
        check_contradictions(out, err)
        assert status is None or done.status == status, (words, done.status, out[-2000:], err[-4000:])
        return done

    def script(self, code, name="script.py"):
        path = self.folder / name
        path.write_text(textwrap.dedent(code), encoding="utf-8")
        return path

    def python(self, code, *words, options=(), **more):
        """A script in an interpreter of its own, not recorded."""
        return self.call(sys.executable, *options, self.script(code), *words, **more)

    def recorded(self, code, *words, options=(), python=sys.executable, **more):
        """A script under `tare run`; its report is `report`."""
        trace = self.folder / "trace.tare"
        done = self.call(self.command, "run", "-q", "-f", "-o", trace, "--", python, *options, self.script(code),
                         *words, hooked=True, **more)
        done.report = tare.report(trace)
        check_contradictions(*done.report.notes)
        return done


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(tare.__file__)))


def environment(**variables):
    """A script's environment: the same package, and none of our own settings."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("TARE_") or name == "TARE_PYTHON_SITE"}
    kept["TARE_STORE"] = "off"
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, kept.get("PYTHONPATH")]))
    return {**kept, **variables}


@pytest.fixture
def run_script(tmp_path):
    """run_script(text, *arguments, before=[command], **variables): what became of it."""
    def run(text, *arguments, before=(), name="script.py", **variables):
        path = tmp_path / name
        path.write_text(text)
        done = subprocess.run([*before, sys.executable, str(path), *arguments], cwd=tmp_path, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**variables),
                              timeout=120)
        done.stderr = without_lock_warning(done.stderr)
        return done
    return run


@pytest.fixture
def tare_command():
    return _command.find()
