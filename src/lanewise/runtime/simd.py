"""SIMD registers as values of generated kernels: a number for each of some neighbouring lanes.

A kernel takes its operations from `lanes(16, "load", "add", ...)`. Each becomes one instruction of
LLVM's vectors, so that what a register holds does not hang on what LLVM's vectoriser makes of a
loop. An operand that is one number stands for the same number in all lanes. Lanes that a mask
leaves out neither read nor write memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import intrinsic, register_model

from lanewise.language.target import LINE, PAGE
from lanewise.runtime.simd_exponential import exponential
from lanewise.runtime.simd_instructions import called, constant

_FLOATS = (types.float32, types.float64)
_FLAGS = ("contract",)
_FREE = ("reassoc", "contract", "nsz")
_APPROXIMATE = ("arcp", "afn", "reassoc", "contract", "nsz")
# bytes of an array from which on what is written is better not kept in a core's own caches
FAR = 1 << 24
EVEN = 16  # bytes that such a store needs to begin at a multiple of


class Lanes(types.Type):
    """A register of `count` numbers of one type, or of truth values."""

    def __init__(self, element: Any, count: int) -> None:
        self.element, self.count = element, count
        super().__init__(name=f"Lanes({element} x {count})")


def _scalar(kind: Any) -> Any:
    match kind:
        case types.float32:
            return ir.FloatType()
        case types.float64:
            return ir.DoubleType()
        case types.boolean:
            return ir.IntType(1)
        case _:
            return ir.IntType(kind.bitwidth)


@register_model(Lanes)
class _Model(PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, ir.VectorType(_scalar(kind.element), kind.count))


def _element(kind: Any) -> Any:
    """The type of a number or of the numbers in a register; literals of Numba are plain numbers."""
    plain = types.unliteral(kind)
    return plain.element if isinstance(plain, Lanes) else plain


def _spread(builder: Any, value: Any, count: int) -> Any:
    """One number in all lanes."""
    vector = ir.VectorType(value.type, count)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count)
    )


def _operand(context: Any, builder: Any, value: Any, kind: Any, target: Any, count: int) -> Any:
    """An operand as a register."""
    if isinstance(kind, Lanes):
        return value
    return _spread(builder, context.cast(builder, value, kind, target), count)


Make = Callable[[Any, list[Any], Any], Any]
"""What makes the instructions.

Of a builder, operands that are registers, and the type of their elements.
"""


_FAST = frozenset(("fadd", "fsub", "fmul", "fdiv", "fneg"))


def _plain(count: int, operands: int, make: Make, result: Any = None, *, fast: bool = False) -> Any:
    """An operation on numbers of one type; `result` is the type of what it gives, else the same."""

    def build(kinds: tuple[Any, ...]) -> Any:
        registers = [k for k in kinds if isinstance(k, Lanes)]
        element = registers[0].element if registers else _element(kinds[0])

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            values = [
                _operand(context, builder, v, k, element, count)
                for v, k in zip(arguments, signature.args, strict=True)
            ]
            value = make(builder, values, element)
            if fast and isinstance(value, ir.instructions.Instruction) and value.opname in _FAST:
                value.flags = ["fast"]
            return value

        return Lanes(result or element, count)(*kinds), generate

    def of_one(typing_context: Any, a: Any) -> Any:
        return build((a,))

    def of_two(typing_context: Any, a: Any, b: Any) -> Any:
        return build((a, b))

    def of_three(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
        return build((a, b, c))

    return intrinsic({1: of_one, 2: of_two, 3: of_three}[operands])


def _arithmetic(on_floats: str, on_numbers: str, flags: tuple[str, ...]) -> Make:
    def make(builder: Any, values: list[Any], element: Any) -> Any:
        if element in _FLOATS:
            return getattr(builder, on_floats)(*values, flags=flags)
        return getattr(builder, on_numbers)(*values)

    return make


def _compared(operator: str) -> Make:
    def make(builder: Any, values: list[Any], element: Any) -> Any:
        if element in _FLOATS:
            compare = builder.fcmp_unordered if operator == "!=" else builder.fcmp_ordered
            return compare(operator, *values)
        signed = element is types.boolean or element.signed
        return (builder.icmp_signed if signed else builder.icmp_unsigned)(operator, *values)

    return make


def _extreme(operator: str) -> Make:
    """The smaller or larger number; NaN if either operand is NaN."""

    def make(builder: Any, values: list[Any], element: Any) -> Any:
        a, b = values
        if element not in _FLOATS:
            compare = builder.icmp_signed if element.signed else builder.icmp_unsigned
            return builder.select(compare(operator, a, b), a, b)
        # One instruction of x86, which gives b if either operand is NaN; if a is the NaN, a stays.
        extreme = builder.select(builder.fcmp_ordered(operator, a, b), a, b)
        return builder.select(builder.fcmp_ordered("ord", a, a), extreme, a)

    return make


def _absolute(builder: Any, values: list[Any], element: Any) -> Any:
    (a,) = values
    if element in _FLOATS:
        return called(builder, "fabs", a.type, values)
    if not element.signed:
        return a
    negative = builder.icmp_signed("<", a, ir.Constant(a.type, None))
    return builder.select(negative, builder.neg(a), a)


def _rsqrt(builder: Any, values: list[Any], element: Any) -> Any:
    (a,) = values
    root = called(builder, "sqrt", a.type, values, _APPROXIMATE)
    return builder.fdiv(constant(a.type, 1.0), root, flags=_APPROXIMATE)


def _fused(builder: Any, values: list[Any], element: Any) -> Any:
    a, b, c = values
    return builder.fadd(builder.fmul(a, b, flags=_FLAGS), c, flags=_FLAGS)


def _negated(builder: Any, values: list[Any], element: Any) -> Any:
    return builder.fneg(values[0], flags=_FLAGS) if element in _FLOATS else builder.neg(values[0])


def _shifted_right(builder: Any, values: list[Any], element: Any) -> Any:
    return builder.ashr(*values) if element.signed else builder.lshr(*values)


_OPERATIONS: dict[str, tuple[int, Make, Any]] = {
    "add": (2, _arithmetic("fadd", "add", _FLAGS), None),
    "sub": (2, _arithmetic("fsub", "sub", _FLAGS), None),
    "mul": (2, _arithmetic("fmul", "mul", _FLAGS), None),
    "free_sum": (2, _arithmetic("fadd", "add", _FREE), None),
    "free_product": (2, _arithmetic("fmul", "mul", _FREE), None),
    "div": (2, _arithmetic("fdiv", "sdiv", _FLAGS), None),
    "and": (2, lambda builder, v, element: builder.and_(*v), None),
    "or": (2, lambda builder, v, element: builder.or_(*v), None),
    "xor": (2, lambda builder, v, element: builder.xor(*v), None),
    "shl": (2, lambda builder, v, element: builder.shl(*v), None),
    "shr": (2, _shifted_right, None),
    "min": (2, _extreme("<"), None),
    "max": (2, _extreme(">"), None),
    "eq": (2, _compared("=="), types.boolean),
    "ne": (2, _compared("!="), types.boolean),
    "lt": (2, _compared("<"), types.boolean),
    "le": (2, _compared("<="), types.boolean),
    "gt": (2, _compared(">"), types.boolean),
    "ge": (2, _compared(">="), types.boolean),
    "splat": (1, lambda builder, v, element: v[0], None),
    "neg": (1, _negated, None),
    "not": (1, lambda builder, v, element: builder.not_(v[0]), None),
    "abs": (1, _absolute, None),
    "sqrt": (1, lambda builder, v, element: called(builder, "sqrt", v[0].type, v), None),
    "floor": (1, lambda builder, v, element: called(builder, "floor", v[0].type, v), None),
    "ceil": (1, lambda builder, v, element: called(builder, "ceil", v[0].type, v), None),
    "trunc": (1, lambda builder, v, element: called(builder, "trunc", v[0].type, v), None),
    "rsqrt": (1, _rsqrt, None),
    "exp": (1, exponential, None),
    "fma": (3, _fused, None),
}


def _choose(count: int) -> Any:
    def choose(typing_context: Any, mask: Any, yes: Any, no: Any) -> Any:
        element = next((k.element for k in (yes, no) if isinstance(k, Lanes)), None) or _element(
            yes
        )

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            m, *both = arguments
            one, other = (
                _operand(context, builder, v, k, element, count)
                for v, k in zip(both, signature.args[1:], strict=True)
            )
            return builder.select(m, one, other)

        return Lanes(element, count)(mask, yes, no), generate

    return intrinsic(choose)


_KINDS = {
    "f32": types.float32,
    "f64": types.float64,
    "i32": types.int32,
    "u32": types.uint32,
    "i64": types.int64,
}


def _convert(count: int, target: Any) -> Any:
    """The same numbers in another type.

    Floats that do not fit a whole number become the nearest one that does, NaN 0.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (value,), source = arguments, signature.args[0].element
        to = ir.VectorType(_scalar(target), count)
        if source is types.boolean:
            return builder.uitofp(value, to) if target in _FLOATS else builder.zext(value, to)
        match source in _FLOATS, target in _FLOATS:
            case True, True:
                if source is target:
                    return value
                return (
                    builder.fpext(value, to)
                    if target is types.float64
                    else builder.fptrunc(value, to)
                )
            case True, False:
                name = f"llvm.fpto{'s' if target.signed else 'u'}i.sat"
                given = "f32" if source is types.float32 else "f64"
                function = builder.module.declare_intrinsic(
                    f"{name}.v{count}i{target.bitwidth}.v{count}{given}",
                    (),
                    ir.FunctionType(to, (value.type,)),
                )
                return builder.call(function, (value,))
            case False, True:
                return builder.sitofp(value, to) if source.signed else builder.uitofp(value, to)
            case _:
                if source.bitwidth == target.bitwidth:
                    return value
                if source.bitwidth > target.bitwidth:
                    return builder.trunc(value, to)
                return builder.sext(value, to) if source.signed else builder.zext(value, to)

    def convert(typing_context: Any, x: Any) -> Any:
        return Lanes(target, count)(x), generate

    return intrinsic(convert)


def _numbers(count: int, kind: Any) -> Any:
    """0, 1, 2, ...: the number of each lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(ir.VectorType(_scalar(kind), count), list(range(count)))

    def numbers(typing_context: Any) -> Any:
        return Lanes(kind, count)(), generate

    return intrinsic(numbers)


def _any(count: int) -> Any:
    """Whether a mask has a lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], ir.IntType(count))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(count), 0))

    def some(typing_context: Any, mask: Any) -> Any:
        return types.boolean(mask), generate

    return intrinsic(some)


def _last(count: int) -> Any:
    """The number in the last lane of a mask that has one."""

    def last(typing_context: Any, mask: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            bits = ir.IntType(count)
            leading = builder.ctlz(
                builder.bitcast(arguments[0], bits), ir.Constant(ir.IntType(1), 0)
            )
            return builder.extract_element(
                arguments[1], builder.sub(ir.Constant(bits, count - 1), leading)
            )

        return value.element(mask, value), generate

    return intrinsic(last)


def _lane(count: int) -> Any:
    """The number in one lane."""

    def lane(typing_context: Any, value: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            at = context.cast(builder, arguments[1], signature.args[1], types.intp)
            return builder.extract_element(arguments[0], at)

        return value.element(value, number), generate

    return intrinsic(lane)


def _least(count: int) -> Any:
    """The least number of all lanes; what is no number is left out."""

    def least(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            (register,) = arguments
            kind = "f32" if value.element is types.float32 else "f64"
            function = builder.module.declare_intrinsic(
                f"llvm.vector.reduce.fmin.v{count}{kind}",
                (),
                ir.FunctionType(register.type.element, (register.type,)),
            )
            return builder.call(function, (register,))

        return value.element(value), generate

    return intrinsic(least)


def _put(count: int) -> Any:
    """A register with another number in one lane."""

    def put(typing_context: Any, value: Any, number: Any, one: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            at = context.cast(builder, arguments[1], signature.args[1], types.intp)
            new = context.cast(builder, arguments[2], signature.args[2], value.element)
            return builder.insert_element(arguments[0], new, at)

        return value(value, number, one), generate

    return intrinsic(put)


def _shuffle(count: int, distance: int, group: int) -> Any:
    """The number of the lane `distance` behind, its own where its group of lanes ends; of the first
    of the group for 0.
    """

    def shuffle(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            (register,) = arguments
            order = [
                n - n % group
                if not distance
                else n + distance
                if n % group + distance < group
                else n
                for n in range(count)
            ]
            number = ir.VectorType(ir.IntType(32), count)
            return builder.shuffle_vector(
                register, ir.Constant(register.type, ir.Undefined), ir.Constant(number, order)
            )

        return value(value), generate

    return intrinsic(shuffle)


# ------------------------------------------------------------ memory


def _pointer(context: Any, builder: Any, array: Any, value: Any, place: Any, kind: Any) -> Any:
    """Of an element of a contiguous array."""
    data = context.make_array(array)(context, builder, value).data
    return builder.gep(data, [context.cast(builder, place, kind, types.intp)])


def _vector_pointer(builder: Any, pointer: Any, count: int) -> Any:
    return builder.bitcast(pointer, ir.VectorType(pointer.type.pointee, count).as_pointer())


def _load(count: int) -> Any:
    """Neighbouring elements, from a place on."""

    def load(typing_context: Any, array: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _pointer(
                context, builder, array, arguments[0], arguments[1], signature.args[1]
            )
            return builder.load(
                _vector_pointer(builder, pointer, count), align=array.dtype.bitwidth // 8
            )

        return Lanes(array.dtype, count)(array, place), generate

    return intrinsic(load)


def _prefetch(*, stores: bool, near: int) -> Any:
    """Ask for what lies at a place, which may be beyond the end. near: how close to the core; 3 is
    its first cache, 2 its second one.
    """

    def prefetch(typing_context: Any, array: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _pointer(
                context, builder, array, arguments[0], arguments[1], signature.args[1]
            )
            _asked(builder, pointer, stores=stores, near=near)
            return context.get_dummy_value()

        return types.void(array, place), generate

    return intrinsic(prefetch)


def _asked(builder: Any, pointer: Any, *, stores: bool, near: int) -> None:
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), (byte, number, number, number))
    name = "llvm.prefetch.p0i8"
    callee = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    hints = (ir.Constant(number, n) for n in (int(stores), near, 1))  # 1: data, not instructions
    builder.call(callee, [builder.bitcast(pointer, byte), *hints])


def _masked(
    builder: Any, name: str, result: Any, pointer: Any, arguments: list[Any], size: int
) -> Any:
    vector = pointer.type.pointee
    letter = {"float": "f32", "double": "f64"}.get(str(vector.element)) or str(vector.element)
    shape = f"v{vector.count}{letter}"
    text = f"llvm.masked.{name}.{shape}.p0{shape}"
    function = ir.FunctionType(result, [a.type for a in arguments])
    callee = builder.module.globals.get(text) or ir.Function(builder.module, function, text)
    return builder.call(callee, arguments)


def _load_some(count: int) -> Any:
    """Neighbouring elements in the lanes of a mask, and the last argument in the others."""

    def load(typing_context: Any, array: Any, place: Any, mask: Any, other: Any) -> Any:
        size = array.dtype.bitwidth // 8

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value, where, m, rest = arguments
            pointer = _vector_pointer(
                builder, _pointer(context, builder, array, value, where, signature.args[1]), count
            )
            rest = _operand(context, builder, rest, signature.args[3], array.dtype, count)
            align = ir.Constant(ir.IntType(32), size)
            return _masked(
                builder, "load", pointer.type.pointee, pointer, [pointer, align, m, rest], size
            )

        return Lanes(array.dtype, count)(array, place, mask, other), generate

    return intrinsic(load)


def _store(count: int) -> Any:
    def store(typing_context: Any, array: Any, place: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _pointer(
                context, builder, array, arguments[0], arguments[1], signature.args[1]
            )
            register = _operand(
                context, builder, arguments[2], signature.args[2], array.dtype, count
            )
            builder.store(
                register, _vector_pointer(builder, pointer, count), align=array.dtype.bitwidth // 8
            )
            return context.get_dummy_value()

        return types.void(array, place, value), generate

    return intrinsic(store)


def _store_some(count: int) -> Any:
    def store(typing_context: Any, array: Any, place: Any, mask: Any, value: Any) -> Any:
        size = array.dtype.bitwidth // 8

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            base, where, m, stored = arguments
            pointer = _vector_pointer(
                builder, _pointer(context, builder, array, base, where, signature.args[1]), count
            )
            register = _operand(context, builder, stored, signature.args[3], array.dtype, count)
            align = ir.Constant(ir.IntType(32), size)
            _masked(builder, "store", ir.VoidType(), pointer, [register, pointer, align, m], size)
            return context.get_dummy_value()

        return types.void(array, place, mask, value), generate

    return intrinsic(store)


def _stream(count: int, *, parts: bool = True) -> Any:
    """A store past the caches where `far` says so and a line of memory is written whole: the line
    is not read before.

    parts: whether a register that lies in two lines is stored so, too: where the next one follows
    at once, and completes the second.
    """

    def store(typing_context: Any, array: Any, place: Any, value: Any, far: Any) -> Any:
        size = array.dtype.bitwidth // 8
        whole, align = size * count, min(EVEN, size * count)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _pointer(
                context, builder, array, arguments[0], arguments[1], signature.args[1]
            )
            register = _operand(
                context, builder, arguments[2], signature.args[2], array.dtype, count
            )
            target, word = _vector_pointer(builder, pointer, count), ir.IntType(64)

            def even(to: int) -> Any:
                low = builder.and_(builder.ptrtoint(pointer, word), ir.Constant(word, to - 1))
                return builder.and_(
                    arguments[3], builder.icmp_unsigned("==", low, ir.Constant(word, 0))
                )

            def past(to: int) -> None:
                _past(builder, register, target, to)

            # else as many stores as have `EVEN` bytes
            with builder.if_else(even(whole)) as (in_one, otherwise):
                with in_one:
                    past(whole)
                with otherwise:
                    if parts:
                        with builder.if_else(even(align)) as (in_parts, through):
                            with in_parts:
                                past(align)
                            with through:
                                builder.store(register, target, align=size)
                    else:
                        builder.store(register, target, align=size)
            return context.get_dummy_value()

        return types.void(array, place, value, far), generate

    return intrinsic(store)


def _stream_some(count: int) -> Any:
    """A store in some lanes of a register, past the caches where `far` says so: pieces of `EVEN`
    bytes, and single elements beside them.

    A core puts together what follows each other: a line whose first part ends a row goes to memory
    whole with what begins the next row. Through a cache the second part would wait until the line
    has come from memory, and all stores behind it.
    """

    def store(typing_context: Any, array: Any, place: Any, mask: Any, value: Any, far: Any) -> Any:
        size = array.dtype.bitwidth // 8

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _pointer(
                context, builder, array, arguments[0], arguments[1], signature.args[1]
            )
            register = _operand(
                context, builder, arguments[3], signature.args[3], array.dtype, count
            )
            target, word = _vector_pointer(builder, pointer, count), ir.IntType(64)
            low = builder.and_(builder.ptrtoint(pointer, word), word(EVEN - 1))
            begins = builder.icmp_unsigned("==", low, word(0))
            with builder.if_else(builder.and_(arguments[4], begins)) as (past, through):
                with past:
                    _in_pieces(builder, register, arguments[2], pointer)
                with through:
                    align = ir.Constant(ir.IntType(32), size)
                    _masked(
                        builder,
                        "store",
                        ir.VoidType(),
                        target,
                        [register, target, align, arguments[2]],
                        size,
                    )
            return context.get_dummy_value()

        return types.void(array, place, mask, value, far), generate

    return intrinsic(store)


def _in_pieces(builder: Any, register: Any, mask: Any, pointer: Any) -> None:
    """Store these lanes past the caches. The place begins at a multiple of `EVEN` bytes.

    A function of its own, or LLVM makes all of a kernel's loops for the sake of this.
    """
    vector, bits = register.type, ir.IntType(register.type.count)
    kind = ir.FunctionType(ir.VoidType(), [vector.as_pointer(), bits, pointer.type])
    name = f"lw.pieces.{vector.count}.{vector.element}"
    callee = builder.module.globals.get(name) or _pieces(ir.Function(builder.module, kind, name))
    with builder.goto_entry_block():
        kept = builder.alloca(vector)
    builder.store(register, kept)
    builder.call(callee, [kept, builder.bitcast(mask, bits), pointer])


def _pieces(function: Any) -> Any:
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder, number = ir.IRBuilder(function.append_basic_block()), ir.IntType(32)
    kept, lanes, pointer = function.args
    register: Any = builder.load(kept)
    element, bits = pointer.type.pointee, lanes.type
    size = (
        element.width // 8
        if isinstance(element, ir.IntType)
        else 4
        if isinstance(element, ir.FloatType)
        else 8
    )
    piece = EVEN // size
    for first in range(0, register.type.count, piece):
        every = bits(((1 << piece) - 1) << first)
        order = ir.Constant(ir.VectorType(number, piece), list(range(first, first + piece)))
        values = builder.shuffle_vector(register, ir.Constant(register.type, ir.Undefined), order)
        with builder.if_else(builder.icmp_unsigned("==", builder.and_(lanes, every), every)) as (
            whole,
            some,
        ):
            with whole:
                _past(builder, values, builder.gep(pointer, [number(first)]), EVEN)
            with some:
                for n in range(piece):
                    with builder.if_then(
                        builder.trunc(builder.lshr(lanes, bits(first + n)), ir.IntType(1))
                    ):
                        one = builder.bitcast(
                            builder.extract_element(values, number(n)), ir.IntType(8 * size)
                        )
                        _past(builder, one, builder.gep(pointer, [number(first + n)]), size)
    builder.ret_void()
    return function


def _past(builder: Any, value: Any, pointer: Any, align: int) -> None:
    """Store a value past the caches."""
    written = builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=align)
    written.set_metadata(
        "nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
    )


def _is_far(typing_context: Any, array: Any) -> Any:
    """Whether an array is larger than the caches of a core: what is written to it is read from
    memory whoever reads it.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        count = context.make_array(array)(context, builder, arguments[0]).nitems
        most = ir.Constant(count.type, FAR // (array.dtype.bitwidth // 8))
        return builder.icmp_signed(">", count, most)

    return types.boolean(array), generate


def _begins(within: int) -> Any:
    """How many elements fit between the beginning of a piece of memory, a line or a page, and that
    of an array.
    """

    def begins(typing_context: Any, array: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(array)(context, builder, arguments[0]).data
            word = ir.IntType(64)
            low = builder.and_(builder.ptrtoint(data, word), ir.Constant(word, within - 1))
            return builder.udiv(low, ir.Constant(word, array.dtype.bitwidth // 8))

        return types.intp(array), generate

    return intrinsic(begins)


def _fence(typing_context: Any) -> Any:
    """What was stored past the caches is there for whoever comes next."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


def _turn(count: int) -> Any:
    """Registers as the columns of a matrix whose rows they were: a tuple of as many."""

    def turn(typing_context: Any, rows: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            values = [builder.extract_value(arguments[0], n) for n in range(count)]
            distance = 1
            while distance < count:  # exchange blocks of this side across the diagonal
                values = _exchanged(builder, values, distance, count)
                distance *= 2
            return context.make_tuple(builder, signature.return_type, values)

        return types.UniTuple(rows.dtype, count)(rows), generate

    return intrinsic(turn)


def _exchanged(builder: Any, rows: list[Any], distance: int, count: int) -> list[Any]:
    number = ir.VectorType(ir.IntType(32), count)
    low = [n if not n & distance else n - distance + count for n in range(count)]
    high = [n + distance if not n & distance else n + count for n in range(count)]
    done: list[Any] = list(rows)
    for n in range(count):
        if not n & distance:
            one, other = rows[n], rows[n + distance]
            done[n] = builder.shuffle_vector(one, other, ir.Constant(number, low))
            done[n + distance] = builder.shuffle_vector(one, other, ir.Constant(number, high))
    return done


def _bits_of(typing_context: Any, number: Any) -> Any:
    """The bits of a float64 as a whole number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


bits_of = intrinsic(_bits_of)
is_far = intrinsic(_is_far)
phase, place_in_page = _begins(LINE), _begins(PAGE)
prefetch = _prefetch(stores=False, near=2)
# Stores end one after the other: one that waits for its line holds up those behind it.
prefetch_to_store = _prefetch(stores=True, near=3)
fence = intrinsic(_fence)
_MEMORY: dict[str, Callable[[int], Any]] = {
    "load": _load,
    "load_some": _load_some,
    "store": _store,
    "store_some": _store_some,
    "stream": _stream,
    "choose": _choose,
    "any": _any,
    "stream_lines": partial(_stream, parts=False),
    "stream_some": _stream_some,
    "turn": _turn,
    "last": _last,
    "lane": _lane,
    "least": _least,
    "put": _put,
}


@cache
def _operation(count: int, name: str, fast: bool) -> Any:
    if name in _MEMORY:
        return _MEMORY[name](count)
    if name in _OPERATIONS:
        operands, make, result = _OPERATIONS[name]
        return _plain(count, operands, make, result, fast=fast)
    kind, _, what = name.partition("_")
    match kind:
        case "to":
            return _convert(count, _KINDS[what])
        case "numbers":
            return _numbers(count, _KINDS[what])
        case "shuffle":
            distance, _, group = what.partition("_")
            return _shuffle(count, int(distance), int(group))
        case _:
            return {
                "far": is_far,
                "fence": fence,
                "phase": phase,
                "place_in_page": place_in_page,
                "prefetch": prefetch,
            }[name]


def lanes(count: int, *names: str, fast: bool = False) -> tuple[Any, ...]:
    """Operations on registers of so many lanes, by their names. fast: with every algebraic
    shortcut.
    """
    return tuple(_operation(count, name, fast) for name in names)
