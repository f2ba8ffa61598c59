"""What a step over the sites of a lattice takes, where nothing but its function is at hand: the
shape of its box, and values, fields and tables by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanewise.explanation.shapes import Shape, text_of, wanted_of_array
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.patterns.sitewise.builder import agreed
from lanewise.patterns.sitewise.lattice_kernel import LatticeKernel
from lanewise.support.attributes import near
from lanewise.support.errors import InputError

SITES = "sites"  # the argument of a call that the sites are
AXES = ("nz", "ny", "nx")


@dataclass(frozen=True, slots=True)
class SiteParameters:
    """What the function of kind 0 takes, and what writes the fields that it reads."""

    values: Mapping[str, t.ValueType]
    fields: Mapping[str, t.Scalar]
    tables: Mapping[str, ArrayType]


def taken_by(kernel: LatticeKernel) -> SiteParameters:
    """What a step of sites of kind 0 takes."""
    kinds = kernel.kinds
    main = kinds.main
    functions = (main, *kinds.writers(main.fields))
    return SiteParameters(
        agreed((f.name, f.parameters) for f in functions),
        {n: k for n, k in main.fields.items() if n not in kinds.state},
        agreed((f.name, f.tables) for f in functions),
    )


def check_values(
    kernel: LatticeKernel,
    taken: SiteParameters,
    values: Mapping[str, float],
    asked: Mapping[str, Shape],
) -> None:
    """Raises `InputError` for a value that there is none of, or that has a shape as well."""
    name = kernel.__name__
    if unknown := [n for n in values if n not in taken.values]:
        names = ", ".join(taken.values) or "no value"
        raise InputError(f"{name} has no value {unknown[0]!r} to set; it has {names}")
    if both := [n for n in values if n in asked]:
        raise InputError(
            f"{name}: {both[0]!r} has a value and a shape; wanted one of them: a value for all, or "
            "one per site"
        )


def shape_of_box(kernel: LatticeKernel, count: int, asked: Mapping[str, Shape]) -> Shape:
    """The shape of the box of about `count` sites; raises `InputError` for shapes that do not fit
    it, or a table.
    """
    taken, dimension = taken_by(kernel), kernel.lattice.dimension
    side = max(1, round(count ** (1 / dimension)))
    shape = asked.get(SITES, (side,) * dimension)
    axes, known = AXES[-dimension:], (SITES, *taken.values, *taken.tables)
    if len(shape) != dimension:
        example = text_of((512,) * dimension)
        raise InputError(
            f"--shape {SITES}={text_of(shape)}: sites of {kernel.lattice.name} have the shape "
            f"({', '.join(axes)}): wanted --shape {SITES}={example}"
        )
    for name, own in asked.items():
        if name in taken.fields:
            raise InputError(
                f"--shape {name}={text_of(own)}: {name} is a field of the sites, which has their "
                "shape: leave it out"
            )
        if name not in known:
            raise InputError(
                f"{kernel.__name__} has no array {name!r} to give a shape{near(name, known) or ';'}"
                f" it has {', '.join(known)}"
            )
        if name in taken.tables:
            _check_table(name, taken.tables[name], own)
        elif name != SITES and own != shape:
            raise InputError(
                f"--shape {name}={text_of(own)}: a value that is one per site has the shape of the "
                f"sites: wanted --shape {name}={text_of(shape)}"
            )
    return shape


def _check_table(name: str, kind: ArrayType, own: Shape) -> None:
    wanted = wanted_of_array(kind)
    if not wanted.fits(len(own)):
        raise InputError(
            f"--shape {name}={text_of(own)}: {name} {wanted.what}: wanted {wanted.sizes}, as in "
            f"--shape {name}={wanted.example}"
        )
