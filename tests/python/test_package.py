"""The package as it is installed: what is in it, its types and words, reports, notebooks."""
import ast
import inspect
import os
import runpy
import sys

import pytest
import tare

PACKAGE = os.path.dirname(os.path.abspath(tare.__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCS = runpy.run_path(os.path.join(ROOT, "tools", "python-docs"))


def public():
    return DOCS["public"](tare)


def test_what_is_installed():
    for name in ("py.typed", "_core.pyi", "libtare.so", "_hook/sitecustomize.py", "__main__.py"):
        assert os.path.exists(os.path.join(PACKAGE, name)), name
    assert os.path.exists(os.path.join(PACKAGE, f"libtare-engine-{tare.__version__}.so"))
    assert not os.path.exists(os.path.join(PACKAGE, "libtare.a"))
    for source in os.listdir(os.path.join(ROOT, "python", "tare")):
        if source.endswith((".py", ".pyi", ".typed")):
            assert os.path.exists(os.path.join(PACKAGE, source)), f"{source} is not in python/meson.build"


def test_the_command_is_beside_it(bench):
    assert bench.call(bench.command, "--version").out.split()[-1] == tare.__version__


def test_recording_spans_imports_nothing_else(bench):
    """A program pays for what it uses: `typing` and its like are 15 ms of CPU time at every start."""
    done = bench.python("""
        import sys
        before = set(sys.modules)
        import tare
        with tare.span("x"):
            pass
        span = tare.span("y")
        tare.begin(span)
        tare.end(span)
        print(*sorted(set(sys.modules) - before))
    """)
    assert done.out.split() == ["tare", "tare._core"]


def test_every_public_name_says_what_it_does_with_an_example():
    texts = {name: DOCS["text_of"](thing) for name, thing in public().items() if callable(thing)}
    assert [name for name, text in texts.items() if not text] == []
    # What another call makes, and what it warns of, has its example there.
    bare = {name for name, text in texts.items() if "```python" not in text and "made by" not in text}
    assert {name for name in bare if not (inspect.isclass(public()[name])
                                          and issubclass(public()[name], Warning))} == set()


def stub_names(path):
    tree = ast.parse(open(path, encoding="utf-8").read())
    named = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    numbers = {node.target.id: node for node in tree.body if isinstance(node, ast.AnnAssign)}
    return {**numbers, **named}


def test_the_stubs_match_the_extension():
    from tare import _core
    stubs = stub_names(os.path.join(PACKAGE, "_core.pyi"))
    there = {name for name in vars(_core) if not name.startswith("_")}
    assert {name for name in stubs if not name.startswith("_")} == there
    for name, node in stubs.items():
        thing = getattr(_core, name)
        signature = getattr(thing, "__text_signature__", None)
        if isinstance(node, ast.FunctionDef) and signature:
            said = list(inspect.signature(thing).parameters)
            typed = [arg.arg for arg in node.args.args + node.args.kwonlyargs]
            typed += [arg.arg for arg in (node.args.vararg, node.args.kwarg) if arg]
            assert said == typed, name


def test_the_reference_is_up_to_date():
    """docs/PYTHON.md is made from the docstrings by tools/python-docs."""
    written = open(os.path.join(ROOT, "docs", "PYTHON.md"), encoding="utf-8").read()
    assert written == DOCS["page"](), "run tools/python-docs with an interpreter that has the package"


def test_the_types_of_a_report_are_those_of_the_schema():
    from tare import _engine
    source = open(os.path.join(ROOT, "python", "tare", "_report.py"), encoding="utf-8").read()
    assert source == DOCS["with_tables"](source), "run tools/python-docs with an interpreter that has the package"
    assert tare.Report.__annotations__.keys() == {"path", *_engine.TABLES, *_engine.SINGLES}


# ---- reports -----------------------------------------------------------------------------------------

@pytest.fixture
def trace(bench):
    bench.recorded("""
        import tare, time
        for n in range(4):
            tare.step_begin(n)
            with tare.span("forward <b>", samples=8):
                time.sleep(0.06)
            tare.step_end()
    """)
    return bench.folder / "trace.tare"


def test_report_tables(trace):
    report = tare.report(trace)
    forward = next(row for row in report.spans if row.name == "forward <b>")
    assert forward.calls == 4 and forward["calls"] == 4 and forward.total_ns >= 240_000_000
    assert report.steps[0].count == 4
    assert report.run.exit_status == 0 and report.usage.cpu_seconds > 0
    assert {row.metric for row in report.metrics} >= {"memory.rss"}
    assert all(found.title and found.severity for found in report.findings)
    assert "calls=4" in repr(forward) and "trace.tare" in repr(report)
    assert "forward <b>" in str(report)


def test_what_was_not_measured_is_missing_with_its_reason(bench):
    done = bench.python("""
        import tare
        tare.start("own.tare")
        with tare.span("a"): pass
        tare.stop()
        usage = tare.report("own.tare").usage
        print(type(usage.cpu_seconds).__name__, usage.cpu_seconds > 0, f"{usage.cpu_seconds:.2f}",
              bool(usage.gpu_busy_mean.reason))
    """, env={"TARE_NO_SAMPLING": "1"})
    assert done.out == "Missing False n/a True\n"


def test_report_as_html(trace, bench):
    report = tare.report(str(trace))
    page = report._repr_html_()
    assert "forward &lt;b&gt;" in page and "<b>forward" not in page and "<script" not in page
    path = report.html(bench.folder / "page.html")
    assert open(path, encoding="utf-8").read().lstrip().lower().startswith("<!doctype html>")
    with pytest.raises(FileNotFoundError, match="nowhere/page.html"):
        report.html(bench.folder / "nowhere" / "page.html")


def test_reports_of_what_is_no_trace(bench):
    with pytest.raises(FileNotFoundError):
        tare.report(bench.folder / "none.tare")
    other = bench.folder / "other.tare"
    other.write_text("not a trace, but long enough to look at for a reader that takes anything")
    with pytest.raises(ValueError, match="other.tare"):
        tare.report(other)
    with pytest.raises(TypeError):
        tare.report(3)


def test_report_to_pandas(trace):
    pytest.importorskip("pandas")
    frame = tare.report(trace).to_pandas("spans")
    assert list(frame[frame["name"] == "forward <b>"]["calls"]) == [4]
    with pytest.raises(ValueError, match="there is no table"):
        tare.report(trace).to_pandas("implausible")


def test_pandas_missing_gets_a_sentence(trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        tare.report(trace).to_pandas()


# ---- notebooks ---------------------------------------------------------------------------------------

NOTEBOOK = """
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "tare")
    report = shell.run_cell_magic("tare", {line!r}, {cell!r})
    print(type(report).__name__, [row.name for row in report.spans] if report else None, shell.user_ns.get("x"))
    import tare, os
    print(tare.recording(), "forward" in report._repr_html_() if report else None)
    {more}
"""


def test_the_cell_magic(bench):
    pytest.importorskip("IPython")
    cell = "import tare\nx = 0\nfor _ in range(3):\n    with tare.span('forward'):\n        x += 1\n"
    more = "report.html('page.html'); print(os.path.exists('page.html'))"
    done = bench.python(NOTEBOOK.format(line="", cell=cell, more=more), env={"IPYTHONDIR": str(bench.folder)})
    assert done.out.splitlines() == ["Report ['cell', 'forward'] 3", "False True", "True"]


def test_the_cell_magic_keeps_a_trace_where_asked(bench):
    pytest.importorskip("IPython")
    done = bench.python(NOTEBOOK.format(line="training -o mine.tare", cell="x = 1", more="print(report.path)"),
                        env={"IPYTHONDIR": str(bench.folder)})
    assert done.out.splitlines()[0] == "Report ['training'] 1"
    assert (bench.folder / "mine.tare").exists()


def test_a_cell_that_raises_still_has_its_report(bench):
    pytest.importorskip("IPython")
    done = bench.python(NOTEBOOK.format(line="", cell="x = 2\nraise KeyError('mine')", more="pass"),
                        env={"IPYTHONDIR": str(bench.folder)})
    assert "KeyError" in done.out and "Report ['cell'] 2" in done.out


def test_a_cell_within_a_recording_is_a_span_of_it(bench):
    pytest.importorskip("IPython")
    done = bench.recorded(NOTEBOOK.format(line="mine", cell="x = 3", more="pass"),
                          env={"IPYTHONDIR": str(bench.folder)})
    assert "already recording" in done.out and "NoneType None 3" in done.out
    assert "mine" in {row.name for row in done.report.spans}


@pytest.mark.parametrize("line", ["-o", "--nonsense", "a b"])
def test_a_wrong_line_gets_the_usage(line):
    with pytest.raises(ValueError, match="usage: %%tare"):
        tare.integrations.notebook.record_cell(None, line, "x = 1")
