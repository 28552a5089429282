"""The metrics of a profiled block, in groups; every value may be Missing."""
import dataclasses
from typing import Any, Dict, List, Optional, Tuple

from .._core import Missing
from .._views import html_table
from ._limits import percent
from .metric import plain_apart


class _Group:
    """How all groups are displayed."""

    def to_dict(self) -> Dict[str, Any]:
        """The values by name; None for missing values, and the reasons under "missing".

            json.dumps(profiler.get_metrics().to_dict())
        """
        reasons: Dict[str, str] = {}
        values = plain_apart(self, reasons)
        return {**values, "missing": reasons} if reasons else values

    def _rows(self, prefix: str = "") -> List[Tuple[str, Any]]:
        rows: List[Tuple[str, Any]] = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, _Group):
                rows += value._rows(f"{field.name}.")
            else:
                rows.append((prefix + field.name, value))
        return rows

    def _repr_html_(self) -> str:
        return html_table((), [(name, show(value), value.reason if isinstance(value, Missing) else "")
                               for name, value in self._rows()], left=(0, 2))


def show(value: Any) -> str:
    """A value for display."""
    if isinstance(value, Missing):
        return "n/a"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)


@dataclasses.dataclass(frozen=True)
class MemoryMetrics(_Group):
    """Memory in MB (1024 * 1024 bytes). Peaks are the block's own; of several blocks, the largest. `peak_ram_note` is
    None where peak_ram_mb is exact; else it is a lower bound, and the note states the upper bound and the reason.
    """
    peak_ram_mb: float
    peak_gpu_mb: float
    ram_before_mb: float
    ram_after_mb: float
    growth_mb: float
    average_ram_mb: float
    anonymous_mb: float
    file_mb: float
    peak_ram_note: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class TimingMetrics(_Group):
    """Seconds; of several blocks, the sum and its distribution. `wall_time_s` is time on the host: work that the
    block only queued on a GPU is in `device_time_s`, the time between the block's begin and end on the GPU's clock.
    `cpu_time_s` is the CPU time of the thread that ran the block, `process_cpu_time_s` that of all threads of the
    process meanwhile. `excluded_s` is the time of other measurements inside the block (counting of FLOPs, lines, blocks
    with switches): it was subtracted from all the other times.
    """
    wall_time_s: float
    cpu_time_s: float
    process_cpu_time_s: float
    self_time_s: float
    device_time_s: float
    excluded_s: float
    count: int
    failed: int
    mean_s: float
    min_s: float
    max_s: float
    p50_s: float
    p95_s: float
    p99_s: float


@dataclasses.dataclass(frozen=True)
class ComputeMetrics(_Group):
    """Estimated operations: those of torch's operators with a formula (products, convolutions, attention, recurrent
    layers); missing if none of them ran. `flops_not_counted` names operators that ran and have no formula: the other
    values are then lower bounds. Without `estimate_flops=True`, `module_calls` calls of torch modules are in the
    estimate, `module_calls_counted` of them were counted, and the others are assumed to be equal to those."""
    estimated_flops: float
    flops_per_param: float
    flops_per_second: float
    parameters: float
    gpu_utilization_percent: float
    flops_at_least: bool = False
    flops_not_counted: Tuple[str, ...] = ()
    module_calls: float = Missing("not counted")
    module_calls_counted: float = Missing("not counted")


@dataclasses.dataclass(frozen=True)
class SystemMetrics(_Group):
    """The machine while the block ran. `process_cpu_percent` is that of this process, 100 for one busy CPU. Percentages
    are missing if the block was shorter than 50 ms."""
    cpu_percent: float
    process_cpu_percent: float
    disk_io_wait_percent: float
    disk_io_percent: float
    memory_percent: float
    peak_cpu_percent: float
    peak_memory_percent: float


@dataclasses.dataclass(frozen=True)
class TemperatureMetrics(_Group):
    """Degrees Celsius at the end of the block, and the largest of the samples taken every 0.1 s while it ran."""
    cpu_celsius: float
    cpu_max_celsius: float
    gpu_celsius: float
    gpu_max_celsius: float


@dataclasses.dataclass(frozen=True)
class NetworkMetrics(_Group):
    """Bytes over the machine's interfaces while the block ran, without the loopback."""
    bytes_received: float
    bytes_sent: float


@dataclasses.dataclass(frozen=True)
class EnergyMetrics(_Group):
    """Joules of the whole CPU package and GPU; `covers` names the parts of the total."""
    cpu_joules: float
    gpu_joules: float
    total_joules: float
    covers: Tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class CarbonMetrics(_Group):
    """Grams of CO2 of the measured energy at the given carbon intensity of the grid."""
    grams_co2: float
    intensity_g_per_kwh: float


@dataclasses.dataclass(frozen=True)
class Metrics(_Group):
    """All metrics of a block, or of all blocks of a name.

        metrics = profiler.get_metrics("training")
        print(metrics.timing.wall_time_s, metrics.memory.peak_ram_mb)
    """
    name: str
    memory: MemoryMetrics
    timing: TimingMetrics
    compute: ComputeMetrics
    system: SystemMetrics
    throughput: float
    samples: float
    temperature: TemperatureMetrics
    network: NetworkMetrics
    energy: EnergyMetrics
    carbon: CarbonMetrics
    custom: Dict[str, float] = dataclasses.field(default_factory=dict)  #: of add_hook()


@dataclasses.dataclass(frozen=True)
class SystemStats(_Group):
    """The machine now: percent of its CPUs, of its memory, and of the time its busiest disk works."""
    cpu_percent: float
    memory_percent: float
    disk_io_percent: float
    disk_io_wait_percent: float

    def alerts(self, cpu: Optional[float] = None, memory: Optional[float] = None,
               disk: Optional[float] = None) -> List[str]:
        """Values over their limit, a sentence each. The limits are those of the findings (docs/FINDINGS.md: CPU 90 %,
        memory 85 %, disk 80 %), or the given ones.

            for alert in profiler.get_current_system_stats().alerts():
                print(alert)
        """
        limits = (("the CPUs are", self.cpu_percent, cpu, "CPU_INFO"),
                  ("memory is", self.memory_percent, memory, "MEMORY_INFO"),
                  ("a disk is", self.disk_io_percent, disk, "DISK_BUSY_INFO"))
        found = []
        for what, value, given, name in limits:
            limit = percent(name) if given is None else given
            if value > limit:
                found.append(f"{what} at {value:.0f} % (over {limit:g} %)")
        return found


@dataclasses.dataclass(frozen=True)
class SystemReport(_Group):
    """The machine while blocks ran, by the samples taken then."""
    avg_cpu_percent: float
    peak_cpu_percent: float
    avg_memory_percent: float
    peak_memory_percent: float
    avg_disk_io_percent: float
    peak_disk_io_percent: float
    samples: int
