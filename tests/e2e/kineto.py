"""A trace as torch.profiler writes one on a GPU machine, made by hand so that every figure is known."""
import json

BASE_NS = 1790857026000000000
START_US = 3878828106242.5
STEP_US, STEPS, OPS = 1000, 4, 5


def x(cat, name, ts, dur, pid=100, tid=100, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": round(START_US + ts, 3), "dur": dur,
            "args": {key.replace("_", " ") if key == "External_id" else key: value for key, value in args.items()}}


def events():
    """Four steps of 1 ms: 100 us of loading, five operators of 100 us with a launch of 10 us and a kernel of 80 us
    each, 50 us of optimizer, the rest is nobody's."""
    made = [{"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "args": {"name": "python"}},
            {"ph": "M", "name": "thread_name", "pid": 100, "tid": 100, "args": {"name": "thread 100 (python)"}}]
    for step in range(STEPS):
        at, external = step * STEP_US, step * 100
        made.append(x("user_annotation", f"ProfilerStep#{step + 7}", at, STEP_US - 1, External_id=external))
        made.append(x("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 10, 100,
                      External_id=external))
        made.append(x("python_function", "nn.Module: Net_0", at + 115, 620, **{"Python id": 10 * step + 1,
                      "Python parent id": None, "Python module id": 0}))
        made.append(x("python_function", "nn.Module: Linear_0", at + 116, 230, **{"Python id": 10 * step + 2,
                      "Python parent id": 10 * step + 1, "Python module id": 1}))
        for op in range(OPS):
            begin, number = at + 120 + op * 120, external + op + 1
            made.append(x("cpu_op", "aten::mm", begin, 100, External_id=number))
            made.append(x("cuda_runtime", "cudaLaunchKernel", begin + 20.25, 10, External_id=number,
                          correlation=number, cbid=211))
            made.append(x("kernel", "gemm", begin + 40, 80, 0, 7, External_id=number, correlation=number, device=0,
                          stream=7, context=1, grid=[1, 1, 1], block=[128, 1, 1]))
        made.append(x("user_annotation", "Optimizer.step#SGD.step", at + 800, 50, External_id=external))
        made.append({"ph": "i", "s": "t", "name": "[memory]", "pid": 100, "tid": 100, "ts": START_US + at + 130,
                     "args": {"Device Type": 1, "Device Id": 0, "Total Allocated": 1000 * (step + 1),
                              "Total Reserved": 9000, "Bytes": 1000, "Addr": 1}})
    return made


def document(made=None, rank=3):
    about = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
             "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 8}, "host_name": "node7",
             "baseTimeNanoseconds": BASE_NS}
    return json.dumps({**about, "traceEvents": events() if made is None else made, "traceName": "x.json"}, indent=1)
