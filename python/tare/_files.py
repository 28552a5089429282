"""Writing files whole or not at all."""
import os
import tempfile


def write_whole(path: str, text: str) -> None:
    """Replaces the file in one step; what was there stays when it cannot be written."""
    path = os.fspath(path)
    folder = os.path.dirname(path) or "."
    handle, name = tempfile.mkstemp(prefix=".tare-", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
