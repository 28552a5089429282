"""Times of a model's layers: hooks in C around torch modules, node by node in exported programs, ONNX Runtime's own
profile; and the operators below them."""
import fnmatch
from typing import Any, Dict, List, Optional, Sequence

from ... import _core
from ..._core import Missing, quantile
from ...torch import _native, _state
from ...torch._flops import known
from ._text import ms

RUNS = 20
SLOWER = 1.25  # overhead from which a note states that measuring layers changed the times


def matches(pattern: str, name: str, kind: str) -> bool:
    """A pattern with *, ? or [ matches the whole name; a word matches anywhere in the name or in the type."""
    if any(sign in pattern for sign in "*?["):
        return fnmatch.fnmatchcase(name, pattern)
    return pattern.lower() in name.lower() or pattern.lower() in kind.lower()


def check_patterns(patterns: Any) -> Optional[List[str]]:
    if patterns is None:
        return None
    given = [patterns] if isinstance(patterns, str) else list(patterns)
    if not given or not all(isinstance(one, str) and one for one in given):
        raise TypeError("layer_names is a list of names or patterns")
    return given


def profile(runner: Any, inputs: Any, patterns: Optional[Sequence[str]], runs: int = RUNS) -> Dict[str, Any]:
    """Rows by layer, and sums by pattern."""
    if runner.kind == "ONNX file":
        rows, total, note = _onnx(runner, inputs, runs)
    elif runner.kind == "function":
        raise TypeError("a function has no layers")
    elif runner.kind == "torch.export file":
        rows, total, note = _exported(runner, inputs, runs)
    elif runner.kind == "TorchScript file":
        rows, total, note = _operators_as_layers(runner, inputs)
    elif runner.where.type == "cuda":
        rows, total, note = _modules(runner, inputs, runs, _Events)
    else:
        rows, total, note = _modules(runner, inputs, runs, _Clock)
    for row in rows:
        row["percent"] = 100 * row["self_ms"] / total if total > 0 else Missing("no time passed")
        rate = row["flops"] / (row["time_ms"] * 1e6) if row["time_ms"] > 0 else Missing("no time passed")
        row["gflops_per_second"] = row["flops"] if isinstance(row["flops"], Missing) else rate
    alone = _unwatched_ms(runner, inputs, runs)
    if total > SLOWER * alone:
        note += (f"; a run takes {ms(total)} with its layers measured, {ms(alone)} without: measuring them takes the "
                 "difference, or torch runs whole layers at once when their parts are not measured")
    out: Dict[str, Any] = {"total_ms": total, "unwatched_ms": alone, "runs": runs, "note": note, "layers": rows}
    if patterns is not None:
        out["patterns"] = {one: _sum_of(one, rows, total) for one in patterns}
        out["layers"] = [row for row in rows if any(matches(one, row["name"], row["type"]) for one in patterns)]
    return out


def _unwatched_ms(runner: Any, inputs: Any, runs: int) -> float:
    with runner.running():
        seconds = _core.timed_runs(runner.call(inputs), runs, settle=runner.settle())
    return 1e3 * quantile(list(seconds), 0.5)


def _sum_of(pattern: str, rows: List[Dict[str, Any]], total: float) -> Dict[str, Any]:
    """Sums of the outermost layers that match: their times include the layers inside."""
    found = [row for row in rows if matches(pattern, row["name"], row["type"])]
    names = {row["name"] for row in found}
    outer = [row for row in found if not any(part in names for part in _above(row["name"]))]
    if not outer:
        near = ", ".join(row["name"] for row in rows[:5])
        none = Missing(f"no layer matches {pattern!r}; there are {near}{', …' if len(rows) > 5 else ''}"
                       if rows else "the model has no layers")
        return {"layers": 0, "time_ms": none, "percent": none, "parameters": none, "flops": none}
    spent = sum(row["time_ms"] for row in outer)
    counted = [row["flops"] for row in outer if not isinstance(row["flops"], Missing)]
    weights = [row["parameters"] for row in outer if not isinstance(row["parameters"], Missing)]
    return {"layers": len(outer), "time_ms": spent,
            "percent": 100 * spent / total if total > 0 else Missing("no time passed"),
            "parameters": sum(weights) if weights else Missing("not reported by layer"),
            "flops": sum(counted) if counted else Missing("not counted by layer")}


def _above(name: str) -> List[str]:
    parts = name.split(".")
    return [".".join(parts[:at]) for at in range(1, len(parts))]


# ---- torch modules ----------------------------------------------------------------------------------------------

class _Clock:
    """The host's clock, read by hooks in C."""
    note = "host time between the begin and the end of each module's forward"

    def __init__(self, layers: int, runs: int) -> None:
        self.times = _core.LayerTimes(layers, runs)

    def hooks(self, layer: int) -> Any:
        return self.times.begins(layer), self.times.ends(layer)

    def next_run(self) -> None:
        self.times.next_run()

    def read(self, layer: int) -> Any:
        return self.times.read(layer)


class _Events:
    """The device's clock: events in the stream before and after each module."""
    note = "device time between the begin and the end of each module's forward"

    def __init__(self, layers: int, runs: int) -> None:
        self.spans: List[List[Any]] = [[] for _ in range(layers)]
        self.open: List[Any] = []
        self.run = 0

    def _mark(self) -> Any:
        import torch
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def hooks(self, layer: int) -> Any:
        def begins(*_: Any) -> None:
            self.open.append((layer, self._mark(), []))

        def ends(*_: Any) -> None:
            at, begun, inside = self.open.pop()
            span = (self.run, begun, self._mark(), inside)
            self.spans[at].append(span)
            if self.open:
                self.open[-1][2].append(span)
        return begins, ends

    def next_run(self) -> None:
        import torch
        torch.cuda.synchronize()
        self.run += 1

    def read(self, layer: int) -> Any:
        total, own = [0.0] * self.run, [0.0] * self.run
        for run, begun, ended, inside in self.spans[layer]:
            spent = begun.elapsed_time(ended) / 1e3
            total[run] += spent
            own[run] += spent - sum(a.elapsed_time(b) for _, a, b, _ in inside) / 1e3
        return len(self.spans[layer]), total, own


def _modules(runner: Any, inputs: Any, runs: int, clock: Any) -> Any:
    named = [("", runner.model), *((name, module) for name, module in runner.model.named_modules() if name)]
    times = clock(len(named), runs)
    sizes: Dict[int, int] = {}
    call = runner.call(inputs)
    root = type(runner.model).__name__
    by_module = runner.costs(inputs)["by_module"]
    with runner.running():
        _output_sizes(call, named, sizes)
        handles = []
        try:
            for at, (_, module) in enumerate(named):
                begins, ends = times.hooks(at)
                handles += [module.register_forward_pre_hook(begins), module.register_forward_hook(ends)]
            for _ in range(runs):
                call()
                times.next_run()
        finally:
            for handle in handles:
                handle.remove()
    rows = []
    total = 0.0
    for at, (name, module) in enumerate(named):
        calls, seconds, own = times.read(at)
        if not name:
            total = 1e3 * quantile(seconds, 0.5)
            continue
        if not calls:
            continue
        flops = by_module.get(f"{root}.{name}")
        rows.append({"name": name, "type": type(module).__name__, "calls": calls // runs,
                     "time_ms": 1e3 * quantile(seconds, 0.5), "p95_ms": 1e3 * quantile(seconds, 0.95),
                     "self_ms": 1e3 * quantile(own, 0.5),
                     "parameters": sum(one.numel() for one in module.parameters()),
                     "flops": known(flops),
                     "output_bytes": sizes.get(at, Missing("it gives no tensor"))})
    return rows, total, clock.note


def _output_sizes(call: Any, named: Any, sizes: Dict[int, int]) -> None:
    def keeper(at: int) -> Any:
        def keep(_: Any, __: Any, output: Any) -> None:
            found = list(_state.tensors_in(output))
            if found:
                sizes[at] = sum(one.numel() * one.element_size() for one in found)
        return keep
    handles = [module.register_forward_hook(keeper(at)) for at, (_, module) in enumerate(named)]
    try:
        call()
    finally:
        for handle in handles:
            handle.remove()


# ---- exported programs --------------------------------------------------------------------------------------------

def _exported(runner: Any, inputs: Any, runs: int) -> Any:
    import torch
    nodes = [node for node in runner.model.graph.nodes if node.op == "call_function"]
    names = {node: _module_of(node) for node in nodes}
    layers = sorted({name for name in names.values()}, key=list(names.values()).index)
    kinds = {_module_of(node): _kind_of(node) for node in nodes}
    times = _core.LayerTimes(len(layers) + 1, runs)
    hooks = [(times.begins(at), times.ends(at)) for at in range(len(layers) + 1)]
    where = {node: layers.index(name) for node, name in names.items()}
    settle = runner.settle()

    class Timed(torch.fx.Interpreter):
        def run_node(self, node: Any) -> Any:
            at = where.get(node)
            if at is None:
                return super().run_node(node)
            hooks[at][0]()
            try:
                result = super().run_node(node)
                if settle is not None:
                    settle()
                return result
            finally:
                hooks[at][1]()
    args, kwargs = inputs
    flat = list(args) + list(kwargs.values())
    with runner.running():
        interpreter = Timed(runner.model)
        interpreter.run(*flat)
        times = _fresh(times, hooks, len(layers) + 1, runs)
        for _ in range(runs):
            hooks[-1][0]()
            interpreter.run(*flat)
            hooks[-1][1]()
            times.next_run()
    rows = []
    for at, name in enumerate(layers):
        calls, seconds, own = times.read(at)
        rows.append({"name": name or "(whole)", "type": kinds[name], "calls": calls // runs,
                     "time_ms": 1e3 * quantile(seconds, 0.5), "p95_ms": 1e3 * quantile(seconds, 0.95),
                     "self_ms": 1e3 * quantile(own, 0.5), "parameters": Missing("not reported by layer"),
                     "flops": Missing("not counted by layer of an exported program"),
                     "output_bytes": Missing("not reported by layer")})
    total = 1e3 * quantile(times.read(len(layers))[1], 0.5)
    return rows, total, "run node by node, the interpreter's own time in between; by the module the node came from"


def _fresh(times: Any, hooks: List[Any], layers: int, runs: int) -> Any:
    """Discards the first run: new times for the same list of hooks."""
    made = _core.LayerTimes(layers, runs)
    hooks[:] = [(made.begins(at), made.ends(at)) for at in range(layers)]
    del times
    return made


def _module_of(node: Any) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return str(stack[-1][0]) if stack else ""


def _kind_of(node: Any) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if not stack:
        return "function"
    kind = stack[-1][1]
    return kind.rpartition(".")[2] if isinstance(kind, str) else kind.__name__


# ---- TorchScript: operators ----------------------------------------------------------------------------------------

def operators(runner: Any, inputs: Any) -> Any:
    """Rows of torch's own profiler over one run, or Missing."""
    from torch import profiler as native
    if _native.another_active():
        return Missing("another torch profiler is active")
    activities = [native.ProfilerActivity.CPU]
    if runner.where.type == "cuda":
        activities.append(native.ProfilerActivity.CUDA)
    call, settle = runner.call(inputs), runner.settle()
    try:
        with runner.running():
            call()
            with _native.own_profile(activities, profile_memory=True) as reported:
                call()
                if settle is not None:
                    settle()
    except Exception as error:
        return Missing(f"torch's profiler failed: {_state.first_line(error)}")
    rows = []
    for event in reported.key_averages():
        if event.key.startswith("ProfilerStep"):
            continue
        rows.append({"name": event.key, "calls": event.count, "self_us": event.self_cpu_time_total,
                     "total_us": event.cpu_time_total,
                     "device_us": _native.of_device(event, "self_{}_time_total"),
                     "memory_bytes": getattr(event, "self_cpu_memory_usage", 0)})
    rows.sort(key=lambda row: -max(row["self_us"], row["device_us"]))
    return rows


def _operators_as_layers(runner: Any, inputs: Any) -> Any:
    reported = operators(runner, inputs)
    if isinstance(reported, Missing):
        raise RuntimeError(f"the layers of a TorchScript file are reported by torch's profiler: {reported.reason}")
    flops = Missing("not counted by operator")
    rows = [{"name": row["name"], "type": "operator", "calls": row["calls"], "time_ms": row["total_us"] / 1e3,
             "p95_ms": Missing("one run was profiled"), "self_ms": row["self_us"] / 1e3,
             "parameters": Missing("not reported by operator"), "flops": flops, "output_bytes": row["memory_bytes"]}
            for row in reported if row["name"].startswith("aten::") or row["self_us"] > 0]
    total = sum(row["self_ms"] for row in rows)
    return rows, total, ("a TorchScript file runs without its modules being called: these are its operators, of one "
                         "run under torch's profiler, which slows them down")


# ---- ONNX Runtime --------------------------------------------------------------------------------------------------

def _onnx(runner: Any, inputs: Any, runs: int) -> Any:
    """A node's time is that of all its calls in a run, without nodes of the graphs that it holds."""
    costs = _onnx_costs(runner.static(inputs))
    rows = []
    for node in runner.profile_runs(inputs, runs):
        times = [one / 1e6 for one in node["run_ns"]]
        cost = costs.get(node["name"])
        size = node["output_bytes"]
        rows.append({"name": node["name"], "type": node["op"], "calls": max(1, round(node["calls"] / len(times))),
                     "time_ms": quantile(times, 0.5), "p95_ms": quantile(times, 0.95), "self_ms": quantile(times, 0.5),
                     "parameters": cost[0] if cost else Missing("not reported for a node that the runtime made"),
                     "flops": cost[1] if cost and cost[1] else Missing("not counted for this node"),
                     "output_bytes": int(size) if size == size else Missing("the runtime does not report it"),
                     "provider": node["provider"]})
    total = sum(row["time_ms"] for row in rows)
    return rows, total, "by ONNX Runtime's own profiler, which rounds to microseconds; nodes as they are after fusion"


def _onnx_costs(reported: Any) -> Dict[str, Any]:
    """(parameters, FLOPs) by the name of a node."""
    if isinstance(reported, Missing):
        return {}
    return {row["node"] or row["name"]: (row["parameters"], row["flops"]) for row in reported["layers"]}
