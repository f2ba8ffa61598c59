"""Loads in a branch of elements that were loaded before it: the value is there already.

    load a[y, k]: u; if abs(u) > m: load a[y, k]: v; m = abs(v)
->  load a[y, k]: u; if abs(u) > m: m = abs(u)
So the branch reads no memory, and compilers select a value where they would jump. Arrays that the
kernel writes stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import (
    blocks,
    flat_map,
    read_counts,
    reads,
    rename,
    statements,
    write_counts,
    written_in,
)

Element = tuple[str, tuple[ir.Expression, ...]]
"""The array and the indices of an element."""


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel without such loads; the same object where it has none."""
    if not any(isinstance(s, ir.If) for s in statements(kernel.body)):
        return kernel
    found = _HeldElements(kernel)
    found.block(kernel.body, {})
    if not found.same:
        return kernel
    body = flat_map(kernel.body, lambda s: () if found.is_gone(s) else (s,))
    return replace(kernel, body=rename(body, found.same))


class _HeldElements:
    """Which variables hold what others hold already."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.fixed = {a.name for a in kernel.arrays if not a.written}
        self.written, self.read = write_counts(kernel.body), read_counts(kernel.body)
        self.same: dict[str, str] = {}

    def is_gone(self, s: ir.Statement) -> bool:
        return isinstance(s, ir.LoadElement) and s.name in self.same

    def block(self, block: ir.Block, before: dict[Element, str]) -> None:
        """before: the variables that hold elements where a branch begins."""
        outside, held = dict(before), dict[Element, str]()
        for n, s in enumerate(block):
            match s:
                case ir.LoadElement(name=name) if s.array in self.fixed and not s.more:
                    element = (s.array, s.indices)
                    if element in outside and self._is_local(name, block[n + 1 :]):
                        self.same[name] = outside[element]
                        continue
                    _forget(outside, (name,))
                    _forget(held, (name,))
                    if self.written[name] == 1:
                        held.setdefault(element, name)
                case _:
                    for inner in blocks(s):
                        self.block(inner, held | outside if isinstance(s, ir.If) else {})
                    _forget(outside, written_in((s,)))
                    _forget(held, written_in((s,)))

    def _is_local(self, name: str, after: ir.Block) -> bool:
        """Whether a variable is given a value once, and read behind that in its block alone."""
        return self.written[name] == 1 and read_counts(after)[name] == self.read[name]


def _forget(held: dict[Element, str], names: Iterable[str]) -> None:
    """Variables are given other values: nothing is known any more of what they hold, and of
    elements at places that they tell.
    """
    gone = set(names)
    for element, name in list(held.items()):
        if name in gone or any(not gone.isdisjoint(reads(i)) for i in element[1]):
            del held[element]
