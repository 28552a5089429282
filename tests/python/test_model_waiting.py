"""Advice on waiting: a process that others keep off its CPUs does not wait."""
import types

import pytest
from tare import Missing, _core
from tare.seeds.model import _advice, _measure


def told(busy, kept_off, waits=2, pushed=50):
    """Figures of one run of a second that had the CPU for `busy` and was runnable without running for `kept_off`."""
    seen = types.SimpleNamespace(wall_s=1.0, process_cpu_s=busy, cpu_percent=100.0, process_cpu_percent=100.0 * busy)
    cpu = _measure._cpu(seen, (0, 0, 0, 0), (0, 0, waits, pushed), 1, kept_off)
    results = {"cpu": cpu, "model": {"device": "cpu"}}
    return cpu, {one.id for one in _advice._parallel(types.SimpleNamespace(results=results))}


def test_preemption_is_not_waiting():
    cpu, advice = told(0.46, 0.54)
    assert cpu["waiting_percent"] == pytest.approx(0, abs=1e-9) and cpu["preempted_percent"] == pytest.approx(54)
    assert advice == {"preempted"}


def test_waiting_is():
    cpu, advice = told(0.46, 0.01, waits=100, pushed=1)
    assert cpu["waiting_percent"] == pytest.approx(53) and advice == {"blocked"}


def test_without_the_kernels_account():
    why = Missing("not here")
    assert told(0.46, why)[1] == set()  # preempted more often than it waited
    assert told(0.46, why, waits=100, pushed=1)[1] == {"blocked"}


def test_the_kernels_account_grows_on_this_machine():
    delay = _core.run_delay()
    assert isinstance(delay, Missing) or delay >= 0
