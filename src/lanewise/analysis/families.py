"""Which family of naive kernels a kernel belongs to: over arrays by the accesses of its normal
form, over records by its pattern.

    product   s += a[y, k] * b[k, x]; r[y, x] = s       any two operations; batches, transposes
    row       for k: s += a[y, k]; r[y, 0] = s          each thread goes along its row
    stencil   r[y, x] = a[y, x] + a[y, x + 1] ...       neighbours of a point, also across edges
    window    s += a[c, y + 1, 2 * x] * b[o, c, 3]      neighbours, with weights of each
    elements  p.position += step * p.velocity           each record apart
    pairs     return source.mass * lw.rsqrt(d2)         each record with all others
    searches  search=lw.Neighbors(radius=0.1)           each record with those within a radius
The models' errors were measured by family. What is none of these in all of its accesses has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lanewise.analysis.affine import Affine, AffineAccess, nest_of
from lanewise.analysis.passed_edges import edged_accesses
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.traverse import expressions, statements, subexpressions
from lanewise.language.types import F32, F64

ArrayFamily = Literal["product", "row", "stencil", "window"]
RecordFamily = Literal["elements", "pairs", "searches"]
Family = ArrayFamily | RecordFamily
FEWEST = 3  # places that a stencil reads, and 2 of a window


def family_of(normal: ir.Kernel) -> ArrayFamily | None:
    """The family of a kernel in normal form with a thread for each index, on float32 alone."""
    if not normal.pattern.over_points or any(
        leaf.type != F32 for a in normal.arrays for leaf in a.leaves
    ):
        return None
    indices, body = nest_of(normal)
    found = [e.inner for e in edged_accesses(body, indices)]
    loads, stores = ([a for a in found if a.is_store is written] for written in (False, True))
    irregular = any(isinstance(s, ir.While) for s in statements(body)) or any(
        a.is_scatter or None in a.indices or any(i.scaled for i in a.indices if i is not None)
        for a in found
    )
    if irregular or not loads or not stores:
        return None
    if len(indices) == 1:
        return "row" if _is_row(indices[0], loads, stores) else None
    if any(a.loops or a.reused(indices) for a in stores):
        return None
    if _is_product(indices, loads):
        return "product"
    if _is_stencil(indices, loads):
        return "stencil"
    return "window" if _is_window(indices, loads) else None


def family_of_records(reference: ir.Kernel, *, gridded: bool = False) -> RecordFamily | None:
    """The family of a reference kernel over records that computes nothing in float64.

    Pair functions with loops or tables are in none: they were not measured. gridded: it looks for
    all records within a radius, through a static grid.
    """
    pattern = reference.pattern
    if not (pattern.over_pairs or pattern.one_record or gridded):
        return None
    inner = [s for f in functions(reference.body) for s in statements(f.body)]
    every = [*statements(reference.body), *inner]
    if any(e.type == F64 for s in every for own in expressions(s) for e in subexpressions(own)):
        return None
    if pattern.one_record:
        return "elements"
    plain = not any(isinstance(s, ir.For | ir.While | ir.LoadRecord) for s in inner)
    if not plain:
        return None
    return "searches" if gridded else "pairs"


def _is_row(index: str, loads: Sequence[AffineAccess], stores: Sequence[AffineAccess]) -> bool:
    """Every loop goes along a row that the point has for itself, or along one row for all."""

    def regular(a: AffineAccess) -> bool:
        if not a.loops:
            return a.way(index) in ("row", "next")
        along = len(a.loops) == 1 and a.loops[0].shared and a.way(a.loops[0].variable) == "next"
        return along and (a.way(index) == "row" or (not a.is_store and a.way(index) == "same"))

    long = any(a.loops and a.way(index) == "row" for a in loads)
    return long and all(map(regular, (*loads, *stores)))


def _is_product(indices: tuple[str, ...], loads: Sequence[AffineAccess]) -> bool:
    """Two places in each round of one loop: an index moves the one alone, another the other."""
    read = {(a.array, a.indices): a for a in loads}  # a choice reads what it compared once more
    if len(read) != 2 or any(len(a.loops) != 1 or a.loops != loads[0].loops for a in loads):
        return False
    left, right = (frozenset(a.reused(indices)) for a in read.values())
    return (
        all(_is_bare(i) for a in loads for i in a.indices)
        and all(a.way(loads[0].loops[0].variable) != "same" for a in loads)
        and bool(left - right)
        and bool(right - left)
        and not left & right
    )


def _is_bare(i: Affine | None) -> bool:
    """One variable and nothing else."""
    return i is not None and [c for _, c in i.coefficients] == [1] and not (i.terms or i.constant)


def _is_stencil(indices: tuple[str, ...], loads: Sequence[AffineAccess]) -> bool:
    """Reads near the point alone, of several places of an array."""
    near = all(
        not a.loops
        and len(a.indices) == len(indices)
        and all(
            i is not None and i.coefficients == ((v, 1),)
            for i, v in zip(a.indices, indices, strict=True)
        )
        for a in loads
    )
    return near and any(len(places) >= FEWEST for places in _places(loads).values())


def _is_window(indices: tuple[str, ...], loads: Sequence[AffineAccess]) -> bool:
    """Reads of an image near the point, and of weights that all points of the image share."""
    images = {a.array for a in loads if _sides(a, indices) is not None}
    if len(images) != 1:
        return False
    image = [a for a in loads if a.array in images]
    weights = [a for a in loads if a.array not in images]
    sides = {_sides(a, indices) for a in image}
    if len(sides) != 1 or not weights or len(_places(image)[image[0].array]) < FEWEST - 1:
        return False
    (pair,) = sides
    assert pair is not None
    layers = [v for v in indices if v not in pair]
    return (
        all(len(a.loops) <= 1 and a.loops == image[0].loops for a in loads)
        and all(not set(pair) & i.variables for a in weights for i in a.indices if i is not None)
        and all(not a.reused(tuple(layers)) for a in weights)
        and all(a.reused(tuple(layers)) == tuple(layers) for a in image)
    )


def _sides(a: AffineAccess, indices: tuple[str, ...]) -> tuple[str, str] | None:
    """The two indices that move the last dimensions of an access, each one of them."""
    if len(a.indices) < 2:
        return None
    sides: list[str] = []
    for i in a.indices[-2:]:
        if i is None or len(i.coefficients) != 1 or i.coefficients[0][0] not in indices:
            return None
        sides.append(i.coefficients[0][0])
    return (sides[0], sides[1]) if sides[0] != sides[1] else None


def _places(loads: Sequence[AffineAccess]) -> dict[str, set[tuple[object, ...]]]:
    """The places that are read of each array, apart from the point."""
    places: dict[str, set[tuple[object, ...]]] = {}
    for a in loads:
        own = tuple((i.constant, frozenset(i.terms)) for i in a.indices if i is not None)
        places.setdefault(a.array, set()).add(own)
    return places
