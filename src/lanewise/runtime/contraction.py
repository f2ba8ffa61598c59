"""Which products become one with a sum, `a * b + c` rounded once: a rule of lanewise's own.

LLVM fuses late, within a block, when it has made vectors of a loop and a rest behind them. A branch
is a choice of values in the vectors and another block in the rest, so that it fuses other products
there, and an element after the last vector has other last places than in one. Here it is decided
while the loop is written once; every copy that LLVM makes of it then computes the same.

A product that is used once is fused with the sum or difference that uses it, in any block of the
same loop: as LLVM does in vectors. Of two products the first one is. A product that stays the same
in its loop is computed before the loop, and rounded. Sums that LLVM may reorder, and arithmetic
with all shortcuts, are left to LLVM: only its vectors say what is added first.

`llvm.fmuladd` is one operation where the processor has it, and two everywhere else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lanewise.runtime.llvm_blocks import (
    END,
    FUNCTION,
    NAME,
    USED,
    LlvmFunction,
    read_function,
)

_FLAGS = r"(?:(?:nnan|ninf|nsz|arcp|afn) )*"
_SUM = re.compile(rf"^  ({NAME}) = f(add|sub) ({_FLAGS})contract ({_FLAGS})(.*)$", re.M)
_PRODUCT = re.compile(rf"^  ({NAME}) = fmul {_FLAGS}contract {_FLAGS}(.*)$", re.M)
_KIND = re.compile(r"<(\d+) x (\w+)>|(\w+)")
_LETTERS = {"half": "f16", "float": "f32", "double": "f64"}
# operations that LLVM moves before a loop where their operands stay the same
_MOVED = frozenset(
    (
        *("fmul", "fadd", "fsub", "fdiv", "fneg", "fcmp", "fpext", "fptrunc", "sitofp", "uitofp"),
        *("add", "sub", "mul", "icmp", "select"),
    )
)


def contracted(module: str) -> str:
    """A module in LLVM's language with the rule applied; none of its sums, but for those above,
    has leave to be contracted any more.
    """
    parts, needs = list[str](), set[str]()
    for text in module.split(END):
        found = FUNCTION.search(text)
        if found is not None and _SUM.search(text):
            body = text[found.end() :]
            text = text[: found.end()] + _SUM.sub(_Sums(body, needs).rewritten, body)
        parts.append(text)
    declared = [f"\n{n}\n" for n in sorted(needs) if n not in module]
    return END.join(parts) + "".join(declared)


@dataclass(frozen=True, slots=True)
class _Product:
    """Its operands, and the loop that it is in."""

    left: str
    right: str
    loop: str


@dataclass
class _Sums:
    """The sums of a function. needs: declarations of what they call. negated: how many numbers had
    to be negated.
    """

    body: str
    needs: set[str]
    negated: int = 0
    function: LlvmFunction = field(init=False)

    def __post_init__(self) -> None:
        self.function = read_function(self.body)

    def rewritten(self, s: re.Match[str]) -> str:
        """A sum with its product, or without the leave to be contracted."""
        name, operation, flags, more, rest = s.groups()
        kind, left, right = _operands(rest)
        loop = self.sums.get(name)
        for operand, other in ((left, right), (right, left)):
            product = self.products.get(operand)
            if product is None or product.loop != loop:
                continue
            lines, a, b, c = "", product.left, product.right, other
            if operation == "sub":
                sign = f"%$negative.{self.negated}"
                self.negated += 1
                if operand == left:
                    lines, c = f"  {sign} = fneg {kind} {c}\n", sign
                else:
                    a, b = self.to_negate(a, b, product.loop)
                    lines, a = f"  {sign} = fneg {kind} {a}\n", sign
            return f"{lines}  {name} = {self.call(kind, a, b, c)}"
        return f"  {name} = f{operation} {flags}{more}{rest}"

    def to_negate(self, a: str, b: str, loop: str) -> tuple[str, str]:
        """The factors of a product, first the one to negate: a literal, or else no one that stays
        the same, which would take one more register through the loop.
        """
        if _is_literal(a) or _is_literal(b):
            return (a, b) if _is_literal(a) else (b, a)
        return (b, a) if self.stays(a, loop) and not self.stays(b, loop) else (a, b)

    def call(self, kind: str, *operands: str) -> str:
        found = _KIND.fullmatch(kind)
        assert found is not None, kind
        letters = f"v{found[1]}{_LETTERS[found[2]]}" if found[1] else _LETTERS[kind]
        self.needs.add(f"declare {kind} @llvm.fmuladd.{letters}({kind}, {kind}, {kind})")
        return f"call {kind} @llvm.fmuladd.{letters}({', '.join(f'{kind} {o}' for o in operands)})"

    @cached_property
    def loops(self) -> Mapping[str, str]:
        """The innermost loop of each block in one, by its first block."""
        most = len(self.function.texts) + 1
        loops, sizes = dict[str, str](), dict[str, int]()
        for head, inside in self.function.loops():
            for name in inside:
                if len(inside) < sizes.get(name, most):
                    sizes[name], loops[name] = len(inside), head
        return loops

    @cached_property
    def sums(self) -> Mapping[str, str]:
        """The loops of all sums."""
        texts = self.function.texts.items()
        return {s[1]: self.loops.get(name, "") for name, t in texts for s in _SUM.finditer(t)}

    @cached_property
    def products(self) -> Mapping[str, _Product]:
        """Those that may become one with a sum: used once, and not the same in all rounds."""
        written = Counter(USED.findall(self.body))
        return {
            p[1]: _Product(*_operands(p[2])[1:], self.loops.get(name, ""))
            for name, text in self.function.texts.items()
            for p in _PRODUCT.finditer(text)
            if written[p[1]] == 2 and p[1] not in self.steady
        }

    @cached_property
    def inside(self) -> Mapping[str, set[str]]:
        """The blocks of each loop, by its first block."""
        return dict(self.function.loops())

    @cached_property
    def homes(self) -> Mapping[str, str]:
        """The blocks of all values that the function computes."""
        blocks = self.function.blocks.items()
        return {s.result: name for name, block in blocks for s in block if s.result}

    @cached_property
    def steady(self) -> set[str]:
        """What stays the same in the loop that computes it."""
        steady = set[str]()
        for name, block in self.function.blocks.items():
            loop = self.loops.get(name)
            if loop is None:
                continue
            for s in block:
                if s.operation in _MOVED and all(
                    self.is_outside(u, loop) or (u in steady and self.loops[self.homes[u]] == loop)
                    for u in s.used
                ):
                    steady.add(s.result)
        return steady

    def stays(self, value: str, loop: str) -> bool:
        return value in self.steady or self.is_outside(value, loop)

    def is_outside(self, value: str, loop: str) -> bool:
        """Whether a loop does not compute it."""
        return self.homes.get(value) not in self.inside.get(loop, ())


def _operands(text: str) -> tuple[str, str, str]:
    """A type and two operands, of what stands after the name of an operation and its flags."""
    text = text.split(", !")[0]
    found = _KIND.match(text)
    assert found is not None, text
    kind, rest, depth = found[0], text[found.end() + 1 :], 0
    for n, letter in enumerate(rest):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and not depth:
            return kind, rest[:n], rest[n + 2 :]
    raise AssertionError(f"one operand: {text}")


def _is_literal(operand: str) -> bool:
    return not operand.startswith(("%", "@"))
