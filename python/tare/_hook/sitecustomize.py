# The start-up hook: `tare run` puts this folder first in PYTHONPATH, so that every interpreter below it runs this file
# once and then the user's own sitecustomize as if this one did not exist. Any Python runs it, from 2.7 on: it must not
# fail, print or import much, and it removes itself from everything in which it is visible. The package is loaded when
# the program first imports it, and finds the recording by itself.
import os
import sys


def _take_out(hook):
    """Removes it from the path of this interpreter; PYTHONPATH keeps it, for the interpreters this one starts."""
    others = [entry for entry in sys.path if entry != hook]
    if len(others) == len(sys.path):  # spelled differently in the path
        others = [entry for entry in sys.path if os.path.abspath(entry or ".") != hook]
    sys.path[:] = others
    sys.path_importer_cache.pop(hook, None)
    return sys.modules.pop("sitecustomize", None)


def _find_core(package):
    """(path of the extension for this interpreter, None) or (None, the reason it is unavailable).

    The interpreter's own package first, which the program would import; else the one that this hook belongs to,
    if it was built for the same interpreter. Another package of that name is left alone."""
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


_LIBRARIES = frozenset(("torch", "tensorflow", "jax", "numpy", "pandas", "sklearn", "transformers", "lightning"))
_SHORTEST = 1e-3  # seconds: shorter imports are not noted


class _ImportWatch(object):
    """The first finder: times the outermost imports of the main thread, and notifies the package when torch is fully
    imported. Inside an import it returns at once; nothing is imported before the program imports it."""

    def __init__(self, word, torch):
        from _thread import get_ident
        from time import monotonic
        self.word, self.torch, self.clock, self.ident = word, torch, monotonic, get_ident
        self.main, self.pid = get_ident(), os.getpid()
        self.depth = 0
        self.asks = False

    def find_spec(self, name, path=None, target=None):
        if self.asks or (self.depth and name not in _LIBRARIES):
            return None
        timed = self.ident() == self.main
        if not timed and name != "torch":
            return None
        from _frozen_importlib import _find_spec
        self.asks = True
        try:
            spec = _find_spec(name, path)
        finally:
            self.asks = False
        loader = getattr(spec, "loader", None)
        if hasattr(loader, "__dict__") and hasattr(loader, "exec_module") and not isinstance(loader, type):
            loader.exec_module = self.around(loader, name, timed)
        return spec

    def around(self, loader, name, timed):
        from _frozen_importlib import _find_spec

        def exec_module(module):
            del loader.exec_module
            inside, begin = self.depth, self.clock()
            self.depth += timed
            try:
                loader.exec_module(module)
            finally:
                self.depth -= timed
                end = self.clock()
                if timed and end - begin >= _SHORTEST:
                    self.note(begin, end, name, inside)
            if name == "torch":
                self.attach(module)
        if hasattr(exec_module.__code__, "replace"):
            # Named like a frame of the import system: tracebacks omit these, and warnings skip them.
            exec_module.__code__ = exec_module.__code__.replace(co_filename=_find_spec.__code__.co_filename)
        return exec_module

    def note(self, begin, end, name, inside):
        self.write("%s %d %d %s\n" % ("inside" if inside else "import", begin * 1e9, end * 1e9, name))

    def write(self, line):
        try:
            if os.getpid() == self.pid:  # not in what was forked from it
                _append(self.word, line, 0)
        except Exception:  # the session is over, or the disk is full
            pass

    def attach(self, module):
        if not self.torch:
            return
        self.torch = False
        begin, timed = self.clock(), self.ident() == self.main
        self.depth += timed
        try:
            from tare.torch import attach
            attach(module)
        except Exception:
            if os.environ.get("TARE_VERBOSE"):
                sys.stderr.write("tare: torch is not watched: %s: %s\n" % sys.exc_info()[:2])
        self.depth -= timed
        if timed:
            self.note(begin, self.clock(), "tare", self.depth)

    def ended(self):
        """The program has ended; what follows belongs to the interpreter."""
        self.write("exit %d\n" % (self.clock() * 1e9))


def _append(path, text, flags):
    word = os.open(path, os.O_WRONLY | os.O_APPEND | flags, 0o666)
    os.write(word, text.encode("utf-8"))
    os.close(word)


def _word_of(session):
    """The file in which this process reports its state."""
    stat = os.open("/proc/self/stat", os.O_RDONLY)  # Python's file objects would set up encodings and buffers first
    started = os.read(stat, 4096).rsplit(b")", 1)[1].split()[19]  # distinguishes it from a later process of this pid
    os.close(stat)
    return "%s/word-%d-%s" % (session, os.getpid(), started.decode("ascii"))


def _greet(package, session):
    """The first line states why this process has not joined the recording, in case it never does; the others state
    when its interpreter was ready and which imports took time."""
    path, why = _find_core(package)
    word = _word_of(session)
    if path:
        place = os.path.dirname(os.path.dirname(path))
        if place not in sys.path:
            sys.meta_path.append(_Finder(place))
        if os.environ.get("TARE_LINES"):
            from tare import lines
            lines.start_from_environment()
        why = "Python %d.%d.%d, and the program does not use tare itself" % sys.version_info[:3]
    elif os.environ.get("TARE_VERBOSE"):
        sys.stderr.write("tare: %s; it is measured from outside only\n" % why)
    try:
        from time import monotonic
    except ImportError:  # Python 2
        _append(word, why + "\n", os.O_CREAT | os.O_TRUNC)
        return
    _append(word, "%s\npython %d\n" % (why, monotonic() * 1e9), os.O_CREAT | os.O_TRUNC)
    there = "atexit" in sys.modules
    import atexit
    watch = _ImportWatch(word, bool(path) and os.environ.get("TARE_TORCH") != "0")
    atexit.register(watch.ended)  # before any other, so that it comes after all of them
    if not there:
        # The list of modules is the same as without the hook; before 3.10 it has to stay alive.
        watch.atexit = sys.modules.pop("atexit")
    sys.meta_path.insert(0, watch)


def _run():
    session = os.environ.get("TARE_SESSION")
    if not session or not os.path.isdir(session):
        return
    try:
        _greet(os.path.dirname(_hook), session)
    except Exception:  # any error: the program runs as it would without the hook
        if os.environ.get("TARE_VERBOSE"):
            sys.stderr.write("tare: the start-up hook failed: %s: %s\n" % sys.exc_info()[:2])


_hook = os.path.dirname(os.path.abspath(__file__))
_self = _take_out(_hook)  # kept: Python 2 clears a module without references
_run()
import sitecustomize  # noqa: E402,F401  the user's; where there is none, site takes this ImportError for that
