"""The blocks in the inside and the others share what is the same in both, which is the most of a
kernel whose reads are staged.

    if $inside: load; LOOPS; store                  ->   if $inside: load else: if ...: load
    else: if ...: load; LOOPS; if ...: store             LOOPS
                                                         if $inside: store else: if ...: store
Half of the text is half of the time that a compiler takes. Where the rounds of tiles differ nothing
is joined: the test would be made in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from lanewise.ir import nodes as ir
from lanewise.ir.names import original, own
from lanewise.ir.traverse import (
    blocks,
    flat_map,
    rename,
    statements,
    used_by,
    write_counts,
    writes,
    written_in,
)
from lanewise.language.types import BOOL, Scalar
from lanewise.passes.base import is_source_loop

INSIDE = own("inside")


def apply(kernel: ir.Kernel) -> ir.Kernel | None:
    """The kernel with one body, or None where its two bodies have different rounds."""
    split = kernel.body[-1]
    assert isinstance(split, ir.If)
    one, other = rename(split.then, raw_places(split.otherwise)), split.otherwise
    try:
        body = _Joining(_alone(one, other) | _alone(other, one), _Keys()).block(one, other)
    except _Apart:
        return None
    if _leaks(body):
        return None
    return replace(kernel, body=(*kernel.body[:-1], ir.Assign(INSIDE, split.condition), *body))


def raw_places(body: ir.Block) -> dict[str, str]:
    """The indices of points that are moved to the last point where they lie beyond the end, and the
    names of where they would lie.
    """
    places: dict[str, str] = {}
    for s in body:
        if isinstance(s, ir.Assign) and isinstance(s.value, ir.Call) and s.value.intrinsic == "min":
            raw = s.value.arguments[0]
            if isinstance(raw, ir.Local) and original(raw.name) == own(f"{original(s.name)}.at"):
                places[s.name] = raw.name
    return places


class _Apart(Exception):
    """The two bodies cannot be joined."""


def _alone(body: ir.Block, other: ir.Block) -> frozenset[str]:
    """The variables that one body gives a value once, and the other one never."""
    count = write_counts(body)
    elsewhere = written_in(other)
    return frozenset(n for n, times in count.items() if times == 1 and n not in elsewhere)


class _Keys:
    """A number for each thing that kernels are made of, one for all that are written alike: what
    compares as equal is not always, as zero and minus zero. Each is looked at once, however deep
    in others it lies.
    """

    def __init__(self) -> None:
        # by identity; with the things themselves, so that no other one gets the identity of one
        self._met: dict[int, tuple[object, int]] = {}
        self._numbers: dict[object, int] = {}

    def of(self, value: object) -> object:
        """What is equal for two things, and as a key, if they are written alike."""
        kind = type(value)
        if kind is tuple:
            return tuple([self.of(v) for v in value])  # pyright: ignore[reportGeneralTypeIssues]
        if kind is float:
            return float, repr(value)
        written = _written(kind)
        if written is None:
            return value
        met = self._met.get(id(value))
        if met is None:
            key = kind, *[self.of(v) for v in written(value)]
            met = self._met[id(value)] = value, self._numbers.setdefault(key, len(self._numbers))
        return _Numbered, met[1]


@cache
def _written(kind: type[Any]) -> Callable[[Any], tuple[object, ...]] | None:
    """What gives all of a thing that its text has; None for what has no parts."""
    if kind is Scalar or not is_dataclass(kind):
        return None
    names = [f.name for f in fields(kind) if f.repr]
    return lambda value: tuple([getattr(value, n) for n in names])


class _Numbered:
    """Tells the number of a thing from the same number in a kernel."""


@dataclass(frozen=True, slots=True)
class _Joining:
    """alone: variables that one body alone has; keys: what tells statements apart; rounds: whether
    this is in a loop over the rounds of a tile.
    """

    alone: frozenset[str]
    keys: _Keys
    rounds: bool = False

    def block(self, one: ir.Block, other: ir.Block) -> ir.Block:
        """Statements of both, in their order; those that differ under the test."""
        done: list[ir.Statement] = []
        names = [[self.keys.of(s) for s in side] for side in (one, other)]
        for tag, i, j, k, n in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
            done += one[i:j] if tag == "equal" else self._differing(one[i:j], other[k:n])
        return tuple(done)

    def _differing(self, one: Sequence[ir.Statement], other: Sequence[ir.Statement]) -> ir.Block:
        """Statements around the first two that have the same head are split, and their
        bodies are joined.
        """
        for i, a in enumerate(one):
            for k, b in enumerate(other):
                if (inner := self._same_head(a, b)) is not None:
                    return (
                        *self._apart(one[:i], other[:k]),
                        inner,
                        *self._differing(one[i + 1 :], other[k + 1 :]),
                    )
        return self._apart(one, other)

    def _same_head(self, a: ir.Statement, b: ir.Statement) -> ir.Statement | None:
        match a, b:
            case ir.For(), ir.For() if replace(a, body=()) == replace(b, body=()):
                inner = replace(self, rounds=self.rounds or is_source_loop(a))
                return replace(a, body=inner.block(a.body, b.body))
            case ir.If(), ir.If() if a.condition == b.condition:
                then, otherwise = self.block(a.then, b.then), self.block(a.otherwise, b.otherwise)
                return replace(a, then=then, otherwise=otherwise)
            case _:
                return None

    def _apart(self, one: Sequence[ir.Statement], other: Sequence[ir.Statement]) -> ir.Block:
        if not one and not other:
            return ()
        first: list[ir.Statement] = []
        sides: list[list[ir.Statement]] = [[], []]
        for side, kept in zip((one, other), sides, strict=True):
            for s in side:  # a place costs nothing, and may be read further on
                (
                    first
                    if isinstance(s, ir.Assign) and s.name in self.alone and not kept
                    else kept
                ).append(s)
        if any(sides) and self.rounds:
            raise _Apart
        if not any(sides):
            return tuple(first)
        return (*first, ir.If(ir.Local(INSIDE, BOOL), tuple(sides[0]), tuple(sides[1])))


def _leaks(body: ir.Block) -> bool:
    """Whether a variable that one side alone gives a value is read elsewhere, before it has one
    there.
    """
    sides = [s for s in statements(body) if _is_test(s)]
    written = [written_in(b) for s in sides for b in blocks(s)]
    some = {n for one, other in zip(written[::2], written[1::2], strict=True) for n in one ^ other}
    return bool(
        some
        & {n for b in (_common(body), *(b for s in sides for b in blocks(s))) for n in _needed(b)}
    )


def _is_test(s: ir.Statement) -> bool:
    return isinstance(s, ir.If) and s.condition == ir.Local(INSIDE, BOOL)


def _common(body: ir.Block) -> ir.Block:
    return flat_map(body, lambda s: () if _is_test(s) else (s,))


def _needed(body: ir.Block) -> set[str]:
    """The variables that are read before they are first given a value, in the order of the text."""
    seen: set[str] = set()
    needed: set[str] = set()
    for s in statements(body):
        needed |= used_by(s) - seen
        seen |= set(writes(s))
    return needed
