"""Check that a function or kernel is consistent.

It runs between passes, so a broken pass is found where it broke.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from lanewise.ir import nodes as ir
from lanewise.ir.names import is_own, owner
from lanewise.ir.printer import print_block
from lanewise.ir.traverse import expressions, reads, statements, subexpressions, writes
from lanewise.ir.verify_expression import Known, expression_problem
from lanewise.ir.warps import WARP, divided_around
from lanewise.language.types import BOOL, F32, F64, I64, LocalArray, Scalar
from lanewise.support.errors import VerificationError

RANK = 3  # dimensions of an array at most


@dataclass(frozen=True, slots=True)
class Sound:
    """What was verified before. It holds all of it, so that nothing else takes its place.

    functions: by their identity and that of the memory that they may read, each with those that it
    calls by name. expressions: by their identity, each with what is to be asked of the place where
    it stands.
    """

    functions: dict[
        tuple[int, int, int], tuple[ir.Function, ir.Kernel | None, dict[str, ir.Function]]
    ] = field(
        default_factory=dict[
            tuple[int, int, int], "tuple[ir.Function, ir.Kernel | None, dict[str, ir.Function]]"
        ]
    )
    expressions: dict[int, tuple[ir.Expression, tuple[ir.Expression, ...]]] = field(
        default_factory=dict[int, "tuple[ir.Expression, tuple[ir.Expression, ...]]"]
    )


def verify_function(f: ir.Function) -> None:
    """Types agree, names are known before use, every call fits, every path returns.

    Raises `VerificationError`.
    """
    _Verifier(f"function {f.name}", {}, results=tuple(r.type for r in f.results)).function(f)


def verify_kernel(kernel: ir.Kernel, sound: Sound | None = None) -> None:
    """As `verify_function`, and arrays, buffers and thread coordinates exist where they are used,
    and names keep to `ir/names.py`.

    sound: what was verified before, to which that of this kernel is added. Most passes leave
    functions as they are, and most expressions.
    """
    where = f"kernel {kernel.name}"
    types: Known = {p.name: p.type for p in kernel.uniforms + kernel.counts}
    arrays = [a.name for a in kernel.arrays]
    if len(set(arrays)) != len(arrays):
        raise VerificationError(f"{where}: two arrays of one name in {arrays}")
    if len(types) != len(kernel.uniforms + kernel.counts):
        raise VerificationError(
            f"{where}: two uniforms of one name in "
            f"{[p.name for p in kernel.uniforms + kernel.counts]}"
        )
    for c in kernel.counts:
        if not is_own(c.name) or not c.type.is_integer:
            raise VerificationError(
                f"{where}: the count {c.name}: {c.type} should be a whole number with a name of "
                "lanewise's own"
            )
    # places in buffers are made of what they need
    for a in kernel.arrays if not kernel.buffers else ():
        _check_shape(where, a, types)
    for b in kernel.buffers:
        if b.array not in arrays:
            raise VerificationError(f"{where}: the buffer {b.name} belongs to no array")
    taken = frozenset((*arrays, *(owner(u.name) for u in kernel.uniforms)))
    _Verifier(
        where, types, kernel=kernel, taken=taken, sound=Sound() if sound is None else sound
    ).block(kernel.body)


def _check_shape(where: str, a: ir.ArrayArgument, types: Known) -> None:
    """The lengths of an array's dimensions are known, and its elements plain values."""
    if not a.shape:
        return
    if not 1 <= len(a.shape) <= RANK or len(a.leaves) != 1:
        raise VerificationError(
            f"{where}: {a.name} has {len(a.shape)} dimensions and {len(a.leaves)} leaves"
        )
    for length in a.shape:
        kind = types.get(length) if isinstance(length, str) else None
        if isinstance(length, str) and not (isinstance(kind, Scalar) and kind.is_integer):
            raise VerificationError(
                f"{where}: the length {length} of a dimension of {a.name} is no number of the "
                "kernel"
            )
    if a.space == "shared" and (
        not all(isinstance(n, int) for n in a.shape) or math.prod(map(int, a.shape)) != a.length
    ):
        raise VerificationError(
            f"{where}: {a.name} in shared memory has {a.length} elements and the shape {a.shape}"
        )


# expressions whose place decides whether they are right
PLACED = (ir.Local, ir.Element, ir.Builtin)


@dataclass(frozen=True)
class _Verifier:
    """Walks statements in order; `types` holds every variable that has a type by now."""

    where: str
    types: Known
    results: tuple[Scalar, ...] | None = None
    kernel: ir.Kernel | None = None
    read: ir.Kernel | None = None  # the kernel whose arrays a function may read
    loops: tuple[str, ...] = ()  # the variables of the loops around, empty for `while`
    parallel: int = 0
    # what owns a name of a variable: arrays and uniforms of the kernel
    taken: frozenset[str] = frozenset()
    seen: dict[str, ir.Function] = field(default_factory=dict[str, ir.Function])
    sound: Sound = field(default_factory=Sound)

    def fail(self, s: ir.Statement, problem: str) -> VerificationError:
        return VerificationError(f"{self.where}: {problem} in\n{print_block((s,))}")

    def function(self, f: ir.Function) -> None:
        names = [p.name for p in f.parameters]
        if len(set(names)) != len(names):
            raise VerificationError(f"{self.where}: two parameters of one name in {names}")
        self.types.update({p.name: p.type for p in f.parameters})
        self.block(f.body)
        if f.results and not any(_ends(s) for s in f.body):
            raise VerificationError(f"{self.where}: a path ends without a return")

    def block(self, block: ir.Block) -> None:
        for s in block:
            for e in expressions(s):
                self.expression(s, e)
            if isinstance(s, ir.Apply):
                self.check_call(s)
            for name in writes(s):
                self.check_name(s, name)
            self.statement(s)

    def expression(self, s: ir.Statement, e: ir.Expression) -> None:
        """An expression of a statement: most of it is the same wherever it stands."""
        if type(e) is ir.Local and self.types.get(e.name) is e.type:
            return
        known = self.sound.expressions.get(id(e))
        if known is None:
            nodes = tuple(subexpressions(e))
            if any(not isinstance(x, PLACED) and self.problem(x) for x in nodes):
                known = e, nodes  # told of in its turn
            else:
                known = e, tuple([x for x in nodes if isinstance(x, PLACED)])
                self.sound.expressions[id(e)] = known
        for x in known[1]:
            if type(x) is ir.Local and self.types.get(x.name) is x.type:
                continue
            if problem := self.problem(x):
                raise self.fail(s, problem)

    def problem(self, e: ir.Expression) -> str:
        return expression_problem(
            e, self.types, in_grid=self.kernel is not None and self.kernel.grid is not None
        )

    def check_name(self, s: ir.Statement, name: str) -> None:
        if name in self.loops:
            raise self.fail(s, f"the variable {name} of a loop around is changed")
        k = self.kernel
        if k is None or is_own(name) or owner(name) in self.taken:
            return
        if k.pattern.inlined and owner(name).isidentifier():  # a variable of the user's
            return
        raise self.fail(s, f"{name} is neither a user's name nor one of lanewise's own")

    def declare(self, s: ir.Statement, name: str, kind: Scalar | LocalArray) -> None:
        known = self.types.setdefault(name, kind)
        if known is not kind and known != kind:
            raise self.fail(s, f"{name} was {self.types[name]} and becomes {kind}")

    def statement(self, s: ir.Statement) -> None:
        match s:
            case ir.Assign():
                self.declare(s, s.name, s.value.type)
            case ir.DeclareArray():
                if s.type.length < 1:
                    raise self.fail(s, "an empty local array")
                self.declare(s, s.name, s.type)
            case ir.SetElement():
                array = self.types.get(s.array)
                if (
                    not isinstance(array, LocalArray)
                    or array.element != s.value.type
                    or not s.index.type.is_integer
                ):
                    raise self.fail(
                        s,
                        f"{s.value.type} at {s.index.type} does not fit {s.array}: "
                        f"{array or 'unknown'}",
                    )
            case ir.If():
                self.condition(s, s.condition)
                self.block(s.then)
                self.block(s.otherwise)
            case ir.While():
                self.condition(s, s.condition)
                replace(self, loops=(*self.loops, "")).block(s.body)
            case ir.For():
                self.loop(s)
            case ir.Break() | ir.Continue():
                if not self.loops:
                    raise self.fail(s, "no loop")
            case ir.Return():
                if self.results is None or tuple(v.type for v in s.values) != self.results:
                    raise self.fail(
                        s,
                        "the results should be "
                        f"{', '.join(map(str, self.results or ())) or 'none'}",
                    )
            case ir.Apply():
                self.apply(s)
            case _:
                self.memory(s)

    def condition(self, s: ir.Statement, e: ir.Expression) -> None:
        if e.type != BOOL:
            raise self.fail(s, f"the condition is {e.type}, no truth value,")

    def loop(self, s: ir.For) -> None:
        if not (s.start.type == s.stop.type == s.step.type and s.start.type.is_integer):
            raise self.fail(s, "the bounds are not integers of one type")
        if isinstance(s.step, ir.Literal) and not s.step.value:
            raise self.fail(s, "a step of 0")
        if any(s.variable in reads(e) for e in (s.start, s.stop, s.step)):
            # C++ declares the variable before it computes the bounds
            raise self.fail(s, f"the bounds read {s.variable}, the loop's own variable,")
        self.declare(s, s.variable, s.start.type)
        replace(self, loops=(*self.loops, s.variable)).block(s.body)

    def check_call(self, s: ir.Apply) -> None:
        f = s.function
        if self.seen.setdefault(f.name, f) != f:
            raise self.fail(s, f"there is another function {f.name}")
        if tuple(a.type for a in s.arguments) != tuple(p.type for p in f.parameters):
            raise self.fail(s, "the arguments do not fit the parameters")
        for p, a in zip(f.parameters, s.arguments, strict=True):
            if p.mutable and not isinstance(a, ir.Local):
                raise self.fail(s, f"the mutable parameter {p.name} needs a variable")
        if len(s.results) != len(f.results):
            raise self.fail(s, f"{len(f.results)} results go to {len(s.results)} variables")

    def apply(self, s: ir.Apply) -> None:
        f = s.function
        memory = self.kernel or self.read
        key = (
            (id(f), id(memory.arrays), id(memory.buffers)) if memory is not None else (id(f), 0, 0)
        )
        if key not in self.sound.functions:
            called: dict[str, ir.Function] = {}
            results = tuple(r.type for r in f.results)
            where = f"function {f.name}"
            _Verifier(
                where, {}, results=results, read=memory, seen=called, sound=self.sound
            ).function(f)
            self.sound.functions[key] = f, memory, called
        for name, called_function in self.sound.functions[key][-1].items():
            if self.seen.setdefault(name, called_function) != called_function:
                raise self.fail(s, f"there is another function {name}")
        for name, r in zip(s.results, f.results, strict=True):
            self.declare(s, name, r.type)

    def memory(self, s: ir.Statement) -> None:
        """Statements that only a kernel has."""
        if self.kernel is None and self.read is not None and isinstance(s, ir.LoadRecord | ir.Load):
            self.reading(s, self.read)
            return
        if self.kernel is None:
            raise self.fail(s, "memory is touched by a pure function")
        match s:
            case ir.Parallel():
                if self.kernel.grid is not None or self.loops:
                    raise self.fail(s, "a parallel loop within threads or a loop")
                self.declare(s, s.variable, s.extent.type)
                replace(self, parallel=self.parallel + 1).block(s.body)
            case ir.LoadRecord() | ir.StoreRecord():
                self.access(s, self.kernel)
            case ir.Load() | ir.Store():
                self.move(s, self.kernel)
            case ir.LoadElement() | ir.StoreElement():
                self.element(s, self.kernel)
            case ir.ScatterElement() | ir.Scatter():
                self.scatter(s, self.kernel)
            case ir.PrefetchElement() | ir.Prefetch():
                self.prefetch(s, self.kernel)
            case ir.CopyAsync():
                self.copy(s, self.kernel)
            case ir.CopyElement():
                self.copy_element(s, self.kernel)
            case ir.CopyLanes():
                self.copy_lanes(s, self.kernel)
            case ir.Barrier() | ir.CommitAsync() | ir.WaitAsync():
                if self.kernel.grid is None and not self.parallel:
                    raise self.fail(s, "a barrier without threads")
            case (
                ir.Rotate() | ir.Shuffle() | ir.Least() | ir.Draw() | ir.AwaitTurn() | ir.EndTurn()
            ):
                self.cooperate(s, self.kernel)
            case _:
                raise self.fail(s, f"{type(s).__name__} is not expected")

    def reading(self, s: ir.LoadRecord | ir.Load, kernel: ir.Kernel) -> None:
        """A function reads what its kernel does not write."""
        if isinstance(s, ir.LoadRecord):
            self.access(s, kernel)
            written = kernel.array(s.array).written
        else:
            self.move(s, kernel)
            written = next(b.written for b in kernel.buffers if b.name == s.buffer)
        if written:
            raise self.fail(s, "a function reads an array that the kernel writes")

    def cooperate(
        self,
        s: ir.Rotate | ir.Shuffle | ir.Least | ir.Draw | ir.AwaitTurn | ir.EndTurn,
        kernel: ir.Kernel,
    ) -> None:
        """What the threads of a warp do together."""
        # the lanes of a SIMD register
        hosted = isinstance(s, ir.Shuffle | ir.Least) and self.parallel > 1
        if not hosted and (kernel.grid is None or kernel.grid.threads % WARP):
            raise self.fail(s, f"{type(s).__name__} without blocks of whole warps")
        if isinstance(s, ir.Rotate):
            return
        if isinstance(s, ir.Least):
            if not s.value.type.is_float:
                raise self.fail(s, f"the least of {s.value.type}")
            if divided := divided_around(kernel.body, s):
                raise self.fail(
                    s, f"not all threads of a warp come here: it depends on {divided[0]}"
                )
            self.declare(s, s.name, s.value.type)
            return
        if isinstance(s, ir.Shuffle):
            if (
                s.group not in ((2, 4, 8, 16, 32, 64) if hosted else (2, 4, 8, 16, 32))
                or not 0 <= s.distance < s.group
            ):
                raise self.fail(s, f"a distance of {s.distance} in groups of {s.group}")
            self.declare(s, s.name, s.value.type)
            return
        name = s.counter if isinstance(s, ir.Draw) else s.turns
        arrays = {a.name for a in kernel.arrays if a.written} | {
            b.name for b in kernel.buffers if b.written
        }
        if name not in arrays:
            raise self.fail(s, f"no written array {name}")
        if isinstance(s, ir.Draw):
            self.declare(s, s.name, s.total.type)

    def access(self, s: ir.LoadRecord | ir.StoreRecord, kernel: ir.Kernel) -> None:
        array = next((a for a in kernel.arrays if a.name == s.array), None)
        if array is None or not s.index.type.is_integer:
            raise self.fail(
                s, f"no array {s.array}" if array is None else f"an index of type {s.index.type}"
            )
        types = {leaf.name: leaf.type for leaf in array.leaves}
        leaves = [leaf for leaf, _ in (s.reads if isinstance(s, ir.LoadRecord) else s.writes)]
        if unknown := [leaf for leaf in leaves if leaf not in types]:
            raise self.fail(s, f"{array.name} has no leaf {unknown[0]}")
        each = len(leaves) // s.across
        if s.across > 1 and leaves != leaves[:each] * s.across:
            raise self.fail(
                s, f"the leaves are not those of {s.across} records, one after the other"
            )
        if isinstance(s, ir.LoadRecord):
            for leaf, variable in s.reads:
                self.declare(s, variable, types[leaf])
        elif not array.written or any(types[leaf] != value.type for leaf, value in s.writes):
            raise self.fail(s, f"the writes do not fit {array.name}")

    def element(self, s: ir.LoadElement | ir.StoreElement, kernel: ir.Kernel) -> None:
        """An access to an array with a shape: an index for each dimension, and the type of its
        elements.
        """
        array = next((a for a in kernel.arrays if a.name == s.array), None)
        if array is None or not array.shape:
            raise self.fail(s, f"no array {s.array} that has a shape")
        if len(s.indices) != len(array.shape) or not all(i.type.is_integer for i in s.indices):
            raise self.fail(
                s,
                f"{array.name} needs {len(array.shape)} whole numbers, found "
                f"{[str(i.type) for i in s.indices]}",
            )
        kind = array.leaves[0].type
        across = 1 + len(s.more)
        last = array.shape[-1]
        if across not in (1, 2, 4) or (
            last % across if isinstance(last, int) else array.multiple % across
        ):
            raise self.fail(s, f"{across} elements at once do not fit the rows of {array.name}")
        if isinstance(s, ir.LoadElement):
            for name in s.names:
                self.declare(s, name, kind)
        elif not array.written or any(v.type != kind for v in s.values):
            raise self.fail(
                s, f"{s.value.type} does not fit {array.name}, or the kernel does not write it"
            )

    def prefetch(self, s: ir.PrefetchElement | ir.Prefetch, kernel: ir.Kernel) -> None:
        """Global memory, and an index for each dimension."""
        if not all(i.type.is_integer for i in expressions(s)):
            raise self.fail(s, "a place that is no whole number")
        if isinstance(s, ir.Prefetch):
            if not any(b.name == s.buffer and b.space == "global" for b in kernel.buffers):
                raise self.fail(s, f"no buffer {s.buffer} in global memory")
            return
        array = next((a for a in kernel.arrays if a.name == s.array and a.space == "global"), None)
        if array is None or len(array.shape) != len(s.indices):
            raise self.fail(
                s,
                f"no array {s.array} in global memory with {len(s.indices)} "
                f"dimension{'s' if len(s.indices) != 1 else ''}",
            )

    def scatter(self, s: ir.ScatterElement | ir.Scatter, kernel: ir.Kernel) -> None:
        """Whole numbers are added, numbers compared; nothing but scatters of this operation touches
        the array.
        """
        name = s.array if isinstance(s, ir.ScatterElement) else s.buffer
        indices = s.indices if isinstance(s, ir.ScatterElement) else (s.index,)
        places: dict[str, tuple[Scalar, bool, int]] = {}
        if isinstance(s, ir.ScatterElement):
            for a in kernel.arrays:
                places[a.name] = (a.leaves[0].type, a.written and a.space == "global", len(a.shape))
        else:
            for b in kernel.buffers:
                places[b.name] = (b.type, b.written and b.space == "global" and b.lanes == 1, 1)
        kind, written, rank = places.get(name, (s.value.type, False, 1))
        if not written or len(indices) != rank or not all(i.type.is_integer for i in indices):
            raise self.fail(
                s, f"no written array {name} in global memory with {len(indices)} dimensions"
            )
        if s.operation == "sum":  # the words of exact sums stand in place of the array
            fits = kind == I64 and s.value.type in (F32, F64)
        else:
            fits = s.value.type == kind != BOOL and not (s.operation == "add" and kind.is_float)
        if not fits:
            raise self.fail(s, f"{s.operation} of {s.value.type} does not fit {name} of {kind}")
        if any(
            _touches(x, name) and getattr(x, "operation", "") != s.operation
            for x in statements(kernel.body)
        ):
            raise self.fail(s, f"{name} is touched in another way, too")

    def copy(self, s: ir.CopyAsync, kernel: ir.Kernel) -> None:
        to, source = (
            next((a for a in kernel.arrays if a.name == n), None) for n in (s.array, s.source)
        )
        if (
            to is None
            or source is None
            or not (s.index.type.is_integer and s.source_index.type.is_integer)
        ):
            raise self.fail(s, "no such arrays, or no whole number as an index")
        if (to.space, source.space) != ("shared", "global"):
            raise self.fail(s, f"a copy from {source.space} to {to.space} memory")
        kinds, others = ({x.name: x.type for x in a.leaves} for a in (to, source))
        for leaf in s.leaves:
            if leaf not in kinds or kinds[leaf] != others.get(leaf) or kinds[leaf].size < 4:
                raise self.fail(s, f"{leaf} of {source.name} does not fit {to.name}")

    def copy_element(self, s: ir.CopyElement, kernel: ir.Kernel) -> None:
        to, source = (
            next((a for a in kernel.arrays if a.name == n), None) for n in (s.array, s.source)
        )
        if to is None or source is None or not to.shape or not source.shape:
            raise self.fail(s, "no such arrays that have a shape")
        if (to.space, source.space) != ("shared", "global"):
            raise self.fail(s, f"a copy from {source.space} to {to.space} memory")
        for a, indices in ((to, s.indices), (source, s.source_indices)):
            if len(indices) != len(a.shape) or not all(i.type.is_integer for i in indices):
                raise self.fail(
                    s,
                    f"{a.name} needs {len(a.shape)} whole numbers, found "
                    f"{[str(i.type) for i in indices]}",
                )
            last = a.shape[-1]
            if last % s.across if isinstance(last, int) else a.multiple % s.across:
                raise self.fail(s, f"{s.across} elements at once do not fit the rows of {a.name}")
        kind = to.leaves[0].type
        if kind != source.leaves[0].type or kind.size * s.across not in (4, 8, 16):
            raise self.fail(
                s,
                f"a copy of {s.across} {source.leaves[0].type} to {kind}, not of 4, 8 or 16 bytes",
            )
        if s.there is not None and s.there.type != BOOL:
            raise self.fail(s, f"a condition of type {s.there.type}")

    def copy_lanes(self, s: ir.CopyLanes, kernel: ir.Kernel) -> None:
        to, source = (
            next((b for b in kernel.buffers if b.name == n), None) for n in (s.buffer, s.source)
        )
        if (
            to is None
            or source is None
            or not (s.index.type.is_integer and s.source_index.type.is_integer)
        ):
            raise self.fail(s, "no such buffers, or no whole number as an index")
        if (to.space, source.space) != ("shared", "global") or to.type != source.type:
            raise self.fail(
                s, f"a copy of {source.type} from {source.space} to {to.type} in {to.space} memory"
            )
        for buffer, lane in ((to, s.lane), (source, s.source_lane)):
            if lane % s.lanes or lane + s.lanes > buffer.lanes:
                raise self.fail(s, f"{s.lanes} lanes from {lane} on do not fit {buffer.name}")
        if s.lanes * to.type.size not in (4, 8, 16):
            raise self.fail(s, f"a copy of {s.lanes * to.type.size} bytes")

    def move(self, s: ir.Load | ir.Store, kernel: ir.Kernel) -> None:
        buffer = next((b for b in kernel.buffers if b.name == s.buffer), None)
        if buffer is None or not s.index.type.is_integer:
            raise self.fail(
                s, f"no buffer {s.buffer}" if buffer is None else f"an index of type {s.index.type}"
            )
        if isinstance(s, ir.Load):
            if len(s.names) != buffer.lanes:
                raise self.fail(s, f"{buffer.name} has {buffer.lanes} lanes")
            for name in filter(None, s.names):
                self.declare(s, name, buffer.type)
        elif (
            not buffer.written
            or len(s.values) != buffer.lanes
            or any(v.type != buffer.type for v in s.values)
        ):
            raise self.fail(s, f"the values do not fit {buffer.name}")


def _breaks(block: ir.Block) -> bool:
    """Whether a `break` in these statements leaves the loop that they are the body of."""
    return any(
        isinstance(s, ir.Break)
        or (isinstance(s, ir.If) and (_breaks(s.then) or _breaks(s.otherwise)))
        for s in block
    )


def _ends(s: ir.Statement) -> bool:
    """Whether no path goes on after this statement."""
    match s:
        case ir.Return():
            return True
        case ir.If():
            return any(map(_ends, s.then)) and any(map(_ends, s.otherwise))
        case ir.While(condition=ir.Literal(value=True)):
            return not _breaks(s.body)
        case _:
            return False


def _touches(s: ir.Statement, name: str) -> bool:
    """Whether a statement reads or writes an array or a buffer of this name."""
    match s:
        case ir.LoadElement() | ir.StoreElement() | ir.ScatterElement():
            return s.array == name
        case ir.Load() | ir.Store() | ir.Scatter():
            return s.buffer == name
        case _:
            return False
