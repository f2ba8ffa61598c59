"""Blocked recurrences: the rounds of a loop in panels, and what a panel reads of finished rounds
ahead of it, for all its rounds at once.

    parallel for x: for i in range(n): s = b[i, x]; for k in range(i): s -= l[i, k] * b[k, x]; b[i,
    x] = s / l[i, i]
->  for each panel of rounds, from `first` on, one launch after the other:
      parallel for row in range(rounds): parallel for x: i = first + row; s = b[i, x]; for k in
      range(first): s -= l[i, k] * b[k, x]
          store partial[row, x] = s
      parallel for x: for i in range(first, first + rounds): load partial[i - first, x]: piece; s =
      piece
          for k in range(first, i): s -= l[i, k] * b[k, x]
          b[i, x] = s / l[i, i]
The first kernel has the shape of a matrix product, and is merged and staged as one. The second one
is a recurrence again, which the same pass divides into smaller panels. Where rounds begin with
something that other rounds of the panel write, the sum that is done ahead begins with nothing, and
joins theirs in the panel.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.affine import nest, nest_of
from lanewise.analysis.recurrences import Recurrence, recurrence
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.folds import join, neutral
from lanewise.ir.names import MARK, own, partial_of
from lanewise.ir.traverse import expressions, flat_map, reads, rename, rewrite, statements, writes
from lanewise.ir.values import value_array
from lanewise.language.types import I64
from lanewise.passes.base import refuse
from lanewise.passes.loop_splitting import clean, joined, named, nested
from lanewise.passes.shared_loops import nest_index


def legal(kernel: ir.Kernel, panel: int) -> str | None:
    """Why the pass does not apply, or None."""
    if panel < 1:
        return f"a panel of {panel} rounds is empty"
    blocked = recurrence(kernel)
    if isinstance(blocked, str):
        return blocked
    if blocked.outer.start.type != nest_index(kernel):
        return (
            f"{blocked.outer.variable} is counted in {blocked.outer.start.type}, and indices in "
            f"{nest_index(kernel)}"
        )
    _, body = nest_of(_Panels(kernel, blocked, panel).ahead())
    for s in statements(body[: -1 - len(blocked.folds)]):  # before the loop and its stores
        if isinstance(s, ir.LoadElement) and not blocked.is_early(s):
            return (
                f"the loop over {blocked.inner.variable} depends on what its round of "
                f"{blocked.outer.variable} reads of {s.array}"
            )
    return None


def apply(kernel: ir.Kernel, panel: int) -> tuple[ir.Kernel, ir.Kernel]:
    """The kernel that runs ahead of each panel of so many rounds, and the kernel of the panel;
    raises `PlanError` where it does not fit.
    """
    if reason := legal(kernel, panel):
        raise refuse("blocking of recurrences", kernel, reason)
    blocked = recurrence(kernel)
    assert isinstance(blocked, Recurrence)
    panels = _Panels(kernel, blocked, panel)
    return panels.ahead(), panels.within()


class _Panels:
    """Writes both kernels."""

    def __init__(self, kernel: ir.Kernel, blocked: Recurrence, panel: int) -> None:
        self.kernel, self.blocked, self.panel = kernel, blocked, panel
        self.index = nest_index(kernel)
        self.points, (_, self.body) = nest(kernel)[0], nest_of(kernel)
        v, depth = blocked.outer.variable.removeprefix(MARK), len(kernel.series)
        level = f".{depth + 1}" if depth else ""
        self.first = ir.Local(own(f"{v}.first{level}"), self.index)
        self.rounds = ir.Local(own(f"{v}.rounds{level}"), self.index)
        self.row = ir.Local(own(f"{v}.panel{level}"), self.index)
        self.series = ir.Series(
            self.first.name, self.rounds.name, blocked.start, blocked.stop, panel * blocked.step
        )
        shape = (panel, *(named(p.extent) for p in self.points))
        self.arrays = tuple(
            replace(
                value_array(partial_of(f"{f.name}{level}"), f.type, written=True),
                shape=shape,
                narrow=self.index != I64,
            )
            for f in blocked.folds
        )
        self.bound = with_value(blocked.bound, blocked.outer.variable, self.first)
        self.head = blocked.outer.body[: blocked.at]
        early = (
            blocked.is_early(s) for s in statements(self.head) if isinstance(s, ir.LoadElement)
        )
        self.begins = all(early)  # ahead, with what each round begins with; else with nothing
        self.plain = _without(self.head, {f.name for f in blocked.folds})

    @property
    def round(self) -> ir.Expression:
        """The outer variable of a row of the panel."""
        return (
            build.add(self.first, self.row)
            if self.blocked.step > 0
            else build.subtract(self.first, self.row)
        )

    @property
    def turn(self) -> ir.Expression:
        """The row of the panel that belongs to the outer variable."""
        v = ir.Local(self.blocked.outer.variable, self.index)
        return (
            build.subtract(v, self.first)
            if self.blocked.step > 0
            else build.subtract(self.first, v)
        )

    def ahead(self) -> ir.Kernel:
        """What the rounds of a panel gather of finished rounds, for all of them at once."""
        blocked, inner = self.blocked, self.blocked.inner
        mine = {
            f.name: f.name if self.begins else own(f"{f.name.removeprefix(MARK)}.ahead")
            for f in blocked.folds
        }
        ends = (
            replace(inner, stop=self.bound)
            if blocked.end == "stop"
            else replace(inner, start=self.bound)
        )
        place = (self.row, *(ir.Local(p.variable, self.index) for p in self.points))
        nothing = tuple(
            ir.Assign(mine[f.name], neutral(f.operation, f.type)) for f in blocked.folds
        )
        body = (
            *self.body[:-1],
            ir.Assign(blocked.outer.variable, self.round),
            *(self.head if self.begins else (*self.plain, *nothing)),
            *rename((ends,), mine),
            *(
                ir.StoreElement(a.name, place, ir.Local(mine[f.name], f.type))
                for a, f in zip(self.arrays, blocked.folds, strict=True)
            ),
        )
        length: ir.Expression = ir.Literal(self.panel, self.index)
        for p in self.points:
            length = build.multiply(p.extent, length)
        rows = ir.Parallel(self.row.name, self.rounds, nested(body, self.points))
        return clean(
            replace(
                self._counted(),
                name=f"{self.kernel.name}_ahead_{self.panel}",
                body=(rows,),
                arrays=(*self.kernel.arrays, *self.arrays),
                scratch=tuple(ir.Scratch(a.name, length) for a in self.arrays),
            )
        )

    def within(self) -> ir.Kernel:
        """The panel itself, from what was gathered ahead of it."""
        blocked, inner, outer = self.blocked, self.blocked.inner, self.blocked.outer
        place = (self.turn, *(ir.Local(p.variable, self.index) for p in self.points))
        pieces: list[ir.Statement] = []
        for a, f in zip(self.arrays, blocked.folds, strict=True):
            piece = ir.Local(
                own(f"{f.name.removeprefix(MARK)}.piece.{len(self.kernel.series)}"), f.type
            )
            pieces.append(ir.LoadElement(a.name, place, piece.name))
            both = joined(f.name, join(f.operation, f.variable, piece), piece)
            pieces.append(ir.Assign(f.name, piece) if self.begins else both)
        if blocked.end == "stop":
            left = replace(
                inner,
                start=self.bound if blocked.reaches else build.maximum(inner.start, self.bound),
            )
        else:
            left = replace(
                inner, stop=self.bound if blocked.reaches else build.minimum(self.bound, inner.stop)
            )
        last = (
            build.add(self.first, self.rounds)
            if blocked.step > 0
            else build.subtract(self.first, self.rounds)
        )
        rounds = replace(
            outer,
            start=self.first,
            stop=last,
            body=(
                *(self.plain if self.begins else self.head),
                *pieces,
                left,
                *outer.body[blocked.at + 1 :],
            ),
        )
        arrays = (*self.kernel.arrays, *(replace(a, written=False) for a in self.arrays))
        return clean(
            replace(
                self._counted(), body=nested((*self.body[:-1], rounds), self.points), arrays=arrays
            )
        )

    def _counted(self) -> ir.Kernel:
        """The kernel with the counts of its launches."""
        counts = (
            ir.Parameter(self.first.name, self.index),
            ir.Parameter(self.rounds.name, self.index),
        )
        kernel = self.kernel
        return replace(
            kernel, counts=(*kernel.counts, *counts), series=(*kernel.series, self.series)
        )


def _without(block: ir.Block, names: set[str]) -> ir.Block:
    """A block without those of these variables that only their own assignments read: what they
    begin with is for the panel.
    """
    used = {
        n for s in statements(block) for e in expressions(s) for n in reads(e) if n not in writes(s)
    }
    unread = names - used
    return flat_map(block, lambda s: () if isinstance(s, ir.Assign) and s.name in unread else (s,))


def with_value(e: ir.Expression, name: str, value: ir.Expression) -> ir.Expression:
    """An expression in which a value replaces a variable."""
    if name not in reads(e):
        return e
    return rewrite(e, lambda x: value if isinstance(x, ir.Local) and x.name == name else x)
