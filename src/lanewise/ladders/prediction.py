"""What the model says of a bound call: its time and its bound. The one place where ladders meet `models/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lanewise.launch.compiled import Call
from lanewise.launch.executable import Executable
from lanewise.models.devices import DeviceModel, device_model
from lanewise.models.predict import predict


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds that the model expects, the least seconds that the hardware allows, and the unit that takes them."""

    seconds: float
    bound: float
    limiter: str


def predict_call(call: Call, model: DeviceModel, bodies: int, values: Mapping[str, float]) -> Prediction:
    """The prediction for a call on all pairs of so many bodies; `values` are those for all elements, by name.

    On a GPU it is timed within a graph, so launches cost what they cost there.
    """
    return predict_executable(call.compiled.executable, model, bodies, values)


def predict_executable(
    executable: Executable, model: DeviceModel, bodies: int, values: Mapping[str, float]
) -> Prediction:
    """The same for what a call launches."""
    environment = {**values, **{c.name: bodies for c in executable.program.reference.counts}}
    found = predict(executable.program, environment, model, [c.resources for c in executable.cubins], in_graph=True)
    return Prediction(found.seconds, found.bound.seconds, found.bound.limiter)


def model_of(device: str, *, serial: bool) -> DeviceModel:
    """The model of a device, or of one core of a CPU."""
    model = device_model(device)
    return replace(model, multiprocessors=1) if serial else model
