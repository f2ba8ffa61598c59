"""What a kernel consists of for the models: pieces that run equally often, what each costs and
touches, and the values it computes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from lanewise.analysis.instructions import Instructions, mix
from lanewise.analysis.value_numbering import Value, ValueTable, number_expression
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import rewrite, subexpressions
from lanewise.language.types import Scalar

SECTOR = 32  # bytes that memory moves at least
Pattern = Literal["streamed", "strided", "broadcast", "gathered"]


@dataclass(frozen=True, slots=True)
class RegionAccess:
    """One load or store: `bytes` of one thread, of which `useful` bytes are wanted.

    `sectors` are the 32-byte sectors that a warp touches with it, `wavefronts` the passes through
    the L1 cache or shared memory (on a CPU: the distance of neighbours in elements, 0 for no single
    one), `lines` the places of 128 bytes that it touches. `pattern`: neighbouring threads access
    neighbouring places ("streamed"), places with gaps ("strided"), one place ("broadcast"), or
    places that data tell ("gathered").
    """

    buffer: str
    space: str
    write: bool
    bytes: int
    useful: int
    pattern: Pattern
    sectors: float
    wavefronts: float
    names: tuple[str, ...] = ()
    lines: float = 0.0


@dataclass(slots=True)
class Region:
    """What runs together. `executions` are those of one warp (of one element on a CPU), on average
    over the launch.
    """

    role: str
    parent: Region | None
    executions: float
    trips: float = 1.0
    unroll: float = 1.0
    depth: int = 0  # loops around it
    instructions: Instructions = field(default_factory=Instructions)
    accesses: list[RegionAccess] = field(default_factory=list[RegionAccess])
    children: list[Region] = field(default_factory=list["Region"])
    barriers: int = 0
    stages: int = 0  # times that a turn waits for what it loads itself into shared memory
    # "array/buffer/read": a sector counts once
    sectors: dict[str, float] = field(default_factory=dict[str, float])
    # the same, where what several warps of a block touch counts once; the share of a warp
    together: dict[str, float] = field(default_factory=dict[str, float])
    # of floats, by bytes
    operations: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    applications: int = 0  # of functions, directly in it
    latency: float = 0.0  # cycles of its longest chain of operations, one after the other
    words: int = 0  # 32-bit values that it holds from outside, or carries from one turn to the next
    # a loop within an element, on a CPU: no lanes are made of what is around it
    alone: bool = False
    data_end: bool = False  # it turns until data say so: a CPU mispredicts where it ends

    @property
    def is_loop(self) -> bool:
        return self.role.startswith("loop")

    def add(self, role: str, executions: float, *, depth: int, unroll: float = 1.0) -> Region:
        """A new region within this one."""
        self.children.append(Region(role, self, executions, depth=depth, unroll=unroll))
        return self.children[-1]

    def note_staging(self) -> None:
        """The loop around waits for a load from global memory before it can continue."""
        region = self
        while not region.is_loop and region.parent is not None:
            region = region.parent
        region.stages += 1

    def walk(self) -> list[Region]:
        """This region and all within it, outer ones first."""
        return [self, *(r for c in self.children for r in c.walk())]

    def inside(self, ancestor: Region) -> bool:
        return self is ancestor or (self.parent is not None and self.parent.inside(ancestor))


@dataclass(frozen=True, slots=True)
class Unknown:
    """Loops whose turns no count tells, by their variables ("while" for one without).

    guessed: taken for some number; expected: for the average that the kernel's maker told; early:
    such that may end before their last turn. What is counted of them is no bound.
    """

    guessed: tuple[str, ...] = ()
    expected: tuple[tuple[str, float], ...] = ()
    early: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.guessed or self.expected or self.early)


@dataclass(frozen=True)
class KernelWork:
    """The regions of a kernel, and its launch: blocks of `threads` threads, or elements on a CPU
    (`threads` 1).

    unknown: the loops whose turns no count tells. reached: the share of the rows of a buffer that
    are accessed, where it is not all, by its key in `Region.sectors`.
    """

    kernel: ir.Kernel
    root: Region
    blocks: int
    threads: int
    unknown: Unknown = Unknown()
    reached: Mapping[str, float] = field(default_factory=dict[str, float])

    @cached_property
    def regions(self) -> list[Region]:
        return self.root.walk()

    @cached_property
    def instructions(self) -> Instructions:
        """All instructions of one warp, on average."""
        total: Counter[str] = Counter()
        for r in self.regions:
            total.update({k: n * r.executions for k, n in r.instructions.counts.items()})
        return mix(total)

    @cached_property
    def inner_loop(self) -> Region | None:
        """The loop that takes most instructions, with what is in it counted to it."""
        innermost = [
            r for r in self.regions if r.is_loop and not any(c.is_loop for c in r.walk()[1:])
        ]
        return max(innermost, key=lambda r: r.executions * r.instructions.slots, default=None)


Environment = dict[str, Value]


def _is_unnamed(x: ir.Expression, env: Environment) -> bool:
    """Whether `Values._named` puts a variable in its place, or makes it known."""
    return isinstance(x, ir.Builtin | ir.Element) or (isinstance(x, ir.Local) and x.name not in env)


@dataclass(slots=True)
class Values:
    """All values of one kernel.

    `homes` says where each is computed, `roots` which are wanted (stored, tested, handed on),
    `carried` which of them a loop hands from one turn to the next, `loaded` which come from global
    memory.
    """

    top: Region
    table: ValueTable = field(default_factory=ValueTable)
    homes: dict[int, Region] = field(default_factory=dict[int, Region])
    roots: list[int] = field(default_factory=list[int])
    carried: set[int] = field(default_factory=set[int])
    loaded: set[int] = field(default_factory=set[int])
    fresh: int = 0
    least: bool = False  # what may not run stays where it is

    def leaf(self, name: str, kind: Scalar, home: Region) -> Value:
        """A value that is there without a separate instruction."""
        self.fresh += 1
        value = self.table.leaf(f"{name}@{self.fresh}", kind)
        self.homes[value.number] = home
        return value

    def either(self, values: list[Value], home: Region, *, selects: bool) -> Value:
        """One of these values, which a branch tells: they are wanted where it is."""
        self.fresh += 1
        operands = tuple(v.number for v in values)
        operation = "select" if selects and len(values) > 1 else "either"
        number = self.table.add(operation, operands, self.type_of(values[0]), self.fresh)
        self.homes[number] = home
        return Value(number)

    def type_of(self, value: Value) -> Scalar:
        return self.table.nodes[value.number].type

    def want(self, e: ir.Expression, env: Environment, here: Region) -> Value:
        """The value of an expression that is needed for what it is, not only for another."""
        value = self.number(e, env, here)
        self.roots.append(value.number)
        return value

    def number(self, e: ir.Expression, env: Environment, here: Region) -> Value:
        """The value of an expression; a new one is computed before the loops that do not change
        it.
        """
        before = len(self.table.nodes)
        # mostly there is none, and looking is cheaper than a new expression
        if any(_is_unnamed(x, env) for x in subexpressions(e)):
            e = rewrite(e, lambda x: self._named(x, env, here))
        value = number_expression(self.table, e, env)
        for n in range(before, len(self.table.nodes)):
            if n not in self.homes:
                self.homes[n] = self._home(n, here)
        self._share(value.number, here)
        return value

    def _named(self, x: ir.Expression, env: Environment, here: Region) -> ir.Expression:
        """Coordinates of the thread and elements of local arrays as variables; variables that are
        not known yet as leaves.
        """
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
        if self.least and not here.executions:
            return here
        operands = (self.homes[o] for o in self.table.nodes[number].operands)
        depth = max((r.depth for r in operands), default=0)
        home = here
        while home.depth > depth and home.parent is not None:
            home = home.parent
        return home

    def _share(self, number: int, here: Region) -> None:
        """A value that was computed in another branch moves to where both see it, with what it is
        computed from.
        """
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
