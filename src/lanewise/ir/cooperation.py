"""Statements in which the threads of a block or of a warp meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from typing import Literal as Choice

from lanewise.ir.expressions import Expression, Local
from lanewise.ir.roles import (
    Counted,
    Declared,
    FieldRole,
    Loaded,
    StatementNode,
    Stored,
)

__all__ = [
    "AwaitTurn",
    "Barrier",
    "Draw",
    "EndTurn",
    "Least",
    "Rotate",
    "Shuffle",
]


@dataclass(frozen=True, slots=True)
class Barrier(StatementNode):
    """All threads of the block, or of the warp, arrive and see each other's shared memory before
    any continues.
    """

    scope: Choice["block", "warp"] = "block"


@dataclass(frozen=True, slots=True)
class Rotate(StatementNode):
    """Every thread of a warp takes the values that these variables have in the next thread, the
    last one those of the first.
    """

    form: ClassVar[str] = "rotate {values}"

    values: tuple[Annotated[Local, FieldRole.CHANGED], ...]


@dataclass(frozen=True, slots=True)
class Shuffle(StatementNode):
    """Every thread takes into `name` what `value` is in the thread `distance` behind it, within its
    group of `group` neighbours of a warp; of a negative distance, in the one so far before it.

    Where the group ends or begins a thread takes its own. A distance of 0: what it is in the first
    thread of the group; of `-group`: in the last one.
    """

    name: Declared
    value: Local
    distance: int
    group: int


@dataclass(frozen=True, slots=True)
class Least(StatementNode):
    """Every thread of a warp, or lane of SIMD registers, takes into `name` the least number that
    `value`, or one of the `others` of its type, is in any of them; what is no number is left out.

    All of them come to it together: what decides about it is the same in all (`ir/warps.py`).
    """

    name: Declared
    value: Local
    others: tuple[Local, ...] = ()


@dataclass(frozen=True, slots=True)
class Draw(StatementNode):
    """A warp takes the next number from a counter in global memory; who draws the last of `total`
    winds it back to zero.

    What a warp waits for may then be anything that a smaller number does: that warp is already
    running.
    """

    form: ClassVar[str] = "{name} = draw {counter} of {total}"

    name: Declared
    counter: Counted
    total: Expression


@dataclass(frozen=True, slots=True)
class AwaitTurn(StatementNode):
    """Wait until `turns[index]` is `turn`, and see everything that was written before it became
    so.
    """

    form: ClassVar[str] = "await {turns}[{index}] == {turn}"

    turns: Loaded
    index: Expression
    turn: Expression


@dataclass(frozen=True, slots=True)
class EndTurn(StatementNode):
    """Set `turns[index]` to `following`, after everything that the threads of the warp wrote."""

    form: ClassVar[str] = "end turn {turns}[{index}] = {following}"

    turns: Stored
    index: Expression
    following: Expression
