"""Where the variables of a C-like function are declared: at their first assignment if that sees all
their uses, else before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lanewise.ir import nodes as ir
from lanewise.ir.declared import declared
from lanewise.ir.traverse import blocks, declares, expressions, reads, statements, writes
from lanewise.language.types import LocalArray, Scalar

Kinds = dict[str, Scalar | LocalArray]


def kinds_of(block: ir.Block, buffers: dict[str, Scalar] | None = None) -> Kinds:
    """The type of every variable that a block assigns."""
    stored = {} if buffers is None else buffers
    return {
        name: kind
        for s in statements(block)
        if not blocks(s)  # a loop declares its variable
        for name, kind in declared(s, lambda buffer, _: stored[buffer])
    }


class Declarations:
    """Answers, statement by statement, which variables to declare before it and which it declares
    itself. The block must be `apart`.
    """

    def __init__(self, block: ir.Block, kinds: Kinds, parameters: Iterable[str]) -> None:
        self.kinds = kinds
        self._before: dict[int, list[str]] = {}
        self._inline: dict[int, dict[str, bool]] = {}
        self._unread: set[tuple[int, str]] = set()
        # Asked again and again of the same statements and blocks, which the block keeps alive.
        self._reads: dict[int, frozenset[str]] = {}
        self._names: dict[int, frozenset[str]] = {}
        self._below: dict[int, frozenset[str]] = {}
        self._times: dict[int, Counter[str]] = {}
        self._lines: dict[int, dict[str, list[ir.Statement]]] = {}
        self._met: dict[tuple[int, str], tuple[str, bool]] = {}
        self._place(block, set(kinds) - set(parameters))

    def before(self, s: ir.Statement) -> list[str]:
        """Variables to declare, without a value, in front of the statement."""
        return self._before.get(id(s), [])

    def declares(self, s: ir.Statement, name: str) -> bool:
        """Whether the statement's assignment is the declaration."""
        return name in self._inline.get(id(s), ())

    def is_constant(self, s: ir.Statement, name: str) -> bool:
        """Whether the variable that this statement declares keeps its value."""
        return self._inline.get(id(s), {}).get(name, False)

    def is_unread(self, s: ir.Statement, name: str) -> bool:
        """Whether nothing reads the variable that this statement declares: another block has one of
        the same name.
        """
        return (id(s), name) in self._unread

    def _place(self, block: ir.Block, names: set[str]) -> None:
        """Declare each name in the innermost block that holds the whole life of each of its
        values.
        """
        places: dict[str, list[ir.Statement]] = {}
        for s in block:
            for n in sorted(self._named(s) & names):
                places.setdefault(n, []).append(s)
        deeper: dict[int, set[str]] = {}
        for n, where in places.items():
            first = where[0]
            if all(
                not self._is_direct(s, n) and self._first_access(blocks(s), n) != "read"
                for s in where
            ):
                for s in where:  # no value passes from one of these statements to another
                    deeper.setdefault(id(s), set()).add(n)
            elif n in writes(first) and _can_declare(first) and n not in self._read(first):
                once = sum(self._written(s)[n] for s in where) == 1
                self._inline.setdefault(id(first), {})[n] = once
                if once and not any(n in self._all_read(s) for s in where):
                    self._unread.add((id(first), n))
            else:
                self._before.setdefault(id(first), []).append(n)
        for s in block:
            if inner := deeper.get(id(s)):
                for nested in blocks(s):
                    self._place(nested, inner)

    # ------------------------------------------------------------ what statements do with a name

    def _first_access(self, nested: tuple[ir.Block, ...], name: str) -> str:
        """How these blocks meet `name` first: "read" when a run of them can read it before writing
        it, else "write" or "none".
        """
        accesses = {self._meets(block, name)[0] for block in nested}
        return next((access for access in ("read", "write") if access in accesses), "none")

    def _meets(self, block: ir.Block, name: str) -> tuple[str, bool]:
        """The same for one block, and whether each of its runs writes `name`."""
        key = (id(block), name)
        if key not in self._met:
            self._met[key] = self._meeting(block, name)
        return self._met[key]

    def _meeting(self, block: ir.Block, name: str) -> tuple[str, bool]:
        first = "none"
        for s in self._mentions(block).get(name, ()):
            if name in self._read(s):
                return "read", False
            if name in writes(s):
                return "write", True
            inner = [self._meets(b, name) for b in blocks(s)]
            if any(access == "read" for access, _ in inner):
                return "read", False
            if any(access == "write" for access, _ in inner):
                first = "write"
                if isinstance(s, ir.If) and all(sure for _, sure in inner):
                    return "write", True
        return first, False

    def _mentions(self, block: ir.Block) -> dict[str, list[ir.Statement]]:
        """The statements of a block that each name occurs in."""
        if id(block) not in self._lines:
            lines: dict[str, list[ir.Statement]] = {}
            for s in block:
                for n in self._named(s):
                    lines.setdefault(n, []).append(s)
            self._lines[id(block)] = lines
        return self._lines[id(block)]

    def _read(self, s: ir.Statement) -> frozenset[str]:
        """What a statement reads itself, not in its blocks."""
        if id(s) not in self._reads:
            self._reads[id(s)] = frozenset(n for e in expressions(s) for n in reads(e))
        return self._reads[id(s)]

    def _all_read(self, s: ir.Statement) -> frozenset[str]:
        """What a statement and its blocks read."""
        if id(s) not in self._below:
            self._below[id(s)] = self._read(s).union(
                *(self._all_read(x) for b in blocks(s) for x in b)
            )
        return self._below[id(s)]

    def _written(self, s: ir.Statement) -> Counter[str]:
        """How many statements of this one and its blocks write a name."""
        if id(s) not in self._times:
            times = Counter(set(writes(s)))
            for b in blocks(s):
                for x in b:
                    times.update(self._written(x))
            self._times[id(s)] = times
        return self._times[id(s)]

    def _named(self, s: ir.Statement) -> frozenset[str]:
        """All that a statement and its blocks read or write."""
        if id(s) not in self._names:
            inner = (self._named(x) for b in blocks(s) for x in b)
            self._names[id(s)] = self._read(s).union(writes(s), *inner)
        return self._names[id(s)]

    def _is_direct(self, s: ir.Statement, name: str) -> bool:
        return name in self._read(s) or name in writes(s)


def _can_declare(s: ir.Statement) -> bool:
    """Whether emitters write the statement as an assignment, or its declaration before it."""
    return bool(declares(s)) and not isinstance(s, ir.For | ir.Draw)
