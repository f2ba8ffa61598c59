"""The instructions of one function of LLVM's language, block by block.

What gives a value has a name: a variable's with a number, or a number behind a dot. Variables lie
in memory of the function's own, which LLVM's first passes make registers of.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field


def float_text(number: float, bits: int) -> str:
    """A float of 16, 32 or 64 bits by its bits; one of 32 as the float64 of the same value. It is
    rounded to them, and to infinity beyond the largest one.
    """
    if bits < 64:
        code = "<e" if bits == 16 else "<f"
        try:
            narrow = struct.pack(code, number)
        except OverflowError:
            narrow = struct.pack(code, float("inf") if number > 0 else float("-inf"))
        if bits == 16:
            return f"0xH{int.from_bytes(narrow, 'little'):04X}"
        (number,) = struct.unpack(code, narrow)
    return f"0x{int.from_bytes(struct.pack('<d', number), 'little'):016X}"


@dataclass
class FunctionLines:
    """Lines, and what stands before them: room for variables. needs: declarations of functions
    that are called, and definitions of those of lanewise's own, by their names.

    ended: whether the block has its last instruction, so that nothing behind it is ever reached.
    """

    needs: set[str] = field(default_factory=set[str])
    rooms: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    ended: bool = False
    _values: int = 0
    _labels: int = 0

    def give(self, operation: str, name: str = "") -> str:
        """The name of what an instruction gives."""
        self._values += 1
        value = f"{name}.{self._values}" if name else f"%.{self._values}"
        self.do(f"{value} = {operation}")
        return value

    def do(self, operation: str) -> None:
        if self.ended:
            self.begin(self.label("unreached"))
        self.lines.append(f"  {operation}")

    def room(self, name: str, kind: str, align: int = 0) -> str:
        """Memory for a variable or a local array."""
        self.rooms.append(f"  {name} = alloca {kind}{f', align {align}' if align else ''}")
        return name

    def label(self, what: str) -> str:
        """The name of a block: it begins with a dot, as no name of a variable does."""
        self._labels += 1
        return f".{what}.{self._labels}"

    def begin(self, label: str) -> None:
        """A block begins, to which the one before leads if it has no end."""
        if not self.ended:
            self.lines.append(f"  br label %{label}")
        self.lines.append(f"{label}:")
        self.ended = False

    def jump(self, label: str, said: str = "") -> None:
        """said: metadata of the loop that ends here."""
        if not self.ended:
            self.end(f"br label %{label}{said}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.end(f"br i1 {condition}, label %{yes}, label %{no}")

    def end(self, operation: str) -> None:
        self.do(operation)
        self.ended = True

    def either(
        self, condition: str, kind: str, yes: Callable[[], str], no: Callable[[], str]
    ) -> str:
        """One of two values, of which only that one is computed."""
        first, second, behind = (self.label(n) for n in ("if", "else", "endif"))
        room = self.room(f"%{self.label('value')}", kind)
        self.branch(condition, first, second)
        for label, value in ((first, yes), (second, no)):
            self.ended = True
            self.lines.append(f"{label}:")
            self.ended = False
            self.do(f"store {kind} {value()}, ptr {room}")
            self.jump(behind)
        self.lines.append(f"{behind}:")
        self.ended = False
        return self.give(f"load {kind}, ptr {room}")

    def comment(self, text: str) -> None:
        self.lines.append(f"  ; {text}")

    def text(self) -> str:
        return "\n".join(["entry:", *self.rooms, *self.lines])
