"""Document 003, ModelProfiler: its snippets in its order. They wait until models can be loaded, run and costed."""
from seed_list import waits

for _heading in ("Built-in Profiler", "Performance Benchmarking", "Profiling Workflow", "1. Layer-wise Profiling",
                 "2. Memory Profiling", "3. GPU Profiling", "HTML Report", "JSON Report", "CSV Export",
                 "Automated Profiling", "Performance Regression Detection", "Example Profiling Session"):
    waits("003", _heading, "ModelProfiler")
