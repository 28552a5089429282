"""`tare report --parquet DIR`: every table of a trace as a Parquet file."""
import os
import sys
from typing import List

import pyarrow
import pyarrow.parquet

from . import _engine
from ._files import write_whole


class _Stream:
    def __init__(self, reading: _engine.Reading, table: str):
        self._reading, self._table = reading, table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._reading.stream(self._table)


def write(reading: _engine.Reading, folder: str) -> None:
    """Writes one file for each table, each atomically."""
    os.makedirs(folder, exist_ok=True)
    for table in _engine.SINGLES + _engine.TABLES:
        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(pyarrow.table(_Stream(reading, table)), sink, compression="zstd")
        write_whole(os.path.join(folder, table + ".parquet"), sink.getvalue().to_pybytes())


def main(words: List[str]) -> int:
    folder, trace, *options = words  # NAME=VALUE: what is given of the command's options
    given = dict(option.split("=", 1) for option in options)
    try:
        reading = _engine.open(trace, given.get("rules"), given.get("within"), given.get("phase"), given.get("thread"),
                               int(given.get("process", 0)), "gpu_idle" in given)
    except (OSError, ValueError) as wrong:
        print(f"tare report: {wrong}", file=sys.stderr)
        return 3
    try:
        write(reading, folder)
    except (OSError, pyarrow.ArrowException) as wrong:
        print(f"tare report: cannot write Parquet files to {folder}: {wrong}", file=sys.stderr)
        return 1
    return 0
