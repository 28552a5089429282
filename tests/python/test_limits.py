"""Thresholds of rules: stated once, in the engine, documented, and asked for by name."""
import ast
import pathlib
import re

import pytest
import tare
from tare import _engine

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = (ROOT / "src" / "analyze" / "findings" / "rules.h").read_text(encoding="utf-8")
LIMITS = {name: float(value) for name, value in re.findall(r"^ +L\((\w+), ([0-9.e]+)\)", TABLE, re.M)}


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_told_and_documented(name):
    assert _engine.limit(name) == LIMITS[name]
    said = re.findall(rf"`{name}`\s+([0-9.e]+)", (ROOT / "docs" / "FINDINGS.md").read_text(encoding="utf-8"))
    assert said and {float(one.rstrip(".")) for one in said} == {LIMITS[name]}, "in docs/FINDINGS.md, with its value"


def test_unknown_limits():
    with pytest.raises(KeyError, match="LODING"):
        _engine.limit("LODING")
    with pytest.raises(TypeError):
        _engine.limit(3)


def test_names_of_limits_in_the_package_exist():
    """A rule that is rarely evaluated must not fail with the name of its limit."""
    used = set()
    for path in pathlib.Path(tare.__file__).parent.glob("seeds/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("limit", "percent", "seconds"):
                used |= {one.value for one in node.args if isinstance(one, ast.Constant)}
    assert "SMALL_OPERATOR" in used and used <= LIMITS.keys()


@pytest.mark.parametrize("words, uneven", [
    ((100, 1e6, 2e6, 2.6e6, 4e6), True), ((100, 1e6, 2e6, 2.5e6, 4e6), False), ((4, 1e6, 2e6, 2.6e6, 4e6), False),
    ((float("nan"), float("nan"), 1e6, 2.1e6, float("nan")), True), ((float("nan"),) * 5, False)])
def test_uneven(words, uneven):
    assert _engine.uneven(*words) is uneven


def test_growth():
    assert _engine.grows([0, 50, 100], 100) is True
    assert _engine.grows([0, 0, 100], 100) is False and _engine.grows([], 100) is False
    with pytest.raises(TypeError):
        _engine.grows(None, 100)
