"""One performance problem: losses are stored for a plot without detach(), so each retains its autograd graph."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(2048, 32), torch.randn(2048, 1))
    model = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    history = []
    for epoch in range(10):
        for inputs, targets in DataLoader(data, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            history.append(loss)
    print(f"{len(history)} losses, the last is {history[-1].item():.3f}")


if __name__ == "__main__":
    main()
