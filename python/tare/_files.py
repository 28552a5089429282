"""Writes files atomically; reads a program's source."""
import os
from typing import List, Union


def source_lines(path: str) -> List[str]:
    """Lines of a program's source; none if it came from a pipe, since reading that would block."""
    import linecache  # slow to import, and rarely needed at a program's start
    return [] if os.path.exists(path) and not os.path.isfile(path) else linecache.getlines(path)


def write_whole(path: Union[str, "os.PathLike[str]"], data: Union[str, bytes]) -> None:
    """Replaces the file atomically; the old file stays if the new one cannot be written."""
    import tempfile
    path = os.fspath(path)
    folder = os.path.dirname(path) or "."
    try:
        handle, name = tempfile.mkstemp(prefix=".tare-", dir=folder)
    except OSError as error:
        error.filename = path  # the requested file
        raise
    try:
        with os.fdopen(handle, "wb") as file:  # mode 0600, as a trace
            file.write(data.encode("utf-8") if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)  # a link is replaced, not followed
    except BaseException:
        os.unlink(name)
        raise
