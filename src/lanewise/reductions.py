"""What becomes of the values of all pairs: the result's annotation of a pairwise function.

    @lw.pairwise
    def closest(point: Point, center: Point) -> lw.ArgMin[lw.f32]:
        d = point.position - center.position
        return lw.dot(d, d)

A plain type is the sum. For a type checker `lw.Min[lw.f32]` is `lw.f32`: the type of what the function returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from lanewise.checks import shown
from lanewise.errors import ArgumentError
from lanewise.ir import reductions
from lanewise.ir.reductions import MOST_SMALLEST, Reduction
from lanewise.values import bool_

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Annotated, TypeAlias

    # The parameters of `Annotated` are what follows: a type, and what only lanewise reads.
    from typing import Annotated as ArgKMin
    from typing import Annotated as KMin

    Value = TypeVar("Value")
    Min: TypeAlias = Annotated[Value, "min"]
    Max: TypeAlias = Annotated[Value, "max"]
    ArgMin: TypeAlias = Annotated[Value, "argmin"]
    ArgMax: TypeAlias = Annotated[Value, "argmax"]
    LogSumExp: TypeAlias = Annotated[Value, "logsumexp"]
    Any_: TypeAlias = bool
    All: TypeAlias = bool
    Count: TypeAlias = bool

__all__ = [
    "All",
    "Any_",
    "ArgKMin",
    "ArgMax",
    "ArgMin",
    "Count",
    "KMin",
    "LogSumExp",
    "Max",
    "Min",
    "Reduced",
    "ReductionName",
]


@dataclass(frozen=True, slots=True)
class Reduced:
    """The annotation of a result: the type of a pair's value, and how the values of all pairs become one. `name`: as it is written."""

    name: str
    kind: Any
    reduction: Reduction

    def __repr__(self) -> str:
        return f"lanewise.{self.name}"


@dataclass(frozen=True, slots=True)
class ReductionName:
    """A reduction that waits for the type of a pair's value: `lw.Min` of `lw.Min[lw.f32]`."""

    name: str
    example: str
    make: Callable[[Any], Reduced]

    def __getitem__(self, of: Any) -> Reduced:
        return self.make(of)

    def __repr__(self) -> str:
        return f"lanewise.{self.name}"


def _plain(name: str, reduction: Reduction) -> ReductionName:
    return ReductionName(name, f"lw.{name}[lw.f32]", lambda of: Reduced(name, of, reduction))


def _listed(name: str, make: Callable[[int], Reduction]) -> ReductionName:
    def reduced(of: Any) -> Reduced:
        example = f"wanted lw.{name}[lw.f32, k] with a whole number k from 1 to {MOST_SMALLEST}"
        if not isinstance(of, tuple) or len(of) != 2:
            raise ArgumentError(f"lw.{name} takes a type and how many values it keeps: {example}")
        kind, k = of
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_SMALLEST:
            raise ArgumentError(f"lw.{name}[..., {shown(k)}]: {example}, the longest list that is kept in registers")
        return Reduced(name, kind, make(k))

    return ReductionName(name, f"lw.{name}[lw.f32, 5]", reduced)


if not TYPE_CHECKING:
    Min = _plain("Min", reductions.MIN)
    Max = _plain("Max", reductions.MAX)
    ArgMin = _plain("ArgMin", reductions.ARG_MIN)
    ArgMax = _plain("ArgMax", reductions.ARG_MAX)
    LogSumExp = _plain("LogSumExp", reductions.LOG_SUM_EXP)
    KMin = _listed("KMin", reductions.k_min)
    ArgKMin = _listed("ArgKMin", reductions.arg_k_min)
    Any_ = Reduced("Any", bool_, reductions.ANY)
    All = Reduced("All", bool_, reductions.ALL)
    Count = Reduced("Count", bool_, reductions.COUNT_TRUE)
