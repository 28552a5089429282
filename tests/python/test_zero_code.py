"""`tare run` and interpreters: the start-up hook comes, does its work, and leaves no trace of itself."""
import os
import shutil
import sys

import pytest
from conftest import SITE

STATE = """
    import os, sys
    print([entry for entry in sys.path if "_hook" in entry], "sitecustomize" in sys.modules, sys.flags.no_site)
"""


def names(rows):
    return sorted(row.name for row in rows)


def test_spans_of_a_script_join_the_trace(bench):
    done = bench.recorded("""
        import tare
        with tare.span("outer"):
            with tare.span("inner", samples=4):
                pass
        print("done")
    """)
    assert done.out == "done\n" and done.err == ""
    assert names(done.report.spans) == ["inner", "outer"]
    version = "Python %d.%d.%d script.py" % sys.version_info[:3]
    assert names(done.report.marks) == [version]
    assert [thread.name for thread in done.report.threads] == ["MainThread"]


def test_the_hook_cannot_be_seen(bench):
    done = bench.recorded(STATE)
    assert done.out == bench.python(STATE).out
    assert done.err == ""


def test_the_exit_status_is_the_programs(bench):
    done = bench.recorded("raise SystemExit(7)", status=7)
    assert done.report.run.exit_status == 7


def test_an_interpreter_that_does_not_use_tare_says_so(bench):
    done = bench.recorded("import time; time.sleep(0.3)")
    row = done.report.processes[0]
    assert not row.joined
    assert row.not_joined == "Python %d.%d.%d, and the program does not use tare itself" % sys.version_info[:3]


@pytest.mark.parametrize("error", ["", "raise ValueError('mine')", "raise ImportError('other', name='other')"])
def test_the_users_sitecustomize_runs_as_without(bench, error):
    own = bench.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.mine = 1\n" + error + "\n")
    code = """
        import sys
        print(sys.mine, "sitecustomize" in sys.modules)
        if "sitecustomize" in sys.modules:
            import sitecustomize
            print(sitecustomize.__file__)
    """
    plain = bench.python(code, env={"PYTHONPATH": str(own)})
    done = bench.recorded(code, env={"PYTHONPATH": str(own)})
    assert done.out == plain.out and done.out.startswith("1 ")
    assert done.err == plain.err


def test_pythonpath_of_the_user_stays_in_order(bench):
    code = """
        import os, sys
        print([entry for entry in sys.path if entry.endswith(("first", "second"))])
        print(os.environ["PYTHONPATH"].split(os.pathsep)[1:])
    """
    places = [str(bench.folder / name) for name in ("first", "second")]
    done = bench.recorded(code, env={"PYTHONPATH": os.pathsep.join(places)})
    assert done.out == f"{places}\n{places}\n"


def test_an_empty_pythonpath_does_not_become_the_current_folder(bench):
    done = bench.recorded("import os; print(os.environ['PYTHONPATH'].count(os.pathsep))", env={"PYTHONPATH": ""})
    assert done.out == "0\n"


@pytest.mark.parametrize("option", ["-S", "-I", "-E"])
def test_isolated_interpreters_are_left_alone(bench, option):
    code = "import sys; print('tare' in sys.modules, len(sys.argv))"
    done = bench.recorded(code, options=[option])
    assert done.out == bench.python(code, options=[option]).out
    assert done.err == ""


CHILD = "import tare\\nwith tare.span('child'): pass"


def test_children_started_by_subprocess_join(bench):
    done = bench.recorded(f"""
        import subprocess, sys, tare
        with tare.span("parent"):
            subprocess.run([sys.executable, "-c", "{CHILD}"], check=True)
    """)
    assert names(done.report.spans) == ["child", "parent"]
    assert sum(row.joined for row in done.report.processes) == 2


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(bench, method):
    done = bench.recorded("""
        import multiprocessing, sys
        import tare

        def work(n):
            with tare.span("work"):
                return n * n

        if __name__ == "__main__":
            context = multiprocessing.get_context(sys.argv[1])
            with tare.span("parent"):
                with context.Pool(2) as pool:
                    print(pool.map(work, range(20), chunksize=1))
                    pool.close()
                    pool.join()
    """, method)
    assert done.out == str([n * n for n in range(20)]) + "\n"
    rows = {row.name: row.calls for row in done.report.spans}
    assert rows == {"parent": 1, "work": 20}
    assert done.report.run.dropped_spans == 0


def other_interpreters():
    """(path, version) of the Pythons on this machine that are not this version's."""
    places = [os.path.expanduser("~/.pyenv/versions/*/bin/python"), "/usr/bin/python3", "/usr/local/bin/python3.*"]
    import glob
    import subprocess
    found = {}
    for path in sorted(path for place in places for path in glob.glob(place)):
        if path.endswith("config"):
            continue
        asked = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        version = asked.stdout.strip()
        if asked.returncode == 0 and version != "%d.%d" % sys.version_info[:2]:
            found.setdefault(version, path)
    return sorted(found.items())


@pytest.mark.parametrize("version,path", other_interpreters() or [("none", None)])
def test_an_interpreter_of_another_version(bench, version, path):
    if path is None:
        pytest.skip("there is one Python on this machine")
    code = """
        import sys, time
        time.sleep(0.3)
        sys.stdout.write("ran\\n")
    """
    done = bench.recorded(code, python=path)
    assert (done.out, done.err) == ("ran\n", "")
    why = done.report.processes[0].not_joined
    assert why in (f"the tare package is not installed for Python {version}",
                   f"Python {version} is too old for the tare package"), why
    told = bench.recorded(code, python=path, env={"TARE_VERBOSE": "1"})
    assert told.err == f"tare: {why}; it is measured from outside only\n"


def test_an_environment_without_the_package(bench):
    """Another venv of the same version: the package comes with the hook, and nothing else of its folder does."""
    import venv
    venv.EnvBuilder(with_pip=False).create(str(bench.folder / "bare"))
    done = bench.recorded("""
        import sys
        try:
            import pytest
        except ImportError:
            print("no pytest")
        import tare
        with tare.span("here"):
            pass
    """, python=bench.folder / "bare" / "bin" / "python")
    assert done.out == "no pytest\n" and done.err == ""
    assert names(done.report.spans) == ["here"]


def test_another_package_of_that_name_is_left_alone(bench):
    other = bench.folder / "other" / "tare"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("mine = True\n")
    done = bench.recorded("import tare, time; print(tare.mine); time.sleep(0.3)",
                          env={"PYTHONPATH": str(other.parent)})
    assert done.out == "True\n" and done.err == ""
    assert done.report.processes[0].not_joined == "another package is named tare in this Python"


def test_the_hook_can_be_named_and_switched_off(bench):
    code = "import os; print(os.environ.get('PYTHONPATH'))"
    assert bench.recorded(code, env={"TARE_PYTHON_HOOK": ""}).out == "None\n"
    assert bench.recorded(code, env={"TARE_PYTHON_HOOK": str(bench.folder)}).out == "None\n"  # no hook there
    import tare
    hook = os.path.join(os.path.dirname(tare.__file__), "_hook")
    copy = bench.folder / "package" / "tare"
    shutil.copytree(hook, copy / "_hook")
    done = bench.recorded(code, env={"TARE_PYTHON_HOOK": str(copy / "_hook")})
    assert done.out == f"{copy / '_hook'}\n"


def test_a_broken_session_folder_harms_nobody(bench):
    import tare
    hook = os.path.join(os.path.dirname(tare.__file__), "_hook")
    for session in ("/nonexistent", str(bench.folder), "/proc"):
        done = bench.python("print('ran')", env={"PYTHONPATH": hook, "TARE_SESSION": session})
        assert (done.out, done.err) == ("ran\n", "")


def test_a_script_without_tare_run_writes_its_own_trace(bench):
    done = bench.python("""
        import tare
        tare.start("own.tare")
        with tare.span("alone"):
            pass
        print(tare.output())
        tare.stop()
        print(tare.report("own.tare").spans[0].name)
    """)
    assert done.out.splitlines()[0].endswith("own.tare")
    assert done.out.splitlines()[1] == "alone"
    assert done.err == ""


def test_python_dash_m_is_the_command(bench):
    done = bench.call(sys.executable, "-m", "tare", "--version")
    assert done.out == bench.call(bench.command, "--version").out
    assert bench.call(sys.executable, "-m", "tare", "implausible", status=2).err


def test_site_is_where_it_should_be():
    import tare
    place = os.path.dirname(os.path.dirname(os.path.abspath(tare.__file__)))
    assert place == os.path.abspath(SITE) if SITE else "site-packages" in place


def test_a_line_of_tare_itself_is_never_the_programs_line():
    """Wherever the package lies: below `pip install --target`, or beside a build."""
    from tare import _core
    package = os.path.dirname(_core.__file__)
    for own in (package + "/torch/_threads.py", package + "/_wrap.py", "/opt/lib/tare/_hook/sitecustomize.py"):
        names = {"here": _core.torch_line_here}
        exec(compile("def asked():\n    return here()\n", own, "exec"), names)
        place, _, function = names["asked"]()
        assert (place, function) == (__file__, "test_a_line_of_tare_itself_is_never_the_programs_line")
    for other in ("/home/me/tare/train.py", "/home/me/tare/torch/train.py"):
        names = {"here": _core.torch_line_here}
        exec(compile("def asked():\n    return here()\n", other, "exec"), names)
        assert names["asked"]()[0] == other, "a folder called tare may be the program's own"
