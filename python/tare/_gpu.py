"""Load, energy and temperature of a GPU from NVIDIA's driver; its memory is told by _device."""
import ctypes
import os
import threading
import time
from typing import Any, List, Optional, Tuple, Union

from ._core import Missing

_LIBRARY = "libnvidia-ml.so.1"
_UTILIZATION_SAMPLES = 1


class _Sample(ctypes.Structure):
    _fields_ = [("time_us", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong)]


class _Driver:
    """The driver's library, opened once a process."""

    def __init__(self) -> None:
        self.trouble = ""
        name = os.environ.get("TARE_NVML") or _LIBRARY
        try:
            self.library: Any = ctypes.CDLL(name)
        except OSError:
            self.library = None
            self.trouble = f"no NVIDIA driver ({name} was not found)"
            return
        status = self.call("nvmlInit_v2")
        if status:
            self.trouble = f"the NVIDIA driver does not answer: {self.words(status)}"

    def call(self, name: str, *arguments: Any) -> int:
        """The driver's status; 13, its own for a function that is not there, where the library has none."""
        function = getattr(self.library, name, None)
        return 13 if function is None else int(function(*arguments))

    def words(self, status: int) -> str:
        function = getattr(self.library, "nvmlErrorString", None)
        if function is None:
            return f"error {status}"
        function.restype = ctypes.c_char_p
        return f"{(function(status) or b'error').decode(errors='replace')} ({status})"

    def handle(self, device: int) -> Union[ctypes.c_void_p, str]:
        """The device as CUDA counts it; the reason where there is none."""
        if self.trouble:
            return self.trouble
        handle = ctypes.c_void_p()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        names = [name.strip() for name in visible.split(",")] if visible else list(map(str, range(device + 1)))
        if device >= len(names):
            return f"CUDA_VISIBLE_DEVICES names no device {device}"
        if names[device].isdecimal():
            index = ctypes.c_uint(int(names[device]))
            status = self.call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
        else:
            status = self.call("nvmlDeviceGetHandleByUUID", names[device].encode(), ctypes.byref(handle))
        return f"GPU {device}: {self.words(status)}" if status else handle


_driver: Optional[_Driver] = None
_lock = threading.Lock()


def driver() -> _Driver:
    """The driver of this process."""
    global _driver
    with _lock:
        if _driver is None:
            _driver = _Driver()
        return _driver


class Gpu:
    """One device. What the driver cannot tell is Missing.

        gpu = Gpu(0)
        begun = time.time()
        …
        print(gpu.utilization_since(begun))
    """

    def __init__(self, device: int = 0) -> None:
        self.driver = driver()
        found = self.driver.handle(device)
        self.trouble = found if isinstance(found, str) else ""
        self.handle = found

    def _missing(self, status: int) -> float:
        return Missing(self.trouble or f"the driver does not tell: {self.driver.words(status)}")

    def joules(self) -> float:
        """Energy since the driver was loaded."""
        if self.trouble:
            return Missing(self.trouble)
        millijoules = ctypes.c_ulonglong()
        status = self.driver.call("nvmlDeviceGetTotalEnergyConsumption", self.handle, ctypes.byref(millijoules))
        return self._missing(status) if status else millijoules.value / 1e3

    def celsius(self) -> float:
        """Temperature of the chip."""
        if self.trouble:
            return Missing(self.trouble)
        value = ctypes.c_uint()
        status = self.driver.call("nvmlDeviceGetTemperature", self.handle, ctypes.c_int(0), ctypes.byref(value))
        return self._missing(status) if status else float(value.value)

    def _samples(self, since_us: int) -> Tuple[int, List[int]]:
        kind, count = ctypes.c_int(), ctypes.c_uint()
        arguments = (self.handle, ctypes.c_int(_UTILIZATION_SAMPLES), ctypes.c_ulonglong(since_us),
                     ctypes.byref(kind), ctypes.byref(count))
        status = self.driver.call("nvmlDeviceGetSamples", *arguments, None)
        if status or not count.value:
            return status, []
        samples = (_Sample * count.value)()
        status = self.driver.call("nvmlDeviceGetSamples", *arguments, samples)
        known = samples[:count.value]
        return status, [sample.value & 0xffffffff for sample in known if sample.time_us >= since_us]

    def utilization_since(self, begun: float) -> float:
        """Percent of the time since a time.time() in which a kernel ran, by the driver's own samples."""
        if self.trouble:
            return Missing(self.trouble)
        status, values = self._samples(int(begun * 1e6))
        if values:
            return sum(values) / len(values)
        if status == 0 or status == 6:  # none since then
            elapsed = time.time() - begun
            return Missing(f"the driver took no sample of the load in the block's {elapsed:.3f} s")
        return self._missing(status)
