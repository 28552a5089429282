"""`python -m tare …` is the tare command of this package; `python -m tare profile` runs models in this interpreter."""
import os
import sys

from ._command import find


def main() -> int:
    if sys.argv[1:2] == ["profile"]:
        from .seeds.model._command import main as profile
        return profile(sys.argv[2:])
    try:
        os.execv(find(), ["tare", *sys.argv[1:]])
    except OSError as error:
        print(f"tare: {error}", file=sys.stderr)
    return 125


if __name__ == "__main__":
    sys.exit(main())
