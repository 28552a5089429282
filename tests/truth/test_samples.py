"""Samples that loaders returned: those count that a step trained on, however far ahead of it the loop reads."""
import json

import pytest
from truth import Figure, exact

SAMPLES, EPOCHS = ("run:steps[].numbers[].sum, samples of loaders", "run:epochs[].numbers[].sum, samples of loaders")
FIGURES = [
    Figure(SAMPLES, "samples of the batches that steps trained on", "lengths of the batches given to the model", exact),
    Figure(EPOCHS, "the same of epochs", "lengths of the batches given to the model", exact),
]

# Each loop is in a span of its own, and prints how many steps it did and on how many samples.
LOOPS = """
import itertools, json, sys, torch, tare
from torch.utils.data import DataLoader, Dataset, IterableDataset
torch.set_num_threads(1)
workers = int(sys.argv[1])

class Rows(Dataset):
    def __len__(self):
        return 61
    def __getitem__(self, i):
        return torch.ones(16) * i

class Stream(IterableDataset):
    def __iter__(self):
        return iter([torch.ones(16)] * 61)

def batches(data=Rows(), **more):
    return DataLoader(data, batch_size=8, num_workers=workers, **more)

def ahead(loader, depth):
    held = []
    for batch in loader:
        held.append(batch)
        if len(held) > depth:
            yield held.pop(0)
    yield from held

model = torch.nn.Linear(16, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
done = []

def step(*parts):
    for x in parts:
        model(x).sum().backward()
    opt.step()
    opt.zero_grad()
    done.append(sum(map(len, parts)))

def evaluate():
    model.eval()
    with torch.no_grad():
        for x in DataLoader(Rows(), batch_size=4):
            model(x)
    model.train()

def called_before():
    model(next(iter(batches())))
    for x in batches():
        step(x)

def plain():
    for epoch in range(2):
        for x in batches():
            step(x)

def part():
    for x in itertools.islice(batches(), 5):
        step(x)

def left():
    for i, x in enumerate(batches()):
        if i == 5:
            break
        step(x)

def left_after():
    for i, x in enumerate(batches()):
        step(x)
        if i == 4:
            break

def one_ahead():
    for epoch in range(2):
        for x in ahead(batches(), 1):
            step(x)
        evaluate()

def three_ahead_left():
    for epoch in range(2):
        for i, x in enumerate(ahead(batches(), 3)):
            step(x)
            if i == 3:
                break
        evaluate()

def one_step_ahead():
    for x in itertools.islice(ahead(batches(), 1), 1):
        step(x)

def joined():
    one = iter(batches())
    for a, b in zip(one, one):
        step(torch.cat([a, b]))

def two_loaders():
    for a, b in zip(batches(), batches()):
        step(a, b)

def accumulated(depth=0):
    samples = 0
    for i, x in enumerate(ahead(batches(), depth)):
        model(x).sum().backward()
        samples += len(x)
        if i % 3 == 2:
            opt.step()
            opt.zero_grad()
            done.append(samples)
            samples = 0

def accumulated_ahead():
    accumulated(2)

def asked_before_the_update():
    loader = iter(batches())
    x = next(loader)
    for i in range(5):
        model(x).sum().backward()
        following = next(loader, None)
        opt.step()
        opt.zero_grad()
        done.append(len(x))
        x = following

def stream_ahead():
    for i, x in enumerate(ahead(batches(Stream()), 2)):
        step(x)
        if i == 3:
            break

def workers_that_stay():
    loader = batches(persistent_workers=workers > 0)
    for epoch in range(3):
        for x in itertools.islice(ahead(loader, 1), 4):
            step(x)

true = {}
loops = [called_before, plain, one_ahead, three_ahead_left, accumulated_ahead, stream_ahead]
loops += [workers_that_stay] if workers else [part, left, left_after, one_step_ahead, joined, two_loaders, accumulated,
                                              asked_before_the_update]
for loop in loops:
    done.clear()
    with tare.span(loop.__name__):
        loop()
        evaluate()
    true[loop.__name__] = len(done), sum(done)
print(json.dumps(true))
"""


def samples_of(row):
    return sum(number["sum"] for number in row["numbers"] if number["name"] == "samples")


def steps_inside(report):
    """{name of the outermost span: (steps, samples)}"""
    found, rows = {}, report["spans"]
    for row in rows:
        if row["kind"] != "step" or row["name"] != "step":
            continue
        at = row
        while at["parent"] is not None and at["parent"] >= 0:
            at = rows[at["parent"]]
        steps, samples = found.get(at["name"], (0, 0))
        found[at["name"]] = steps + row["calls"], samples + samples_of(row)
    return found


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_are_trained_on(truth, bench, workers):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(LOOPS, str(workers), report=["--all"])
    true, shown = json.loads(done.out), steps_inside(done.json)
    assert {name: list(value) for name, value in shown.items()} == true
    total = sum(samples for _, samples in true.values())
    truth.check(SAMPLES, samples_of(done.json["steps"][0]), total)
    truth.check(EPOCHS, samples_of(done.json["epochs"][0]), total)


TRAINER = """
import json, logging, os, tare, warnings
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
torch.set_num_threads(1)
from transformers import Trainer, TrainingArguments

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 3)
    def forward(self, inputs=None, labels=None):
        if self.training:
            trained.append(len(inputs))
        out = self.body(inputs)
        return {"loss": torch.nn.functional.cross_entropy(out, labels), "logits": out}

rows = [{"inputs": torch.randn(8), "labels": torch.tensor(i % 3)} for i in range(30)]
true = {}
for name, settings in {
        "stopped": dict(max_steps=5),
        "accumulated": dict(max_steps=5, gradient_accumulation_steps=2, eval_strategy="steps", eval_steps=2),
        "whole": dict(num_train_epochs=2, gradient_accumulation_steps=3, eval_strategy="epoch"),
        "workers": dict(max_steps=3, dataloader_num_workers=2)}.items():
    trained = []
    arguments = TrainingArguments("out", per_device_train_batch_size=4, report_to=[], save_strategy="no", use_cpu=True,
                                  disable_tqdm=True, logging_strategy="no", **settings)
    trainer = Trainer(Net(), arguments, train_dataset=rows, eval_dataset=rows)
    with tare.span(name):
        trainer.train()
    true[name] = trainer.state.global_step, sum(trained)
print(json.dumps(true))
"""

LIGHTNING = """
import json, logging, tare, warnings
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
import lightning, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset
torch.set_num_threads(1)

class Stream(IterableDataset):
    def __iter__(self):
        return iter([torch.ones(8)] * 30)

class Rows(Dataset):
    def __len__(self):
        return 30
    def __getitem__(self, i):
        return torch.ones(8)

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 3)
    def training_step(self, batch, index):
        trained.append(len(batch))
        return self.body(batch).sum()
    def validation_step(self, batch, index):
        self.body(batch)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

true = {}
for name, data, settings in (("stream", Stream(), dict(max_steps=5)), ("whole", Rows(), dict(max_epochs=2)),
                             ("accumulated", Stream(), dict(max_steps=3, accumulate_grad_batches=2))):
    trained = []
    trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, **settings)
    with tare.span(name):
        trainer.fit(Net(), DataLoader(data, batch_size=4), DataLoader(Rows(), batch_size=8))
    true[name] = trainer.global_step, sum(trained)
print(json.dumps(true))
"""


@pytest.mark.parametrize("package, program", [("transformers", TRAINER), ("lightning", LIGHTNING)])
def test_frameworks(truth, bench, package, program):
    pytest.importorskip(package, reason=f"{package} is not installed for this Python")
    done = bench.measured(program, report=["--all"])
    true, shown = json.loads(done.out.splitlines()[-1]), steps_inside(done.json)
    assert {name: list(value) for name, value in shown.items()} == true
    truth.check(SAMPLES, samples_of(done.json["steps"][0]), sum(samples for _, samples in true.values()))
