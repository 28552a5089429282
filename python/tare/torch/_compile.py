"""torch.compile: compilations as spans, separate from recompilations, and as facts, which the findings use: a span with
the same name may be the program's own."""
import sys
import time

from .. import _core

_MODULE = "torch._dynamo.callback"


def _name(arguments):
    """A compile id ends in how often that frame was compiled before: 0/0 is the first time, 0/1 a recompilation."""
    again = str(getattr(arguments, "compile_id", "")).rpartition("/")[2].partition("_")[0]
    name = "torch.recompile" if again.isdigit() and int(again) > 0 else "torch.compile"
    # The backward graph of a frame is compiled when it first runs: the same compilation, with separate time.
    trigger = getattr(getattr(arguments, "callback_trigger", None), "name", "DYNAMO")
    return {"DYNAMO": name, "LAZY_BACKWARD": name + " backward"}.get(trigger, "torch." + trigger.lower())


def _watch(module):
    handler = module.callback_handler
    open_now = []

    def begin(arguments=None):
        name = _name(arguments)
        span = _core.span(name)
        open_now.append((span, name, str(getattr(arguments, "compile_id", "")), time.perf_counter()))
        span.__enter__()

    def end(arguments=None):
        if open_now:
            span, name, which, since = open_now.pop()
            span.__exit__(None, None, None)
            _core.fact(name.replace(" ", "."), time.perf_counter() - since, text=which)

    handler.register_start_callback(begin)
    handler.register_end_callback(end)


def _loaded(words, named, raised):
    """Its source was run, or failed. Another version of torch: compilations are not distinguished."""
    module = words[0]
    del module.__spec__.loader.exec_module
    if not raised:
        _watch(module)


class _Finder:
    """Waits for torch._dynamo, which few programs import and which is slow to import."""

    def find_spec(self, name, path=None, target=None):
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        from importlib.machinery import PathFinder
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            loader = spec.loader
            loader.exec_module = _core.TorchAround(loader.exec_module, "reported", None, _loaded)
        return spec


def attach(torch):
    if _MODULE in sys.modules:
        _watch(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Finder())
