"""Accesses as they are away from the edges: where sums that wrap, or that are kept inside,
continue.

load u[(y + h - 1) % h, x]                     ->  load u[y + h - 1, x]
load u[y, clamp(x - 1, 0, w - 1)]              ->  load u[y, x - 1]
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Literal

from lanewise.analysis.affine import AffineAccess, accesses
from lanewise.analysis.dependence import Dependence, dependence
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import rewrite_block

SHORT = 32  # what wraps after fewer elements has no inside to speak of

Edge = Literal["wraps", "ends"]
"""At the edges an index continues at the other side, or stays."""


@dataclass(frozen=True, slots=True)
class EdgedAccess:
    """An access, and as it is away from the edges; edges: of which indices of threads."""

    access: AffineAccess
    inner: AffineAccess
    edges: dict[str, Edge]


def edged_accesses(body: ir.Block, indices: tuple[str, ...]) -> tuple[EdgedAccess, ...]:
    """Every access of a block, in order of text."""
    known, depends = accesses(body, indices), dependence(body, indices)
    wrapped, kept = (
        accesses(rewrite_block(body, lambda e, edges=edges: _passed(e, depends, edges)), indices)
        for edges in ({"wraps"}, {"wraps", "ends"})
    )
    made: list[EdgedAccess] = []
    for places in zip(known, wrapped, kept, strict=True):
        edges: dict[str, Edge] = {}
        for plain, around, inside in zip(*(a.indices for a in places), strict=True):
            form = around if around is not None else inside
            if plain is None and form is not None:
                edges |= dict.fromkeys(
                    (i for i in indices if i in form.variables),
                    "ends" if around is None else "wraps",
                )
        made.append(EdgedAccess(places[0], places[-1] if edges else places[0], edges))
    return tuple(made)


def _passed(e: ir.Expression, depends: Dependence, edges: Container[str]) -> ir.Expression:
    match e:
        case ir.Binary(operator="%", left=left, right=right) if "wraps" in edges:
            few = isinstance(right, ir.Literal) and right.value < SHORT
            return left if e.type.is_integer and not few and not depends.expression(right) else e
        case ir.Call(intrinsic="min" | "max" | "clamp", arguments=arguments) if "ends" in edges:
            moving = [a for a in arguments if depends.expression(a)]
            return moving[0] if e.type.is_integer and len(moving) == 1 else e
        case _:
            return e
