"""Optimizer steps by torch's own global hooks, and the number of optimizers."""
from .. import _core


def _count(words, named, raised):
    if not raised:
        _core.torch_optimizer_made(words[0])


def _closure_reported(args, kwargs):
    """The arguments of an optimizer's step, its closure in one of ours; and whether it has one."""
    if len(args) > 1 and callable(args[1]):
        return (args[0], _core.TorchAround(args[1], "closure"), *args[2:]), kwargs, True
    if callable(kwargs.get("closure")):
        return args, {**kwargs, "closure": _core.TorchAround(kwargs["closure"], "closure")}, True
    return args, kwargs, False


def _hooks(is_compiling, begin, end):
    """Python around the calls into C, so that torch.compile can trace through them and finds no effect."""
    def before_step(optimizer, args, kwargs):
        if is_compiling():
            return None
        args, kwargs, closes = _closure_reported(args, kwargs)
        begin(optimizer, closes)
        return (args, kwargs) if closes else None

    def after_step(optimizer, args, kwargs):
        if not is_compiling():
            end(optimizer)
    return before_step, after_step


def attach(torch):
    from torch.optim import optimizer
    before, after = _hooks(torch.compiler.is_dynamo_compiling, _core.torch_optimizer_begin, _core.torch_optimizer_end)
    optimizer.register_optimizer_step_pre_hook(before)
    optimizer.register_optimizer_step_post_hook(after)
    base = optimizer.Optimizer
    base.__init__ = _core.TorchAround(base.__init__, "reported", None, _count)
    scaler = torch.amp.GradScaler
    scaler.step = _core.TorchAround(scaler.step, "scaler")
