"""The programs of test_same_output.py, by subject. Each prints only what does not depend on the run."""
from . import endings, frameworks, interpreter, processes, starts, torch_itself, training  # noqa: F401
from ._table import JOINED, PLAIN, PROGRAMS, SEEN  # noqa: F401
