"""Memory of the GPU: from torch when it uses CUDA, else from the driver, else missing with the reason."""
import sys
import threading
from typing import Any, Dict, List, NamedTuple, Optional

from .. import _core
from .._core import Missing


NO_GPU = -1  # the number of device="cpu"


def number_of(device: Any) -> int:
    """The number in `0`, `"cuda:0"`, `torch.device("cuda", 0)`; None and "cuda" are device 0, "cpu" is NO_GPU. An
    absent GPU is not an error: its figures are missing with the reason."""
    if hasattr(device, "index") and hasattr(device, "type"):  # torch.device
        device = str(device)
    if isinstance(device, str):
        kind, _, index = device.partition(":")
        if kind not in ("cuda", "cpu") or not (index or "0").isdecimal():
            raise ValueError(f"device is a GPU's number, \"cuda\", \"cuda:N\" or \"cpu\", not {device!r}")
        if kind == "cpu":
            return NO_GPU
        device = int(index or 0)
    if device is None:
        return 0
    if isinstance(device, bool) or not isinstance(device, int):
        raise TypeError("device is a GPU's number, \"cuda\", \"cuda:N\" or \"cpu\", "
                        f"not {type(device).__name__}")
    if device < 0:
        raise ValueError(f"a device's number is 0 or more, not {device}")
    return device


def fraction_used(device: int) -> float:
    """The share of a device's memory in use by all processes: 1 - free/total, from CUDA if torch uses it, else from the
    driver."""
    torch = torch_in_use() if device != NO_GPU else None
    if torch is not None:
        try:
            free, total = torch.cuda.mem_get_info(device)
            return 1 - free / total if total else Missing("CUDA tells no total")
        except Exception:  # another CUDA device than the driver's, or an error in torch: the driver is used
            pass
    answer = _core.gpu_memory(device)
    if isinstance(answer, str):
        return Missing(answer)
    return answer[0] / answer[1] if answer[1] else Missing("the driver tells no total")


def torch_in_use() -> Optional[Any]:
    """torch, if the program has loaded it and uses CUDA; initializes nothing."""
    torch = sys.modules.get("torch")
    try:
        return torch if torch is not None and torch.cuda.is_initialized() else None
    except AttributeError:  # partially imported
        return None


def why_not(device: int) -> str:
    """Why a block has no GPU values."""
    torch = sys.modules.get("torch")
    answer = _core.gpu_memory(device)
    if isinstance(answer, str):
        return answer
    if torch is not None and getattr(getattr(torch, "version", None), "cuda", None) is None:
        return "this torch is built without CUDA"
    return "CUDA was not in use"


class Memory(NamedTuple):
    """Bytes of a device, each may be missing."""
    allocated: float
    reserved: float
    peak: float


def memory(device: int) -> Memory:
    """The memory of this process on the device now (from the driver: of all processes)."""
    if device == NO_GPU:
        return _all_missing(why_not(device))
    torch = torch_in_use()
    if torch is not None:
        try:
            return Memory(float(torch.cuda.memory_allocated(device)), float(torch.cuda.memory_reserved(device)),
                          float(torch.cuda.max_memory_allocated(device)))
        except Exception as error:  # an error in the framework must not stop the program
            return _all_missing(f"torch does not report it: {error}")
    if not _core.gpu_used():
        return _all_missing(why_not(device))
    answer = _core.gpu_memory(device)
    if isinstance(answer, str):
        return _all_missing(answer)
    return Memory(float(answer[0]), Missing("the driver knows no reserve of a framework"),
                  Missing("the driver keeps no peak"))


def _all_missing(reason: str) -> Memory:
    missing = Missing(reason)
    return Memory(missing, missing, missing)


def used_bytes(device: int) -> float:
    """The device's memory, whether or not this process uses it."""
    if device != NO_GPU and torch_in_use() is not None:
        return memory(device).allocated
    answer = _core.gpu_memory(device)
    return Missing(answer) if isinstance(answer, str) else float(answer[0])


class Reading:
    """A block's GPU values: added memory, its own peak, its time on the device."""
    __slots__ = ("before", "delta", "peak", "begun", "ended", "early", "used")

    def __init__(self) -> None:
        self.before: float = 0.0
        self.delta: float = Missing("the block has not ended")
        self.peak: float = self.delta
        self.begun: Any = None
        self.ended: Any = None
        self.early = False  # begun before torch used CUDA
        self.used = False   # torch uses CUDA

    def seconds(self) -> float:
        """Time between the block's two marks on the device's own clock. Never waits for the device."""
        if self.ended is None or self.begun is None:
            return Missing(self.delta.reason if isinstance(self.delta, Missing) else
                           HOST_ONLY if self.used else "CUDA was not in use")
        try:
            if not self.ended.query():
                return Missing("the GPU has not finished the block's work yet")
            return float(self.begun.elapsed_time(self.ended)) / 1e3
        except Exception as error:
            return Missing(f"no device time: {error}")


    def is_pending(self) -> bool:
        """Whether the device has not reached the block's end yet."""
        try:
            return self.ended is not None and not self.ended.query()
        except Exception:
            return False


HOST_ONLY = "host time only: the GPU's clock was not read when the block began"


class Peaks:
    """Peaks of blocks that are open at the same time. The framework keeps one high-water mark per device, which is
    reset when a block begins, after it was applied to all open blocks: a child does not affect its parent's peak."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.open: List[Reading] = []
        self.ever = 0.0  # since torch uses CUDA
        self.lock = threading.Lock()

    def begin(self) -> Reading:
        reading = Reading()
        torch = self._torch()
        with self.lock:
            now = memory(self.device)
            self._fold(now.peak)
            reading.before = now.allocated
            reading.peak = now.allocated
            reading.early = torch is None
            if torch is not None:
                _reset_peak(torch, self.device)
            self.open.append(reading)
        if torch is not None:
            reading.begun = self._mark(torch)
        return reading

    def _torch(self) -> Any:
        return None if self.device == NO_GPU else torch_in_use()

    def mark_end(self, reading: Reading) -> None:
        """The block's end on the device's own clock; waits for nothing."""
        torch = self._torch()
        if torch is not None and reading.begun is not None and reading.ended is None:
            reading.ended = self._mark(torch)

    def end(self, reading: Reading) -> None:
        torch = self._torch()
        reading.used = torch is not None
        self.mark_end(reading)
        with self.lock:
            now = memory(self.device)
            self._fold(now.peak)
            if reading in self.open:
                self.open.remove(reading)
            if reading.early and torch is not None:  # all of torch's memory on the GPU was allocated in this block
                reading.before, reading.peak = 0.0, self.ever
        reading.delta = now.allocated - reading.before
        if isinstance(now.peak, Missing):
            reading.peak = now.peak

    def late(self) -> Reading:
        """Values of a block that has ended, and before which no GPU was in use."""
        reading = Reading()
        reading.early = True
        self.end(reading)
        return reading

    def _fold(self, peak: float) -> None:
        if peak > self.ever:
            self.ever = peak
        for reading in self.open:
            if peak > reading.peak:
                reading.peak = peak

    def _mark(self, torch: Any) -> Any:
        try:
            event = torch.cuda.Event(enable_timing=True)
            event.record(torch.cuda.current_stream(self.device))
            return event
        except Exception:  # a missing clock must not stop the program
            return None


def _reset_peak(torch: Any, device: int) -> None:
    try:
        torch.cuda.reset_peak_memory_stats(device)
    except Exception:  # memory() has then reported that torch does not provide it
        pass


_peaks: Dict[int, Peaks] = {}
_lock = threading.Lock()


def peaks(device: int) -> Peaks:
    """One per device for the whole process, like the mark it resets."""
    with _lock:
        return _peaks.setdefault(device, Peaks(device))


# ---- blocks while a GPU is in use ----------------------------------------------------------------------------

class DeviceBlocks:
    """Creates blocks that also read the GPU, and keeps these readings beside the recorder's results."""

    def __init__(self, recorder: Any, device: int, keep: int) -> None:
        self.recorder = recorder
        self.device = device
        self.keep = keep
        self.readings: Dict[int, Any] = {}  # by the id of a result that is kept alive here
        self.lock = threading.Lock()

    def __call__(self, name: str, aggregate: bool = False) -> Any:
        if aggregate:
            return self.recorder.block(name, True)
        return _DeviceBlock(self, self.recorder.block(name))

    def store(self, result: Any, reading: Reading) -> None:
        with self.lock:
            self.readings[id(result)] = (result, reading)
            while len(self.readings) > self.keep:
                self.readings.pop(next(iter(self.readings)))

    def find(self, result: Any) -> Optional[Reading]:
        return self.readings.get(id(result), (None, None))[1]


class _DeviceBlock:
    __slots__ = ("owner", "block", "open")

    def __init__(self, owner: DeviceBlocks, block: Any) -> None:
        self.owner = owner
        self.block = block
        self.open: List[Reading] = []  # entered again while open

    def __enter__(self) -> Any:
        self.open.append(peaks(self.owner.device).begin())
        return self.block.__enter__()

    def __exit__(self, *exception: Any) -> None:
        reading = self.open.pop()
        peaks(self.owner.device).mark_end(reading)
        self.block.__exit__(*exception)
        result = self.owner.recorder.last()
        peaks(self.owner.device).end(reading)
        self.owner.store(result, reading)
