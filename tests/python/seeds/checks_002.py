"""Document 002, profiling with torch's profiler, TensorFlow and TensorBoard: its snippets in its order."""
import re

import tare

import seed_fill as fill
from seed_list import check, waits

waits("002", "Basic Profiling", "torch's profiler")
waits("002", "Profiler Configuration", "torch's profiler")
waits("002", "Profile Inference", "torch's profiler")
waits("002", "Analyze Profile Data", "torch's profiler")
waits("002", "Profile with Callback", "TensorFlow")
waits("002", "Programmatic Profiling", "TensorFlow")
waits("002", "Profile Custom Training Loop", "TensorFlow")
waits("002", "Monitor GPU Usage", "torch's profiler")
waits("002", "Optimize GPU Utilization", "GPU")
waits("002", "Reduce CPU-GPU Synchronization", "GPU")
waits("002", "Track Memory Allocation", "torch's profiler")
waits("002", "Find Memory Leaks", "GPU")


@check("002", "Optimize Memory Usage", needs=("torch",))
def memory(snippet):
    """Accumulated gradients and checkpointing, measured: results are those of the same code unmeasured."""
    torch = fill.torch
    model, steps = fill.model(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = optimizer.step
    optimizer.step = lambda: (steps.append(1), step())
    profiler = tare.PerformanceProfiler()
    with profiler.profile("training"):
        done = snippet.run(torch=torch, model=model, optimizer=optimizer, train_loader=fill.batches(8),
                           criterion=torch.nn.CrossEntropyLoss(), target=fill.target(),
                           intermediate_tensor=torch.zeros(4))
    assert len(steps) == 8 // done["accumulation_steps"] == 2
    assert "intermediate_tensor" not in done.names
    batch = fill.batch()
    assert torch.equal(done["custom_forward"](model, batch), model(batch))
    metrics = profiler.get_metrics("training")
    assert metrics.timing.wall_time_s > 0 and metrics.memory.peak_ram_mb >= metrics.memory.ram_before_mb


waits("002", "Identify Slow Operations", "torch's profiler")


@check("002", "Optimize Data Loading", needs=("torch",))
def loading(snippet):
    """What the document calls good runs and is timed as tare times it; of what it calls bad, tare says so."""
    torch = fill.torch
    profiler = tare.PerformanceProfiler()
    with profiler.profile("loading"):
        done = snippet.run(torch=torch, dataset=fill.dataset(96))
    seconds, = re.findall(r"\A[\w ]+: (\d+\.\d\d)s\n\Z", done.out)
    assert profiler.get_metrics("loading").timing.wall_time_s >= float(seconds) - 0.01
    single = done["train_loader"]
    assert single.num_workers == 0 and len(single) == 3
    parts = tare.CodeProfiler(tare.ProfilingConfig(save_profiles=False)).data_loading_profiler
    stats = parts.profile_dataloader(single, 3)
    assert stats["total_batches"] == 3 and stats["throughput"] > 0
    slow = {**stats, "avg_loading_time": 10.0, "throughput": 0.1}
    assert any("worker" in found for found in parts.identify_bottlenecks(slow))
    advised = parts.optimize_dataloader(single, slow)
    assert advised["num_workers"] >= 1
    options = {"batch_size": 32, **advised}
    assert isinstance(torch.utils.data.DataLoader(fill.dataset(96), **options), torch.utils.data.DataLoader)


waits("002", "Profile Specific Operations", "torch's profiler")
waits("002", "Mixed Precision Training", "GPU")
waits("002", "Kernel Fusion", "GPU")
waits("002", "Reduce Host-Device Transfers", "GPU")
waits("002", "Batch Size Optimization", "torch's profiler")
waits("002", "1. Profile Representative Workloads", "torch's profiler")
waits("002", "2. Profile Periodically", "torch's profiler")
waits("002", "3. Compare Before/After Optimizations", "torch's profiler")
waits("002", "4. Profile Inference", "torch's profiler")
