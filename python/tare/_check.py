"""Checks arguments of the public functions, with the same error messages everywhere."""
from typing import Any, Iterable


def whole(value: Any, name: str, least: int = 1) -> int:
    """A whole number, `least` or more."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} is {least} or more, not {value}")
    return value


def number(value: Any, name: str, what: str = "a number") -> float:
    """A number, but not True or False."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {what}, not {type(value).__name__}")
    return value


def seconds(value: Any, name: str, least: float = 0.001) -> float:
    """An interval of at most a day."""
    if not least <= number(value, name, "a number of seconds") <= 86400:
        raise ValueError(f"{name} is {least} to 86400 seconds, not {value}")
    return float(value)


def near(name: str, names: Iterable[str]) -> str:
    """Suggestions for an unknown name, as the end of a sentence."""
    import difflib  # slow to import, and rarely needed
    found = difflib.get_close_matches(name, list(names), 3)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def pandas() -> Any:
    """pandas, or an ImportError that says what needs it."""
    try:
        import pandas as found
        return found
    except ImportError:
        raise ImportError("to_pandas needs pandas: pip install pandas") from None
