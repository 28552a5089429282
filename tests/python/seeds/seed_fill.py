"""What stands in for the documents' placeholders: real small models and data of torch where it is installed, and
plain Python that computes the same where it is not."""
import contextlib
import math
import random
import time

try:
    import torch
except ImportError:
    torch = None

MB = 1024 * 1024
INPUTS, CLASSES = 8, 4


@contextlib.contextmanager
def one_thread():
    """Threads of torch that wait for each other on a busy machine are not what is measured."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def spin(seconds):
    """Keeps a CPU busy that long, and says how long it really was."""
    begun = time.perf_counter()
    value = 0.0
    while time.perf_counter() - begun < seconds:
        value += math.sqrt(len(str(value)))
    return time.perf_counter() - begun


def nap(seconds):
    """Waits that long, and says how long it really was."""
    begun = time.perf_counter()
    time.sleep(seconds)
    return time.perf_counter() - begun


def touched(megabytes):
    """Memory that is really there."""
    return b"\1" * (megabytes * MB)


class Slow:
    """A function for a placeholder: counts its calls, keeps what they were given, and takes a little while."""

    def __init__(self, seconds=0.002, gives=None, keeps_mb=0):
        self.seconds, self.gives, self.keeps_mb = seconds, gives, keeps_mb
        self.calls, self.spent, self.kept, self.given = 0, 0.0, [], []

    def __call__(self, *given, **named):
        begun = time.perf_counter()
        self.calls += 1
        self.given.append((given, named))
        if self.keeps_mb:
            self.kept.append(touched(self.keeps_mb))
        spin(self.seconds)
        value = self.gives(*given, **named) if callable(self.gives) else self.gives
        self.spent += time.perf_counter() - begun
        return value


class PlainModel:
    """A linear layer in plain Python, with as much of a module's ways as the documents use."""

    def __init__(self, inputs=INPUTS, outputs=CLASSES, seed=0):
        chance = random.Random(seed)
        self.weights = [[chance.uniform(-1, 1) for _ in range(inputs)] for _ in range(outputs)]
        self.training, self.calls = True, 0

    def __call__(self, batch):
        self.calls += 1
        return [[sum(a * b for a, b in zip(row, sample)) for row in self.weights] for sample in batch]

    def train(self, mode=True):
        self.training = mode
        return self

    def eval(self):
        return self.train(False)

    def parameters(self):
        return [value for row in self.weights for value in row]


def plain_batch(size=16, inputs=INPUTS, seed=0):
    chance = random.Random(seed)
    return [[chance.uniform(-1, 1) for _ in range(inputs)] for _ in range(size)]


def model(inputs=INPUTS, outputs=CLASSES, hidden=16):
    if torch is None:
        return PlainModel(inputs, outputs)
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(inputs, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, outputs))


def batch(size=16, inputs=INPUTS):
    return torch.randn(size, inputs) if torch else plain_batch(size, inputs)


def batches(count=4, size=16):
    return [batch(size) for _ in range(count)]


def target(size=16):
    return torch.randint(0, CLASSES, (size,))


def dataset(count=64, labels=True):
    """A dataset of torch, of samples or of (sample, label)."""
    class Samples(torch.utils.data.Dataset):
        def __len__(self):
            return count

        def __getitem__(self, index):
            sample = torch.full((INPUTS,), float(index % 7))
            return (sample, index % CLASSES) if labels else sample
    return Samples()


def loader(count=64, size=16, labels=True, **options):
    return torch.utils.data.DataLoader(dataset(count, labels), batch_size=size, **options)


def train_epoch(net, data):
    """One epoch of a real training of torch: what the loss was first and last."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for samples, labels in data:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(samples), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Estimator:
    """A model with fit and predict; what it learned stays in memory."""

    def __init__(self, keeps_mb=0):
        self.keeps_mb, self.learned, self.spent = keeps_mb, None, 0.0

    def fit(self, samples, answers):
        begun = time.perf_counter()
        mean = sum(answers) / len(answers)
        spin(0.005)
        self.learned = (mean, touched(self.keeps_mb))
        self.spent = time.perf_counter() - begun
        return self

    def predict(self, samples):
        return [0.0 if self.learned is None else self.learned[0] for _ in samples]
