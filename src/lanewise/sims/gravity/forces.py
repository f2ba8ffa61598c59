"""Custom forces besides the gravity of the bodies: bound calls that give accelerations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.sims.common.devices import module_of
from lanewise.sims.common.meshes import lies_on, values_in_one_place
from lanewise.sims.gravity.checks import DTYPES
from lanewise.support.attributes import frozen
from lanewise.support.checks import check_fields
from lanewise.support.errors import InputError


@frozen
@dataclass(frozen=True, slots=True)
class Force:
    """A force besides gravity: `Force(halo.bind(bodies, mass=3.0, radius=1.0))`.

    acceleration: a kernel of any pattern, bound to the bodies of the simulation, whose result is
    the acceleration of each body in length / time², shape (n, 3), of the scalar type of forces.
    It runs after every drift, with the new positions. A force that reads velocities reads those at
    half a step, so leapfrog and yoshida4 become methods of first order. energy: a bound kernel for
    the potential energy of each body in that force, including its mass, shape (n,); each body of a
    pair has half. The diagnostics add its sum to the potential energy. Without it the total energy
    is not conserved.
    """

    acceleration: lw.Call
    energy: lw.Call | None = None

    def __post_init__(self) -> None:
        check_fields(self, InputError)


def potential_energy(force: Force) -> float:
    """The sum over the bodies as they are now, in float64."""
    if force.energy is None:
        return 0.0
    force.energy()
    energies = values_in_one_place(force.energy.results[0])
    return float(module_of(energies).sum(energies, dtype=np.float64))


def check_forces(forces: Sequence[Force], bodies: lw.RecordArray, scalar: str) -> None:
    """Refuse calls whose results are none of `bodies`, or of another type than forces have."""
    for number, force in enumerate(forces):
        _check(
            f"forces[{number}].acceleration",
            force.acceleration,
            (len(bodies), 3),
            lies_on(bodies),
            (DTYPES[scalar],),
        )
        if force.energy is not None:
            _check(
                f"forces[{number}].energy",
                force.energy,
                (len(bodies),),
                lies_on(bodies),
                (np.float32, np.float64),
            )


def _check(
    place: str, call: lw.Call, shape: tuple[int, ...], device: str, types: Sequence[Any]
) -> None:
    wanted = (
        f"one array of shape {shape} and {' or '.join(str(np.dtype(t)) for t in types)}, on "
        f"{device}"
    )
    found = f"{len(call.results)} results"
    if len(call.results) == 1:
        result, there = call.results[0], call.compiled.executable.device
        if isinstance(result, lw.SplitArray):
            there = result.mesh.spelling
        if (result.shape, there) == (shape, device) and result.dtype in map(np.dtype, types):
            return
        found = f"an array of shape {result.shape} and {result.dtype}, on {there}"
    raise InputError(f"{place}: {call.compiled.name} gives {found}; wanted {wanted}")
