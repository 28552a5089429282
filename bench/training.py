# training: the small transformer that the torch benchmarks train, and what a benchmark that runs itself as the trained
# program has in common. One process. Must not know what is measured.
"""Imported by bench/python_torch_*.py."""
import importlib.util
import sys
import tempfile

import rows


def transformer(width=128, layers=4):
    """step(batch, labels): one training step on one thread."""
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
    body = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    head = torch.nn.Linear(width, 10)
    optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()])

    def step(batch, labels):
        loss = torch.nn.functional.cross_entropy(head(body(batch).mean(1)), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def same_batch(width=128, layers=4, samples=8, length=32):
    """step() of it, always on the same samples."""
    import torch
    step = transformer(width, layers)
    batch, labels = torch.randn(samples, length, width), torch.randint(0, 10, (samples,))
    return lambda: step(batch, labels)


def main(absent, train, figures):
    """With the word `train` the program itself; else its figures, or the one that says why there are none."""
    if sys.argv[1:2] == ["train"]:
        train(*sys.argv[2:])
    elif not importlib.util.find_spec("torch"):
        absent.reason = "torch is not installed"
        rows.show([absent])
    else:
        with tempfile.TemporaryDirectory() as folder:
            rows.show(figures(folder))
