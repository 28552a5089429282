"""Callbacks for training frameworks. Under `tare run` none is needed: steps and epochs are detected automatically.
With a callback, they are the framework's own, and it can record without `tare run`.

    from tare.integrations.lightning import TareCallback
    from tare.integrations.transformers import TareCallback
    from tare.integrations.accelerate import TareCallback
"""
