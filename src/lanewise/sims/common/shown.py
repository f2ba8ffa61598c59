"""Which calls of a product `lanewise explain` compiles and `lanewise tune` measures.

A product's module `explain` makes them; who asked compiles and measures, and a product does
neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import lanewise as lw
from lanewise.explanation.calls import compile_call
from lanewise.explanation.mesh_steps import (
    DividedStep,
    MeshStep,
    RowsTime,
    Sent,
    explain_mesh,
    kernel_time,
    of_process,
)
from lanewise.layouts import Layout
from lanewise.loops.explanation import LoopExplanation

__all__ = [
    "DividedStep",
    "LoopExplanation",
    "MeshStep",
    "Sent",
    "Shown",
    "ShownCall",
    "ShownDivision",
    "ShownSize",
    "TunedCall",
    "explain_mesh",
    "of_process",
    "time_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class ShownCall:
    """A call of a kernel with its arguments, which lie on the host in the layouts of the device.

    requested: fields of the plan that a run fixes. gather_step: how many elements apart neighbours
    read, for predictions.
    """

    kernel: Any
    given: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])
    requested: lw.Plan | None = None
    gather_step: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ShownSize:
    """A kernel for about `count` elements of made-up records, all of them in one layout (None:
    the device's). values, shapes: what is given of the call, by name.
    """

    kernel: Any
    count: int
    layout: Layout | None
    values: Mapping[str, float]
    requested: lw.Plan | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])


Shown = ShownCall | ShownSize


def time_of(call: ShownCall, device: str, *, near: bool) -> RowsTime | None:
    """The predicted time of a call on a kind of device; None: unknown. near: see `RowsTime`."""
    compiled = compile_call(
        call.kernel, *call.given, device=device, gather_step=call.gather_step, **call.named
    )
    return kernel_time(compiled, near=near)


@dataclass(frozen=True, slots=True, eq=False)
class ShownDivision:
    """A step of a product on a mesh. kind: what its rows are. divide: the step on so many parts.
    near: of each call that is shown, whether parts also make it over near rows of others.
    """

    kind: str
    divide: Callable[[int], DividedStep]
    near: tuple[bool, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TunedCall:
    """A call on the device where it is measured. note: for which runs the plan is, where that is
    not plain.
    """

    kernel: Any
    given: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])
    note: str | None = None
