"""A callback for Lightning.

    trainer = lightning.Trainer(callbacks=[TareCallback()])
"""
try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from ._loop import Loop


class TareCallback(Callback):
    """Lightning's own batches and epochs as steps and epochs. output: records into this file without `tare run`."""

    def __init__(self, output=None):
        super().__init__()
        self._loop = Loop(output)

    def on_train_start(self, trainer, pl_module):
        self._loop.begin()

    def on_train_epoch_start(self, trainer, pl_module):
        self._loop.epoch_begin(trainer.current_epoch)

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self._loop.step_begin(trainer.fit_loop.total_batch_idx)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self._loop.step_end()

    def on_train_epoch_end(self, trainer, pl_module):
        self._loop.epoch_end()

    def on_train_end(self, trainer, pl_module):
        self._loop.end()

    def on_exception(self, trainer, pl_module, exception):
        self._loop.end()
