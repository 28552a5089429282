"""Recommendations for a model from its measurements: every sentence has figures as evidence."""
import math
import os
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from ..._core import Missing, unit
from .._limits import limit, percent, uneven
from ..recommend import Recommendation
from ._text import ms

ELEMENTWISE = frozenset("aten::" + name for name in (
    "add", "mul", "sub", "div", "neg", "relu", "relu6", "gelu", "silu", "mish", "sigmoid", "tanh", "exp", "pow", "sqrt",
    "rsqrt", "clamp", "clamp_min", "threshold", "hardtanh", "hardswish", "hardsigmoid", "leaky_relu", "elu", "softplus",
    "native_layer_norm", "native_batch_norm", "native_group_norm", "_softmax", "_log_softmax", "copy", "_to_copy",
    "where", "masked_fill"))


class Seen(NamedTuple):
    """The input of the rules."""
    results: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    layers: Optional[Mapping[str, Any]]
    memory: Optional[Mapping[str, Any]]


def _measured(seen: Seen) -> List[Mapping[str, Any]]:
    return [row for row in seen.rows if row.get("status") == "measured"]


def _rate(row: Mapping[str, Any]) -> float:
    return row["throughput"]["samples_per_second"]


def _batching(seen: Seen) -> Iterator[Recommendation]:
    """Throughput of larger batches, measured."""
    rows = [row for row in _measured(seen) if set(row["configuration"]) == {"batch_size"} and _rate(row) > 0]
    if len(rows) < 2:
        return
    small = min(rows, key=lambda row: row["configuration"]["batch_size"])
    best = max(rows, key=_rate)
    gain = _rate(best) / _rate(small)
    if gain > limit("MODEL_GAIN"):
        a, b = small["configuration"]["batch_size"], best["configuration"]["batch_size"]
        yield Recommendation(
            f"Use dynamic batching up to {b}: {unit(_rate(best), 'samples/s')} against {unit(_rate(small))} with "
            f"batches of {a}, at a latency of {ms(best['latency']['p50'])} instead of {ms(small['latency']['p50'])}",
            "dynamic-batching", {"gain": gain, "batch_size": b, "samples_per_second": _rate(best),
                                 "latency_ms": best["latency"]["p50"]}, f"{gain:.2f} times the throughput, measured")
    else:
        yield Recommendation(
            f"Keep batches small: batches of {best['configuration']['batch_size']} have {gain:.2f} times the "
            "throughput, and each request waits for its whole batch", "small-batches", {"gain": gain})


def _precision(seen: Seen) -> Iterator[Recommendation]:
    """Rows that differ only in their precision, measured."""
    rows = _measured(seen)
    for row in rows:
        word = row["configuration"].get("precision")
        rest = {key: value for key, value in row["configuration"].items() if key != "precision"}
        like = [other for other in rows if other is not row and other["configuration"].get("precision") in (
            None, "fp32") and {key: value for key, value in other["configuration"].items() if key != "precision"}
            == rest]
        if word in (None, "fp32") or not like:
            continue
        gain = like[0]["latency"]["p50"] / row["latency"]["p50"]
        evidence = {"gain": gain, "latency_ms": row["latency"]["p50"], "fp32_latency_ms": like[0]["latency"]["p50"]}
        if gain > limit("MODEL_GAIN"):
            yield Recommendation(f"Use {word}: {ms(row['latency']['p50'])} against {ms(like[0]['latency']['p50'])} "
                                 "in fp32. Check the outputs", f"precision-{word}", evidence,
                                 f"{gain:.2f} times as fast, measured")
        elif gain < 1:
            yield Recommendation(f"Use fp32: {word} takes {1 / gain:.2f} times as long on this device",
                                 f"precision-not-{word}", evidence)


def _quantization(seen: Seen) -> Iterator[Recommendation]:
    """Weights that are read once per run with little computation: the run is memory-bound, and fewer bytes help."""
    model = seen.results["model"]
    size, flops = model["parameter_bytes"], model["flops"]
    bound = flops / size if size > 0 else math.nan
    four = model["parameters"] > 0 and size / model["parameters"] >= 2
    if not four or not size > limit("WEIGHTS_BYTES") or not bound < limit("WEIGHTS_WORK"):
        return
    speed = size / (seen.results["latency"]["p50"] / 1e3)
    yield Recommendation(
        f"Try int8 quantization: {unit(size, 'bytes')} of weights are read in every run for {bound:.1f} operations a "
        f"byte ({unit(speed, 'bytes/s')}). With int8 they take {unit(model['parameters'], 'bytes')}",
        "quantization", {"parameter_bytes": size, "flops_per_byte": bound, "bytes_per_second": speed},
        f"at most {size / model['parameters']:.0f} times as fast, if a run only reads weights (an estimate), and "
        f"{100 * (1 - model['parameters'] / size):.0f} % of the weights' memory")


def _fusion(seen: Seen) -> Iterator[Recommendation]:
    """Many small operators: fusing saves their call overhead and their passes over memory."""
    reported = seen.results.get("operators")
    if not reported or isinstance(reported, Missing):
        return
    total = sum(row["self_us"] for row in reported)
    if not total > 0:
        return
    light = [row for row in reported if row["name"].rstrip("_") in ELEMENTWISE]
    share = sum(row["self_us"] for row in light) / total
    calls = sum(row["calls"] for row in reported)
    short_ns = limit("SMALL_OPERATOR")
    small = sum(row["self_us"] for row in reported if 1e3 * row["self_us"] / row["calls"] < short_ns) / total
    evidence = {"elementwise_share": share, "operators": calls, "small_share": small}
    if share > limit("ELEMENTWISE"):
        most = ", ".join(row["name"] for row in light[:3])
        yield Recommendation(
            f"Fuse operators (torch.compile, or a runtime that fuses): {unit(share, 'share')} of the time is in "
            f"operators that pass over memory once each ({most})", "fusion", evidence,
            f"at most {unit(share, 'share')} of the time in operators")
    elif small > limit("MODEL_SMALL"):
        yield Recommendation(
            f"Fuse operators (torch.compile, or a runtime that fuses): {unit(small, 'share')} of the time is in "
            f"operators shorter than {unit(short_ns, 'ns')}, of {calls} in a run", "fusion", evidence)


def _sharding(seen: Seen) -> Iterator[Recommendation]:
    """Weights and activations against the available memory."""
    results = seen.results
    weights, taken = results["model"]["parameter_bytes"], results["memory"]["activation"]
    needed = weights + taken if not isinstance(taken, Missing) else weights
    room = _room(results)
    share = needed / room if room > 0 else math.nan
    if share > limit("MODEL_MEMORY"):
        parts = math.ceil(share / limit("MODEL_MEMORY"))
        yield Recommendation(
            f"Shard the model over {parts} devices: weights and activations take {unit(needed, 'bytes')} of "
            f"{unit(room, 'bytes')}", "sharding", {"needed_bytes": needed, "room_bytes": room, "share": share})


def _room(results: Mapping[str, Any]) -> float:
    if results["model"]["device"].startswith("cuda"):
        import torch
        return float(torch.cuda.get_device_properties(results["model"]["device"]).total_memory)
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _pooling(seen: Seen) -> Iterator[Recommendation]:
    """Memory that is freed and allocated again in every run."""
    faults = seen.results["cpu"]["page_faults_per_run"]
    spent = faults * limit("PAGE_FAULT_COST") / 1e6  # ms
    latency = seen.results["latency"]["p50"]
    if faults > limit("PAGE_FAULTS") and spent > limit("PAGE_FAULT_TIME") * latency:
        yield Recommendation(
            f"Pool memory: a run causes {unit(faults)} page faults; the kernel allocates and clears "
            f"{unit(faults * 4096, 'bytes')} again in every run. Use an allocator that keeps memory (jemalloc, "
            "tcmalloc, MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ of glibc), or allocate outputs once",
            "memory-pooling",
            {"page_faults_per_run": faults, "cost_ms": spent},
            f"about {ms(spent)} of {ms(latency)} a run (an estimate)")
    reported = (seen.memory or {}).get("allocations")
    if isinstance(reported, Mapping) and reported.get("from_driver"):
        yield Recommendation(f"Pool GPU memory: a run asks the driver for memory {reported['from_driver']} times. "
                             "Use expandable segments, or a single batch size", "gpu-pooling",
                             {"from_driver": reported["from_driver"]})


def _leak(seen: Seen) -> Iterator[Recommendation]:
    growth = (seen.memory or {}).get("growth")
    if isinstance(growth, Mapping) and growth["grows"] and growth["bytes_per_run"] > limit("GROWTH_A_RUN"):
        yield Recommendation(f"Find what is kept: memory grows by {unit(growth['bytes_per_run'], 'bytes')} a run "
                             f"({unit(growth['low'], 'bytes')} to {unit(growth['high'], 'bytes')} at 95 %)", "growth",
                             dict(growth))


def _checkpointing(seen: Seen) -> Iterator[Recommendation]:
    model, taken = seen.results["model"], seen.results["memory"]["activation"]
    large = taken > limit("ACTIVATION_RATIO") * model["parameter_bytes"] and taken > limit("ACTIVATION_BYTES")
    if large and model["trainable_parameters"] > 0:
        yield Recommendation(
            f"In training, use gradient checkpointing: activations take {unit(taken, 'bytes')} even in inference, "
            f"which does not keep them; weights take {unit(model['parameter_bytes'], 'bytes')}", "checkpointing",
            {"activation_bytes": taken, "parameter_bytes": model["parameter_bytes"]})


def _layer(seen: Seen) -> Iterator[Recommendation]:
    rows = [row for row in (seen.layers or {}).get("layers", ()) if row.get("percent", 0) > 0]
    top = max(rows, key=lambda row: row["percent"], default=None)
    if top is not None and top["percent"] > percent("OPERATION_INFO") and len(rows) > 2:
        yield Recommendation(f"Optimize {top['name']} ({top['type']}) first: it takes {top['percent']:.0f} % of a run",
                             "top-layer", {"percent": top["percent"]}, f"at most {top['percent']:.0f} % of a run")


def _parallel(seen: Seen) -> Iterator[Recommendation]:
    cpu = seen.results["cpu"]
    if seen.results["model"]["device"].startswith("cuda"):
        return
    pushed = cpu.get("preempted_percent", Missing("not measured"))
    known = not isinstance(pushed, Missing)
    # Without the kernel's scheduling statistics, more preemptions than waits are taken as a sign of a busy machine.
    waits = known or cpu["waits_per_run"] >= cpu["preemptions_per_run"]
    if waits and cpu["waiting_percent"] > percent("MODEL_BLOCKED"):
        yield Recommendation(
            f"Find what a run waits for: for {cpu['waiting_percent']:.0f} % of it, it neither runs nor is runnable, in "
            f"{cpu['waits_per_run']:.0f} waits", "blocked", {"waiting_percent": cpu["waiting_percent"],
                                                            "waits_per_run": cpu["waits_per_run"]},
            f"at most {cpu['waiting_percent']:.0f} % of a run")
    if known and pushed > percent("WAITING_FOR_CPU"):
        yield Recommendation(
            f"Measure again on an idle machine: other processes used the CPUs for {pushed:.0f} % of a run", "preempted",
            {"preempted_percent": pushed, "preemptions_per_run": cpu["preemptions_per_run"]})


def _uneven(seen: Seen) -> Iterator[Recommendation]:
    latency = seen.results["latency"]
    if uneven(latency["count"], *(latency[name] / 1e3 for name in ("min", "p50", "p95", "max"))):
        pushed = seen.results["cpu"]["preemptions_per_run"]
        yield Recommendation(
            f"Find what makes runs slow: 5 % of them take {ms(latency['p95'])} or more, half of them "
            f"{ms(latency['p50'])} or less; other processes took the CPU {pushed:.2f} times a run", "uneven-runs",
            {"p50": latency["p50"], "p95": latency["p95"], "preemptions_per_run": pushed})


RULES = (_layer, _batching, _precision, _quantization, _fusion, _sharding, _pooling, _leak, _checkpointing, _parallel,
         _uneven)


def advise(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], layers: Optional[Mapping[str, Any]],
           memory: Optional[Dict[str, Any]]) -> List[Recommendation]:
    """All advice, in the order of the rules."""
    seen = Seen(results, rows, layers, memory)
    return [one for rule in RULES for one in rule(seen)]
