"""What the models expect of a program, for pruning: the only place where tuning asks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from lanewise.models.devices import DeviceModel, device_model
from lanewise.models.predict import predict
from lanewise.pipeline import Program
from lanewise.target import is_gpu
from lanewise.tuning.job import Job


class Estimator(Protocol):
    """Expected seconds of a program on the job's device and size; None when the models have nothing to say."""

    def seconds(self, program: Program) -> float | None: ...


@dataclass(frozen=True, slots=True)
class ModelEstimator:
    """`models.predict` for one size on one device. Launches count as those of a graph, which is how they are timed."""

    environment: Mapping[str, Any]
    device: DeviceModel

    def seconds(self, program: Program) -> float | None:
        return predict(program, self.environment, self.device, in_graph=is_gpu(self.device.kind)).seconds


def make_estimator(job: Job) -> Estimator:
    """The estimator of a job's device."""
    return ModelEstimator(job.environment, device_model(job.device))
