"""Notebooks: `%load_ext tare`, then `%%tare` above a cell records it and shows the findings."""
import os
from typing import Any, Optional

_USAGE = "usage: %%tare [NAME] [-o FILE.tare]"


def _read(line: str) -> "tuple[str, Optional[str]]":
    """(the span's name, where the trace is kept) of the magic's own line."""
    import shlex
    words, name, output = shlex.split(line), "cell", None
    while words:
        word = words.pop(0)
        if word in ("-o", "--output"):
            if not words:
                raise ValueError(f"{word} takes a file; {_USAGE}")
            output = words.pop(0)
        elif word.startswith("-") or name != "cell":
            raise ValueError(f"what is {word}? {_USAGE}")
        else:
            name = word
    return name, output


def _run(shell: Any, cell: str, name: str) -> None:
    from .. import span
    with span(name):
        shell.run_cell(cell, store_history=False)  # shows a value or a traceback like any cell


def record_cell(shell: Any, line: str, cell: str) -> Any:
    """Runs the cell in a separate recording and returns its report; within another recording, as a span of that one.

        %%tare forward -o forward.tare
        output = model(batch)
    """
    import tempfile

    from .. import _core, recording, report, start, stop
    name, output = _read(line)
    if recording():
        _run(shell, cell, name)
        print(f"tare: already recording; the cell is the span {name!r} of that trace")
        return None
    folder = tempfile.TemporaryDirectory(prefix="tare-cell-") if output is None else None
    path = os.path.join(folder.name, name.replace("/", "_") + ".tare") if folder else output
    start(path)
    try:
        path = _core.output() or path  # never overwrites an older trace: a number is added to its name
        _run(shell, cell, name)
    finally:
        stop()
    found = report(path)
    found._kept = folder
    return found


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext tare`: adds the cell magic `%%tare`.

        %load_ext tare
    """
    def magic(line: str, cell: str) -> Any:
        return record_cell(shell, line, cell)

    magic.__doc__ = "Records the cell and shows the report. " + _USAGE
    shell.register_magic_function(magic, "cell", "tare")


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext tare`: removes the magic.

        %unload_ext tare
    """
    shell.magics_manager.magics["cell"].pop("tare", None)
