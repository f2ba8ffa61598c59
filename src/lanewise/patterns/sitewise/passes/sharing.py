"""Let the sites of a thread share what they read of each other: the right-hand neighbour of one is
the next of them.

    load t[n#0, 4 records]: a#0, a#1, a#2, a#3; load t[n#0 + ahead#0]: b#0; ...; load t[n#3 +
    ahead#3]: b#3
->  load t[n#0, 4 records]: a#0, a#1, a#2, a#3; b#0 = a#1; b#1 = a#2; b#2 = a#3; load t[n#3 +
ahead#3]: b#3 What is read is known by how far from the first site of the thread it lies along each
axis. Fields of neighbours are read in every direction from one array, populations each from its
own: these have nothing to share. A stencil whose threads loaded every neighbour anew kept the cache
busier than the memory (bench/results/gpu_stencil.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import COPY, copy_of, numbered, original, own
from lanewise.ir.traverse import rewrite_statement
from lanewise.language.types import Scalar
from lanewise.patterns.sitewise.kinds import AXES

SITE = own("n")
STEPS = {
    own(f"{name}.{a}"): (axis, step)
    for axis, a in enumerate(AXES)
    for name, step in (("back", -1), ("ahead", 1))
}
Offset = tuple[int, int, int]  # from the first site of the thread: along x, y, z
Value = tuple[str, str, Offset]  # an array, a leaf of it, and where it is read


def share(
    block: ir.Block, kernel: ir.Kernel, axes: tuple[int, ...] = (0,), sites: int = 1
) -> ir.Block:
    """The block of a thread's sites, numbered along the `axes`, without loads of what it has
    loaded.

    sites: of a row, which are then loaded as a whole as soon as one of them is read.
    """
    types = {
        (a.name, leaf.name): leaf.type for a in kernel.arrays if not a.written for leaf in a.leaves
    }
    return _Sharing(types, axes, sites).block(block, _Loaded())


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The variables that hold values where a statement stands."""

    values: dict[Value, str] = field(default_factory=dict[Value, str])
    branch: bool = False

    def inside(self) -> _Loaded:
        """The same within a branch, where more becomes known than holds behind it."""
        return _Loaded(dict(self.values), True)


@dataclass(frozen=True, slots=True)
class _Sharing:
    types: Mapping[tuple[str, str], Scalar]  # of the leaves that no site writes
    axes: tuple[int, ...]
    sites: int

    @property
    def rows_alone(self) -> bool:
        """Sites of one row share rows that are loaded as a whole: single values are loads of
        special sites, under conditions.
        """
        return self.axes == (0,)

    def block(self, block: ir.Block, loaded: _Loaded) -> ir.Block:
        return tuple(new for s in block for new in self._statement(s, loaded))

    def _statement(self, s: ir.Statement, loaded: _Loaded) -> ir.Block:
        if not isinstance(s, ir.LoadRecord):
            return (rewrite_statement(s, lambda e: e, lambda b: self.block(b, loaded.inside())),)
        each, place = len(s.reads) // s.across, self._place(s.index)
        if place is None or any((s.array, leaf) not in self.types for leaf, _ in s.reads):
            return (s,)
        x, y, z = place
        # of all sites, the leaves of one behind those of the one before
        wanted = {
            name: (s.array, leaf, (x + n // each, y, z)) for n, (leaf, name) in enumerate(s.reads)
        }
        if self.rows_alone and s.across == 1 and isinstance(s.index, ir.Local):
            return (s,)
        if (s.across == 1 or not self.rows_alone) and all(
            v in loaded.values for v in wanted.values()
        ):
            return tuple(
                ir.Assign(name, ir.Local(loaded.values[v], self.types[v[0], v[1]]))
                for name, v in wanted.items()
            )
        if s.across == 1 < self.sites and 0 <= x < self.sites and not loaded.branch:
            row = self._row(s)
            return (*self._statement(row, loaded), *self._statement(s, loaded))
        if s.across > 1 or not self.rows_alone:
            for name, v in wanted.items():
                loaded.values.setdefault(v, name)
        return (s,)

    def _row(self, s: ir.LoadRecord) -> ir.LoadRecord:
        """The load of the whole row that a site, or a neighbour of one, lies in."""
        names = ((n, leaf, name) for n in range(self.sites) for leaf, name in s.reads)
        reads = tuple(
            (leaf, numbered(f"{original(name)}.row", n) + _copies(name)) for n, leaf, name in names
        )
        index = _first(s.index)
        assert index is not None
        return ir.LoadRecord(s.array, index, reads, self.sites)

    def _place(self, index: ir.Expression) -> Offset | None:
        """How far from the first site this is: the site's own place, and one step along some
        axes.
        """
        names = _sum(index)
        if names is None or [original(n) for n in names].count(SITE) != 1:
            return None
        at = [0, 0, 0]
        for name in names:
            if original(name) == SITE:
                numbers = copy_of(name).split(COPY)
                if len(numbers) != len(self.axes):
                    return None
                for axis, number in zip(self.axes, numbers, strict=True):
                    at[axis] += int(number)
            elif original(name) in STEPS:
                axis, step = STEPS[original(name)]
                at[axis] += step
            else:
                return None
        return at[0], at[1], at[2]


def _copies(name: str) -> str:
    """What tells the copy of a variable for a site from those for others."""
    return f"{COPY}{copy_of(name)}"


def _first(e: ir.Expression) -> ir.Expression | None:
    """The place of the first site of a row instead of that of another one, or of a step along the
    row.
    """
    match e:
        case ir.Local(name=name) if original(name) == SITE:
            _, *others = copy_of(name).split(COPY)
            return ir.Local(COPY.join([numbered(SITE, 0), *others]), e.type)
        case ir.Local(name=name) if STEPS.get(original(name), (1, 0))[0] == 0:
            return None
        case ir.Binary(operator="+"):
            left, right = _first(e.left), _first(e.right)
            return right if left is None else left if right is None else build.add(left, right)
        case _:
            return e


def _sum(e: ir.Expression) -> list[str] | None:
    """The variables that are added up, whole blocks of sites as what they are; None for anything
    else.
    """
    match e:
        case ir.Local(name=name):
            return [name]
        case ir.Binary(operator="+"):
            left, right = _sum(e.left), _sum(e.right)
            return None if left is None or right is None else left + right
        case ir.Binary(operator="*", right=ir.Literal()):
            return _sum(e.left)
        case _:
            return None
