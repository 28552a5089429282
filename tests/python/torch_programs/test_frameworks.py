"""Lightning, Hugging Face's Trainer and Accelerate under `tare run`: without a callback, and with it. Each test needs
the real package, and is skipped where it is not installed."""
import pytest

pytest.importorskip("torch", reason="torch is not installed for this Python")

QUIET = """
    import logging, os, warnings
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    torch.set_num_threads(1)
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    data = TensorDataset(torch.randn(32, 8), torch.randint(0, 3, (32,)))
"""

LIGHTNING = QUIET + """
    import lightning

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 3)

        def training_step(self, batch, index):
            return nn.functional.cross_entropy(self.body(batch[0]), batch[1])

        def validation_step(self, batch, index):
            self.body(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    callbacks = []
    # callback
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, callbacks=callbacks)
    trainer.fit(Net(), DataLoader(data, batch_size=8), DataLoader(data, batch_size=16))
"""

TRAINER = QUIET + """
    from transformers import Trainer, TrainingArguments

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 3)

        def forward(self, inputs=None, labels=None):
            out = self.body(inputs)
            return {"loss": nn.functional.cross_entropy(out, labels), "logits": out}

    rows = [{"inputs": x, "labels": y} for x, y in data]
    settings = TrainingArguments("out", num_train_epochs=2, per_device_train_batch_size=4, eval_strategy="epoch",
                                 gradient_accumulation_steps=2, report_to=[], save_strategy="no", use_cpu=True,
                                 disable_tqdm=True, logging_strategy="no")
    callbacks = []
    # callback
    Trainer(Net(), settings, train_dataset=rows, eval_dataset=rows, callbacks=callbacks).train()
"""

ACCELERATE = QUIET + """
    from accelerate import Accelerator
    tracker = None
    # callback
    accelerator = Accelerator(cpu=True, log_with=tracker)
    accelerator.init_trackers("training")
    model = nn.Linear(8, 3)
    model, opt, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
                                             DataLoader(data, batch_size=8))
    for epoch in range(2):
        for x, y in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            opt.step()
            accelerator.log({"loss": loss.item(), "note": "text"})
"""

PROGRAMS = {  # name: (package, program, how its callback is made, steps, epochs)
    "lightning": ("lightning", LIGHTNING,
                  "from tare.integrations.lightning import TareCallback; callbacks = [TareCallback()]", 8, 2),
    "trainer": ("transformers", TRAINER,
                "from tare.integrations.transformers import TareCallback; callbacks = [TareCallback()]", 8, 2),
    "accelerate": ("accelerate", ACCELERATE,
                   "from tare.integrations.accelerate import TareCallback; tracker = TareCallback()", 8, 2),
}


@pytest.mark.parametrize("callback", [False, True], ids=["without", "callback"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_and_epochs(bench, name, callback):
    package, program, line, steps, epochs = PROGRAMS[name]
    pytest.importorskip(package, reason=f"{package} is not installed for this Python")
    done = bench.recorded(program.replace("# callback", line if callback else "pass"))
    report = done.report
    assert [(row.name, row.count) for row in report.steps] == [("step", steps)]
    assert [(row.name, row.count) for row in report.epochs] == [("epoch", epochs)]
    inside = {row.name for row in report.spans if row.kind == "phase" and row.depth > 0}
    assert {"forward", "backward", "optimizer"} <= inside
    counted = [number for row in [*report.steps, *report.epochs] for number in row.numbers
               if number["name"] == "samples"]
    assert bool(counted) != (callback and name != "accelerate"), "a callback does not know which batches a step used"
    if name == "accelerate" and callback:
        loss, = [row for row in report.counters if row.name == "loss"]
        assert loss.count == 8
