"""Functions that are written by hand, statement by statement, as instructions of LLVM.

Of Python there is: assignments, also to several names, elements and parts of arrays; `if`, `while`,
`for` over `range` and over tuples of numbers, `break`, `continue`, `return`; functions of the text,
which are written out where they are called; numbers that the text names above them. Places of an
array count from zero and lie within it; nothing is checked. Types of variables follow from what
they are given, all of it: the text is gone through until they stay the same. Local arrays (`empty`,
`zeros`, `full`) are made outside of loops.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lanewise.runtime.llvm_lines import FunctionLines
from lanewise.runtime.written.kinds import (
    I64,
    NAMES,
    U64,
    Group,
    Kind,
    Number,
    Row,
    TextError,
    joined,
)
from lanewise.runtime.written.memory import LocalArrays
from lanewise.runtime.written.values import (
    Any_,
    Arithmetic,
    Array,
    Several,
    Value,
    constant,
    rooms_of,
)

Test = tuple[str, str]  # labels of what follows a `break` and a `continue`


@dataclass
class Scope:
    """A call of a function: its number, labels of its loops, and where it ends."""

    number: int
    end: str
    loops: list[Test] = field(default_factory=list[Test])
    fixed: dict[str, Number] = field(default_factory=dict[str, Number])


class FunctionWriter:
    """One round through a text. kinds: of variables, as far as they are known."""

    def __init__(
        self, functions: dict[str, ast.FunctionDef], known: dict[str, Value], kinds: dict[str, Kind]
    ) -> None:
        self.code = FunctionLines()
        self.math = Arithmetic(self.code)
        self.local = LocalArrays(self.code)
        self.functions, self.known, self.kinds = functions, known, kinds
        self.settled = True
        self._rooms: dict[str, list[str]] = {}
        self._calls = 0
        self._called: list[str] = []
        self.scope = Scope(0, "return")

    # ---------------------------------------------------------------- variables

    def assign(self, name: str, v: Any_) -> None:
        """Give a variable a value; where that has another type, so has the variable, from the next
        round on.
        """
        known = self.kinds.get(name)
        kind = v.kind if known is None else joined(known, v.kind)
        if kind != known:
            self.kinds[name], self.settled = kind, False
        if name not in self._rooms or known != kind:
            self._rooms[name] = [
                self.code.room(f"%v{name}.{n}.{len(self.code.rooms)}", r)
                for n, r in enumerate(rooms_of(kind))
            ]
        for room, (kind_text, part) in zip(self._rooms[name], self._parts(v, kind), strict=True):
            self.code.do(f"store {kind_text} {part}, ptr {room}")

    def _parts(self, v: Any_, kind: Kind) -> list[tuple[str, str]]:
        match v, kind:
            case Value(), Number():
                return [(kind.text, self.math.cast(v, kind).name)]
            case Array(), Row():
                found = [("ptr", v.place), *(("i64", n) for n in v.lengths)]
                return found if kind.whole else [*found, *(("i64", n) for n in self._steps(v))]
            case Several(), Group():
                pairs = zip(v.items, kind.items, strict=True)
                return [p for item, k in pairs for p in self._parts(item, k)]
            case _:
                raise TextError(f"{v} is no {kind}")

    def _steps(self, a: Array) -> tuple[str, ...]:
        if not a.kind.whole:
            return a.steps
        steps = [str(a.kind.element.size)]
        for length in reversed(a.lengths[1:]):
            steps.insert(0, self.code.give(f"mul i64 {steps[0]}, {length}"))
        return tuple(steps)

    def value_of(self, name: str) -> Any_:
        """The value of a variable."""
        if name not in self._rooms:
            raise TextError(f"{name.partition('.')[2] or name} is read before it has a value")
        return self._read(self.kinds[name], iter(self._rooms[name]))

    def _read(self, kind: Kind, rooms: Iterator[str]) -> Any_:
        def load(text: str) -> str:
            return self.code.give(f"load {text}, ptr {next(rooms)}")

        match kind:
            case Number():
                return Value(kind, load(kind.text))
            case Row(dimensions=n):
                place, lengths = load("ptr"), tuple(load("i64") for _ in range(n))
                steps = () if kind.whole else tuple(load("i64") for _ in range(n))
                return Array(kind, place, lengths, steps)
            case Group(items=items):
                return Several(tuple(self._read(i, rooms) for i in items))

    def number_of(self, name: str) -> Value:
        return self._number(self.value_of(name))

    def own(self, name: str) -> str:
        """A name of the text, as that of a variable of this call."""
        return f"{self.scope.number}.{name}"

    # ---------------------------------------------------------------- statements

    def block(self, body: Sequence[ast.stmt]) -> None:
        for s in body:
            try:
                self.statement(s)
            except TextError as error:
                if error.args and "line " in str(error.args[0]):
                    raise
                raise TextError(f"line {s.lineno}: {error}: {ast.unparse(s)[:100]}") from None
            if self.code.ended:
                return

    def statement(self, s: ast.stmt) -> None:
        match s:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call() as call):
                self.call(call)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(attr="dtype") as e):
                self.scope.fixed[name] = self.array(e.value).kind.element
            case ast.Assign(targets=targets, value=value):
                found = self.value(value)
                for target in targets:
                    self.put(target, found)
            case ast.AugAssign(target=ast.Name() as name, op=operator, value=value):
                before = self.number(ast.Name(name.id, ast.Load()))
                self.put(name, self.math.binary(operator, before, self.number(value)))
            case ast.AugAssign(target=ast.Subscript() as target, op=operator, value=value):
                place, more = self.element(target), self.number(value)
                self.math.store(place, self.math.binary(operator, self.math.load(place), more))
            case ast.If():
                self.branch(s)
            case ast.While():
                self.loop_while(s)
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=ends)):
                self.loop_range(s, ends)
            case ast.For(iter=ast.Tuple(elts=items)):
                self.loop_items(s, items)
            case ast.Break():
                self.code.jump(self.scope.loops[-1][0])
            case ast.Continue():
                self.code.jump(self.scope.loops[-1][1])
            case ast.Return(value=value):
                if value is not None:
                    self.assign(self.own("return"), self.value(value))
                self.code.jump(self.scope.end)
            case _:
                raise TextError(f"there is no {type(s).__name__}")

    def put(self, target: ast.expr, v: Any_) -> None:
        """Give a value to what stands on the left of an assignment."""
        match target:
            case ast.Name(id=name):
                self.assign(self.own(name), v)
            case ast.Tuple(elts=parts):
                if not isinstance(v, Several) or len(v.items) != len(parts):
                    raise TextError("as many values are wanted as there are names")
                for part, item in zip(parts, v.items, strict=True):
                    self.put(part, item)
            case ast.Subscript():
                place = self.subscript(target)
                if place.kind.dimensions == 0:
                    self.math.store(place, self._number(v))
                elif isinstance(v, Array):
                    self._copy(place, v)
                else:
                    self._fill(place, self._number(v))
            case _:
                raise TextError(f"nothing is assigned to {ast.unparse(target)}")

    def _copy(self, to: Array, source: Array) -> None:
        if to.kind.dimensions != 1 or source.kind.dimensions != 1:
            raise TextError("rows of one dimension are copied")

        def each(at: Value) -> None:
            self.math.store(self.math.inner(to, at), self.math.load(self.math.inner(source, at)))

        self._counted(constant(0), Value(I64, to.lengths[0]), 1, each)

    def _fill(self, to: Array, v: Value) -> None:
        if not to.kind.whole:
            raise TextError("arrays whose elements follow each other are filled")
        row = replace(to, kind=replace(to.kind, dimensions=1), lengths=(self.math.count(to),))
        v = self.math.cast(v, to.kind.element)

        def each(at: Value) -> None:
            self.math.store(self.math.inner(row, at), v)

        self._counted(constant(0), Value(I64, row.lengths[0]), 1, each)

    def branch(self, s: ast.If) -> None:
        then, other, behind = (self.code.label(n) for n in ("then", "else", "behind"))
        self.condition(s.test, then, other if s.orelse else behind)
        for label, body in ((then, s.body), (other, s.orelse)):
            if label == then or s.orelse:
                self.code.begin(label)
                self.block(body)
                self.code.jump(behind)
        self.code.begin(behind)

    def condition(self, test: ast.expr, yes: str, no: str) -> None:
        """Go on here or there. What stands behind `and` and `or` is computed where it is needed."""
        match test:
            case ast.BoolOp(op=operator, values=values):
                for v in values[:-1]:
                    more = self.code.label("more")
                    if isinstance(operator, ast.And):
                        self.condition(v, more, no)
                    else:
                        self.condition(v, yes, more)
                    self.code.begin(more)
                self.condition(values[-1], yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.condition(operand, no, yes)
            case _:
                self.code.branch(self.math.truth(self.number(test)).name, yes, no)

    def loop_while(self, s: ast.While) -> None:
        test, body, behind = (self.code.label(n) for n in ("test", "body", "behind"))
        self.code.begin(test)
        self.condition(s.test, body, behind)
        self.code.begin(body)
        self._round(s.body, behind, test)
        self.code.jump(test)
        self.code.begin(behind)

    def _round(self, body: Sequence[ast.stmt], behind: str, following: str) -> None:
        self.scope.loops.append((behind, following))
        self.block(body)
        self.scope.loops.pop()

    def loop_range(self, s: ast.For, ends: Sequence[ast.expr]) -> None:
        values = [self.number(e) for e in ends]
        first, last = (constant(0), values[0]) if len(values) == 1 else (values[0], values[1])
        step = values[2].known if len(values) == 3 else 1
        if not isinstance(step, int) or step == 0:
            raise TextError("the step of a range is a number of the text")
        behind = self.code.label("behind")

        def each(at: Value) -> None:
            self.put(s.target, at)
            following = self.code.label("next")
            self._round(s.body, behind, following)
            self.code.begin(following)

        self._counted(first, last, step, each)
        self.code.begin(behind)

    def _counted(self, first: Value, last: Value, step: int, each: Callable[[Value], None]) -> None:
        """Rounds from one number to before another: tested behind a round, as LLVM has loops."""
        kind = U64 if U64 in (first.kind, last.kind) else I64
        begin, end = self.math.cast(first, kind), self.math.cast(last, kind)
        room = self.code.room(f"%{self.code.label('counter')}", "i64")
        body, behind = self.code.label("body"), self.code.label("done")
        before = self.code.label("before")
        test: ast.cmpop = ast.Lt() if step > 0 else ast.Gt()
        self.code.branch(self.math.compare(test, begin, end).name, before, behind)
        self.code.begin(before)
        self.code.do(f"store i64 {begin.name}, ptr {room}")
        self.code.begin(body)
        at = self.code.give(f"load i64, ptr {room}")
        each(Value(kind, at))
        wraps = "nuw" if kind == U64 else "nsw"
        more = Value(kind, self.code.give(f"add {wraps} i64 {at}, {step}"))
        self.code.do(f"store i64 {more.name}, ptr {room}")
        self.code.branch(self.math.compare(test, more, end).name, body, behind)
        self.code.begin(behind)

    def loop_items(self, s: ast.For, items: Sequence[ast.expr]) -> None:
        """A loop over numbers of the text is written out."""
        behind = self.code.label("behind")
        for item in items:
            self.put(s.target, self.value(item))
            following = self.code.label("next")
            self._round(s.body, behind, following)
            self.code.begin(following)
        self.code.begin(behind)

    # ---------------------------------------------------------------- expressions

    def number(self, e: ast.expr) -> Value:
        return self._number(self.value(e))

    def _number(self, v: Any_) -> Value:
        if not isinstance(v, Value):
            raise TextError("a number is wanted")
        return v

    def value(self, e: ast.expr) -> Any_:
        match e:
            case ast.Constant(value=bool() | int() | float() as number):
                return constant(number)
            case ast.Name(id=name):
                if (here := self.own(name)) in self._rooms:
                    return self.value_of(here)
                if name in self.known:
                    return self.known[name]
                raise TextError(f"{name} is read before it has a value")
            case ast.Tuple(elts=items):
                return Several(tuple(self.value(i) for i in items))
            case ast.BinOp(left=a, op=operator, right=b):
                return self.math.binary(operator, self.number(a), self.number(b))
            case ast.BoolOp():
                return self.either(e, lambda: constant(value=True), lambda: constant(value=False))
            case ast.UnaryOp(op=operator, operand=operand):
                return self.math.unary(operator, self.number(operand))
            case ast.Compare():
                return self.comparison(e)
            case ast.IfExp(test=test, body=yes, orelse=no):
                return self.either(test, lambda: self.value(yes), lambda: self.value(no))
            case ast.Subscript(value=ast.Attribute(value=array, attr="shape"), slice=index):
                n = self.number(index).known
                return Value(I64, self.array(array).lengths[int(n or 0)])
            case ast.Subscript():
                found = self.subscript(e)
                return found if found.kind.dimensions else self.math.load(found)
            case ast.Call():
                return self.called(self.call(e), e)
            case _:
                raise TextError(f"there is no {ast.unparse(e)}")

    def called(self, found: Any_ | None, e: ast.Call) -> Any_:
        if found is None:
            raise TextError(f"{ast.unparse(e.func)} returns nothing")
        return found

    def either(self, test: ast.expr, yes: Callable[[], Any_], no: Callable[[], Any_]) -> Any_:
        """One of two values, of which only that one is computed."""
        self._calls += 1
        name = f"either.{self._calls}"
        then, other, behind = (self.code.label(n) for n in ("if", "else", "endif"))
        self.condition(test, then, other)
        for label, value in ((then, yes), (other, no)):
            self.code.begin(label)
            self.assign(name, value())
            self.code.jump(behind)
        self.code.begin(behind)
        return self.value_of(name)

    def comparison(self, e: ast.Compare) -> Value:
        left, result = self.number(e.left), None
        for operator, side in zip(e.ops, e.comparators, strict=True):
            right = self.number(side)
            found = self.math.compare(operator, left, right)
            left = right
            result = found if result is None else self.math.binary(ast.BitAnd(), result, found)
        assert result is not None
        return result

    def array(self, e: ast.expr) -> Array:
        found = self.value(e)
        if not isinstance(found, Array):
            raise TextError(f"{ast.unparse(e)} is no array")
        return found

    def element(self, e: ast.Subscript) -> Array:
        found = self.subscript(e)
        if found.kind.dimensions:
            raise TextError(f"{ast.unparse(e)} is no element")
        return found

    def subscript(self, e: ast.Subscript) -> Array:
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
                a = self.math.part(a, *ends)
            else:
                a = self.math.inner(a, self.number(i))
        return a

    # ---------------------------------------------------------------- calls

    def type_of(self, e: ast.expr) -> Number | None:
        """The type that an expression names: `int32`, `places.dtype`, or a variable that is one."""
        match e:
            case ast.Name(id=name) if name in self.scope.fixed:
                return self.scope.fixed[name]
            case ast.Name(id=name):
                return NAMES.get(name)
            case ast.Attribute(value=array, attr="dtype"):
                return self.array(array).kind.element
            case _:
                return None

    def call(self, e: ast.Call) -> Any_ | None:
        """A call of a type, of a function of LLVM's or of the text."""
        if (kind := self.type_of(e.func)) is not None:
            return self.math.cast(self.number(e.args[0]), kind)
        match e.func:
            case ast.Name(id=name) if name in self.functions:
                return self.inlined(self.functions[name], [self.value(a) for a in e.args])
            case ast.Name(id="min" | "max" as name):
                test = ast.Lt() if name == "min" else ast.Gt()
                first, *others = (self.number(a) for a in e.args)
                for other in others:
                    first = self.math.extreme(test, first, other)
                return first
            case ast.Name(id="abs"):
                return self.math.absolute(self.number(e.args[0]))
            case ast.Name(id="floor" | "ceil" | "sqrt" as name):
                return self.math.function(name, self.number(e.args[0]))
            case ast.Name(id="len"):
                return Value(I64, self.array(e.args[0]).lengths[0])
            case ast.Name(id="empty" | "zeros" | "full" as name):
                return self.new_array(name, e.args)
            case ast.Attribute(value=value, attr="view"):
                return self.viewed(self.value(value), self.type_of(e.args[0]))
            case ast.Name(id="prefetch_to_store"):
                place = self.math.inner(self.array(e.args[0]), self.number(e.args[1])).place
                self.code.needs.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
                self.code.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 1, i32 3, i32 1)")
            case ast.Name(id="add_atomically"):
                a = self.math.inner(self.array(e.args[0]), self.number(e.args[1]))
                added = self.math.cast(self.number(e.args[2]), a.kind.element)
                kind = added.kind.text
                self.code.give(f"atomicrmw add ptr {a.place}, {kind} {added.name} monotonic")
            case ast.Name(id="add_pair"):
                self.add_pair(e.args)
            case _:
                raise TextError(f"there is no function {ast.unparse(e.func)}")
        return None

    def add_pair(self, arguments: Sequence[ast.expr]) -> None:
        """Two neighbours of one array more by two of another one, in one register."""
        arrays = [self.array(a) for a in arguments[::2]]
        to, more = (
            self.math.inner(a, self.number(i)) for a, i in zip(arrays, arguments[1::2], strict=True)
        )
        kind = f"<2 x {to.kind.element.text}>"
        a, b = (self.code.give(f"load {kind}, ptr {x.place}, align 8") for x in (to, more))
        total = self.code.give(f"add {kind} {a}, {b}")
        self.code.do(f"store {kind} {total}, ptr {to.place}, align 8")

    def viewed(self, v: Any_, kind: Number | None) -> Any_:
        """The same bits as numbers of another type of that size."""
        match v:
            case Array() if kind is not None and v.kind.element.size == kind.size:
                return replace(v, kind=replace(v.kind, element=kind))
            case Value() if kind is not None and v.kind.bits == kind.bits:
                if v.kind.text == kind.text:
                    return Value(kind, v.name)
                turned = f"bitcast {v.kind.text} {v.name} to {kind.text}"
                return Value(kind, self.code.give(turned))
            case _:
                raise TextError("a view has numbers of the same size")

    def new_array(self, name: str, arguments: Sequence[ast.expr]) -> Array:
        """A local array of (lengths, type), full of (lengths, number)."""
        if any(s.loops for s in (self.scope, *self._outer)):
            raise TextError("local arrays are made outside of loops")
        lengths = self.value(arguments[0])
        items = lengths.items if isinstance(lengths, Several) else (lengths,)
        numbers = [self.math.cast(self._number(i), I64) for i in items]
        filled = self.number(arguments[1]) if name == "full" else constant(0)
        kind = filled.kind if name == "full" else self.type_of(arguments[1])
        if kind is None:
            raise TextError("the type of a local array is wanted")
        made = self.local.made(kind, numbers)
        if name != "empty":
            self._fill(made, filled)
        return made

    _outer: tuple[Scope, ...] = ()

    def inlined(self, f: ast.FunctionDef, arguments: Sequence[Any_]) -> Any_ | None:
        """A function of the text, written out here."""
        if f.name in self._called:
            raise TextError(f"{f.name} calls itself")
        self._calls += 1
        outer, before = self.scope, self._outer
        self.scope = Scope(self._calls, self.code.label("returned"))
        self._outer = (*before, outer)
        self._called.append(f.name)
        for parameter, v in zip(f.args.args, arguments, strict=True):
            self.assign(self.own(parameter.arg), v)
        self.block(f.body)
        self.code.begin(self.scope.end)
        result = self.own("return")
        found = self.value_of(result) if result in self._rooms else None
        self._called.pop()
        self.scope, self._outer = outer, before
        return found
