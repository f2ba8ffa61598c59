"""Which calls of a product `lanewise explain` compiles and `lanewise tune` measures.

A product's module `explain` makes them; who asked compiles and measures, and a product does
neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import lanewise as lw
from lanewise.explanation.calls import compile_call
from lanewise.explanation.mesh_kernels import kernel_time
from lanewise.explanation.mesh_scaling import Divide, DividedStep, PartWork, RowsDivided
from lanewise.explanation.mesh_sites import box_division
from lanewise.explanation.mesh_steps import MeshStep, explain_mesh
from lanewise.launch.sent import Law, RowsToAll, Sent, even
from lanewise.layouts import Layout
from lanewise.loops.explanation import LoopExplanation
from lanewise.patterns.sitewise.blocks import least_side
from lanewise.runtime.mesh import listed

__all__ = [
    "DividedStep",
    "Law",
    "LoopExplanation",
    "MeshStep",
    "RowsDivided",
    "RowsToAll",
    "Sent",
    "Shown",
    "ShownCall",
    "ShownDivision",
    "ShownSize",
    "ShownWork",
    "TunedCall",
    "box_division",
    "even",
    "explain_mesh",
    "least_side",
    "listed",
    "work_of",
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


def work_of(call: ShownCall, device: str, *, near: bool) -> PartWork:
    """What a call costs on a kind of device, predicted. near: see `ShownWork`."""
    compiled = compile_call(
        call.kernel, *call.given, device=device, gather_step=call.gather_step, **call.named
    )
    subject, program = compiled.subject, compiled.executable.program
    return kernel_time(subject, program, compiled.launches, near=near)


@dataclass(frozen=True, slots=True, eq=False)
class ShownWork:
    """A call of a step on a mesh. near: whether parts also make it over near rows of others.
    pairs: whether each row meets all rows; then parts of GPUs share its pairs, where one GPU does
    so. times: in a step.
    """

    call: Shown
    near: bool = False
    pairs: bool = False
    times: float = 1


@dataclass(frozen=True, slots=True, eq=False)
class ShownDivision:
    """A step of a product on a mesh. kind: what its rows are. divide: the step on so many parts, of
    as many rows in all; grow: of as many in each part as `parts` have. works: what parts launch.
    """

    kind: str
    divide: Divide
    grow: Divide
    works: tuple[ShownWork, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TunedCall:
    """A call on the device where it is measured. note: for which runs the plan is, where that is
    not plain.
    """

    kernel: Any
    given: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])
    note: str | None = None
