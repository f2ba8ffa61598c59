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
from collections.abc import Mapping, Sequence

from lanewise.runtime.llvm_lines import FunctionLines
from lanewise.runtime.written.expressions import TextExpressions, number_of
from lanewise.runtime.written.kinds import Kind, TextError
from lanewise.runtime.written.memory import LocalArrays
from lanewise.runtime.written.rounds import copy, counted, fill
from lanewise.runtime.written.values import (
    Arithmetic,
    TextArray,
    TextNumber,
    TextTuple,
    TextValue,
    constant,
)
from lanewise.runtime.written.variables import TextCall, Variables


class FunctionWriter:
    """One round through a text. kinds: of variables, as far as they are known."""

    def __init__(
        self,
        functions: Mapping[str, ast.FunctionDef],
        known: Mapping[str, TextNumber],
        kinds: dict[str, Kind],
    ) -> None:
        self.code = FunctionLines()
        self._math = Arithmetic(self.code)
        self.local = LocalArrays(self.code)
        self.variables = Variables(self._math, kinds)
        self.expressions = TextExpressions(
            self._math, self.variables, self.local, known, functions, self._inlined
        )
        self._functions, self._calls, self._called = functions, 0, list[str]()

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
                self.expressions.call(call)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(attr="dtype") as e):
                self.variables.call.types[name] = self.expressions.array(e.value).kind.element
            case ast.Assign(targets=targets, value=value):
                found = self.expressions.value(value)
                for target in targets:
                    self.put(target, found)
            case ast.AugAssign(target=ast.Name() as name, op=operator, value=value):
                before = self.expressions.number(ast.Name(name.id, ast.Load()))
                self.put(name, self._math.binary(operator, before, self.expressions.number(value)))
            case ast.AugAssign(target=ast.Subscript() as target, op=operator, value=value):
                place, more = self.expressions.element(target), self.expressions.number(value)
                self._math.store(place, self._math.binary(operator, self._math.load(place), more))
            case ast.If():
                self.branch(s)
            case ast.While():
                self.loop_while(s)
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=ends)):
                self.loop_range(s, ends)
            case ast.For(iter=ast.Tuple(elts=items)):
                self.loop_items(s, items)
            case ast.Break():
                self.code.jump(self.variables.call.loops[-1][0])
            case ast.Continue():
                self.code.jump(self.variables.call.loops[-1][1])
            case ast.Return(value=value):
                if value is not None:
                    found = self.expressions.value(value)
                    self.variables.assign(self.variables.own("return"), found)
                self.code.jump(self.variables.call.end)
            case _:
                raise TextError(f"there is no {type(s).__name__}")

    def put(self, target: ast.expr, v: TextValue) -> None:
        """Give a value to what stands on the left of an assignment."""
        match target:
            case ast.Name(id=name):
                self.variables.assign(self.variables.own(name), v)
            case ast.Tuple(elts=parts):
                if not isinstance(v, TextTuple) or len(v.items) != len(parts):
                    raise TextError("as many values are wanted as there are names")
                for part, item in zip(parts, v.items, strict=True):
                    self.put(part, item)
            case ast.Subscript():
                place = self.expressions.subscript(target)
                if place.kind.dimensions == 0:
                    self._math.store(place, number_of(v))
                elif isinstance(v, TextArray):
                    copy(self._math, place, v)
                else:
                    fill(self._math, place, number_of(v))
            case _:
                raise TextError(f"nothing is assigned to {ast.unparse(target)}")

    def branch(self, s: ast.If) -> None:
        then, other, behind = (self.code.label(n) for n in ("then", "else", "behind"))
        self.expressions.condition(s.test, then, other if s.orelse else behind)
        for label, body in ((then, s.body), (other, s.orelse)):
            if label == then or s.orelse:
                self.code.begin(label)
                self.block(body)
                self.code.jump(behind)
        self.code.begin(behind)

    def loop_while(self, s: ast.While) -> None:
        test, body, behind = (self.code.label(n) for n in ("test", "body", "behind"))
        self.code.begin(test)
        self.expressions.condition(s.test, body, behind)
        self.code.begin(body)
        self._round(s.body, behind, test)
        self.code.jump(test)
        self.code.begin(behind)

    def _round(self, body: Sequence[ast.stmt], behind: str, following: str) -> None:
        self.variables.call.loops.append((behind, following))
        self.variables.looping += 1
        self.block(body)
        self.variables.looping -= 1
        self.variables.call.loops.pop()

    def loop_range(self, s: ast.For, ends: Sequence[ast.expr]) -> None:
        values = [self.expressions.number(e) for e in ends]
        first, last = (constant(0), values[0]) if len(values) == 1 else (values[0], values[1])
        step = values[2].known if len(values) == 3 else 1
        if not isinstance(step, int) or step == 0:
            raise TextError("the step of a range is a number of the text")
        behind = self.code.label("behind")

        def each(at: TextNumber) -> None:
            self.put(s.target, at)
            following = self.code.label("next")
            self._round(s.body, behind, following)
            self.code.begin(following)

        counted(self._math, first, last, step, each)
        self.code.begin(behind)

    def loop_items(self, s: ast.For, items: Sequence[ast.expr]) -> None:
        """A loop over numbers of the text is written out."""
        behind = self.code.label("behind")
        for item in items:
            self.put(s.target, self.expressions.value(item))
            following = self.code.label("next")
            self._round(s.body, behind, following)
            self.code.begin(following)
        self.code.begin(behind)

    def _inlined(self, name: str, arguments: Sequence[TextValue]) -> TextValue | None:
        """A function of the text, written out here."""
        if name in self._called:
            raise TextError(f"{name} calls itself")
        f, variables, outer = self._functions[name], self.variables, self.variables.call
        self._calls += 1
        variables.call = TextCall(self._calls, self.code.label("returned"))
        self._called.append(name)
        for parameter, v in zip(f.args.args, arguments, strict=True):
            variables.assign(variables.own(parameter.arg), v)
        self.block(f.body)
        self.code.begin(variables.call.end)
        result = variables.own("return")
        found = variables.value_of(result) if variables.has(result) else None
        self._called.pop()
        variables.call = outer
        return found
