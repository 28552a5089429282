# The start-up hook: `tare run` puts this folder first in PYTHONPATH, so that every interpreter below it comes by here
# once, then goes on to the user's own sitecustomize as if this one had never been. Any Python runs it, from 2.7 on:
# it must not fail, print or import much, and it takes itself out of everything it can be seen in. The package is loaded
# when the program first imports it, and finds the recording by itself.
import os
import sys


def _take_out(hook):
    """Off the path of this interpreter; PYTHONPATH keeps it, for the interpreters this one starts."""
    others = [entry for entry in sys.path if entry != hook]
    if len(others) == len(sys.path):  # not as it stands in the path
        others = [entry for entry in sys.path if os.path.abspath(entry or ".") != hook]
    sys.path[:] = others
    sys.path_importer_cache.pop(hook, None)
    return sys.modules.pop("sitecustomize", None)


def _find_core(package):
    """(path of the extension for this interpreter, None) or (None, why there is none).

    The interpreter's own package first, which the program would import; else the one that this hook belongs to,
    where it was made for the same interpreter. Another package of that name is left alone."""
    version = "%d.%d" % sys.version_info[:2]
    try:
        from _imp import extension_suffixes
        name = "_core" + extension_suffixes()[0]
    except ImportError:
        return None, "Python %s is too old for the tare package" % version
    exists = os.path.exists
    for entry in sys.path:
        folder = os.path.join(entry, "tare/")
        if not exists(folder):
            continue
        if exists(folder + name):
            return folder + name, None
        if exists(folder + "__init__.py") and not exists(folder + "_hook"):
            return None, "another package is named tare in this Python"
    own = package + "/" + name
    if exists(own):
        return own, None
    kind = " (free-threaded)" if "t-" in name.split(".")[1] else ""
    return None, "the tare package is not installed for Python %s%s" % (version, kind)


class _Finder(object):
    """Finds `tare` where it is installed for this interpreter's version, but not in its environment. Asked last."""

    def __init__(self, place):
        self.place = place

    def find_spec(self, name, path=None, target=None):
        if name != "tare":
            return None
        from _frozen_importlib_external import PathFinder
        return PathFinder.find_spec(name, [self.place])


class _TorchWatch(object):
    """Waits, first in the line of finders, for the program to import torch; then goes, and the package is told when
    torch is whole. Nothing is imported before, and nothing of it stays to be seen."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        from _frozen_importlib import _find_spec
        spec = _find_spec(name, path)
        loader = getattr(spec, "loader", None)
        if hasattr(loader, "__dict__") and hasattr(loader, "exec_module"):
            loader.exec_module = self.told(loader)
        return spec

    def told(self, loader):
        def exec_module(module):
            del loader.exec_module
            loader.exec_module(module)
            try:
                from tare import _torch
                _torch.attach(module)
            except Exception:
                if os.environ.get("TARE_VERBOSE"):
                    sys.stderr.write("tare: torch is not watched: %s: %s\n" % sys.exc_info()[:2])
        return exec_module


def _leave_word(session, sentence):
    """Why this process has not joined the recording, should it never do so; shown beside it in the report."""
    stat = os.open("/proc/self/stat", os.O_RDONLY)  # a file of Python's would look for encodings and buffers first
    started = os.read(stat, 4096).rsplit(b")", 1)[1].split()[19]  # tells it from a later pid of that number
    os.close(stat)
    path = "%s/word-%d-%s" % (session, os.getpid(), started.decode("ascii"))
    word = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(word, (sentence + "\n").encode("utf-8"))
    os.close(word)


def _greet(package, session):
    path, why = _find_core(package)
    if path:
        place = os.path.dirname(os.path.dirname(path))
        if place not in sys.path:
            sys.meta_path.append(_Finder(place))
        if os.environ.get("TARE_TORCH") != "0":
            sys.meta_path.insert(0, _TorchWatch())
        if os.environ.get("TARE_LINES"):
            from tare import lines
            lines.start_from_environment()
        why = "Python %d.%d.%d, and the program does not use tare itself" % sys.version_info[:3]
    elif os.environ.get("TARE_VERBOSE"):
        sys.stderr.write("tare: %s; it is measured from outside only\n" % why)
    _leave_word(session, why)


def _run():
    session = os.environ.get("TARE_SESSION")
    if not session or not os.path.isdir(session):
        return
    try:
        _greet(os.path.dirname(_hook), session)
    except Exception:  # whatever it was: the program runs as it would without us
        if os.environ.get("TARE_VERBOSE"):
            sys.stderr.write("tare: the start-up hook failed: %s: %s\n" % sys.exc_info()[:2])


_hook = os.path.dirname(os.path.abspath(__file__))
_self = _take_out(_hook)  # kept: Python 2 empties a module that nobody holds
_run()
import sitecustomize  # noqa: E402,F401  the user's; where there is none, site takes this ImportError for that
