#!/usr/bin/env python3
"""Six ways to measure the time and memory of a program, on a small regression that needs only Python.

    python examples/performance_monitoring_examples.py            all of them
    python examples/performance_monitoring_examples.py 1 5        some of them

With torch installed, examples 2 and 5 train a torch model instead.
"""
import random
import sys

import tare


# ---- program to measure ------------------------------------------------------------------------------------

def load(rows=4000, seed=0):
    """Random points near a plane."""
    chance = random.Random(seed)
    points = [[chance.random() for _ in range(8)] for _ in range(rows)]
    return points, [sum(point) + chance.gauss(0, 0.01) for point in points]


def scale(points):
    """Scales each column to the range 0 to 1."""
    low = [min(column) for column in zip(*points)]
    high = [max(column) for column in zip(*points)]
    return [[(value - a) / (b - a) for value, a, b in zip(point, low, high)] for point in points]


class Plane:
    """A linear model with a step of gradient descent."""

    def __init__(self, size=8):
        self.weights = [0.0] * size

    def forward(self, points):
        return [sum(weight * value for weight, value in zip(self.weights, point)) for point in points]

    def backward(self, points, errors, rate=0.1):
        for index in range(len(self.weights)):
            slope = sum(error * point[index] for error, point in zip(errors, points)) / len(points)
            self.weights[index] -= rate * slope


def batches(points, targets, size=250):
    for at in range(0, len(points), size):
        yield points[at:at + size], targets[at:at + size]


class TorchPlane:
    """The same in torch."""

    def __init__(self, torch, size=8):
        self.torch = torch
        self.model = torch.nn.Sequential(torch.nn.Linear(size, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)

    def step(self, points, targets, track):
        torch = self.torch
        with track("batch_forward"):
            loss = torch.nn.functional.mse_loss(self.model(torch.tensor(points)).squeeze(1), torch.tensor(targets))
        with track("batch_backward"):
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss  # a tensor, whose value is read only when it is printed


class PlainPlane:
    def __init__(self):
        self.model = Plane()

    def step(self, points, targets, track):
        with track("batch_forward"):
            errors = [guess - target for guess, target in zip(self.model.forward(points), targets)]
        with track("batch_backward"):
            self.model.backward(points, errors)
        return sum(error * error for error in errors) / len(errors)


def trainer():
    try:
        import torch
    except ImportError:
        return PlainPlane()
    torch.manual_seed(0)
    return TorchPlane(torch)


# ---- the examples ------------------------------------------------------------------------------------------

def example_1_basic():
    """Blocks, one by one."""
    monitor = tare.PerformanceMonitor()
    with monitor.track("data loading"):
        points, targets = load()
    with monitor.track("preprocessing"):
        points = scale(points)
    with monitor.track("model forward"):
        Plane().forward(points)
    monitor.print_summary()


def example_2_aggregated():
    """Operations that repeat: only their sums are kept."""
    monitor = tare.PerformanceMonitor()
    points, targets = load()
    model = trainer()
    for _ in range(3):
        for some, wanted in batches(points, targets):
            model.step(some, wanted, lambda name: monitor.track(name, aggregate=True))
    monitor.print_summary(show_aggregate=True)


def example_3_context_manager():
    """One block, printed when it ends."""
    with tare.track_performance("critical_operation"):
        scale(load()[0])
    with tare.track_performance("kept quiet", print_result=False) as block:
        load(rows=100)
    print(f"{block.metric.operation} took {block.metric.duration_seconds * 1e3:.2f} ms")


def example_4_decorator():
    """Every call of a function."""
    @tare.monitor_performance("data processing")
    def process(rows):
        return scale(load(rows)[0])
    for rows in (500, 1000):
        process(rows)


def example_5_training_loop():
    """Batches and epochs of a training loop."""
    monitor = tare.EpochPerformanceMonitor(enabled=True, verbose_batches=2)
    untracked = tare.PerformanceMonitor(enabled=False)
    points, targets = load()
    model = trainer()
    for _ in range(2):
        monitor.on_epoch_start()
        for index, (some, wanted) in enumerate(batches(points, targets)):
            monitor.on_batch_start(index)
            loss = model.step(some, wanted, untracked.track)
            monitor.on_batch_end(index, loss)
        monitor.on_epoch_end()
    stats = monitor.get_statistics()
    print(f"{stats['num_batches']} batches in {stats['num_epochs']} epochs, {stats['avg_batch_time']:.4f}s each")
    for found in monitor.bottlenecks():
        print(found, *found.advice, sep="\n    ")


def example_6_bottlenecks():
    """What takes most of the time, and what to do about it."""
    monitor = tare.PerformanceMonitor()
    with monitor.track("data_loading"):
        points, targets = load(rows=20000)
    with monitor.track("preprocessing"):
        points = scale(points)
    with monitor.track("model_forward"):
        guesses = Plane().forward(points)
    with monitor.track("post_processing"):
        sorted(guesses)
    monitor.print_summary()
    for found in monitor.bottlenecks():
        print(found, *found.advice, sep="\n    ")


EXAMPLES = (example_1_basic, example_2_aggregated, example_3_context_manager, example_4_decorator,
            example_5_training_loop, example_6_bottlenecks)


def main(words):
    wanted = words or [str(number) for number in range(1, len(EXAMPLES) + 1)]
    for word in wanted:
        if not word.isdecimal() or not 1 <= int(word) <= len(EXAMPLES):
            print(f"there is no example {word}; they are 1 to {len(EXAMPLES)}", file=sys.stderr)
            return 2
    for word in wanted:
        example = EXAMPLES[int(word) - 1]
        print(f"\n{word}. {example.__doc__}\n")
        example()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
