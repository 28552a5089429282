"""The truth suite: figures that Tare shows against values that come from elsewhere. It runs on the installed package,
with the fixtures of the Python tests."""
import importlib.util
import json
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import truth as rows  # noqa: E402

_spec = importlib.util.spec_from_file_location("tare_python_conftest", HERE.parent / "python" / "conftest.py")
_python = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_python)
run_script, tare_command = _python.run_script, _python.tare_command


class Bench(_python.Bench):
    """As of the Python tests; reports are plain JSON here, as any reader sees them."""

    def measured(self, code, *words, run=(), report=(), python=sys.executable, **more):
        """A script under `tare run` with the options `run`; the JSON report of it is `json`, the file is `trace`."""
        trace = self.folder / "trace.tare"
        done = self.call(self.command, "run", "-q", "-f", *run, "-o", trace, "--", python, self.script(code), *words,
                         hooked=True, **more)
        done.trace = trace
        done.json = self.report(trace, *report)
        return done

    def report(self, trace, *options):
        return json.loads(self.call(self.command, "report", "--json", *options, trace).out)


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)



_truths = {}


def _truth_of(module):
    name = pathlib.Path(module.__file__).stem
    if name not in _truths:
        _truths[name] = rows.Truth(name, getattr(module, "FIGURES", []))
    return _truths[name]


@pytest.fixture
def truth(request):
    """Checks figures against their truths: truth.check(path, shown, true)."""
    yield _truth_of(request.module)


class EveryFigure(pytest.Item):
    """Comes behind the tests of a file: each row of its FIGURES was checked."""

    def __init__(self, *, module, **more):
        super().__init__(**more)
        self.module = module

    def runtest(self):
        truth = _truth_of(self.module)
        truth.save()
        assert not truth.unchecked(), "listed in FIGURES and never checked: " + ", ".join(truth.unchecked())

    def reportinfo(self):
        return self.path, None, self.name


def pytest_collection_modifyitems(config, items):
    """Only where whole files run: a single test checks its own figures only."""
    if config.getoption("keyword") or config.getoption("markexpr") or config.getoption("lf") \
            or any("::" in str(word) for word in config.args):
        return
    last = {}
    for item in items:
        module = getattr(item, "module", None)
        if module is not None and getattr(module, "FIGURES", None):
            last[module] = item
    for module, item in last.items():
        items.insert(items.index(item) + 1, EveryFigure.from_parent(item.parent, name="every_figure", module=module))
