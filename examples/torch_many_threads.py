"""One performance problem: the number of threads was set for a larger machine, and they compete for the cores."""
import os

import torch
from torch import nn

torch.set_num_threads(8 * len(os.sched_getaffinity(0)))


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(512, 512), torch.randn(512, 512)
    for step in range(200):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
