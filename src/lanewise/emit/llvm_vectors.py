"""Operations on the registers of SIMD lanes as instructions of LLVM's language: arithmetic,
conversions, moves between lanes, loads and stores.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.emit.llvm_expressions import literal
from lanewise.emit.llvm_instructions import (
    APPROXIMATE,
    CONTRACT,
    FAST,
    FREE,
    LETTERS,
    TYPES,
)
from lanewise.emit.llvm_pieces import EVEN, NONTEMPORAL, pieces_of
from lanewise.language.target import LINE
from lanewise.language.types import BOOL, I32, I64, U32, Scalar, limits
from lanewise.runtime.llvm_lines import FunctionLines
from lanewise.runtime.mathematics.library import FUNCTIONS, declaration

# bytes of an array from which on what is written is better not kept in a core's own caches
FAR = 1 << 24
_COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_FLOATS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_WHOLES = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "&": "and",
    "and": "and",
    "|": "or",
    "or": "or",
    "^": "xor",
    "<<": "shl",
}


@dataclass
class Vectors:
    """Registers of `count` numbers."""

    code: FunctionLines
    count: int
    fast: bool

    def kind(self, kind: Scalar) -> str:
        return f"<{self.count} x {TYPES[kind]}>"

    def letter(self, kind: Scalar) -> str:
        return f"v{self.count}{LETTERS.get(kind) or TYPES[kind]}"

    def flags(self, flags: str) -> str:
        return FAST if self.fast else flags

    # ------------------------------------------------------------ values

    def spread(self, value: str, kind: Scalar) -> str:
        """One number in all lanes."""
        if value[0] != "%":
            return f"splat ({TYPES[kind]} {value})"
        v, give = self.kind(kind), self.code.give
        first = give(f"insertelement {v} poison, {TYPES[kind]} {value}, i64 0")
        return give(f"shufflevector {v} {first}, {v} poison, <{self.count} x i32> zeroinitializer")

    def numbers(self, kind: Scalar) -> str:
        """0, 1, 2, ...: the number of each lane."""
        return f"<{', '.join(f'{TYPES[kind]} {n}' for n in range(self.count))}>"

    def binary(
        self, operator: str, kind: Scalar, a: str, b: str, *, free: bool = False, fuses: bool = True
    ) -> str:
        v = self.kind(kind)
        if kind.is_float:
            flags = self.flags(FREE if free else CONTRACT if fuses else "")
            return self.code.give(f"{_FLOATS[operator]} {flags}{v} {a}, {b}")
        shift = "ashr" if kind.kind == "i" else "lshr"
        name = shift if operator == ">>" else _WHOLES[operator]
        return self.code.give(f"{name} {v} {a}, {b}")

    def compare(self, operator: str, kind: Scalar, a: str, b: str) -> str:
        if kind.is_float:
            name = f"fcmp {'u' if operator == '!=' else 'o'}{_COMPARE[operator]}"
        else:
            sign = "" if operator in ("==", "!=") else "s" if kind.kind in "ib" else "u"
            name = f"icmp {sign}{_COMPARE[operator]}"
        return self.code.give(f"{name} {self.kind(kind)} {a}, {b}")

    def choose(self, mask: str, kind: Scalar, yes: str, no: str) -> str:
        v = self.kind(kind)
        return self.code.give(f"select {self.kind(BOOL)} {mask}, {v} {yes}, {v} {no}")

    def negative(self, kind: Scalar, a: str) -> str:
        v = self.kind(kind)
        if kind.is_float:
            return self.code.give(f"fneg {self.flags(CONTRACT)}{v} {a}")
        return self.code.give(f"sub {v} zeroinitializer, {a}")

    def opposite(self, kind: Scalar, a: str) -> str:
        every = "true" if kind == BOOL else "-1"
        return self.code.give(f"xor {self.kind(kind)} {a}, splat ({TYPES[kind]} {every})")

    def extreme(self, name: str, kind: Scalar, a: str, b: str) -> str:
        """The smaller or larger number; NaN if either operand is NaN."""
        better = self.compare("<" if name == "min" else ">", kind, a, b)
        chosen = self.choose(better, kind, a, b)
        if not kind.is_float:
            return chosen
        # one instruction of x86, which gives b if either operand is NaN; if a is the NaN, a stays
        number = self.code.give(f"fcmp ord {self.kind(kind)} {a}, {a}")
        return self.choose(number, kind, chosen, a)

    def intrinsic(self, name: str, kind: Scalar, a: str, flags: str = "") -> str:
        v, full = self.kind(kind), f"@llvm.{name}.{self.letter(kind)}"
        self.code.needs.add(f"declare {v} {full}({v})")
        return self.code.give(f"call {flags}{v} {full}({v} {a})")

    def function(self, name: str, kind: Scalar, a: list[str]) -> str:
        match name:
            case "min" | "max":
                return self.extreme(name, kind, a[0], a[1])
            case "clamp":
                return self.extreme("min", kind, self.extreme("max", kind, a[0], a[1]), a[2])
            case "mix":
                return self.fused(kind, self.binary("-", kind, a[1], a[0]), a[2], a[0])
            case "fma":
                return self.fused(kind, a[0], a[1], a[2])
            case "abs" if kind.is_float:
                return self.intrinsic("fabs", kind, a[0])
            case "abs":
                if kind == U32:
                    return a[0]
                below = self.compare("<", kind, a[0], "zeroinitializer")
                return self.choose(below, kind, self.negative(kind, a[0]), a[0])
            case "rsqrt":
                root = self.intrinsic("sqrt", kind, a[0], APPROXIMATE)
                one = self.spread(literal(1.0, kind), kind)
                flags = self.flags(APPROXIMATE)
                return self.code.give(f"fdiv {flags}{self.kind(kind)} {one}, {root}")
            case "sqrt" | "floor" | "ceil" | "trunc":
                return self.intrinsic(name, kind, a[0])
            case "round":
                return self.intrinsic("roundeven", kind, a[0])
            case _ if name in FUNCTIONS:
                letters, v = LETTERS[kind], self.kind(kind)
                self.code.needs.add(declaration(name, self.count, letters))
                listed = ", ".join(f"{v} {x}" for x in a)
                return self.code.give(f"call {v} @lw.{name}.v{self.count}{letters}({listed})")
            case _:
                raise AssertionError(f"lanes have no {name}")

    def fused(self, kind: Scalar, a: str, b: str, c: str) -> str:
        v, flags = self.kind(kind), CONTRACT
        product = self.code.give(f"fmul {flags}{v} {a}, {b}")
        return self.code.give(f"fadd {self.flags(flags)}{v} {product}, {c}")

    def cast(self, value: str, source: Scalar, target: Scalar) -> str:
        """The same numbers in another type; floats that do not fit become the nearest one that
        does, NaN 0.
        """
        give, left, right = self.code.give, self.kind(source), self.kind(target)
        if source == target or {source, target} == {I32, U32}:
            return value
        if target == BOOL:
            return self.compare("!=", source, value, "zeroinitializer")
        if source.is_float and target.is_float:
            wider = target.size > source.size
            return give(f"{'fpext' if wider else 'fptrunc'} {left} {value} to {right}")
        if source.is_float:
            return self._nearest_whole(value, source, target)
        unsigned = source.kind in "bu"
        if target.is_float:
            return give(f"{'uitofp' if unsigned else 'sitofp'} {left} {value} to {right}")
        if source.size > target.size and source != BOOL:
            return give(f"trunc {left} {value} to {right}")
        return give(f"{'zext' if unsigned else 'sext'} {left} {value} to {right}")

    def _nearest_whole(self, value: str, source: Scalar, target: Scalar) -> str:
        """Floats cut to integers as `llvm.fptosi.sat` does, of which LLVM 22 makes a conversion for
        each lane: those that fit are converted together, and the others chosen.
        """
        low, high = limits(target)
        least = self.spread(literal(float(low), source), source)
        beyond = self.spread(literal(float(high + 1), source), source)
        zero = self.spread(literal(0.0, source), source)
        far = self.compare(">=", source, value, beyond)
        near = self.compare(">=", source, value, least)
        safe = self.choose(far, source, zero, self.choose(near, source, value, zero))
        letter = "u" if target.kind == "u" else "s"
        left, right = self.kind(source), self.kind(target)
        cut = self.code.give(f"fpto{letter}i {left} {safe} to {right}")
        most = self.spread(literal(high, target), target)
        cut = self.choose(far, target, most, cut)
        if not low:
            return cut
        below = self.compare("<", source, value, least)
        return self.choose(below, target, self.spread(literal(low, target), target), cut)

    # ------------------------------------------------------------ between lanes

    def any(self, mask: str) -> str:
        """Whether a mask has a lane."""
        bits = self.code.give(f"bitcast {self.kind(BOOL)} {mask} to i{self.count}")
        return self.code.give(f"icmp ne i{self.count} {bits}, 0")

    def lane(self, value: str, kind: Scalar, number: str) -> str:
        return self.code.give(f"extractelement {self.kind(kind)} {value}, i64 {number}")

    def last(self, mask: str, value: str, kind: Scalar) -> str:
        """The number in the last lane of a mask that has one."""
        t, give = f"i{self.count}", self.code.give
        self.code.needs.add(f"declare {t} @llvm.ctlz.{t}({t}, i1)")
        bits = give(f"bitcast {self.kind(BOOL)} {mask} to {t}")
        leading = give(f"call {t} @llvm.ctlz.{t}({t} {bits}, i1 false)")
        at = give(f"sub {t} {self.count - 1}, {leading}")
        return give(f"extractelement {self.kind(kind)} {value}, {t} {at}")

    def put(self, value: str, kind: Scalar, number: str, one: str) -> str:
        v = self.kind(kind)
        return self.code.give(f"insertelement {v} {value}, {TYPES[kind]} {one}, i64 {number}")

    def least(self, value: str, kind: Scalar) -> str:
        """The least number of all lanes; what is no number is left out."""
        v, t = self.kind(kind), TYPES[kind]
        name = f"@llvm.vector.reduce.fmin.{self.letter(kind)}"
        self.code.needs.add(f"declare {t} {name}({v})")
        return self.code.give(f"call {t} {name}({v} {value})")

    def shuffle(self, value: str, kind: Scalar, distance: int, group: int) -> str:
        order = [
            n - n % group if not distance else n + distance if n % group + distance < group else n
            for n in range(self.count)
        ]
        return self.shuffled(value, "poison", kind, order)

    def shuffled(self, a: str, b: str, kind: Scalar, order: list[int]) -> str:
        v, listed = self.kind(kind), ", ".join(f"i32 {n}" for n in order)
        return self.code.give(f"shufflevector {v} {a}, {v} {b}, <{len(order)} x i32> <{listed}>")

    def turn(self, rows: list[str], kind: Scalar) -> list[str]:
        """Registers as the columns of a matrix whose rows they were."""
        distance = 1
        while distance < self.count:  # exchange blocks of this side across the diagonal
            rows = self._exchanged(rows, kind, distance)
            distance *= 2
        return rows

    def _exchanged(self, rows: list[str], kind: Scalar, distance: int) -> list[str]:
        lanes, done = range(self.count), list(rows)
        low = [n if not n & distance else n - distance + self.count for n in lanes]
        high = [n + distance if not n & distance else n + self.count for n in lanes]
        for n in lanes:
            if not n & distance:
                one, other = rows[n], rows[n + distance]
                done[n] = self.shuffled(one, other, kind, low)
                done[n + distance] = self.shuffled(one, other, kind, high)
        return done

    # ------------------------------------------------------------ memory

    def clear(self, pointer: str, size: int) -> None:
        """Make so many bytes zero."""
        self.code.needs.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.code.do(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")

    def load(self, pointer: str, kind: Scalar, name: str) -> str:
        return self.code.give(f"load {self.kind(kind)}, ptr {pointer}, align {kind.size}", name)

    def load_some(self, pointer: str, kind: Scalar, mask: str, other: str) -> str:
        v, m = self.kind(kind), self.kind(BOOL)
        name = f"@llvm.masked.load.{self.letter(kind)}.p0"
        self.code.needs.add(f"declare {v} {name}(ptr, {m}, {v})")
        return self.code.give(
            f"call {v} {name}(ptr align {kind.size} {pointer}, {m} {mask}, {v} {other})"
        )

    def store(self, pointer: str, kind: Scalar, value: str) -> None:
        self.code.do(f"store {self.kind(kind)} {value}, ptr {pointer}, align {kind.size}")

    def store_some(self, pointer: str, kind: Scalar, mask: str, value: str) -> None:
        v, m = self.kind(kind), self.kind(BOOL)
        name = f"@llvm.masked.store.{self.letter(kind)}.p0"
        self.code.needs.add(f"declare void {name}({v}, ptr, {m})")
        self.code.do(f"call void {name}({v} {value}, ptr align {kind.size} {pointer}, {m} {mask})")

    def stream(self, pointer: str, kind: Scalar, value: str, far: str, *, parts: bool) -> None:
        """A store past the caches where `far` says so and a line of memory is written whole: the
        line is not read before.

        parts: whether a register that lies in two lines is also stored so: where the next one
        follows at once, and completes the second.
        """
        code, v = self.code, self.kind(kind)
        whole = kind.size * self.count
        labels = [code.label(n) for n in ("whole", "split", "pieces", "through", "stored")]
        in_one, split, in_parts, through, behind = labels
        code.branch(self._even(pointer, whole, far), in_one, split if parts else through)

        def past(label: str, align: int) -> None:
            code.begin(label)
            code.do(f"store {v} {value}, ptr {pointer}, align {align}{NONTEMPORAL}")
            code.jump(behind)

        past(in_one, whole)
        if parts:
            code.begin(split)
            code.branch(self._even(pointer, min(EVEN, whole), far), in_parts, through)
            past(in_parts, min(EVEN, whole))
        code.begin(through)
        self.store(pointer, kind, value)
        code.jump(behind)
        code.begin(behind)

    def stream_some(self, pointer: str, kind: Scalar, mask: str, value: str, far: str) -> None:
        """A store in some lanes, past the caches where `far` says so: pieces of `EVEN` bytes, and
        single elements next to them.

        A core puts together what follows each other: a line whose first part ends a row goes to
        memory whole with what begins the next row. Through a cache the second part would wait until
        the line has come from memory, and all stores behind it.
        """
        code, v = self.code, self.kind(kind)
        code.needs.add(pieces_of(self.count, kind))
        room = code.room(f"%{code.label('kept')}", v)
        past, through, behind = (code.label(n) for n in ("past", "through", "stored"))
        code.branch(self._even(pointer, EVEN, far), past, through)
        code.begin(past)
        code.do(f"store {v} {value}, ptr {room}")
        bits = code.give(f"bitcast {self.kind(BOOL)} {mask} to i{self.count}")
        name = f"@lw_pieces_{self.letter(kind)}"
        code.do(f"call void {name}(ptr {room}, i{self.count} {bits}, ptr {pointer})")
        code.jump(behind)
        code.begin(through)
        self.store_some(pointer, kind, mask, value)
        code.jump(behind)
        code.begin(behind)

    def _even(self, pointer: str, to: int, far: str) -> str:
        """Whether a place is a multiple of so many bytes, of an array that is far."""
        number = self.code.give(f"ptrtoint ptr {pointer} to i64")
        low = self.code.give(f"and i64 {number}, {to - 1}")
        begins = self.code.give(f"icmp eq i64 {low}, 0")
        return self.code.give(f"and i1 {far}, {begins}")

    def prefetch(self, pointer: str) -> None:
        """Ask for what lies at a place, which may be beyond the end, in the second cache."""
        self.code.needs.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.code.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 2, i32 1)")

    def is_far(self, size: str, kind: Scalar) -> str:
        """Whether an array is larger than the caches of a core."""
        return self.code.give(f"icmp sgt i64 {size}, {self.most_near(kind)}")

    @staticmethod
    def most_near(kind: Scalar) -> int:
        """How many elements the caches of a core hold."""
        return FAR // kind.size

    def begins(self, pointer: str, kind: Scalar, within: int = LINE) -> str:
        """How many elements fit between the beginning of a piece of memory and that of an array."""
        number = self.code.give(f"ptrtoint ptr {pointer} to i64")
        low = self.code.give(f"and i64 {number}, {within - 1}")
        return self.code.give(f"udiv i64 {low}, {kind.size}")

    def whole(self, value: str, kind: Scalar) -> str:
        """A place in 64 bits in another type of integers."""
        return value if kind == I64 else self.code.give(f"trunc i64 {value} to i32")
