"""Variables of texts that are written by hand: they lie in memory of the kernel's own, of which
LLVM makes registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lanewise.runtime.written.kinds import (
    ArrayKind,
    Kind,
    NumberKind,
    TextError,
    TupleKind,
    joined,
)
from lanewise.runtime.written.values import (
    Arithmetic,
    TextArray,
    TextNumber,
    TextTuple,
    TextValue,
    rooms_of,
)


@dataclass
class TextCall:
    """A call of a function: its number, the labels behind its loops and before their next rounds,
    where it ends, and variables that are types.
    """

    number: int
    end: str
    loops: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    types: dict[str, NumberKind] = field(default_factory=dict[str, NumberKind])


class Variables:
    """Those of a round through a text. kinds: their types, as far as they are known from rounds
    before; settled: whether this one found no others; looping: how many loops are open.
    """

    def __init__(self, math: Arithmetic, kinds: dict[str, Kind]) -> None:
        self._math, self._code, self.kinds = math, math.code, kinds
        self.settled, self.looping, self.call = True, 0, TextCall(0, "return")
        self._rooms: dict[str, list[str]] = {}

    def own(self, name: str) -> str:
        """A name of the text, as that of a variable of this call."""
        return f"{self.call.number}.{name}"

    def has(self, name: str) -> bool:
        return name in self._rooms

    def assign(self, name: str, v: TextValue) -> None:
        """Give a variable a value; where that has another type, so has the variable, from the next
        round on.
        """
        known = self.kinds.get(name)
        kind = v.kind if known is None else joined(known, v.kind)
        if kind != known:
            self.kinds[name], self.settled = kind, False
        if name not in self._rooms or known != kind:
            self._rooms[name] = [
                self._code.room(f"%v{name}.{n}.{len(self._code.rooms)}", r)
                for n, r in enumerate(rooms_of(kind))
            ]
        for room, (kind_text, part) in zip(self._rooms[name], self._parts(v, kind), strict=True):
            self._code.do(f"store {kind_text} {part}, ptr {room}")

    def _parts(self, v: TextValue, kind: Kind) -> list[tuple[str, str]]:
        match v, kind:
            case TextNumber(), NumberKind():
                return [(kind.text, self._math.cast(v, kind).name)]
            case TextArray(), ArrayKind():
                found = [("ptr", v.place), *(("i64", n) for n in v.lengths)]
                return found if kind.whole else [*found, *(("i64", n) for n in self._steps(v))]
            case TextTuple(), TupleKind():
                pairs = zip(v.items, kind.items, strict=True)
                return [p for item, k in pairs for p in self._parts(item, k)]
            case _:
                raise TextError(f"{v} is no {kind}")

    def _steps(self, a: TextArray) -> tuple[str, ...]:
        if not a.kind.whole:
            return a.steps
        steps = [str(a.kind.element.size)]
        for length in reversed(a.lengths[1:]):
            steps.insert(0, self._code.give(f"mul i64 {steps[0]}, {length}"))
        return tuple(steps)

    def value_of(self, name: str) -> TextValue:
        """The value of a variable."""
        if name not in self._rooms:
            raise TextError(f"{name.partition('.')[2] or name} is read before it has a value")
        return self._read(self.kinds[name], iter(self._rooms[name]))

    def _read(self, kind: Kind, rooms: Iterator[str]) -> TextValue:
        def load(text: str) -> str:
            return self._code.give(f"load {text}, ptr {next(rooms)}")

        match kind:
            case NumberKind():
                return TextNumber(kind, load(kind.text))
            case ArrayKind(dimensions=n):
                place, lengths = load("ptr"), tuple(load("i64") for _ in range(n))
                steps = () if kind.whole else tuple(load("i64") for _ in range(n))
                return TextArray(kind, place, lengths, steps)
            case TupleKind(items=items):
                return TextTuple(tuple(self._read(i, rooms) for i in items))
