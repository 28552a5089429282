"""What blocks around queued GPU work tell, and what torch's profiler is added up to, against CUDA events.

usage: python tests/gpu/blocks.py [DEVICE]

Run by tools/gpu-check. A line a check: `ok` or `FAIL`, and what was seen. Exit status 1 when one failed.
"""
import sys
import time

import torch

import tare

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda"
failed = []


def expect(good, what):
    print("%s %s" % ("ok  " if good else "FAIL", what), flush=True)
    if not good:
        failed.append(what)


def queue(matrix, times):
    for _ in range(times):
        matrix @ matrix


def measured(matrix, times):
    """Seconds on the device's clock, by events of our own."""
    begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begun.record()
    queue(matrix, times)
    ended.record()
    torch.cuda.synchronize()
    return begun.elapsed_time(ended) / 1e3


def check_blocks(matrix, times):
    true = measured(matrix, times)
    profiler, monitor = tare.PerformanceProfiler(track_gpu=True), tare.PerformanceMonitor()
    plain = tare.PerformanceProfiler()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    with monitor.track("queues"), profiler.profile("queues"), plain.profile("queues"):
        queue(matrix, times)
    host = time.perf_counter() - begun
    early = profiler.get_metrics().timing.device_time_s
    expect(host < true / 2,
           "the host was done after %.1f ms of %.1f ms: nothing waits for the GPU" % (1e3 * host, 1e3 * true))
    expect(isinstance(early, tare.Missing), "before the GPU is done the device time is %r" % early)
    torch.cuda.synchronize()
    for name, seen in (("PerformanceProfiler", profiler.get_metrics("queues").timing.device_time_s),
                       ("PerformanceMonitor", monitor.get_metrics()[0].device_seconds)):
        expect(abs(seen - true) < 0.15 * true,
               "%s: %.1f ms on the device, events say %.1f ms" % (name, 1e3 * seen, 1e3 * true))
    reason = getattr(plain.get_metrics().timing.device_time_s, "reason", "")
    expect("host time only" in reason, "without track_gpu: %r" % reason)
    expect("host time" in monitor.summary(), "the summary says that it holds host time")


def check_cuda_time(matrix, times):
    made = tare.PyTorchProfiler()
    queue(matrix, 2)
    torch.cuda.synchronize()
    with made.profile():
        queue(matrix, times)
        torch.cuda.synchronize()
    told, true = made.get_profile_summary(), measured(matrix, times)
    expect(told["cuda_time"] <= told["total_time"], "cuda_time %.4f s of %.4f s on one stream"
           % (told["cuda_time"], told["total_time"]))
    expect(abs(told["cuda_time"] - true) < 0.25 * true,
           "cuda_time %.4f s, events say %.4f s" % (told["cuda_time"], true))
    expect(bool(told["top_kernels"]), "kernels: %s" % [row["name"][:40] for row in told["top_kernels"][:3]])


def main():
    torch.cuda.set_device(torch.device(DEVICE if ":" in DEVICE else DEVICE + ":0"))
    matrix = torch.randn(8192, 8192, device=DEVICE)
    times = max(20, int(0.8 / (measured(matrix, 5) / 5)))
    check_blocks(matrix, times)
    check_cuda_time(matrix, max(10, times // 4))
    print("%d failed" % len(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
