"""Finds the seed documents and takes their fenced blocks apart: document, heading, number, language, text."""
import dataclasses
import os
import pathlib
import re
from typing import List, Optional

ROOT = pathlib.Path(__file__).resolve().parents[3]
_FENCE = re.compile(r"```(\w*)\s*\Z")
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*\Z")


@dataclasses.dataclass(frozen=True)
class Block:
    """One fenced block. `number` counts the blocks under one heading of one document from 1."""
    document: str
    heading: str
    number: int
    language: str
    text: str
    line: int

    @property
    def key(self):
        return self.document, self.heading, self.number


def folder() -> Optional[pathlib.Path]:
    """Where the documents are: TARE_SEEDS, else beside the project; None in a checkout that has none."""
    named = os.environ.get("TARE_SEEDS")
    if named:
        return pathlib.Path(named)
    beside = ROOT.parent / "shared" / "seeds"
    return beside if beside.is_dir() else None


def blocks_of(document: str, text: str) -> List[Block]:
    """The blocks of one document in its order. An open fence at the end is an error, not a block."""
    found, heading, counts = [], "", {}
    language, lines, opened = None, [], 0
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if language is None:
            title = _HEADING.match(line)
            if title:
                heading = title.group(1).replace("*", "")
            elif fence:
                language, lines, opened = fence.group(1), [], number + 1
        elif fence and not fence.group(1):
            counts[heading] = counts.get(heading, 0) + 1
            found.append(Block(document, heading, counts[heading], language, "\n".join(lines) + "\n", opened))
            language = None
        else:
            lines.append(line)
    if language is not None:
        raise ValueError(f"{document}: the block that opens before line {opened} is not closed")
    return found


def all_blocks(where: pathlib.Path) -> List[Block]:
    """Every block of every document, in order. A document is known by the number its file name starts with."""
    found = []
    for path in sorted(where.glob("[0-9][0-9][0-9]_*")):
        found += blocks_of(path.name[:3], path.read_text(encoding="utf-8"))
    if not found:
        raise FileNotFoundError(f"there are no seed documents in {where}")
    return found
