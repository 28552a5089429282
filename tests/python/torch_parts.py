"""Small models and loaders for the tests that need torch; without torch these tests are skipped, and say so."""
import os

import pytest

# Some virtual machines advertise AMX and forbid it: torch's bfloat16 would end the process. Set before torch looks.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402


class Spin:
    """Work of a known length, in a transform: so many milliseconds of sleep."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.calls = 0

    def __call__(self, value):
        import time
        self.calls += 1
        time.sleep(self.seconds)
        return value


class Slow(Dataset):
    """Samples that take their time: to read, and to transform."""

    def __init__(self, count=24, read_s=0.0, transform=None):
        self.count, self.read_s, self.transform = count, read_s, transform

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        import time
        time.sleep(self.read_s)
        value = torch.full((4,), float(index))
        return self.transform(value) if self.transform is not None else value


def mlp(inputs=16, outputs=3):
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(inputs, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(),
                               torch.nn.Dropout(0.2), torch.nn.Linear(32, outputs))


def convolutional():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3),
                               torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 3))


def labelled(count=48, batch=8, inputs=16, **more):
    torch.manual_seed(2)
    data = TensorDataset(torch.randn(count, inputs), torch.randint(0, 3, (count,)))
    return DataLoader(data, batch_size=batch, **more)


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(before, model):
    after = model.state_dict()
    return before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
