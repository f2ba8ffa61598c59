"""How far predictions have been off, by kind of device and family of naive kernels.

The figures are those of bench/results/zoo_cuda.md, of kernels over records zoo_records_cuda.md, of
searches zoo_walks_cuda.md, and of CPUs zoo_cpu.md: kernels drawn at random, with large arrays and
default plans. What is in no family has no figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lanewise.analysis.families import Family

Kind = Literal["cuda", "cpu"]
MEASURED_ON: Mapping[Kind, str] = {"cuda": "NVIDIA H200", "cpu": "AMD EPYC (one thread)"}
# Predicted seconds of a call from which it is as long as those that were measured
SHORTEST: Mapping[Kind, float] = {"cuda": 20e-6, "cpu": 5e-3}
# kernels of a family with shares: of fewer, 5 % are less than half a kernel
FEWEST = 10


@dataclass(frozen=True, slots=True)
class Deviation:
    """Predicted over measured times of the kernels of a family: 5 % of them are below `low`, 5 %
    above `high`; of fewer than ten, none are. kernels: how many were measured. kind: of the device.
    """

    family: Family
    kernels: int
    low: float
    high: float
    kind: Kind = "cuda"

    @property
    def device(self) -> str:
        """On which they were measured."""
        return MEASURED_ON[self.kind]

    @property
    def of_all(self) -> bool:
        """Whether it is about all of the kernels, as they are few."""
        return self.kernels < FEWEST

    @property
    def shortest(self) -> float:
        """Measured over predicted, of what was fastest for its prediction."""
        return 1 / self.high

    @property
    def longest(self) -> float:
        """The same of what was slowest."""
        return 1 / self.low


DEVIATIONS: Mapping[tuple[Kind, Family], Deviation] = {
    (d.kind, d.family): d
    for d in (
        Deviation("product", 35, 0.87, 1.16),
        Deviation("row", 36, 0.86, 1.18),
        Deviation("stencil", 30, 0.87, 1.14),
        Deviation("window", 31, 0.72, 1.16),
        Deviation("elements", 4, 0.95, 1.43),
        Deviation("pairs", 13, 0.95, 1.29),
        Deviation("searches", 20, 0.47, 1.64),
        Deviation("product", 10, 0.34, 3.70, "cpu"),
        Deviation("row", 16, 1.05, 2.84, "cpu"),
        Deviation("stencil", 9, 0.55, 2.59, "cpu"),
        Deviation("window", 10, 0.25, 1.71, "cpu"),
        Deviation("elements", 10, 0.74, 1.32, "cpu"),
        Deviation("pairs", 13, 0.64, 1.42, "cpu"),
        Deviation("searches", 12, 0.64, 3.19, "cpu"),
    )
}
