"""One performance problem: a recurrence is computed one feature at a time, so that each operator is very small."""
import torch
from torch import nn


class Filter(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weights = nn.Parameter(torch.rand(features))

    def forward(self, signal):
        state = torch.zeros(len(signal))
        columns = []
        for index in range(signal.shape[1]):
            state = state * self.weights[index] + signal[:, index]
            columns.append(state)
        return torch.stack(columns, dim=1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Filter(300)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    signal, targets = torch.randn(16, 300), torch.randn(16, 300)
    for step in range(120):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(signal), targets)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
