"""Random programs as a user would write them: source text of records, helpers and one kernel, valid by construction.

Every expression is made for a wanted type. In a *plain* program operands have one type and are converted by name; those
mean the same as ordinary Python on NumPy scalars, to the bit. The others mix types as far as the language promotes
them.

In an *exact* program no float is ever rounded, or what is rounded decides nothing: floats are small multiples of 1/4,
products have few factors, and what a root, a quotient or a library function gives is cut to such a multiple by `tame`,
far from where it would jump. Then sums in any order, fused operations and other libraries change no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from lanewise.language import types as t

FLOATS, WHOLE = (t.F32, t.F64), (t.I32, t.I64, t.U32)
NUMBERS = (*FLOATS, *WHOLE)
VECTORS = tuple(t.Vector(s, n) for s in (t.F32, t.F64, t.I32) for n in (2, 3, 4))
NAMES = {k: f"lw.{k.name}" for k in (*t.SCALARS, *t.STORED, *VECTORS)}
# Numbers that are taken for values of a type where nothing else decides it.
LITERALS: dict[t.Scalar, Callable[[str], str]] = {t.F32: lambda text: str(float(text)), t.I32: lambda text: text}
EXACT_FUNCTIONS = {1: ("sqrt", "floor", "ceil", "trunc", "abs"), 2: ("min", "max"), 3: ("clamp", "fma", "mix")}
LIBRARY = {
    1: ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "cbrt", "rsqrt"),
    2: ("pow", "atan2", "hypot"),
}  # fmt: skip


@dataclass(frozen=True)
class Traits:
    """What a program may hold.

    pattern: "elementwise" or "pairwise". plain: no mixed types. library: functions whose last digits depend on the
    device. vectors: besides scalars. exact: see above. strict: without functions of floats that NaN or rounding makes
    depend on the device (min, max, clamp, fma). quantised: the floats that pairs contribute are small multiples of 1/8,
    so that every order of adding them is exact.
    """

    pattern: str = "elementwise"
    plain: bool = True
    library: bool = False
    vectors: bool = True
    strict: bool = False
    quantised: bool = True
    central: bool = False
    exact: bool = False
    constant: float = 0.0  # share of the results that are numbers, whatever was computed
    stored: float = 0.0  # share of numbers of 8 and 16 bits where memory may hold these

    @property
    def pairwise(self) -> bool:
        return self.pattern == "pairwise"


@dataclass(frozen=True)
class Program:
    """The text, what its first (and its source) record holds, and its values: one for all, or arrays of one
    an element.
    """

    text: str
    traits: Traits
    fields: dict[str, t.ValueType]
    values: dict[str, t.ValueType]
    arrays: dict[str, t.ValueType]
    results: tuple[t.ValueType, ...]


@dataclass(frozen=True)
class Atom:
    """A value that a pattern offers: its type, and text for it, which may use what is known at a place."""

    kind: t.ValueType
    write: Callable[[Block], str]


@dataclass
class Block:
    """What is known at a place of a function: variables that may be set, names that are only read, local arrays."""

    variables: dict[str, t.ValueType] = field(default_factory=dict[str, t.ValueType])
    fixed: dict[str, t.ValueType] = field(default_factory=dict[str, t.ValueType])
    arrays: dict[str, tuple[t.Scalar, int]] = field(default_factory=dict[str, tuple[t.Scalar, int]])
    fields: dict[str, t.ValueType] = field(default_factory=dict[str, t.ValueType])  # of the record that is updated
    loop: bool = False
    pair: bool = False  # of a pairwise function itself
    depth: int = 0
    atoms: list[Atom] = field(default_factory=list[Atom])  # values of the pattern's own: elements, items, directions
    places: dict[str, str] = field(
        default_factory=dict[str, str]
    )  # integers that indices are made of, and below what they lie
    turns: dict[str, str] = field(
        default_factory=dict[str, str]
    )  # how often loops of the pattern's own go round: as written, and what that is
    leaves: bool = True  # loops may be left by `return`
    helper: bool = False  # of a helper, whose parameters may be literals

    def inner(self, *, loop: bool | None = None) -> Block:
        loop = self.loop if loop is None else loop
        return replace(
            self, variables=dict(self.variables), fixed=dict(self.fixed), loop=loop, depth=self.depth + 1, places=dict(self.places)
        )  # fmt: skip

    def readable(self) -> dict[str, t.ValueType]:
        """Names, and with which types they are read: those of 8 and 16 bits are i32 and f32 then."""
        kinds = {**self.fixed, **self.variables, **self.fields}
        return {n: t.computed(k) if isinstance(k, t.Scalar) else k for n, k in kinds.items()}


class Writer:
    """Writes one program."""

    def __init__(self, rng: Random, traits: Traits) -> None:
        self.rng, self.traits = rng, traits
        self.helpers: list[tuple[str, list[t.ValueType], t.ValueType]] = []
        self.counter = 0
        self.budget = 60

    # ------------------------------------------------------------ small choices

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def new(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def scalar(self) -> t.Scalar:
        return self.rng.choices((*NUMBERS, t.BOOL), (4, 2, 3, 3, 2, 1))[0]

    def type(self) -> t.ValueType:
        return self.rng.choice(VECTORS) if self.traits.vectors and self.chance(0.2) else self.scalar()

    def small(self) -> t.Scalar | None:
        """A type of 8 or 16 bits, for some of what lies in memory."""
        return self.rng.choice(t.STORED) if self.chance(self.traits.stored) else None

    # ------------------------------------------------------------ literals

    def number(self, kind: t.Scalar) -> str:
        """A Python number that the type holds."""
        rng = self.rng
        if kind.is_float and self.traits.exact:
            return rng.choice(("0.5", "2", "-1.25", "3", "0.25", "-0.75", "1", "-2", "1.5"))
        if kind.is_float:
            large = ("1e30", "3.4e38", "1e-40", "-1e-3") if kind == t.F32 else ("1e300", "1.7e308", "5e-324", "1e-310")
            return rng.choice(
                ("0.5", "2", "-1.25", "3", "0.1", "1e-3", "-0.75", "7.0", "1e6", "100", rng.choice(large))
            )
        low, high = (int(x) for x in t.limits(kind))
        small = [1, 2, 3, 5, 7, 8, 10, 31, 255, 1000, 65521]
        small += [-x for x in (1, 2, 3, 7, 1000)] if low < 0 else []
        edge = [high, high - 1, high // 2, high // 3, *([low, low + 1, low // 2] if low < 0 else [])]
        if kind == t.I64:
            edge += [2**31, 2**32 - 1, 2**32, -(2**31), 2**53 + 1, 3037000500]
        return str(rng.choice(small if self.chance(0.75) else edge))

    def literal(self, kind: t.ValueType) -> str:
        """A number of a type."""
        if isinstance(kind, t.Vector):
            return f"{NAMES[kind]}({', '.join(self.number(kind.element) for _ in range(kind.length))})"
        if kind == t.BOOL:
            return self.rng.choice(("lw.bool(1)", "lw.bool(0)"))
        return f"{NAMES[kind]}({self.number(kind)})"

    # ------------------------------------------------------------ expressions

    def leaf(self, b: Block, kind: t.ValueType) -> str:
        """A name that holds the type, a part of one, or a number."""
        if atoms := [a for a in b.atoms if a.kind == kind]:
            if self.chance(0.6):
                return self.rng.choice(atoms).write(b)
        found = [self.read(b, n, n) for n, k in b.readable().items() if k == kind]
        if isinstance(kind, t.Scalar):
            for n, k in b.readable().items():
                if isinstance(k, t.Vector) and k.element == kind:
                    found.append(self.read(b, n, f"{n}.{self.rng.choice(t.COMPONENTS[: k.length])}"))
                    if self.chance(0.2):
                        found.append(self.read(b, n, f"{n}[{self.rng.randrange(k.length)}]"))
            for n, (k, length) in b.arrays.items():
                if k == kind:
                    found.append(self.tamed(kind, f"{n}[{self.rng.randrange(length)}]"))
        else:
            for n, k in b.readable().items():
                if isinstance(k, t.Vector) and k.element == kind.element:
                    swizzle = "".join(self.rng.choice(t.COMPONENTS[: k.length]) for _ in range(kind.length))
                    found.append(self.read(b, n, f"{n}.{swizzle}"))
        if found and self.chance(0.93):
            return self.rng.choice(found)
        if found or self.chance(0.3) or kind == t.BOOL:
            return self.literal(kind)
        other = [(n, k) for n, k in b.readable().items() if isinstance(k, t.Scalar)]
        if not other or isinstance(kind, t.Vector):
            return self.literal(kind)
        return self.tamed(kind, f"{NAMES[kind]}({self.rng.choice(other)[0]})")

    def plain_leaf(self, b: Block, kind: t.ValueType) -> str:
        """One that holds none of the pattern's own values: for the text of these."""
        return self.leaf(replace(b, atoms=[]), kind)

    def tamed(self, kind: t.ValueType, text: str) -> str:
        """What may be a large or a rounded float, as one that is neither; everything else as it is."""
        return f"tame({text})" if self.traits.exact and t.scalar_of(kind).is_float else text

    def read(self, b: Block, name: str, text: str) -> str:
        """A variable, or a part of one: its floats may have grown."""
        return text if name in b.fixed else self.tamed((b.variables | b.fields)[name], text)

    def expression(self, b: Block, kind: t.ValueType, depth: int = 3) -> str:
        """An expression of exactly this type; numbers of 8 and 16 bits are converted by name."""
        if kind in t.STORED:
            return f"{NAMES[kind]}({self.expression(b, t.computed(kind), depth)})"
        self.budget -= 1
        if depth <= 0 or self.budget < 0 or self.chance(0.12):
            return self.leaf(b, kind)
        if isinstance(kind, t.Vector):
            return self.vector(b, kind, depth)
        if kind == t.BOOL:
            return self.condition(b, depth)
        return self.anything(b, kind, depth) if self.chance(0.3) else self.arithmetic(b, kind, depth)

    def anything(self, b: Block, kind: t.Scalar, depth: int) -> str:
        """What all numbers have: choices, conversions, helpers, elements of arrays."""
        e, rng = self.expression, self.rng
        match rng.randrange(6):
            case 0:
                return f"({e(b, kind, depth - 1)} if {self.condition(b, depth - 1)} else {e(b, kind, depth - 1)})"
            case 1:
                return f"lw.select({self.condition(b, depth - 1)}, {e(b, kind, depth - 1)}, {e(b, kind, depth - 1)})"
            case 2 | 3:
                other = rng.choice([k for k in (*NUMBERS, t.BOOL) if k != kind])
                return self.tamed(kind, f"{NAMES[kind]}({e(b, other, depth - 1)})")
            case 4 if fitting := [h for h in self.helpers if h[2] == kind]:
                return self.called(b, rng.choice(fitting), depth)
            case 5 if fitting := [(n, length) for n, (k, length) in b.arrays.items() if k == kind]:
                name, length = rng.choice(fitting)
                return self.tamed(kind, f"{name}[{self.index(b, length, depth - 1)}]")
            case _:
                if kind.is_float and (vectors := [k for k in VECTORS if k.element == kind]) and self.traits.vectors:
                    v = rng.choice(vectors)
                    name = rng.choice(("dot", "dot", "length"))
                    operands = ", ".join(e(b, v, depth - 2) for _ in range(1 + (name == "dot")))
                    return self.tamed(kind, f"lw.{name}({operands})")
                return self.arithmetic(b, kind, depth)

    def called(self, b: Block, helper: tuple[str, list[t.ValueType], t.ValueType], depth: int) -> str:
        name, kinds, result = helper
        return self.tamed(result, f"{name}({', '.join(self.given(b, k, depth - 2) for k in kinds)})")

    def given(self, b: Block, kind: t.ValueType, depth: int) -> str:
        """An argument of a helper: an expression, or a number, with which the compiler makes a form of the helper that
        has no such parameter.
        """
        if self.traits.exact and isinstance(kind, t.Scalar) and kind in LITERALS and self.chance(0.2):
            return LITERALS[kind](self.number(kind))
        return self.expression(b, kind, depth)

    def index(self, b: Block, length: int, depth: int) -> str:
        """An index into a local array of 2 or 4 or 8."""
        if self.chance(0.3):
            return str(self.rng.randrange(length))
        return f"{self.expression(b, self.rng.choice(WHOLE), depth)} & {length - 1}"

    def operand(self, b: Block, kind: t.Scalar, depth: int) -> str:
        """The second operand of an operation of this type: a weak number, or (mixed) one of a type that is promoted."""
        if self.chance(0.25):
            return self.number(kind)
        if not self.traits.plain and self.chance(0.4):
            lower = [k for k in (*NUMBERS, t.BOOL) if k != kind and t.promote(k, kind) == kind]
            lower = [k for k in lower if not self.traits.exact or k.is_float == kind.is_float]
            if lower:
                return self.expression(b, self.rng.choice(lower), depth)
        return self.expression(b, kind, depth)

    def arithmetic(self, b: Block, kind: t.Scalar, depth: int) -> str:
        return self.floating(b, kind, depth) if kind.is_float else self.whole(b, kind, depth)

    def exactly(self, b: Block, kind: t.Scalar, depth: int) -> str:
        """A float that is a small multiple of 1/64: at most three factors, and what would be rounded is tamed."""
        rng, e = self.rng, self.expression
        match rng.randrange(12):
            case 0 | 1 | 2 | 3:
                return f"({e(b, kind, depth - 1)} {rng.choice('+-')} {e(b, kind, depth - 1)})"
            case 4 | 5 | 6:
                return f"({self.leaf(b, kind)} * {self.leaf(b, kind) if self.chance(0.7) else self.number(kind)})"
            case 7:
                name, count = rng.choice(
                    (("floor", 1), ("ceil", 1), ("trunc", 1), ("abs", 1), ("min", 2), ("max", 2), ("clamp", 3))
                )
                return f"lw.{name}({', '.join(self.leaf(b, kind) for _ in range(count))})"
            case 8:
                return f"(-{e(b, kind, depth - 1)})" if self.chance(0.6) else f"({self.leaf(b, kind)}) ** 2"
            case 9:
                name = rng.choice(("fma", "mix"))
                return self.tamed(kind, f"lw.{name}({', '.join(self.leaf(b, kind) for _ in range(3))})")
            case 10:
                quotient = f"{e(b, kind, depth - 1)} {rng.choice(('/', '/', '//', '%'))} {self.leaf(b, kind)}"
                return self.tamed(kind, f"finite({quotient})")
            case _:
                root = f"lw.sqrt(lw.abs({e(b, kind, depth - 1)}))"
                name = rng.choice(("sin", "cos", "exp", "atan", "tanh", "cbrt", "exp2", "sinh"))
                library = f"finite(lw.{name}({self.leaf(b, kind)})) + 0.0977"  # jumps of tame lie elsewhere
                return self.tamed(kind, library if self.traits.library else root)

    def floating(self, b: Block, kind: t.Scalar, depth: int) -> str:
        if self.traits.exact:
            return self.exactly(b, kind, depth)
        rng, left = self.rng, self.expression(b, kind, depth - 1)
        match rng.randrange(12):
            case 0 | 1 | 2 | 3 | 4 | 5:
                return f"({left} {rng.choice('++--***/')} {self.operand(b, kind, depth - 1)})"
            case 6:
                return f"({left} {rng.choice(('//', '%'))} {self.operand_not_zero(b, kind, depth - 1)})"
            case 7:
                return f"(-{left})"
            case 8 if not self.traits.plain:
                powers = ("2", "3", "2", "-1", "-2", "0.5", "4", "0", *(("1.5", "0.25") if self.traits.library else ()))
                return f"({left}) ** {rng.choice(powers)}"
            case 9 if self.traits.library:
                count = rng.choice((1, 1, 2))
                more = "".join(f", {self.operand(b, kind, depth - 1)}" for _ in range(count - 1))
                return f"lw.{rng.choice(LIBRARY[count])}({left}{more})"
            case _:
                count = rng.choice((1, 1, 2, 3))
                more = "".join(f", {self.operand(b, kind, depth - 1)}" for _ in range(count - 1))
                names = [
                    n
                    for n in EXACT_FUNCTIONS[count]
                    if not self.traits.strict or n not in ("min", "max", "clamp", "fma")
                ]
                return f"lw.{rng.choice(names)}({left}{more})" if names else f"lw.abs({left})"

    def operand_not_zero(self, b: Block, kind: t.Scalar, depth: int) -> str:
        text = self.operand(b, kind, depth)  # `number` gives no zero, and only a literal zero is refused
        return self.no_literal(b, text, kind)

    @staticmethod
    def no_literal(b: Block, text: str, kind: t.Scalar) -> str:
        """A divisor, or the count of a shift. What a helper makes of literal arguments is a literal, too: a zero would
        be refused.
        """
        return f"{NAMES[kind]}({text})" if b.helper else text

    def whole(self, b: Block, kind: t.Scalar, depth: int) -> str:
        rng, left = self.rng, self.expression(b, kind, depth - 1)
        match rng.randrange(12):
            case 0 | 1 | 2 | 3:
                return f"({left} {rng.choice('++-**')} {self.operand(b, kind, depth - 1)})"
            case 4 | 5:
                return f"({left} {rng.choice(('//', '%'))} {self.operand_not_zero(b, kind, depth - 1)})"
            case 6 | 7:
                return f"({left} {rng.choice('&|^')} {self.operand(b, kind, depth - 1)})"
            case 8:
                count = str(rng.randrange(8 * kind.size)) if self.chance(0.6) else self.expression(b, kind, depth - 1)
                return f"({left} {rng.choice(('<<', '>>'))} {self.no_literal(b, count, kind)})"
            case 9:
                return f"(~{left})" if self.chance(0.5) else f"(-{left})"
            case 10:
                return f"({left}) ** {rng.choice((0, 1, 2, 3, 5))}"
            case _:
                count = rng.choice((1, 2, 2, 3))
                name = {1: "abs", 2: rng.choice(("min", "max")), 3: "clamp"}[count]
                more = "".join(f", {self.operand(b, kind, depth - 1)}" for _ in range(count - 1))
                return f"lw.{name}({left}{more})"

    def condition(self, b: Block, depth: int) -> str:
        rng = self.rng
        if depth > 1 and self.chance(0.35):
            match rng.randrange(4):
                case 0:
                    return f"(not {self.condition(b, depth - 1)})"
                case 1 if not self.traits.plain:
                    return f"({self.condition(b, depth - 1)} {rng.choice('&|^')} {self.condition(b, depth - 1)})"
                case _:
                    return (
                        f"({self.condition(b, depth - 1)} {rng.choice(('and', 'or'))} {self.condition(b, depth - 1)})"
                    )
        if self.chance(0.06):
            return f"lw.bool({self.expression(b, rng.choice(NUMBERS), depth - 1)})"
        if depth > 1 and self.chance(0.05):
            return f"lw.select({', '.join(self.condition(b, depth - 1) for _ in range(3))})"
        if b.pair and self.chance(0.06):
            return "lw.same(target, source)"
        if self.chance(0.12):
            return (
                f"lw.{rng.choice(('isnan', 'isinf', 'isfinite'))}({self.expression(b, rng.choice(FLOATS), depth - 1)})"
            )
        if self.chance(0.1) and (found := [n for n, k in b.readable().items() if k == t.BOOL]):
            return rng.choice(found)
        kind = rng.choice(NUMBERS)
        signs = ("<", "<=", ">", ">=", "==", "!=")
        chain = f" {rng.choice(signs[:4])} {self.operand(b, kind, depth - 2)}" if self.chance(0.1) else ""
        return f"({self.expression(b, kind, depth - 1)} {rng.choice(signs)} {self.operand(b, kind, depth - 1)}{chain})"

    def vector(self, b: Block, kind: t.Vector, depth: int) -> str:
        e, rng = self.expression, self.rng
        if self.traits.exact and kind.element.is_float:
            depth = min(depth, 2)
        match rng.randrange(9):
            case 0 | 1 | 2:
                other = rng.choice((kind, kind.element))
                sign = rng.choice("+-*")
                return self.tamed(kind, f"({e(b, kind, depth - 1)} {sign} {e(b, other, depth - 1)})")
            case 3:
                return f"{NAMES[kind]}({', '.join(e(b, kind.element, depth - 2) for _ in range(kind.length))})"
            case 4:
                other = rng.choice([v for v in VECTORS if v.length == kind.length])
                return self.tamed(kind, f"{NAMES[kind]}({e(b, other, depth - 1)})")
            case 5 if kind.length > 2:
                head = rng.choice([v for v in VECTORS if v.element == kind.element and v.length < kind.length])
                rest = [e(b, kind.element, depth - 2) for _ in range(kind.length - head.length)]
                return f"{NAMES[kind]}({', '.join([e(b, head, depth - 1), *rest])})"
            case 6 if not self.traits.strict or not kind.element.is_float:
                name = rng.choice(("min", "max"))
                return f"lw.{name}({e(b, kind, depth - 1)}, {e(b, kind, depth - 1)})"
            case 7 if kind.length == 3 and kind.element.is_float:
                return self.tamed(kind, f"lw.cross({e(b, kind, depth - 1)}, {e(b, kind, depth - 1)})")
            case 7:
                return f"({e(b, kind, depth - 1)} if {self.condition(b, depth - 2)} else {e(b, kind, depth - 1)})"
            case 8:
                return f"(-{e(b, kind, depth - 1)})" if self.chance(0.5) else f"lw.abs({e(b, kind, depth - 1)})"
            case _:
                return self.leaf(b, kind)

    # ------------------------------------------------------------ statements

    def block(self, b: Block, count: int, returned: tuple[t.ValueType, ...]) -> list[str]:
        lines = [line for _ in range(count) if self.budget > 0 for line in self.statement(b, returned)]
        return lines or ["pass"]

    def statement(self, b: Block, returned: tuple[t.ValueType, ...]) -> list[str]:
        rng, e = self.rng, self.expression
        nested = b.depth < 2
        match rng.randrange(16):
            case 0 | 1 | 2 | 3:
                kind, name = self.type(), self.new("v")
                value = e(b, kind)
                b.variables[name] = kind
                if isinstance(kind, t.Scalar) and not self.traits.plain and self.chance(0.2):
                    wide = [k for k in NUMBERS if t.promote(k, kind) == k]
                    b.variables[name] = chosen = rng.choice(wide)
                    return [f"{name}: {NAMES[chosen]} = {value}"]
                return [f"{name} = {value}"]
            case 4 | 5 if changed := {**b.variables, **b.fields}:
                name, kind = rng.choice(list(changed.items()))
                if kind in (t.BOOL, *t.STORED) or self.chance(0.4):
                    return [f"{name} = {e(b, kind)}"]
                floats = kind != t.BOOL and t.scalar_of(kind).is_float
                signs = (
                    "+-"
                    if floats and self.traits.exact
                    else "+-*"
                    if floats or isinstance(kind, t.Vector)
                    else "+-*&|^"
                )
                return [f"{name} {rng.choice(signs)}= {e(b, kind, 2)}"]
            case 6 | 7 | 8 if nested:
                lines = [f"if {self.condition(b, 2)}:", *indented(self.block(b.inner(), rng.randint(1, 2), returned))]
                while self.chance(0.25):
                    lines += [f"elif {self.condition(b, 2)}:", *indented(self.block(b.inner(), 1, returned))]
                if self.chance(0.5):
                    lines += ["else:", *indented(self.block(b.inner(), rng.randint(1, 2), returned))]
                return lines
            case 9 | 10 if nested:
                return self.repeated(b, returned)
            case 11 if nested and (b.leaves or not b.loop):
                return [f"if {self.condition(b, 2)}:", *indented(self.returning(b, returned))]
            case 12 if not b.depth and len(b.arrays) < 2:
                kind, length, name = rng.choice(NUMBERS), rng.choice((2, 4, 8)), self.new("a")
                b.arrays[name] = (kind, length)
                return [f"{name} = lw.zeros({NAMES[kind]}, {length})"]
            case 13 if b.arrays:
                name, (kind, length) = rng.choice(list(b.arrays.items()))
                sign = rng.choice(("=", "+=", "-=" if kind.is_float else "^="))
                return [f"{name}[{self.index(b, length, 1)}] {sign} {e(b, kind, 2)}"]
            case 14 if len(same := [n for n, k in b.variables.items() if k == t.F32]) > 1:
                first, second = rng.sample(same, 2)
                return [f"{first}, {second} = {second}, {e(b, t.F32, 2)}"]
            case 15 if found := [(n, k) for n, k in b.readable().items() if isinstance(k, t.Vector)]:
                name, kind = rng.choice(found)
                assert isinstance(kind, t.Vector)
                parts = [self.new("v") for _ in range(kind.length)]
                b.variables |= dict.fromkeys(parts, kind.element)
                return [f"{', '.join(parts)} = {name}"]
            case _ if b.loop and b.depth:
                return [f"if {self.condition(b, 2)}:", f"    {rng.choice(('break', 'continue'))}"]
            case _:
                name = self.new("v")
                kind = self.scalar()
                value = e(b, kind)
                b.variables[name] = kind
                return [f"{name} = {value}"]

    def repeated(self, b: Block, returned: tuple[t.ValueType, ...]) -> list[str]:
        """A loop of few turns."""
        rng, inner = self.rng, b.inner(loop=True)
        if b.turns and self.chance(0.7):
            variable = self.new("k")
            turns, inner.places[variable] = rng.choice(list(b.turns.items()))
            body = self.block(inner, rng.randint(1, 2), returned)
            return [f"for {variable} in range({turns}):", *indented(body)]
        if self.chance(0.2):
            turns = self.new("n")
            inner.fixed[turns] = t.I32
            body = self.block(inner, rng.randint(1, 2), returned)
            head = [f"{turns} = lw.i32(0)", f"while {turns} < {rng.randint(1, 4)} and {self.condition(b, 1)}:"]
            return [*head, *indented([f"{turns} += 1", *body])]
        variable = self.new("i")
        bounds = rng.choice(("3", "1, 4", "5, 0, -2", "{} & 3", "{} % 5", "lw.abs({} % 4), 6, 2"))
        bounds = bounds.format(self.expression(b, t.I32, 1))
        name = self.new("j")
        inner.fixed[name] = t.I32  # the loop's own variable is a Python number in ordinary Python
        body = self.block(inner, rng.randint(1, 2), returned)
        return [f"for {variable} in range({bounds}):", *indented([f"{name} = lw.i32({variable})", *body])]

    def returning(self, b: Block, returned: tuple[t.ValueType, ...]) -> list[str]:
        if not returned:
            return ["return"]
        constant = [self.chance(self.traits.constant) for _ in returned]
        results = (self.literal(k) if c else self.result(b, k) for k, c in zip(returned, constant, strict=True))
        return [f"return {', '.join(results)}"]

    def result(self, b: Block, kind: t.ValueType) -> str:
        """A value to return. What pairs contribute is tame: sums of huge numbers depend on their order."""
        if not b.pair or self.traits.exact or not t.scalar_of(kind).is_float:
            return self.expression(b, kind, 2)
        if isinstance(kind, t.Vector):
            return f"{NAMES[kind]}({', '.join(f'tame({self.expression(b, kind.element, 2)})' for _ in range(kind.length))})"
        return f"tame({self.expression(b, kind, 2)})"

    # ------------------------------------------------------------ functions

    def helper(self) -> list[str]:
        name, kinds = self.new("helper"), [self.type() for _ in range(self.rng.randint(1, 3))]
        result = self.type()
        b = Block({f"p{i}": k for i, k in enumerate(kinds)}, helper=True)
        typed = [f"p{i}: {NAMES[k]}" if self.chance(0.5) else f"p{i}" for i, k in enumerate(kinds)]
        self.budget = 14
        body = self.block(b, self.rng.randint(0, 3), (result,))
        body = [line for line in body if line != "pass"] + self.returning(b, (result,))
        self.helpers.append((name, kinds, result))
        return ["", "", "@lw.function", f"def {name}({', '.join(typed)}):", *indented(body)]


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


# Sums of these are the same in every order: few digits, no infinities.
QUANTISED = "lw.select(lw.isfinite(x), lw.floor(lw.clamp(x, -8, 8) * 8) * 0.125, 0.0)"
CLAMPED = "lw.select(lw.isfinite(x), lw.clamp(x, -8, 8), 0.0)"


def write_program(rng: Random, traits: Traits) -> Program:
    """A random program with these traits."""
    if traits.central:
        return _central(rng, traits)
    w = Writer(rng, traits)
    fields: dict[str, t.ValueType] = {"f0": t.F32, "f1": rng.choice((t.I32, t.I64, t.U32))}
    fields |= {f"f{n}": w.type() for n in range(2, rng.randint(3, 7))}
    stored = _stored(fields) if not traits.quantised else {}
    fields |= stored
    head = ["@lw.record", "class R:", *indented([f"{n}: {NAMES[k]}" for n, k in fields.items()])]
    if traits.pairwise:
        head += ["", "", "@lw.function", "def tame(x):", f"    return {QUANTISED if traits.quantised else CLAMPED}"]
    values = {f"p{n}": w.type() for n in range(rng.randint(0, 2))}
    arrays = {} if traits.pairwise else {f"q{n}": w.type() for n in range(rng.choice((0, 0, 1, 2)))}
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        head += w.helper()
    results = tuple(_resulting(w) for _ in range(rng.randint(int(traits.pairwise), 3)))
    plain = {n: k for n, k in fields.items() if n not in stored}
    read = {
        f"lw.{t.computed(k)}({r}.{n})": t.computed(k)
        for r in (("target", "source") if traits.pairwise else ("e",))
        for n, k in stored.items()
    }
    if traits.pairwise:
        body = Block(
            {}, {f"{r}.{n}": k for r in ("target", "source") for n, k in plain.items()} | values | read, pair=True
        )
        records = ["target: R", "source: R"]
    else:
        body = Block({}, values | arrays | read, fields={f"e.{n}": k for n, k in plain.items()})
        records = ["e: R"]
    parameters = [*records, *(f"{n}: {NAMES[k]}" for n, k in (values | arrays).items())]
    w.budget = rng.choice((30, 60, 60, 100))
    lines = w.block(body, rng.randint(3, 8), results)
    if not traits.pairwise:
        lines = [*(_changed(n, k) for n, k in stored.items()), *lines]
    w.budget = max(w.budget, 10 * len(results))
    lines += w.returning(body, results) if results else []
    spelled = [NAMES[k] for k in results]
    shown = f" -> tuple[{', '.join(spelled)}]" if len(spelled) > 1 else f" -> {spelled[0]}" if spelled else ""
    head += ["", "", f"@lw.{traits.pattern}", f"def kernel({', '.join(parameters)}){shown}:", *indented(lines)]
    return Program("\n".join(head) + "\n", traits, fields, values, arrays, results)


def _stored(fields: dict[str, t.ValueType]) -> dict[str, t.ValueType]:
    """Fields of 8 and 16 bits, of some programs; nothing else of a program hangs on them."""
    rng = Random(repr(fields))
    return {f"s{n}": rng.choice(t.STORED) for n in range(rng.choice((0, 0, 1, 2)))}


def _changed(name: str, kind: t.ValueType) -> str:
    """A statement that computes such a field anew."""
    wide = t.computed(t.scalar_of(kind))
    return f"e.{name} = {NAMES[kind]}(lw.{wide}(e.{name}) * lw.{wide}(3) - lw.{wide}(e.f0))"


def _resulting(w: Writer) -> t.ValueType:
    """A type to return; booleans are not added up."""
    kind = w.type()
    return t.I32 if kind == t.BOOL and w.traits.pairwise else kind


def _central(rng: Random, traits: Traits) -> Program:
    """A force along the line between two bodies, as symmetrical as physics: of small multiples of 1/8, so that every
    sum is exact.
    """
    vector = rng.choice([v for v in VECTORS if v.element.is_float and v.length < 4])
    mass = rng.choice((vector.element, t.F32, t.I32))
    fields: dict[str, t.ValueType] = {"f0": vector, "f1": mass}
    strength = rng.choice(
        (
            "1",
            "r2",
            "(2 - r2)",
            "lw.min(r2, 3)",
            "lw.max(1 - r2, 0)",
            "(1 if r2 < 2 else 0.5)",
            "(r2 * 0.5 + p0)",
            "lw.floor(r2) % 3",
        )
    )
    masses = rng.choice(("source.f1", "target.f1 * source.f1", "(target.f1 + source.f1)"))
    lines = ["d = source.f0 - target.f0", "r2 = lw.dot(d, d)"]
    test = rng.choice(("lw.same(target, source)", "r2 > 20", "lw.same(target, source) or r2 > 20"))
    results: tuple[t.ValueType, ...] = (vector, vector.element)[: rng.randint(1, 2)]
    second = [rng.choice(("r2", "source.f1 * r2", strength))] if len(results) == 2 else []
    zeros = [f"{NAMES[vector]}(0)", *(["0.0"] if second else [])]
    if rng.random() < 0.6:
        lines += [f"if {test}:", f"    return {', '.join(zeros)}"]
    force = f"{masses} * {strength} * d"
    spelled = [NAMES[k] for k in results]
    shown = f"tuple[{', '.join(spelled)}]" if second else spelled[0]
    text = [
        "@lw.record", "class R:", *indented([f"{n}: {NAMES[k]}" for n, k in fields.items()]), "", "",
        "@lw.pairwise", f"def kernel(target: R, source: R, p0: {NAMES[vector.element]}) -> {shown}:",
        *indented([*lines, f"return {', '.join([force, *second])}"]),
    ]  # fmt: skip
    return Program("\n".join(text) + "\n", traits, fields, {"p0": vector.element}, {}, results)
