"""Values that differ between the lanes of SIMD registers, in LLVM's language."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from lanewise.analysis import simd_operations
from lanewise.analysis.index_sums import index_sum
from lanewise.emit.lane_choices import LaneChoices
from lanewise.emit.llvm_expressions import adds_products
from lanewise.emit.llvm_instructions import TYPES, in_memory
from lanewise.emit.llvm_vectors import Vectors
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import BOOL, I64, Scalar

if TYPE_CHECKING:
    from lanewise.emit.llvm_statements import Writer


class LaneValues:
    """Writes, with the writer of a kernel, values of which each lane has one, and where their
    memory is.
    """

    def __init__(self, writer: Writer, lanes: LaneChoices, vectors: Vectors) -> None:
        self.writer, self.code, self.lanes, self.vectors = writer, writer.code, lanes, vectors

    def scalar(self, e: ir.Expression) -> str:
        return self.writer.expressions.value(e)

    def register(self, e: ir.Expression) -> str:
        """A value of which each lane has one."""
        if self.lanes.differs(e):
            return self.vector(e)
        return self.vectors.spread(self.scalar(e), e.type)

    def vector(self, e: ir.Expression) -> str:
        lanes, vectors = self.lanes, self.vectors
        match e:
            case ir.Call() | ir.Binary() if (
                lanes.loops and not lanes.sharing and simd_operations.no_instruction(e) is not None
            ):
                return self.once(e)
            case ir.Local():
                if e.name == lanes.thread:
                    return vectors.numbers(lanes.kind)
                return self.read(e.name, e.type)
            case ir.Unary(operator="-"):
                return vectors.negative(e.type, self.vector(e.operand))
            case ir.Unary():
                return vectors.opposite(e.type, self.vector(e.operand))
            case ir.Binary():
                return self.binary(e)
            case ir.Compare():
                left, right = self.register(e.left), self.register(e.right)
                return vectors.compare(e.operator, e.left.type, left, right)
            case ir.Logical():
                left, right = self.register(e.left), self.register(e.right)
                return vectors.binary(e.operator, BOOL, left, right)
            case ir.Select():
                if not lanes.differs(e.condition):
                    return self.code.either(
                        self.scalar(e.condition),
                        vectors.kind(e.type),
                        lambda: self.register(e.if_true),
                        lambda: self.register(e.if_false),
                    )
                mask = self.vector(e.condition)
                yes, no = self.register(e.if_true), self.register(e.if_false)
                return vectors.choose(mask, e.type, yes, no)
            case ir.Cast():
                return vectors.cast(self.vector(e.operand), e.operand.type, e.type)
            case ir.Call():
                operands = [self.register(x) for x in e.arguments]
                return vectors.function(e.intrinsic, e.arguments[0].type, operands)
            case ir.Element():
                kind, place = vectors.kind(e.type), self.element(e.array, e.index, e.type)
                return self.code.give(f"load {kind}, ptr {place}")
            case ir.Literal() | ir.Builtin():
                raise AssertionError(f"{type(e).__name__} is the same in all lanes, or has none")
            case _:
                assert_never(e)

    def element(self, array: str, index: ir.Expression, kind: Scalar) -> str:
        """Where the element of a local array lies of which each lane has one."""
        place, of = self.writer.expressions.index(index), self.writer.lying[array]
        return self.code.give(f"getelementptr {self.vectors.kind(kind)}, ptr {of}, i64 {place}")

    def set_element(self, s: ir.SetElement) -> None:
        kind, value = s.value.type, self.register(s.value)
        vector, place = self.vectors.kind(kind), self.element(s.array, s.index, kind)
        if self.lanes.masks:
            before = self.code.give(f"load {vector}, ptr {place}")
            value = self.vectors.choose(self.lanes.masks[-1], kind, value, before)
        self.code.do(f"store {vector} {value}, ptr {place}")

    def once(self, e: ir.Call | ir.Binary) -> str:
        """The value of an operation without SIMD instructions, which is the same in all lanes:
        computed from the first lane's operands.

        Between shared loops all lanes have the same values (passes/points/hosting.py), so that a
        mask here has all of them or none; masks of a single lane, which stores for all, have the
        first one.
        """
        operands = e.arguments if isinstance(e, ir.Call) else (e.left, e.right)
        given = [ir.Local(own(f"operand.{n}"), x.type) for n, x in enumerate(operands)]
        values = [
            self.vectors.lane(self.vector(x), x.type, "0")
            if self.lanes.differs(x)
            else self.scalar(x)
            for x in operands
        ]
        # not before: an operand may have such operations
        self.writer.given |= {n.name: v for n, v in zip(given, values, strict=True)}
        plain = (
            replace(e, arguments=tuple(given))
            if isinstance(e, ir.Call)
            else replace(e, left=given[0], right=given[1])
        )
        if not self.lanes.masks:
            return self.vectors.spread(self.scalar(plain), e.type)
        some = self.vectors.any(self.lanes.masks[-1])
        value = self.code.either(
            some, TYPES[e.type], lambda: self.scalar(plain), lambda: "zeroinitializer"
        )
        return self.vectors.spread(value, e.type)

    def binary(self, e: ir.Binary, *, fuses: bool = True) -> str:
        left = self.register(e.left)
        if e.operator in ("//", "%") and e.type.is_integer:
            # by a power of two (passes/points/lanes.py): both round down, as these do
            assert isinstance(e.right, ir.Literal)
            by = int(e.right.value)
            operator, number = (">>", by.bit_length() - 1) if e.operator == "//" else ("&", by - 1)
            right = self.vectors.spread(str(number), e.type)
            return self.vectors.binary(operator, e.type, left, right)
        match e.right:
            case ir.Binary() as product if adds_products(e) and self.lanes.differs(product):
                right = self.binary(product, fuses=False)
            case _:
                right = self.register(e.right)
        return self.vectors.binary(e.operator, e.type, left, right, free=e.free, fuses=fuses)

    def read(self, name: str, kind: Scalar) -> str:
        place = self.writer.lying[name]
        return self.code.give(f"load {self.vectors.kind(kind)}, ptr {place}", place)

    def put(self, name: str, value: str, kind: Scalar) -> None:
        place = self.writer.lying[name]
        self.code.do(f"store {self.vectors.kind(kind)} {value}, ptr {place}")

    def assigned_to(self, name: str, value: str, kind: Scalar) -> None:
        if self.lanes.masks and name in self.lanes.assigned:
            value = self.vectors.choose(self.lanes.masks[-1], kind, value, self.read(name, kind))
        self.lanes.assigned.add(name)
        self.put(name, value, kind)

    def mask(self, condition: ir.Expression) -> str:
        """The lanes in which a condition holds, of those that are here."""
        made = self.register(condition)
        if not self.lanes.masks:
            return made
        return self.both(self.lanes.masks[-1], made)

    def both(self, a: str, b: str) -> str:
        return self.vectors.binary("and", BOOL, a, b)

    def type_of(self, buffer: str) -> Scalar:
        return self.writer.kinds[buffer]

    def pointer(self, buffer: str, index: ir.Expression, more: int = 0) -> str:
        """An element's place, which may be outside of the array."""
        place = self.writer.expressions.index(index)
        if more:
            place = self.code.give(f"add i64 {place}, {more}")
        kind = in_memory(self.type_of(buffer))
        return self.code.give(
            f"getelementptr {kind}, ptr {self.writer.buffer(buffer)}, i64 {place}"
        )

    def first_place(self, buffer: str, index: ir.Expression) -> str:
        """Of the first lane; the others lie behind it."""
        total = index_sum(index, self.lanes.sums)
        assert self.lanes.is_next(total), "neighbouring lanes do not touch neighbouring elements"
        return self.pointer(buffer, total.without([self.lanes.thread]).expression(I64))
