"""One performance problem: one of three transforms works pixel by pixel in Python, and the workers cannot keep up."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def flip(image):
    return image.flip(-1) if torch.rand(()) < 0.5 else image


def normalize(image):
    return (image - image.mean()) / (image.std() + 1e-5)


def vignette(image):
    rows = image.tolist()
    size = len(rows)
    for y in range(size):
        for x in range(size):
            rows[y][x] *= 1 - ((y - size / 2) ** 2 + (x - size / 2) ** 2) / size ** 2
    return torch.tensor(rows)


class Images(Dataset):
    def __init__(self, count, size=80):
        self.images = torch.rand(count, size, size)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        for transform in (flip, vignette, normalize):
            image = transform(image)
        return image, index % 10


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is small
    loader = DataLoader(Images(256), batch_size=16, shuffle=True, num_workers=1, persistent_workers=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(80 * 80, 10))
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(4):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(images), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
