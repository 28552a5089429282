"""Runs a block of a seed document: its import changed to tare, its placeholders filled, what it prints caught."""
import ast
import contextlib
import ctypes
import gc
import importlib
import io
import linecache
import os
import pathlib
import re
import subprocess
import sys

import pytest

# What the documents import from, each by the name its own project gave it.
FOREIGN = {"cookbook.measure", "code_profiling_optimization_system", "src.utils.memory_monitor",
           "model_evaluation.pipeline"}
# What a reader of the document has imported once its first block has run.
IMPORTED = {
    "000": ("PerformanceProfiler",),
    "001": ("ProfilingConfig", "create_profiling_config", "CodeProfiler"),
    "003": ("ModelProfiler",),
    "004": ("PerformanceMonitor", "EpochPerformanceMonitor", "track_performance", "monitor_performance"),
}


class _ToTare(ast.NodeTransformer):
    """Changes import lines to tare, and drops definitions of what tare itself provides where a check says so."""

    def __init__(self, modules, dropped):
        self.modules, self.dropped, self.left = modules, dropped, set(dropped)

    def visit_ImportFrom(self, node):
        if node.module in self.modules:
            node.module = "tare"
        return node

    def visit_Import(self, node):
        for name in node.names:
            if name.name == "torch.profiler" and name.asname:
                name.name = "tare.profiler"
        return node

    def _definition(self, node):
        if node.name not in self.dropped:
            return node
        self.left.discard(node.name)
        return None

    visit_ClassDef = visit_FunctionDef = _definition


def give_back():
    """What earlier blocks left over in the heap goes back to the kernel: growth that a document measures must not
    find room there."""
    gc.collect()
    with contextlib.suppress(AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


class Done:
    """A block that has run: what it printed, and by item the names it left behind."""

    def __init__(self, names, out):
        self.names, self.out = names, out
        self.lines = out.splitlines()

    def __getitem__(self, name):
        return self.names[name]


class Snippet:
    """A block in a folder of its own, ready to be run by its check."""

    def __init__(self, block, folder, blocks):
        self.block, self.folder, self._blocks = block, pathlib.Path(folder), blocks
        self.text = block.text

    def other(self, heading, number=1):
        """The text of another block of the same document."""
        return self._blocks[self.block.document, heading, number].text

    def run(self, ours=(), also=(), prelude="", said=None, **names):
        """Runs a Python block. `ours` are the definitions in it that tare provides; `also` further modules whose
        import becomes tare's; `prelude` stands before it in the same file; `said` has a statement for each comment
        of the form "# ... what is left out ..."; `names` fill its placeholders."""
        tare = importlib.import_module("tare")
        change = _ToTare(FOREIGN | set(also), ours)
        tree = change.visit(ast.parse(self._filled(said or {})))
        assert not change.left, f"the block does not define {sorted(change.left)}"
        path = self.folder / "snippet.py"
        path.write_text(prelude + ast.unparse(ast.fix_missing_locations(tree)) + "\n", encoding="utf-8")
        linecache.checkcache(str(path))
        space = {name: getattr(tare, name) for name in (*IMPORTED.get(self.block.document, ()), *ours)}
        space.update(names, __name__="snippet", __file__=str(path))
        out = io.StringIO()
        give_back()
        with contextlib.redirect_stdout(out), self.inside():
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
        return Done(space, out.getvalue())

    def _filled(self, said):
        found = set()

        def fill(match):
            found.add(match.group(2))
            return match.group(1) + said.get(match.group(2), match.group(0).strip())
        text = re.sub(r"^([ ]*)# \.\.\. (.+?) \.\.\.$", fill, self.text, flags=re.M)
        assert found >= set(said), f"the block leaves out {sorted(found)}, not {sorted(set(said) - found)}"
        return text

    @contextlib.contextmanager
    def inside(self):
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            yield self.folder
        finally:
            os.chdir(before)

    def printed(self, function):
        """What a function prints, in the folder of the snippet."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), self.inside():
            function()
        return out.getvalue()

    def commands(self):
        """The command lines of a shell block, without its comments."""
        return [line.strip() for line in self.text.splitlines() if line.strip() and not line.startswith("#")]

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def python(self, *words, folder=None, status=0):
        """An interpreter like this one, with the package this one has; what it printed."""
        tare = importlib.import_module("tare")
        site = str(pathlib.Path(tare.__file__).resolve().parents[1])
        env = {key: value for key, value in os.environ.items() if not key.startswith("TARE_")}
        env["PYTHONPATH"] = os.pathsep.join([site, *filter(None, [env.get("PYTHONPATH")])])
        env["PYTHONIOENCODING"] = "utf-8"
        done = subprocess.run([sys.executable, *map(str, words)], cwd=str(folder or self.folder), env=env, text=True,
                              encoding="utf-8", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=300)
        assert done.returncode == status, (words, done.returncode, done.stdout[-2000:], done.stderr[-4000:])
        return done.stdout


def need(*modules):
    """Skips the check that asks where a module it cannot do without is not installed."""
    for name in modules:
        if name == "GPU":
            torch = pytest.importorskip("torch", reason="torch is not installed: this snippet was not run")
            if not torch.cuda.is_available():
                pytest.skip("torch sees no GPU: this snippet was not run (tools/gpu-check runs it on one)")
        else:
            pytest.importorskip(name, reason=f"{name} is not installed: this snippet was not run")
