"""Where the variables of a C-like function are declared: at their first assignment if that sees all their uses, else before."""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import blocks, expressions, reads, statements, writes
from lanewise.types import LocalArray, Scalar

Kinds = dict[str, Scalar | LocalArray]


def kinds_of(block: ir.Block, buffers: dict[str, Scalar] | None = None) -> Kinds:
    """The type of every variable that a block assigns."""
    kinds: Kinds = {}
    for s in statements(block):
        match s:
            case ir.Assign():
                kinds[s.name] = s.value.type
            case ir.DeclareArray():
                kinds[s.name] = s.type
            case ir.Apply():
                kinds |= {n: r.type for n, r in zip(s.results, s.function.results, strict=True)}
            case ir.Load():
                kinds |= {n: (buffers or {})[s.buffer] for n in s.names if n}
            case _:
                pass
    return kinds


class Declarations:
    """Answers, statement by statement, which variables to declare before it and which it declares itself."""

    def __init__(self, block: ir.Block, kinds: Kinds, parameters: set[str]) -> None:
        self.kinds = kinds
        self._before: dict[int, list[str]] = {}
        self._inline: dict[int, set[str]] = {}
        self._assignments: dict[str, int] = {}
        for s in statements(block):
            for n in writes(s):
                self._assignments[n] = self._assignments.get(n, 0) + 1
        self._place(block, {n for n in kinds if n not in parameters})

    def before(self, s: ir.Statement) -> list[str]:
        """Variables to declare, without a value, in front of the statement."""
        return self._before.get(id(s), [])

    def declares(self, s: ir.Statement, name: str) -> bool:
        """Whether the statement's assignment is the declaration."""
        return name in self._inline.get(id(s), ())

    def is_constant(self, name: str) -> bool:
        return self._assignments.get(name, 0) == 1

    def _place(self, block: ir.Block, names: set[str]) -> None:
        """Declare each name in the innermost block that holds the whole life of each of its values."""
        places: dict[str, list[ir.Statement]] = {}
        for s in block:
            for n in sorted(self._names(s) & names):
                places.setdefault(n, []).append(s)
        deeper: dict[int, set[str]] = {}
        for n, where in places.items():
            if all(not self._direct(s, n) and self._first_access(blocks(s), n) != "read" for s in where):
                for s in where:  # no value passes from one of these statements to another
                    deeper.setdefault(id(s), set()).add(n)
            elif n in writes(where[0]) and isinstance(where[0], (ir.Assign, ir.Load, ir.DeclareArray, ir.Apply)) and n not in self._read(where[0]):
                self._inline.setdefault(id(where[0]), set()).add(n)
            else:
                self._before.setdefault(id(where[0]), []).append(n)
        for s in block:
            if inner := deeper.get(id(s)):
                for nested in blocks(s):
                    self._place(nested, inner)

    def _first_access(self, nested: tuple[ir.Block, ...], name: str) -> str:
        """ "read" when a run of these blocks can read `name` before writing it, else "write" or "none"."""
        found = "none"
        for block in nested:
            for s in block:
                access = "read" if name in self._read(s) else "write" if name in writes(s) else self._first_access(blocks(s), name)
                sure = access == "write" and (name in writes(s) or isinstance(s, ir.If) and all(self._first_access((b,), name) == "write" for b in blocks(s)))
                if access == "read":
                    return "read"
                if access == "write":
                    found = "write"
                if sure:
                    break
        return found

    @staticmethod
    def _read(s: ir.Statement) -> set[str]:
        return {n for e in expressions(s) for n in reads(e)}

    def _direct(self, s: ir.Statement, name: str) -> bool:
        return name in self._read(s) or (name in writes(s))

    def _names(self, s: ir.Statement) -> set[str]:
        nested = {n for b in blocks(s) for x in b for n in self._names(x)}
        return self._read(s) | set(writes(s)) | nested
