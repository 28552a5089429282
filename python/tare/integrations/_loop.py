"""Shared code of the callbacks: reports a framework's own steps and epochs as they happen."""
from .. import _core


class Loop:
    """Steps and epochs of a framework. While these are reported from here, none are inferred from torch."""

    def __init__(self, output=None):
        self._output = output
        self._started = self._step = self._epoch = False

    def begin(self):
        if self._output is not None and not _core.recording():
            _core.start(self._output)
            self._started = True
        _core.torch_hand_over(True)
        # It reads ahead, and evaluates in between: it is unknown which batches a step used.
        _core.torch_count_samples(False)

    def epoch_begin(self, index):
        self.epoch_end()
        _core.epoch_begin(int(index))
        self._epoch = True

    def epoch_end(self):
        self.step_end()
        if self._epoch:
            _core.epoch_end()
        self._epoch = False

    def step_begin(self, index):
        self.step_end()
        _core.step_begin(int(index))
        self._step = True

    def step_end(self):
        if self._step:
            _core.step_end()
        self._step = False

    def end(self):
        self.epoch_end()
        _core.torch_count_samples(True)
        _core.torch_hand_over(False)
        if self._started:
            _core.stop()
        self._started = False
