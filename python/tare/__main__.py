"""`python -m tare …` is the tare command of this package."""
import os
import sys

from ._command import find


def main() -> int:
    try:
        os.execv(find(), ["tare", *sys.argv[1:]])
    except OSError as error:
        print(f"tare: {error}", file=sys.stderr)
    return 125


if __name__ == "__main__":
    sys.exit(main())
