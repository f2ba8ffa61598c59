"""Expressions of texts that are written by hand."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

from lanewise.runtime.written.kinds import I64, NAMES, NumberKind, TextError
from lanewise.runtime.written.memory import LocalArrays
from lanewise.runtime.written.rounds import fill
from lanewise.runtime.written.values import (
    Arithmetic,
    TextArray,
    TextNumber,
    TextTuple,
    TextValue,
    constant,
)
from lanewise.runtime.written.variables import Variables


def number_of(v: TextValue) -> TextNumber:
    """A value that has to be a number."""
    if not isinstance(v, TextNumber):
        raise TextError("a number is wanted")
    return v


class TextExpressions:
    """What gives values. known: numbers that the text names above its functions; functions: names
    of these; inlined: writes one out where it is called.
    """

    def __init__(
        self,
        math: Arithmetic,
        variables: Variables,
        local: LocalArrays,
        known: Mapping[str, TextNumber],
        functions: Container[str],
        inlined: Callable[[str, Sequence[TextValue]], TextValue | None],
    ) -> None:
        self._math, self._code, self._variables, self._local = math, math.code, variables, local
        self._known, self._functions, self._inlined = known, functions, inlined
        self._choices = 0

    def condition(self, test: ast.expr, yes: str, no: str) -> None:
        """Continue here or there. What stands behind `and` and `or` is computed where it is
        needed.
        """
        match test:
            case ast.BoolOp(op=operator, values=values):
                for v in values[:-1]:
                    more = self._code.label("more")
                    if isinstance(operator, ast.And):
                        self.condition(v, more, no)
                    else:
                        self.condition(v, yes, more)
                    self._code.begin(more)
                self.condition(values[-1], yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.condition(operand, no, yes)
            case _:
                self._code.branch(self._math.truth(self.number(test)).name, yes, no)

    def number(self, e: ast.expr) -> TextNumber:
        return number_of(self.value(e))

    def value(self, e: ast.expr) -> TextValue:
        match e:
            case ast.Constant(value=bool() | int() | float() as number):
                return constant(number)
            case ast.Name(id=name):
                if self._variables.has(here := self._variables.own(name)):
                    return self._variables.value_of(here)
                if name in self._known:
                    return self._known[name]
                raise TextError(f"{name} is read before it has a value")
            case ast.Tuple(elts=items):
                return TextTuple(tuple(self.value(i) for i in items))
            case ast.BinOp(left=a, op=operator, right=b):
                return self._math.binary(operator, self.number(a), self.number(b))
            case ast.BoolOp():
                return self.either(e, lambda: constant(value=True), lambda: constant(value=False))
            case ast.UnaryOp(op=operator, operand=operand):
                return self._math.unary(operator, self.number(operand))
            case ast.Compare():
                return self.comparison(e)
            case ast.IfExp(test=test, body=yes, orelse=no):
                return self.either(test, lambda: self.value(yes), lambda: self.value(no))
            case ast.Subscript(value=ast.Attribute(value=array, attr="shape"), slice=index):
                n = self.number(index).known
                return TextNumber(I64, self.array(array).lengths[int(n or 0)])
            case ast.Subscript():
                found = self.subscript(e)
                return found if found.kind.dimensions else self._math.load(found)
            case ast.Call():
                return self.called(self.call(e), e)
            case _:
                raise TextError(f"there is no {ast.unparse(e)}")

    def called(self, found: TextValue | None, e: ast.Call) -> TextValue:
        if found is None:
            raise TextError(f"{ast.unparse(e.func)} returns nothing")
        return found

    def either(
        self, test: ast.expr, yes: Callable[[], TextValue], no: Callable[[], TextValue]
    ) -> TextValue:
        """One of two values, of which only that one is computed."""
        self._choices += 1
        name = f"either.{self._choices}"
        then, other, behind = (self._code.label(n) for n in ("if", "else", "endif"))
        self.condition(test, then, other)
        for label, value in ((then, yes), (other, no)):
            self._code.begin(label)
            self._variables.assign(name, value())
            self._code.jump(behind)
        self._code.begin(behind)
        return self._variables.value_of(name)

    def comparison(self, e: ast.Compare) -> TextNumber:
        left, result = self.number(e.left), None
        for operator, side in zip(e.ops, e.comparators, strict=True):
            right = self.number(side)
            found = self._math.compare(operator, left, right)
            left = right
            result = found if result is None else self._math.binary(ast.BitAnd(), result, found)
        assert result is not None
        return result

    def array(self, e: ast.expr) -> TextArray:
        found = self.value(e)
        if not isinstance(found, TextArray):
            raise TextError(f"{ast.unparse(e)} is no array")
        return found

    def element(self, e: ast.Subscript) -> TextArray:
        found = self.subscript(e)
        if found.kind.dimensions:
            raise TextError(f"{ast.unparse(e)} is no element")
        return found

    def subscript(self, e: ast.Subscript) -> TextArray:
        """Elements of an array, or one of them, as an array without dimensions."""
        a = self.array(e.value)
        indices = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
        if all(isinstance(i, ast.Slice) and i.lower is i.upper is None for i in indices):
            return a
        for n, i in enumerate(indices):
            if isinstance(i, ast.Slice):
                if n < len(indices) - 1 or i.step is not None:
                    raise TextError("parts of arrays are whole, and of the last dimension")
                ends = [None if x is None else self.number(x) for x in (i.lower, i.upper)]
                a = self._math.part(a, *ends)
            else:
                a = self._math.inner(a, self.number(i))
        return a

    # ---------------------------------------------------------------- calls

    def type_of(self, e: ast.expr) -> NumberKind | None:
        """The type that an expression names: `int32`, `places.dtype`, or a variable that is one."""
        match e:
            case ast.Name(id=name) if name in self._variables.call.types:
                return self._variables.call.types[name]
            case ast.Name(id=name):
                return NAMES.get(name)
            case ast.Attribute(value=array, attr="dtype"):
                return self.array(array).kind.element
            case _:
                return None

    def call(self, e: ast.Call) -> TextValue | None:
        """A call of a type, of a function of LLVM's or of the text."""
        if (kind := self.type_of(e.func)) is not None:
            return self._math.cast(self.number(e.args[0]), kind)
        match e.func:
            case ast.Name(id=name) if name in self._functions:
                return self._inlined(name, [self.value(a) for a in e.args])
            case ast.Name(id="min" | "max" as name):
                test = ast.Lt() if name == "min" else ast.Gt()
                first, *others = (self.number(a) for a in e.args)
                for other in others:
                    first = self._math.extreme(test, first, other)
                return first
            case ast.Name(id="abs"):
                return self._math.absolute(self.number(e.args[0]))
            case ast.Name(id="floor" | "ceil" | "sqrt" as name):
                return self._math.function(name, self.number(e.args[0]))
            case ast.Name(id="fitting"):
                kind, v = self.type_of(e.args[0]), self.number(e.args[1])
                if kind is None or kind.letter != "i" or not v.kind.is_float:
                    raise TextError("a float that fits a type with a sign is wanted")
                return self._math.fitting(v, kind)
            case ast.Name(id="len"):
                return TextNumber(I64, self.array(e.args[0]).lengths[0])
            case ast.Name(id="empty" | "zeros" | "full" as name):
                return self.new_array(name, e.args)
            case ast.Attribute(value=value, attr="view"):
                return self.viewed(self.value(value), self.type_of(e.args[0]))
            case ast.Name(id="prefetch_to_store"):
                place = self._math.inner(self.array(e.args[0]), self.number(e.args[1])).place
                self._code.needs.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
                self._code.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 1, i32 3, i32 1)")
            case ast.Name(id="add_atomically"):
                a = self._math.inner(self.array(e.args[0]), self.number(e.args[1]))
                added = self._math.cast(self.number(e.args[2]), a.kind.element)
                kind = added.kind.text
                self._code.give(f"atomicrmw add ptr {a.place}, {kind} {added.name} monotonic")
            case ast.Name(id="add_pair"):
                self.add_pair(e.args)
            case _:
                raise TextError(f"there is no function {ast.unparse(e.func)}")
        return None

    def add_pair(self, arguments: Sequence[ast.expr]) -> None:
        """Two neighbours of one array more by two of another one, in one register."""
        array, at, other, its = arguments
        to = self._math.inner(self.array(array), self.number(at))
        more = self._math.inner(self.array(other), self.number(its))
        kind = f"<2 x {to.kind.element.text}>"
        a, b = (self._code.give(f"load {kind}, ptr {x.place}, align 8") for x in (to, more))
        total = self._code.give(f"add {kind} {a}, {b}")
        self._code.do(f"store {kind} {total}, ptr {to.place}, align 8")

    def viewed(self, v: TextValue, kind: NumberKind | None) -> TextValue:
        """The same bits as numbers of another type of that size."""
        match v:
            case TextArray() if kind is not None and v.kind.element.size == kind.size:
                return replace(v, kind=replace(v.kind, element=kind))
            case TextNumber() if kind is not None and v.kind.bits == kind.bits:
                if v.kind.text == kind.text:
                    return TextNumber(kind, v.name)
                turned = f"bitcast {v.kind.text} {v.name} to {kind.text}"
                return TextNumber(kind, self._code.give(turned))
            case _:
                raise TextError("a view has numbers of the same size")

    def new_array(self, name: str, arguments: Sequence[ast.expr]) -> TextArray:
        """A local array of (lengths, type), full of (lengths, number)."""
        if self._variables.looping:
            raise TextError("local arrays are made outside of loops")
        lengths = self.value(arguments[0])
        items = lengths.items if isinstance(lengths, TextTuple) else (lengths,)
        numbers = [self._math.cast(number_of(i), I64) for i in items]
        filled = self.number(arguments[1]) if name == "full" else constant(0)
        kind = filled.kind if name == "full" else self.type_of(arguments[1])
        if kind is None:
            raise TextError("the type of a local array is wanted")
        made = self._local.made(kind, numbers)
        if name != "empty":
            fill(self._math, made, filled)
        return made
