"""Random elementwise kernels of branches, sums and products, as source text: every operation fits every value.

Many products are used once, behind branches that came after them: where compilers choose whether to fuse them with a
sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

FIELDS, UNIFORMS, RESULTS = ("a", "b", "c"), ("p", "q"), ("r",)  # few enough fields for vectors in every layout
FUNCTIONS = (
    "lw.sqrt(abs({0}))",
    "abs({0})",
    "lw.min({0}, {1})",
    "lw.max({0}, {1})",
    "{0} / (1.5 + abs({1}))",
    "(-{0})",
)


@dataclass
class Program:
    """A text that is being written.

    values: the variables and constants that may be read. fresh: products that nothing has read yet; variables: what
    branches change.
    """

    rng: Random
    values: list[str]
    functions: Sequence[str] = FUNCTIONS
    lines: list[str] = field(default_factory=list[str])
    fresh: list[str] = field(default_factory=list[str])
    variables: list[str] = field(default_factory=list[str])
    count: int = 0

    def value(self) -> str:
        if self.fresh and self.rng.random() < 0.4:
            return self.fresh.pop(self.rng.randrange(len(self.fresh)))
        return self.rng.choice(self.values)

    def expression(self, depth: int) -> str:
        rng = self.rng
        if depth == 0:
            return self.value()
        one, other = self.expression(depth - 1), self.expression(rng.randrange(depth))
        if rng.random() < 0.5:
            one, other = other, one
        draw = rng.random()
        if draw < 0.4:
            return f"({one} * {other})"
        if draw < 0.8:
            return f"({one} {rng.choice('+-')} {other})"
        if draw < 0.95:
            return rng.choice(self.functions).format(one, other)
        return f"({one} if {self.condition()} else {other})"

    def condition(self) -> str:
        one, other = self.rng.choice(self.values), self.rng.choice(self.values)
        return f"{one} {self.rng.choice(('<', '>', '<='))} {other}"

    def block(self, statements: int, depth: int, indent: str) -> None:
        known = len(self.values)
        for _ in range(statements):
            self.statement(depth, indent)
        del self.values[known:]  # what a block defines ends with it
        self.fresh = [x for x in self.fresh if len(indent) <= 4 or x.startswith("y")]

    def statement(self, depth: int, indent: str) -> None:
        rng, draw = self.rng, self.rng.random()
        if depth and draw < 0.35:
            self.lines.append(f"{indent}if {self.condition()}:")
            self.block(rng.randint(1, 3), depth - 1, indent + "    ")
            if rng.random() < 0.5:
                self.lines.append(f"{indent}else:")
                self.block(rng.randint(1, 2), depth - 1, indent + "    ")
        elif draw < 0.7:
            operator = rng.choice(("=", "+=", "-=", "*="))
            self.lines.append(f"{indent}{rng.choice(self.variables)} {operator} {self.expression(2)}")
        else:
            self.product(indent)

    def product(self, indent: str) -> None:
        """A variable that one place reads, if any. Those of the whole function begin with another letter than those of
        a branch.
        """
        self.count += 1
        name = f"{'y' if len(indent) == 4 else 'x'}{self.count}"
        self.lines.append(f"{indent}{name} = {self.expression(0)} * {self.expression(1)}")
        self.fresh.append(name)


def branching_kernel(rng: Random, kind: str, *functions: str) -> str:
    """The text of a record `R` and a kernel `kernel` over it. functions: more of them, of {0} and {1}."""
    p = Program(rng, [*(f"e.{n}" for n in FIELDS), *UNIFORMS, "0.7", "1.3"], (*FUNCTIONS, *functions))
    indent = "    "
    for name in ("u", "v", "w"):
        p.lines.append(f"{indent}{name} = {p.expression(1)}")
        p.variables.append(name)
        p.values.append(name)
    for _ in range(rng.randint(1, 3)):
        p.product(indent)
        p.product(indent)
        p.lines.append(f"{indent}if {p.condition()}:")
        p.block(rng.randint(1, 3), 1, indent * 2)
        p.block(rng.randint(1, 3), 1, indent)
    p.lines += [f"{indent}e.{name} = {p.expression(2)}" for name in RESULTS]
    p.lines.append(f"{indent}return u + v * w")
    fields = "\n".join(f"    {n}: lw.{kind}" for n in (*FIELDS, *RESULTS))
    uniforms = ", ".join(f"{n}: lw.{kind}" for n in UNIFORMS)
    head = f"@lw.elementwise\ndef kernel(e: R, {uniforms}) -> lw.{kind}:"
    return f"class R(lw.Record):\n{fields}\n\n\n{head}\n" + "\n".join(p.lines) + "\n"
