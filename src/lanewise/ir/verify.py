"""Check that a function or kernel is consistent.

It runs between passes, so a broken pass is found where it broke.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

from lanewise.ir import nodes as ir
from lanewise.ir.declared import declared
from lanewise.ir.names import is_own, owner
from lanewise.ir.printer import print_block
from lanewise.ir.traverse import expressions, reads, subexpressions, writes
from lanewise.ir.verify_expression import Known, expression_problem
from lanewise.ir.verify_memory import is_written, memory_problem, type_in
from lanewise.ir.verify_shape import shape_problem
from lanewise.language.types import BOOL, LocalArray, Scalar
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
                f"{where}: the count {c.name}: {c.type} should be an integer with a name that "
                "lanewise introduced"
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
        if problem := shape_problem(block):
            raise VerificationError(f"{self.where}: {problem}")
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
            if problem := shape_problem(nodes):
                raise self.fail(s, problem)
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
            raise self.fail(s, f"the condition is {e.type}, not a boolean,")

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
        """Statements that only a kernel has, but that functions may read what it does not write."""
        kernel = self.kernel
        if kernel is None:
            if self.read is None or not isinstance(s, ir.LoadRecord | ir.Load):
                raise self.fail(s, "memory is touched by a pure function")
            kernel = self.read
        if isinstance(s, ir.Parallel):
            if kernel.grid is not None or self.loops:
                raise self.fail(s, "a parallel loop within threads or a loop")
            self.declare(s, s.variable, s.extent.type)
            replace(self, parallel=self.parallel + 1).block(s.body)
            return
        if problem := memory_problem(s, kernel, self.parallel):
            raise self.fail(s, problem)
        for name, kind in declared(s, partial(type_in, kernel)):
            self.declare(s, name, kind)
        if self.kernel is not None or not isinstance(s, ir.LoadRecord | ir.Load):
            return
        if is_written(s, kernel):
            raise self.fail(s, "a function reads an array that the kernel writes")


def _breaks(block: ir.Block) -> bool:
    """Whether a `break` in these statements leaves the loop that they are the body of."""
    return any(
        isinstance(s, ir.Break)
        or (isinstance(s, ir.If) and (_breaks(s.then) or _breaks(s.otherwise)))
        for s in block
    )


def _ends(s: ir.Statement) -> bool:
    """Whether no path continues after this statement."""
    match s:
        case ir.Return():
            return True
        case ir.If():
            return any(map(_ends, s.then)) and any(map(_ends, s.otherwise))
        case ir.While(condition=ir.Literal(value=True)):
            return not _breaks(s.body)
        case _:
            return False
