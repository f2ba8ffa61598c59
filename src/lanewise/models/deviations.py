"""How far predictions for GPUs have been off, by family of naive kernels.

The figures are those of bench/results/zoo_cuda.md and, for kernels over records,
zoo_records_cuda.md: kernels drawn at random, with large arrays and default plans. What is in no
family has no figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanewise.analysis.families import Family

MEASURED_ON = "NVIDIA H200"
# kernels of a family with shares: of fewer, 5 % are less than half a kernel
FEWEST = 10


@dataclass(frozen=True, slots=True)
class Deviation:
    """Predicted over measured times of the kernels of a family: 5 % of them are below `low`, 5 %
    above `high`; of fewer than ten, none are. kernels: how many were measured.
    """

    family: Family
    kernels: int
    low: float
    high: float

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


DEVIATIONS: Mapping[Family, Deviation] = {
    d.family: d
    for d in (
        Deviation("product", 35, 0.87, 1.16),
        Deviation("row", 36, 0.86, 1.18),
        Deviation("stencil", 30, 0.87, 1.14),
        Deviation("window", 31, 0.72, 1.16),
        Deviation("elements", 4, 0.95, 1.43),
        Deviation("pairs", 13, 0.95, 1.29),
    )
}
