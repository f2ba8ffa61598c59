"""What the model says of a bound call: its time and its bound. The one place where ladders meet `models/`."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.kernels.compiled import Call


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds that the model expects, the least seconds that the hardware allows and the unit that takes them; None: unknown."""

    seconds: float | None = None
    bound: float | None = None
    limiter: str | None = None


def predict_call(call: Call, device: str, bodies: int) -> Prediction:
    """The prediction for a call on all pairs of so many bodies."""
    del call, device, bodies
    return Prediction()
