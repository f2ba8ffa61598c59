"""The IR on one page: scalar expressions, statements, functions and kernels.

A `Function` is pure (scalars in, scalars out). A `Kernel` moves records between memory and
functions. Both use the same expressions and control flow, so that one printer, verifier,
interpreter and traversal serve every stage. Nodes are immutable; passes build new ones. Names keep
the user's dots (`source.position.x`) until emission.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import copysign
from typing import TYPE_CHECKING, Annotated, ClassVar
from typing import Literal as Choice

from lanewise.ir.pattern import Pattern
from lanewise.ir.roles import (
    Changed,
    Counted,
    Declared,
    ExpressionNode,
    FieldRole,
    Loaded,
    Read,
    StatementNode,
    Stored,
)
from lanewise.language.record import Leaf
from lanewise.language.scatter import Operation as ScatterOperation
from lanewise.language.types import BOOL, LocalArray, Scalar
from lanewise.layouts.base import Arrangement
from lanewise.support.errors import NOWHERE, Location

if TYPE_CHECKING:
    from lanewise.ir.reductions.base import Accumulator

# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Literal(ExpressionNode):
    """A number or truth value of a definite type."""

    value: float | int | bool
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        """Whether both are one number: 0.0 and -0.0 are two, with infinities of two signs as 1 / x;
        NaN is one.
        """
        if not isinstance(other, Literal):
            return NotImplemented
        a, b = self.value, other.value
        if self.type is not other.type and self.type != other.type:
            return False
        return copysign(1, a) == copysign(1, b) if a == b == 0 else a == b or (a != a and b != b)

    def __hash__(self) -> int:
        return hash((self.value if self.value == self.value else None, self.type))


@dataclass(frozen=True, slots=True)
class Local(ExpressionNode):
    """The value of a parameter or local variable."""

    form: ClassVar[str] = "{name}"

    name: Read
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)


UnaryOperator = Choice["-", "not", "~"]
BinaryOperator = Choice["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"]
CompareOperator = Choice["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Unary(ExpressionNode):
    operator: UnaryOperator
    operand: Expression
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary(ExpressionNode):
    """Both operands and the result have one type; `/` is for floats only, `//` and `%` round
    towards minus infinity.

    Whole numbers wrap. `bounded`: lanewise's own arithmetic of indices, whose result surely fits;
    compilers may rely on it.
    `free`: a sum or product of floats that may be computed in any order with others that are free.
    """

    operator: BinaryOperator
    left: Expression
    right: Expression
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)
    bounded: bool = field(default=False, repr=False)
    free: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compare(ExpressionNode):
    operator: CompareOperator
    left: Expression
    right: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)

    @property
    def type(self) -> Scalar:
        return BOOL


@dataclass(frozen=True, slots=True)
class Logical(ExpressionNode):
    """`and` or `or`; the right side is evaluated only when the left leaves it open."""

    operator: Choice["and", "or"]
    left: Expression
    right: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)

    @property
    def type(self) -> Scalar:
        return BOOL


@dataclass(frozen=True, slots=True)
class Select(ExpressionNode):
    """One of two values; both may be computed."""

    condition: Expression
    if_true: Expression
    if_false: Expression
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cast(ExpressionNode):
    """A conversion, as `types.convert` defines it. `bounded`: of a float of lanewise's own, which
    surely fits.
    """

    form: ClassVar[str] = "{type}({operand})"

    operand: Expression
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)
    bounded: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call(ExpressionNode):
    """An intrinsic of `ir/interpret.py`."""

    form: ClassVar[str] = "{intrinsic}({arguments})"

    intrinsic: str
    arguments: tuple[Expression, ...]
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Element(ExpressionNode):
    """An element of a local array."""

    form: ClassVar[str] = "{array}[{index}]"

    array: Read
    index: Expression
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Builtin(ExpressionNode):
    """A coordinate of the running thread, or its multiprocessor's count of cycles: only after the
    map to threads.

    "phase" and "far" are no such things, but say of the array that the kernel writes, on a CPU, how
    many elements fit between the beginning of a line of memory and its own, and whether it is so
    large that it is written past the caches; "read_phase" is the same number as "phase" of the only
    array that it reads. What a kernel computes must not depend on them; the interpreter has 0 and
    no.
    """

    form: ClassVar[str] = "@{name}"

    name: Choice["thread", "block", "part", "clock", "phase", "read_phase", "far"]
    type: Scalar

    @property
    def location(self) -> Location:
        return NOWHERE


Expression = (
    Literal | Local | Unary | Binary | Compare | Logical | Select | Cast | Call | Element | Builtin
)

# ---------------------------------------------------------------- statements


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
    """`for variable in range(start, stop, step)`. `role` tells passes what the loop runs over;
    `unroll` is a factor, 0 means fully.
    """

    variable: Declared
    start: Expression
    stop: Expression
    step: Expression
    body: Block
    role: Choice["user", "sources", "tiles", "slices", "points", "late"] = "user"
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


@dataclass(frozen=True, slots=True)
class LoadRecord(StatementNode):
    """Read leaves of one record of an array into variables: pairs of (leaf, variable).

    `across` > 1: of that many neighbouring records. The first is at `index`, a multiple of their
    number; the pairs of one follow those of the one before.
    """

    array: Loaded
    index: Expression
    reads: tuple[tuple[str, Declared], ...]
    across: int = 1


@dataclass(frozen=True, slots=True)
class StoreRecord(StatementNode):
    """Write leaves of one record of an array: pairs of (leaf, value); `across` as in
    `LoadRecord`.
    """

    array: Stored
    index: Expression
    writes: tuple[tuple[str, Expression], ...]
    across: int = 1


@dataclass(frozen=True, slots=True)
class LoadElement(StatementNode):
    """Read one element of an array that has a shape into a variable; an index for each dimension,
    the slowest first.

    Indices are whole numbers of any type. None is negative or beyond its dimension. `more`:
    variables that take the elements behind it in the last dimension, at once; the last index and
    the length of that dimension are multiples of their number. `early`: the load is made before a
    test that decides whether its value counts, so that an index may be outside of its dimension;
    the place is in the array.
    """

    array: Loaded
    indices: tuple[Expression, ...]
    name: Declared
    location: Location = field(default=NOWHERE, compare=False, repr=False)
    more: tuple[Declared, ...] = ()
    early: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.more)


@dataclass(frozen=True, slots=True)
class StoreElement(StatementNode):
    """Write one element of an array that has a shape, or `more`; indices as in `LoadElement`."""

    form: ClassVar[str] = "store {array}[{indices}] = {values}"

    array: Stored
    indices: tuple[Expression, ...]
    value: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)
    more: tuple[Expression, ...] = ()

    @property
    def values(self) -> tuple[Expression, ...]:
        return (self.value, *self.more)


@dataclass(frozen=True, slots=True)
class ScatterElement(StatementNode):
    """Add a value to one element of an array that has a shape, or take the smaller or larger of the
    two; indices as in `LoadElement`.

    Many threads may do so with one element at the same time: the result has the same bits whatever
    their order, for `language.scatter` says what is combined how. The kernel neither reads nor
    stores elements of the array. Of a sum of floats the array has words of
    `lanewise.language.exact_sums` in place of its elements; indices are those of the elements.
    """

    form: ClassVar[str] = "scatter {operation} {array}[{indices}], {value}"

    array: Counted
    indices: tuple[Expression, ...]
    operation: ScatterOperation
    value: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The function that the user calls."""
        return f"scatter_{'add' if self.operation == 'sum' else self.operation}"


@dataclass(frozen=True, slots=True)
class PrefetchElement(StatementNode):
    """Ask for the line of memory of an element that is loaded later; indices as in `LoadElement`.

    The place may be outside of the array, and nothing that a kernel computes depends on it. A core
    of a CPU waits less for what it asked for; threads of a GPU take turns instead.
    """

    form: ClassVar[str] = "prefetch {array}[{indices}]"

    array: str
    indices: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Barrier(StatementNode):
    """All threads of the block, or of the warp, arrive and see each other's shared memory before
    any goes on.
    """

    scope: Choice["block", "warp"] = "block"


@dataclass(frozen=True, slots=True)
class Rotate(StatementNode):
    """Every thread of a warp takes the values that these variables have in the next thread, the
    last one those of the first.
    """

    form: ClassVar[str] = "rotate {values}"

    values: tuple[Annotated[Local, FieldRole.CHANGED], ...]


@dataclass(frozen=True, slots=True)
class Shuffle(StatementNode):
    """Every thread takes into `name` what `value` is in the thread `distance` behind it, within its
    group of `group` neighbours of a warp.

    Where the group ends a thread takes its own. A distance of 0: what it is in the first thread of
    the group.
    """

    name: Declared
    value: Local
    distance: int
    group: int


@dataclass(frozen=True, slots=True)
class Least(StatementNode):
    """Every thread of a warp, or lane of SIMD registers, takes into `name` the least number that
    `value` is in any of them; what is no number is left out.

    All of them come to it together: what decides about it is the same in all (`ir/warps.py`).
    """

    form: ClassVar[str] = "{name} = least {value} of the warp"

    name: Declared
    value: Local


@dataclass(frozen=True, slots=True)
class Draw(StatementNode):
    """A warp takes the next number from a counter in global memory; who draws the last of `total`
    winds it back to zero.

    What a warp waits for may then be anything that a smaller number does: that warp is already
    running.
    """

    form: ClassVar[str] = "{name} = draw {counter} of {total}"

    name: Declared
    counter: Counted
    total: Expression


@dataclass(frozen=True, slots=True)
class AwaitTurn(StatementNode):
    """Wait until `turns[index]` is `turn`, and see everything that was written before it became
    so.
    """

    form: ClassVar[str] = "await {turns}[{index}] == {turn}"

    turns: Loaded
    index: Expression
    turn: Expression


@dataclass(frozen=True, slots=True)
class EndTurn(StatementNode):
    """Set `turns[index]` to `following`, after everything that the threads of the warp wrote."""

    form: ClassVar[str] = "end turn {turns}[{index}] = {following}"

    turns: Stored
    index: Expression
    following: Expression


@dataclass(frozen=True, slots=True)
class CopyAsync(StatementNode):
    """Begin to copy leaves of one record from global into shared memory, past the registers.

    The place must not be touched until this thread has met a `WaitAsync`; other threads have to
    meet a `Barrier` after that.
    """

    array: Stored
    index: Expression
    source: Loaded
    source_index: Expression
    leaves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CopyElement(StatementNode):
    """Begin to copy an element of an array that has a shape from global into shared memory, past
    the registers.

    `across`: so many neighbours of the last dimension at once; both last indices, and the lengths
    of both last dimensions, are multiples of it. `there`: where it is false zeros are stored and
    nothing is read, so that the place may be outside of the source. When the place may be touched
    is as after `CopyAsync`.
    """

    array: Stored
    indices: tuple[Expression, ...]
    source: Loaded
    source_indices: tuple[Expression, ...]
    across: int = 1
    there: Expression | None = None


@dataclass(frozen=True, slots=True)
class CommitAsync(StatementNode):
    form: ClassVar[str] = "commit async"

    """The copies that this thread has begun since the last commit are a group, which may be
    empty.
    """


@dataclass(frozen=True, slots=True)
class WaitAsync(StatementNode):
    """Wait until copies that this thread has begun are done: all of them, or with `pending` all
    groups but the last so many.
    """

    pending: int = 0


@dataclass(frozen=True, slots=True)
class Load(StatementNode):
    """One lowered load of `len(names)` neighbouring scalars; an empty name is a lane that nobody
    wants.
    """

    buffer: Loaded
    index: Expression
    names: tuple[Declared, ...]
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Store(StatementNode):
    """One lowered store of `len(values)` neighbouring scalars."""

    form: ClassVar[str] = "store {buffer}[{index}]: {values}"

    buffer: Stored
    index: Expression
    values: tuple[Expression, ...]
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Prefetch(StatementNode):
    """One lowered `PrefetchElement`: the place of a scalar of a global buffer."""

    form: ClassVar[str] = "prefetch {buffer}[{index}]"

    buffer: str
    index: Expression


@dataclass(frozen=True, slots=True)
class Scatter(StatementNode):
    """One lowered scatter: a scalar of a global buffer is combined with a value, as in
    `ScatterElement`.
    """

    form: ClassVar[str] = "scatter {operation} {buffer}[{index}], {value}"

    buffer: Counted
    index: Expression
    operation: ScatterOperation
    value: Expression
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CopyLanes(StatementNode):
    """One lowered asynchronous copy of `lanes` neighbouring scalars: 4, 8 or 16 bytes on a multiple
    of their size.

    They are those of one element of a global buffer from `source_lane` on, and of one element of a
    shared buffer from `lane` on.
    `there`: as of `CopyElement`. `once`: no thread of another block that is close wants them, so
    that they are not kept in L1.
    """

    buffer: Stored
    index: Expression
    lane: int
    source: Loaded
    source_index: Expression
    source_lane: int
    lanes: int
    there: Expression | None = None
    once: bool = False


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
class Parameter:
    """A scalar parameter. A mutable one is read and given back changed."""

    name: str
    type: Scalar
    mutable: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """The user's element function, or a helper that it calls."""

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    body: Block
    location: Location = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array of records that a kernel reads or writes.

    `length` is set for arrays in shared memory.

    constant: the number of elements copied into a GPU's constant memory before each launch; 0 for
    none. shape: of an array of plain values in rows, which `LoadElement` and its kin index: for
    each dimension, the slowest first, the count or uniform that is its length, or the length itself
    (shared memory). narrow: it has so few elements that a place in it fits into 32 bits.
    multiple: its rows begin at multiples of that many elements, which can then be read at once.
    once: a kernel touches no element of it
    twice, so that caches need not keep it. ordered: each point writes the element at its own
    indices and nothing else does, so that points that follow each other write elements that do.
    """

    name: str
    leaves: tuple[Leaf, ...]
    arrangement: Arrangement
    written: bool = False
    space: Choice["global", "shared"] = "global"
    length: int = 0
    constant: int = 0
    shape: tuple[str | int, ...] = ()
    narrow: bool = False
    multiple: int = 1
    once: bool = False
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """After layout lowering: a pointer to scalars or short vectors within an array's allocation."""

    name: str
    array: str
    buffer: int
    type: Scalar
    lanes: int
    written: bool
    space: Choice["global", "shared"] = "global"
    length: int = 0
    constant: int = 0
    once: bool = False
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """How elements become threads: `lanes` elements a block of `threads` threads, the sources cut
    into `parts` along the second axis.

    `registers` and `min_blocks` cap the registers of a thread, where they are not 0.
    """

    extent: Expression
    lanes: int
    threads: int
    parts: int = 1
    min_blocks: int = 0
    registers: int = 0


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that a kernel needs beside its arguments: `length` elements of an array, all zero at
    first if `zeroed`.
    """

    array: str
    length: Expression
    zeroed: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Launches one after the other, each for some neighbouring rounds of a loop.

    first, rounds: the counts that say with which value of the loop's variable a launch begins, and
    how many rounds it has. start, stop: of the loop, by counts and uniforms; step: from one launch
    to the next, below zero for loops that count down.
    """

    first: str
    rounds: str
    start: Expression
    stop: Expression
    step: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """A launchable piece of work. `uniforms` are the same for all elements; `counts` are array
    lengths, also uniforms.

    `series`: it is launched many times, the outermost series first; kernels with the same series
    take turns (`ir/series.py`).
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
    location: Location = field(default=NOWHERE, compare=False, repr=False)

    def array(self, name: str) -> ArrayArgument:
        return next(a for a in self.arrays if a.name == name)
