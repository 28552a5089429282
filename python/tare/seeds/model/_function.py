"""Any function as a model: only what is observable from outside is measured."""
import functools
from typing import Any, Optional

from ..._core import Missing
from ._load import Refused, Runner


class FunctionRunner(Runner):
    """A function of one input, or of none.

        FunctionRunner(lambda text: tokenizer(text), None, None)
    """
    kind = "function"

    def __init__(self, function: Any, device: Optional[str], precision: Optional[str]) -> None:
        if precision is not None:
            raise Refused("a function has no precision of its own to change: change what it calls")
        if device not in (None, "cpu"):
            raise Refused("a function runs where it runs: device is for models")
        super().__init__(getattr(function, "__name__", type(function).__name__), "cpu", None)
        self.function = function

    def take(self, data: Any) -> Any:
        return data

    def generated_input(self, batch: int) -> Any:
        return None

    def call(self, inputs: Any) -> Any:
        if inputs is None:
            return self.function
        return functools.partial(self.function, inputs)

    def facts(self) -> Any:
        none = Missing("a function does not report it")
        return {"parameters": none, "trainable_parameters": none, "parameter_bytes": none, "size_bytes": none}
