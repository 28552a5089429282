"""Writing files whole or not at all."""
import os
import tempfile
from typing import Union


def write_whole(path: Union[str, "os.PathLike[str]"], data: Union[str, bytes]) -> None:
    """Replaces the file in one step; what was there stays when it cannot be written."""
    path = os.fspath(path)
    folder = os.path.dirname(path) or "."
    handle, name = tempfile.mkstemp(prefix=".tare-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:  # mode 0600, as a trace
            file.write(data.encode("utf-8") if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)  # a link is replaced, not followed
    except BaseException:
        os.unlink(name)
        raise
