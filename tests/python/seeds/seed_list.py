"""The list of all snippets in the documents' order: the check of each, and the capability it still waits for."""
import dataclasses
import importlib
from typing import Callable, Dict, Optional, Tuple

Key = Tuple[str, str, int]

# What later work brings, and names of the package by which one sees that it is there: a snippet must not go on
# waiting for what has come.
CAPABILITIES = {
    "TensorFlow": ("keras", "tensorflow", "Profile"),
}


@dataclasses.dataclass(frozen=True)
class Entry:
    """A snippet: its check, what it needs installed, and what it waits for. One that waits may still have a check,
    of the part that can be had today."""
    key: Key
    check: Optional[Callable]
    needs: Tuple[str, ...] = ()
    waits: Optional[str] = None
    nothing: bool = False  # neither code nor output: there is nothing to check

    @property
    def state(self) -> str:
        if self.nothing:
            return "nothing to run"
        if self.waits:
            return f"waits for {self.waits}"
        return "passes on a GPU" if "GPU" in self.needs else "passes"


ENTRIES: Dict[Key, Entry] = {}


def _enter(entry: Entry) -> None:
    assert entry.key not in ENTRIES, f"{entry.key} is listed twice"
    assert entry.waits is None or entry.waits in CAPABILITIES, entry.waits
    ENTRIES[entry.key] = entry


def check(document: str, heading: str, number: int = 1, *, needs: Tuple[str, ...] = (), waits: Optional[str] = None):
    """Enters a function that runs a snippet and asserts on what came of it."""
    def decorate(function: Callable) -> Callable:
        _enter(Entry((document, heading, number), function, tuple(needs), waits))
        return function
    return decorate


def waits(document: str, heading: str, capability: str, number: int = 1) -> None:
    """Enters a snippet that cannot run before a capability is there."""
    _enter(Entry((document, heading, number), None, (), capability))


def nothing(document: str, heading: str, number: int = 1) -> None:
    """Enters a block that is neither code nor output."""
    _enter(Entry((document, heading, number), None, nothing=True))


def load() -> Dict[Key, Entry]:
    """All entries, in the documents' order."""
    for document in ("000", "001", "002", "003", "004"):
        importlib.import_module("checks_" + document)
    return ENTRIES
