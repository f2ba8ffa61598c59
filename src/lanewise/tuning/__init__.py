"""Measure plans on the machine at hand, remember the best one on disk, and use it in later
calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise.launch.tuned_plans import StoreWarning
from lanewise.support.interrupts import imported

if TYPE_CHECKING:
    from lanewise.tuning.measure import KernelMeasurer
    from lanewise.tuning.race import Measurer
    from lanewise.tuning.report import Tuning
    from lanewise.tuning.tune import RecordedMeasurer, RecordedSpace, replay, tune_job

# Every program imports this package, for what was tuned before; few of them tune.
_LATER = {
    "KernelMeasurer": "measure", "Measurer": "race", "RecordedMeasurer": "tune",
    "RecordedSpace": "tune", "replay": "tune", "Tuning": "report", "tune_job": "tune",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'lanewise.tuning' has no attribute {name!r}")
    return getattr(imported(f"lanewise.tuning.{_LATER[name]}"), name)


__all__ = [
    "KernelMeasurer",
    "Measurer",
    "RecordedMeasurer",
    "RecordedSpace",
    "StoreWarning",
    "Tuning",
    "replay",
    "tune_job",
]  # fmt: skip
