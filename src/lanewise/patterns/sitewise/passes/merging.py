"""Let a thread update several sites that lie side by side: what they share is computed once, what
is theirs alone is moved together.

    parallel for n: y = row(n) % ny; if y == 0: load f[n].q4  else: load f[n - nx].q3; f.q3 = ...;
    apply; store next[n]
->  parallel for group: n#0 = 2 group; n#1 = 2 group + 1; y = row(n#0) % ny
        if y == 0: load f[n#0, 2 records].q4  else: load f[n#0 - nx, 2 records].q3; f.q3#0 = ...;
        f.q3#1 = ... apply#0; apply#1; store next[n#0, 2 records]
Rows are whole blocks of sites, so the sites of a thread lie in one row: only the first of them can
be the first site of the row, and only the last one the last. Populations that come straight from
besides the row, or from the sites themselves, are loaded with one access for all of them, and all
are stored so: with two bytes a population, single accesses are too small to reach the bandwidth of
memory.

A thread passes over its sites when all of them are walls. Where only some are, these are computed
along, and their zeros are stored again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import cast

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.functions import arrays_touched, functions
from lanewise.ir.names import COUNT, numbered, own
from lanewise.ir.traverse import (
    reads,
    rename,
    rewrite,
    rewrite_statement,
    statements,
    used_by,
    used_in,
    writes,
    written_in,
)
from lanewise.language.types import BOOL
from lanewise.passes.base import refuse
from lanewise.passes.constant_folding import fold_block
from lanewise.passes.thread_merging import varying_names
from lanewise.patterns.sitewise.builder import NEXT, PUTS, WALL
from lanewise.patterns.sitewise.links import ROW, at_face, rest_of
from lanewise.patterns.sitewise.passes import sharing

MOST = 4  # sites per thread: a vector of 4 is the widest
# by neighbours: the number of their row, and whether their sector is written
SHARED = (rest_of(0).name, PUTS)
NO_ROWS = (
    "its sites follow no links to rows whose sites are whole blocks of the layout, side by side in "
    "memory"
)


def legal(kernel: ir.Kernel, sites: int) -> str | None:
    """Why the pass does not apply, or None."""
    if sites < 1 or sites > MOST or sites & (sites - 1):
        return f"a thread updates 1, 2 or 4 sites; {sites} were requested"
    if (
        len(kernel.body) != 1
        or not isinstance(kernel.body[0], ir.Parallel)
        or kernel.grid is not None
    ):
        return "its sites are already mapped to threads"
    if ROW not in {c.name for c in kernel.counts} or COUNT not in reads(kernel.body[0].extent):
        return NO_ROWS
    walls = any(WALL in writes(s) for s in statements(kernel.body))
    if walls and any(arrays_touched(f.body) for f in functions(kernel.body)):
        return (
            "the walls among its sites are computed along, and would read tables wherever their "
            "populations lead"
        )
    arrangement = kernel.arrays[0].arrangement
    widths = {b.width for b in arrangement.buffers}
    if all(arrangement.lies_beside(s, sites) for s in arrangement.slots):
        # an array a field: its rows are whole vectors of the most sites that a thread may have
        return None
    if any(w % sites for w in widths):
        return f"{sites} sites are no part of the {min(widths)} that lie side by side"
    return None


def is_first(kernel: ir.Kernel) -> bool:
    """Whether it is the step of two copies after populations were set, which follows no links: it
    is done once, one site a thread.
    """
    whole = (
        s
        for s in statements(kernel.body)
        if isinstance(s, ir.LoadRecord) and s.array == kernel.arrays[0].name
    )
    return NEXT in {a.name for a in kernel.arrays} and any(len(s.reads) > 1 for s in whole)


def apply(kernel: ir.Kernel, sites: int) -> ir.Kernel:
    """`sites` neighbours a thread; 1 leaves the kernel as it is."""
    if reason := legal(kernel, sites):
        raise refuse("thread merging", kernel, reason)
    loop = kernel.body[0]
    assert isinstance(loop, ir.Parallel)
    if sites == 1:
        return kernel
    group = ir.Local(own("group"), loop.extent.type)
    first = build.multiply(group, sites)
    starts = (ir.Assign(numbered(loop.variable, r), build.add(first, r)) for r in range(sites))
    merged = sharing.share(
        Merge(0, sites, varying_names(loop, SHARED), loop.variable).block(loop.body), kernel
    )
    body = (ir.Parallel(group.name, build.divide(loop.extent, sites), (*starts, *merged)),)
    return replace(kernel, body=body)


class Merge:
    """Repeats what differs between the sites of a thread along an axis, and widens what they move
    together.

    varying: the variables that differ between them. site: the variable of the site, where they lie
    side by side in memory.
    """

    def __init__(self, axis: int, sites: int, varying: set[str], site: str | None = None) -> None:
        self.site, self.sites, self.varying = site, sites, varying
        self.walls: list[ir.Local] = []  # of the sites, where some of them may be walls
        # who can lie at the ends of a row
        ends = {at_face(axis, -1).name: 0, at_face(axis, 1).name: sites - 1}
        self.never = tuple(
            frozenset(n for n, r in ends.items() if r != site) for site in range(sites)
        )

    def block(self, block: ir.Block) -> ir.Block:
        done, zeros = list[ir.Statement](), dict[str, ir.Literal]()
        for s in block:
            match s:
                case ir.Assign(value=ir.Literal() as value):
                    zeros[s.name] = value
                    done += self._statement(s)
                case ir.If(condition=ir.Unary(operator="not", operand=ir.Local(name=name))) if (
                    name == WALL
                ):
                    done += self._unless_walls(s, zeros)
                case _:
                    done += self._statement(s)
        return tuple(done)

    def apart(self, block: ir.Block) -> ir.Block:
        """All of one site, then all of the next one: what the first has loaded is used up before
        the next one loads.
        """
        return tuple(x for r in range(self.sites) for s in block for x in self._alone(s, r))

    def _alone(self, s: ir.Statement, r: int) -> ir.Block:
        touched = used_in((s,))
        touched |= written_in((s,))
        if touched & self.varying:
            return self._copy(s, r)
        return () if r else (s,)

    def _unless_walls(self, s: ir.If, zeros: dict[str, ir.Literal]) -> ir.Block:
        """What is done unless a site is a wall: unless all sites of the thread are.

        Walls among them get their zeros back.
        """
        walls = [ir.Local(numbered(WALL, r), BOOL) for r in range(self.sites)]
        all_walls = reduce(
            lambda a, b: ir.Logical("and", a, b), walls[1:], cast("ir.Expression", walls[0])
        )
        changed = written_in(s.then)
        back = {n: zero for n, zero in zeros.items() if n in changed}
        self.walls = walls
        work = self.block(s.then)
        self.walls = []
        resets = [
            tuple(ir.Assign(numbered(n, r), zero) for n, zero in back.items())
            for r in range(self.sites)
        ]
        again = [ir.If(wall, reset) for wall, reset in zip(walls, resets, strict=True) if reset]
        return (ir.If(ir.Unary("not", all_walls, BOOL), work), *again)

    def _statement(self, s: ir.Statement) -> ir.Block:
        touched = used_by(s) | set(writes(s))
        if not touched & self.varying:
            return (rewrite_statement(s, lambda e: e, self.block),)
        if isinstance(s, ir.Assign) and s.name not in self.varying:
            return self._copy(s, 0)  # the same for all
        if isinstance(s, ir.LoadRecord | ir.StoreRecord) and self._is_aligned(s.index):
            return (self._together(s),)
        return tuple(x for r in range(self.sites) for x in self._copy(s, r))

    def _copy(self, s: ir.Statement, r: int) -> ir.Block:
        """The statement for one site, without what cannot be."""
        if isinstance(s, ir.Assign) and s.name in self.never[r]:
            return ()
        possible = _without((s,), self.never[r])
        return fold_block(rename(possible, {n: numbered(n, r) for n in self.varying}))

    def _is_aligned(self, index: ir.Expression) -> bool:
        """Whether it is the site, or so far behind it that the first of a thread is again at a
        multiple of their number.
        """
        match index:
            case ir.Local(name=name):
                return name == self.site
            case ir.Binary(
                operator="+", left=ir.Local(name=name), right=ir.Binary(operator="*") as far
            ):
                by = far.right
                whole = isinstance(by, ir.Literal) and int(by.value) % self.sites == 0
                return name == self.site and whole and not set(reads(far)) & self.varying
            case _:
                return False

    def _together(self, s: ir.LoadRecord | ir.StoreRecord) -> ir.Statement:
        copies = [c for r in range(self.sites) for c in self._copy(s, r)]
        match s:
            case ir.LoadRecord():
                pairs = tuple(
                    pair for c in copies if isinstance(c, ir.LoadRecord) for pair in c.reads
                )
                return replace(s, index=_index(copies[0]), reads=pairs, across=self.sites)
            case ir.StoreRecord():
                writes = (
                    (r, pair)
                    for r, c in enumerate(copies)
                    if isinstance(c, ir.StoreRecord)
                    for pair in c.writes
                )
                values = tuple((leaf, self._unless_wall(r, value)) for r, (leaf, value) in writes)
                return replace(s, index=_index(copies[0]), writes=values, across=self.sites)

    def _unless_wall(self, r: int, value: ir.Expression) -> ir.Expression:
        """A population to store at a site, or the zero that stands at a wall."""
        if not self.walls:
            return value
        return ir.Select(self.walls[r], ir.Literal(0.0, value.type), value, value.type)


def _index(s: ir.Statement) -> ir.Expression:
    assert isinstance(s, ir.LoadRecord | ir.StoreRecord)
    return s.index


def _without(block: ir.Block, never: frozenset[str]) -> ir.Block:
    """The block for a site that does not lie where these variables say."""

    def change(e: ir.Expression) -> ir.Expression:
        return build.FALSE if isinstance(e, ir.Local) and e.name in never else e

    def visit(s: ir.Statement) -> ir.Statement:
        return rewrite_statement(
            s, lambda e: rewrite(e, change), lambda b: tuple(visit(x) for x in b)
        )

    return tuple(visit(s) for s in block)
