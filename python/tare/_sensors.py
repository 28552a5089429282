"""Temperature and energy of the CPU, from the files the kernel has for them."""
import glob
import os
from typing import Dict, Optional, Tuple, Union

from ._core import Missing

_CPU_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cputemp")
_CPU_ZONES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal", "acpitz", "soc_thermal")


def _read(path: str) -> Optional[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def _number(path: str) -> Optional[float]:
    try:
        return float(_read(path) or "")
    except ValueError:
        return None


class CpuTemperature:
    """The hottest sensor of the CPU. Which files there are is looked up once.

        CpuTemperature().read()
    """

    def __init__(self, root: str = "/sys") -> None:
        self.paths = []
        for chip in glob.glob(os.path.join(root, "class/hwmon/hwmon*")):
            if _read(os.path.join(chip, "name")) in _CPU_CHIPS:
                self.paths += glob.glob(os.path.join(chip, "temp*_input"))
        if not self.paths:
            for zone in glob.glob(os.path.join(root, "class/thermal/thermal_zone*")):
                if _read(os.path.join(zone, "type")) in _CPU_ZONES:
                    self.paths.append(os.path.join(zone, "temp"))

    def read(self) -> float:
        """Degrees Celsius now."""
        known = [value / 1000 for value in map(_number, self.paths) if value is not None]
        return max(known) if known else Missing("no CPU temperature sensor in /sys/class/hwmon or /sys/class/thermal")


class CpuEnergy:
    """The packages' energy counters (RAPL), which begin again at a limit of their own.

        begun = energy.read()
        …
        joules = energy.since(begun)
    """

    def __init__(self, root: str = "/sys") -> None:
        self.packages = [path for path in sorted(glob.glob(os.path.join(root, "class/powercap/intel-rapl:*")))
                         if (_read(os.path.join(path, "name")) or "").startswith("package")]

    def read(self) -> Union[Dict[str, Tuple[float, float]], Missing]:
        """Each package's (joules, joules at which it begins again)."""
        if not self.packages:
            return Missing("no energy counter of the CPU (/sys/class/powercap)")
        values = {}
        for path in self.packages:
            now, limit = _number(os.path.join(path, "energy_uj")), _number(os.path.join(path, "max_energy_range_uj"))
            if now is None:
                return Missing(f"{path}/energy_uj may not be read; it is root's on most systems")
            values[path] = (now / 1e6, (limit or 0) / 1e6)
        return values

    def since(self, begun: Union[Dict[str, Tuple[float, float]], Missing]) -> float:
        """Joules since a read()."""
        now = self.read()
        if isinstance(begun, Missing):
            return begun
        if isinstance(now, Missing):
            return now
        joules = 0.0
        for path, (value, limit) in now.items():
            spent = value - begun.get(path, (value, 0))[0]
            joules += spent + limit if spent < 0 else spent
        return joules
