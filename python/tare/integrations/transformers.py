"""A callback for the Trainer of Hugging Face transformers.

    trainer = Trainer(model, arguments, train_dataset=data, callbacks=[TareCallback()])
"""
from transformers import TrainerCallback

from ._loop import Loop


class TareCallback(TrainerCallback):
    """The Trainer's own steps and epochs. output: records into this file without `tare run`."""

    def __init__(self, output=None):
        self._loop = Loop(output)

    def on_train_begin(self, args, state, control, **kwargs):
        self._loop.begin()

    def on_epoch_begin(self, args, state, control, **kwargs):
        self._loop.epoch_begin(state.epoch or 0)

    def on_step_begin(self, args, state, control, **kwargs):
        self._loop.step_begin(state.global_step)

    def on_step_end(self, args, state, control, **kwargs):
        self._loop.step_end()

    def on_epoch_end(self, args, state, control, **kwargs):
        self._loop.epoch_end()

    def on_train_end(self, args, state, control, **kwargs):
        self._loop.end()
