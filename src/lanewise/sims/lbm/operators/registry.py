"""The collision operators by name, and what each of them takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import lanewise as lw
from lanewise.sims.common.checks import known
from lanewise.sims.lbm.operators.bgk import make_bgk
from lanewise.sims.lbm.operators.kbc import make_kbc
from lanewise.sims.lbm.operators.mrt import make_mrt
from lanewise.sims.lbm.operators.regularised import make_regularised
from lanewise.sims.lbm.operators.trt import make_trt
from lanewise.support.errors import InputError

LATTICES = ("D2Q9", "D3Q19", "D3Q27")


@dataclass(frozen=True, slots=True)
class Operator:
    """A collision operator.

    Attributes:
        maker: (lattice, precision, forced[, eddies]) -> a sitewise function of f, omega and the
          parameters below
        parameters: uniform parameters besides omega, and their defaults
        most: the largest value of its parameters; rates above 2 amplify what they should damp
        eddies: whether it can be combined with Smagorinsky's model
        lattices: the names of the lattices that it is made for
    """

    name: str
    description: str
    maker: Callable[..., Callable[..., Any]]
    parameters: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    most: float = math.inf
    eddies: bool = False
    lattices: tuple[str, ...] = LATTICES

    def refusal(self, name: str, value: float) -> str | None:
        """Why this parameter cannot have this value, or None."""
        if 0 <= value <= self.most:
            return None
        wanted = "zero or more" if math.isinf(self.most) else f"a number from 0 to {self.most:g}"
        return (
            f"the parameter {name} of the collision operator {self.name!r} is {value:g}; wanted "
            f"{wanted}"
        )

    def make(
        self,
        lattice: lw.Lattice,
        precision: str = "f32",
        *,
        forced: bool = False,
        eddies: bool = False,
    ) -> Callable[..., Any]:
        """The function for one lattice and precision ("f32" or "f64"), to be decorated by
        `lw.sitewise(lattice)`.

        Its parameters are f, omega, those of `parameters`, with `forced` the vector `force`, with
        `eddies` the number `smagorinsky`, in this order. The same arguments give the same function.
        Raises `InputError` for what the operator does not have.
        """
        if lattice.name not in self.lattices:
            raise InputError(
                f"the collision operator {self.name!r} is made for {', '.join(self.lattices)}; "
                f"found {lattice.name}"
            )
        if not eddies:
            return self.maker(lattice, precision, forced)
        if not self.eddies:
            able = ", ".join(o.name for o in OPERATORS.values() if o.eddies)
            raise InputError(
                f"the collision operator {self.name!r} is not combined with Smagorinsky's model; "
                f"wanted one of {able}"
            )
        return self.maker(lattice, precision, forced, True)


def _by_name(*operators: Operator) -> Mapping[str, Operator]:
    return MappingProxyType({o.name: o for o in operators})


OPERATORS = _by_name(
    Operator("bgk", "one relaxation time", make_bgk, eddies=True),
    Operator(
        "trt",
        "two relaxation times, walls half-way",
        make_trt,
        MappingProxyType({"magic": 3 / 16}),
        eddies=True,
    ),
    Operator("regularised", "only the stress is kept", make_regularised, eddies=True),
    Operator(
        "mrt",
        "separate rates for shear, bulk and ghosts",
        make_mrt,
        MappingProxyType({"bulk_omega": 1.0, "even_omega": 1.0, "odd_omega": 1.0}),
        most=2.0,
    ),
    Operator("kbc", "entropic: ghosts decay as the entropy wants", make_kbc),
)


def find_operator(name: str) -> Operator:
    """The operator of a name; raises `InputError` for an unknown one."""
    return known("collision operator", name, OPERATORS)
