"""What a kernel over sites is specialised to, and the names that it knows things by."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise import types as t
from lanewise.errors import ArgumentError
from lanewise.frontend.function import Lowered
from lanewise.ir.names import own
from lanewise.lattices.base import Lattice
from lanewise.layouts import Layout
from lanewise.patterns.sitewise.edges import Edges
from lanewise.patterns.sitewise.kinds import Wall
from lanewise.patterns.sitewise.streaming import Phase
from lanewise.record import Leaf
from lanewise.types import Scalar

MARKS, SPECIAL = own("marks"), own("special")
SOLIDS, WALL, ALL = own("solids"), own("wall"), own("all")
NEXT, ARRIVED = own("next"), own("arrived")
PUTS = own("puts")  # whether anything is stored where a site lies


@dataclass(frozen=True, slots=True)
class Update:
    """The function of the sites of a kind; `populations` is the name of its parameter."""

    number: int
    name: str
    lowered: Lowered
    populations: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SitewiseArguments:
    """What a kernel over sites is specialised to.

    updates: the functions of the kinds that occur, kind 0 first. walls: the kinds of walls that occur. solids: some of them
    are sites of the mask. two: load from one copy of the populations and put into another. arrays: parameters with one value
    a site. puts: populations depart; an observer only looks. collects: store the populations that arrive, and apply nothing.
    marked: bits say which sites are special and which are walls; without them every site reads its flags. dense: many sites
    are special. thin: the box is one site wide along some axis. placed: every site computes where it lies, so that faces that
    wrap are nothing special. framed: besides, all sites are of kind 0, so that what is special follows from that, and no mark or
    flags are read. row_block: rows along x are whole blocks of so many sites (0: not known), which makes places cheap.
    moving_sites: walls that move may be sites of the mask.
    """

    lattice: Lattice
    edges: Edges
    phase: Phase
    storage: Scalar
    real: Scalar
    layout: Layout
    updates: tuple[Update, ...]
    walls: tuple[Wall, ...] = ()
    solids: bool = False
    two: bool = False
    arrays: tuple[tuple[str, t.ValueType], ...] = ()
    uniforms: tuple[tuple[str, t.ValueType], ...] = ()
    puts: bool = True
    collects: bool = False
    marked: bool = True
    dense: bool = False
    thin: bool = False
    placed: bool = False
    framed: bool = False
    row_block: int = 0
    moving_sites: bool = True


def population_leaves(lattice: Lattice, storage: Scalar) -> tuple[Leaf, ...]:
    """The record of populations: one leaf a direction."""
    return tuple(Leaf(f"q{q}", storage) for q in range(lattice.size))


def check_uniforms(functions: list[tuple[str, dict[str, t.ValueType]]]) -> dict[str, t.ValueType]:
    """The parameters of all functions of a kernel by name; raises `ArgumentError` where two disagree about a type."""
    found: dict[str, tuple[str, t.ValueType]] = {}
    for function, parameters in functions:
        for name, kind in parameters.items():
            other, known = found.setdefault(name, (function, kind))
            if known != kind:
                raise ArgumentError(f"{name!r} is a {known} of {other} and a {kind} of {function}; wanted one type")
    return {name: kind for name, (_, kind) in found.items()}
