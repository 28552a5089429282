"""Results as figures: names, units, samples, and the machine they are of. The same file as `tare baseline` writes."""
import os
import subprocess
import time
from typing import Any, Dict, List, Mapping, Optional

from ._core import Missing, find_program

VERSION = 1
SAMPLES_MOST = 1000
_MASK = (1 << 64) - 1


def _cpu_model() -> Optional[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() == "model name":
                    return value.strip()
    except OSError:
        pass
    return None


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _mix(value: int, text: Optional[str]) -> int:
    for byte in (text or "").encode():
        value = ((value ^ byte) * 0x100000001B3) & _MASK  # FNV-1a
    return ((value ^ 0xFF) * 0x100000001B3) & _MASK


def machine() -> Dict[str, Any]:
    """This machine, and a fingerprint of it, made as the tare command makes it."""
    system = os.uname()
    host, model, kernel = system.nodename, _cpu_model(), f"{system.sysname} {system.release}"
    cpus, memory = os.sysconf("SC_NPROCESSORS_ONLN"), _memory_bytes()
    value = 0xCBF29CE484222325
    for text in (host, model, kernel, f"{cpus} {memory / 2 ** 30:.0f}"):
        value = _mix(value, text)
    return {"host": host, "cpu_model": model, "kernel": kernel, "cpus": cpus, "memory_bytes": memory,
            "fingerprint": f"{value:016x}"}


def revision() -> Optional[str]:
    """The commit of the folder we are in; None: it has none."""
    git = find_program("git")
    if git is None:
        return None
    try:
        # The repository's own settings name programs: none of them runs.
        done = subprocess.run([git, "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
                               "-c", "protocol.allow=never", "-c", "core.sshCommand=false", "rev-parse", "HEAD"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=5, text=True,
                              env={"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "", "GIT_SSH_COMMAND": "false",
                                   **{name: value for name, value in os.environ.items() if name[:4] != "GIT_"}})
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _figure(name: str, unit: str, better: str, value: Any, samples: Any = None, exact: bool = False,
            per: str = "run", at_least: bool = False) -> Optional[Dict[str, Any]]:
    if isinstance(value, Missing) or value is None or value != value:
        return None
    made: Dict[str, Any] = {"name": name, "unit": unit, "better": better, "exact": exact, "value": value,
                            "total": None, "n": len(samples) if samples else 1}
    if at_least:  # a lower bound: some of it is not counted
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
    """What stands under "figures" in a report: a baseline that `tare check` and `tare compare` read."""
    where = results["machine"]
    return {"tare_baseline": VERSION, "kind": "model", "command": results["model"]["name"], "host": where["host"],
            "cpu_model": where["cpu_model"], "revision": results.get("revision"), "machine": where["fingerprint"],
            "when_ns": results["when_ns"], "runs": 1, "notes": list(results.get("notes", ())),
            "figures": figures_of(results)}


def now_ns() -> int:
    return time.time_ns()
