"""Whether something holds for any source, or for all of them."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.ir import nodes as ir
from lanewise.ir.reductions.base import Place, Reduction, State, StatePart
from lanewise.language import types as t
from lanewise.language.types import I32, Scalar


@dataclass(frozen=True, slots=True)
class TruthReduction(Reduction):
    """`decisive` is the boolean that decides the result as soon as one source has it: True for
    any, False for all.

    The state is an integer, 0 or 1: booleans have no registers on a GPU, and
    no SIMD registers to be added in.
    """

    decisive: bool = True

    def parts(self, kind: Scalar) -> tuple[StatePart, ...]:
        return (StatePart("", I32, ir.Literal(int(not self.decisive), I32)),)

    def take(self, state: State, value: ir.Local, place: Place) -> ir.Block:
        (truth,) = state
        decided = ir.Literal(int(self.decisive), I32)
        sides = (decided, truth) if self.decisive else (truth, decided)
        return (ir.Assign(truth.name, ir.Select(value, *sides, I32)),)

    def merge(self, state: State, other: State) -> ir.Block:
        (truth,), (more,) = state, other
        return (ir.Assign(truth.name, ir.Binary("|" if self.decisive else "&", truth, more, I32)),)

    def finish(self, state: State) -> tuple[ir.Expression, ...]:
        return (ir.Compare("!=", state[0], ir.Literal(0, I32)),)

    def gives(self, kind: t.ValueType) -> t.ValueType:
        return t.BOOL


ANY = TruthReduction("any", exact=True, zero_is_identity=True, reorders=True, of_truths=True)
ALL = TruthReduction("all", exact=True, reorders=True, of_truths=True, decisive=False)
