"""The blocks of functions in LLVM's language, read from the text of a module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

NAME = r'%(?:"[^"]*"|[-\w.$]+)'
# how a function begins, with its name; its blocks follow
FUNCTION = re.compile(r'define [^\n]*?@("[^"]*"|[-\w.$]+)\([^\n]*\{\n')
USED = re.compile(NAME)
_LABEL = re.compile(r'^("[^"]*"|[-\w.$]+):.*\n', re.M)
_STATEMENT = re.compile(rf"^  (?:({NAME}) = )?(?:tail |musttail |notail )?(\w+)(.*)", re.M)
_TARGET = re.compile(rf"label ({NAME})")
END = "\n}\n"  # of a function


@dataclass(frozen=True, slots=True)
class LlvmStatement:
    """What it defines, its operation, the values that it uses, and what is written behind."""

    result: str  # "" for one that defines nothing
    operation: str
    used: list[str]
    rest: str


@dataclass(frozen=True)
class LlvmFunction:
    """Its blocks in an order in which what leads to a block comes before it, but for the ends of
    loops; and where each of them leads.
    """

    texts: dict[str, str]
    leads: dict[str, list[str]]

    @cached_property
    def blocks(self) -> dict[str, list[LlvmStatement]]:
        return {name: _statements(text) for name, text in self.texts.items()}

    @cached_property
    def place(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.texts)}

    @cached_property
    def before(self) -> dict[str, list[str]]:
        """The blocks that lead to each block."""
        before: dict[str, list[str]] = {name: [] for name in self.texts}
        for name, targets in self.leads.items():
            for target in dict.fromkeys(targets):
                before[target].append(name)
        return before

    @cached_property
    def variables(self) -> dict[str, str]:
        """Pointers into memory of the function's own, with the variable that they point into."""
        known: dict[str, str] = {}
        for s in (s for block in self.blocks.values() for s in block if s.result):
            if s.operation == "alloca":
                known[s.result] = s.result
            elif s.operation == "getelementptr" and s.used[0] in known:
                known[s.result] = known[s.used[0]]
        return known

    def loops(self) -> Iterator[tuple[str, set[str]]]:
        """Each loop: the first of its blocks, and all of them."""
        for head, place in self.place.items():
            ends = [n for n in self.before[head] if self.place[n] >= place]
            if ends:
                inside = {head}
                while ends:
                    name = ends.pop()
                    if name not in inside:
                        inside.add(name)
                        ends += self.before[name]
                yield head, inside


def _statements(text: str) -> list[LlvmStatement]:
    found = _STATEMENT.finditer(text)
    return [LlvmStatement(m[1] or "", m[2], USED.findall(m[3]), m[3]) for m in found]


def read_function(body: str) -> LlvmFunction:
    """A function of a module, of the text between its braces."""
    first, *rest = _LABEL.split(body)
    texts = {f"%{name}": text for name, text in zip(rest[::2], rest[1::2], strict=True)}
    texts = {"": first, **texts} if first.strip() else texts
    leads = {name: _TARGET.findall(text) for name, text in texts.items()}
    order = _from_the_beginning(next(iter(texts)), leads)
    return LlvmFunction({n: texts[n] for n in order}, {n: leads[n] for n in order})


def _from_the_beginning(first: str, leads: Mapping[str, list[str]]) -> list[str]:
    """The blocks that can be reached, each behind those that lead to it, but for ends of loops."""
    seen, left = {first}, list[str]()
    todo = [(first, iter(leads[first]))]
    while todo:
        name, targets = todo[-1]
        target = next((t for t in targets if t not in seen), None)
        if target is None:
            left.append(name)
            todo.pop()
        else:
            seen.add(target)
            todo.append((target, iter(leads[target])))
    return left[::-1]
