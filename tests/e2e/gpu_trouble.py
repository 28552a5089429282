"""Keeps a GPU busy in a pattern: `gpu_trouble.py full|half|gaps SECONDS`. Run by the tests of findings."""
import sys
import time

import torch

mode, seconds = sys.argv[1], float(sys.argv[2])
pattern = {"full": (1.0, 0.0), "half": (0.15, 0.25), "gaps": (1.5, 1.5)}[mode]
matrix = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
end = time.monotonic() + seconds
while time.monotonic() < end:
    stop = time.monotonic() + pattern[0]
    while time.monotonic() < stop:
        for _ in range(20):
            matrix @ matrix
        torch.cuda.synchronize()
    time.sleep(pattern[1])
