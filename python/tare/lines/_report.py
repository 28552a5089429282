"""`tare run --lines FUNC` in the target: printed at its end, and stored beside the trace for all its processes."""
import atexit
import fcntl
import json
import os
import sys
from typing import Any, Dict, List, Optional, Tuple

from .. import _core
from .._files import write_whole

_FIRST = "TARE_LINES_PID"  # the process that prints, known to its children


class _Report:
    def __init__(self, profile: Any) -> None:
        self.profile = profile
        self.trace = _core.output()
        self.done = False
        self.prints = _FIRST not in os.environ
        if self.prints:
            os.environ[_FIRST] = str(os.getpid())

    def in_child(self) -> None:
        """After a fork: the parent has counted what was before."""
        self.profile.clear()
        self.done = self.prints = False
        workers = sys.modules.get("multiprocessing.util")
        if workers is not None:  # these end without atexit, and drop what was registered before this
            workers.register_after_fork(self, lambda report: workers.Finalize(None, report.finish, exitpriority=-1))

    def finish(self) -> None:
        """Never raises: the program has ended normally, whatever happens here."""
        if self.done:
            return
        self.done = True
        try:
            if self.profile.running:
                self.profile.stop()
            lines = self.profile.stats()
            trace = _core.output() or self.trace
            if trace and (lines or self.prints):
                lines = _store(_path(trace), lines)
            if self.prints:
                sys.stdout.flush()
                lines.print(sys.stderr)
                sys.stderr.flush()
        except Exception as error:
            _say(f"the lines were not stored: {error}")


_report: Optional[_Report] = None


def _say(sentence: str) -> None:
    try:
        sys.stderr.write(f"tare: {sentence}\n")
    except Exception:
        pass


def start() -> Any:
    global _report
    from . import LineProfile
    names = [name for name in os.environ.get("TARE_LINES", "").split(",") if name.strip()]
    if _report is not None or not names:
        return _report.profile if _report is not None else None
    try:
        profile = LineProfile(*names).start()
    except Exception as error:
        _say(f"--lines: {error}")
        return None
    _report = _Report(profile)
    atexit.register(_report.finish)
    os.register_at_fork(after_in_child=_report.in_child)
    return profile


# ---- the file ------------------------------------------------------------------------------------------------

def _path(trace: str) -> str:
    return (trace[:-len(".tare")] if trace.endswith(".tare") else trace) + ".lines.json"


_Key = Tuple[str, str, int]


def _stored(path: str, run: str) -> Tuple[Dict[_Key, Dict[int, Tuple[int, float]]], int]:
    """The lines that other processes of this run have stored, and the number of these processes."""
    try:
        with open(path, encoding="utf-8", opener=_core.open_input) as file:
            found = json.load(file)
        if found["run"] != run:
            return {}, 0
        merged: Dict[_Key, Dict[int, Tuple[int, float]]] = {}
        for one in found["functions"]:
            merged[(one["file"], one["function"], one["first_line"])] = {
                line["line_number"]: (line["hits"], line["time_s"]) for line in one["lines"]}
        return merged, found["processes"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}, 0


def _store(path: str, lines: Any) -> Any:
    """Adds the lines to the file, one process at a time, and returns all processes' lines."""
    from . import _lines
    run = os.path.basename(os.environ.get("TARE_SESSION", "")) or str(os.getpid())
    folder = os.path.dirname(os.path.abspath(path))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            pass  # a filesystem without locks: processes that end at once may lose one another's lines
        merged, processes = _stored(path, run)
        for line in lines:
            one = merged.setdefault((line.file, line.function, line.first_line), {})
            hits, time_s = one.get(line.line_number, (0, 0.0))
            one[line.line_number] = (hits + line.hits, time_s + line.time_s)
        whole = _lines(merged, None)
        content = {"run": run, "processes": processes + 1, "functions": _functions(whole)}
        write_whole(path, json.dumps(content, indent=1) + "\n")
        return whole
    finally:
        os.close(lock)


def _functions(lines: Any) -> List[Dict[str, Any]]:
    return [{"file": file, "function": function, "first_line": first_line,
             "time_s": sum(line.time_s for line in own),
             "lines": [{name: value for name, value in line.as_dict().items() if name not in ("file", "function")}
                       for line in own]}
            for file, function, first_line, own in lines.functions()]
