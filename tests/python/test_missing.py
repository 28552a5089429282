"""Missing, a NaN with a reason; and statistics of a few numbers."""
import copy
import math
import pickle

import pytest

import tare
from tare import _core


def test_missing_is_a_nan_with_a_reason():
    value = tare.Missing("no NVIDIA driver")
    assert isinstance(value, float) and math.isnan(value) and value.reason == "no NVIDIA driver"
    assert not (value > 1 or value < 1 or value >= 1 or value <= 1 or value == 1 or value == value)
    assert not value


def test_missing_prints_as_na():
    value = tare.Missing("why")
    assert str(value) == "n/a" and f"{value}" == "n/a" and f"{value:.1f}" == "n/a" and f"{value:,}" == "n/a"
    assert f"{value:>8.2f}" == "     n/a" and f"{value:8.2f}" == "     n/a" and f"{value:<6}|" == "n/a   |"
    assert f"{value:*^9.3e}" == "***n/a***" and f"{value:+08.1f}".strip("0") .strip() == "n/a"
    assert "%s" % value == "n/a" and "why" in repr(value)


def test_what_is_computed_from_missing_is_missing():
    value = tare.Missing("why")
    for computed in (value + 1, 1 - value, value * 2.5, 3 / value, value // 2, value % 2, value ** 2, -value, +value,
                     abs(value), round(value), round(value, 2), sum([1, value])):
        assert isinstance(computed, tare.Missing) and computed.reason == "why"
    with pytest.raises(ValueError, match="why"):
        int(value)
    with pytest.raises(TypeError):
        value + "text"


def test_missing_travels():
    value = tare.Missing("why")
    for other in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy([value])[0]):
        assert isinstance(other, tare.Missing) and other.reason == "why"
    with pytest.raises(TypeError):
        tare.Missing(3)
    with pytest.raises(TypeError):
        tare.Missing()


def test_numbers():
    assert _core.quantile([3, 1, 2], 0.5) == 2 and _core.quantile((1, 2), 0.75) == 1.75
    assert isinstance(_core.quantile([], 0.5), tare.Missing)
    assert _core.quantile_interval([1, 2, 3], 0.5) == (None, None, 6)
    low, high, _ = _core.quantile_interval(list(range(100)), 0.5)
    assert low < 49.5 < high
    with pytest.raises(ValueError):
        _core.quantile([1], 2)
    with pytest.raises(TypeError):
        _core.quantile(["x"], 0.5)


def test_values_with_units():
    assert [_core.unit(1234567, "ns"), _core.unit(0.25, "s"), _core.unit(5e8, "bytes"),
            _core.unit(2048, "bytes/s")] == \
        ["1.23 ms", "250 ms", "477 MiB", "2.00 KiB/s"]
    assert [_core.unit(0.1234, "share"), _core.unit(1234), _core.unit(12345678, "samples/s")] == \
        ["12.3 %", "1,234", "12.3M samples/s"]
    assert {_core.unit(one, unit) for one in (None, math.nan, tare.Missing("why"))
            for unit in ("ns", "", "rows")} == {"n/a"}
    with pytest.raises(TypeError):
        _core.unit("five", "ns")
