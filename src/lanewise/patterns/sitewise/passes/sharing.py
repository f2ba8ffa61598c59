"""Let the sites of a thread share what they read of each other: the right-hand neighbour of one is the next of them.

    load t[n#0, 4 records]: a#0, a#1, a#2, a#3; load t[n#0 + ahead#0]: b#0; ...; load t[n#3 + ahead#3]: b#3
->  load t[n#0, 4 records]: a#0, a#1, a#2, a#3; b#0 = a#1; b#1 = a#2; b#2 = a#3; load t[n#3 + ahead#3]: b#3
Fields of neighbours are read in every direction from one array, populations each from its own: these have nothing to share. A stencil
whose threads loaded every neighbour anew kept the cache busier than the memory (bench/results/gpu_stencil.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered
from lanewise.ir.traverse import rewrite_statement, writes
from lanewise.types import Scalar

Row = tuple[str, str, ir.Expression]  # an array, a leaf of it, and the place of the first of neighbouring records


def share(block: ir.Block, kernel: ir.Kernel, site: str, sites: int) -> ir.Block:
    """The block of a thread's `sites`, called `site` and numbered, without loads of what it has loaded."""
    types = {(a.name, leaf.name): leaf.type for a in kernel.arrays if not a.written for leaf in a.leaves}
    return _Sharing(types, {numbered(site, r): r for r in range(sites)}, numbered(site, 0)).block(block, _Loaded())


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What is known where a statement stands: rows of values by place, and the variables that are a number."""

    rows: dict[Row, tuple[str, ...]] = field(default_factory=dict[Row, tuple[str, ...]])
    numbers: dict[str, int] = field(default_factory=dict[str, int])

    def inside(self) -> _Loaded:
        """The same within a branch, where more becomes known that nobody knows behind it."""
        return _Loaded(dict(self.rows), dict(self.numbers))


@dataclass(frozen=True, slots=True)
class _Sharing:
    types: Mapping[tuple[str, str], Scalar]  # of the leaves that no site writes
    lanes: Mapping[str, int]
    first: str

    def block(self, block: ir.Block, loaded: _Loaded) -> ir.Block:
        return tuple(self._statement(s, loaded) for s in block)

    def _statement(self, s: ir.Statement, loaded: _Loaded) -> ir.Statement:
        match s:
            case ir.Assign(value=ir.Literal(value=int() as number)) if not isinstance(number, bool):
                loaded.numbers[s.name] = number
            case ir.LoadRecord(across=across) if across > 1:
                each = len(s.reads) // across
                for n, (leaf, _) in enumerate(s.reads[:each]):
                    loaded.rows[s.array, leaf, s.index] = tuple(name for _, name in s.reads[n::each])
            case ir.LoadRecord(reads=((leaf, name),)) if (s.array, leaf) in self.types:
                if (value := self._value(s, leaf, loaded)) is not None:
                    return ir.Assign(name, value)
            case _:
                for name in writes(s):
                    loaded.numbers.pop(name, None)
                return rewrite_statement(s, lambda e: e, lambda b: self.block(b, loaded.inside()))
        return s

    def _value(self, s: ir.LoadRecord, leaf: str, loaded: _Loaded) -> ir.Expression | None:
        """The variable that has been loaded from this place."""
        match s.index:
            case ir.Binary(
                operator="+", left=ir.Binary(operator="+", left=ir.Local() as at, right=ir.Local() as move), right=far
            ):
                base: ir.Expression = build.add(ir.Local(self.first, at.type), far)
            case ir.Binary(operator="+", left=ir.Local() as at, right=ir.Local() as move):
                base = ir.Local(self.first, at.type)
            case _:
                return None
        if at.name not in self.lanes or move.name not in loaded.numbers:
            return None
        lane, row = self.lanes[at.name] + loaded.numbers[move.name], loaded.rows.get((s.array, leaf, base))
        return ir.Local(row[lane], self.types[s.array, leaf]) if row is not None and 0 <= lane < len(row) else None
