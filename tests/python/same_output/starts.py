"""How a program is started."""
import sys

from ._table import add

add("python -c", "", words=("PYTHON", "-c", "import sys; print(sys.argv, sys.flags, __name__, sys.path[0])"),
    expect="'-c'")
add("python -m", "print(__name__, __package__, __file__)", more={"folder/__init__.py": "", "folder/__main__.py": """
    import sys
    print(__name__, __package__, sys.argv[1:])
"""}, words=("PYTHON", "-m", "folder", "one", "two"), expect="__main__ folder ['one', 'two']")
add("script from stdin", "", words=("PYTHON", "-"), text_in="import sys\nprint(__name__, sys.argv)\n1/0\n",
    expect="ZeroDivisionError", status=1)
add("zipapp", """
    import subprocess, sys, zipapp, os
    os.mkdir("app")
    open("app/__main__.py", "w").write("import sys; print(__name__, sys.argv[1:]); raise SystemExit(4)")
    zipapp.create_archive("app", "app.pyz")
    code = subprocess.call([sys.executable, "app.pyz", "x"])
    os.remove("app.pyz")
    sys.exit(code)
""", expect="__main__ ['x']", status=4)
for _option in ("-I", "-S", "-E", "-s", *(["-P"] if sys.version_info >= (3, 11) else []), "-O", "-u", "-B", "-q",
                "-bb"):
    add("python " + _option, """
        import os, sys
        print(sys.flags)
        ours = os.environ.get("PYTHONPATH", "").split(":") if sys.flags.no_site else []  # the hook has not run
        print([path for path in sys.path if path not in ours], sorted(sys.modules))
        print(sys.argv, __debug__)
    """, options=(_option,), expect="sys.flags")
add("-W error", """
    import warnings
    warnings.warn("becomes an error")
""", options=("-W", "error"), expect="UserWarning: becomes an error", status=1)
add("-X dev", """
    import warnings, sys
    print(sys.warnoptions, sys.flags.dev_mode)
    open("script.py")
    warnings.warn("old", DeprecationWarning)
""", options=("-X", "dev"), expect="ResourceWarning")
add("-X utf8=0 in C", "import sys; print(sys.stdout.encoding, sys.getfilesystemencoding(), ascii('é'))",
    options=("-X", "utf8=0"), env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}, expect="ascii")
add("-X tracemalloc", """
    import tracemalloc
    kept = [bytes(1000) for _ in range(100)]
    snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)])
    print([(trace.traceback[0].lineno, trace.size, trace.count) for trace in snapshot.statistics("lineno")
           if trace.size > 50000], tracemalloc.get_traceback_limit())
""", options=("-X", "tracemalloc=5"), expect="[(3, ")
add("warnings as errors", """
    import warnings
    warnings.simplefilter("error")
    print([one[:3] for one in warnings.filters[:1]])
    def old():
        warnings.warn("old", DeprecationWarning)
    old()
""", expect="DeprecationWarning: old", status=1)
add("warnings once a line", """
    import warnings
    for _ in range(3):
        warnings.warn("each line once")
""", expect="each line once")
add("closed streams", """
    import os, sys
    sys.stdout.close()
    os.close(0)
    sys.stderr.write("still here\\n")
""", expect="still here")
add("stdin is read", "import sys; print(len(sys.stdin.read()), sys.stdin.isatty())", text_in="four",
    expect="4 False")
add("descriptors", """
    import os, resource
    print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:3], os.open("script.py", os.O_RDONLY))
    print(resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0o22))
""", expect="[0, 1, 2]")

for _name, _code, _expect, _status in (
        ("raises", "def inner():\n    raise ValueError('at import')\ninner()\n", "ValueError: at import", 1),
        ("imports nothing", "import time\ntime.sleep(0.01)\nimport no_such_module\n", "ModuleNotFoundError", 1),
        ("has bad syntax", "x = = 2\n", "SyntaxError", 1),
        ("exits", "import sys\nsys.exit(5)\n", "", 5),
        ("warns", "import warnings\nwarnings.warn('old module', DeprecationWarning, stacklevel=2)\n", "old module", 0),
        ("is interrupted", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(10**9): pass\n",
         "KeyboardInterrupt", 130)):
    add("a module that " + _name, """
        import package.part
        print("imported")
    """, more={"package/__init__.py": "", "package/part.py": _code}, expect=_expect, status=_status)
