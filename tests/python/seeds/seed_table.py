"""docs/SEEDS.md: one row a snippet, made of the list and of what its checks came to."""
from typing import Dict, Iterable

from seed_blocks import ROOT
from seed_list import Entry, Key

PATH = ROOT / "docs" / "SEEDS.md"
_HEAD = """\
# The seed documents, snippet by snippet

Five documents say what Tare's Python package has to do. Every fenced block in them is run, or read where it is
configuration or output, by `tests/python/seeds/`, and what came of it is asserted on. This table is written by
`python tests/python/seeds/make_table.py`; a test fails when it is not the truth.

- **passes**: it runs, and what it prints, returns or leaves behind is right. Changed are its import line, which names
  tare, and its placeholders, which are real small models and data; where a document sketches a class that tare
  provides, it is tare's that is used. Snippets that use torch, pandas or matplotlib need it installed.
- **waits for …**: it needs what is not there yet. What can be had of it today is run all the same.
- **nothing to run**: a block that is neither code nor output.

"""


def _count(states: Iterable[str]) -> str:
    counts: Dict[str, int] = {}
    for state in states:
        counts[state] = counts.get(state, 0) + 1
    return "\n".join(f"| {state} | {counts[state]} |" for state in sorted(counts))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def render(entries: Iterable[Entry], failed: Iterable[Key] = ()) -> str:
    """The page's text. A snippet whose check failed is told as failing, whatever the list says."""
    failed = set(failed)
    rows = [(entry.key, "FAILS" if entry.key in failed else entry.state) for entry in entries]
    lines = [f"| {key[0]} | {_cell(key[1])} | {key[2]} | {state} |" for key, state in rows]
    return (_HEAD + "| state | snippets |\n|---|---:|\n" + _count(state for _, state in rows)
            + f"\n| all | {len(rows)} |\n\n| document | heading | number | state |\n|---|---|---:|---|\n"
            + "\n".join(lines) + "\n")
