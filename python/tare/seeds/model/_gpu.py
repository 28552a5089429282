"""A model's work on a GPU: kernels, copies, ranges for other tools; or why it is unavailable."""
import contextlib
import json
import os
import tempfile
from typing import Any, Dict, Iterator, List

from ... import _core
from ..._core import Missing
from ...torch import _native, _state


def why_not(runner: Any) -> str:
    """Why GPU data is unavailable; "" if it is available."""
    if not runner.device.startswith("cuda"):
        return f"the model runs on {runner.device}, not on a GPU"
    if not hasattr(runner, "model"):
        return f"{runner.kind}: kernels are only reported for torch models"
    return ""


def profile(runner: Any, inputs: Any, kernels: bool, transfers: bool, nvtx: bool) -> Dict[str, Any]:
    """The requested parts; Missing without a GPU."""
    reason = why_not(runner)
    wanted = [name for name, yes in (("kernels", kernels), ("memory_transfers", transfers), ("nvtx", nvtx)) if yes]
    if not reason and _native.another_active():
        reason = "another torch profiler is active"
    if reason:
        none = Missing(reason)
        return {"available": False, "reason": reason, "device_ms": none, "busy_percent": none,
                **{name: none for name in wanted}}
    return _profiled(runner, inputs, wanted)


def _profiled(runner: Any, inputs: Any, wanted: List[str]) -> Dict[str, Any]:
    from torch import profiler as native
    call, settle = runner.call(inputs), runner.settle()
    with runner.running():
        call()
        settle()
        with _native.own_profile([native.ProfilerActivity.CPU, native.ProfilerActivity.CUDA]) as reported:
            spent, = _core.timed_runs(call, 1, settle=settle)
    events = _device_events(reported)
    busy = _busy_ms(events)
    out: Dict[str, Any] = {"available": True, "device_ms": busy, "run_ms": 1e3 * spent,
                           "busy_percent": 100 * busy / (1e3 * spent) if spent > 0 else Missing("no time passed"),
                           "note": "one run under torch's profiler; what runs at once on several streams counts once"}
    if not busy:
        out["note"] = "torch's profiler saw no work on the GPU"
    if "kernels" in wanted:
        out["kernels"] = _kernels(events)
    if "memory_transfers" in wanted:
        out["memory_transfers"] = _copies(events)
    if "nvtx" in wanted:
        out["nvtx"] = _ranges(runner, call, settle)
    return out


def _device_events(reported: Any) -> List[Dict[str, Any]]:
    """Kernels, copies and fills in the order of their begins. Only the file that torch writes has the bytes of copies
    and the occupancy of kernels."""
    with tempfile.TemporaryDirectory(prefix="tare-model.") as folder:
        path = os.path.join(folder, "trace.json")
        reported.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    found = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    return sorted(found, key=lambda event: event["ts"])


def _busy_ms(events: List[Dict[str, Any]]) -> float:
    busy, until = 0.0, float("-inf")
    for event in events:
        begun, ended = event["ts"], event["ts"] + event.get("dur", 0)
        busy += max(0.0, ended - max(begun, until))
        until = max(until, ended)
    return busy / 1e3


def _by_name(events: List[Dict[str, Any]]) -> Dict[str, List[Dict[str, Any]]]:
    named: Dict[str, List[Dict[str, Any]]] = {}
    for event in events:
        named.setdefault(event["name"], []).append(event)
    return named


def _row(name: str, events: List[Dict[str, Any]]) -> Dict[str, Any]:
    return {"name": name, "calls": len(events), "total_ms": sum(event.get("dur", 0) for event in events) / 1e3}


def _kernels(events: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    rows = []
    for name, calls in _by_name([event for event in events if event["cat"] == "kernel"]).items():
        row, about = _row(name, calls), [event.get("args", {}) for event in calls]
        shares = [one["est. achieved occupancy %"] for one in about if "est. achieved occupancy %" in one]
        row["occupancy_percent"] = (sum(shares) / len(shares) if shares else
                                    Missing("torch does not estimate it for this kernel"))
        rows.append(row)
    return sorted(rows, key=lambda row: -row["total_ms"])


def _copies(events: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    rows = []
    for name, calls in _by_name([event for event in events if event["cat"] != "kernel"]).items():
        row = _row(name, calls)
        sizes = [event.get("args", {}).get("bytes") for event in calls]
        row["bytes"] = Missing("torch does not report it") if None in sizes else sum(sizes)
        row["gb_per_second"] = (row["bytes"] / (row["total_ms"] * 1e6) if row["total_ms"] > 0 else
                                Missing("no time passed"))
        rows.append(row)
    return sorted(rows, key=lambda row: -row["total_ms"])


@contextlib.contextmanager
def _named_ranges(model: Any, ranges: List[str]) -> Iterator[None]:
    """An NVTX range around each module, for tools that read NVTX."""
    import torch
    handles = []

    def push(name: str) -> Any:
        def begin(*_: Any) -> None:
            torch.cuda.nvtx.range_push(name)
            ranges.append(name)
        return begin

    def pop(*_: Any) -> None:
        torch.cuda.nvtx.range_pop()
    for name, module in model.named_modules():
        handles += [module.register_forward_pre_hook(push(name or type(module).__name__)),
                    module.register_forward_hook(pop)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _ranges(runner: Any, call: Any, settle: Any) -> Any:
    seen: List[str] = []
    try:
        with runner.running(), _named_ranges(runner.model, seen):
            call()
            settle()
    except Exception as error:
        return Missing(f"no NVTX ranges: {_state.first_line(error)}")
    return {"ranges": len(seen), "names": list(dict.fromkeys(seen)),
            "note": "a run with an NVTX range around each module, for Nsight Systems or `tare run`"}
