"""Finds the tare command, which collects the recording."""
import os
from typing import List


def find() -> str:
    """The path of the tare command that belongs to this package, else the first one on PATH."""
    reported = os.environ.get("TARE_HELPER")
    if reported:
        return reported
    package = os.path.dirname(os.path.abspath(__file__))
    # As pip installs it: from lib/python3.x/site-packages/tare; by --target; a build beside the sources.
    for place in ("../../../../bin/tare", "../bin/tare", "../../build/tare"):
        path = os.path.normpath(os.path.join(package, place))
        if os.access(path, os.X_OK):
            return path
    from ._core import find_program
    found = find_program("tare")
    if not found:
        raise FileNotFoundError("the tare command is not installed beside the package, nor on PATH")
    return found


def isolated(code: str) -> List[str]:
    """Arguments of an interpreter that runs this code with our search path, without the current folder."""
    import sys
    return ["-I", "-c", "import sys\nsys.path[:] = %r\n%s" % ([one for one in sys.path if one], code)]
