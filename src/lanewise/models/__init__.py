"""What a kernel costs, before it runs.

Of this room others take what is named here: the model of a device (`device_model`, or
`table_model` of one that is not there; `clock_hz` of a CPU), what a compiled program is expected to
take (`predicted`, `certain_bound`, `is_foreseen`), and formulas of papers
(`branch_splitting_speedup`, `unrolling_speedup`).

    compiled = kernel.compile(bodies, bodies)
    predicted(compiled.executable, compiled.environment, device_model("cuda:0")).seconds
"""

from typing import TYPE_CHECKING

from lanewise.support.naming import at_first_use

if TYPE_CHECKING:
    from lanewise.models.devices import DeviceModel, clock_hz, device_model, table_model
    from lanewise.models.formulas import (
        Branch,
        LoopCosts,
        branch_splitting_speedup,
        unrolling_speedup,
    )
    from lanewise.models.modelled import BuiltProgram, certain_bound, is_foreseen, predicted
    from lanewise.models.predict import ALONE_SECONDS, Prediction

__all__ = [
    "ALONE_SECONDS",
    "Branch",
    "BuiltProgram",
    "DeviceModel",
    "LoopCosts",
    "Prediction",
    "branch_splitting_speedup",
    "certain_bound",
    "clock_hz",
    "device_model",
    "is_foreseen",
    "predicted",
    "table_model",
    "unrolling_speedup",
]

__getattr__, __dir__ = at_first_use(
    __name__,
    {
        "devices": ("DeviceModel", "clock_hz", "device_model", "table_model"),
        "formulas": ("Branch", "LoopCosts", "branch_splitting_speedup", "unrolling_speedup"),
        "modelled": ("BuiltProgram", "certain_bound", "is_foreseen", "predicted"),
        "predict": ("ALONE_SECONDS", "Prediction"),
    },
)
"""Asking for a device's model loads no more than that."""
