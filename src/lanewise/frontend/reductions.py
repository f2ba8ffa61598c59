"""What becomes of the values of all pairs: the result's annotation of a pairwise function.

    @lw.pairwise
    def closest(point: Point, center: Point) -> lw.ArgMin[lw.f32]:
        d = point.position - center.position
        return lw.dot(d, d)

A plain type is the sum. For a type checker `lw.Min[lw.f32]` is `lw.f32`: the type of what the
function returns.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from lanewise.ir import reductions
from lanewise.ir.reductions import MOST_SMALLEST, Reduction
from lanewise.language.values import bool_
from lanewise.support.attributes import describe
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

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


@dataclass(frozen=True)
class Reduced:
    """The annotation of a result: the type of a pair's value, and how the values of all pairs
    become one.

    `name`: as it is written; `about`: what `help` says of it.
    """

    name: str
    kind: Any
    reduction: Reduction
    about: InitVar[str] = ""

    def __post_init__(self, about: str) -> None:
        describe(self, about)

    def __repr__(self) -> str:
        return f"lanewise.{self.name}"


@dataclass(frozen=True)
class ReductionName:
    """A reduction that waits for the type of a pair's value: `lw.Min` of `lw.Min[lw.f32]`."""

    name: str
    example: str
    make: Callable[[Any], Reduced]
    about: InitVar[str] = ""

    def __post_init__(self, about: str) -> None:
        describe(self, about)

    def __getitem__(self, of: Any) -> Reduced:
        return self.make(of)

    def __repr__(self) -> str:
        return f"lanewise.{self.name}"


def _plain(name: str, reduction: Reduction, about: str) -> ReductionName:
    return ReductionName(name, f"lw.{name}[lw.f32]", lambda of: Reduced(name, of, reduction), about)


def _listed(name: str, make: Callable[[int], Reduction], about: str) -> ReductionName:
    def reduced(of: Any) -> Reduced:
        example = f"wanted lw.{name}[lw.f32, k] with an integer k from 1 to {MOST_SMALLEST}"
        if not isinstance(of, tuple) or len(of) != 2:
            raise ArgumentError(f"lw.{name} takes a type and how many values it keeps: {example}")
        kind, k = of
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_SMALLEST:
            raise ArgumentError(
                f"lw.{name}[..., {shown(k)}]: {example}, the longest list that is kept in registers"
            )
        return Reduced(name, kind, make(k))

    return ReductionName(name, f"lw.{name}[lw.f32, 5]", reduced, about)


if not TYPE_CHECKING:
    Min = _plain(
        "Min",
        reductions.MIN,
        "`-> lw.Min[lw.f32]`: the smallest value over all sources of a target, per component of "
        "vectors; shape (n,) or (n, components). Without sources it is infinity, or the largest "
        "integer. NaN is ignored.",
    )
    Max = _plain(
        "Max",
        reductions.MAX,
        "`-> lw.Max[lw.f32]`: the largest value over all sources of a target, per component of "
        "vectors; shape (n,) or (n, components). Without sources it is minus infinity, or the "
        "lowest integer. NaN is ignored.",
    )
    ArgMin = _plain(
        "ArgMin",
        reductions.ARG_MIN,
        "`-> lw.ArgMin[lw.f32]`: the index (int32, as the caller counts) of the source with the "
        "smallest value; ties take the smallest index; shape (n,). It is -1 if no value is below "
        "infinity, so a function leaves a source out by returning `math.inf`.",
    )
    ArgMax = _plain(
        "ArgMax",
        reductions.ARG_MAX,
        "`-> lw.ArgMax[lw.f32]`: the index (int32, as the caller counts) of the source with the "
        "largest value; ties take the smallest index; shape (n,). It is -1 if no value is above "
        "minus infinity.",
    )
    LogSumExp = _plain(
        "LogSumExp",
        reductions.LOG_SUM_EXP,
        "`-> lw.LogSumExp[lw.f32]`: log(sum(exp(value))) over all sources of a target, without "
        "overflow; shape (n,). Without sources it is minus infinity.",
    )
    KMin = _listed(
        "KMin",
        reductions.k_min,
        "`-> lw.KMin[lw.f32, k]`: the k smallest values over all sources of a target, "
        "ascending; shape (n, k), k from 1 to 32. Missing values are infinity.",
    )
    ArgKMin = _listed(
        "ArgKMin",
        reductions.arg_k_min,
        "`-> lw.ArgKMin[lw.f32, k]`: the indices (int32, as the caller counts) of the k sources "
        "with the smallest values, ascending, ties by index; shape (n, k), k from 1 to 32. "
        "Missing sources are -1.",
    )
    Any_ = Reduced(
        "Any",
        bool_,
        reductions.ANY,
        "`-> lw.Any`: whether the function returns True for any source of a target; booleans of "
        "shape (n,). Without sources it is False.",
    )
    All = Reduced(
        "All",
        bool_,
        reductions.ALL,
        "`-> lw.All`: whether the function returns True for every source of a target; booleans of "
        "shape (n,). Without sources it is True.",
    )
    Count = Reduced(
        "Count",
        bool_,
        reductions.COUNT_TRUE,
        "`-> lw.Count`: for how many sources of a target the function returns True; int32 of "
        "shape (n,).",
    )
