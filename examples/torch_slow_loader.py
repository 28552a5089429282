"""One performance problem: each sample comes from slow storage, and the training loop waits for it."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Remote(Dataset):
    """Samples stored on another machine."""

    def __init__(self, count):
        torch.manual_seed(0)
        self.inputs = torch.randn(count, 64)
        self.labels = torch.randint(0, 10, (count,))

    def __len__(self):
        return len(self.inputs)

    def fetch(self, index):
        time.sleep(0.005)  # a round trip to the storage
        return self.inputs[index], self.labels[index]

    def __getitem__(self, index):
        return self.fetch(index)


def main():
    loader = DataLoader(Remote(480), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(3):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(inputs), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
