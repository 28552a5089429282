"""Floating-point operations of a block, counted by torch as its operators run; and the parameters that took part."""
import sys
import threading
from typing import Any, Dict, Tuple, Union

from ._core import Missing


def running_task() -> Any:
    """The asyncio task that runs now; None: none does."""
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio.current_task() if asyncio is not None else None
    except (RuntimeError, AttributeError):
        return None


def known(flops: Any) -> Any:
    """What was counted; Missing where nothing was: 0 is no count."""
    if flops or isinstance(flops, Missing):
        return flops
    return Missing(getattr(flops, "reason", "") or "no operator ran whose operations are counted (products, convolutions, "
                                                   "attention, recurrent layers)")


class Counting:
    """Counts from start() to stop(), on this thread.

        counting = Counting()
        counting.start()
        model(batch)
        flops, parameters = counting.stop()
    """

    def __init__(self) -> None:
        self.trouble = ""
        self.mode: Any = None
        self.hook: Any = None
        self.parameters: Dict[int, int] = {}
        self.thread = threading.get_ident()

    def start(self) -> None:
        """Begins, or notes why it cannot."""
        torch = sys.modules.get("torch")
        if torch is None:
            self.trouble = "torch was not loaded when the block began"
        elif running_task() is not None:
            self.trouble = "torch counts by thread, and asyncio's tasks take turns on one"
        else:
            try:
                from torch.nn.modules.module import register_module_forward_pre_hook
                from ._flops_formulas import counter
                mode = counter(torch)
            except ImportError:
                self.trouble = "this torch has no operation counter (torch.utils.flop_counter, since 2.1)"
                return
            self.mode = mode
            self.hook = register_module_forward_pre_hook(self._see)
            self.mode.__enter__()

    def _see(self, module: Any, _: Any) -> None:
        if threading.get_ident() == self.thread:
            for parameter in module.parameters(recurse=False):
                self.parameters[id(parameter)] = parameter.numel()

    def stop(self) -> Tuple[Union[int, Missing], Union[int, Missing]]:
        """(operations, parameters of the modules that were called)."""
        if self.mode is None:
            missing = Missing(self.trouble)
            return missing, missing
        self.mode.__exit__(None, None, None)
        self.hook.remove()
        count = sum(self.parameters.values())
        return (known(self.mode.flops()),
                count if count else Missing("no torch module with parameters was called in the block"))
