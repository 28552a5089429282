# fuzz_python: fuzzes what the Python package reads, guided by the coverage of its code (pip install atheris).
# One thread. Must not know what the targets read.
"""usage: python tests/fuzz/fuzz_python.py TARGET [options of libFuzzer, such as -max_total_time=20]"""
import os
import sys
import tempfile

import atheris

with atheris.instrument_imports(include=["tare", "tomllib", "yaml", "json"]):
    import python_targets


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in python_targets.TARGETS:
        sys.exit(f"{__doc__}\ntargets: {', '.join(python_targets.TARGETS)}")
    name = sys.argv.pop(1)
    _, seeds, words, _ = python_targets.TARGETS[name]
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds + words):
            with open(os.path.join(corpus, str(number)), "wb") as file:
                file.write(seed)
        atheris.Setup([*sys.argv, corpus], lambda data: python_targets.one(name, data))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
