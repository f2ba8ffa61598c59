"""The IR: statements, functions and kernels; and all that they are made of, by the same name.

A `Function` is pure (scalars in, scalars out). A `Kernel` moves records between memory and
functions. Both use the same expressions and control flow, so that one printer, verifier,
interpreter and traversal serve every stage. Nodes are immutable; passes build new ones. Names keep
the user's dots (`source.position.x`) until emission.

Statements that touch memory are in `ir/accesses.py`, those in which threads meet in
`ir/cooperation.py`, expressions in `ir/expressions.py`, and what a kernel has around its statements
in `ir/arguments.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar
from typing import Literal as Choice

from lanewise.ir.accesses import *
from lanewise.ir.arguments import *
from lanewise.ir.cooperation import *
from lanewise.ir.expressions import *
from lanewise.ir.pattern import Pattern
from lanewise.ir.roles import (
    Changed,
    Declared,
    StatementNode,
)
from lanewise.language.types import LocalArray
from lanewise.support.errors import NOWHERE, Location

if TYPE_CHECKING:
    from lanewise.ir.reductions.base import Accumulator


@dataclass(frozen=True, slots=True)
class Assign(StatementNode):
    """Give a variable a value; its first assignment declares it."""

    name: Declared
    value: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeclareArray(StatementNode):
    """A local array, all zero."""

    form: ClassVar[str] = "{name}: {type}"

    name: Declared
    type: LocalArray
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SetElement(StatementNode):
    form: ClassVar[str] = "{array}[{index}] = {value}"

    array: Changed
    index: Expression
    value: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class If(StatementNode):
    condition: Expression
    then: Block
    otherwise: Block = ()
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class For(StatementNode):
    """`for variable in range(start, stop, step)`. `role` tells passes what the loop runs over, and
    of "lanes" that its rounds go together; `unroll` is a factor, 0 means fully.
    """

    variable: Declared
    start: Expression
    stop: Expression
    step: Expression
    body: Block
    role: Choice["user", "sources", "tiles", "slices", "points", "late", "lanes"] = "user"
    unroll: int = 1
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class While(StatementNode):
    form: ClassVar[str] = "while {condition}:"

    condition: Expression
    body: Block
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Break(StatementNode):
    form: ClassVar[str] = "break"

    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Continue(StatementNode):
    form: ClassVar[str] = "continue"

    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Return(StatementNode):
    """Leave the function with one value for each of its results."""

    form: ClassVar[str] = "return {values}"

    values: tuple[Expression, ...]
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Apply(StatementNode):
    """Call a function. Mutable parameters take a `Local` and change it; `results` name the
    variables that take its results.
    """

    function: Function
    arguments: tuple[Expression, ...]
    results: tuple[Declared, ...]
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Parallel(StatementNode):
    """Independent elements 0..extent, in any order and at any time: the reference form of every
    pattern.
    """

    form: ClassVar[str] = "parallel for {variable} in range({extent}):"

    variable: Declared
    extent: Expression
    body: Block


Statement = (
    Assign
    | DeclareArray
    | SetElement
    | If
    | For
    | While
    | Break
    | Continue
    | Return
    | Apply
    | Parallel
    | LoadRecord
    | StoreRecord
    | LoadElement
    | StoreElement
    | ScatterElement
    | PrefetchElement
    | Barrier
    | Rotate
    | Shuffle
    | Least
    | Draw
    | AwaitTurn
    | EndTurn
    | CopyAsync
    | CopyElement
    | CommitAsync
    | WaitAsync
    | Load
    | Store
    | Prefetch
    | Scatter
    | CopyLanes
)

Block = tuple[Statement, ...]

Unlowered = (
    Parallel
    | LoadRecord
    | StoreRecord
    | LoadElement
    | StoreElement
    | ScatterElement
    | PrefetchElement
    | CopyAsync
    | CopyElement
)
"""What is no more where code is written: elements are threads, and records lie in buffers."""

Cooperation = Rotate | Shuffle | Least | Draw | AwaitTurn | EndTurn
"""What the threads of a warp do together."""

OfLanes = Shuffle | Least
"""What the lanes of SIMD registers can do as well."""

Agreed = Least
"""What is the same in all threads of a warp, whatever it is made of."""

OfThreads = Barrier | Cooperation | CopyLanes | CommitAsync | WaitAsync
"""What one thread of a CPU never does alone."""

ElementAccess = LoadElement | StoreElement | ScatterElement

ElementWrite = StoreElement | ScatterElement

# ---------------------------------------------------------------- functions and kernels


@dataclass(frozen=True, slots=True)
class Function:
    """The user's element function, or a helper that it calls."""

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    body: Block
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A launchable piece of work. `uniforms` are the same for all elements; `counts` are array
    lengths, also uniforms.

    `series`: it is launched many times, the outermost series first; kernels with the same series
    take turns (`ir/series.py`). `parts` of its elements have their own sums of floats that are
    added in order.
    """

    name: str
    pattern: Pattern
    arrays: tuple[ArrayArgument, ...]
    uniforms: tuple[Parameter, ...]
    counts: tuple[Parameter, ...]
    body: Block
    grid: Grid | None = None
    buffers: tuple[BufferArgument, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    series: tuple[Series, ...] = ()
    identical: bool = False  # the targets and the sources of pairs are one array
    reductions: tuple[Accumulator, ...] = ()  # of pairs: what the values of all sources become
    parts: int = 1
    location: Location = field(default=NOWHERE, compare=False, repr=False)

    def array(self, name: str) -> ArrayArgument:
        return next(a for a in self.arrays if a.name == name)
