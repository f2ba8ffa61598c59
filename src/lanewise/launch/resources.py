"""The resources that a compiled kernel takes, as its user sees them."""

from __future__ import annotations

from typing import Any

from lanewise.language.target import target_of
from lanewise.launch.executable import Executable
from lanewise.runtime.device import get_device
from lanewise.runtime.devices import cpu_threads
from lanewise.runtime.occupancy import LIMITS, occupancy


def kernel_resources(executable: Executable, arch: str | None = None) -> dict[str, Any]:
    """Registers, shared memory, stack, spills and occupancy of the main kernel on CUDA; threads on
    a CPU.
    """
    match target_of(executable.device).name:
        case "cuda":
            arch = arch or get_device(executable.device).architecture()
            grid = executable.program.kernels[0].grid
            assert grid is not None
            r = executable.cubins[0].resources
            result: dict[str, Any] = {
                "registers": r.registers,
                "shared_bytes": r.shared_bytes,
                "stack_bytes": r.stack_bytes,
                "spill_stores": r.spill_stores,
                "spill_loads": r.spill_loads,
                "block": grid.threads,
                "arch": arch,
            }
            if arch in LIMITS:
                result["occupancy"] = occupancy(arch, grid.threads, r.registers, r.shared_bytes)
            return result
        case "cpu":
            return {"threads": cpu_threads()}
        case _:
            return {"threads": 1, "interpreted": True}
