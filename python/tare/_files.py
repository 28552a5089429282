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
        with os.fdopen(handle, "wb") as file:
            file.write(data.encode("utf-8") if isinstance(data, str) else data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
