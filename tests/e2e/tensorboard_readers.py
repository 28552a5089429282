"""Run by an interpreter that has the readers: loads a folder as the real programs do, and prints what they see.

usage: tensorboard_readers.py torch_tb_profiler|hta|xprof FOLDER
"""
import glob
import json
import re
import sys


def torch_tb_profiler(folder):
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator
    path, = glob.glob(folder + "/*.pt.trace.json")
    data = RunProfileData.parse("worker", 0, path, folder)
    data.process()
    profile = RunGenerator("worker", 0, data).generate_run_profile()
    columns = [column["name"] for column in profile.overview["steps"]["columns"] if column.get("name")]
    steps = [[row[0]] + [value for value in row[1:] if not isinstance(value, str)]
             for row in profile.overview["steps"]["rows"]]
    operators = {row["name"]: row for row in profile.operation_table_by_name["data"]}
    kernels = profile.kernel_table["data"]["rows"] if profile.kernel_table else []
    modules = [[one.name, one.occurences, one.host_duration, one.self_host_duration, one.device_duration,
                [child.name for child in one.children]] for one in profile.module_stats or []]
    memory = profile.get_memory_stats(memory_metric="K")["rows"] if profile.memory_snapshot else {}
    return {"columns": columns, "steps": steps, "operators": operators, "kernels": kernels, "modules": modules,
            "memory": memory,
            "views": [view.name for view in profile.views]}


def hta(folder):
    from hta.trace_analysis import TraceAnalysis
    analysis = TraceAnalysis(trace_dir=folder)
    (rank, frame), = analysis.t.traces.items()
    names = analysis.t.symbol_table.sym_table
    frame = frame.assign(text=[names[name] for name in frame["name"]])
    totals = frame.groupby("text")["dur"].agg(["count", "sum"])
    seen = {"rank": rank, "iterations": sorted({int(one) for one in frame["iteration"] if one >= 0}),
            "totals": {name: [int(row["count"]), float(row["sum"])] for name, row in totals.iterrows()}}
    if (frame["stream"] > 0).any():
        linked = frame[(frame["stream"] > 0)]
        seen["linked"] = int((linked["index_correlation"] > 0).sum())
        breakdown = analysis.get_temporal_breakdown(visualize=False)
        seen["breakdown"] = json.loads(breakdown.to_json(orient="records"))[0]
    return seen


def xprof(folder):
    from xprof.convert import raw_to_tool_data
    paths = glob.glob(folder + "/plugins/profile/*/*.xplane.pb")
    seen = {"tools": list(raw_to_tool_data.xspace_to_tool_names(paths))}
    for tool in ("trace_viewer", "overview_page", "input_pipeline_analyzer", "kernel_stats"):
        data, _ = raw_to_tool_data.xspace_to_tool_data(paths, tool, {"hosts": [], "host": ""})
        data = data.decode() if isinstance(data, bytes) else data
        seen[tool] = json.loads(re.sub(r"\bNaN\b", "null", data))
    return seen


if __name__ == "__main__":
    print("SEEN " + json.dumps(globals()[sys.argv[1]](sys.argv[2])))
