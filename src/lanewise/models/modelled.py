"""What the models say of a program that is compiled: the time that they expect, and the least that
the hardware allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from lanewise.compiler.pipeline import Program
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.models.devices import DeviceModel
from lanewise.models.least import reported_bound
from lanewise.models.predict import Prediction, Taken, predict
from lanewise.models.roofline import RooflineBound


class BuiltKernel(Protocol):
    """A kernel as its compiler left it."""

    @property
    def resources(self) -> Taken:
        """What it takes of a device."""
        ...


class BuiltProgram(Protocol):
    """A program with what its compiler found, as `lw.Compiled.executable`."""

    @property
    def program(self) -> Program:
        """Its kernels, and their plan."""
        ...

    @property
    def cubins(self) -> Sequence[BuiltKernel]:
        """Its kernels on a GPU; none on a CPU."""
        ...


def predicted(
    built: BuiltProgram,
    environment: Mapping[str, object],
    device: DeviceModel,
    *,
    in_graph: bool = True,
) -> Prediction:
    """The time of a program for given counts and uniform arguments (`lw.Compiled.environment`).

    in_graph: its launches are part of a graph.
    """
    resources = [cubin.resources for cubin in built.cubins]
    return predict(built.program, environment, device, resources, in_graph=in_graph)


def certain_bound(
    built: BuiltProgram,
    environment: Mapping[str, object],
    device: DeviceModel,
    prediction: Prediction,
) -> RooflineBound | None:
    """The least time of the same; None where loops that data decide, or a device whose rates are
    not nominal, leave it open.
    """
    return reported_bound(built.program, environment, device, prediction.unknown)


def is_foreseen(built: BuiltProgram) -> bool:
    """Whether the models know how often its loops run."""
    return not any(
        isinstance(s, ir.While) for k in built.program.kernels for s in statements(k.body)
    )
