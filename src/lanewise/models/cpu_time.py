"""How long a CPU needs for the work of a kernel: its SIMD pipes, its divider, its memory."""

from __future__ import annotations

from lanewise.analysis.regions import KernelWork
from lanewise.models.devices import DeviceModel
from lanewise.models.gpu_time import KernelTime
from lanewise.models.roofline import bound_of


def cpu_kernel_time(work: KernelWork, counts: dict[str, float], device: DeviceModel) -> KernelTime:
    """The time of one kernel on all cores, its elements spread evenly."""
    i = work.instructions
    elements = work.blocks
    lanes = device.fp32_lanes
    units = {
        "fp32": i.unit("fp32") / lanes, "fp64": i.unit("fp64") / device.fp64_lanes,
        "special": i["special"] / device.special_lanes, "integer": (i["integer"] + i["compare"] + i["select"]) / device.int_lanes,
    }  # fmt: skip
    seconds = {u: c * elements / device.cycles for u, c in units.items()}
    bound = bound_of(seconds)
    return KernelTime(bound.seconds, bound, None, 1.0, {"elements": float(elements)})
