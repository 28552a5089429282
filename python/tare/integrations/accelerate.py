"""A tracker for Hugging Face Accelerate: logged values become counters beside the steps.

    accelerator = Accelerator(log_with=TareCallback())
    accelerator.init_trackers("training")
    accelerator.log({"loss": loss.item()}, step=step)
"""
from accelerate.tracking import GeneralTracker, on_main_process

from .. import _core


class TareCallback(GeneralTracker):
    """Records logged numbers as counters over time. Steps are detected under `tare run` as in any loop."""

    name = "tare"
    requires_logging_directory = False
    main_process_only = False

    def __init__(self):
        super().__init__(_blank=True)

    @property
    def tracker(self):
        return _core

    @on_main_process
    def store_init_configuration(self, values):
        pass

    def log(self, values, step=None, **kwargs):
        for name, value in values.items():
            try:
                _core.counter(str(name), float(value))
            except (TypeError, ValueError):
                pass  # text and images cannot be counters
