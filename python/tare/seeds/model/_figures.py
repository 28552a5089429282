"""Results as figures: names, units, samples, and the machine they are of. The same file as `tare baseline` writes."""
import json
import time
from typing import Any, Dict, List, Mapping, Optional

from ..._core import Missing

VERSION = 1
SAMPLES_MOST = 1000


def machine() -> Dict[str, Any]:
    """This machine with its fingerprint, and the source revision of the current folder, as the command records them."""
    from ... import _engine
    return json.loads(_engine.machine())


def _figure(name: str, unit: str, better: str, value: Any, samples: Any = None, exact: bool = False,
            per: str = "run", at_least: bool = False) -> Optional[Dict[str, Any]]:
    if isinstance(value, Missing) or value is None or value != value:
        return None
    made: Dict[str, Any] = {"name": name, "unit": unit, "better": better, "exact": exact, "value": value,
                            "total": None, "n": len(samples) if samples else 1}
    if at_least:  # a lower bound: some operations are not counted
        made["at_least"] = True
    if samples:
        each = 1
        while len(samples) > SAMPLES_MOST:  # means of two, four, …, as the tare command thins them
            samples = [(a + b) / 2 for a, b in zip(samples[::2], samples[1::2])]
            each *= 2
        made.update(per=per, each=each, samples=samples)
    return made


def _configured(name: str, batch: Any) -> str:
    return f"{name}[batch={batch}]" if isinstance(batch, int) else name


def figures_of(results: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """All figures of a profile."""
    batch = results["input"]["batch_size"]
    model, memory, latency = results["model"], results["memory"], results["latency"]
    rates = results["throughput"].get("rates") or []
    count = batch if isinstance(batch, int) else 1
    found = [
        _figure(_configured("model.latency", batch), "ns", "lower", latency["p50"] * 1e6,
                [1e6 * one for one in latency["samples"]]),
        _figure(_configured("model.throughput", batch), "samples/s" if isinstance(batch, int) else "requests/s",
                "higher", results["throughput"]["samples_per_second" if isinstance(batch, int)
                                                else "requests_per_second"], [count * one for one in rates]),
        _figure(_configured("model.memory.peak", batch), "bytes", "lower", memory["peak"]),
        _figure(_configured("model.activations", batch), "bytes", "lower", memory["activation"]),
        _figure("model.parameters", "", "lower", model["parameters"], exact=True),
        _figure("model.file", "bytes", "lower", model["size_bytes"], exact=True),
        _figure(_configured("model.macs", batch), "", "lower", model["macs"], exact=True,
                at_least=bool(model.get("flops_at_least"))),
    ]
    generation = results.get("generation")
    if isinstance(generation, Mapping):
        first, between = generation["time_to_first_token"], generation["time_between_tokens"]
        found.append(_figure(_configured("model.first_token", batch), "ns", "lower", first["p50"] * 1e6,
                             [1e6 * one for one in first["samples"]]))
        if isinstance(between, Mapping):
            found.append(_figure(_configured("model.between_tokens", batch), "ns", "lower", between["p50"] * 1e6,
                                 [1e6 * one for one in between["samples"]], per="token"))
    for row in (results.get("layers") or {}).get("layers", ()):
        found.append(_figure(f"layer:{row['name']}", "ns", "lower", row["self_ms"] * 1e6))
    return [one for one in found if one is not None]


def baseline_of(results: Mapping[str, Any]) -> Dict[str, Any]:
    """The content of "figures" in a report: a baseline that `tare check` and `tare compare` read."""
    where = results["machine"]
    return {"tare_baseline": VERSION, "kind": "model", "command": results["model"]["name"], "host": where["host"],
            "cpu_model": where["cpu_model"], "revision": results.get("revision"), "machine": where["fingerprint"],
            "when_ns": results["when_ns"], "runs": 1, "notes": list(results.get("notes", ())),
            "figures": figures_of(results)}


def now_ns() -> int:
    return time.time_ns()
