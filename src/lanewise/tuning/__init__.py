"""Measure plans on the machine at hand, remember the best one on disk, and use it in later calls."""

from lanewise.tuning.measure import CpuMeasurer, CudaMeasurer, Measurer
from lanewise.tuning.replay import RecordedMeasurer, RecordedSpace, replay
from lanewise.tuning.report import Tuning
from lanewise.tuning.store import StoreWarning
from lanewise.tuning.tune import tune_job

__all__ = [
    "CpuMeasurer",
    "CudaMeasurer",
    "Measurer",
    "RecordedMeasurer",
    "RecordedSpace",
    "StoreWarning",
    "Tuning",
    "replay",
    "tune_job",
]  # fmt: skip
