"""Let one thread compute several targets, so that every source it reads serves all of them.

    parallel for i: t = load target[i]; for j: s = load source[j]; sum += f(t, s)
->  parallel for block: parallel for lane:
        t#0 = ...; t#1 = ...; for j: s = load source[j]; sum#0 += f(t#0, s); sum#1 += f(t#1, s)
Statements that depend on the target are repeated, all others stay single. Targets past the end are
clamped when read and skipped when written, so that all threads reach every barrier. On a GPU the
targets of a thread are `lanes` apart, which keeps loads coalesced. Statements go to all targets,
one after the other; with `in_turn` neighbouring ones go to a target together:
    r#0 = f(t#0, s); r#1 = f(t#1, s); sum#0 += r#0; sum#1 += r#1    ->    r#0 = f(t#0, s); sum#0 +=
    r#0; r#1 = f(t#1, s); sum#1 += r#1
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered, own
from lanewise.ir.traverse import (
    blocks,
    reads,
    rename,
    rewrite_statement,
    statements,
    used_by,
    writes,
)
from lanewise.language.target import WARP
from lanewise.language.types import Scalar
from lanewise.passes.base import refuse

MOST = 64  # targets: compilers take a minute for some hundred copies of a pair function


def legal(kernel: ir.Kernel, targets: int) -> str | None:
    """Why the pass does not apply, or None."""
    if not (len(kernel.body) == 1 and isinstance(kernel.body[0], ir.Parallel)):
        return "its elements are already mapped to threads"
    if kernel.body[0].variable == own("block"):
        return "its targets are already merged"
    if targets < 1:
        return f"{targets} targets per thread were requested"
    if targets > MOST:
        return f"wanted 1 to {MOST} targets, each of which is written out, found {targets}"
    return None


def apply(kernel: ir.Kernel, targets: int, lanes: int, *, in_turn: bool = False) -> ir.Kernel:
    """`lanes` is the number of threads that work side by side on the targets of a block (1 on a
    CPU).
    """
    if reason := legal(kernel, targets):
        raise refuse("thread merging", kernel, reason)
    loop = kernel.body[0]
    assert isinstance(loop, ir.Parallel)
    index = loop.extent.type
    block, lane = ir.Local(own("block"), index), ir.Local(own("lane"), index)
    varying = varying_names(loop)
    merged = _Merge(loop.variable, loop.extent, targets, varying, in_turn).block(loop.body)
    first = build.multiply(block, lanes * targets)
    starts: list[ir.Statement] = []
    for r in range(targets):
        place = build.add(build.add(first, r * lanes), lane) if lanes > 1 else build.add(first, r)
        starts.append(ir.Assign(_name(loop.variable, r, targets), place))
    body: ir.Block = (*starts, *merged)
    if lanes > 1:
        body = (ir.Parallel(lane.name, ir.Literal(lanes, index), body),)
    return replace(
        kernel,
        body=(ir.Parallel(block.name, build.ceil_divide(loop.extent, lanes * targets), body),),
    )


def merged(
    body: ir.Block, variable: str, kind: Scalar, targets: int, varying: set[str]
) -> ir.Block:
    """The body of a loop over the threads of a warp, with so many targets for each of them: those
    whose numbers are a warp apart. kind: of `variable`; varying: what depends on it.
    """
    thread = ir.Local(variable, kind)
    starts = tuple(
        ir.Assign(numbered(variable, r), build.add(thread, r * WARP)) for r in range(targets)
    )
    copies = _Merge(variable, ir.Literal(targets * WARP, kind), targets, varying, in_turn=False)
    return (*starts, *copies.block(body))


def _name(name: str, r: int, targets: int) -> str:
    return name if targets == 1 else numbered(name, r)


def varying_names(loop: ir.Parallel, same: tuple[str, ...] = ()) -> set[str]:
    """The variables whose value depends on the element; those that are the `same` for all elements
    of a thread do not.
    """
    varying = {loop.variable}
    while True:
        before = len(varying)
        for s in statements(loop.body):
            used = used_by(s)
            inner = {n for b in blocks(s) for x in statements(b) for n in writes(x)}
            if used & varying:
                varying |= (set(writes(s)) | inner) - set(same)
        if len(varying) == before:
            return varying


class _Merge:
    """Repeats the statements that depend on the target, once for each target of the thread."""

    def __init__(
        self, variable: str, extent: ir.Expression, targets: int, varying: set[str], in_turn: bool
    ) -> None:
        self.variable, self.extent, self.targets = variable, extent, targets
        self.varying, self.in_turn = varying, in_turn

    def block(self, block: ir.Block) -> ir.Block:
        merged: list[ir.Statement] = []
        for repeated, group in groupby(block, self._is_repeated):
            run = tuple(group)
            if not repeated:
                merged += (self._single(s) for s in run)
                continue
            together = (run,) if self.in_turn else tuple((s,) for s in run)
            merged += (
                x
                for some in together
                for r in range(self.targets)
                for s in some
                for x in self._copy(s, r)
            )
        return tuple(merged)

    def _is_repeated(self, s: ir.Statement) -> bool:
        touched = used_by(s) | set(writes(s))
        return bool(touched & self.varying) and not isinstance(s, ir.Agreed)

    def _single(self, s: ir.Statement) -> ir.Statement:
        """What is the same for all targets. Threads agree on what is so of all that they have."""
        if isinstance(s, ir.Agreed) and s.value.name in self.varying:
            names = (_name(s.value.name, r, self.targets) for r in range(self.targets))
            value, *others = (ir.Local(n, s.value.type) for n in names)
            return replace(s, value=value, others=tuple(others))
        return rewrite_statement(s, lambda e: e, self.block)

    def _copy(self, s: ir.Statement, r: int) -> ir.Block:
        names = {n: _name(n, r, self.targets) for n in self.varying}
        place = ir.Local(names[self.variable], self.extent.type)
        (copy,) = rename((s,), names)
        match copy:
            case ir.LoadRecord(index=ir.Local(name=name)) if name == place.name:
                return (replace(copy, index=build.minimum(place, build.subtract(self.extent, 1))),)
            case ir.StoreRecord() if place.name in reads(copy.index):
                return (ir.If(build.less(place, self.extent), (copy,)),)
            case _:
                return (copy,)
