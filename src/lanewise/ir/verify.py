"""Check that a function or kernel is consistent. It runs between passes, so a broken pass is found where it broke."""

from __future__ import annotations

from lanewise.errors import VerificationError
from lanewise.ir import nodes as ir
from lanewise.ir.intrinsics import INTRINSICS
from lanewise.ir.printer import print_block, print_expression
from lanewise.ir.traverse import expressions, subexpressions
from lanewise.types import BOOL, LocalArray, Scalar

Known = dict[str, Scalar | LocalArray]


def verify_function(f: ir.Function) -> None:
    """Types agree, names are known before use, every call fits. Raises `VerificationError`."""
    known: Known = {p.name: p.type for p in f.parameters}
    _block(f.body, known, f"function {f.name}", tuple(r.type for r in f.results), None)


def verify_kernel(kernel: ir.Kernel) -> None:
    """As `verify_function`, and arrays, buffers and thread coordinates exist where they are used."""
    known: Known = {p.name: p.type for p in kernel.uniforms + kernel.counts}
    names = [a.name for a in kernel.arrays]
    if len(set(names)) != len(names):
        raise VerificationError(f"kernel {kernel.name}: two arrays of one name in {names}")
    _block(kernel.body, known, f"kernel {kernel.name}", None, kernel)


def _fail(where: str, s: ir.Statement, problem: str) -> VerificationError:
    return VerificationError(f"{where}: {problem} in\n{print_block((s,))}")


def _block(block: ir.Block, known: Known, where: str, results: tuple[Scalar, ...] | None, kernel: ir.Kernel | None) -> None:
    for s in block:
        for e in expressions(s):
            for x in subexpressions(e):
                if problem := _expression(x, known, kernel):
                    raise _fail(where, s, problem)
        _statement(s, known, where, results, kernel)


def _expression(e: ir.Expression, known: Known, kernel: ir.Kernel | None) -> str:
    """What is wrong with one node, or nothing."""
    text = print_expression(e)
    match e:
        case ir.Local():
            return "" if known.get(e.name) == e.type else f"{e.name}: {e.type} is {known.get(e.name, 'unknown')}"
        case ir.Element():
            array = known.get(e.array)
            fits = isinstance(array, LocalArray) and array.element == e.type and e.index.type.is_integer
            return "" if fits else f"{text} does not fit {e.array}: {array}"
        case ir.Binary():
            fits = e.left.type == e.right.type == e.type and (e.operator != "/" or e.type.is_float)
            return "" if fits else f"{text} mixes {e.left.type}, {e.right.type} and {e.type}"
        case ir.Compare():
            return "" if e.left.type == e.right.type else f"{text} compares {e.left.type} with {e.right.type}"
        case ir.Logical():
            return "" if e.left.type == e.right.type == BOOL else f"{text} needs truth values"
        case ir.Select():
            fits = e.condition.type == BOOL and e.if_true.type == e.if_false.type == e.type
            return "" if fits else f"{text} mixes types"
        case ir.Unary():
            return "" if e.operand.type == e.type else f"{text} changes its type"
        case ir.Call():
            fits = e.intrinsic in INTRINSICS and len(e.arguments) == INTRINSICS[e.intrinsic].arity
            return "" if fits else f"{text} is no intrinsic"
        case ir.Builtin():
            return "" if kernel is not None and kernel.grid is not None else f"{text} outside a grid"
        case ir.Literal() | ir.Cast():
            return ""


def _declare(known: Known, name: str, kind: Scalar | LocalArray, where: str, s: ir.Statement) -> None:
    if known.setdefault(name, kind) != kind:
        raise _fail(where, s, f"{name} was {known[name]} and becomes {kind}")


def _statement(s: ir.Statement, known: Known, where: str, results: tuple[Scalar, ...] | None, kernel: ir.Kernel | None) -> None:
    match s:
        case ir.Assign():
            _declare(known, s.name, s.value.type, where, s)
        case ir.DeclareArray():
            _declare(known, s.name, s.type, where, s)
        case ir.SetElement():
            array = known.get(s.array)
            if not isinstance(array, LocalArray) or array.element != s.value.type:
                raise _fail(where, s, f"{s.value.type} does not fit {s.array}: {array}")
        case ir.If() | ir.While():
            if s.condition.type != BOOL:
                raise _fail(where, s, "the condition is no truth value")
            for body in (s.then, s.otherwise) if isinstance(s, ir.If) else (s.body,):
                _block(body, known, where, results, kernel)
        case ir.For():
            if not (s.start.type == s.stop.type == s.step.type and s.start.type.is_integer):
                raise _fail(where, s, "the bounds are not integers of one type")
            _declare(known, s.variable, s.start.type, where, s)
            _block(s.body, known, where, results, kernel)
        case ir.Return():
            if results is None or tuple(v.type for v in s.values) != results:
                raise _fail(where, s, f"the results should be {results}")
        case ir.Apply():
            _apply(s, known, where)
        case ir.Break() | ir.Continue():
            pass
        case _:
            _memory(s, known, where, kernel)


def _apply(s: ir.Apply, known: Known, where: str) -> None:
    verify_function(s.function)
    if tuple(a.type for a in s.arguments) != tuple(p.type for p in s.function.parameters):
        raise _fail(where, s, "the arguments do not fit the parameters")
    for p, a in zip(s.function.parameters, s.arguments, strict=True):
        if p.mutable and not isinstance(a, ir.Local):
            raise _fail(where, s, f"the mutable parameter {p.name} needs a variable")
    for name, r in zip(s.results, s.function.results, strict=True):
        _declare(known, name, r.type, where, s)


def _memory(s: ir.Statement, known: Known, where: str, kernel: ir.Kernel | None) -> None:
    """Statements that only a kernel has."""
    if kernel is None:
        raise _fail(where, s, "memory is touched by a pure function")
    match s:
        case ir.Parallel():
            _declare(known, s.variable, s.extent.type, where, s)
            _block(s.body, known, where, None, kernel)
        case ir.Fetch():
            types = {leaf.name: leaf.type for leaf in kernel.array(s.array).leaves}
            for leaf, variable in s.reads:
                _declare(known, variable, types[leaf], where, s)
        case ir.Commit():
            array = kernel.array(s.array)
            types = {leaf.name: leaf.type for leaf in array.leaves}
            if not array.written or any(types.get(leaf) != value.type for leaf, value in s.writes):
                raise _fail(where, s, f"the writes do not fit {array.name}")
        case ir.Load():
            buffer = next(b for b in kernel.buffers if b.name == s.buffer)
            if len(s.names) != buffer.lanes:
                raise _fail(where, s, f"{buffer.name} has {buffer.lanes} lanes")
            for name in filter(None, s.names):
                _declare(known, name, buffer.type, where, s)
        case ir.Store():
            buffer = next(b for b in kernel.buffers if b.name == s.buffer)
            if not buffer.written or len(s.values) != buffer.lanes or any(v.type != buffer.type for v in s.values):
                raise _fail(where, s, f"the values do not fit {buffer.name}")
        case ir.Barrier():
            if kernel.grid is None and not any(a.space == "shared" for a in kernel.arrays):
                raise _fail(where, s, "a barrier without threads")
        case _:
            raise _fail(where, s, f"{type(s).__name__} is not expected")
