"""The values of a kernel, numbered, each with the region that computes it."""

from __future__ import annotations

from dataclasses import dataclass, field

from lanewise.analysis.instructions import mix
from lanewise.analysis.region import Region
from lanewise.analysis.value_numbering import Table, Value, number_function
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import rewrite
from lanewise.types import Scalar

Environment = dict[str, Value]


@dataclass(slots=True)
class Values:
    """All values of one kernel.

    `homes` says where each is computed, `roots` which are wanted (stored, tested, handed on), `carried` which of them a loop
    hands from one turn to the next, `loaded` which come from global memory.
    """

    top: Region
    table: Table = field(default_factory=Table)
    homes: dict[int, Region] = field(default_factory=dict[int, Region])
    roots: list[int] = field(default_factory=list[int])
    carried: set[int] = field(default_factory=set[int])
    loaded: set[int] = field(default_factory=set[int])
    fresh: int = 0

    def leaf(self, name: str, kind: Scalar, home: Region) -> Value:
        """A value that is there without an instruction of its own."""
        self.fresh += 1
        value = self.table.leaf(f"{name}@{self.fresh}", kind)
        self.homes[value.number] = home
        return value

    def type_of(self, value: Value) -> Scalar:
        return self.table.nodes[value.number].type

    def want(self, e: ir.Expression, env: Environment, here: Region) -> Value:
        """The value of an expression that is needed for what it is, not only for another."""
        value = self.number(e, env, here)
        self.roots.append(value.number)
        return value

    def number(self, e: ir.Expression, env: Environment, here: Region) -> Value:
        """The value of an expression; a new one is computed before the loops that do not change it."""
        before = len(self.table.nodes)
        expression = rewrite(e, lambda x: self._named(x, env, here))
        function = ir.Function("", (), (), (ir.Return((expression,)),))
        value = number_function(self.table, function, env)[0]
        for n in range(before, len(self.table.nodes)):
            if n not in self.homes:
                self.homes[n] = self._home(n, here)
        self._share(value.number, here)
        return value

    def _named(self, x: ir.Expression, env: Environment, here: Region) -> ir.Expression:
        """Coordinates of the thread and elements of local arrays as variables; variables that are not known yet as leaves."""
        match x:
            case ir.Builtin():
                name = f"@{x.name}"
                if name not in env:
                    env[name] = self.table.leaf(name, x.type)
                    self.homes.setdefault(env[name].number, self.top)
                return ir.Local(name, x.type)
            case ir.Element():
                self.want(x.index, env, here)
                here.instructions += mix({f"local load {x.type.size}": 1})
                name = f"{x.array}[{self.fresh}]"
                env[name] = self.leaf(name, x.type, here)
                return ir.Local(name, x.type)
            case ir.Local() if x.name not in env:
                env[x.name] = self.leaf(x.name, x.type, here)
                return x
            case _:
                return x

    def _home(self, number: int, here: Region) -> Region:
        """The region of the deepest loop that one of its operands changes in."""
        operands = (self.homes[o] for o in self.table.nodes[number].operands)
        depth = max((r.depth for r in operands), default=0)
        home = here
        while home.depth > depth and home.parent is not None:
            home = home.parent
        return home

    def _share(self, number: int, here: Region) -> None:
        """A value that was computed in another branch moves to where both see it, with what it is computed from."""
        waiting = [number]
        while waiting:
            n = waiting.pop()
            if here.inside(self.homes[n]):
                continue
            while not here.inside(self.homes[n]):
                parent = self.homes[n].parent
                assert parent is not None  # the kernel's own region is around every other
                self.homes[n] = parent
            waiting += self.table.nodes[n].operands
