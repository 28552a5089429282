# peers: what the Python benchmarks compare with: an empty context manager in C, a tracker that asks psutil.
# One process. Must not know tare.
"""Peers of bench/python_*.py, for the interpreter that runs them."""
import contextlib
import dataclasses
import importlib.util
import os
import shlex
import subprocess
import sysconfig
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def empty_context(folder):
    """The type of the empty context manager, built for this interpreter; None: it cannot be."""
    path = os.path.join(folder, "empty_context" + sysconfig.get_config_var("EXT_SUFFIX"))
    command = [*shlex.split(os.environ.get("CC", "cc")), "-O2", "-fPIC", "-shared",
               "-I" + sysconfig.get_path("include"), os.path.join(HERE, "empty_context.c"), "-o", path]
    try:
        subprocess.run(command, check=True, stderr=subprocess.PIPE)
    except (OSError, subprocess.CalledProcessError):
        return None
    spec = importlib.util.spec_from_file_location("empty_context", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Empty


@dataclasses.dataclass
class Tracked:
    operation: str
    duration_seconds: float
    cpu_start_mb: float
    cpu_end_mb: float
    cpu_delta_mb: float


def psutil_tracker(keep_process=False):
    """track(name), as monitors of training scripts do it: seconds and resident memory before and after, of a Process
    object made for each reading (or one that is kept), in a list. None without psutil."""
    try:
        import psutil
    except ImportError:
        return None
    process, blocks = psutil.Process(), []

    def memory_mb():
        return (process if keep_process else psutil.Process(os.getpid())).memory_info().rss / 1024 / 1024

    @contextlib.contextmanager
    def track(name):
        before = memory_mb()
        from_s = time.perf_counter()
        try:
            yield
        finally:
            took, after = time.perf_counter() - from_s, memory_mb()
            blocks.append(Tracked(name, took, before, after, after - before))
            del blocks[:-100]
    return track
